//! Schemes with parts that the service stores: fingerprints are those of `lookalike fingerprint`.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::Path;

use serde_json::{Value, json};

use crate::serve::{Service, client};
use crate::support::{Finish as _, Folder, Numbers, contents, corpus, json_lines, lookalike, path};

/// Returns the fingerprints that the command makes, by id, and their scheme.
fn of_command(
    folder: &Folder,
    documents: &Path,
    flags: &[&str],
) -> (BTreeMap<String, Value>, String) {
    let out = folder.path("fingerprints.jsonl");
    let words = [&[path(documents), "--json", "-o", path(&out)][..], flags].concat();
    let told = lookalike("fingerprint").args(words).succeed();
    let rows = json_lines(&contents(&out));
    let id = |row: &Value| row["id"].as_str().unwrap().to_owned();
    let all = rows.iter().map(|row| (id(row), row["fingerprint"].clone()));
    (
        all.collect(),
        told.json()["scheme"].as_str().unwrap().to_owned(),
    )
}

/// Returns the fingerprints that a collection has, by id.
fn of_service(service: &Service, name: &str) -> BTreeMap<String, Value> {
    let rows = client(service, &["export", name]).succeed().lines();
    let id = |row: &Value| row["id"].as_str().unwrap().to_owned();
    rows.iter()
        .map(|row| (id(row), row["fingerprint"].clone()))
        .collect()
}

/// Writes documents with short texts and links.
fn documents(folder: &Folder) -> std::path::PathBuf {
    let mut numbers = Numbers(5);
    let lines = (0..120).map(|at| {
        let mut record = json!({"id": format!("d{at}"), "text": numbers.words(40, 200)});
        if at % 3 == 0 {
            let text = numbers.words(2, 50);
            record["anchors"] =
                json!([text, {"text": "here", "before": numbers.words(3, 9), "after": ""}]);
        }
        if at % 4 == 0 {
            record["in_links"] = json!([format!("http://a.example/{}", at % 7)]);
            record["out_links"] = json!("http://b.example/");
        }
        format!("{record}\n")
    });
    folder.add("docs.jsonl", lines.collect::<String>())
}

#[test]
fn a_table_of_terms_is_held_by_its_collection_and_outlives_a_restart() {
    let folder = Folder::new();
    let documents = documents(&folder);
    let sets = [
        Some(documents.clone()),
        corpus("de-laws-revisions/docs.jsonl.gz"),
    ];
    let data = folder.path("data");
    for (at, documents) in sets.into_iter().flatten().enumerate() {
        let table = folder.path(format!("terms{at}"));
        let make = ["-o", path(&table), "--shingle", "words:1", "--quiet"];
        lookalike("terms").arg(&documents).args(make).succeed();
        let name = format!("pages{at}");
        let service = Service::start(&data, &["--max-body", "64M"]);
        let shown = client(&service, &["create", &name, "--terms", path(&table)]).succeed();
        let terms = &shown.json()["terms"];
        assert!(
            terms["documents"].as_u64() > Some(100) && terms["features"].as_u64() > Some(50),
            "{terms}"
        );
        client(&service, &["insert", &name, path(&documents)]).succeed();
        let flags = [
            "--shingle",
            "words:1",
            "--weight",
            "idf",
            "--terms",
            path(&table),
        ];
        let (expected, scheme) = of_command(&folder, &documents, &flags);
        assert_eq!(of_service(&service, &name), expected);
        assert_eq!(shown.json()["scheme"], scheme.as_str());
        service.stop();
        // The table is read from disk again.
        let service = Service::start(&data, &["--max-body", "64M"]);
        let again = client(&service, &["check", &name, path(&documents)]).succeed();
        for answer in again.lines() {
            let id = answer["id"].as_str().unwrap();
            assert_eq!(answer["fingerprint"], expected[id]);
        }
        // The scheme names the table, so sending it again changes nothing, and leaving it out is an error.
        let create = [
            "create",
            &name,
            "--scheme",
            &scheme,
            "--terms",
            path(&table),
        ];
        client(&service, &create).succeed();
        client(&service, &["create", "other", "--scheme", &scheme])
            .fail(1)
            .says(&["needs a table of terms", "--terms FILE"]);
        let unweighted = lookalike::Scheme::default().to_string();
        let create = [
            "create",
            "other",
            "--scheme",
            &unweighted,
            "--terms",
            path(&table),
        ];
        client(&service, &create).fail(2).says(&[
            "no use for a table of terms",
            "leave --terms out",
            "--scheme",
        ]);
        service.stop();
    }
    let verified = lookalike("store").args(["verify", path(&data)]).succeed();
    assert!(verified.text().contains("pages0"), "{}", verified.text());
}

