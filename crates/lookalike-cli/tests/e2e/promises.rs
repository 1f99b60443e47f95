//! kept + removed = input, one survivor per cluster, every removal verified: checked on all real corpora that are available.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use lookalike::HtmlMode;
use lookalike_corpus::{InputOptions, Inputs, Parser};
use serde_json::Value;

use crate::results::Document;
use crate::support::{Folder, contents, corpus, examples};

/// Returns the records of a JSONL file by id.
pub(crate) fn documents(bytes: &[u8]) -> BTreeMap<String, Document> {
    let document = |line: &[u8]| {
        let row: Value = serde_json::from_slice(line).unwrap();
        let [id, text] = ["id", "text"].map(|field| row[field].as_str().unwrap().to_owned());
        (
            id,
            Document {
                text,
                line: line.to_vec(),
            },
        )
    };
    bytes
        .split_inclusive(|&byte| byte == b'\n')
        .map(document)
        .collect()
}

/// Runs `dedup` on a real corpus and checks its promises.
#[track_caller]
fn promises_hold(name: &str, flags: &[&str]) {
    let Some(path) = corpus(name) else { return };
    let results = Folder::new().dedup(&path, flags);
    results.obey(&documents(&contents(&path)));
}

#[test]
fn on_news_and_mail() {
    promises_hold("reuters21578/docs.jsonl.gz", &[]);
    promises_hold(
        "newsgroups20/docs.jsonl.gz",
        &["--threshold", "0.4", "--keep", "shortest"],
    );
    promises_hold("mccormick-articles/docs.jsonl", &["--shingle", "words:3"]);
    promises_hold("webis-s3-pairs/docs.jsonl", &["--threshold", "0.6"]);
    promises_hold(
        "clough-short-answers/docs.jsonl",
        &["--threshold", "0.2", "--shingle", "words:2"],
    );
}

#[test]
fn on_dense_families() {
    promises_hold("license-texts/docs.jsonl.gz", &[]);
    promises_hold(
        "license-texts/docs.jsonl.gz",
        &["--threshold", "0.5", "--method", "minhash"],
    );
}

#[test]
fn on_chains_of_revisions() {
    for method in ["allpairs", "minhash", "super-shingle", "simhash", "exact"] {
        promises_hold("de-laws-revisions/docs.jsonl.gz", &["--method", method]);
    }
    promises_hold("de-laws-revisions/docs.jsonl.gz", &["--threshold", "0.95"]);
}

#[test]
fn on_chinese_and_every_script() {
    promises_hold("zh-laws/docs.jsonl.gz", &["--shingle", "chars:5"]);
    promises_hold(
        "zh-articles/docs.jsonl.gz",
        &["--shingle", "chars:9", "--threshold", "0.3"],
    );
    promises_hold(
        "zh-noise/docs.jsonl",
        &["--shingle", "chars:2", "--threshold", "0.3"],
    );
    promises_hold(
        "udhr/docs.jsonl.gz",
        &["--shingle", "chars:5", "--threshold", "0.3"],
    );
}

#[test]
fn on_pages() {
    for set in [
        "java-api-html/docs",
        "manual-versions-html/docs",
        "install-guide-html/docs",
        "wcxb-pages/pages",
    ] {
        promises_hold(&format!("{set}.jsonl.gz"), &["--threshold", "0.7"]);
    }
    promises_hold("article-extraction-benchmark/pages.jsonl.gz", &[]);
}

#[test]
fn on_the_articles_that_come_with_the_repository() {
    let path = examples().join("articles.jsonl");
    let results = Folder::new().dedup(&path, &[]);
    results.obey(&documents(&fs::read(&path).unwrap()));
    assert!(
        results.count("decisions", "removed_exact") > 0
            && results.count("decisions", "removed_near") > 0
    );
}

/// Folders of pages: every file is copied unchanged to `kept/` or to `removed/`.
#[test]
fn on_the_pages_that_come_with_the_repository() {
    let (folder, pages) = (Folder::new(), examples().join("pages"));
    // Compare all visible text, which the test extracts itself.
    let results = folder.dedup(&pages, &["--html", "visible"]);
    let input = read_pages(&pages);
    let mut seen = 0;
    for (lines, tree) in [(&results.kept, "kept"), (&results.removed, "removed")] {
        for line in lines {
            let row: Value = serde_json::from_slice(line).unwrap();
            let (id, file) = (row["id"].as_str().unwrap(), row["file"].as_str().unwrap());
            assert!(file.starts_with(tree), "{file}");
            assert!(
                fs::read(results.folder.join(file)).unwrap() == fs::read(id).unwrap(),
                "{id}"
            );
            seen += 1;
        }
    }
    assert_eq!(
        (
            seen,
            files(&results.folder.join("kept")) + files(&results.folder.join("removed"))
        ),
        (input.len(), seen)
    );
    let lines = results.kept.iter().chain(&results.removed);
    let line_of: BTreeMap<String, Vec<u8>> = lines
        .map(|line| {
            (
                serde_json::from_slice::<Value>(line).unwrap()["id"]
                    .as_str()
                    .unwrap()
                    .to_owned(),
                line.clone(),
            )
        })
        .collect();
    let document = |(id, text): (String, String)| {
        let line = line_of[&id].clone();
        (id, Document { text, line })
    };
    results.obey(&input.into_iter().map(document).collect());
    assert!(
        results.count("decisions", "removed_exact") > 0
            && results.count("decisions", "removed_near") > 0
    );
}

/// Returns ids and texts of the files below a folder.
fn read_pages(folder: &Path) -> Vec<(String, String)> {
    let options = InputOptions::default().html(HtmlMode::Visible.into());
    let spool = Folder::new();
    let inputs = Inputs::discover(&[folder.into()], &options, &spool.path("")).unwrap();
    let (mut parser, mut read) = (Parser::new(&inputs, &options), Vec::new());
    for chunk in inputs.chunks(&options) {
        parser.parse(&chunk.unwrap(), &mut |record| {
            let record = record.unwrap();
            read.push((record.id.into_owned(), record.text.into_owned()));
        });
    }
    read
}

/// Returns the number of files below a folder.
fn files(folder: &Path) -> usize {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .map(|path| if path.is_dir() { files(&path) } else { 1 })
        .sum()
}
