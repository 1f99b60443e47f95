//! `lookalike client` and `lookalike store` with a service started as a user would start it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::serve::Service;
use crate::support::{Finish as _, Folder, STORY, lookalike, record};

pub(crate) fn client(service: &Service, words: &[&str]) -> Command {
    let mut command = lookalike("client");
    command
        .args(["--url", &format!("http://{}", service.address)])
        .args(words);
    command
}

/// Compares the answers of the service with those of the command for the same documents.
#[test]
fn lists_and_copies_are_those_of_the_command() {
    let folder = Folder::new();
    let text = |at: usize| {
        let lines = (0..5 + at % 4)
            .map(|i| format!("line {} of the log\n", (at * 5 + i * (1 + at % 2)) % 31));
        lines.collect::<String>()
    };
    let records: String = (0..40)
        .map(|at| record(&format!("http://a.example/{at:02}"), &text(at)))
        .collect();
    let input = folder.add("in.jsonl", &records);
    let list: String = (0..40)
        .rev()
        .map(|at| format!("http://a.example/{at:02}\n"))
        .collect();
    let list = folder.add("list.txt", &list);
    let (pages, list) = (input.to_str().unwrap(), list.to_str().unwrap());
    let service = Service::start(&folder.path("data"), &[]);
    client(&service, &["create", "pages", "--keep", "texts"]).succeed();
    client(&service, &["insert", "pages", pages]).succeed();
    for chunk in ["lines:1", "words:3:sliding", "chars:12:sliding", "fields:2"] {
        let command = |flags: &[&str]| {
            let mut command = lookalike("overlap");
            command
                .args([pages, "--quiet", "--chunk", chunk])
                .args(flags);
            command.succeed().lines()
        };
        let ranked = client(&service, &["rerank", "pages", list, "--chunk", chunk]).succeed();
        assert_eq!(ranked.lines(), command(&["--rerank", list]), "{chunk}");
        for (at, flags) in [
            (3, &[][..]),
            (7, &["--min-shared", "3"]),
            (8, &["--min-containment", "0.5"]),
        ] {
            let id = format!("http://a.example/{at:02}");
            let words = [&["copies-of", "pages", &id, "--chunk", chunk][..], flags].concat();
            let found = client(&service, &words).succeed();
            let expected = command(&[&["--copies-of", &id][..], flags].concat());
            assert!(!expected.is_empty());
            let of_command = expected.iter().map(|row| {
                json!({
                    "id": row["b"], "shared": row["shared"], "chunks": row["chunks_b"],
                    "containment": row["containment_a"], "copy_containment": row["containment_b"],
                    "resemblance": row["resemblance"],
                })
            });
            assert_eq!(
                found.lines(),
                of_command.collect::<Vec<_>>(),
                "{chunk} {id}"
            );
        }
    }
    let few = client(
        &service,
        &[
            "copies-of",
            "pages",
            "http://a.example/03",
            "--chunk",
            "lines:1",
            "--limit",
            "1",
        ],
    )
    .succeed();
    assert_eq!(few.lines().len(), 1);
    few.says(&["not shown: ", "--limit"]);
    client(&service, &["copies-of", "pages", "nobody"])
        .fail(1)
        .says(&["nobody", "404"]);
    client(&service, &["rerank", "pages", "missing.txt"])
        .fail(1)
        .says(&["missing.txt", "one per line"]);
    client(&service, &["rerank", "pages", list, "--chunk", "pages:1"])
        .fail(2)
        .says(&["pages:1", "words:N"]);
    client(&service, &["create", "codes"]).succeed();
    client(&service, &["insert", "codes", pages]).succeed();
    client(&service, &["copies-of", "codes", "http://a.example/03"])
        .fail(1)
        .says(&["is not kept", "--keep texts"]);
}

