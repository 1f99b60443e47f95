//! `links`: anchors and links become fields of the pages that they point to.

use std::io::Read as _;

use serde_json::{Value, json};

use crate::support::{Finish, Folder, json_lines, lookalike};

fn page(url: &str, html: &str) -> String {
    json!({"url": url, "html": html, "date": "2024-05-18"}).to_string() + "\n"
}

/// Returns three pages of two sites.
fn crawl() -> String {
    page(
        "http://a.example/",
        "<p>All about the <a href='/ferry'>night ferry</a> of the isle.<p><a href=http://b.example/>our friends</a>, \
         <a href='#top'>top</a> <a href='mailto:x@a.example'>mail</a>",
    ) + &page(
        "http://a.example/ferry",
        "<p>It leaves at nine. <a href=.>home</a>",
    ) + &page(
        "HTTP://B.example",
        "<base href='http://a.example/x/'><p>Take <a href='../ferry'>the boat</a> <a href='../nowhere'><img src=i alt=lost></a>",
    )
}

#[test]
fn pages_get_the_anchors_and_links_that_lead_to_them() {
    let folder = Folder::new();
    let input = folder.add("crawl.jsonl", crawl());
    let mut links = lookalike("links");
    let done = links.arg(&input).args(["--window", "2"]).succeed();
    done.says(&["3 records", "5, 4 of them to a record"]);
    let lines = done.lines();
    assert_eq!(lines[0]["date"], "2024-05-18", "other fields stay");
    assert_eq!(
        lines[0]["anchors"],
        json!([{"text": "home", "before": "at nine."}])
    );
    assert_eq!(lines[0]["in_links"], json!(["http://a.example/ferry"]));
    assert_eq!(
        lines[0]["out_links"],
        json!(["http://a.example/ferry", "http://b.example/"])
    );
    let ferry = json!([
        {"text": "night ferry", "before": "about the", "after": "of the"},
        {"text": "the boat", "before": "Take"},
    ]);
    let mut found = lines[1]["anchors"].clone();
    // The alternative text of an image follows the link.
    assert_eq!(found[1]["after"].take(), "lost");
    found[1].as_object_mut().unwrap().remove("after");
    assert_eq!(found, ferry);
    assert_eq!(
        lines[1]["in_links"],
        json!(["http://a.example/", "http://b.example/"])
    );
    assert_eq!(lines[2]["anchors"][0]["text"], "our friends");
    assert_eq!(
        lines[2]["out_links"],
        json!(["http://a.example/ferry", "http://a.example/nowhere"])
    );
    // The output is valid input, both for features of links and for `links` itself.
    let linked = folder.add("linked.jsonl", &done.out);
    let mut fingerprints = lookalike("fingerprint");
    fingerprints
        .arg(&linked)
        .args(["--fields", "anchors:3~2,in-links:1,out-links:1"]);
    assert_eq!(fingerprints.succeed().lines().len(), 3);
    let again = lookalike("links")
        .arg(&linked)
        .args(["--window", "2"])
        .succeed();
    assert_eq!(again.lines(), lines);
}

#[test]
fn links_of_files_lead_to_files() {
    let folder = Folder::new();
    folder.add(
        "site/index.html",
        "<a href='sub/a%20b.html'>one</a> <a href=/etc/passwd>no</a>",
    );
    folder.add("site/sub/a b.html", "<a href=../index.html>home</a>");
    folder.add("site/sub/notes.txt", "plain <a href=a.html>text</a>");
    let mut links = lookalike("links");
    links.arg(folder.path("site"));
    let lines = links.succeed().lines();
    let of = |ending: &str| {
        let is_it = |line: &&Value| line["id"].as_str().unwrap().ends_with(ending);
        lines.iter().find(is_it).unwrap()
    };
    assert_eq!(
        of("a b.html")["anchors"],
        json!([{"text": "one", "after": "no"}])
    );
    assert_eq!(of("index.html")["anchors"], json!([{"text": "home"}]));
    assert_eq!(of("a b.html")["html"], "<a href=../index.html>home</a>");
    assert_eq!(of("notes.txt")["text"], "plain <a href=a.html>text</a>");
    assert_eq!(of("notes.txt")["out_links"], json!([]));
}

