//! Small files that are large when decompressed: each affects only itself, is counted, and is never held in memory.

use std::io::Write;

use crate::support::{Finish, Folder, STORY, json_lines, lookalike, record};

const MIB: usize = 1 << 20;

/// Compresses `before`, `mebibytes` MiB of spaces, and `after` as separate gzip members; a GiB takes a MB.
fn gzip(before: &[u8], mebibytes: usize, after: &[u8]) -> Vec<u8> {
    let member = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let piece = member(&vec![b' '; 16 * MIB]).repeat(mebibytes / 16);
    [member(before), piece, member(after)].concat()
}

/// Compresses the same parts as zstd frames; a GiB takes some 30 KB.
fn frames(before: &[u8], mebibytes: usize, after: &[u8]) -> Vec<u8> {
    let frame = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
    let piece = frame(&vec![b' '; 16 * MIB]).repeat(mebibytes / 16);
    [frame(before), piece, frame(after)].concat()
}

/// Returns a record of a web archive whose body is compressed.
fn packed_page(url: &str, body: &[u8]) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n";
    let record = format!(
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nContent-Length: {}\r\n\r\n{head}",
        head.len() + body.len()
    );
    [record.as_bytes(), body, b"\r\n\r\n"].concat()
}

#[test]
fn row_10_bombs_and_a_line_of_a_gigabyte_are_counted_and_the_rest_is_read() {
    let folder = Folder::new();
    let story = record("before", STORY);
    let line = format!("{story}{{\"id\":\"long\",\"text\":\"");
    let after = format!("\"}}\n{}", record("after", STORY));
    folder.add(
        "in/a.jsonl.gz",
        gzip(line.as_bytes(), 1024, after.as_bytes()),
    );
    folder.add(
        "in/b.jsonl.zst",
        frames(line.as_bytes(), 1024, after.as_bytes()),
    );
    folder.add("in/c.txt.gz", gzip(STORY.as_bytes(), 1024, b""));
    folder.add("in/d.txt.zst", frames(STORY.as_bytes(), 1024, b""));
    let bomb = gzip(b"<p>", 512, b"");
    let page = gzip(format!("<p>{STORY}").as_bytes(), 0, b"");
    let crawl = [
        packed_page("http://a.example/bomb", &bomb),
        packed_page("http://a.example/page", &page),
    ];
    folder.add("in/e.warc", crawl.concat());
    // Add a bomb of few bytes, and one bomb within another.
    let spaces = vec![b' '; 128 * MIB];
    folder.add("in/g.txt.zst", zstd::encode_all(&spaces[..], 3).unwrap());
    folder.add("in/f.txt.gz", gzip(&frames(b"", 4096, b""), 256, b""));
    let out = folder.path("out");
    let done = lookalike("dedup")
        .arg(folder.path("in"))
        .arg("-o")
        .arg(&out)
        .args(["--memory", "64M", "--compress", "zst", "--json"])
        .lose();
    let run = done.json();
    let peak = run["measured"]["peak_memory"].as_u64().unwrap();
    assert!(peak < 256 << 20, "{peak}");
    // Five texts are exact copies: two of each stream of lines, and one page. The two lines of a gigabyte have equal bytes.
    assert_eq!(run["decisions"]["removed_exact"], 5, "{run}");
    let skipped = json_lines(&std::fs::read(out.join("skipped.jsonl")).unwrap());
    let mut kinds: Vec<&str> = skipped
        .iter()
        .filter_map(|row| row["kind"].as_str())
        .collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["binary", "bomb"]);
    assert_eq!(run["counts"]["too_long"], 5, "{run}");
}

/// Found by fuzzing: eight bytes of a 1,939-byte header made the reader allocate two gigabytes.
#[test]
#[cfg(feature = "parquet")]
fn row_10_a_parquet_page_that_says_it_is_huge_is_not_unpacked_and_other_row_groups_are_read() {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;
    use parquet::basic::{Compression, ZstdLevel};
    use parquet::file::properties::WriterProperties;

    let folder = Folder::new();
    let path = folder.path("in.parquet");
    let group = |text: &str| {
        let text: ArrayRef = Arc::new(StringArray::from(vec![text]));
        RecordBatch::try_from_iter([("text", text)]).unwrap()
    };
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .build();
    let file = std::fs::File::create(&path).unwrap();
    let schema = group("").schema();
    let mut writer = ArrowWriter::try_new(file, schema, Some(properties)).unwrap();
    for text in [STORY, &" ".repeat(300 * MIB), "of another kind"] {
        writer.write(&group(text)).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
    let done = lookalike("dedup")
        .arg(&path)
        .args(["--memory", "64M", "--json", "--output-format", "jsonl"])
        .arg("-o")
        .arg(folder.path("out"))
        .lose();
    let run = done.json();
    let peak = run["measured"]["peak_memory"].as_u64().unwrap();
    assert!(peak < 128 << 20, "{peak}");
    assert_eq!(run["decisions"]["kept"], 2, "{run}");
    let skipped = json_lines(&std::fs::read(folder.path("out/skipped.jsonl")).unwrap());
    assert_eq!(skipped.len(), 1, "{skipped:?}");
    assert_eq!(skipped[0]["kind"], "damaged");
    let reason = skipped[0]["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("row group 2: ") && reason.contains("says that it comes to 3145728"),
        "{reason}"
    );
}