/// The service took white space for a text: such pages were copies of one another, and new in a list.
#[test]
fn pages_of_white_space_equal_nothing_in_the_service_either() {
    let folder = Folder::new();
    let blank = ["\n", " \n", "\n", "\u{a0}"];
    let records = (0..)
        .zip(blank)
        .map(|(at, text)| record(&format!("d{at}"), text));
    let input = folder.add("in.jsonl", records.collect::<String>());
    let list = folder.add("list.txt", "d0\nd1\nd2\nd3\n");
    let (pages, list) = (input.to_str().unwrap(), list.to_str().unwrap());
    let service = Service::start(&folder.path("data"), &[]);
    client(&service, &["create", "pages", "--keep", "texts"]).succeed();
    client(&service, &["insert", "pages", pages]).succeed();
    for chunk in ["doc", "lines:1"] {
        let command = |flags: &[&str]| {
            let mut command = lookalike("overlap");
            command
                .args([pages, "--quiet", "--chunk", chunk])
                .args(flags);
            command.succeed().lines()
        };
        let ranked = client(&service, &["rerank", "pages", list, "--chunk", chunk]).succeed();
        assert_eq!(ranked.lines(), command(&["--rerank", list]), "{chunk}");
        assert!(
            ranked.lines().iter().all(|line| line["chunks"] == 0),
            "{chunk}"
        );
        let copies = client(&service, &["copies-of", "pages", "d0", "--chunk", chunk]).succeed();
        assert_eq!(copies.lines(), command(&["--copies-of", "d0"]), "{chunk}");
        assert!(copies.lines().is_empty(), "{chunk}");
    }
}

#[test]
fn documents_are_checked_inserted_and_shown_from_scripts() {
    let folder = Folder::new();
    let other = STORY.replace("forty", "fifty");
    let pages = folder.add(
        "pages.jsonl",
        &(record("a", STORY)
            + &record("b", &other)
            + &record("c", "a very different text about nothing at all")),
    );
    let pages = pages.to_str().unwrap();
    let service = Service::start(&folder.path("data"), &[]);
    let made = client(
        &service,
        &[
            "create",
            "pages",
            "--radius",
            "16",
            "--keep",
            "texts,paragraphs",
        ],
    )
    .succeed();
    assert_eq!(made.json()["radius"], 16);
    let checked = client(
        &service,
        &[
            "check-and-insert",
            "pages",
            pages,
            "--insert",
            "always",
            "--batch",
            "1",
        ],
    )
    .succeed();
    let lines = checked.lines();
    assert_eq!(
        lines
            .iter()
            .map(|line| (&line["id"], &line["inserted"]))
            .collect::<Vec<_>>(),
        ["a", "b", "c"]
            .map(|id| (json!(id), json!(true)))
            .iter()
            .map(|(id, done)| (id, done))
            .collect::<Vec<_>>()
    );
    let again = client(&service, &["check", "pages", pages]).succeed();
    assert!(again.lines().iter().all(|line| line["verdict"] == "exact"));
    let shown = client(
        &service,
        &[
            "query", "pages", pages, "--verify", "--diff", "--limit", "1",
        ],
    )
    .succeed();
    assert_eq!(
        shown.lines()[0]["neighbours"][0]["verified"]["resemblance"],
        1.0
    );
    let paragraphs = client(&service, &["paragraphs", "pages", pages]).succeed();
    assert_eq!(
        paragraphs.lines()[0]["exact_share"],
        0.0,
        "a page is not told of itself"
    );
    let deleted = client(&service, &["delete", "pages", "a", "z"]).succeed();
    assert_eq!(
        deleted.lines(),
        [
            json!({"id": "a", "existed": true}),
            json!({"id": "z", "existed": false})
        ]
    );
    let exported = client(&service, &["export", "pages"]).succeed();
    assert_eq!(exported.lines().len(), 2);
    assert_eq!(exported.lines()[0]["text"], other);
    assert_eq!(
        client(&service, &["show", "pages"]).succeed().json()["documents"],
        2
    );
    client(&service, &["show", "none"]).fail(1).says(&[
        "404",
        "no collection",
        "`lookalike client create`",
    ]);
    client(&service, &["check", "pages", pages, "--radius", "17"])
        .fail(1)
        .says(&["422", "radius 17"]);
    service.stop();
    client_of("http://127.0.0.1:1", &["show"])
        .fail(1)
        .says(&["--url"]);
}

