//! `lookalike client` and `lookalike store`: stored data is never lost silently, and one bad record does not stop the others.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::serve::{Service, client};
use crate::support::{Finish as _, Finished, Folder, SmallDisk, lookalike, path, record};

/// Returns the verdicts of answer lines.
fn verdicts(lines: &[Value]) -> Vec<&str> {
    lines
        .iter()
        .map(|line| line["verdict"].as_str().unwrap_or("-"))
        .collect()
}

#[test]
fn records_of_standard_input_without_an_id_replaced_each_other() {
    let folder = Folder::new();
    let lines = "{\"text\":\"one two three four five six\"}\n{\"text\":\"seven eight nine ten\"}\n";
    let input = folder.add("day.jsonl", lines);
    let service = Service::start(&folder.path("data"), &[]);
    client(&service, &["create", "p"]).succeed();
    for operation in ["insert", "check-and-insert"] {
        let mut from_pipe = client(&service, &[operation, "p", "-"]);
        from_pipe.stdin(std::fs::File::open(&input).unwrap());
        from_pipe.fail(2).says(&["-, record 1: has no id", "--id"]);
    }
    // `check` stores nothing, so it needs no ids.
    let mut check = client(&service, &["check", "p", "-"]);
    let done = check.stdin(std::fs::File::open(&input).unwrap()).succeed();
    assert_eq!(verdicts(&done.lines()), ["new", "new"]);
    // Records of a file get the same ids whenever it is sent, until another file has the same name.
    let done = client(&service, &["insert", "p", path(&input)]).succeed();
    done.says(&["2 records without an id", "will replace them", "--id"]);
}

#[test]
fn pages_were_read_in_another_way_than_the_collection_reads_them() {
    let folder = Folder::new();
    let menu = "<nav><ul><li><a href=/a>Home</a><li><a href=/b>News</a></ul></nav>";
    let story = "The harbour froze for the third winter in a row, and the ferry stayed in port. "
        .repeat(12);
    let page = format!("<html><body>{menu}<article><p>{story}</article></body></html>");
    let file = folder.add("page.html", &page);
    let service = Service::start(&folder.path("data"), &[]);
    for mode in ["visible", "main"] {
        let scheme = lookalike("fingerprint")
            .args([
                path(&file),
                "--html",
                mode,
                "--json",
                "-o",
                path(&folder.path(format!("{mode}.lkfp"))),
            ])
            .succeed();
        let scheme = scheme.json()["scheme"].as_str().unwrap().to_owned();
        client(&service, &["create", mode, "--scheme", &scheme]).succeed();
        let (status, _) = service.ask(
            "POST",
            &format!("/v1/collections/{mode}/insert"),
            &json!([{"id": "x", "html": page}]),
        );
        assert_eq!(status, 200);
        let found = client(&service, &["check", mode, path(&file)]).succeed();
        assert_eq!(verdicts(&found.lines()), ["exact"], "{mode}");
        let same = client(&service, &["check", mode, path(&file), "--html", mode]).succeed();
        assert_eq!(verdicts(&same.lines()), ["exact"], "{mode}");
        let other = client(&service, &["check", mode, path(&file), "--html", "fast"]).fail(2);
        other.says(&[&format!("html={mode}"), "leave out --html"]);
    }
}

