//! `lookalike overlap`: published counts, brute-force counts of real corpora, refusals.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::{Finish, Finished, Folder, contents, corpus, json_lines, lookalike, record};

/// Rows by their ids: shared chunks, chunks of a, chunks of b.
type Rows = BTreeMap<(String, String), [u64; 3]>;

fn overlap(input: &std::path::Path, flags: &[&str]) -> Finished {
    lookalike("overlap")
        .arg(input)
        .args(["--quiet"])
        .args(flags)
        .succeed()
}

/// Reads the rows, and checks their form and order.
#[track_caller]
fn rows(finished: &Finished) -> Rows {
    let lines = finished.lines();
    let key = |row: &Value| ["a", "b"].map(|end| row[end].as_str().unwrap().to_owned());
    assert!(lines.iter().all(|row| key(row)[0] < key(row)[1]), "a < b");
    assert!(
        lines.is_sorted_by(|x, y| key(x) < key(y)),
        "sorted, each once"
    );
    let number = |row: &Value, name: &str| row[name].as_u64().unwrap();
    for row in &lines {
        let [shared, a, b] =
            ["shared", "chunks_a", "chunks_b"].map(|name| number(row, name) as f64);
        let all = a + b - shared;
        for (name, share) in [
            ("containment_a", shared / a),
            ("containment_b", shared / b),
            ("resemblance", shared / all),
        ] {
            // A number that is read back may be off in its last bit.
            assert!((row[name].as_f64().unwrap() - share).abs() < 1e-12, "{row}");
        }
    }
    let row = |row: &Value| {
        let [a, b] = key(row);
        (
            (a, b),
            ["shared", "chunks_a", "chunks_b"].map(|name| number(row, name)),
        )
    };
    lines.iter().map(row).collect()
}

/// Counts by definition, with sets of strings.
fn naive(
    documents: &[(String, String)],
    chunks: impl Fn(&str) -> BTreeSet<String>,
    least: usize,
) -> Rows {
    let sets: Vec<BTreeSet<String>> = documents.iter().map(|(_, text)| chunks(text)).collect();
    let mut holders: BTreeMap<&String, Vec<usize>> = BTreeMap::new();
    for (number, set) in sets.iter().enumerate() {
        set.iter()
            .for_each(|chunk| holders.entry(chunk).or_default().push(number));
    }
    let mut rows = Rows::new();
    // Numbers of chunks that a document shares with each later one.
    let mut shared = vec![0_u64; documents.len()];
    for (a, set) in sets.iter().enumerate() {
        shared.fill(0);
        for chunk in set {
            for &b in &holders[chunk] {
                shared[b] += 1;
            }
        }
        for b in a + 1..documents.len() {
            if shared[b] > 0 && shared[b] >= least as u64 {
                let swapped = documents[b].0 < documents[a].0;
                let (x, y) = if swapped { (b, a) } else { (a, b) };
                let sizes = [shared[b], sets[x].len() as u64, sets[y].len() as u64];
                rows.insert((documents[x].0.clone(), documents[y].0.clone()), sizes);
            }
        }
    }
    rows
}

fn lines_of(text: &str) -> Vec<&str> {
    let lines = text
        .split('\n')
        .map(|line| line.trim_matches([' ', '\t', '\r', '\x0b', '\x0c']));
    lines.filter(|line| !line.is_empty()).collect()
}

fn documents(path: &std::path::Path) -> Vec<(String, String)> {
    let field = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    json_lines(&contents(path))
        .iter()
        .map(|row| (field(row, "id"), field(row, "text")))
        .collect()
}

#[test]
fn the_published_counts_of_all_184_pairs_to_the_last_digit() {
    let (Some(texts), Some(pairs)) = (
        corpus("webis-s3-pairs/processed.jsonl"),
        corpus("webis-s3-pairs/pairs.jsonl"),
    ) else {
        return;
    };
    let published = json_lines(&contents(&pairs));
    for engine in ["count", "sort"] {
        let flags = ["--chunk", "fields:8:sliding", "--engine", engine];
        let found = rows(&overlap(&texts, &flags));
        for pair in &published {
            let [a, b] = ["a", "b"].map(|end| pair[end].as_str().unwrap().to_owned());
            let counts =
                ["common8", "chunks_a", "chunks_b"].map(|name| pair[name].as_f64().unwrap() as u64);
            assert_eq!(found.get(&(a, b)), Some(&counts), "{pair}");
        }
    }
}