/// Returns the answer of a service to a GET request over TLS.
fn fetch(url: &str, ca: &str, key: &Path) -> String {
    use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
    let ca = Certificate::from_pem(&std::fs::read(ca).unwrap()).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let tls = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(RootCerts::new_with_certs(&[ca]))
        .unversioned_rustls_crypto_provider(provider)
        .build();
    let agent: ureq::Agent = ureq::Agent::config_builder().tls_config(tls).build().into();
    let key = std::fs::read_to_string(key).unwrap();
    let request = agent
        .get(url)
        .header("authorization", format!("Bearer {}", key.trim()));
    request.call().unwrap().body_mut().read_to_string().unwrap()
}

fn client_of(url: &str, words: &[&str]) -> Command {
    let mut command = lookalike("client");
    command.args(["--url", url]).args(words);
    command
}

/// Writes two hundred fingerprints to files of every format.
fn fingerprints(folder: &Folder) -> Vec<std::path::PathBuf> {
    let records: String = (0..200)
        .map(|number| {
            record(
                &format!("page {number}"),
                &format!("{STORY} {number} times {}", number * 7),
            )
        })
        .collect();
    let pages = folder.add("pages.jsonl", &records);
    let formats = ["lkfp", "jsonl", "u64", "parquet"];
    formats
        .map(|format| {
            let path = folder.path(format!("codes.{format}"));
            lookalike("fingerprint")
                .arg(&pages)
                .arg("-o")
                .arg(&path)
                .succeed();
            path
        })
        .to_vec()
}

#[test]
fn files_of_fingerprints_are_loaded_over_the_network_and_into_a_stopped_store() {
    let folder = Folder::new();
    let files = fingerprints(&folder);
    let data = folder.path("data");
    let service = Service::start(&data, &[]);
    client(&service, &["create", "pages"]).succeed();
    for (path, loaded) in files.iter().zip([0, 200, 0, 200]) {
        let path = path.to_str().unwrap();
        let summary = client(&service, &["load", "pages", path, "--batch", "64"])
            .succeed()
            .json();
        // Raw numbers have no ids, so their digits are used.
        assert_eq!(
            (&summary["loaded"], &summary["replaced"]),
            (&json!(200), &json!(loaded)),
            "{path}"
        );
    }
    let over_network = client(&service, &["export", "pages"]).succeed().lines();
    assert_eq!(over_network.len(), 400);
    let compacted = client(&service, &["compact", "pages"]).succeed().json();
    assert_eq!(compacted["documents"], 400);
    lookalike("store")
        .arg("verify")
        .arg(&data)
        .fail(1)
        .says(&["has the store open"]);
    service.stop();

    let stopped = folder.path("stopped");
    for path in &files {
        lookalike("store")
            .arg("load")
            .arg(&stopped)
            .arg("pages")
            .arg(path)
            .succeed();
    }
    // Every load leaves one run unless it is told not to compact.
    let load = |words: &[&str]| {
        let mut command = lookalike("store");
        command
            .arg("load")
            .arg(&stopped)
            .arg("pages")
            .arg(&files[0]);
        command.args(words).succeed().json()
    };
    assert_eq!(load(&["--no-compact"])["runs"], 2);
    assert_eq!(load(&[])["runs"], 1);
    let wide = lookalike::Scheme::default().to_string();
    let wide = wide.replace("sketch=none", "sketch=simhash:128");
    let refused = lookalike("store")
        .arg("load")
        .args([&stopped, Path::new("wide"), &files[0]])
        .args(["--scheme", &wide])
        .fail(2);
    refused.says(&["of scheme", "simhash:128", "--sketch"]);
    let info = lookalike("store").arg("info").arg(&stopped).succeed();
    assert!(!info.text().contains("wide"), "a collection of nothing");
    let service = Service::start(&stopped, &[]);
    let mut offline = client(&service, &["export", "pages"]).succeed().lines();
    let mut over_network = over_network;
    for lines in [&mut offline, &mut over_network] {
        lines.sort_by_key(|line| line["id"].to_string());
    }
    assert_eq!(offline, over_network);
    service.stop();
    let other = folder.add("x.jsonl", record("a", STORY));
    let words3 = folder.path("words3.lkfp");
    lookalike("fingerprint")
        .arg(other)
        .args(["--shingle", "words:3", "-o"])
        .arg(&words3)
        .succeed();
    let refused = lookalike("store")
        .arg("load")
        .arg(&stopped)
        .arg("pages")
        .arg(&words3)
        .finish();
    assert_eq!(refused.status, Some(1));
    refused.says(&["has the scheme"]);
}

