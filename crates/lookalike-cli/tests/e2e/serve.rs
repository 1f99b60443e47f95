//! `lookalike serve`, tested on a real socket.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Finish as _, lookalike};

/// Returns a `lookalike client` command for a service.
pub(crate) fn client(service: &Service, words: &[&str]) -> Command {
    let mut command = lookalike("client");
    let url = format!("http://{}", service.address);
    command.args(["--url", &url]).args(words);
    command
}

/// A running service.
pub(crate) struct Service {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    log: BufReader<std::process::ChildStderr>,
    /// Events logged before it listened.
    opening: Vec<Value>,
    /// The event logged when it listened.
    pub(crate) listening: Value,
}

impl Service {
    pub(crate) fn start(data: &Path, arguments: &[&str]) -> Self {
        let data = data.to_str().unwrap();
        Self::start_with(&[&["--data", data], arguments].concat())
    }

    /// Starts a service with these arguments and a free port.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        let mut command = lookalike("serve");
        command.args(["--listen", "127.0.0.1:0"]).args(arguments);
        Self::run(command)
    }

    pub(crate) fn run(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let (opening, listening) = until_it_listens(&mut log);
        Self {
            child,
            address: listening["address"].as_str().unwrap().parse().unwrap(),
            log,
            opening,
            listening,
        }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream
    }

    /// Sends the head of a check, and waits until the service asks for the body. Returns the connection.
    pub(crate) fn begin_check(&self, length: usize) -> TcpStream {
        let mut stream = self.connect();
        let head = format!(
            "POST /v1/collections/pages/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut begin = [0; 25];
        stream.read_exact(&mut begin).unwrap();
        assert_eq!(&begin, b"HTTP/1.1 100 Continue\r\n\r\n");
        stream
    }

    /// Sends a request on a connection of its own. Returns the status and body of the answer.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = body.to_string();
        let length = body.len();
        let mut stream = self.connect();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all((head + &body).as_bytes()).unwrap();
        answer(&mut stream)
    }

    /// Posts like [`Service::ask`], but the service may end before it answers.
    pub(crate) fn try_ask(&self, path: &str, body: &Value) -> (Option<u16>, Value) {
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let Ok(mut stream) = TcpStream::connect(self.address) else {
            return (None, Value::Null);
        };
        let mut bytes = Vec::new();
        // If the connection breaks, the bytes received so far count.
        let _ = stream.write_all((head + &body).as_bytes());
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        let status = text.split(' ').nth(1).and_then(|word| word.parse().ok());
        let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }

    pub(crate) fn pages(&self, operation: &str, body: &Value) -> Value {
        let (status, answer) =
            self.ask("POST", &format!("/v1/collections/pages/{operation}"), body);
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// Reads the next event of the log.
    pub(crate) fn next_event(&mut self) -> Value {
        let mut line = String::new();
        self.log.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let done = std::process::Command::new("kill")
            .args(["-s", name, &id])
            .status()
            .unwrap();
        assert!(done.success());
    }

    /// Stops the service in an orderly way. Returns the log since it listened.
    pub(crate) fn stop(mut self) -> String {
        self.signal("TERM");
        assert!(self.child.wait().unwrap().success());
        let mut said = String::new();
        self.log.read_to_string(&mut said).unwrap();
        said
    }

    /// Waits until the service has ended. Returns its exit status and the rest of the log.
    pub(crate) fn ended(mut self) -> Ended {
        let status = self.child.wait().unwrap();
        let mut said = String::new();
        self.log.read_to_string(&mut said).unwrap();
        Ended { status, said }
    }

    /// Kills the service, as a crash would.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// The exit status of a service, and the rest of its log.
pub(crate) struct Ended {
    pub(crate) status: std::process::ExitStatus,
    pub(crate) said: String,
}

/// Reads the log until the service listens. Returns the events before that, and that event.
fn until_it_listens(log: &mut impl BufRead) -> (Vec<Value>, Value) {
    let mut opening = Vec::new();
    loop {
        let mut line = String::new();
        log.read_line(&mut line).unwrap();
        let entry: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        if entry["event"] == "listening" {
            return (opening, entry);
        }
        opening.push(entry);
    }
}

/// Leaves no process behind if a test fails.
impl Drop for Service {
    fn drop(&mut self) {
        // The service has usually ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads an answer to its end.
fn answer(stream: &mut TcpStream) -> (u16, Value) {
    let mut bytes = Vec::new();
    // The connection may be closed right after the answer, which is complete all the same.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

/// Waits until a connection is closed. Returns how long that took.
pub(crate) fn until_closed(stream: &mut TcpStream) -> Duration {
    let begin = Instant::now();
    let mut bytes = [0; 1024];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return begin.elapsed(),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return begin.elapsed(),
            Err(error) => panic!("still open after {:?}: {error}", begin.elapsed()),
        }
    }
}

#[test]
fn of_equal_pages_at_one_moment_exactly_one_is_new() {
    const CLIENTS: usize = 8;
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(folder.path(), &[]);
    assert_eq!(
        service.ask("PUT", "/v1/collections/pages", &json!({})).0,
        201
    );
    for page in 0..20 {
        // The fingerprints are far from each other.
        let code = format!("{:016x}", 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(page + 1));
        let barrier = Barrier::new(CLIENTS);
        let verdicts: Vec<Value> = std::thread::scope(|scope| {
            let client = |number: usize| {
                let (service, barrier, code) = (&service, &barrier, &code);
                scope.spawn(move || {
                    let entry = json!({"id": format!("{page}-{number}"), "fingerprint": code});
                    barrier.wait();
                    service.pages("check-and-insert", &entry)["verdict"].clone()
                })
            };
            let clients: Vec<_> = (0..CLIENTS).map(client).collect();
            clients
                .into_iter()
                .map(|client| client.join().unwrap())
                .collect()
        });
        let new = verdicts.iter().filter(|verdict| **verdict == "new").count();
        assert_eq!(new, 1, "{verdicts:?}");
    }
    service.stop();
}

#[test]
fn what_was_acknowledged_survives_a_kill_and_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(folder.path(), &[]);
    service.ask("PUT", "/v1/collections/pages", &json!({"radius": 4}));
    let story = "the ferry left the harbour at nine with forty people on board";
    service.pages(
        "insert",
        &json!([{"id": "a", "text": story}, {"id": "b", "fingerprint": "0000000000000000"}]),
    );
    service.pages("delete", &json!({"id": "b"}));
    service.kill();

    let service = Service::start(folder.path(), &[]);
    let opened = service
        .opening
        .iter()
        .find(|entry| entry["event"] == "opened");
    assert_eq!(opened.unwrap()["clean"], false);
    let seen = service.pages(
        "check",
        &json!([{"text": story}, {"fingerprint": "0000000000000000"}]),
    );
    assert_eq!(
        (&seen[0]["verdict"], &seen[1]["verdict"]),
        (&json!("exact"), &json!("new"))
    );
    let said = service.stop();
    assert!(
        said.contains("SIGTERM") && said.contains("\"event\":\"stopped\""),
        "{said}"
    );

    let service = Service::start(folder.path(), &[]);
    let mut said = service.opening.iter();
    let opened = said.find(|entry| entry["event"] == "opened").unwrap();
    assert_eq!(
        (&opened["clean"], &opened["documents"]),
        (&json!(true), &json!(1))
    );
    let (status, shown) = service.ask("GET", "/v1/collections/pages", &Value::Null);
    assert_eq!((status, &shown["radius"]), (200, &json!(4)));
    service.stop();
}

#[test]
fn a_second_process_on_the_directory_is_refused_by_name_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(folder.path(), &[]);
    let begin = Instant::now();
    let second = lookalike("serve")
        .arg("--data")
        .arg(folder.path())
        .args(["--listen", "127.0.0.1:0"])
        .finish();
    assert_eq!(second.status, Some(1));
    second.says(&["has the store open", &service.child.id().to_string()]);
    assert!(begin.elapsed() < Duration::from_secs(30));
    service.stop();
}

