//! PDF files, read by the command.

use std::io::Read;
use std::path::Path;

use serde_json::json;

use crate::support::{Finish, Folder, fixture, json_lines, lookalike, pairs_of};

#[test]
fn the_same_document_by_different_producers_is_a_pair_and_leaves_as_it_came() {
    let folder = Folder::new();
    for name in ["story.pdf", "packed.pdf", "scripts.pdf", "locked.pdf"] {
        folder.add(
            Path::new("in").join(name),
            std::fs::read(fixture(name)).unwrap(),
        );
    }
    let text = lookalike("extract")
        .arg(fixture("story.pdf"))
        .args(["--quiet", "--output-format", "text"])
        .succeed();
    let lines = text.text().replace("\n\n", "|").replace('\n', " ");
    let words = lines.replace(['|', '\u{c}'], " ");
    folder.add("in/story.txt", words);
    let rows = lookalike("pairs")
        .arg(folder.path("in"))
        .arg("--quiet")
        .lose()
        .lines();
    assert_eq!(pairs_of(&rows, "similarity").len(), 3, "{rows:?}");
    let out = folder.path("out");
    lookalike("dedup")
        .arg(folder.path("in"))
        .arg("-o")
        .arg(&out)
        .lose()
        .says(&["conversion"]);
    let skipped = json_lines(&std::fs::read(out.join("skipped.jsonl")).unwrap());
    assert_eq!(skipped.len(), 1);
    assert!(
        skipped[0]["reason"]
            .as_str()
            .unwrap()
            .contains("encrypted with a password")
    );
    let removed = json_lines(&std::fs::read(out.join("removed.jsonl")).unwrap());
    assert_eq!(removed.len(), 2, "{removed:?}");
    let file = removed
        .iter()
        .filter_map(|row| row["file"].as_str())
        .find(|file| file.ends_with(".pdf"));
    let copied = std::fs::read(out.join(file.unwrap())).unwrap();
    assert!(
        ["story.pdf", "packed.pdf"]
            .iter()
            .any(|name| std::fs::read(fixture(name)).unwrap() == copied)
    );
}

#[test]
fn a_pdf_that_was_crawled_meets_the_file_and_leaves_with_its_place() {
    let folder = Folder::new();
    let story = std::fs::read(fixture("story.pdf")).unwrap();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n";
    let mut crawl = format!(
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/s.pdf\r\nContent-Length: {}\r\n\r\n{head}",
        head.len() + story.len()
    )
    .into_bytes();
    crawl.extend(&story);
    crawl.extend(b"\r\n\r\n");
    let crawl = folder.add("in/crawl.warc", crawl);
    let file = folder.add("in/story.pdf", &story);
    let rows = lookalike("pairs").arg(&crawl).arg(&file).succeed().lines();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(
        (&rows[0]["b"], &rows[0]["similarity"]),
        (&json!("http://a.example/s.pdf"), &json!(1.0))
    );
    let results = folder.dedup(&crawl, &[]);
    assert_eq!(results.kept.len(), 1);
    let kept = &json_lines(&std::fs::read(folder.path("out/kept.jsonl")).unwrap())[0];
    assert_eq!(
        (&kept["mime"], &kept["offset"]),
        (&json!("application/pdf"), &json!(0))
    );
    assert_eq!(kept.get("text"), None);
}

#[test]
fn damage_is_told_without_a_panic_and_strict_stops_at_it() {
    let folder = Folder::new();
    folder.add("in/a.pdf", "%PDF-1.7 and nothing else");
    folder.add("in/b.txt", "a text");
    let done = lookalike("pairs").arg(folder.path("in")).lose();
    done.says(&["conversion", "a.pdf", "not a PDF, or damaged"]);
    assert!(!done.err.contains("panicked"), "{}", done.err);
    let mut strict = lookalike("pairs");
    strict
        .arg(folder.path("in"))
        .arg("--strict")
        .fail(1)
        .says(&["a.pdf", "not a PDF, or damaged"]);
}