#[test]
fn snapshots_are_made_checked_restored_and_what_is_left_is_saved() {
    let folder = Folder::new();
    let (data, snapshots) = (folder.path("data"), folder.path("snapshots"));
    let files = fingerprints(&folder);
    lookalike("store")
        .arg("load")
        .arg(&data)
        .arg("pages")
        .arg(&files[0])
        .succeed();
    let service = Service::start(&data, &["--snapshots", snapshots.to_str().unwrap()]);
    let made = client(&service, &["snapshot", "monday"]).succeed().json();
    assert_eq!(made["collections"], 1);
    service.stop();
    let store = |words: &[&Path]| {
        let mut command = lookalike("store");
        command.args(words);
        command
    };
    let (monday, restored) = (snapshots.join("monday"), folder.path("restored"));
    store(&["restore".as_ref(), &monday, &restored]).succeed();
    let whole = store(&["verify".as_ref(), &restored]).succeed().json();
    assert_eq!(
        (&whole["state"], &whole["clean"]),
        (&json!("whole"), &json!(true))
    );
    let cold = folder.path("cold");
    store(&["snapshot".as_ref(), &restored, &cold]).succeed();
    store(&["restore".as_ref(), &cold, &folder.path("again")]).succeed();

    // A flipped byte is found and named, and only the part that it is in is lost.
    let below = restored.join("collections/pages");
    let mut runs = std::fs::read_dir(&below)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let run = runs
        .find(|path| path.extension().is_some_and(|kind| kind == "run"))
        .unwrap();
    let mut bytes = std::fs::read(&run).unwrap();
    bytes[100] ^= 1;
    std::fs::remove_file(&run).unwrap();
    std::fs::write(&run, bytes).unwrap();
    let damaged = store(&["verify".as_ref(), &restored]).fail(1);
    damaged.says(&["1 collection of 1 is damaged", "salvage"]);
    assert!(
        damaged.json()["reason"]
            .as_str()
            .unwrap()
            .contains(run.to_str().unwrap())
    );
    let saved = folder.path("saved");
    // Status 0 would hide the loss.
    let salvaged = store(&["salvage".as_ref(), &restored, &saved]).finish();
    assert_eq!(salvaged.status, Some(3), "{}", salvaged.err);
    salvaged.says(&["1 part could not be read", "status 3"]);
    let summary = salvaged.json();
    assert_eq!(summary["lost"].as_array().unwrap().len(), 1, "{summary}");
    store(&["verify".as_ref(), &saved]).succeed();
    store(&["restore".as_ref(), &monday, &saved])
        .fail(1)
        .says(&["new directory"]);
}

