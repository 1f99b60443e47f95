//! Options that have no effect say so: with an error if the command line decides it, with a warning if the data do.

use serde_json::json;

use crate::support::{Finish, Folder, STORY, lookalike};

const NO_HTML: &str = "had no effect: none of the documents read is HTML";

#[test]
fn options_for_html_say_when_there_is_none() {
    let folder = Folder::new();
    let far = "the council met on tuesday and talked about the new bridge over the river for hours";
    let near = format!("{STORY} again");
    let input = folder.records("in.jsonl", &[("a", STORY), ("b", &near), ("c", far)]);
    let pages = [("a", STORY), ("b", &near)];
    let pages = pages.map(|(id, text)| format!("{}\n", json!({"id": id, "html": text})));
    let pages = folder.add("pages.jsonl", pages.concat());
    let [dedup, atlas, terms, pairs] = ["dedup", "atlas", "terms", "drawn.jsonl"].map(|name| {
        let path = folder.path(name);
        path.to_str().unwrap().to_owned()
    });
    let commands: [&[&str]; 8] = [
        &["dedup", "-o", &dedup, "--overwrite"],
        &["pairs"],
        &["extract"],
        &["fingerprint"],
        &["terms", "-o", &terms],
        &["overlap"],
        &["overlap", "-o", &atlas, "--overwrite"],
        &["evaluate", "sample", "-o", &pairs],
    ];
    for command in commands {
        let run = |input: &std::path::Path, flags: &[&str]| {
            let (name, more) = command.split_first().unwrap();
            let mut run = lookalike(name);
            run.args(more).arg(input).args(flags).succeed()
        };
        let flags = ["--html", "main", "--html-title"];
        run(&input, &flags).says(&["--html, --html-title", NO_HTML]);
        assert!(!run(&pages, &flags).err.contains(NO_HTML), "{command:?}");
        assert!(!run(&input, &[]).err.contains(NO_HTML), "{command:?}");
        let quiet = run(&input, &["--html-alt", "--quiet"]);
        assert!(quiet.err.is_empty(), "{command:?}: {}", quiet.err);
    }
    let mut explain = lookalike("explain");
    explain.args(["a", "c", "--html-links", "--in"]).arg(&input);
    explain.succeed().says(&["--html-links", NO_HTML]);
    let mut pairs = lookalike("pairs");
    pairs.arg(&input).args(["--format", "text", "--html-title"]);
    pairs
        .fail(2)
        .says(&["--html-title has no effect", "--format text"]);
}

#[test]
fn the_part_of_a_page_is_known_in_every_container() {
    let folder = Folder::new();
    let page = format!("<html><body><p>{STORY}</p></body></html>");
    folder.add("page.html", &page);
    folder.add("rows.csv", format!("id,html\n1,{page}\n"));
    folder.add("array.json", json!([{"id": "1", "html": page}]).to_string());
    let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{page}");
    let record = format!(
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/\r\nContent-Type: application/http\r\n\
         Content-Length: {}\r\n\r\n{block}\r\n\r\n",
        block.len()
    );
    folder.add("crawl.warc", record);
    for name in ["page.html", "rows.csv", "array.json", "crawl.warc"] {
        let mut extract = lookalike("extract");
        extract.arg(folder.path(name)).arg("--html-title");
        let done = extract.succeed();
        assert!(!done.err.contains(NO_HTML), "{name}: {}", done.err);
    }
}

#[test]
fn boilerplate_says_when_no_line_recurs() {
    let folder = Folder::new();
    let page = |number: usize| {
        let url = format!("https://a.example/{number}");
        let text = format!("a line of page {number} and of no other\nand another, the {number}th");
        format!("{}\n", json!({"url": url, "text": text}))
    };
    let input = folder.add("in.jsonl", (0..20).map(page).collect::<String>());
    for scope in ["site", "collection"] {
        let run = |flags: &[&str]| {
            let mut pairs = lookalike("pairs");
            pairs.arg(&input).args(["--boilerplate", scope]);
            pairs.args(flags).succeed()
        };
        run(&[]).says(&[
            &format!("--boilerplate {scope} has no effect"),
            "no line is on",
        ]);
        assert!(run(&["--quiet"]).err.is_empty());
    }
}

#[test]
fn a_collection_that_is_there_keeps_its_radius_and_scheme() {
    let folder = Folder::new();
    let codes = folder.add("codes.u64", 7_u64.to_le_bytes());
    let load = |flags: &[&str]| {
        let mut load = lookalike("store");
        load.arg("load").arg(folder.path("data")).arg("pages");
        load.arg(&codes).args(flags);
        load
    };
    let scheme = lookalike::Scheme::default().to_string();
    let scheme = scheme.replace("sketch=none", "sketch=simhash:64");
    let other = scheme.replace("words:5", "words:3");
    load(&["--radius", "5", "--scheme", &scheme]).succeed();
    // The settings of the collection may be repeated or left out.
    load(&["--radius", "5", "--scheme", &scheme]).succeed();
    load(&[]).succeed();
    let words = ["has no effect here: the collection pages already exists"];
    load(&["--radius", "3"])
        .fail(2)
        .says(&words)
        .says(&["with radius 5"]);
    let refused = load(&["--scheme", &other]).fail(2);
    refused
        .says(&words)
        .says(&["shingle (words:5 and words:3)"]);
}

#[test]
fn options_for_labels_of_another_kind_say_so() {
    let folder = Folder::new();
    let far = "the council met on tuesday and talked about the new bridge over the river for hours";
    let input = folder.records("in.jsonl", &[("a", STORY), ("b", STORY), ("c", far)]);
    let pair = |b: &str, label: u32| json!({"a": "a", "b": b, "label": label});
    let pairs = folder.add(
        "pairs.jsonl",
        format!("{}\n{}\n", pair("b", 1), pair("c", 0)),
    );
    let cluster = |id: &str, cluster: u32| json!({"id": id, "cluster": cluster});
    let lines = [cluster("a", 1), cluster("b", 1), cluster("c", 2)].map(|line| format!("{line}\n"));
    let clusters = folder.add("clusters.jsonl", lines.concat());
    let run = |labels: &std::path::Path, flags: &[&str]| {
        let mut labelled = lookalike("evaluate");
        labelled
            .arg("labels")
            .arg(&input)
            .arg("--labels")
            .arg(labels);
        labelled.args(flags).succeed()
    };
    run(&pairs, &["--cut", "0.5"]).says(&["--cut has no effect", "labelled pairs"]);
    run(&clusters, &["--positive", "2"]).says(&["--positive has no effect", "holds clusters"]);
    for done in [
        run(&pairs, &["--positive", "1"]),
        run(&clusters, &["--cut", "0.5"]),
        run(&pairs, &["--cut", "0.5", "--quiet"]),
    ] {
        assert!(!done.err.contains("has no effect"), "{}", done.err);
    }
}
