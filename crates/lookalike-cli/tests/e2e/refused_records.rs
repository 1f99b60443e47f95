//! Records that a collection refuses: each is lost alone.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::serve::{Service, client};
use crate::support::{Finish as _, Folder, examples, lookalike, path, record};

/// Returns the ids of a collection, in order.
fn stored(service: &Service, name: &str) -> Vec<Value> {
    let exported = client(service, &["export", name]).succeed().lines();
    exported.iter().map(|line| line["id"].clone()).collect()
}

/// Writes records of which only `a`, `b` and `c` are accepted.
fn records(folder: &Folder) -> std::path::PathBuf {
    let lines = [
        record("a", "one two"),
        record("", "nothing"),
        record("b", "three four"),
        record(&format!("http://a.example/{}", "x".repeat(3000)), "five"),
        // This record alone is larger than a request may be.
        record("large", &"a text ".repeat(10 << 17)),
        record("c", "six seven"),
    ];
    folder.add("in.jsonl", lines.concat())
}

#[test]
fn one_record_without_an_id_ended_the_whole_command() {
    let folder = Folder::new();
    let input = records(&folder);
    let service = Service::start(&folder.path("data"), &[]);
    for (name, operation) in [("inserted", "insert"), ("checked", "check-and-insert")] {
        client(&service, &["create", name]).succeed();
        let words = [operation, name, path(&input)];
        let done = client(&service, &words).lose();
        done.says(&["3 records", "in.jsonl, record 2: the id is empty"]);
        // Not only the first one.
        done.says(&["in.jsonl, record 4: ", "in.jsonl, record 5: "]);
        let ids: Vec<Value> = done.lines().iter().map(|line| line["id"].clone()).collect();
        assert_eq!(ids, ["a", "b", "c"]);
        assert_eq!(stored(&service, name), ["a", "b", "c"]);
        let limited = |most| [&words[..], &["--max-skipped", most]].concat();
        client(&service, &limited("3")).succeed();
        client(&service, &limited("2")).fail(1).says(&["record"]);
        let strict = format!("{name}-strict");
        client(&service, &["create", &strict]).succeed();
        client(&service, &[operation, &strict, path(&input), "--strict"])
            .fail(1)
            .says(&["in.jsonl, record 2"]);
        assert_eq!(stored(&service, &strict), ["a"]);
    }
    // Checks store nothing, so they need no ids.
    let checked = client(&service, &["check", "inserted", path(&input)]).lose();
    checked.says(&["1 record", "in.jsonl, record 5: the body is larger than"]);
    assert_eq!(checked.lines().len(), 5);
}

#[test]
fn one_line_of_an_export_that_was_refused_ended_its_load() {
    let folder = Folder::new();
    let service = Service::start(&folder.path("data"), &[]);
    client(&service, &["create", "pages"]).succeed();
    let line = |id: &str, metadata: Value| {
        json!({"id": id, "expires_ms": null, "fingerprint": "00000000000000ff", "metadata": metadata})
            .to_string()
    };
    let lines = [
        line("a", json!(1)),
        line("", json!(1)),
        line("b", json!(1)),
        line("long", json!("x".repeat(2000))),
        "nonsense".to_owned(),
        r#"{"id":5,"expires_ms":null,"fingerprint":null}"#.to_owned(),
        line("c", json!(1)),
    ];
    let export = folder.add("export.jsonl", lines.join("\n"));
    for batch in ["100", "2"] {
        let words = ["load", "pages", path(&export), "--batch", batch];
        let done = client(&service, &words).lose();
        done.says(&["4 records", "export.jsonl, line"]);
        let summary = done.json();
        assert_eq!(summary["loaded"], 3, "{summary}");
        let rows = summary["skipped"].as_array().unwrap().iter();
        let rows: Vec<_> = rows.map(|row| (&row["kind"], &row["count"])).collect();
        assert_eq!(
            rows,
            [
                (&json!("invalid-json"), &json!(1)),
                (&json!("refused"), &json!(3))
            ]
        );
        assert_eq!(stored(&service, "pages"), ["a", "b", "c"]);
    }
    let strict = ["load", "pages", path(&export), "--strict", "--batch", "2"];
    client(&service, &strict)
        .fail(1)
        .says(&["export.jsonl, line 2"]);
    // If a collection refuses all records, the message blames the collection.
    client(&service, &["create", "sites", "--within", "language"]).succeed();
    let sound = folder.add("sound.jsonl", [&lines[0], "\n", &lines[2]].concat());
    client(&service, &["load", "sites", path(&sound)])
        .fail(1)
        .says(&["refused all", "sound.jsonl, line 1", "compares categories"]);
}