/// Metadata has the links of a page, and records with texts have none; the two are combined.
#[test]
fn links_of_metadata_are_credited_to_pages_of_another_file() {
    let folder = Folder::new();
    let pages = [("http://a.example/1", "one"), ("http://a.example/2", "two")];
    let texts = pages.map(|(url, text)| json!({"url": url, "text": text}).to_string() + "\n");
    let texts = folder.add("texts.jsonl", texts.concat());
    let links = json!([
        {"path": "A@/href", "url": "2#x", "text": "the  second"},
        {"path": "A@/href", "url": "/9"},
        {"path": "IMG@/src", "url": "2"},
        {"path": "AREA@/href", "url": "/2", "alt": "the  map"},
    ]);
    let html = json!({"Head": {"Title": "A page"}, "Links": links});
    let block = json!({"Envelope": {"Payload-Metadata": {"HTTP-Response-Metadata": {"HTML-Metadata": html}}}}).to_string();
    let wat = format!(
        "WARC/1.0\r\nWARC-Type: metadata\r\nWARC-Target-URI: http://a.example/1\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{block}\r\n\r\n",
        block.len()
    );
    let wat = folder.add("crawl.wat", wat);
    let mut command = lookalike("links");
    command
        .arg(&texts)
        .arg("--from")
        .arg(&wat)
        .args(["--from-format", "wat"]);
    let lines = command.succeed().lines();
    assert_eq!(
        lines,
        [
            json!({"url": pages[0].0, "text": "one", "anchors": [], "in_links": [], "out_links": ["http://a.example/2", "http://a.example/9"]}),
            json!({"url": pages[1].0, "text": "two", "anchors": [{"text": "the map"}, {"text": "the second"}], "in_links": [pages[0].0], "out_links": []}),
        ]
    );
    // Use the metadata alone.
    let mut alone = lookalike("links");
    alone.arg(&wat).args(["--format", "wat"]);
    let lines = alone.succeed().lines();
    assert_eq!(
        lines[0]["out_links"],
        json!(["http://a.example/2", "http://a.example/9"])
    );
    // Link texts are not in the output, because they become anchors of the target pages.
    assert_eq!(lines[0]["link_texts"], Value::Null);
}

#[test]
fn threads_and_memory_change_no_byte_and_limits_are_told() {
    let folder = Folder::new();
    let crawl: String = (0..400)
        .map(|n: u64| {
            let link = |at: u64| {
                format!(
                    "<p>see <a href=/{}>page {at} of {n}</a> there",
                    (n * 7 + at) % 400
                )
            };
            page(
                &format!("http://a.example/{n}"),
                &(0..20).map(link).collect::<String>(),
            )
        })
        .collect();
    let input = folder.add("crawl.jsonl", crawl);
    let run = |flags: &[&str], name: &str| {
        let output = folder.path(name);
        let mut command = lookalike("links");
        command.arg(&input).args(flags).arg("-o").arg(&output);
        let told = command.succeed();
        (std::fs::read(output).unwrap(), told)
    };
    let (bytes, _) = run(&[], "a.jsonl");
    assert_eq!(json_lines(&bytes).len(), 400);
    for flags in [
        &["--threads", "1"][..],
        &["--threads", "3", "--memory", "80M"],
    ] {
        assert_eq!(run(flags, "b.jsonl").0, bytes, "{flags:?}");
    }
    let (zst, told) = run(&["--most", "5"], "c.jsonl.gz");
    // A link that is left out of two fields is two entries: they were told as more links than there are.
    told.says(&["entries of the fields beyond --most: left out"]);
    let mut text = Vec::new();
    flate2::read::MultiGzDecoder::new(&zst[..])
        .read_to_end(&mut text)
        .unwrap();
    let of_few = json_lines(&text);
    assert!(
        of_few
            .iter()
            .all(|line| line["in_links"].as_array().unwrap().len() == 5)
    );
    // A number that is too small and a table as output are refused.
    let mut tight = lookalike("links");
    tight.arg(&input).args(["--most", "0"]);
    tight.fail(2);
    let mut parquet = lookalike("links");
    parquet.arg(&input).args(["-o", "x.parquet"]);
    parquet.fail(2).says(&["x.parquet", ".jsonl.zst"]);
}