#[test]
fn addresses_that_others_reach_need_keys() {
    let folder = tempfile::tempdir().unwrap();
    let (data, keys) = (folder.path().join("data"), folder.path().join("keys"));
    let open = lookalike("serve")
        .arg("--data")
        .arg(&data)
        .args(["--listen", "0.0.0.0:0"])
        .finish();
    assert_eq!(open.status, Some(2));
    open.says(&["other machines can reach", "--make-key"]);
    assert!(!data.exists(), "nothing was made");

    let make = |wanted: &str| {
        lookalike("serve")
            .arg("--keys")
            .arg(&keys)
            .args(["--make-key", wanted])
            .finish()
    };
    assert_eq!(make("root:me").status, Some(2));
    let (reader, admin) = (make("read:reader"), make("admin:me"));
    let (reader, admin) = (
        reader.text().trim().to_owned(),
        admin.text().trim().to_owned(),
    );
    let file = std::fs::read_to_string(&keys).unwrap();
    assert!(
        file.lines().count() == 2 && !file.contains(&admin[3..]),
        "{file}"
    );

    let flags = ["--keys", keys.to_str().unwrap()];
    let service = Service::start(&data, &flags);
    let put = |key: &str| {
        let mut stream = service.connect();
        let request = format!(
            "PUT /v1/collections/pages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nAuthorization: Bearer {key}\r\nContent-Length: 2\r\n\r\n{{}}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        answer(&mut stream).0
    };
    assert_eq!(
        (put("lk_wrong"), put(&reader), put(&admin)),
        (401, 403, 201)
    );
    service.stop();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o666)).unwrap();
        let loose = lookalike("serve")
            .arg("--data")
            .arg(&data)
            .args(flags)
            .finish();
        loose.says(&["others can write", "chmod"]);
    }
}

