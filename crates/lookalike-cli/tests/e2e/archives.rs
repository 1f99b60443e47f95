//! Web archives and tables, read by the command.

use std::fs;
use std::io::Write;

use serde_json::{Value, json};

use crate::support::{Finish, Folder, STORY, contents, json_lines, lookalike};

/// Returns a record of a web archive.
fn record(kind: &str, url: &str, block: &str) -> Vec<u8> {
    format!(
        "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2024-05-06T07:08:09Z\r\n\
         Content-Type: application/http\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
        block.len()
    )
    .into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn page(text: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<html><body><p>{text}</p>"
    )
}

/// Returns the records of three pages, two of them equal and one near, and the other records that surround them.
fn crawl() -> Vec<Vec<u8>> {
    let far = "the council met on tuesday and talked about the new bridge over the river for hours";
    vec![
        record("warcinfo", "file:///crawl", "software: none"),
        record("request", "http://a.example/1", "GET /1 HTTP/1.1\r\n\r\n"),
        record("response", "http://a.example/1", &page(STORY)),
        record("response", "http://a.example/2", &page(STORY)),
        record("response", "http://a.example/3", &page(far)),
        record(
            "response",
            "http://a.example/4",
            "HTTP/1.1 404 Gone\r\n\r\nnothing",
        ),
        record(
            "response",
            "http://a.example/5",
            "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n\u{1}",
        ),
        record("revisit", "http://a.example/1", ""),
    ]
}

#[test]
fn dedup_of_a_web_archive() {
    let folder = Folder::new();
    let members: Vec<Vec<u8>> = crawl().iter().map(|record| gzip(record)).collect();
    let archive = folder.add("crawl.warc.gz", members.concat());
    let out = folder.path("out");
    lookalike("dedup")
        .arg(&archive)
        .arg("-o")
        .arg(&out)
        .arg("--strict")
        .succeed();

    let kept = json_lines(&contents(&out.join("kept.jsonl.gz")));
    let urls: Vec<&str> = kept
        .iter()
        .map(|line| line["url"].as_str().unwrap())
        .collect();
    assert_eq!(urls, ["http://a.example/1", "http://a.example/3"]);
    assert_eq!(kept[0]["date"], "2024-05-06T07:08:09Z");
    assert_eq!(
        kept[0]["member"],
        json!(members[0].len() + members[1].len())
    );
    assert!(kept[0]["html"].as_str().unwrap().contains(STORY));
    let clusters = json_lines(&fs::read(out.join("clusters.jsonl")).unwrap());
    assert_eq!(clusters[0]["survivor"], "http://a.example/1");
    assert_eq!(clusters[0]["members"][0]["id"], "http://a.example/2");

    let run: Value = serde_json::from_slice(&fs::read(out.join("run.json")).unwrap()).unwrap();
    let count = |kind: &str| {
        let rows = run["skipped"].as_array().unwrap();
        rows.iter()
            .find(|row| row["kind"] == kind)
            .map(|row| row["count"].as_u64().unwrap())
    };
    let kinds = [
        "warcinfo",
        "request",
        "http-status",
        "not-text",
        "revisit",
        "damaged",
    ];
    assert_eq!(
        kinds.map(count),
        [Some(1), Some(1), Some(1), Some(1), Some(1), None]
    );

    // The results can be read as input: every kept document is a copy of itself.
    let again = folder.path("again");
    lookalike("dedup")
        .arg(&archive)
        .arg("-o")
        .arg(&again)
        .arg("--against")
        .arg(&out)
        .succeed();
    assert_eq!(contents(&again.join("kept.jsonl.gz")), b"");
}