#[test]
fn real_corpora_by_the_definition() {
    for (name, least) in [
        ("mccormick-articles/docs.jsonl", 1),
        ("clough-short-answers/docs.jsonl", 1),
        ("reuters21578/docs.jsonl.gz", 3),
    ] {
        let Some(path) = corpus(name) else { return };
        let documents = documents(&path);
        let pairs_of_lines = |text: &str| {
            lines_of(text)
                .chunks(2)
                .map(|chunk| chunk.join("\n"))
                .collect()
        };
        let expected = naive(&documents, pairs_of_lines, least);
        let threshold = least.to_string();
        for way in [
            &["--engine", "count", "--threads", "1"][..],
            &["--engine", "count", "--threads", "2"],
            &["--engine", "sort", "--threads", "1", "--memory", "40M"],
        ] {
            let flags = [&["--chunk", "lines:2", "--min-shared", &threshold][..], way].concat();
            assert_eq!(rows(&overlap(&path, &flags)), expected, "{name} {way:?}");
        }
    }
}

/// A function that cuts a text into pieces.
type Cut = fn(&str) -> Vec<String>;

fn fields_of(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn words_of(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

fn words_with_case(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

fn characters_of(text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().map(String::from).collect()
}

fn word_characters_of(text: &str) -> Vec<String> {
    words_of(text).concat().chars().map(String::from).collect()
}

fn sentences_of(text: &str) -> Vec<String> {
    // These sentences end with one of two marks, which occur nowhere else.
    let sentences = text.split(['!', '\u{3002}', '\n']).map(str::trim);
    sentences
        .filter(|s| !s.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns runs of parts that begin at every part if `sliding`, otherwise where the last run ended.
fn runs(parts: &[String], length: usize, sliding: bool) -> BTreeSet<String> {
    let starts = match sliding && parts.len() > length {
        true => (0..=parts.len() - length).collect::<Vec<_>>(),
        false => (0..parts.len()).step_by(length).collect(),
    };
    let run = |&start: &usize| parts[start..parts.len().min(start + length)].join("\0");
    starts.iter().map(run).collect()
}

/// Returns documents in two languages that share phrases, with other case, punctuation and white space.
fn spread_phrases() -> Vec<(String, String)> {
    const PHRASES: [&str; 9] = [
        "The ferry left the harbour! ",
        "the FERRY left,  the harbour ",
        "forty people on board\n",
        "\u{7b2c}\u{4e00}\u{6761}\u{4e3a}\u{4e86}\u{7ef4}\u{62a4}\u{6559}\u{80b2}\u{3002}",
        "\u{7b2c}\u{4e8c}\u{6761}\u{ff0c}\u{4e3a}\u{4e86}\u{7ef4}\u{62a4}\u{6559}\u{5b66}\u{3002}\n",
        "nine o clock! at Nine ",
        "a-b c\n\n",
        "no\u{a0}\u{a0}break\u{3000} here\n",
        "\u{c9}t\u{e9} \u{e9}T\u{c9}! ",
    ];
    let mut state = 7_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as usize
    };
    let text = |at: usize, next: &mut dyn FnMut() -> usize| {
        let phrases = (0..3 + at % 5).map(|_| PHRASES[next() % PHRASES.len()]);
        format!("{}own{at}", phrases.collect::<String>())
    };
    (0..60)
        .map(|at| (format!("d{at:02}"), text(at, &mut next)))
        .collect()
}

/// Compares every unit of a chunking with sets of strings.
#[test]
fn every_unit_of_a_chunk_by_the_definition() {
    let folder = Folder::new();
    let documents = spread_phrases();
    let records: Vec<(&str, &str)> = documents
        .iter()
        .map(|(id, text)| (id.as_str(), text.as_str()))
        .collect();
    let input = folder.records("in.jsonl", &records);
    let joined: Cut = |text| vec![text.to_owned()];
    let lines: Cut = |text| lines_of(text).into_iter().map(str::to_owned).collect();
    let paragraphs: Cut = |text| {
        let blank = text.split("\n\n").map(|part| lines_of(part).join("\n"));
        blank.filter(|part| !part.is_empty()).collect()
    };
    let chars = ["--segment", "word-chars"];
    let kept = ["--segment", "word-chars", "--case", "keep"];
    let cases: [(&str, Cut, usize, &[&str]); 14] = [
        ("doc", joined, 1, &[]),
        ("lines:2", lines, 2, &[]),
        ("lines:2:sliding", lines, 2, &[]),
        ("paragraphs", paragraphs, 1, &[]),
        ("sentences", sentences_of, 1, &[]),
        ("fields:3", fields_of, 3, &[]),
        ("fields:3:sliding", fields_of, 3, &[]),
        ("words:1", words_of, 1, &chars),
        ("words:3:sliding", words_of, 3, &chars),
        ("words:2", words_with_case, 2, &kept),
        ("chars:4", characters_of, 4, &[]),
        ("chars:6:sliding", characters_of, 6, &[]),
        ("chars:5:sliding", word_characters_of, 5, &chars),
        ("chars:1", word_characters_of, 1, &chars),
    ];
    for (chunk, cut, length, flags) in cases {
        let chunks = |text: &str| runs(&cut(text), length, chunk.ends_with("sliding"));
        let expected = naive(&documents, chunks, 1);
        assert!(!expected.is_empty() || chunk == "doc", "{chunk}");
        for engine in ["count", "sort"] {
            let flags = [&["--chunk", chunk, "--engine", engine][..], flags].concat();
            assert_eq!(rows(&overlap(&input, &flags)), expected, "{flags:?}");
        }
    }
}

/// Compares with resemblances computed elsewhere, for sets of five consecutive characters.
#[test]
fn chinese_laws_resemble_as_brute_force_says() {
    let (Some(laws), Some(pairs)) = (
        corpus("zh-laws/docs.jsonl.gz"),
        corpus("zh-laws/jaccard_c5.jsonl"),
    ) else {
        return;
    };
    let flags = ["--chunk", "chars:5:sliding", "--segment", "word-chars"];
    let finished = overlap(&laws, &[&flags[..], &["--normalize", "none"]].concat());
    let mut found = BTreeMap::new();
    for row in finished.lines() {
        let [a, b] = ["a", "b"].map(|end| row[end].as_str().unwrap().to_owned());
        found.insert((a, b), row["resemblance"].as_f64().unwrap());
    }
    let known = json_lines(&contents(&pairs));
    for pair in &known {
        let [a, b] = ["a", "b"].map(|end| pair[end].as_str().unwrap().to_owned());
        let resemblance = found[&(a.clone().min(b.clone()), a.max(b))];
        assert!(
            (resemblance - pair["j"].as_f64().unwrap()).abs() < 1e-6,
            "{pair}"
        );
    }
    let similar = found.values().filter(|&&resemblance| resemblance >= 0.3);
    assert_eq!(similar.count(), known.len());
}

#[test]
fn exact_copies_are_listed_or_stand_apart() {
    let folder = Folder::new();
    let input = folder.records(
        "in.jsonl",
        &[
            ("b", "x\ny\n"),
            ("c", "x\ny\n"),
            ("a", "x\ny\n"),
            ("d", "x\nz\n"),
            ("e", " "),
        ],
    );
    let listed = rows(&overlap(&input, &["--chunk", "lines:1"]));
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    let expected = [
        (pair("a", "b"), [2, 2, 2]),
        (pair("a", "c"), [2, 2, 2]),
        (pair("a", "d"), [1, 2, 2]),
        (pair("b", "c"), [2, 2, 2]),
        (pair("b", "d"), [1, 2, 2]),
        (pair("c", "d"), [1, 2, 2]),
    ];
    assert_eq!(listed, Rows::from(expected));
    let apart = rows(&overlap(
        &input,
        &["--chunk", "lines:1", "--copies", "apart"],
    ));
    assert_eq!(apart, Rows::from([(pair("a", "d"), [1, 2, 2])]));
    let most = rows(&overlap(
        &input,
        &["--chunk", "lines:1", "--min-containment", "0.6"],
    ));
    assert_eq!(most.len(), 3);
}

#[test]
fn servers_are_unions_of_their_pages() {
    let page =
        |url: &str, text: &str| format!("{}\n", serde_json::json!({"id": url, "text": text}));
    let folder = Folder::new();
    let input = folder.add(
        "in.jsonl",
        [
            page("http://one.example/1", "a\nb\n"),
            page("http://ONE.example:80/2", "b\nc\n"),
            page("http://two.example/", "a\nc\nd\n"),
            page("http://three.example/", "e"),
            page("no url", "a\nb\nc\n"),
        ]
        .concat(),
    );
    let finished = lookalike("overlap")
        .arg(&input)
        .args(["--by", "server", "--chunk", "lines:1", "--min-shared", "1"])
        .succeed();
    let pair = ("one.example".to_owned(), "two.example".to_owned());
    assert_eq!(rows(&finished), Rows::from([(pair, [2, 3, 3])]));
    finished.says(&["3; 1 document has none"]);
    let none = folder.add("none.jsonl", record("x", "a"));
    lookalike("overlap")
        .arg(&none)
        .args(["--by", "server"])
        .fail(2)
        .says(&["--server", "url"]);
}

/// With `-o` the tables of servers were missing or empty without a word, and `path:N` was answered with advice about a field `url`.
#[test]
fn a_rule_that_finds_no_server_was_accepted_or_blamed_the_urls() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a/x", "one"), ("b/y", "one")]);
    let out = folder.path("atlas");
    let refused = |flags: &[&str], words: &[&str]| {
        let mut command = lookalike("overlap");
        command.arg(&input).arg("-o").arg(&out).args(flags);
        command.fail(2).says(words);
        assert!(!out.exists());
    };
    refused(
        &["--server", "field:host"],
        &["by the rule `field:host`", "--server field:NAME"],
    );
    let fewer = &["more than 2 components, separated by /", "--server"];
    refused(&["--server", "path:2"], fewer);
    refused(&["--server", "path:2", "--by", "server"], fewer);
    let mut command = lookalike("overlap");
    command.arg(&input).arg("-o").arg(&out);
    command.args(["--server", "path:1"]).succeed();
}

#[test]
fn what_means_nothing_is_refused() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", "x")]);
    for (flags, words) in [
        (
            &["--min-shared", "0"][..],
            &["min_shared 0", "use 1 or more", "--min-shared"][..],
        ),
        (&["--chunk", "lines:0"], &["lines:0", "paragraphs"]),
        (&["--chunk", "lines:1,lines:2"], &["-o"]),
        (&["--chunk", "lines:2,lines:2"], &["lines:2 is given twice"]),
        // Not the name of an argument of Python.
        (
            &["--min-shared", "doc=1"],
            &[
                "a minimum of shared chunks is given for doc",
                "--min-shared",
            ],
        ),
        (&["--min-containment", "1.5"], &["1.5", "0 to 1"]),
        (&["--engine", "magic"], &["magic", "sort"]),
        (&["--server", "path:0"], &["path:2"]),
        (&["--bits", "16"], &["32"]),
        (
            &["--chunk", "characters:2"],
            &["characters:2", "chars:N", "fields:N"],
        ),
        (&["--case", "keep"], &["--case", "words:N", "chars:N"]),
        (
            &["--chunk", "fields:2,lines:1", "--fold", "accents"],
            &["--fold", "words:N"],
        ),
    ] {
        lookalike("overlap")
            .arg(&input)
            .args(flags)
            .fail(2)
            .says(words);
    }
}

#[test]
fn nothing_overlaps_with_nothing() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", ""), ("b", " \n"), ("c", "\u{a0}\n")]);
    assert!(overlap(&input, &[]).out.is_empty());
    let empty = folder.add("empty.jsonl", "");
    assert!(
        overlap(&empty, &["--chunk", "words:3:sliding"])
            .out
            .is_empty()
    );
}