#[test]
fn heads_that_do_not_come_are_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(folder.path(), &["--header-timeout", "0.5"]);
    for begin in [
        "",
        "P",
        "GET /healthz HTTP/1.1\r\nHost: a\r\n",
        "PRI * HTTP/2.0\r\n",
    ] {
        let mut stream = service.connect();
        stream.write_all(begin.as_bytes()).unwrap();
        let took = until_closed(&mut stream);
        assert!(
            took < Duration::from_secs(9),
            "{begin:?} stayed open for {took:?}"
        );
    }
    // Sending single bytes does not help.
    let mut slow = service.connect();
    let begin = Instant::now();
    while slow.write_all(b"G").is_ok() {
        std::thread::sleep(Duration::from_millis(50));
        assert!(begin.elapsed() < Duration::from_secs(10));
    }
    service.stop();
}

#[test]
fn bodies_are_refused_by_their_header_and_given_up_when_they_stop() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(
        folder.path(),
        &["--body-timeout", "0.3", "--max-body", "1M"],
    );
    service.ask("PUT", "/v1/collections/pages", &json!({}));
    for (length, wanted) in [(1 << 30, 413), (100, 408)] {
        let mut stream = service.connect();
        let head = format!(
            "POST /v1/collections/pages/check HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{{"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let begin = Instant::now();
        let (status, problem) = answer(&mut stream);
        assert_eq!((status, &problem["status"]), (wanted, &json!(wanted)));
        assert!(begin.elapsed() < Duration::from_secs(20));
    }
    service.stop();
}

#[test]
fn connections_beyond_the_most_are_told_to_come_again() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(
        folder.path(),
        &[
            "--max-connections",
            "2",
            "--max-address-connections",
            "2",
            "--header-timeout",
            "1",
        ],
    );
    let held: Vec<TcpStream> = (0..2).map(|_| service.connect()).collect();
    let mut third = service.connect();
    let (status, problem) = answer(&mut third);
    assert_eq!((status, &problem["code"]), (503, &json!("connections")));
    for mut stream in held {
        until_closed(&mut stream);
    }
    // A client sees its connection closed shortly before it is no longer counted.
    let begin = Instant::now();
    let healthy = || service.ask("GET", "/healthz", &Value::Null).0;
    while healthy() == 503 && begin.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(healthy(), 200);
    service.stop();
}

#[test]
fn a_body_of_two_lengths_is_refused_and_nothing_after_it_is_believed() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(folder.path(), &["--header-timeout", "1"]);
    let length = "Content-Length: 6\r\n";
    let coding = "Transfer-Encoding: chunked\r\n";
    for lengths in [
        [length, coding].concat(),
        [coding, length].concat(),
        coding.to_owned(),
        [length, "Content-Length: 7\r\n"].concat(),
        "Content-Length: +6\r\n".to_owned(),
    ] {
        let smuggled = format!(
            "POST /v1/collections/none/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{lengths}\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        );
        let mut stream = service.connect();
        stream.write_all(smuggled.as_bytes()).unwrap();
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text);
        assert!(text.starts_with("HTTP/1.1 400 "), "{lengths}: {text}");
        assert_eq!(text.matches("HTTP/1.1 ").count(), 1, "{lengths}: {text}");
    }
    service.stop();
}

#[test]
fn requests_in_progress_are_answered_before_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = Service::start(folder.path(), &[]);
    service.ask("PUT", "/v1/collections/pages", &json!({}));
    let mut stream = service.begin_check(12);
    service.signal("TERM");
    while service.next_event()["event"] != "stopping" {}
    let begin = Instant::now();
    // Nobody new is let in.
    while TcpStream::connect(service.address).is_ok() {
        assert!(begin.elapsed() < Duration::from_secs(5));
        std::thread::sleep(Duration::from_millis(10));
    }
    stream.write_all(b"{\"text\":\"a\"}").unwrap();
    assert_eq!(answer(&mut stream).0, 200);
    service.stop();
}

#[test]
fn flags_win_over_the_environment_and_both_are_printed() {
    let printed = lookalike("serve")
        .args(["--data", "d", "--max-batch", "7", "--print-config"])
        .env("LOOKALIKE_MAX_BATCH", "9")
        .env("LOOKALIKE_QUEUE_TIMEOUT", "0.25")
        .finish();
    let config: BTreeMap<String, Value> = serde_json::from_slice(&printed.out).unwrap();
    assert_eq!(
        (
            &config["max-batch"],
            &config["queue-timeout"],
            &config["listen"]
        ),
        (&json!(7), &json!(0.25), &json!("127.0.0.1:7280"))
    );
    assert!(!Path::new("d").exists());
    let wrong = lookalike("serve")
        .args(["--data", "d", "--queue-timeout", "0"])
        .finish();
    assert_eq!(wrong.status, Some(2));
}