#[test]
fn another_table_is_another_scheme_and_an_export_is_sketched_anew() {
    let folder = Folder::new();
    let documents = documents(&folder);
    let other = folder.records(
        "other.jsonl",
        &[("a", "one two three"), ("b", "two three four")],
    );
    let [first, second] = ["first", "second"].map(|name| folder.path(name));
    for (table, of) in [(&first, &documents), (&second, &other)] {
        let make = ["-o", path(table), "--shingle", "words:1", "--quiet"];
        lookalike("terms").arg(of).args(make).succeed();
    }
    let service = Service::start(&folder.path("data"), &[]);
    client(
        &service,
        &["create", "old", "--terms", path(&first), "--keep", "texts"],
    )
    .succeed();
    client(&service, &["insert", "old", path(&documents)]).succeed();
    client(
        &service,
        &["create", "old", "--terms", path(&second), "--keep", "texts"],
    )
    .fail(1)
    .says(&[
        "409",
        "terms",
        "client export OLD | lookalike client insert NEW -",
    ]);
    client(&service, &["create", "new", "--terms", path(&second)]).succeed();
    let export = client(&service, &["export", "old"]).succeed();
    let inserted = client(&service, &["insert", "new", "-"]).finish_with(export.text().as_bytes());
    assert_eq!(inserted.lines().len(), 120);
    let flags = [
        "--shingle",
        "words:1",
        "--weight",
        "idf",
        "--terms",
        path(&second),
    ];
    assert_eq!(
        of_service(&service, "new"),
        of_command(&folder, &documents, &flags).0
    );
    // A table is refused if the scheme names another one or has other features.
    let scheme = of_command(&folder, &documents, &flags).1;
    client(
        &service,
        &[
            "create",
            "wrong",
            "--scheme",
            &scheme,
            "--terms",
            path(&first),
        ],
    )
    .fail(1)
    .says(&["needs the table of terms"]);
    client(&service, &["create", "wrong", "--terms", path(&documents)])
        .fail(1)
        .says(&["not a table of terms", "lookalike terms"]);
}

#[test]
fn links_and_anchors_are_features_where_the_scheme_looks_at_them() {
    let folder = Folder::new();
    let documents = documents(&folder);
    let flags = [
        "--shingle",
        "words:2",
        "--fields",
        "anchors:3~5,in-links:1,out-links:2",
    ];
    let (expected, scheme) = of_command(&folder, &documents, &flags);
    let service = Service::start(&folder.path("data"), &[]);
    let create = [
        "create",
        "pages",
        "--scheme",
        &scheme,
        "--keep",
        "texts,signatures",
    ];
    client(&service, &create).succeed();
    client(&service, &["insert", "pages", path(&documents)]).succeed();
    assert_eq!(of_service(&service, "pages"), expected);
    // Equal texts with different links are not copies.
    let text = "the ferry left the harbour at nine with forty people on board";
    let with = json!({"id": "a", "text": text, "anchors": [{"text": "ferry"}], "in_links": ["http://a.example/"]});
    service.pages("insert", &with);
    let same =
        json!({"text": text, "anchors": [{"text": "ferry"}], "in_links": ["http://a.example/"]});
    assert_eq!(service.pages("check", &same)["verdict"], "exact");
    let other =
        json!({"text": text, "anchors": [{"text": "ship"}], "in_links": ["http://a.example/"]});
    assert_ne!(service.pages("check", &other)["verdict"], "exact");
    let near = service.pages("query?verify=true", &same);
    assert_eq!(
        near["neighbours"][0]["verified"]["resemblance"], 1.0,
        "{near}"
    );
    let bare = folder.records("bare.jsonl", &[("x", text)]);
    let warned = client(&service, &["check", "pages", path(&bare)]).succeed();
    warned.says(&["anchors:3~5", "no record has"]);
}