#[test]
fn feeds_that_differ_in_all_their_articles_were_exact_copies() {
    let folder = Folder::new();
    let feed = |n: usize, title: &str, words: &str| {
        let block = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/rss+xml\r\n\r\n<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>Radio</title>\
             <link>http://radio.example/</link><language>en</language><item><title>{title}</title><description><![CDATA[{words}]]></description>\
             </item></channel></rss>"
        );
        record("response", &format!("http://radio.example/{n}"), &block)
    };
    let archive = [
        feed(0, "Rail strike ends", "The unions and the railway agreed"),
        feed(1, "Apple harvest", "Farmers expect <b>two tons</b> more"),
    ];
    let archive = folder.add("feeds.warc", archive.concat());
    let out = folder.path("out");
    lookalike("dedup")
        .arg(&archive)
        .arg("-o")
        .arg(&out)
        .succeed();
    assert_eq!(fs::read(out.join("clusters.jsonl")).unwrap(), b"");
    let texts = lookalike("extract").arg(&archive).succeed().lines();
    assert_eq!(
        texts[1]["text"],
        "Radio\nhttp://radio.example/\nen\nApple harvest\nFarmers expect two tons more"
    );
}

#[test]
fn chapters_of_books_behind_an_empty_title_were_empty() {
    let folder = Folder::new();
    let page = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><html xmlns=\"http://www.w3.org/1999/xhtml\"><head><title/>\
                <script src=\"a.js\"/></head><body><p>Text of the chapter.</p></body></html>";
    let chapter = folder.add("a.xhtml", page);
    let texts = lookalike("extract").arg(&chapter).succeed().lines();
    assert_eq!(texts[0]["text"], "Text of the chapter.");
}

#[test]
fn pages_that_the_crawler_cut_off_counted_as_whole() {
    let folder = Folder::new();
    let marked = |field: &str, url: &str| {
        let whole = String::from_utf8(record("response", url, &page(STORY))).unwrap();
        whole.replacen("WARC-Date", &format!("{field}\r\nWARC-Date"), 1)
    };
    let sent = |length: usize, url: &str| {
        let block = page(STORY).replacen(
            "\r\n\r\n",
            &format!("\r\nContent-Length: {length}\r\n\r\n"),
            1,
        );
        String::from_utf8(record("response", url, &block)).unwrap()
    };
    let archive = [
        sent(page(STORY).len(), "http://a.example/1"),
        marked("WARC-Truncated: length", "http://a.example/2"),
        marked("WARC-Segment-Number: 1", "http://a.example/3"),
        // Shorter than what is there: the length before the server's compression was undone.
        sent(10, "http://a.example/4"),
    ];
    let archive = folder.add("crawl.warc", archive.concat());
    let mut command = lookalike("extract");
    let done = command
        .arg(&archive)
        .arg("-o")
        .arg(folder.path("out.jsonl"))
        .arg("--json")
        .succeed();
    let skipped = &done.json()["skipped"];
    assert_eq!(
        (&skipped[0]["kind"], &skipped[0]["count"]),
        (&json!("cut-body"), &json!(3)),
        "{skipped}"
    );
    assert_eq!(skipped[0]["loss"], "none");
}

#[test]
fn strict_stops_at_a_broken_record_and_says_where() {
    let folder = Folder::new();
    let mut bytes = crawl().concat();
    bytes.truncate(bytes.len() - 200);
    let archive = folder.add("crawl.warc", bytes);
    lookalike("pairs").arg(&archive).lose().says(&["1 broken"]);
    lookalike("pairs")
        .arg(&archive)
        .arg("--strict")
        .fail(1)
        .says(&["crawl.warc", "record 4", "it ends after"]);
}

#[test]
fn tables_by_the_names_of_their_columns() {
    let folder = Folder::new();
    let csv =
        format!("key,body\na,\"{STORY}\"\nb,\"{STORY}\"\nc,something else entirely in this row\n");
    let table = folder.add("t.csv", &csv);
    let pairs = |flags: &[&str]| lookalike("pairs").arg(&table).args(flags).succeed().lines();
    let expected = vec![json!({"a": "a", "b": "b", "similarity": 1.0})];
    assert_eq!(pairs(&["--id", "key", "--text", "body"]), expected);
    assert_eq!(pairs(&["--id", "1", "--text", "2"]), expected);
    lookalike("pairs")
        .arg(&table)
        .fail(1)
        .says(&["key", "body"]);
}

