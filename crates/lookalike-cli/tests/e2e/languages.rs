//! Words of single languages: dictionaries, stop words, stems, nouns, language detection.

use std::collections::BTreeMap;

use crate::support::{
    Finish, Folder, Pairs, TRUTH, contents, corpus, json_lines, lookalike, pairs_of,
};

fn pairs(documents: &std::path::Path, flags: &[&str]) -> Pairs {
    let mut command = lookalike("pairs");
    let rows = command.arg(documents).arg("--quiet").args(flags);
    pairs_of(&rows.succeed().lines(), "similarity")
}

/// Returns the pairs of a truth file from a similarity on.
fn truth(name: &str, least: f64) -> Option<Pairs> {
    let mut truth = pairs_of(&json_lines(&contents(&corpus(name)?)), "j");
    truth.retain(|_, j| *j >= least);
    Some(truth)
}

#[test]
fn choices_about_words_are_refused_where_features_are_no_words() {
    let folder = crate::support::Folder::new();
    let input = folder.add("a.txt", "the cat sat on the mat");
    for flags in [
        ["--shingle", "chars:5", "--stop", "en"],
        ["--shingle", "stops:3", "--stem", "en"],
        ["--shingle", "stops:3", "--stop", "de"],
    ] {
        let mut command = lookalike("pairs");
        let refused = command.arg(&input).args(flags).fail(2);
        refused.says(&[flags[2], "no effect", flags[1]]);
    }
}

#[test]
fn no_two_languages_collapse() {
    let Some(documents) = corpus("udhr/docs.jsonl.gz") else {
        return;
    };
    let truth = truth("udhr/jaccard_c5.jsonl", 0.2).unwrap();
    let mut flags = vec!["--shingle", "chars:5", "--threshold", "0.2"];
    flags.extend(TRUTH);
    let found = pairs(&documents, &flags);
    assert!(truth.keys().eq(found.keys()));
    for (pair, j) in &truth {
        assert!((found[pair] - j).abs() <= 1e-6, "{pair:?}");
    }
    // With any other segmentation, every pair at 0.8 has at least 0.5 in the truth, and all documents have features.
    for flags in [
        &["--segment", "languages"][..],
        &["--segment", "languages", "--shingle", "words:2"],
        &["--segment", "languages", "--stop", "auto", "--stem", "auto"],
    ] {
        let folder = Folder::new();
        let results = folder.dedup(&documents, flags);
        assert_eq!(results.count("counts", "documents"), 184);
        assert_eq!(results.count("counts", "without_features"), 0, "{flags:?}");
        for pair in pairs(&documents, flags).keys() {
            assert!(
                truth.get(pair).is_some_and(|j| *j >= 0.5),
                "{flags:?}: {pair:?}"
            );
        }
    }
}

#[test]
fn altered_chinese_copies_are_nearer_by_words_than_by_runs_of_them() {
    let Some(documents) = corpus("zh-noise/docs.jsonl") else {
        return;
    };
    let found = |flags: &[&str]| pairs(&documents, &[flags, &["--threshold", "0.2"]].concat());
    let single = found(&["--segment", "languages", "--shingle", "words:1"]);
    let runs = found(&["--segment", "languages", "--shingle", "words:5"]);
    assert_eq!(single.len(), 15, "all pairs are copies");
    assert!(runs.len() < single.len());
}

#[test]
fn chinese_laws_are_found_by_words() {
    let Some(documents) = corpus("zh-laws/docs.jsonl.gz") else {
        return;
    };
    let truth = truth("zh-laws/jaccard_c5.jsonl", 0.8).unwrap();
    let flags = [
        "--segment",
        "languages",
        "--shingle",
        "words:3",
        "--threshold",
        "0.7",
    ];
    let found = pairs(&documents, &flags);
    let right = truth
        .keys()
        .filter(|pair| found.contains_key(*pair))
        .count();
    assert!(
        right as f64 >= 0.95 * truth.len() as f64,
        "{right} of {}",
        truth.len()
    );
    let near = crate::languages::truth("zh-laws/jaccard_c5.jsonl", 0.6).unwrap();
    assert!(found.keys().all(|pair| near.contains_key(pair)));
}

#[test]
fn schemes_say_what_was_done_to_words() {
    let folder = Folder::new();
    let input = folder.records(
        "in.jsonl",
        &[("1", "The runners were running"), ("2", "a runner runs")],
    );
    let run = |flags: &[&str]| {
        let mut command = lookalike("fingerprint");
        let done = command
            .arg(&input)
            .args(flags)
            .args(["--shingle", "words:1"]);
        let done = done.succeed();
        let scheme = done.err.clone();
        (done.lines(), scheme)
    };
    let (lines, scheme) = run(&["--stop", "en", "--stem", "en"]);
    for part in ["stop=en/stop-words-0.10.1", "stem=en/frostem-2.20261016.1"] {
        assert!(scheme.contains(part), "{scheme}");
    }
    assert_eq!(lines[0]["fingerprint"], lines[1]["fingerprint"]);
    let (lines, _) = run(&[]);
    assert_ne!(lines[0]["fingerprint"], lines[1]["fingerprint"]);
}