#[test]
fn metadata_that_nobody_can_read_made_answers_unreadable() {
    let folder = Folder::new();
    let service = Service::start(&folder.path("data"), &[]);
    client(&service, &["create", "p", "--keep", "texts"]).succeed();
    client(&service, &["create", "q", "--keep", "texts"]).succeed();
    let text = "one two three four five six";
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let ask = |metadata: &str| {
        let body = format!("[{{\"id\":\"m\",\"text\":\"{text}\",\"metadata\":{metadata}}}]");
        let head = format!(
            "POST /v1/collections/p/insert HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            service.address,
            body.len()
        );
        // The body is sent as text, because a parsed number would lose digits.
        let mut stream = service.connect();
        stream.write_all((head + &body).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    for metadata in [nested(65), "1e400".to_owned(), "\"\\ud800\"".to_owned()] {
        assert_eq!(ask(&metadata), "422", "{metadata}");
    }
    let exported =
        |name: &str| String::from_utf8(client(&service, &["export", name]).succeed().out).unwrap();
    let metadata = "{\"n\":12345678901234567890123,\"d\":[[1.10]]}";
    assert_eq!(ask(metadata), "200");
    assert_eq!(ask(&nested(64)), "200");
    client(
        &service,
        &[
            "check-and-insert",
            "p",
            path(&folder.add("d.jsonl", record("y", text))),
        ],
    )
    .succeed();
    assert_eq!(ask(metadata), "200");
    // An export is inserted unchanged, to the last digit.
    let export = exported("p");
    assert!(export.contains(metadata), "{export}");
    let export = folder.add("export.jsonl", export);
    client(&service, &["insert", "q", path(&export)]).succeed();
    assert!(exported("q").contains(metadata));
    // If the fields of an export are invalid, the record is refused.
    let wrong = "{\"id\":\"w\",\"text\":\"a b c\",\"expires_ms\" : \"tomorrow\"}\n{\"id\":\"v\",\"text\":\"d e f\",\"expires_ms\" : null}\n";
    let wrong = folder.add("wrong.jsonl", wrong);
    client(&service, &["insert", "q", path(&wrong)])
        .lose()
        .says(&["record 1: expires_ms: "]);
    let found = client(&service, &["get", "q", "w", "v"]).succeed().lines();
    assert_eq!((&found[0], &found[1]["id"]), (&Value::Null, &json!("v")));
}

#[test]
fn metadata_and_lifetimes_of_ordinary_records_were_dropped() {
    let folder = Folder::new();
    let service = Service::start(&folder.path("data"), &[]);
    client(&service, &["create", "p", "--keep", "texts"]).succeed();
    let metadata = "{\"n\":12345678901234567890123}";
    let lines: String = [
        ("m", format!("\"metadata\": {metadata}, \"text_hash\": 7")),
        ("t", "\"ttl_seconds\":3600".to_owned()),
        ("e", "\"expires_ms\":null".to_owned()),
        ("w", "\"ttl_seconds\":\"soon\"".to_owned()),
        ("d", "\"ttl_seconds\":null".to_owned()),
    ]
    .iter()
    .map(|(id, field)| {
        format!("{{\"id\":\"{id}\",\"text\":\"{id}1 {id}2 {id}3 {id}4 {id}5\",{field}}}\n")
    })
    .collect();
    let file = folder.add("d.jsonl", lines);
    for operation in ["insert", "check-and-insert"] {
        client(&service, &[operation, "p", path(&file), "--ttl", "60"])
            .lose()
            .says(&["record 4: ttl_seconds: "]);
        let got = client(&service, &["get", "p", "m", "t", "e", "w", "d"])
            .succeed()
            .lines();
        let end = |at: usize| got[at]["expires_ms"].as_u64().unwrap();
        assert!(end(1) > end(0) + 3_000_000, "{got:?}");
        assert!(end(1) > end(4) + 3_000_000, "{got:?}");
        assert_eq!(got[2].get("expires_ms"), Some(&Value::Null));
        assert_eq!(got[3], Value::Null);
        let export = client(&service, &["export", "p"]).succeed();
        assert!(export.text().contains(metadata), "{}", export.text());
        let ids = ["delete", "p", "m", "t", "e", "d"];
        client(&service, &ids).succeed();
    }
    // A search ignores all of it.
    let found = client(&service, &["check", "p", path(&file)]).succeed();
    assert_eq!(found.lines().len(), 5);
}

#[test]
fn a_document_was_refused_for_long_metadata_of_another_program() {
    let folder = Folder::new();
    let service = Service::start(&folder.path("data"), &[]);
    client(&service, &["create", "p"]).succeed();
    let long = "x".repeat(2000);
    let line = format!(
        "{{\"id\":\"a\",\"text\":\"one two three\",\"metadata\":{{\"warc\":\"{long}\"}}}}\n"
    );
    let file = folder.add("d.jsonl", line);
    client(&service, &["insert", "p", path(&file)])
        .succeed()
        .says(&["1 record stored without metadata", "1024 bytes"]);
    let got = client(&service, &["get", "p", "a"]).succeed().lines();
    assert_eq!(got[0]["id"], "a");
}

/// The start of a pipe was lost: it was opened once to see what it holds, and again to read it.
#[test]
fn documents_of_a_pipe_were_lost() {
    let folder = Folder::new();
    let service = Service::start(&folder.path("data"), &[]);
    client(&service, &["create", "p"]).succeed();
    let line =
        |at: u32, more: &str| format!("{{\"id\":\"s{at}\",\"fingerprint\":\"{at:016x}\"{more}}}\n");
    let file = |name: &str, more: &str| {
        let lines: String = (0..2000).map(|at| line(at, more)).collect();
        folder.add(name, lines)
    };
    let (sketches, export) = (file("s.jsonl", ""), file("e.jsonl", ",\"expires_ms\":null"));
    let from_pipe = |command: Command, file: &Path| {
        let mut shell = Command::new("sh");
        shell.args([
            "-c",
            "file=$1; shift; cat \"$file\" | { exec 3<&0; exec \"$@\"; }",
        ]);
        shell.arg("sh").arg(file).arg(command.get_program());
        shell.args(command.get_args());
        shell
    };
    for file in [&sketches, &export] {
        let load = client(&service, &["load", "p", "/dev/fd/3"]);
        let loaded = from_pipe(load, file).succeed();
        assert_eq!(loaded.json()["loaded"], 2000, "{}", loaded.err);
    }
    let sample = |input: &Path| {
        let mut sample = lookalike("evaluate");
        sample.args(["sample", "--fingerprints", "--json", "--each", "1", "-o"]);
        sample.arg(folder.path("pairs")).arg(input);
        sample
    };
    let expected = sample(&sketches).succeed().out;
    let found = from_pipe(sample(Path::new("/dev/fd/3")), &sketches).succeed();
    assert_eq!(found.out, expected);
}

#[test]
fn one_line_ended_a_load_and_one_missing_id_ended_a_listing() {
    let folder = Folder::new();
    let service = Service::start(&folder.path("data"), &["--max-batch", "10"]);
    client(&service, &["create", "p", "--keep", "texts"]).succeed();
    let line = |id: &str| {
        format!("{{\"id\":\"{id}\",\"fingerprint\":\"0123456789abcdef\",\"expires_ms\":null}}\n")
    };
    let export = folder.add("e.jsonl", line("a") + &line("\\ud800") + &line("b"));
    client(&service, &["load", "p", path(&export)])
        .lose()
        .says(&["line 2 is not JSON"]);
    // These are more items than the service takes in one request.
    let sketches: String = (0..95)
        .map(|at| format!("{{\"id\":\"s{at}\",\"fingerprint\":\"{at:016x}\"}}\n"))
        .collect();
    let sketches = folder.add("s.jsonl", sketches);
    let done = client(&service, &["load", "p", path(&sketches)]).succeed();
    assert_eq!(done.lines()[0]["loaded"], 95);
    let ids: Vec<String> = (0..95).map(|at| format!("s{at}")).collect();
    let words = |first: &[&str]| -> Vec<String> {
        let first = first.iter().map(|word| (*word).to_owned());
        first.chain(ids.iter().cloned()).collect()
    };
    for operation in [
        &["get", "p"][..],
        &["expire", "p", "--ttl", "1000"],
        &["delete", "p"],
    ] {
        let words = words(operation);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let lines = client(&service, &words).succeed().lines();
        let found: Vec<_> = lines
            .iter()
            .map(|line| line["id"].as_str().unwrap())
            .collect();
        assert_eq!(found, ids);
    }
    client(
        &service,
        &[
            "insert",
            "p",
            path(&folder.add("t.jsonl", record("t", "some words"))),
        ],
    )
    .succeed();
    let lines = client(&service, &["get", "p", "a", "none", "t", "--texts"])
        .succeed()
        .lines();
    assert_eq!(
        (&lines[0]["id"], &lines[1], &lines[2]["text"]),
        (&json!("a"), &Value::Null, &json!("some words"))
    );
}

#[test]
fn a_snapshot_that_was_served_was_no_snapshot_any_more() {
    let folder = Folder::new();
    let data = folder.path("data");
    let service = Service::start(&data, &["--snapshots", path(&folder.path("snapshots"))]);
    client(&service, &["create", "p"]).succeed();
    client(&service, &["snapshot", "a"]).succeed();
    service.stop();
    let snapshot = folder.path("snapshots/a");
    let mut serve = lookalike("serve");
    serve.args(["--data", path(&snapshot), "--listen", "127.0.0.1:0"]);
    serve
        .fail(1)
        .says(&["this is a snapshot", "restore it into a new directory"]);
    let mut load = lookalike("store");
    let sketches = folder.add(
        "s.jsonl",
        "{\"id\":\"x\",\"fingerprint\":\"0123456789abcdef\"}\n",
    );
    load.args(["load", path(&snapshot), "p", path(&sketches)]);
    load.fail(1).says(&["this is a snapshot"]);
    lookalike("store")
        .args(["verify", path(&snapshot)])
        .succeed();
    lookalike("store")
        .args(["restore", path(&snapshot), path(&folder.path("again"))])
        .succeed();
}

#[test]
fn a_file_that_is_not_there_made_a_collection_with_other_settings() {
    let folder = Folder::new();
    let store = folder.path("store");
    let mut load = lookalike("store");
    load.args(["load", path(&store), "p", path(&folder.path("none.lkfp"))]);
    load.fail(1).says(&["none.lkfp"]);
    assert!(!store.exists());
}

/// Regression test: only the fingerprints of the documents were loaded, and documents with an expiry never expired.
#[test]
fn an_export_is_not_loaded_as_sketches() {
    let folder = Folder::new();
    let line = r#"{"id":"a","expires_ms":4949513951281,"fingerprint":"0123456789abcdef"}"#
        .to_owned()
        + "\n";
    for (name, before) in [("a", ""), ("b", "\n"), ("c", "\u{feff}")] {
        let export = folder.add(format!("{name}.jsonl"), format!("{before}{line}"));
        let mut load = lookalike("store");
        load.args(["load", path(&folder.path("store")), name, path(&export)]);
        load.fail(1).says(&["is an export", "client load"]);
        assert!(!folder.path("store").exists(), "nothing is made for it");
    }
}

#[test]
fn a_removed_directory_of_snapshots_was_told_to_be_damage() {
    let folder = Folder::new();
    let snapshots = folder.path("snapshots");
    let service = Service::start(&folder.path("data"), &["--snapshots", path(&snapshots)]);
    client(&service, &["create", "p"]).succeed();
    std::fs::remove_dir(&snapshots).unwrap();
    client(&service, &["snapshot", "a"]).succeed();
    assert!(snapshots.join("a/SNAPSHOT").is_file());
    std::fs::remove_dir_all(&snapshots).unwrap();
    folder.add("snapshots", "a file");
    client(&service, &["snapshot", "b"])
        .fail(1)
        .says(&["500", "the directory of the snapshots"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_of_snapshots_was_told_to_be_that_of_the_service() {
    let folder = Folder::new();
    let Some(disk) = SmallDisk::mounted(folder.path("snapshots"), 1) else {
        return;
    };
    let service = Service::start(&folder.path("data"), &["--snapshots", path(disk.path())]);
    client(&service, &["create", "p", "--keep", "texts"]).succeed();
    // These texts hardly compress.
    let mut state = 1_u64;
    let mut word = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        format!("{:x} ", state >> 16)
    };
    let texts = (0..100).map(|_| (0..4000).map(|_| word()).collect::<String>());
    let lines = texts.enumerate();
    let lines: String = lines
        .map(|(n, text)| record(&n.to_string(), &text))
        .collect();
    let file = folder.add("d.jsonl", lines);
    client(&service, &["insert", "p", path(&file)]).succeed();
    client(&service, &["snapshot", "a"])
        .fail(1)
        .says(&["507", "the disk of the snapshots is full"]);
    // Nothing else is affected.
    client(&service, &["ready"]).succeed();
}

/// Reads a request to its end.
fn read_request(stream: &mut TcpStream) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    let length = length.map_or(0, |length| length.trim().parse().unwrap());
    stream.read_exact(&mut vec![0; length]).unwrap();
}

#[test]
fn a_service_that_went_away_left_unsaid_what_was_done() {
    let folder = Folder::new();
    let file = folder.records("d.jsonl", &[("a", "one two"), ("b", "three four")]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        for answer in ["{}", "[{}]"] {
            let (mut stream, _) = listener.accept().unwrap();
            read_request(&mut stream);
            let length = answer.len();
            let head = "HTTP/1.1 200 OK\r\nConnection: close";
            write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{answer}").unwrap();
        }
    });
    let mut insert = lookalike("client");
    insert.args([
        "--url",
        &url,
        "--retry-for",
        "2",
        "insert",
        "p",
        path(&file),
        "--batch",
        "1",
    ]);
    let finished = insert.fail(1);
    finished.says(&[
        "trying again",
        "check that the service is running",
        "done before: 1 document",
    ]);
    assert_eq!(finished.lines(), [json!({"id": "a"})]);
    server.join().unwrap();
}

#[test]
fn a_resketch_that_was_cancelled_elsewhere_ended_well() {
    let collection = json!({"scheme_id": "old", "radius": 3});
    let mut begun = collection.clone();
    begun["resketching"] = json!({"state": "running", "job": 7, "scheme_id": "old", "radius": 6});
    let finished = resketched(&[begun, collection]);
    finished.says(&[
        "p: the collection does not have the new sketches",
        "cancelled",
    ]);
    assert_eq!(finished.status, Some(1));
}

/// Runs `client resketch --wait` against a service that gives these answers. The first begins job 7.
fn resketched(answers: &[Value]) -> Finished {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut resketch = lookalike("client");
    resketch.args(["--url", &url, "resketch", "p", "--radius", "6", "--wait"]);
    std::thread::scope(|scope| {
        let server = scope.spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                read_request(&mut stream);
                let answer = answer.to_string();
                let head = "HTTP/1.1 200 OK\r\nConnection: close";
                let length = answer.len();
                write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{answer}").unwrap();
            }
        });
        let finished = resketch.finish();
        server.join().unwrap();
        finished
    })
}