/// A collection of many texts, and the fingerprints that it must have under another scheme.
struct Resketched {
    folder: Folder,
    documents: std::path::PathBuf,
    scheme: String,
    expected: BTreeMap<String, Value>,
}

impl Resketched {
    fn new(count: usize) -> Self {
        let folder = Folder::new();
        let mut numbers = Numbers(11);
        let lines = (0..count).map(|at| {
            let record = json!({"id": format!("d{at}"), "text": numbers.words(60, 2000)});
            format!("{record}\n")
        });
        let documents = folder.add("many.jsonl", lines.collect::<String>());
        let flags = ["--shingle", "words:2", "--mask", "numbers"];
        let (expected, scheme) = of_command(&folder, &documents, &flags);
        Self {
            folder,
            documents,
            scheme,
            expected,
        }
    }

    fn data(&self) -> std::path::PathBuf {
        self.folder.path("data")
    }

    /// Starts a service whose collection `pages` has the texts under the default scheme.
    fn start(&self) -> Service {
        let service = Service::start(&self.data(), &[]);
        client(&service, &["create", "pages", "--keep", "texts", "--quiet"]).succeed();
        client(&service, &["insert", "pages", path(&self.documents)]).succeed();
        service
    }

    fn resketch(&self, service: &Service) -> Value {
        let words = [
            "resketch",
            "pages",
            "--scheme",
            &self.scheme,
            "--radius",
            "6",
            "--wait",
        ];
        client(service, &words).succeed().json()
    }
}

#[test]
fn a_collection_is_sketched_anew_beside_its_traffic() {
    let wanted = Resketched::new(6000);
    let service = wanted.start();
    let (status, begun) = service.ask(
        "POST",
        "/v1/collections/pages/resketch",
        &json!({"scheme": wanted.scheme, "radius": 6}),
    );
    assert_eq!(status, 202, "{begun}");
    // While the job runs, documents are added, removed and changed.
    let mut expected = wanted.expected.clone();
    let mut asked = 0;
    loop {
        let (_, shown) = service.ask("GET", "/v1/collections/pages", &json!({}));
        if shown["resketching"].is_null() {
            assert_eq!(
                (&shown["scheme"], &shown["radius"]),
                (&json!(wanted.scheme), &json!(6))
            );
            break;
        }
        assert_eq!(shown["resketching"]["state"], "running", "{shown}");
        let (gone, moved) = (format!("d{asked}"), format!("d{}", 5999 - asked));
        let source = format!("d{}", 3000 + asked);
        let (status, kept) = service.ask(
            "POST",
            "/v1/collections/pages/get?text=true",
            &json!({"id": source}),
        );
        assert_eq!(status, 200, "{kept}");
        let insert = json!({"id": moved, "text": kept["text"]});
        // The service answers 503 while the collections are exchanged; send the request again, as clients do.
        let both = [("delete", json!({"id": gone})), ("insert", insert)];
        for (operation, body) in both {
            while service
                .try_ask(&format!("/v1/collections/pages/{operation}"), &body)
                .0
                != Some(200)
            {}
        }
        expected.remove(&gone);
        expected.insert(moved, wanted.expected[&source].clone());
        asked += 1;
    }
    assert!(asked > 0, "the job ended before anything was asked");
    assert_eq!(of_service(&service, "pages"), expected);
    let said = service.stop();
    assert!(said.contains("collection-resketched"), "{said}");
    let verified = lookalike("store")
        .args(["verify", path(&wanted.data())])
        .succeed();
    assert!(verified.text().contains("whole"), "{}", verified.text());
}

