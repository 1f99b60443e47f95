//! Malicious connections and signals, on a real socket.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serve::{Service, until_closed};
use crate::support::{Finish as _, lookalike};

/// Returns an HTTP/2 frame.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Returns the resident memory of a service in MiB, without its code, of which a test build has more than a release.
fn resident_mib(service: &Service) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.child.id())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kib: u64 = line
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    kib >> 10
}

/// Regression test: each worker's heap kept the memory that its longest page had taken.
#[test]
fn a_service_gives_the_memory_of_long_pages_back() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(folder.path(), &["--threads", "8"]);
    service.ask("PUT", "/v1/collections/pages", &json!({}));
    let page = json!({"html": "<div>a b ".repeat((6 << 20) / 9)});
    std::thread::scope(|scope| {
        let askers = (0..8).map(|_| {
            scope.spawn(|| {
                for _ in 0..3 {
                    let (status, _) = service.ask("POST", "/v1/collections/pages/check", &page);
                    // Some requests are refused while others run.
                    assert!([200, 503].contains(&status), "{status}");
                }
            })
        });
        let askers: Vec<_> = askers.collect();
        askers.into_iter().for_each(|asker| asker.join().unwrap());
    });
    assert_eq!(service.ask("GET", "/healthz", &Value::Null).0, 200);
    // The last answers may arrive before their buffers are freed.
    let end = Instant::now() + Duration::from_secs(60);
    while resident_mib(&service) >= 48 {
        assert!(Instant::now() < end, "{} MiB", resident_mib(&service));
        std::thread::sleep(Duration::from_millis(50));
    }
    service.stop();
}

#[test]
fn streams_that_are_reset_as_fast_as_they_open_end_the_connection() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(folder.path(), &[]);
    let mut stream = service.connect();
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &[]));
    // Each stream requests http://localhost/ with GET and is reset at once.
    let head = [&[0x82, 0x86, 0x84, 0x41, 9][..], b"localhost"].concat();
    for number in 0..20_000 {
        bytes.extend(frame(1, 5, 2 * number + 1, &head));
        bytes.extend(frame(3, 0, 2 * number + 1, &8_u32.to_be_bytes()));
    }
    // The service may close the connection during this write.
    let _ = stream.write_all(&bytes);
    assert!(until_closed(&mut stream) < Duration::from_secs(9));
    assert_eq!(service.ask("GET", "/healthz", &Value::Null).0, 200);
    service.stop();
}

/// Timeout of the services below, and time for which an answer is read.
const PATIENCE: [&str; 2] = ["--header-timeout", "3"];
const SLOW: Duration = Duration::from_secs(8);