#[test]
fn choices_without_effect_are_refused() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("1", "a text")]);
    for (flags, words) in [
        (
            &["--stem", "en", "--shingle", "chars:5"][..],
            &["--stem", "words:N"][..],
        ),
        (&["--nouns", "tagged"], &["--weight tf-length-noun"]),
        (
            &["--weight", "tf-length-noun:0"],
            &["tf-length-noun:N", "from 1 to 255"],
        ),
        (&["--stop", "ja"], &["list of stop words", "en, es"]),
        (&["--stem", "en,de"], &["stemmer", "one of ar"]),
        (&["--segment", "jieba"], &["segmentation", "languages"]),
    ] {
        let mut command = lookalike("fingerprint");
        command.arg(&input).args(flags).fail(2).says(words);
    }
}

#[test]
fn nouns_change_fingerprints_of_y1() {
    let folder = Folder::new();
    let text = "The old engineers quickly repaired every bridge that the rivers had destroyed during spring";
    let input = folder.records("in.jsonl", &[("1", text)]);
    let fingerprint = |weight: &str, flags: &[&str]| {
        let mut command = lookalike("fingerprint");
        command.arg(&input).args(["--weight", weight]);
        command.args(["--shingle", "words:1", "--quiet"]);
        command.args(flags).succeed().lines()[0]["fingerprint"].clone()
    };
    let tagged = &["--nouns", "tagged"];
    let by_length = fingerprint("tf-length-noun", tagged);
    assert_ne!(fingerprint("tf-length-noun", &[]), by_length);
    assert_ne!(fingerprint("tf-length-noun:9", tagged), by_length);
    assert_eq!(
        fingerprint("tf-length-noun:1", tagged),
        by_length,
        "14 words: 1"
    );
}

#[test]
fn extract_tells_languages() {
    let folder = Folder::new();
    let input = folder.records(
        "in.jsonl",
        &[
            ("de", "Alle Menschen sind frei und gleich an W\u{fc}rde und Rechten geboren."),
            ("fr", "Tous les \u{ea}tres humains naissent libres et \u{e9}gaux en dignit\u{e9} et en droits."),
            ("none", "17 0x3f"),
            ("empty", " "),
        ],
    );
    let mut command = lookalike("extract");
    let done = command.arg(&input).arg("--language").succeed();
    let lines = done.lines();
    let found: Vec<_> = lines
        .iter()
        .map(|line| line.get("language").cloned())
        .collect();
    assert_eq!(found, [Some("de".into()), Some("fr".into()), None, None]);
    done.says(&["1 de", "1 fr", "1 unknown"]);
    let plain = lookalike("extract").arg(&input).succeed();
    assert!(
        plain
            .lines()
            .iter()
            .all(|line| line.get("language").is_none())
    );
}

#[test]
fn what_extract_tells_is_a_category() {
    let folder = Folder::new();
    let german = "Alle Menschen sind frei und gleich an W\u{fc}rde und Rechten geboren";
    // The same numbers follow a German and a French heading, so the texts are similar but not in the same language.
    let numbers: String = (100..180).map(|number| format!("{number} ")).collect();
    let german_list = format!("{german}. {numbers}");
    let french_list =
        format!("Tous les \u{ea}tres humains naissent libres et \u{e9}gaux en droits. {numbers}");
    let more_german = format!("{german_list} und mehr");
    let input = folder.records(
        "in.jsonl",
        &[
            ("a", &german_list),
            ("b", &french_list),
            ("c", &more_german),
        ],
    );
    let texts = folder.path("texts.jsonl.zst");
    let mut command = lookalike("extract");
    command
        .arg(&input)
        .args(["--language", "-o"])
        .arg(&texts)
        .succeed();
    let found = |flags: &[&str]| pairs(&texts, &[&["--threshold", "0.6"], flags].concat()).len();
    assert_eq!(found(&[]), 3);
    assert_eq!(found(&["--within", "language"]), 1);
}

/// Nearly all texts in languages that have a code here are recognised, and few texts in other languages are taken for one of them.
#[test]
fn languages_of_the_declaration() {
    let Some(documents) = corpus("udhr/docs.jsonl.gz") else {
        return;
    };
    let known: BTreeMap<String, &str> = lookalike::Language::all()
        .map(|language| (language.code3().to_owned(), language.code()))
        .collect();
    let mut command = lookalike("extract");
    let lines = command
        .arg(&documents)
        .args(["--language", "--quiet"])
        .succeed()
        .lines();
    let (mut right, mut wrong, mut silent, mut others, mut taken) = (0, 0, 0, 0, 0);
    for line in &lines {
        let id = line["id"].as_str().unwrap();
        let language = line.get("language").and_then(|code| code.as_str());
        match (known.get(id.split('_').next().unwrap()), language) {
            (Some(code), Some(found)) if found == *code => right += 1,
            (Some(_), Some(_)) => wrong += 1,
            (Some(_), None) => silent += 1,
            (None, found) => {
                others += 1;
                taken += usize::from(found.is_some());
            }
        }
    }
    let counts = format!(
        "right {right}, wrong {wrong}, silent {silent}; {taken} of {others} others taken for one"
    );
    assert!(right >= 9 * (wrong + silent), "{counts}");
    assert!(wrong <= 3, "{counts}");
    assert!(taken <= 54 && others == 149, "{counts}");
}