#[test]
fn a_kill_while_a_collection_is_sketched_anew_leaves_it_whole_and_the_job_can_begin_again() {
    let wanted = Resketched::new(6000);
    let service = wanted.start();
    let before = of_service(&service, "pages");
    let words = ["resketch", "pages", "--scheme", &wanted.scheme];
    let begun = client(&service, &words).succeed().json();
    assert_eq!(begun["resketching"]["state"], "running", "{begun}");
    service.kill();
    let folders = || {
        let read = std::fs::read_dir(wanted.data().join("collections")).unwrap();
        let names = read.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect::<Vec<_>>()
    };
    let service = Service::start(&wanted.data(), &[]);
    assert_eq!(folders(), ["pages"], "what the job left is removed");
    assert_eq!(of_service(&service, "pages"), before);
    let shown = wanted.resketch(&service);
    assert_eq!(shown["scheme"], wanted.scheme.as_str());
    assert_eq!(of_service(&service, "pages"), wanted.expected);
    service.kill();
    let service = Service::start(&wanted.data(), &[]);
    assert_eq!(of_service(&service, "pages"), wanted.expected);
}

/// Returns the metrics of the service.
fn metrics(service: &Service) -> String {
    let mut stream = service.connect();
    let head = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut told = String::new();
    stream.read_to_string(&mut told).unwrap();
    told
}

#[test]
fn a_resketch_that_is_cancelled_leaves_the_collection_as_it_was_and_another_can_begin() {
    let wanted = Resketched::new(6000);
    let service = wanted.start();
    let before = of_service(&service, "pages");
    client(&service, &["resketch", "pages", "--cancel"])
        .fail(1)
        .says(&["no job sketches the collection anew"]);
    let words = ["resketch", "pages", "--scheme", &wanted.scheme];
    let begun = client(&service, &words).succeed().json();
    assert_eq!(begun["resketching"]["state"], "running", "{begun}");
    let words = ["resketch", "pages", "--cancel", "--wait"];
    let shown = client(&service, &words).succeed().json();
    assert_eq!(
        (&shown["resketching"], &shown["radius"]),
        (&Value::Null, &json!(3))
    );
    assert_eq!(of_service(&service, "pages"), before);
    let folders = std::fs::read_dir(wanted.data().join("collections")).unwrap();
    assert_eq!(folders.count(), 1, "what the job made is removed");
    let told = metrics(&service);
    assert!(
        told.contains("lookalike_resketches_total{end=\"cancelled\"} 1"),
        "{told}"
    );
    wanted.resketch(&service);
    assert_eq!(of_service(&service, "pages"), wanted.expected);
    let told = metrics(&service);
    assert!(
        told.contains("lookalike_resketches_total{end=\"done\"} 1"),
        "{told}"
    );
    assert!(service.stop().contains("resketch-cancelled"));
}

#[test]
fn a_resketch_that_cannot_be_done_says_why() {
    let folder = Folder::new();
    let documents = documents(&folder);
    let service = Service::start(&folder.path("data"), &[]);
    let scheme = of_command(&folder, &documents, &["--shingle", "words:2"]).1;
    client(&service, &["create", "bare"]).succeed();
    client(&service, &["resketch", "bare", "--scheme", &scheme])
        .fail(1)
        .says(&["keeps no texts", "create a collection with this scheme"]);
    client(&service, &["resketch", "bare"])
        .fail(2)
        .says(&["nothing would change", "--radius"]);
    client(&service, &["create", "pages", "--keep", "texts"]).succeed();
    service.pages(
        "insert",
        &json!({"id": "x", "fingerprint": "0123456789abcdef"}),
    );
    client(
        &service,
        &["resketch", "pages", "--scheme", &scheme, "--wait"],
    )
    .fail(1)
    .says(&[
        "the collection is unchanged",
        "\"x\" was inserted as a sketch",
        "insert its text",
    ]);
}

/// Writes pages of three sites, each with lines of its own around the text of a page.
fn templates(folder: &Folder) -> std::path::PathBuf {
    let mut numbers = Numbers(23);
    let lines = (0..150).map(|at| {
        let site = at % 3;
        let own = numbers.words(60, 900);
        let text = format!("Home of site {site}\n{own}\nAll rights reserved by {site}\nContact");
        let record = json!({"id": format!("p{at}"), "url": format!("http://{site}.example/{at}"), "text": text});
        format!("{record}\n")
    });
    folder.add("templates.jsonl", lines.collect::<String>())
}