/// Reads an answer in pieces for longer than twice the timeout; every pause is well below it.
fn read_slowly(stream: &mut impl std::io::Read) -> Vec<u8> {
    let (begun, mut bytes, mut piece) = (Instant::now(), Vec::new(), vec![0; 1 << 20]);
    loop {
        let count = stream.read(&mut piece).unwrap();
        if count == 0 {
            return bytes;
        }
        bytes.extend(&piece[..count]);
        if begun.elapsed() < SLOW {
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}

/// Regression test: only the progress of answers of unknown length was watched, and others were cut off after the timeout.
#[test]
fn a_reader_that_reads_an_answer_of_known_length_slowly_gets_all_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(folder.path(), &PATIENCE);
    service.ask("PUT", "/v1/collections/pages", &json!({}));
    let metadata = "x".repeat(1000);
    let entries: Vec<Value> = (0..100)
        .map(|number| json!({"id": number.to_string(), "text": "the same", "metadata": metadata}))
        .collect();
    let (status, told) = service.ask("POST", "/v1/collections/pages/insert", &json!(entries));
    assert_eq!(status, 200, "{told}");
    // Each query returns all documents, which is more than sockets hold.
    let queries = json!(vec![json!({"text": "the same"}); 250]).to_string();
    let mut slow = service.connect();
    write!(
        slow,
        "POST /v1/collections/pages/query?limit=100 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{queries}",
        queries.len()
    )
    .unwrap();
    let bytes = read_slowly(&mut slow);
    let end = bytes.windows(4).position(|end| end == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    assert!(head.contains("content-length: "), "{head}");
    let answer: Value = serde_json::from_slice(&bytes[end + 4..]).unwrap();
    assert_eq!(answer.as_array().map(Vec::len), Some(250));
    assert!(bytes.len() > 20 << 20, "{}", bytes.len());
    service.stop();
}

#[test]
fn a_reader_that_does_not_read_is_cut_off_and_one_that_reads_slowly_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(folder.path(), &PATIENCE);
    service.ask("PUT", "/v1/collections/pages", &json!({}));
    // The answer has some ten megabytes, more than sockets hold.
    let metadata = "x".repeat(1000);
    for batch in 0..10 {
        let entries: Vec<Value> = (0..1000)
            .map(|number| json!({"id": format!("{batch} {number}"), "text": "", "metadata": metadata}))
            .collect();
        let (status, _) = service.ask("POST", "/v1/collections/pages/insert", &json!(entries));
        assert_eq!(status, 200);
    }
    let export = b"GET /v1/collections/pages/export HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let mut deaf = service.connect();
    deaf.write_all(export).unwrap();
    let mut slow = service.connect();
    slow.write_all(export).unwrap();
    let bytes = read_slowly(&mut slow);
    let text = String::from_utf8_lossy(&bytes);
    assert_eq!(text.matches("\"id\":").count(), 10_000, "all of it");
    assert!(text.ends_with("0\r\n\r\n"), "and its end");
    // A client that read nothing for so long gets the bytes that were on their way, but not the end.
    let mut rest = Vec::new();
    let _ = deaf.read_to_end(&mut rest);
    assert!(!rest.ends_with(b"0\r\n\r\n"));
    service.stop();
}

/// Regression test: each request took one of the two slots for exports before its body had arrived.
#[test]
fn senders_of_slow_bodies_keep_nobody_from_an_export() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(folder.path(), &[]);
    service.ask(
        "PUT",
        "/v1/collections/pages",
        &json!({"keep": {"texts": true}}),
    );
    let senders: Vec<_> = (0..3)
        .map(|_| {
            let mut sender = service.connect();
            sender
                .write_all(b"POST /v1/collections/pages/copies-of HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
                .unwrap();
            sender
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    let (status, told) = service.ask("GET", "/v1/collections/pages/export", &Value::Null);
    assert_eq!(status, 200, "{told}");
    drop(senders);
    service.stop();
}

#[test]
fn a_second_signal_ends_what_the_first_let_finish() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = Service::start(folder.path(), &["--drain", "60"]);
    service.ask("PUT", "/v1/collections/pages", &json!({}));
    let _stream = service.begin_check(12);
    service.signal("TERM");
    while service.next_event()["event"] != "stopping" {}
    std::thread::sleep(Duration::from_millis(200));
    assert!(
        service.child.try_wait().unwrap().is_none(),
        "a request is in progress"
    );
    let begun = Instant::now();
    service.signal("TERM");
    // A request was cut off.
    assert_eq!(service.child.wait().unwrap().code(), Some(1));
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[cfg(target_os = "linux")]
#[test]
fn without_files_for_connections_it_waits_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = Service::start(folder.path(), &["--header-timeout", "1"]);
    let id = service.child.id().to_string();
    // A limit that is too low is refused at the start, so lower it while the service runs.
    let open = std::fs::read_dir(format!("/proc/{id}/fd")).unwrap().count();
    let limit = format!("--nofile={}", open + 8);
    let lowered = std::process::Command::new("prlimit")
        .args(["--pid", &id, &limit])
        .status();
    assert!(lowered.unwrap().success());
    let held: Vec<_> = (0..60).map(|_| service.connect()).collect();
    while service.next_event()["event"] != "not-accepted" {}
    drop(held);
    let begun = Instant::now();
    assert_eq!(service.ask("GET", "/healthz", &Value::Null).0, 200);
    assert!(begun.elapsed() < Duration::from_secs(10));
    service.stop();
}

#[test]
fn whatever_bytes_come_first_the_service_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(folder.path(), &["--header-timeout", "0.5"]);
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(10_000));
    for bytes in [
        &b"\0\0\0\0\0\0\0\0"[..],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /%00%ff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        long.as_bytes(),
        many.as_bytes(),
    ] {
        let mut stream = service.connect();
        let _ = stream.write_all(bytes);
        assert!(until_closed(&mut stream) < Duration::from_secs(9));
        assert_eq!(service.ask("GET", "/healthz", &Value::Null).0, 200);
    }
    assert!(!service.stop().contains("panic"));
}