#[test]
fn tls_is_spoken_and_keys_change_without_a_restart() {
    let folder = Folder::new();
    let tls = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/tls");
    let file = |name: &str| tls.join(name).to_str().unwrap().to_owned();
    let keys = folder.path("keys");
    let make = |name: &str| {
        let made = lookalike("serve")
            .arg("--keys")
            .arg(&keys)
            .args(["--make-key", name])
            .succeed();
        let path = folder.path("key");
        std::fs::write(&path, made.text()).unwrap();
        path
    };
    let first = make("admin:first");
    let config = folder.add(
        "lookalike.toml",
        format!(
            "data = {:?}\nkeys = {:?}\ntls-cert = {:?}\ntls_key = {:?}\nmax-batch = 7\n",
            folder.path("data"),
            keys,
            file("cert.pem"),
            file("key.pem")
        ),
    );
    let mut service = Service::start_with(&["--config", config.to_str().unwrap()]);
    let url = format!("https://localhost:{}", service.address.port());
    let show = |ca: &str, key: &Path| {
        client_of(
            &url,
            &["--ca", ca, "--key-file", key.to_str().unwrap(), "show"],
        )
        .finish()
    };
    let ca = file("ca.pem");
    assert_eq!(show(&ca, &first).status, Some(0));
    let strange = folder.add(
        "strange.pem",
        std::fs::read_to_string(file("cert.pem")).unwrap(),
    );
    assert_eq!(
        show(strange.to_str().unwrap(), &first).status,
        Some(1),
        "another authority"
    );
    let plain = client_of(&url.replace("https", "http"), &["show"]).finish();
    assert_eq!(plain.status, Some(1), "no TLS, no answer");
    let metrics = fetch(&format!("{url}/metrics"), &ca, &first);
    let failed = metrics
        .lines()
        .find_map(|line| line.strip_prefix("lookalike_tls_failures_total "));
    assert!(failed.unwrap().parse::<u64>().unwrap() >= 2, "{metrics}");

    let old = std::fs::read(&first).unwrap();
    std::fs::remove_file(&keys).unwrap();
    let second = make("admin:second");
    service.signal("HUP");
    assert_eq!(service.next_event()["event"], "reloaded");
    assert_eq!(show(&ca, &second).status, Some(0));
    std::fs::write(folder.path("old"), old).unwrap();
    let refused = show(&ca, &folder.path("old"));
    assert_eq!(refused.status, Some(1));
    refused.says(&["401"]);
    // A file that cannot be read changes nothing.
    std::fs::write(&keys, "nonsense\n").unwrap();
    service.signal("HUP");
    assert_eq!(service.next_event()["event"], "not-reloaded");
    assert_eq!(show(&ca, &second).status, Some(0));
    service.stop();
}

#[test]
fn the_file_says_what_flags_and_environment_do_not() {
    let folder = Folder::new();
    let config = folder.add(
        "c.toml",
        "data = \"d\"\nmax-batch = 5\nqueue-timeout = 0.5\nlog = \"warn\"\ntrust_clock = true\n",
    );
    let printed = |words: &[&str]| {
        let mut command = lookalike("serve");
        command
            .args(["--config", config.to_str().unwrap(), "--print-config"])
            .args(words);
        command.env("LOOKALIKE_QUEUE_TIMEOUT", "0.25");
        command.succeed().json()
    };
    let shown = printed(&[]);
    let wanted = json!({"data": "d", "max-batch": 5, "queue-timeout": 0.25, "log": "warn", "trust-clock": true});
    for (name, value) in wanted.as_object().unwrap() {
        assert_eq!(shown[name], *value, "{name}");
    }
    assert_eq!(printed(&["--max-batch", "6"])["max-batch"], 6);
    // This form of the option was ignored if the name of the file was not UTF-8, and printing it was a panic.
    let other = folder.path(OsStr::from_bytes(b"c\xff.toml"));
    std::fs::copy(&config, &other).unwrap();
    let mut command = lookalike("serve");
    let option = [b"--config=", other.as_os_str().as_bytes()].concat();
    command
        .arg(OsStr::from_bytes(&option))
        .arg("--print-config");
    assert_eq!(command.succeed().json()["max-batch"], 5);
    for (text, said) in [
        ("maximum = 5", "not a setting"),
        ("config = \"x\"", "not a setting"),
        ("data = [1]", "must be a string"),
        ("data = ", "line 1"),
    ] {
        let path = folder.add("wrong.toml", text);
        let wrong = lookalike("serve")
            .arg(format!("--config={}", path.display()))
            .finish();
        assert_eq!(wrong.status, Some(1), "{text}");
        wrong.says(&["wrong.toml", said]);
    }
    let missing = lookalike("serve").finish();
    assert_eq!(missing.status, Some(2));
    missing.says(&["--data"]);
    let value: Value = printed(&[]);
    assert!(value["config"].is_string());
}