#[test]
fn learned_lines_are_held_by_their_collection_and_left_out_as_by_the_batch() {
    let folder = Folder::new();
    let sets = [
        (Some(templates(&folder)), "site"),
        (corpus("java-api-html/docs.jsonl.gz"), "collection"),
    ];
    let data = folder.path("data");
    for (at, (documents, scope)) in sets.into_iter().enumerate() {
        let Some(documents) = documents else { continue };
        let lines = folder.path(format!("lines{at}"));
        let flags = ["--boilerplate", scope, "--boilerplate-lines", path(&lines)];
        let (expected, scheme) = of_command(&folder, &documents, &flags);
        let plain = of_command(&folder, &documents, &[]).0;
        assert_ne!(expected, plain, "no line was left out");
        let service = Service::start(&data, &["--max-body", "64M"]);
        let name = format!("pages{at}");
        let create = [
            "create",
            &name,
            "--quiet",
            "--boilerplate-lines",
            path(&lines),
            "--keep",
            "texts",
        ];
        let shown = client(&service, &create).succeed().json();
        assert_eq!(shown["scheme"], scheme.as_str());
        assert!(shown["boilerplate"]["lines"].as_u64() > Some(1), "{shown}");
        client(&service, &["insert", &name, path(&documents)]).succeed();
        assert_eq!(of_service(&service, &name), expected);
        service.stop();
        // The lines are read from disk again.
        let service = Service::start(&data, &["--max-body", "64M"]);
        for answer in client(&service, &["check", &name, path(&documents)])
            .succeed()
            .lines()
        {
            let id = answer["id"].as_str().unwrap();
            assert_eq!(answer["fingerprint"], expected[id]);
            let known = ["exact", "same-fingerprint"];
            assert!(
                known.contains(&answer["verdict"].as_str().unwrap()),
                "{answer}"
            );
        }
        service.stop();
    }
    let service = Service::start(&data, &[]);
    client(
        &service,
        &[
            "create",
            "wrong",
            "--boilerplate-lines",
            path(&folder.add("no", "lines")),
        ],
    )
    .fail(1)
    .says(&["not a file of learned lines", "--boilerplate-lines"]);
    lookalike("fingerprint")
        .args([
            path(&templates(&folder)),
            "-o",
            path(&folder.path("x.lkfp")),
        ])
        .args(["--boilerplate-lines", path(&folder.path("y"))])
        .fail(2)
        .says(&[
            "--boilerplate-lines has no effect here",
            "add --boilerplate",
        ]);
}

#[test]
fn a_resketched_public_collection_has_the_fingerprints_of_the_batch() {
    let folder = Folder::new();
    let service = Service::start(&folder.path("data"), &["--max-body", "64M"]);
    for (set, flags) in [
        (
            "de-laws-revisions",
            ["--shingle", "words:3", "--mask", "numbers"],
        ),
        ("zh-laws", ["--shingle", "chars:5", "--normalize", "nfkc"]),
    ] {
        let Some(documents) = corpus(&format!("{set}/docs.jsonl.gz")) else {
            continue;
        };
        let (expected, scheme) = of_command(&folder, &documents, &flags);
        client(&service, &["create", set, "--keep", "texts", "--quiet"]).succeed();
        client(&service, &["insert", set, path(&documents)]).succeed();
        assert_ne!(of_service(&service, set), expected);
        client(&service, &["resketch", set, "--scheme", &scheme, "--wait"]).succeed();
        assert_eq!(of_service(&service, set), expected, "{set}");
    }
}

#[test]
fn a_packed_export_on_standard_input_was_not_unpacked() {
    let folder = Folder::new();
    let service = Service::start(&folder.path("data"), &[]);
    client(&service, &["create", "old", "--keep", "texts", "--quiet"]).succeed();
    client(&service, &["create", "new", "--keep", "texts", "--quiet"]).succeed();
    client(&service, &["insert", "old", path(&documents(&folder))]).succeed();
    let export = client(&service, &["export", "old"]).succeed();
    let (bytes, mut packed) = (export.text().as_bytes(), Vec::new());
    let mut encoder = flate2::write::GzEncoder::new(&mut packed, flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap();
    for bytes in [bytes, &packed] {
        let told = client(&service, &["load", "new", "-"])
            .finish_with(bytes)
            .json();
        assert_eq!(told["loaded"], 120, "{told}");
        let again = client(&service, &["export", "new"]).succeed();
        assert_eq!(again.text(), export.text());
    }
}