#[test]
fn the_job_of_another_client_was_taken_for_the_own_one() {
    let collection = |radius: u32, job: Value| json!({"radius": radius, "resketching": job});
    let own = collection(3, json!({"state": "running", "job": 7, "radius": 6}));
    let after = |shown: Value| resketched(&[own.clone(), shown]);
    let other = json!({"state": "running", "job": 8, "radius": 9});
    let failed = json!({"state": "failed", "job": 8, "radius": 9, "reason": "its disk is full"});
    // The own job has ended well, and another one runs or has failed.
    assert_eq!(after(collection(6, other)).status, Some(0));
    assert_eq!(after(collection(6, failed.clone())).status, Some(0));
    // The own job was cancelled. The reason of the other one is not its own.
    let finished = after(collection(3, failed));
    finished.says(&["p: the collection does not have the new sketches"]);
    assert_eq!(finished.status, Some(1));
    assert!(!finished.err.contains("disk"), "{}", finished.err);
    let ended = |job: u64| {
        let mut ended = collection(9, Value::Null);
        ended["resketched"] = json!(job);
        after(ended)
    };
    // The own job has ended well, and another one may have changed the radius since.
    assert_eq!(ended(7).status, Some(0));
    let replaced = ended(8);
    replaced.says(&["another job has replaced them"]);
    assert_eq!(replaced.status, Some(1));
    // Nothing was begun, so there is nothing to wait for.
    let finished = resketched(&[collection(6, Value::Null)]);
    assert_eq!(
        (finished.status, &finished.json()["radius"]),
        (Some(0), &json!(6))
    );
}