#[test]
fn what_leads_nowhere_and_what_cannot_be_read_is_told() {
    let folder = Folder::new();
    let input = folder.add(
        "in.jsonl",
        "{\"id\":\"urn:x\",\"html\":\"<a href=http://a.example/>x</a>\"}\n{\"url\":\"http://b.example/\",\"html\":\"<a href=c>x</a>\"}\nnot json\n",
    );
    let mut command = lookalike("links");
    command.arg(&input);
    let done = command.lose();
    done.says(&[
        "none of 1 links points to a page of INPUT",
        "1 with neither a URL nor a path",
        "line 3",
    ]);
    assert_eq!(done.lines()[0]["out_links"], json!([]));
    command.arg("--strict").fail(1).says(&["line 3"]);
    let mut long = lookalike("links");
    long.arg(&input).args(["--max-document", "50", "--json"]);
    let err = long.lose().err;
    let summary = err.lines().find(|line| line.starts_with('{')).unwrap();
    let told: Value = serde_json::from_str(summary).unwrap();
    assert_eq!((&told["pages"], &told["too_long"]), (&json!(2), &json!(2)));
}

/// A named field that is empty everywhere is an error, even if another named field has values.
#[test]
fn each_field_that_is_named_must_be_somewhere() {
    let folder = Folder::new();
    let input = folder.add(
        "in.jsonl",
        "{\"id\":\"a\",\"text\":\"one two\",\"anchors\":[\"x\"],\"in_links\":[]}\n{\"id\":\"b\",\"text\":\"three four\"}\n",
    );
    for (command, flags) in [
        ("pairs", &[][..]),
        ("fingerprint", &[]),
        ("dedup", &["-o", "out"]),
    ] {
        let mut run = lookalike(command);
        run.current_dir(folder.path("")).arg(&input).args(flags);
        run.args(["--fields", "anchors:2,in-links:1"]);
        run.fail(1).says(&[
            "non-empty field in_links",
            "fields anchors:2,in-links:1 requires",
            "name one that records have with --fields",
            "anchors, id, in_links, text",
        ]);
    }
    let mut fine = lookalike("pairs");
    fine.arg(&input).args(["--fields", "anchors:2"]).succeed();
}

#[test]
fn a_share_of_losses_was_one_of_the_pages_without_those_of_other_files() {
    let folder = Folder::new();
    let pages = folder.add("pages.jsonl", page("http://a.example/1", "one"));
    let from = page("http://b.example/", "<a href=http://a.example/1>x</a>").repeat(99);
    let from = folder.add("from.jsonl", from + "nonsense\n");
    let mut command = lookalike("links");
    command.arg(&pages).arg("--from").arg(&from);
    command.args(["--max-skipped", "1%"]).succeed();
    // A record with a wrong field is a loss, not two records.
    let wrong = "{\"url\":\"http://c.example/\",\"out_links\":[7]}\n";
    let pages = folder.add("pages.jsonl", page("http://a.example/1", "one") + wrong);
    let mut command = lookalike("links");
    command.arg(&pages).args(["--max-skipped", "40%"]);
    command.fail(1).says(&["1 of 2"]);
}