#[test]
fn extract_shows_the_texts_and_where_they_come_from() {
    let folder = Folder::new();
    let archive = folder.add("crawl.warc", crawl().concat());
    let mut command = lookalike("extract");
    let done = command.arg(&archive).arg("--threads").arg("2").succeed();
    done.says(&["3 records", "3 UTF-8", "1 revisit", "MB/s"]);
    let lines = done.lines();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[1]["id"], "http://a.example/2");
    assert_eq!(lines[1]["text"].as_str().unwrap().trim(), STORY);
    assert_eq!(
        (&lines[1]["charset"], &lines[1]["record"]),
        (&json!("UTF-8"), &json!(2))
    );

    let file = folder.path("texts.txt.gz");
    let mut command = lookalike("extract");
    command
        .arg(&archive)
        .args(["--output-format", "text", "-o"])
        .arg(&file)
        .arg("--json")
        .succeed();
    let texts = String::from_utf8(contents(&file)).unwrap();
    let texts: Vec<&str> = texts.split("\n\x0c\n").map(str::trim).collect();
    assert_eq!((texts[0], texts.len()), (STORY, 4));
}

#[test]
fn extract_tells_documents_without_text() {
    let folder = Folder::new();
    let long = "long ".repeat(1000);
    let lines =
        format!("{{\"id\":1,\"text\":\"{long}\"}}\n{{\"id\":2}}\n{{\"id\":3,\"text\":\"\"}}\n");
    let input = folder.add("a.jsonl", lines);
    let done = lookalike("extract")
        .arg(&input)
        .args(["--max-document", "1K"])
        .succeed();
    let without: Vec<Value> = done
        .lines()
        .iter()
        .map(|line| line["without"].clone())
        .collect();
    assert_eq!(without, [json!("too-long"), json!("missing"), Value::Null]);
    assert_eq!(done.lines()[2]["text"], "");
}

#[test]
fn pages_that_link_alike_are_found_in_their_metadata() {
    let folder = Folder::new();
    let wat = |n: usize, links: &str| {
        let links: Vec<Value> = links
            .split(' ')
            .map(|url| json!({"path": "A@/href", "url": url, "text": format!("to {url}")}))
            .collect();
        let html = json!({"Head": {"Title": "A page about ferries and tides"}, "Links": links});
        let block = json!({"Envelope": {"Payload-Metadata": {"HTTP-Response-Metadata": {"HTML-Metadata": html}}}});
        let block = block.to_string();
        format!(
            "WARC/1.0\r\nWARC-Type: metadata\r\nWARC-Target-URI: http://a.example/{n}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        )
    };
    let same = "/a /b /c /d /e /f";
    let crawl = [wat(1, same), wat(2, same), wat(3, "/u /v /w /x /y /z")].concat();
    let crawl = folder.add("crawl.warc.wat", crawl);
    lookalike("pairs").arg(&crawl).succeed().says(&[
        "0 records",
        "3 metadata",
        "read as a document in the format wat",
    ]);
    let rows = lookalike("pairs")
        .arg(&crawl)
        .args(["--format", "wat", "--fields", "out-links:1"])
        .succeed()
        .lines();
    let expected = json!({"a": "http://a.example/1", "b": "http://a.example/2", "similarity": 1.0});
    assert_eq!(rows, [expected]);
    // The link texts within a page are not its anchors; those are on the pages that link to it.
    lookalike("pairs")
        .arg(&crawl)
        .args(["--format", "wat", "--fields", "anchors:1"])
        .fail(1)
        .says(&["--fields", "link_texts"]);
}

#[test]
#[cfg(feature = "parquet")]
fn rows_of_parquet_are_records_and_come_out_as_json_lines() {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};

    let folder = Folder::new();
    let path = folder.path("news.parquet");
    let near = format!("{STORY} and more");
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![7, 8, 9]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec![STORY, &near, "of another kind"]));
    let rows = RecordBatch::try_from_iter([("id", numbers), ("text", texts)]).unwrap();
    let file = fs::File::create(&path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, rows.schema(), None).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();

    folder.dedup(&path, &["--output-format", "jsonl"]);
    let mut kept = json_lines(&contents(&folder.path("out/kept.jsonl")));
    kept.sort_by_key(|row| row["id"].to_string());
    assert_eq!(kept[0]["text"], json!(near));
    assert_eq!(kept[1]["text"], json!("of another kind"));
    let removed = json_lines(&contents(&folder.path("out/removed.jsonl")));
    assert_eq!(removed, [json!({"id": 7, "text": STORY})]);
}