/// Regression test: a collection with the name of the snapshot replaced its files.
#[test]
fn a_snapshot_is_not_made_within_the_data() {
    let folder = Folder::new();
    let data = folder.path("data");
    let sketches = folder.add(
        "s.jsonl",
        "{\"id\":\"x\",\"fingerprint\":\"0123456789abcdef\"}\n",
    );
    let mut load = lookalike("store");
    load.args(["load", path(&data), "p", path(&sketches)]);
    load.succeed();
    for within in ["data/collections/s", "data/s", "data"] {
        let mut snapshot = lookalike("store");
        snapshot.args(["snapshot", path(&data), path(&folder.path(within))]);
        snapshot.fail(2).says(&["is within the data directory"]);
    }
    let mut serve = lookalike("serve");
    serve.args(["--data", path(&data), "--listen", "127.0.0.1:0"]);
    serve.args(["--snapshots", path(&data.join("collections"))]);
    serve.fail(2).says(&["is within the data directory"]);
}

#[test]
fn a_relative_name_led_past_the_guard_of_the_data() {
    let folder = Folder::new();
    let sketches = folder.add(
        "s.jsonl",
        "{\"id\":\"x\",\"fingerprint\":\"0123456789abcdef\"}\n",
    );
    let run = |command: &str, arguments: &[&str]| {
        let mut command = lookalike(command);
        command.args(arguments).current_dir(folder.path("."));
        command
    };
    run("store", &["load", "data", "p", path(&sketches)]).succeed();
    for within in ["data", "data/a/b", "new/../data/s"] {
        run("store", &["snapshot", "data", within])
            .fail(2)
            .says(&["is within the data directory"]);
    }
    let serve = |data: &str, snapshots: &str| {
        let listen = ["--listen", "127.0.0.1:0"];
        let arguments = ["--data", data, "--snapshots", snapshots];
        run("serve", &[&arguments[..], &listen[..]].concat()).fail(2)
    };
    for within in ["new", "new/a/b", "a/../new/b"] {
        serve("new", within).says(&["is within the data directory"]);
    }
    assert!(!folder.path("new").exists(), "nothing is created first");
    // A store among the collections of another one.
    serve("data/collections", "elsewhere").says(&["is within the store"]);
    run(
        "store",
        &["load", "data/collections/q", "p", path(&sketches)],
    )
    .fail(2)
    .says(&["is within the store"]);
    assert!(!folder.path("data/collections/q").exists());
}

