//! Keys, certificates, the log and signals of a service, on a real socket.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::client;
use crate::serve::Service;
use crate::support::{Finish as _, Folder, SmallDisk, lookalike};

fn pem(name: &str) -> String {
    let tls = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/tls");
    tls.join(name).to_str().unwrap().to_owned()
}

/// Adds a key to a file. Returns its secret.
fn make_key(keys: &Path, wanted: &str) -> String {
    let mut command = lookalike("serve");
    command.arg("--keys").arg(keys);
    let made = command.args(["--make-key", wanted]).succeed();
    made.text().trim().to_owned()
}

/// Returns the status of a request with a key, over plain HTTP.
fn status(service: &Service, method: &str, path: &str, key: &str) -> u16 {
    let mut stream = service.connect();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_certificate_without_a_key_and_a_key_without_a_certificate_are_refused_whatever_says_so() {
    let folder = Folder::new();
    for (set, missing, file) in [
        ("tls-cert", "tls-key", "cert.pem"),
        ("tls-key", "tls-cert", "key.pem"),
    ] {
        let data = folder.path("data");
        let lines = format!(
            "data = {data:?}\nlisten = \"127.0.0.1:0\"\n{set} = {:?}\n",
            pem(file)
        );
        let config = folder.add("lookalike.toml", lines);
        let mut by_file = lookalike("serve");
        by_file.arg("--config").arg(config);
        let plain = || {
            let mut command = lookalike("serve");
            command
                .args(["--listen", "127.0.0.1:0", "--data"])
                .arg(&data);
            command
        };
        let mut by_environment = plain();
        let variable = format!("LOOKALIKE_{}", set.replace('-', "_").to_uppercase());
        by_environment.env(variable, pem(file));
        let mut by_flag = plain();
        by_flag.arg(format!("--{set}")).arg(pem(file));
        for command in [&mut by_file, &mut by_environment, &mut by_flag] {
            // A service that runs in spite of the error would never end, so read its first message instead of waiting.
            let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
            let mut bytes = [0; 2000];
            let count = child.stderr.as_mut().unwrap().read(&mut bytes).unwrap();
            let said = String::from_utf8_lossy(&bytes[..count]).into_owned();
            if said.contains("listening") || said.contains("\"event\"") {
                child.kill().unwrap();
            }
            assert_eq!(child.wait().unwrap().code(), Some(2), "{command:?}: {said}");
            assert!(said.contains(missing), "{said}");
            assert!(!data.exists(), "nothing was made");
        }
    }
}

#[test]
fn a_certificate_whose_key_is_gone_leaves_tls_as_it_is() {
    let folder = Folder::new();
    let key = folder.add("key.pem", std::fs::read(pem("key.pem")).unwrap());
    let flags = ["--tls-cert", &pem("cert.pem"), "--tls-key"];
    let flags = [&flags[..], &[key.to_str().unwrap()]].concat();
    let mut service = Service::start(&folder.path("data"), &flags);
    std::fs::remove_file(key).unwrap();
    service.signal("HUP");
    // The keys were reloaded, but the certificate was not.
    let said = [service.next_event(), service.next_event()];
    let failed = said.iter().find(|entry| entry["event"] == "not-reloaded");
    assert_eq!(failed.unwrap()["part"], "tls", "{said:?}");
    let mut stream = service.connect();
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    assert!(!bytes.starts_with(b"HTTP/"), "it speaks plain HTTP");
    service.stop();
}

#[test]
fn the_file_of_keys_in_the_configuration_was_not_seen_by_make_key() {
    let folder = Folder::new();
    let keys = folder.path("keys");
    let config = folder.add("c.toml", format!("keys = {keys:?}\n"));
    let mut command = lookalike("serve");
    command.arg("--config").arg(config);
    command.args(["--make-key", "read:jane"]).succeed();
    assert!(std::fs::read_to_string(keys).unwrap().contains("jane"));
    let mut command = lookalike("serve");
    let told = command.args(["--make-key", "read:jane"]).fail(2);
    told.says(&["give --keys FILE, LOOKALIKE_KEYS, or keys in the file of --config"]);
}

#[test]
fn the_last_key_can_be_revoked() {
    let folder = Folder::new();
    let keys = folder.path("keys");
    let key = make_key(&keys, "admin:only");
    let mut service = Service::start(&folder.path("data"), &["--keys", keys.to_str().unwrap()]);
    assert_eq!(status(&service, "GET", "/v1/collections", &key), 200);
    std::fs::write(&keys, "# none\n").unwrap();
    service.signal("HUP");
    let entry = service.next_event();
    assert_eq!(
        (&entry["event"], &entry["keys"]),
        (&json!("reloaded"), &json!(0))
    );
    assert_eq!(service.next_event()["event"], "no-keys");
    assert_eq!(status(&service, "GET", "/v1/collections", &key), 401);
    assert_eq!(status(&service, "GET", "/healthz", &key), 200);
    // After a restart with the same file, every request is still refused.
    service.stop();
    let service = Service::start(&folder.path("data"), &["--keys", keys.to_str().unwrap()]);
    assert_eq!(status(&service, "GET", "/v1/collections", &key), 401);
    service.stop();
}

#[test]
fn a_client_with_the_wrong_idea_of_tls_was_told_to_start_the_service() {
    let folder = Folder::new();
    let files = [pem("cert.pem"), pem("key.pem")];
    let flags = ["--tls-cert", &files[0], "--tls-key", &files[1]];
    let service = Service::start(&folder.path("data"), &flags);
    let port = service.address.port();
    let show = |scheme: &str, ca: &str| {
        let mut command = lookalike("client");
        let url = format!("{scheme}://localhost:{port}");
        command.args(["--url", &url, "--ca", &pem(ca), "show"]);
        command.fail(1)
    };
    show("http", "ca.pem").says(&["use https://"]);
    // Its authority is not trusted.
    show("https", "cert.pem").says(&["certificate", "with --ca"]);
    service.stop();
}

#[test]
fn at_the_limit_a_tls_service_was_taken_for_one_without_tls() {
    let folder = Folder::new();
    let files = [pem("cert.pem"), pem("key.pem")];
    let flags = ["--tls-cert", &files[0], "--tls-key", &files[1]];
    let flags = [&flags[..], &["--max-connections", "1"]].concat();
    let flags = [&flags[..], &["--max-address-connections", "1"]].concat();
    let service = Service::start(&folder.path("data"), &flags);
    let held = service.connect();
    let mut refused = service.connect();
    let mut said = Vec::new();
    // The end may be a reset.
    let _ = std::io::Read::read_to_end(&mut refused, &mut said);
    assert!(said.is_empty(), "{}", String::from_utf8_lossy(&said));
    drop(held);
    service.stop();
}

#[test]
fn a_broken_certificate_keeps_no_revoked_key_alive() {
    let folder = Folder::new();
    let keys = folder.path("keys");
    let (old, new) = (make_key(&keys, "admin:old"), make_key(&keys, "admin:new"));
    let cert = folder.add("cert.pem", std::fs::read(pem("cert.pem")).unwrap());
    let flags: [PathBuf; 3] = [keys.clone(), cert.clone(), pem("key.pem").into()];
    let [keys_flag, cert_flag, key_flag] = flags.each_ref().map(|path| path.to_str().unwrap());
    let flags = [
        "--keys",
        keys_flag,
        "--tls-cert",
        cert_flag,
        "--tls-key",
        key_flag,
    ];
    let mut service = Service::start(&folder.path("data"), &flags);
    let url = format!("https://localhost:{}", service.address.port());
    let show = |key: &str| {
        let mut command = lookalike("client");
        command.args(["--url", &url, "--ca", &pem("ca.pem"), "show"]);
        command.env("LOOKALIKE_KEY", key).finish()
    };
    assert_eq!(show(&old).status, Some(0));
    let lines = std::fs::read_to_string(&keys).unwrap();
    let kept = lines.lines().find(|line| line.contains(" new ")).unwrap();
    std::fs::write(&keys, format!("{kept}\n")).unwrap();
    std::fs::write(&cert, "nonsense\n").unwrap();
    service.signal("HUP");
    let said = [service.next_event(), service.next_event()];
    assert!(
        said.iter().any(|entry| entry["event"] == "reloaded"),
        "{said:?}"
    );
    assert!(
        said.iter()
            .any(|entry| entry["event"] == "not-reloaded" && entry["part"] == "tls"),
        "{said:?}"
    );
    show(&old).says(&["401"]);
    assert_eq!(show(&new).status, Some(0));
    assert_eq!(show(&format!("{new}\n")).status, Some(0));
    show(&format!("{new}\n{new}")).says(&["LOOKALIKE_KEY: has several lines"]);
    service.stop();
}

#[test]
fn a_page_of_another_site_cannot_compact() {
    let folder = Folder::new();
    let service = Service::start(&folder.path("data"), &[]);
    service.ask("PUT", "/v1/collections/pages", &json!({}));
    let compact = |headers: &str| {
        let mut stream = service.connect();
        let (host, head) = (
            service.address,
            "POST /v1/collections/pages/compact HTTP/1.1",
        );
        let request = format!(
            "{head}\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 0\r\n{headers}\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.split(' ').nth(1).unwrap().parse::<u16>().unwrap()
    };
    // These are the requests that a form, an image or a script of any web page can send without a preflight.
    for headers in [
        "",
        "Origin: http://evil.example\r\nContent-Type: text/plain\r\n",
        "Origin: null\r\nContent-Type: application/x-www-form-urlencoded\r\n",
    ] {
        assert_eq!(compact(headers), 415, "{headers:?}");
    }
    let own = format!("Origin: http://{}\r\n", service.address);
    assert_eq!(compact(&own), 202);
    assert_eq!(compact("Content-Type: application/json\r\n"), 202);
    let mut command = lookalike("client");
    command.args(["--url", &format!("http://{}", service.address)]);
    command.args(["compact", "pages"]).succeed();
    service.stop();
}

#[test]
fn a_log_that_nobody_reads_holds_up_nobody() {
    let folder = Folder::new();
    // The log is read up to the address and then never again.
    let service = Service::start(&folder.path("data"), &["--log", "debug"]);
    let mut stream = service.connect();
    let request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut bytes = vec![0; 1 << 16];
    for _ in 0..6000 {
        stream.write_all(request).unwrap();
        let count = stream.read(&mut bytes).unwrap();
        assert!(bytes[..count].starts_with(b"HTTP/1.1 200"));
    }
    // At the end the service waits for the reader only briefly.
    let begun = Instant::now();
    drop(stream);
    service.signal("TERM");
    let said = service.ended();
    assert!(begun.elapsed() < Duration::from_secs(9));
    assert!(said.status.success(), "{:?}", said.status);
}

#[test]
fn the_log_says_whose_key_changed_something() {
    let folder = Folder::new();
    let keys = folder.path("keys");
    let key = make_key(&keys, "admin:jane");
    let flags = ["--keys", keys.to_str().unwrap()];
    let mut service = Service::start(&folder.path("data"), &flags);
    let pages = "/v1/collections/pages";
    for (method, path, answer, event) in [
        ("PUT", pages.to_owned(), 201, "collection-created"),
        (
            "POST",
            format!("{pages}/compact"),
            202,
            "collection-compacting",
        ),
        ("DELETE", pages.to_owned(), 204, "collection-removed"),
    ] {
        assert_eq!(status(&service, method, &path, &key), answer);
        let entry = service.next_event();
        assert_eq!(
            (&entry["event"], &entry["key"]),
            (&json!(event), &json!("jane"))
        );
    }
    assert!(!service.stop().contains(&key[3..]), "never the key itself");
}

/// Returns the metrics of a service, with the head of the answer.
fn metrics(service: &Service) -> String {
    let mut stream = service.connect();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut metrics = String::new();
    stream.read_to_string(&mut metrics).unwrap();
    metrics
}

/// Returns a text of the same words in an order that depends on the seed.
fn shuffled(seed: u64) -> String {
    let mut words: Vec<String> = (0..4000).map(|n| format!("w{n:x}")).collect();
    let mut state = seed | 1;
    for at in (1..words.len()).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        words.swap(at, (state >> 33) as usize % (at + 1));
    }
    words.join(" ")
}

/// Makes a collection of texts with single words as features, so that the order of words does not change the fingerprint.
fn make_pages(service: &Service) {
    let (_, shown) = service.ask("PUT", "/v1/collections/other", &json!({}));
    let scheme = shown["scheme"].as_str().unwrap().split(' ');
    let scheme: Vec<&str> = scheme
        .map(|part| {
            let is_shingle = part.starts_with("shingle=");
            if is_shingle { "shingle=words:1" } else { part }
        })
        .collect();
    let settings = json!({"scheme": scheme.join(" "), "keep": {"texts": true}});
    let (made, answer) = service.ask("PUT", "/v1/collections/pages", &settings);
    assert_eq!(made, 201, "{answer}");
}

/// Starts a service with a hundred documents that is busy for at least half a minute: it compares new texts with the stored ones, which have the same
/// words in other orders.
fn busy_service(folder: &Folder, drain: &str) -> (Service, TcpStream) {
    let service = Service::start(&folder.path("data"), &["--drain", drain]);
    make_pages(&service);
    let documents = |first: u64, count| -> Value {
        let numbers = first..first + count;
        numbers
            .map(|n| json!({"id": format!("{n}"), "text": shuffled(n)}))
            .collect()
    };
    let (status, _) = service.ask("POST", "/v1/collections/pages/insert", &documents(0, 100));
    assert_eq!(status, 200);
    let body = documents(1000, 60).to_string();
    let mut asked = service.connect();
    let head = format!(
        "POST /v1/collections/pages/check-and-insert?limit=100&diff=true HTTP/1.1\r\nHost: localhost\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    asked.write_all((head + &body).as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    (service, asked)
}

#[test]
fn a_setting_that_was_in_the_file_twice_had_one_of_its_values() {
    let folder = Folder::new();
    let lines = "data = \"x\"\nmax-body = \"8M\"\nmax_body = \"9M\"\n";
    let config = folder.add("lookalike.toml", lines);
    let mut serve = lookalike("serve");
    serve.arg("--config").arg(config).arg("--print-config");
    serve
        .fail(1)
        .says(&["\"max-body\" is set twice, also as \"max_body\""]);
}

#[test]
fn a_second_signal_ends_at_once_whatever_is_being_done() {
    let folder = Folder::new();
    let (service, asked) = busy_service(&folder, "60");
    service.signal("TERM");
    std::thread::sleep(Duration::from_millis(300));
    let begun = Instant::now();
    service.signal("TERM");
    let ended = service.ended();
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}: {}", ended.said);
    assert_eq!(ended.status.code(), Some(1), "{}", ended.said);
    assert!(ended.said.contains("not-closed"), "{}", ended.said);
    drop(asked);
    // The collection is intact. None of the new documents was as near as a copy.
    let service = Service::start(&folder.path("data"), &[]);
    let (_, shown) = service.ask("GET", "/v1/collections/pages", &Value::Null);
    assert!(shown["documents"].as_u64() >= Some(100), "{shown}");
    service.stop();
}

#[test]
fn a_service_that_could_not_close_its_store_said_that_it_had_stopped() {
    let folder = Folder::new();
    // Far less than the work takes, on any machine.
    let (service, asked) = busy_service(&folder, "1");
    service.signal("TERM");
    let begun = Instant::now();
    let ended = service.ended();
    // Work that was cut off has a further second.
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert_eq!(ended.status.code(), Some(1), "{}", ended.said);
    assert!(ended.said.contains("not-closed"), "{}", ended.said);
    assert!(!ended.said.contains("\"stopped\""), "{}", ended.said);
    drop(asked);
}

#[test]
fn a_stop_that_cut_off_an_export_ended_as_if_nothing_had_happened() {
    let folder = Folder::new();
    let service = Service::start(&folder.path("data"), &["--drain", "1"]);
    make_pages(&service);
    // More than the buffers of a connection hold.
    for number in 0..40 {
        let document = json!({"id": format!("{number}"), "text": shuffled(1).repeat(40)});
        service.pages("insert", &document);
    }
    let mut export = service.connect();
    export
        .write_all(b"GET /v1/collections/pages/export HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    export.read_exact(&mut [0; 15]).unwrap();
    service.signal("TERM");
    let ended = service.ended();
    assert_eq!(ended.status.code(), Some(1), "{}", ended.said);
    for event in ["\"connections\":1,\"event\":\"cut-off\"", "\"stopped\""] {
        assert!(ended.said.contains(event), "{}", ended.said);
    }
    let mut rest = Vec::new();
    // Also if the connection was reset.
    let _ = export.read_to_end(&mut rest);
    assert!(!rest.ends_with(b"0\r\n\r\n"));
}

#[test]
fn two_long_requests_kept_all_others_waiting_and_hid_the_status() {
    let folder = Folder::new();
    let options = [
        "--threads",
        "2",
        "--queue-timeout",
        "0.2",
        "--work-timeout",
        "4",
    ];
    let service = Service::start(&folder.path("data"), &options);
    let keep = json!({"keep": {"texts": true}});
    assert_eq!(service.ask("PUT", "/v1/collections/pages", &keep).0, 201);
    let long = json!({"id": "long", "text": shuffled(1).repeat(300)});
    assert_eq!(
        service.ask("POST", "/v1/collections/pages/insert", &long).0,
        200
    );
    let list = json!(vec![json!({"id": "long"}); 1000]);
    let path = "/v1/collections/pages/rerank?chunk=sentences";
    std::thread::scope(|scope| {
        let asked = [(); 2].map(|()| scope.spawn(|| service.ask("POST", path, &list)));
        let text = json!({"text": shuffled(2)});
        // Checks are answered until both workers are busy.
        let (begun, (status, answer)) = loop {
            let begun = Instant::now();
            let answered = service.ask("POST", "/v1/collections/pages/check", &text);
            if answered.0 != 200 {
                break (begun, answered);
            }
        };
        assert_eq!(
            (status, &answer["code"]),
            (503, &json!("waited")),
            "{answer}"
        );
        assert_eq!(service.ask("GET", "/readyz", &Value::Null).0, 200);
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(3), "{took:?}");
        for asked in asked {
            let (status, answer) = asked.join().unwrap();
            assert_eq!(status, 413, "{answer}");
            let detail = answer["detail"].as_str().unwrap();
            assert!(detail.contains("takes a worker more than 4 s"), "{answer}");
        }
    });
    // Workers are available again. On a busy machine one may take longer than the timeout to begin.
    let short = json!({"text": "a"});
    let begun = Instant::now();
    while service.ask("POST", "/v1/collections/pages/check", &short).0 != 200 {
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
    service.stop();
}

#[test]
fn documents_of_a_batch_that_takes_too_long_were_refused_one_by_one() {
    let folder = Folder::new();
    let service = Service::start(&folder.path("data"), &["--work-timeout", "0.2"]);
    make_pages(&service);
    let documents: Value = (0..5)
        .map(|n| json!({"id": format!("{n}"), "text": shuffled(n)}))
        .collect();
    assert_eq!(
        service
            .ask("POST", "/v1/collections/pages/insert", &documents)
            .0,
        200
    );
    let texts: Vec<(String, String)> = (0..6)
        .map(|n| (format!("new {n}"), shuffled(1000 + n)))
        .collect();
    let input = folder.records("in.jsonl", &texts);
    let words = [
        "query",
        "pages",
        input.to_str().unwrap(),
        "--limit",
        "100",
        "--diff",
    ];
    let answers = client(&service, &words).succeed().lines();
    assert_eq!(answers.len(), 6);
    for answer in answers {
        let neighbours = answer["neighbours"].as_array().unwrap();
        assert!(
            neighbours.len() == 5
                && neighbours
                    .iter()
                    .all(|near| near["verified"]["diff"].is_object())
        );
    }
    let refused = "lookalike_requests_total{operation=\"query\",status=\"413\"}";
    let metrics = metrics(&service);
    assert!(metrics.contains(refused), "{metrics}");
    service.stop();
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_seen_by_readiness_and_metrics() {
    let folder = Folder::new();
    let Some(disk) = SmallDisk::mounted(folder.path("disk"), 8) else {
        return;
    };
    let data = disk.path().join("data");
    let service = Service::start(&data, &[]);
    let kept = json!({"keep": {"texts": true}});
    assert_eq!(service.ask("PUT", "/v1/collections/pages", &kept).0, 201);
    assert_eq!(service.ask("GET", "/readyz", &Value::Null).0, 200);
    // These texts hardly compress.
    let mut state = 1_u64;
    let mut text = || -> String {
        (0..4000)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                format!("{:x} ", state >> 16)
            })
            .collect()
    };
    let refused = (0..1000).find_map(|n| {
        let entry = json!({"id": n.to_string(), "text": text()});
        let (status, problem) = service.ask("POST", "/v1/collections/pages/insert", &entry);
        (status != 200).then_some((status, problem))
    });
    let (status, problem) = refused.unwrap();
    assert_eq!((status, &problem["code"]), (507, &json!("disk-full")));
    let (status, ready) = service.ask("GET", "/readyz", &Value::Null);
    assert_eq!(status, 503, "{ready}");
    assert_eq!(
        ready["collections"],
        json!([{"collection": "pages", "state": "disk-full"}])
    );
    let metrics = metrics(&service);
    let line = "lookalike_collection_disk_full{collection=\"pages\"} 1";
    assert!(metrics.lines().any(|found| found == line), "{metrics}");
    // Stored documents can still be read.
    let (status, _) = service.ask("POST", "/v1/collections/pages/get", &json!({"id": "0"}));
    assert_eq!(status, 200);
    // Documents and whole collections can be removed even after a restart, which makes room again.
    service.kill();
    let service = Service::start(&data, &[]);
    let (status, answer) = service.ask("POST", "/v1/collections/pages/delete", &json!({"id": "0"}));
    assert_eq!((status, answer), (200, json!({"existed": true})));
    let (status, answer) = service.ask("DELETE", "/v1/collections/pages", &Value::Null);
    assert_eq!(status, 204, "{answer}");
    assert_eq!(service.ask("PUT", "/v1/collections/pages", &kept).0, 201);
    let entry = json!({"id": "0", "text": text()});
    assert_eq!(
        service
            .ask("POST", "/v1/collections/pages/insert", &entry)
            .0,
        200
    );
    service.stop();
}