/// Regression test: one link that was not text silently removed all links of its record.
#[test]
fn a_link_that_is_no_text_took_all_links_of_its_record_with_it() {
    let folder = Folder::new();
    let to = "http://a.example/x";
    let lines = [
        format!(r#"{{"id":"1","url":"{to}"}}"#),
        format!(
            r#"{{"id":"2","url":"http://b.example/","out_links":["{to}","http://c.example/\ud800"]}}"#
        ),
        format!(
            r#"{{"id":"3","url":"http://c.example/","out_links":["{to}",null],"link_texts":["three",null]}}"#
        ),
        format!(
            r#"{{"id":"4","url":"http://d.example/","out_links":["{to}"],"link_texts":["lone \ud800"]}}"#
        ),
        format!(
            r#"{{"id":"5","url":"http://e.example/","\ud800":1,"out_links":["{to}"],"link_texts":["five"]}}"#
        ),
        format!(r#"{{"id":"6","url":"http://f.example/","out_links":"{to}"}}"#),
        format!(r#"{{"id":"7","url":"http://g.example/","out_links":["{to}",7]}}"#),
    ];
    let input = folder.add("in.jsonl", lines.join("\n") + "\n");
    let mut command = lookalike("links");
    let done = command.arg(&input).lose();
    done.says(&["7: the field out_links must hold texts"]);
    let lines = done.lines();
    assert_eq!(lines[0]["in_links"].as_array().unwrap().len(), 6);
    let texts: Vec<_> = lines[0]["anchors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|anchor| &anchor["text"])
        .collect();
    for text in ["three", "lone \u{fffd}", "five"] {
        assert!(texts.contains(&&json!(text)), "{texts:?}");
    }
    assert!(lines[4].get("link_texts").is_none());
}

/// The rest of a record with link fields was serialised again, and a name that occurs twice lost its first value.
#[test]
fn records_that_had_link_fields_lost_repeated_names_and_white_space() {
    let folder = Folder::new();
    let added = "\"anchors\":[],\"in_links\":[],\"out_links\":[]}\n";
    for (record, kept) in [
        (
            "{\"id\": \"q\", \"dup\":1, \"dup\":2 , \"text\":\"x\", \"anchors\":[]}",
            "{\"id\": \"q\", \"dup\":1, \"dup\":2 , \"text\":\"x\",",
        ),
        (
            "{ \"anchors\" : [ ] , \"in_links\":[], \"id\":\"q\",\"out_links\":[], \"\\u0074ext\" : \"x\" }",
            "{ \"id\":\"q\", \"\\u0074ext\" : \"x\",",
        ),
        (
            "{\"id\":\"q\", \"dup\":1, \"dup\":2}",
            "{\"id\":\"q\", \"dup\":1, \"dup\":2,",
        ),
    ] {
        let input = folder.add("in.jsonl", format!("{record}\n"));
        let done = lookalike("links").arg(&input).succeed();
        let out = String::from_utf8(done.out).unwrap();
        assert_eq!(out, format!("{kept}{added}"));
    }
}

#[test]
fn one_text_for_two_links_was_called_1_texts() {
    let folder = Folder::new();
    let input = folder.add(
        "in.jsonl",
        "{\"id\":\"1\",\"url\":\"http://a.example/\",\"out_links\":[\"/b\",\"/c\"],\"link_texts\":[\"b\"]}\n",
    );
    let done = lookalike("links").arg(&input).lose();
    done.says(&["the field link_texts has 1 text for 2 links in out_links"]);
}

#[test]
fn pages_that_were_named_from_beside_their_folder_had_no_links() {
    let folder = Folder::new();
    folder.add("site/a.html", "<p>To <a href='b/c.html'>c</a>");
    folder.add("site/b/c.html", "<p>Back to <a href='../a.html'>a</a>");
    folder.add("other/x.html", "<p>x");
    let mut command = lookalike("links");
    command.current_dir(folder.path("other")).arg("../site");
    let lines = command.succeed().lines();
    assert_eq!(lines[0]["in_links"], json!(["../site/b/c.html"]));
    assert_eq!(lines[1]["in_links"], json!(["../site/a.html"]));
}

/// Regression test: all links were stored with their full addresses, which took 50 seconds and a gigabyte for 200 KB.
#[test]
fn a_long_base_took_the_square_of_its_length() {
    let folder = Folder::new();
    let base = "a/".repeat(60_000);
    let links: String = (0..10_000)
        .map(|at| format!("<a href={at}>y</a>"))
        .collect();
    let html = format!("<base href='http://a.example/{base}'>{links}<a href=/x>x</a>");
    let input = folder.add(
        "in.jsonl",
        page("http://a.example/y", &html) + &page("http://a.example/x", "x"),
    );
    let mut command = lookalike("links");
    command
        .arg(&input)
        .args(["--memory", "64M", "--threads", "1"]);
    assert_eq!(
        command.succeed().lines()[1]["in_links"],
        json!(["http://a.example/y"])
    );
}

#[test]
fn characters_that_are_no_utf_8_were_replaced_without_a_word() {
    let folder = Folder::new();
    let lines = b"{\"url\":\"http://a.example/\",\"html\":\"<p>caf\xe9 au lait\"}\n";
    let input = folder.add("crawl.jsonl", lines);
    let done = lookalike("links").arg(&input).succeed();
    done.says(&["1 with invalid characters"]);
    assert_eq!(done.lines()[0]["html"], "<p>caf\u{fffd} au lait");
    let json = lookalike("links")
        .arg(&input)
        .args(["--json", "-o"])
        .arg(folder.path("out.jsonl"))
        .succeed();
    assert_eq!(json.json()["characters_replaced"], 1);
}