/// Returns forms that each draw the next one ten times, with nothing visible and hardly an end.
fn nested_forms(depth: usize) -> Vec<u8> {
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
    ];
    let stream = |dictionary: &str, body: &str| {
        format!(
            "<< {dictionary} /Length {} >>\nstream\n{body}\nendstream",
            body.len()
        )
    };
    let next = |number: usize| format!("/Resources << /XObject << /X {number} 0 R >> >>");
    objects.push(format!(
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 100 100] {} /Contents 4 0 R >>",
        next(5)
    ));
    objects.push(stream("", &"/X Do ".repeat(10)));
    for level in 0..depth {
        let form = format!(
            "/Type /XObject /Subtype /Form /BBox [0 0 100 100] {}",
            next(6 + level)
        );
        objects.push(stream(&form, &"/X Do ".repeat(10)));
    }
    objects.push(stream(
        "/Type /XObject /Subtype /Form /BBox [0 0 1 1]",
        "0 0 m",
    ));
    let objects: Vec<Vec<u8>> = objects.into_iter().map(String::into_bytes).collect();
    assembled(&objects)
}

/// Returns a file of these objects, numbered from 1; the first is the catalog.
fn assembled(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (number, object) in (1..).zip(objects) {
        places.push(file.len());
        file.extend(format!("{number} 0 obj\n").bytes());
        file.extend(object);
        file.extend(b"\nendobj\n");
    }
    let table = file.len();
    file.extend(format!("xref\n0 {}\n0000000000 65535 f \n", places.len() + 1).bytes());
    for place in &places {
        file.extend(format!("{place:010} 00000 n \n").bytes());
    }
    let size = places.len() + 1;
    file.extend(
        format!("trailer << /Size {size} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF").bytes(),
    );
    file
}

/// Returns pages that all have the same contents; object 3 is a stream of 16 MiB of spaces.
fn pages_of(number: usize, contents: &str) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::copy(&mut std::io::repeat(b' ').take(16 << 20), &mut encoder).unwrap();
    let packed = encoder.finish().unwrap();
    let pages: Vec<String> = (4..4 + number).map(|n| format!("{n} 0 R")).collect();
    let mut stream = format!(
        "<< /Filter /FlateDecode /Length {} >>\nstream\n",
        packed.len()
    )
    .into_bytes();
    stream.extend(packed);
    stream.extend(b"\nendstream");
    let mut objects = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        format!(
            "<< /Type /Pages /Kids [{}] /Count {number} >>",
            pages.join(" ")
        )
        .into_bytes(),
        stream,
    ];
    let page =
        format!("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 100 100] /Contents {contents} >>");
    objects.extend(vec![page.into_bytes(); number]);
    assembled(&objects)
}

/// Regression test: each page kept its contents in memory to the end, 1.5 GB for 98 KB.
#[test]
fn pages_that_share_a_stream_hold_it_once() {
    let folder = Folder::new();
    folder.add("in/shared.pdf", pages_of(40, "3 0 R"));
    folder.add(
        "in/repeated.pdf",
        pages_of(1, &format!("[{}]", "3 0 R ".repeat(40))),
    );
    folder.add("in/a.txt", "a text beside them, which is read");
    let run = lookalike("dedup")
        .arg(folder.path("in"))
        .arg("-o")
        .arg(folder.path("out"))
        .args(["--memory", "64M", "--pdf-limit", "100", "--json"])
        .lose()
        .json();
    let peak = run["measured"]["peak_memory"].as_u64().unwrap();
    assert!(peak < 400 << 20, "{peak}");
    let skipped = json_lines(&std::fs::read(folder.path("out/skipped.jsonl")).unwrap());
    assert_eq!(skipped.len(), 1, "{skipped:?}");
    assert_eq!(
        skipped[0]["reason"],
        "the streams of one of its pages grow to more than 128 MiB together"
    );
}

#[test]
fn a_small_pdf_costs_no_more_than_its_size_allows() {
    let folder = Folder::new();
    folder.add("in/forms.pdf", nested_forms(12));
    folder.add("in/a.txt", "a text beside it, which is read");
    let extract = |flags: &[&str], late: &str| {
        let clock = std::time::Instant::now();
        let mut command = lookalike("extract");
        let done = command.arg(folder.path("in")).args(flags).lose();
        assert_eq!(done.lines().len(), 1);
        done.says(&["forms.pdf", late, "--pdf-limit"]);
        // On a machine that does other things.
        assert!(clock.elapsed().as_secs() < 60);
    };
    let mut strict = lookalike("extract");
    strict
        .arg(folder.path("in"))
        .args(["--strict", "--pdf-limit", "1"]);
    strict.fail(1).says(&[
        "forms.pdf",
        "takes longer than",
        "more time with --pdf-limit SECONDS",
    ]);
    extract(&["--pdf-limit", "1"], "takes longer than 1 s");
    extract(&[], "takes longer than 5 s");
}