/// Sends a check with further headers. Returns the status, and the code of the problem.
fn status_of(service: &Service, headers: &str, body: &str) -> (u16, Value) {
    let mut stream = service.connect();
    let head = format!(
        "POST /v1/collections/pages/check HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    (status, body["code"].clone())
}

#[test]
fn headers_that_change_what_a_request_means_were_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(folder.path(), &[]);
    service.ask("PUT", "/v1/collections/pages", &json!({}));
    let text = r#"{"text":"a rose"}"#;
    let json = "Content-Type: application/json\r\n";
    for (headers, expected) in [
        ("Host: localhost\r\n", 200),
        ("Host: localhost\r\nContent-Encoding: identity\r\n", 200),
        ("Host: localhost\r\nContent-Encoding: gzip\r\n", 415),
        ("Host: evil.example\r\n", 403),
        ("Host: localhost\r\nHost: evil.example\r\n", 400),
        ("", 400),
        ("Host: localhost\r\nSec-Fetch-Site: same-origin\r\n", 200),
        ("Host: localhost\r\nSec-Fetch-Site: cross-site\r\n", 403),
    ] {
        let (status, code) = status_of(&service, &format!("{headers}{json}"), text);
        assert_eq!(status, expected, "{headers} {code}");
    }
    service.stop();
}

/// Returns whether all documents with these ids are stored.
fn is_there(service: &Service, ids: impl Iterator<Item = String>) -> bool {
    let asked: Vec<Value> = ids.map(|id| json!({"id": id})).collect();
    asked.chunks(1000).all(|asked| {
        let (status, found) = service.ask("POST", "/v1/collections/pages/get", &json!(asked));
        status == 200 && found.as_array().unwrap().iter().all(Value::is_object)
    })
}

/// Returns the address space that the service uses at rest, in KiB.
fn address_space(service: &Service) -> u64 {
    let path = format!("/proc/{}/status", service.child.id());
    let status = std::fs::read_to_string(path).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    line.unwrap()
        .split_whitespace()
        .next()
        .unwrap()
        .parse()
        .unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn out_of_memory_nothing_that_was_acknowledged_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let binary = lookalike("serve").get_program().to_owned();
    let limited = |limit: &str| {
        let mut command = std::process::Command::new("sh");
        let line =
            format!("ulimit -v {limit}; exec \"$0\" serve --listen 127.0.0.1:0 --data \"$1\"");
        command.args(["-c", &line]).arg(&binary).arg(folder.path());
        // Otherwise each thread that allocates reserves 64 MiB, and the number of such threads varies.
        command.env("MALLOC_ARENA_MAX", "1");
        command
    };
    let service = Service::run(limited("unlimited"));
    service.ask(
        "PUT",
        "/v1/collections/pages",
        &json!({"keep": {"texts": true}}),
    );
    let limit = address_space(&service) + (8 << 10);
    service.stop();
    let service = Service::run(limited(&limit.to_string()));
    // The four megabytes of each request stay in memory until a run is written, so they exceed the limit.
    let (mut written, mut refused) = (0, None);
    while written < 400 && refused.is_none() {
        let text = format!("page {written} {}", "some words ".repeat(90_000));
        let batch: Vec<Value> = (0..4)
            .map(|part| json!({"id": format!("{written} {part}"), "text": text}))
            .collect();
        let (status, _) = service.try_ask("/v1/collections/pages/insert", &json!(batch));
        if status == Some(200) {
            written += 1;
        } else {
            refused = Some(status);
        }
    }
    assert!(refused.is_some(), "the limit was never met");
    drop(service);
    let service = Service::start(folder.path(), &[]);
    let ids = (0..written).flat_map(|page| (0..4).map(move |part| format!("{page} {part}")));
    assert!(
        is_there(&service, ids),
        "{written} batches, then {refused:?}"
    );
    service.stop();
}