#[test]
fn a_url_without_a_scheme_and_a_key_of_several_lines_are_told_as_such() {
    let folder = Folder::new();
    let show = |flags: &[&str]| {
        let mut command = lookalike("client");
        command.args(flags).arg("show").output().unwrap()
    };
    let told = |flags: &[&str]| String::from_utf8(show(flags).stderr).unwrap();
    let url = told(&["--url", "localhost:7280"]);
    assert!(url.contains("http:// or https://"), "{url}");
    let keys = folder.add("keys", "a-key\nanother\n");
    let key = told(&["--key-file", path(&keys)]);
    assert!(key.contains("several lines"), "{key}");
}

/// Regression test: `fingerprint --import`, `merge` and `evaluate label` overwrote their input.
#[test]
fn outputs_of_lists_do_not_replace_their_inputs() {
    let folder = Folder::new();
    let codes = folder.add(
        "s.jsonl",
        "{\"id\":\"x\",\"fingerprint\":\"0123456789abcdef\"}\n",
    );
    let pairs = folder.add("p.jsonl", "{\"a\":\"x\",\"b\":\"y\",\"distance\":1}\n");
    let documents = folder.records("d.jsonl", &[("x", "a text"), ("y", "a text")]);
    for words in [
        &["fingerprint", "--import", path(&codes), "-o", path(&codes)][..],
        &["merge", path(&pairs), "-o", path(&pairs)],
        &[
            "evaluate",
            "label",
            path(&documents),
            "--pairs",
            path(&pairs),
            "-o",
            path(&pairs),
        ],
    ] {
        let mut command = lookalike(words[0]);
        command
            .args(&words[1..])
            .fail(2)
            .says(&["is also an input"]);
    }
    assert!(
        std::fs::read_to_string(&pairs)
            .unwrap()
            .contains("distance")
    );
}
