//! Greedy clients on a real socket: memory, connections, time.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serve::Service;
use crate::support::{Finish as _, Folder, lookalike};

const CHECK: &str = "POST /v1/collections/pages/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";

/// Opens a connection from one of this machine's addresses.
fn connect_from(address: [u8; 4], to: SocketAddr) -> TcpStream {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    let connecting = async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind((IpAddr::from(address), 0).into()).unwrap();
        socket.connect(to).await.unwrap().into_std().unwrap()
    };
    let stream = runtime.block_on(connecting);
    stream.set_nonblocking(false).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    stream
}

/// Returns the status and body of an answer.
fn read_answer(stream: &mut TcpStream) -> (u16, Value) {
    let mut bytes = Vec::new();
    // The connection may be closed right after the answer, which is complete all the same.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

/// Returns the status of an answer on a connection that stays open, and reads its body.
fn status_of_next_answer(stream: &mut TcpStream) -> u16 {
    let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut buffer).unwrap();
        assert_ne!(count, 0, "closed within an answer");
        answer.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&answer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let head = head.to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap();
        let length: usize = length.lines().next().unwrap().parse().unwrap();
        if body.len() >= length {
            return head.split(' ').nth(1).unwrap().parse().unwrap();
        }
    }
}

/// Sends a fingerprint from an address, in a body that begins with `spaces` spaces.
fn check_from(address: [u8; 4], service: &Service, spaces: usize) -> (u16, Value) {
    let mut stream = connect_from(address, service.address);
    let body = format!(
        "{}{{\"fingerprint\":\"0000000000000001\"}}",
        " ".repeat(spaces)
    );
    let head = format!(
        "{CHECK}Connection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).unwrap();
    read_answer(&mut stream)
}

#[test]
fn a_declared_length_takes_no_memory() {
    let folder = Folder::new();
    let service = Service::start(&folder.path("data"), &[]);
    service.ask("PUT", "/v1/collections/pages", &json!({}));
    // At four bytes per declared byte and 16 KiB per request, these lengths would take all the memory to the last kilobyte.
    let declared = [&[8_388_608; 7][..], &[8_355_840]].concat();
    let held: Vec<TcpStream> = declared
        .into_iter()
        .map(|length| {
            let mut stream = service.connect();
            let head = format!("{CHECK}Content-Length: {length}\r\n\r\n{{");
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    std::thread::sleep(Duration::from_millis(200));
    for spaces in [0, 1 << 20, 8_000_000] {
        assert_eq!(
            check_from([127, 0, 0, 1], &service, spaces).0,
            200,
            "{spaces}"
        );
    }
    drop(held);
    service.stop();
}

#[test]
fn bodies_that_stop_leave_others_their_part_of_the_memory() {
    let folder = Folder::new();
    let flags = ["--request-memory", "64M"];
    let service = Service::start(&folder.path("data"), &flags);
    service.ask("PUT", "/v1/collections/pages", &json!({}));
    let spaces = vec![b' '; 4 << 20];
    // If declared lengths counted, the first two requests would take all the memory. The connection of a refused client is closed while it sends.
    let declared = [&[8_388_608, 8_380_416][..], &[8_388_608; 18]].concat();
    let held: Vec<TcpStream> = declared
        .into_iter()
        .map(|length| {
            let mut stream = service.connect();
            stream
                .set_write_timeout(Some(Duration::from_secs(2)))
                .unwrap();
            let head = format!("{CHECK}Content-Length: {length}\r\n\r\n");
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(&spaces);
            stream
        })
        .collect();
    // Small requests have a share of their own, and another address may use its half of the rest.
    assert_eq!(check_from([127, 0, 0, 1], &service, 100).0, 200);
    assert_eq!(check_from([127, 0, 0, 2], &service, 3_000_000).0, 200);
    drop(held);
    service.stop();
}

#[test]
fn a_body_that_trickles_is_given_up() {
    let folder = Folder::new();
    let flags = ["--min-body-rate", "64K", "--body-timeout", "60"];
    let service = Service::start(&folder.path("data"), &flags);
    service.ask("PUT", "/v1/collections/pages", &json!({}));
    let mut stream = service.connect();
    stream
        .write_all(
            format!("{CHECK}Connection: close\r\nContent-Length: 1000000\r\n\r\n").as_bytes(),
        )
        .unwrap();
    let begun = Instant::now();
    let mut writer = stream.try_clone().unwrap();
    let trickle = std::thread::spawn(move || {
        while begun.elapsed() < Duration::from_secs(20) && writer.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 408");
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
    drop(stream);
    service.stop();
    trickle.join().unwrap();
}

#[test]
fn the_refusal_of_a_large_body_reaches_whoever_sends_it() {
    let folder = Folder::new();
    let keys = folder.path("keys");
    lookalike("serve")
        .arg("--keys")
        .arg(&keys)
        .args(["--make-key", "read:me"])
        .succeed();
    let flags = ["--keys", keys.to_str().unwrap()];
    let service = Service::start(&folder.path("data"), &flags);
    // Try a request without a key, one with an unknown path, and one without a key whose declared length is too large.
    for (path, length, status) in [
        ("/v1/collections/pages/check", 4_000_000, 401),
        ("/nowhere", 4_000_000, 404),
        ("/v1/collections/pages/check", 20_000_000, 401),
    ] {
        let mut stream = service.connect();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        // Send the whole body before reading the answer, as simple clients do.
        stream.write_all(&vec![b' '; length]).unwrap();
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).unwrap();
        let begin = String::from_utf8_lossy(&begin);
        assert_eq!(begin, format!("HTTP/1.1 {status}"), "{path} {length}");
    }
    service.stop();
}

#[test]
fn the_client_says_why_a_large_body_was_refused() {
    let folder = Folder::new();
    let service = Service::start(&folder.path("data"), &["--max-body", "1M"]);
    service.ask("PUT", "/v1/collections/pages", &json!({}));
    // This is more than the service reads of a refused request, and more than sockets hold.
    let text = "some words ".repeat(800_000);
    let page = folder.add("large.txt", text);
    let mut command = lookalike("client");
    command.args(["--url", &format!("http://{}", service.address)]);
    command.args(["check", "pages"]).arg(page);
    command
        .lose()
        .says(&["large.txt", "larger than 1048576 bytes"]);
    service.stop();
}

/// Sends half a request head on each of `count` connections, as far as they are accepted.
fn half_open(to: SocketAddr, count: usize) -> Vec<TcpStream> {
    let begun = (0..count).map(|_| {
        let mut stream = TcpStream::connect(to).unwrap();
        let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHo");
        stream
    });
    begun.collect()
}

fn is_healthy(stream: &mut TcpStream) -> bool {
    let _ =
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    bytes.starts_with(b"HTTP/1.1 200")
}

#[test]
fn one_address_cannot_take_every_connection() {
    let folder = Folder::new();
    let flags = ["--max-connections", "100", "--header-timeout", "60"];
    let service = Service::start(&folder.path("data"), &flags);
    let held = half_open(service.address, 120);
    std::thread::sleep(Duration::from_millis(200));
    let (status, problem) = read_answer(&mut service.connect());
    assert_eq!(
        (status, &problem["code"]),
        (503, &json!("address-connections"))
    );
    let mut other = connect_from([127, 0, 0, 2], service.address);
    assert!(is_healthy(&mut other));
    drop((held, other));
    service.stop();
}

#[test]
fn health_is_told_where_nobody_crowds_it_out() {
    let folder = Folder::new();
    let flags = [
        "--max-connections",
        "10",
        "--header-timeout",
        "60",
        "--health-listen",
        "127.0.0.1:0",
    ];
    let mut service = Service::start(&folder.path("data"), &flags);
    let health: SocketAddr = service.listening["health_address"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let held = half_open(service.address, 20);
    std::thread::sleep(Duration::from_millis(200));
    assert!(!is_healthy(&mut service.connect()));
    let ask = |path: &str| {
        let mut stream = TcpStream::connect(health).unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        read_answer(&mut stream)
    };
    assert_eq!(ask("/healthz"), (200, json!({"status": "ok"})));
    assert_eq!(ask("/readyz").0, 200);
    // This address serves nothing else.
    for path in ["/", "/metrics", "/v1/collections"] {
        assert_eq!(ask(path).0, 404, "{path}");
    }
    // It reports that the service is stopping until it has stopped.
    drop(held);
    let mut working = service.connect();
    let begun = Instant::now();
    while read_begin(&mut working) != "100 Continue" {
        assert!(begun.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(20));
        working = service.connect();
    }
    service.signal("TERM");
    assert_eq!(service.next_event()["event"], "stopping");
    let begun = Instant::now();
    while ask("/readyz").0 != 503 {
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
    drop(working);
    assert!(service.ended().status.success());
}

/// Starts a request that waits for permission to send its body. Returns the first line of the answer.
fn read_begin(stream: &mut TcpStream) -> String {
    let head = format!("{CHECK}Expect: 100-continue\r\nContent-Length: 100\r\n\r\n");
    let _ = stream.write_all(head.as_bytes());
    let mut bytes = [0; 25];
    let count = stream.read(&mut bytes).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes[..count]);
    text.trim_start_matches("HTTP/1.1 ").trim().to_owned()
}

/// Returns the peak and the current resident memory of a service in KiB.
#[cfg(target_os = "linux")]
fn resident(service: &Service) -> (u64, u64) {
    let path = format!("/proc/{}/status", service.child.id());
    let status = std::fs::read_to_string(path).unwrap();
    let field = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap()
            .split_whitespace()
            .next()
            .unwrap()
            .parse()
            .unwrap()
    };
    (field("VmHWM:"), field("VmRSS:"))
}

#[cfg(target_os = "linux")]
#[test]
fn memory_of_long_texts_is_counted_and_given_back() {
    let folder = Folder::new();
    let service = Service::start(
        &folder.path("data"),
        &["--threads", "6", "--queue-timeout", "60"],
    );
    let (_, shown) = service.ask("PUT", "/v1/collections/words", &json!({}));
    let scheme = shown["scheme"].as_str().unwrap().split(' ');
    let chars: Vec<&str> = scheme
        .map(|part| {
            if part.starts_with("shingle=") {
                "shingle=chars:9"
            } else {
                part
            }
        })
        .collect();
    let settings = json!({"scheme": chars.join(" ")});
    assert_eq!(
        service.ask("PUT", "/v1/collections/pages", &settings).0,
        201
    );
    let text: String = (0..1_200_000_u64)
        .map(|n| format!("{:x} ", n.wrapping_mul(0x9e37_79b9) % 0xfffff))
        .collect();
    let body = json!({"text": &text[..7_000_000]});
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..6)
            .map(|_| scope.spawn(|| service.ask("POST", "/v1/collections/pages/check", &body).0))
            .collect();
        for asked in asked {
            assert_eq!(asked.join().unwrap(), 200);
        }
    });
    let (most, now) = resident(&service);
    // Six requests at once would take a gigabyte, and each thread would keep its memory.
    assert!(most < 600 << 10, "{most} KiB at most");
    assert!(now < 400 << 10, "{now} KiB are kept");
    service.stop();
}

/// Returns the value of a metric.
fn metric(service: &Service, line: &str) -> u64 {
    let mut stream = service.connect();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let found = text.lines().find_map(|found| found.strip_prefix(line));
    found
        .unwrap_or_else(|| panic!("{line}: {text}"))
        .trim()
        .parse()
        .unwrap()
}

#[test]
fn a_crowd_of_connections_is_shed_by_what_it_waits() {
    const SENDERS: usize = 4;
    const EACH: usize = 500;
    let folder = Folder::new();
    let flags = [
        "--max-connections",
        "4000",
        "--max-address-connections",
        "4000",
        "--threads",
        "1",
        // This is less than any machine needs for the requests that wait at once below.
        "--queue-timeout",
        "0.02",
        // A connection that got its answer is idle until all others have theirs.
        "--header-timeout",
        "60",
    ];
    let service = Service::start(&folder.path("data"), &flags);
    service.ask("PUT", "/v1/collections/pages", &json!({}));
    let code = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let stored: Vec<Value> = (0..1000)
        .map(|n| json!({"id": n.to_string(), "fingerprint": format!("{:016x}", code(n))}))
        .collect();
    let (status, _) = service.ask("POST", "/v1/collections/pages/insert", &json!(stored));
    assert_eq!(status, 200);
    // Each request has many fingerprints, so that the service has more work than its clients.
    let head = "POST /v1/collections/pages/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/vnd.lookalike.packed\r\n";
    let codes: Vec<u8> = (1..=100_u64)
        .flat_map(|n| code(n * 7919).to_le_bytes())
        .collect();
    let mut request = format!("{head}Content-Length: {}\r\n\r\n", codes.len()).into_bytes();
    request.extend(codes);
    // Each sender sends a request on every connection, reads all answers, and starts again, so as many requests wait as there are connections.
    let begun = Instant::now();
    let send = || {
        let mut streams: Vec<TcpStream> = (0..EACH).map(|_| service.connect()).collect();
        let mut answered = [0_u64; 2];
        while begun.elapsed() < Duration::from_secs(60) && answered[1] == 0 {
            for stream in &mut streams {
                stream.write_all(&request).unwrap();
            }
            for stream in &mut streams {
                let status = status_of_next_answer(stream);
                assert!(matches!(status, 200 | 503), "{status}");
                let refused = status == 503;
                answered[usize::from(refused)] += 1;
            }
        }
        answered
    };
    let answered: Vec<[u64; 2]> = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS).map(|_| scope.spawn(send)).collect();
        senders
            .into_iter()
            .map(|sender| sender.join().unwrap())
            .collect()
    });
    let [done, refused] = [0, 1].map(|at| answered.iter().map(|sender| sender[at]).sum::<u64>());
    assert!(done > 0 && refused > 0, "{done} done, {refused} refused");
    // A single request some time later is answered.
    std::thread::sleep(Duration::from_millis(500));
    let shed = metric(&service, "lookalike_refused_total{reason=\"overload\"}");
    assert_eq!(shed, refused);
    assert_eq!(check_from([127, 0, 0, 1], &service, 0).0, 200);
    service.stop();
}
