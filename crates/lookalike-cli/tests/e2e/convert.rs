//! `--convert`: files of other formats are converted to text by a command.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Finish, Folder, STORY, lookalike, pairs_of};

/// Returns the rows of `skipped.jsonl` or of a summary with this kind.
fn of_kind<'v>(rows: &'v [Value], kind: &str) -> Vec<&'v Value> {
    rows.iter().filter(|row| row["kind"] == kind).collect()
}

fn backwards(text: &str) -> String {
    text.chars().rev().collect()
}

#[test]
fn converted_files_are_compared_by_their_text_and_kept_as_they_are() {
    let folder = Folder::new();
    // Use a made-up format: the text in reverse after a byte that no text has.
    let packed = |text: &str| format!("\0{}", backwards(text));
    folder.add("in/a.BACK", packed(STORY));
    folder.add("in/b.txt", STORY);
    folder.add(
        "in/c.back",
        packed(&"another story of another ferry on another sea ".repeat(3)),
    );
    let reverse = "import sys; sys.stdout.write(sys.stdin.read()[:0:-1])";
    let convert = format!(".back=python3 -c '{reverse}'");
    let results = folder.dedup(&folder.path("in"), &["--convert", &convert]);
    assert_eq!(results.kept.len(), 2, "{:?}", results.kept);
    let kept = std::fs::read(folder.path("out/kept/in/c.back"));
    let anywhere = |name: &str| {
        let found = walk(&folder.path("out"));
        found.iter().any(|path| path.ends_with(name))
    };
    assert!(kept.is_ok_and(|kept| kept[0] == 0) || anywhere("c.back"));
    // Without the converter the file is not text.
    let refused = lookalike("pairs").arg(folder.path("in/c.back")).fail(1);
    refused.says(&["c.back", "binary"]);
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let below = |path: std::path::PathBuf| match path.is_dir() {
        true => walk(&path),
        false => vec![path],
    };
    entries.flat_map(below).collect()
}

#[test]
fn a_path_in_place_of_braces_compressed_files_and_html() {
    let folder = Folder::new();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gz, STORY.as_bytes()).unwrap();
    folder.add("a.doc.gz", gz.finish().unwrap());
    folder.add("b.page", format!("<html><script>1<2</script><p>{STORY}"));
    let rows = lookalike("extract")
        .args([folder.path("a.doc.gz"), folder.path("b.page")])
        .args([
            "--quiet",
            "--convert",
            ".doc=head -c 1000 {}",
            "--convert",
            ".page=cat",
        ])
        .succeed()
        .lines();
    assert_eq!(rows[0]["text"], STORY);
    assert_eq!(rows[1]["text"], STORY);
    assert_eq!(rows[0]["charset"], "UTF-8");
    let explained = lookalike("explain")
        .args([folder.path("a.doc.gz"), folder.path("b.page")])
        .args(["--json", "--convert", ".doc=cat", "--convert", ".page=cat"])
        .succeed();
    assert_eq!(explained.json()["equal_text"], true);
}

#[test]
fn what_fails_is_counted_with_its_reason_and_the_rest_goes_on() {
    let folder = Folder::new();
    folder.add("in/bad.ps", "%!PS");
    folder.add("in/slow.ps", "wait");
    folder.add("in/endless.ps", "flood");
    folder.add("in/good.txt", STORY);
    folder.add("in/twin.ps", STORY);
    let script = "read word rest; case $word in %!PS) echo no fonts >&2; exit 7;; wait) sleep 100 | cat;; \
                  flood) yes;; *) echo $word $rest;; esac";
    let convert = format!(".ps=sh -c '{script}'");
    let flags = [
        "--convert",
        &convert,
        "--convert-limit",
        "1",
        "--max-document",
        "1M",
    ];
    let start = Instant::now();
    let run = |command: &str, more: &[&str]| {
        let mut command = lookalike(command);
        command.arg(folder.path("in")).args(flags).args(more);
        command
    };
    let pairs = pairs_of(&run("pairs", &["--quiet"]).lose().lines(), "similarity");
    assert_eq!(pairs.len(), 1, "{pairs:?}");
    let out = folder.path("out");
    run("dedup", &["-o", out.to_str().unwrap()])
        .lose()
        .says(&["conversion"]);
    let skipped = crate::support::json_lines(&std::fs::read(out.join("skipped.jsonl")).unwrap());
    let failed = of_kind(&skipped, "conversion");
    let reason = |name: &str| {
        let row = failed
            .iter()
            .find(|row| row["source"].as_str().unwrap().ends_with(name));
        row.unwrap()["reason"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        reason("bad.ps"),
        "the converter `sh` failed: exit status: 7: no fonts"
    );
    assert_eq!(
        reason("slow.ps"),
        "the converter `sh` took longer than 1 s and was killed"
    );
    assert_eq!(failed.len(), 2);
    let texts = run("extract", &["--quiet"]).lose().lines();
    let endless = texts
        .iter()
        .find(|row| row["id"].as_str().unwrap().ends_with("endless.ps"));
    assert_eq!(endless.unwrap()["without"], "too-long");
    run("extract", &["--strict"])
        .fail(1)
        .says(&["bad.ps", "no fonts"]);
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_command_that_is_not_there_is_refused_before_anything_is_read() {
    let folder = Folder::new();
    folder.add("a.ps", "x");
    let fail = |convert: &str| {
        let mut command = lookalike("pairs");
        command
            .arg(folder.path("a.ps"))
            .args(["--convert", convert])
            .fail(2)
    };
    fail(".ps=no-such-program-here -").says(&["no program `no-such-program-here`", "install it"]);
    fail("ps2ascii").says(&["no `=`", ".ps=ps2ascii"]);
}