#[test]
fn rows_without_a_sketch_were_in_no_count_of_a_load() {
    let folder = Folder::new();
    let codes = [
        json!("0000000000000001"),
        json!(null),
        json!("0000000000000003"),
        json!(null),
    ];
    let codes = codes.iter().enumerate();
    let lines =
        codes.map(|(id, code)| format!("{}\n", json!({"id": id.to_string(), "fingerprint": code})));
    let codes = folder.add("codes.jsonl", lines.collect::<String>());
    let data = folder.path("data");
    let counts = |summary: &Value| {
        [
            summary["loaded"].clone(),
            summary["without_features"].clone(),
        ]
    };
    let mut load = lookalike("store");
    load.args(["load", path(&data), "pages", path(&codes)]);
    assert_eq!(counts(&load.succeed().json()), [2, 2]);
    let service = Service::start(&data, &[]);
    client(&service, &["create", "network"]).succeed();
    let loaded = client(&service, &["load", "network", path(&codes)]).succeed();
    assert_eq!(counts(&loaded.json()), [2, 2]);
    let mut build = lookalike("index");
    build
        .arg("build")
        .arg(&codes)
        .arg("-o")
        .arg(folder.path("index"));
    build.succeed().says(&["2 null: texts without features"]);
}

/// Regression test: the service could neither return nor delete such documents, and they could not be loaded elsewhere.
#[test]
fn a_store_was_loaded_with_ids_that_no_service_takes() {
    let folder = Folder::new();
    let line = |id: &str, code: u64| {
        format!(
            "{}\n",
            json!({"id": id, "fingerprint": format!("{code:016x}")})
        )
    };
    let lines = [
        line("a", 1),
        line(&"x".repeat(3000), 1 << 20),
        line(&"y".repeat(2048), 1 << 30),
        line("", 1 << 40),
        line("b", 1 << 50),
    ];
    let codes = folder.add("codes.jsonl", lines.concat());
    let data = folder.path("data");
    let load = |flags: &[&str]| {
        let mut command = lookalike("store");
        command.args(["load", path(&data), "pages", path(&codes)]);
        command.args(flags);
        command
    };
    let told = ["codes.jsonl, fingerprint 2: the id has 3000 bytes"];
    load(&["--strict"]).fail(1).says(&told);
    load(&["--max-skipped", "2"]).succeed();
    let done = load(&[]).lose();
    done.says(&["2 records", told[0]]);
    let summary = done.json();
    assert_eq!(
        (&summary["loaded"], &summary["documents"]),
        (&json!(3), &json!(3))
    );
    assert_eq!(summary["skipped"][0]["kind"], "id");

    let service = Service::start(&data, &[]);
    client(&service, &["create", "network"]).succeed();
    let loaded = client(&service, &["load", "network", path(&codes)]).lose();
    loaded.says(&told);
    assert_eq!(loaded.json()["loaded"], 3);
    client(&service, &["load", "network", path(&codes), "--strict"])
        .fail(1)
        .says(&told);
    let longest = "y".repeat(2048);
    for name in ["pages", "network"] {
        assert_eq!(stored(&service, name), ["a", &longest, "b"]);
        let deleted = client(&service, &["delete", name, &longest]).succeed();
        assert_eq!(deleted.json()["existed"], true);
    }
}

/// Returns the crawler of the guide.
fn crawler() -> String {
    let guide = examples().join("../docs/how-to/client.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let blocks = guide.split("```python\n").skip(1);
    let mut blocks = blocks.filter_map(|block| block.split("```").next());
    let crawler = blocks.find(|block| block.contains("def crawl("));
    crawler.expect("it is in the guide").to_owned()
}

/// Every page links to all of them, itself included; the crawler followed such links without end.
#[test]
fn the_crawler_of_the_guide_ended_at_the_second_page_without_text() {
    let folder = Folder::new();
    let service = Service::start(&folder.path("data"), &[]);
    client(&service, &["create", "pages"]).succeed();
    let story = format!("<p>{}</p>", crate::support::STORY);
    let pages = json!({
        "a": "<img src='a.png'>", "b": "<img src='b.png'>", "c": "<p>!!!</p>", "d": "<p>!!!</p>",
        "e": story, "f": story,
    });
    let driver = format!(
        "pages, kept = json.loads({:?}), []\n\
         crawl(list(pages), pages.get, lambda url, page, copy_of=None: kept.append([url, copy_of]), lambda page: list(pages))\n\
         print(json.dumps(kept))\n",
        pages.to_string()
    );
    let address = service.address.to_string();
    let script = crawler().replace("localhost:7280", &address) + &driver;
    let script = folder.add("crawl.py", script);
    let crawled = Command::new("python3").arg(Path::new(&script)).succeed();
    assert_eq!(
        crawled.json(),
        json!([
            ["a", null],
            ["b", null],
            ["c", null],
            ["d", "c"],
            ["e", null],
            ["f", "e"]
        ])
    );
}