#[test]
fn with_too_few_files_it_says_so_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let binary = lookalike("serve").get_program().to_owned();
    let mut command = std::process::Command::new("sh");
    let line = "ulimit -n 8; exec \"$0\" serve --listen 127.0.0.1:0 --data \"$1\"";
    command.args(["-c", line]).arg(binary).arg(folder.path());
    let refused = command.fail(1);
    assert!(
        refused.err.to_lowercase().contains("too many open files"),
        "{}",
        refused.err
    );
    Service::start(folder.path(), &[]).stop();
}

/// Returns a `serve` command that does not run as root even if the tests do.
#[cfg(target_os = "linux")]
fn as_nobody(folder: &std::path::Path) -> std::process::Command {
    use std::os::unix::fs::MetadataExt as _;
    let binary = lookalike("serve").get_program().to_owned();
    let owner = std::fs::metadata("/proc/self").unwrap().uid();
    if owner != 0 {
        let mut command = std::process::Command::new(binary);
        command.arg("serve");
        return command;
    }
    // The built binary may be in a folder that other users cannot access.
    let copy = folder.join("lookalike");
    // Copy it in a separate process: a child that another test starts meanwhile would inherit the file descriptor, and a file that is open for
    // writing cannot be executed.
    let copied = std::process::Command::new("install")
        .arg("--mode=755")
        .arg(binary)
        .arg(&copy)
        .status();
    assert!(copied.unwrap().success());
    let mut command = std::process::Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.arg(copy).arg("serve");
    command
}

#[cfg(target_os = "linux")]
#[test]
fn a_directory_that_cannot_be_written_is_told_and_left_as_it_is() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let data = folder.path().join("data");
    let service = Service::start(&data, &[]);
    service.ask("PUT", "/v1/collections/pages", &json!({}));
    let entry = json!({"id": "a", "fingerprint": "00000000000000ff"});
    service.ask("POST", "/v1/collections/pages/insert", &entry);
    service.stop();
    mode(folder.path(), 0o755);
    let mut folders = vec![data.clone()];
    while let Some(below) = folders.pop() {
        for entry in std::fs::read_dir(&below).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                mode(&entry.path(), 0o444);
            }
        }
        mode(&below, 0o555);
    }
    let closed = folder.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    mode(&closed, 0o555);
    for place in [&data, &closed.join("new")] {
        let mut command = as_nobody(folder.path());
        command
            .args(["--listen", "127.0.0.1:0", "--data"])
            .arg(place);
        let refused = command.fail(1);
        refused.says(&[place.to_str().unwrap(), "ermission denied"]);
    }
    let mut folders = vec![data.clone()];
    while let Some(below) = folders.pop() {
        mode(&below, 0o755);
        for entry in std::fs::read_dir(&below).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                mode(&entry.path(), 0o644);
            }
        }
    }
    let service = Service::start(&data, &[]);
    assert!(is_there(&service, ["a".to_owned()].into_iter()));
    service.stop();
}