#[test]
fn similar_paragraphs_are_told_with_their_documents_and_positions() {
    let folder = Folder::new();
    let words =
        |from: u32| -> Vec<String> { (from..from + 80).map(|at| format!("w{at}")).collect() };
    let (first, second) = (words(0).join(" "), words(100).join(" "));
    let mut changed = words(100);
    changed[1] = "another".to_owned();
    let law = folder.add(
        "law.jsonl",
        record("law", &format!("{first}\n{second}\nThe end")),
    );
    let page = format!("{}\nThe  End!\n{}", changed.join(" "), words(200).join(" "));
    let page = folder.add("page.jsonl", record("page", &page));
    let service = Service::start(&folder.path("data"), &[]);
    let create = |flags: &[&str]| {
        let words = [&["create", "laws", "--radius", "12"], flags].concat();
        client(&service, &words)
    };
    create(&["--paragraphs", "lines"])
        .fail(1)
        .says(&["keep.paragraphs"]);
    create(&["--keep", "paragraphs", "--paragraphs", "sentences"]).fail(1);
    let made = create(&["--keep", "paragraphs", "--paragraphs", "lines"]).succeed();
    assert_eq!(made.json()["paragraphs"], "lines");
    client(&service, &["insert", "laws", law.to_str().unwrap()]).succeed();
    let ask = |flags: &[&str]| {
        let words = [&["paragraphs", "laws", page.to_str().unwrap()], flags].concat();
        client(&service, &words).succeed().json()
    };
    let answer = ask(&[]);
    let verdicts = |answer: &Value| {
        let all = answer["paragraphs"].as_array().unwrap().iter();
        all.map(|paragraph| paragraph["verdict"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(verdicts(&answer), ["near", "exact", "new"]);
    let nearest = &answer["paragraphs"][0]["documents"][0];
    assert_eq!(
        (&nearest["id"], &nearest["position"]),
        (&json!("law"), &json!(1))
    );
    let shares = (&answer["known_share"], &answer["exact_share"]);
    assert_eq!(shares, (&json!(0.506173), &json!(0.012346)));
    assert_eq!(verdicts(&ask(&["--radius", "0"])), ["new", "exact", "new"]);
}

#[test]
fn an_export_is_loaded_whole_and_exported_as_the_same_bytes() {
    let folder = Folder::new();
    let records: String = (0..250)
        .map(|number| {
            record(
                &format!("page {number}"),
                &format!("{STORY} {number}\n\n{}", number * 7),
            )
        })
        .collect();
    let pages = folder.add("pages.jsonl", &records);
    let service = Service::start(&folder.path("data"), &[]);
    let keep = "texts,signatures,paragraphs";
    for name in ["pages", "copy"] {
        client(&service, &["create", name, "--keep", keep]).succeed();
    }
    let insert = ["insert", "pages", pages.to_str().unwrap(), "--ttl", "7200"];
    client(&service, &insert).succeed();
    let expire = ["expire", "pages", "page 3", "page 4", "none"];
    let ends = client(&service, &[&expire[..], &["--never"]].concat())
        .succeed()
        .lines();
    assert_eq!(ends[2], json!({"id": "none", "existed": false}));
    client(&service, &expire).fail(2);
    client(&service, &["delete", "pages", "page 5"]).succeed();
    let first = client(&service, &["export", "pages"])
        .succeed()
        .text()
        .to_owned();
    assert_eq!(first.lines().count(), 249);

    let export = folder.add("export.jsonl", &first);
    let export = export.to_str().unwrap();
    let load = client(&service, &["load", "copy", export, "--batch", "60"])
        .succeed()
        .json();
    assert_eq!(
        (&load["loaded"], &load["replaced"]),
        (&json!(249), &json!(0))
    );
    assert!(load.get("dropped").is_none());
    assert_eq!(
        client(&service, &["export", "copy"]).succeed().text(),
        first
    );
    // A compressed export loads as well.
    client(&service, &["create", "packed", "--keep", keep]).succeed();
    let packed = folder.path("export.jsonl.zst");
    std::fs::write(&packed, zstd::encode_all(first.as_bytes(), 0).unwrap()).unwrap();
    client(&service, &["load", "packed", packed.to_str().unwrap()]).succeed();
    assert_eq!(
        client(&service, &["export", "packed"]).succeed().text(),
        first
    );
    // `insert` makes new sketches of the texts and keeps everything else.
    client(&service, &["create", "anew", "--keep", keep, "--ttl", "60"]).succeed();
    client(&service, &["insert", "anew", export, "--batch", "40"]).succeed();
    assert_eq!(
        client(&service, &["export", "anew"]).succeed().text(),
        first
    );

    let got = client(&service, &["get", "copy", "page 3", "none", "page 6"])
        .succeed()
        .lines();
    assert_eq!((&got[0]["id"], &got[1]), (&json!("page 3"), &json!(null)));
    assert_eq!(got[0].get("expires_ms"), Some(&Value::Null));
    assert!(got[2]["expires_ms"].is_u64());
    let got = client(&service, &["get", "copy", "--texts", "page 3"]).succeed();
    assert!(got.json()["text"].as_str().unwrap().starts_with(STORY));
    // The output of `get` can be inserted too.
    let shown = folder.add("shown.jsonl", got.text());
    client(
        &service,
        &["create", "shown", "--keep", keep, "--ttl", "60"],
    )
    .succeed();
    client(&service, &["insert", "shown", shown.to_str().unwrap()]).succeed();
    let again = client(&service, &["get", "shown", "--texts", "page 3"]).succeed();
    assert_eq!(again.text(), got.text());

    client(&service, &["create", "less"]).succeed();
    let load = client(&service, &["load", "less", export]).succeed().json();
    assert_eq!(
        load["dropped"],
        json!({"text": 249, "signature": 249, "paragraphs": 249})
    );
    client(&service, &["create", "wide", "--shingle", "words:1"]).succeed();
    client(&service, &["load", "wide", export])
        .fail(1)
        .says(&["lines 1 to ", "`lookalike client insert`"]);
    let codes = folder.path("codes.lkfp");
    lookalike("fingerprint")
        .arg(&pages)
        .arg("-o")
        .arg(&codes)
        .succeed();
    let codes = codes.to_str().unwrap();
    let index = folder.path("codes.lkix");
    let mut build = lookalike("index");
    build.args(["build", codes, "-o"]).arg(&index).succeed();
    client(&service, &["load", "less", index.to_str().unwrap()])
        .fail(1)
        .says(&["codes.lkix is an index: name the files that it was built from"]);
    client(
        &service,
        &["load", "less", codes, "--ttl", "60", "--no-compact"],
    )
    .succeed();
    let lines = client(&service, &["export", "less"]).succeed().lines();
    assert!(lines.iter().all(|line| line["expires_ms"].is_u64()));
    let other = "0123456789abcdef";
    client(&service, &["load", "less", export, "--scheme-id", other])
        .fail(1)
        .says(&["409"]);
    let broken = folder.add(
        "broken.jsonl",
        format!("{}\nnonsense\n", first.lines().next().unwrap()),
    );
    client(&service, &["load", "less", broken.to_str().unwrap()])
        .lose()
        .says(&["broken.jsonl, line 2"]);

    let changed = client(&service, &["change", "less", "--ttl", "90"])
        .succeed()
        .json();
    assert_eq!(changed["ttl_seconds"], 90);
    let changed = client(&service, &["change", "less", "--never"])
        .succeed()
        .json();
    assert_eq!(changed["ttl_seconds"], Value::Null);
    client(&service, &["drop", "less"]).succeed();
    client(&service, &["show", "less"]).fail(1).says(&["404"]);
    assert_eq!(
        client(&service, &["ready"]).succeed().json()["status"],
        "ready"
    );
    service.stop();
}

#[test]
fn neighbours_beyond_a_page_are_followed() {
    let folder = Folder::new();
    let records: String = (0..230)
        .map(|number| record(&format!("page {number}"), STORY))
        .collect();
    let pages = folder.add("pages.jsonl", &records);
    let one = folder.add("one.jsonl", record("one", STORY));
    let service = Service::start(&folder.path("data"), &[]);
    client(&service, &["create", "pages"]).succeed();
    client(&service, &["insert", "pages", pages.to_str().unwrap()]).succeed();
    for (limit, shown) in [("100", 100), ("150", 150), ("1000", 230)] {
        let query = ["query", "pages", one.to_str().unwrap(), "--limit", limit];
        let answer = client(&service, &query).succeed().json();
        let neighbours = answer["neighbours"].as_array().unwrap();
        assert_eq!(
            (neighbours.len(), answer["more"] == true),
            (shown, shown < 230)
        );
        let ids: std::collections::BTreeSet<_> = neighbours
            .iter()
            .map(|near| near["id"].to_string())
            .collect();
        assert_eq!((ids.len(), &answer["copy_of"]), (shown, &json!("page 0")));
    }
    service.stop();
}

#[test]
fn an_insert_whose_answers_nobody_read_stopped_in_the_middle_with_success() {
    let folder = Folder::new();
    let service = Service::start(&folder.path("data"), &[]);
    client(&service, &["create", "pages"]).succeed();
    let records: String = (0..2000)
        .map(|at| record(&at.to_string(), &format!("text number {at}")))
        .collect();
    let input = folder.add("in.jsonl", &records);
    // The answers exceed what a pipe holds.
    let closed = |words: &[&str]| {
        let mut child = client(&service, words)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        assert!(child.wait().unwrap().success(), "{words:?}");
        service.ask("GET", "/v1/collections/pages", &Value::Null).1["documents"].clone()
    };
    assert_eq!(closed(&["insert", "pages", input.to_str().unwrap()]), 2000);
    let ids: Vec<String> = (0..2000).map(|at| at.to_string()).collect();
    let ids = ids.iter().map(String::as_str);
    let words: Vec<&str> = ["delete", "pages"].into_iter().chain(ids).collect();
    assert_eq!(closed(&words), 0);
    service.stop();
}

#[test]
fn remedies_named_what_an_operation_does_not_have() {
    let folder = Folder::new();
    let service = Service::start(&folder.path("data"), &[]);
    client(
        &service,
        &[
            "create",
            "pages",
            "--keep",
            "signatures",
            "--keep",
            "paragraphs",
        ],
    )
    .succeed();
    let told = |words: &[&str]| client(&service, words).fail(1).err;
    let told_of_life = told(&["create", "other", "--ttl", "0"]);
    assert!(
        told_of_life.contains("send null for documents that never expire"),
        "{told_of_life}"
    );
    let told_of_life = told(&["expire", "pages", "a", "--ttl", "0"]);
    assert!(!told_of_life.contains("leave it out"), "{told_of_life}");
    let usage = client(&service, &["expire", "pages", "a"]).fail(2).err;
    assert!(usage.contains("<--ttl <SECONDS>|--never>"), "{usage}");
    let input = folder.add("in.jsonl", record("a", STORY));
    let words = [
        "check-and-insert",
        "pages",
        input.to_str().unwrap(),
        "--limit",
        "500",
    ];
    let told = client(&service, &words).fail(1).err;
    assert!(
        told.contains("query gives the others") && !told.contains("`after`"),
        "{told}"
    );
    let elsewhere = format!("http://{}/elsewhere/", service.address);
    let ready = lookalike("client")
        .args(["--url", &elsewhere, "ready"])
        .fail(1)
        .err;
    assert!(
        ready.contains("not the address of a lookalike service"),
        "{ready}"
    );
    let unsecured = format!("https://{}", service.address);
    let told = lookalike("client")
        .args(["--url", &unsecured, "--retry-for", "0.1", "ready"])
        .fail(1)
        .err;
    assert!(told.contains("the server does not speak TLS"), "{told}");
    let told = client(&service, &["create", "other", "--keep", "foo"])
        .fail(2)
        .err;
    assert!(told.contains("invalid value 'foo'"), "{told}");
    service.stop();
}

#[test]
fn parts_that_no_export_has_were_loaded() {
    let folder = Folder::new();
    let service = Service::start(&folder.path("data"), &[]);
    let keep = json!({"keep": {"signatures": true, "paragraphs": true}});
    assert_eq!(service.ask("PUT", "/v1/collections/pages", &keep).0, 201);
    let load = |part: &str, value: Value| {
        let mut document = json!({"id": "a", "fingerprint": "0123456789abcdef"});
        document[part] = value;
        service.ask("POST", "/v1/collections/pages/load", &document)
    };
    assert_eq!(load("signature", json!("00000001".repeat(128))).0, 200);
    let (status, answer) = load("signature", json!("00000001"));
    assert_eq!(status, 422, "{answer}");
    let paragraphs = json!(vec!["0123456789abcdef"; 10_001]);
    let (status, answer) = load("paragraphs", paragraphs);
    assert_eq!(status, 422, "{answer}");
    service.stop();
}
