//! `explain`: its answers must agree with the results of jobs.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{Finish, Finished, Folder, STORY, examples, lookalike};

fn pages() -> [PathBuf; 2] {
    let page = |name: &str| examples().join("pages/en").join(name);
    [
        page("harbour-clock.html"),
        page("harbour-clock-revised.html"),
    ]
}

fn explain(flags: &[&str]) -> Finished {
    lookalike("explain").args(pages()).args(flags).succeed()
}

/// With every method, `explain` says that a pair is found if and only if `pairs` reports it.
#[test]
fn a_pair_is_found_if_and_only_if_the_job_finds_it() {
    let folder = Folder::new();
    let terms = folder.path("words.terms");
    lookalike("terms")
        .args(pages())
        .arg("-o")
        .arg(&terms)
        .succeed();
    let terms = terms.to_str().unwrap();
    let cases: [&[&str]; 19] = [
        &["--method", "allpairs"],
        &["--method", "allpairs", "--threshold", "0.99"],
        &["--method", "exact"],
        &["--method", "minhash"],
        &[
            "--method",
            "minhash",
            "--functions",
            "16",
            "--recall",
            "0.2",
            "--threshold",
            "0.6",
        ],
        &["--method", "oph"],
        &["--method", "b-bit"],
        &["--method", "super-shingle"],
        &["--method", "super-shingle", "--equal", "6"],
        &["--method", "simhash", "--distance", "16"],
        &["--method", "simhash", "--distance", "0"],
        &[
            "--method",
            "simhash",
            "--distance",
            "6",
            "--shingle",
            "words:1",
            "--weight",
            "tf",
        ],
        &["--method", "henzinger", "--distance", "12"],
        &["--method", "mod-p", "--size", "4"],
        &["--method", "mod-p", "--size", "255"],
        &["--method", "winnow"],
        &["--method", "i-match", "--terms", terms],
        &["--method", "buckets", "--size", "64"],
        &["--method", "buckets", "--equal", "8"],
    ];
    let mut both = [0, 0];
    for flags in cases {
        let told = explain(&[flags, &["--json"]].concat()).json();
        let mut pairs = lookalike("pairs");
        pairs.args(pages()).args(flags).arg("-q");
        let found = pairs.succeed().lines();
        assert_eq!(
            told["found"]["found"],
            !found.is_empty(),
            "{flags:?}: {told}"
        );
        both[usize::from(!found.is_empty())] += 1;
        if let Some(row) = found.first() {
            assert_eq!(row["similarity"], told["resemblance"]);
            if !row["distance"].is_null() {
                assert_eq!(row["distance"], told["simhash"]["distance"]);
            }
        }
    }
    assert!(both[0] >= 4 && both[1] >= 8, "{both:?}");
}

#[test]
fn features_bits_and_super_shingles_are_told_and_bounded() {
    let row = explain(&["--json", "--list", "3"]).json();
    let count = |kind: &str| row[kind]["count"].as_u64().unwrap();
    assert_eq!(count("shared_features"), row["shared"].as_u64().unwrap());
    assert_eq!(
        count("shared_features") + count("only_a"),
        row["features_a"].as_u64().unwrap()
    );
    for kind in ["shared_features", "only_a", "only_b"] {
        let listed = row[kind]["listed"].as_array().unwrap();
        assert_eq!(listed.len(), 3);
        for feature in listed {
            let words = feature["text"].as_str().unwrap().split(' ').count();
            assert_eq!(words, 5, "{feature}");
            let times = |side: &str| feature[side].as_u64().unwrap() > 0;
            assert_eq!(
                (times("times_a"), times("times_b")),
                (kind != "only_b", kind != "only_a")
            );
        }
    }
    let bits = &row["simhash"];
    let value = |side: &str| u64::from_str_radix(bits[side].as_str().unwrap(), 16).unwrap();
    assert_eq!(
        (value("a") ^ value("b")).count_ones() as u64,
        bits["distance"].as_u64().unwrap()
    );
    let marked = bits["differing"].as_array().unwrap();
    let marked = marked
        .iter()
        .fold(0_u64, |all, bit| all | 1 << (63 - bit.as_u64().unwrap()));
    assert_eq!(marked, value("a") ^ value("b"));
    assert_eq!(row["super_shingles"]["groups"].as_array().unwrap().len(), 6);

    let text = explain(&["--list", "3"]);
    for words in [
        "features of both",
        ", the first 3",
        "bits differ",
        "\n    6  ",
        "allpairs finds the pair",
        "places agree",
    ] {
        assert!(text.text().contains(words), "{words}: {}", text.text());
    }
    assert!(!text.text().contains('\x1b'));
    let banded = explain(&["--method", "minhash"]);
    assert!(
        banded.text().contains("of 25 bands of 5: 1"),
        "{}",
        banded.text()
    );
    // An option that asks for colour takes precedence over the environment.
    let colored = explain(&["--color", "always"]);
    assert!(colored.text().contains("\x1b[31m- ") && colored.text().contains("\x1b[7m"));
    let mut forced = lookalike("explain");
    forced
        .args(pages())
        .args(["--color", "always"])
        .env("NO_COLOR", "1");
    assert!(forced.succeed().text().contains("\x1b[31m"));
}

#[test]
fn a_page_of_its_own() {
    let folder = Folder::new();
    let page = folder.path("why.html");
    let path = page.to_str().unwrap();
    let done = explain(&["--method", "simhash", "--distance", "8", "--page", path]);
    assert!(
        !done.text().contains("\n- "),
        "the differences are on the page"
    );
    let html = std::fs::read_to_string(&page).unwrap();
    for words in [
        "<mark>",
        "<ins>",
        "<del>",
        "In the first only",
        "8 may",
        "Super-shingles",
    ] {
        assert!(html.contains(words), "{words}");
    }
    assert!(!html.contains("<script") && !html.contains("http://") && !html.contains("https://"));
    let nowhere = folder.path("no/such/folder.html");
    let mut command = lookalike("explain");
    command.args(pages()).arg("--page").arg(nowhere);
    command.fail(1).says(&["folder.html", "name another file"]);
}

#[test]
fn hostile_ids_and_words_reach_no_terminal_and_no_page() {
    let folder = Folder::new();
    let id = "<script>alert(1)</script>\u{1b}[31m";
    let text = format!("{STORY} <img src=x onerror=alert(2)> \u{202e}{STORY}");
    let input = folder.records("in.jsonl", &[(id, &*text), ("b", &*format!("{text} more"))]);
    let page = folder.path("why.html");
    let mut command = lookalike("explain");
    command.args([id, "b", "--shingle", "chars:30", "--in"]);
    let told = command.arg(&input).succeed();
    assert!(!told.text().contains('\x1b') && !told.text().contains('\u{202e}'));
    command.arg("--page").arg(&page).succeed();
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(!html.contains("<script") && !html.contains("<img") && !html.contains('\u{202e}'));
}

#[test]
fn texts_without_words_and_equal_ones() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY), ("b", "..."), ("c", STORY)]);
    let told = |a: &str, b: &str| -> Value {
        let mut command = lookalike("explain");
        command.args([a, b, "--json", "--method", "simhash", "--in"]);
        command.arg(&input).succeed().json()
    };
    let none = told("a", "b");
    assert_eq!(
        (&none["found"]["found"], &none["simhash"]),
        (&Value::from(false), &Value::Null)
    );
    assert_eq!(none["only_b"]["count"], 0);
    let equal = told("a", "c");
    assert_eq!(
        (&equal["found"]["found"], &equal["found"]["chance"]),
        (&Value::from(true), &Value::from(1.0))
    );
    let mut command = lookalike("explain");
    command
        .args(["a", "b", "--threshold", "7", "--in"])
        .arg(&input);
    command.fail(2).says(&["threshold 7"]);
}

#[test]
fn a_record_without_a_text_was_explained_as_an_empty_one() {
    let folder = Folder::new();
    let lines = [
        "{\"id\":\"a\",\"text\":\"a text\"}",
        "{\"id\":\"b\",\"body\":\"its text\"}",
        "{\"id\":\"c\",\"text\":null}",
        "{\"id\":\"d\",\"text\":\"\"}",
    ];
    let input = folder.add("in.jsonl", lines.join("\n"));
    let explained = |b: &str| {
        let mut command = lookalike("explain");
        command.args(["a", b, "--in"]).arg(&input);
        command
    };
    for id in ["b", "c"] {
        let why = format!("{id}: it has no text");
        explained(id)
            .fail(1)
            .says(&[&why, "name the field of the text with --text"]);
    }
    explained("d").succeed();
}

#[test]
fn empty_texts_were_explained_as_copies() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", ""), ("b", "")]);
    let mut command = lookalike("explain");
    command.args(["a", "b", "--json", "--in"]).arg(&input);
    let told = command.succeed().json();
    for field in ["/equal_text", "/near_duplicates", "/found/found"] {
        assert_eq!(told.pointer(field), Some(&Value::Bool(false)), "{field}");
    }
    assert_eq!(folder.dedup(&input, &[]).kept_ids(), ["a", "b"]);
}

/// Regression test: jobs number records with the same id by their contents, so that the order of the input does not matter.
#[test]
fn another_record_was_explained_than_the_job_had_numbered() {
    let folder = Folder::new();
    let line = |more: &str| format!("{{\"id\":\"p\",\"text\":\"{STORY}{more}\"}}\n");
    let lines = ["", " and more", " and more and still more of it"].map(line);
    for order in [[0, 1, 2], [0, 2, 1], [1, 2, 0], [2, 1, 0]] {
        let input = folder.add("in.jsonl", order.map(|at| lines[at].as_str()).concat());
        let mut pairs = lookalike("pairs");
        let pairs = pairs.arg(&input).args(["--threshold", "0.5"]).succeed();
        assert_eq!(pairs.lines().len(), 3);
        for pair in pairs.lines() {
            let id = |side: &str| pair[side].as_str().expect("an id").to_owned();
            let mut command = lookalike("explain");
            let told = command
                .args([&id("a"), &id("b"), "--json", "--in"])
                .arg(&input)
                .succeed()
                .json();
            assert_eq!(told["resemblance"], pair["similarity"], "{order:?}");
        }
    }
}

/// Records must be read as the job read them, and found by the ids that the job gave them.
#[test]
fn a_pair_that_was_listed_could_not_be_explained() {
    let folder = Folder::new();
    let line = |text: &str| format!("{{\"key\":\"p\",\"body\":\"{text}\"}}\n");
    let other = line("words of another page").replace("\"p\"", "\"q\"");
    let input = folder.add("in.jsonl", line(STORY) + &other + &line(STORY));
    let read = ["--id", "key", "--text", "body"];
    let mut pairs = lookalike("pairs");
    let found = pairs.arg(&input).args(read).succeed().lines();
    assert_eq!(
        (&found[0]["a"], &found[0]["b"]),
        (&"p".into(), &"p#2".into())
    );
    let explained = |b: &str| {
        let mut command = lookalike("explain");
        command
            .args(["p", b, "--json", "--in"])
            .arg(&input)
            .args(read);
        command
    };
    assert_eq!(explained("p#2").succeed().json()["resemblance"], 1.0);
    explained("p#3")
        .fail(1)
        .says(&["no record of --in has the id \"p#3\""]);
}

/// The second `a` is numbered `a#2`, which another record has as its own id, so one of both is numbered again.
#[test]
fn an_id_that_was_numbered_twice_was_not_found() {
    let folder = Folder::new();
    let records = [
        ("a", "first one"),
        ("a", "second two"),
        ("a#2", "third"),
        ("a", "first one"),
    ];
    let input = folder.records("in.jsonl", &records);
    let results = folder.dedup(&input, &[]);
    let found = fs::read_to_string(results.folder.join("pairs.jsonl")).unwrap();
    let pair: Value = serde_json::from_str(found.lines().next().unwrap()).unwrap();
    let id = |name: &str| pair[name].as_str().unwrap().to_owned();
    assert_eq!((&*id("a"), &*id("b")), ("a#2#2", "a#3"));
    let explained = |a: &str, b: &str| {
        let mut command = lookalike("explain");
        command.args([a, b, "--json", "--in"]).arg(&input);
        command
    };
    let same = explained("a#2#2", "a#3").succeed().json();
    assert_eq!(same["resemblance"], 1.0);
    // The four ids of the job lead to four records; two of them have equal texts.
    for other in ["a", "a#2"] {
        let told = explained("a#2#2", other).succeed().json();
        assert_ne!(told["resemblance"], 1.0, "{other}");
    }
    assert_ne!(explained("a", "a#2").succeed().json()["resemblance"], 1.0);
    for absent in ["a#4", "a#02", "a#2#3", "a#3#2"] {
        let refused = explained("a", absent).fail(1);
        refused.says(&["no record of --in has the id"]);
    }
}

/// Returns the output of `explain` for two files, as text and as JSON.
fn explained(texts: [&str; 2]) -> (String, Value) {
    let folder = Folder::new();
    let files =
        [("a.txt", texts[0]), ("b.txt", texts[1])].map(|(name, text)| folder.add(name, text));
    let explain = |flags: &[&str]| lookalike("explain").args(&files).args(flags).succeed();
    (explain(&[]).text().to_owned(), explain(&["--json"]).json())
}

#[test]
fn two_empty_texts_were_told_that_they_might_be_copies() {
    let (said, row) = explained(["", "\n"]);
    let verdict = "not comparable: both texts are empty, and an empty text is never a duplicate\n";
    assert!(said.starts_with(verdict), "{said}");
    assert_eq!(
        (&row["empty_texts"], &row["equal_text"]),
        (&Value::Bool(true), &Value::Bool(false))
    );
}

#[test]
fn equal_texts_without_words_were_found_with_no_chance() {
    let (said, row) = explained(["!!!", "!!!"]);
    assert!(said.starts_with("exact copies"), "{said}");
    assert!(said.contains("(0 features)"), "{said}");
    assert_eq!(row["found"]["chance"], 1.0);
    assert_eq!(row["found"]["chance_of"], "as the texts are equal");
    let (said, _) = explained(["one", "!!!"]);
    assert!(said.contains("(1 feature)"), "{said}");
}

#[test]
fn equal_texts_were_found_for_a_reason_that_the_sketch_denied() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", "a b"), ("b", "a b"), ("c", "a  b")]);
    let explain = |other: &str, method: &str| -> Value {
        let mut command = lookalike("explain");
        command.args(["a", other, "--json", "--method", method, "--in"]);
        command.arg(&input).succeed().json()
    };
    for method in ["mod-p", "buckets", "simhash", "exact", "allpairs"] {
        let because = &explain("b", method)["found"]["because"];
        assert_eq!(because, "every method finds equal texts", "{method}");
    }
    // One feature is in one bucket, and the method needs two.
    let found = &explain("c", "buckets")["found"];
    assert_eq!(
        (&found["found"], &found["chance"]),
        (&json!(false), &json!(0.0))
    );
}

#[test]
fn a_document_was_explained_in_place_of_an_earlier_one_of_its_id() {
    let folder = Folder::new();
    let (old, new) = ("one two three four", "one two three five six");
    folder.records("old.jsonl", &[("p", old), ("q", "else")]);
    folder.records("new.jsonl", &[("p", new)]);
    let explained = |words: &[&str]| {
        let mut command = lookalike("explain");
        command.current_dir(folder.path("")).args(words);
        command.args(["--shingle", "words:1", "--json"]).succeed()
    };
    let earlier = explained(&["p", "p", "--against", "old.jsonl", "--in", "new.jsonl"]);
    // Three of six words are in both.
    assert_eq!(earlier.json()["resemblance"], 0.5);
    assert_eq!(earlier.err, "");
    let mut dedup = lookalike("dedup");
    dedup.current_dir(folder.path(""));
    dedup.args(["old.jsonl", "-o", "out"]).succeed();
    let kept = explained(&["p", "p", "--against", "out", "--in", "new.jsonl"]);
    assert_eq!(kept.json(), earlier.json());
    // One of two records of the same id is chosen as jobs do, and not silently.
    let together = explained(&["p", "p#2", "--in", "old.jsonl", "--in", "new.jsonl"]);
    together.says(&["2 records of --in have the id \"p\"", "p#2", "--against"]);
    assert_eq!(together.json()["resemblance"], 0.5);
    let mut refused = lookalike("explain");
    refused.current_dir(folder.path(""));
    refused.args(["q", "q", "--against", "old.jsonl", "--in", "new.jsonl"]);
    refused
        .fail(1)
        .says(&["no record of --in has the id \"q\""]);
    let mut idle = lookalike("explain");
    idle.current_dir(folder.path(""));
    idle.args(["old.jsonl", "new.jsonl", "--against", "old.jsonl"]);
    idle.fail(2).says(&["--in"]);
}

#[test]
fn a_pair_that_was_proposed_and_refused_was_told_as_not_proposed() {
    let folder = Folder::new();
    let words: Vec<String> = (0..60).map(|at| format!("w{at}")).collect();
    let other = [&words[..54], &["x".to_owned()]].concat();
    let [a, b] =
        [("a.txt", words), ("b.txt", other)].map(|(name, words)| folder.add(name, words.join(" ")));
    let told = |flags: &[&str]| {
        let mut command = lookalike("explain");
        command
            .arg(&a)
            .arg(&b)
            .args(["--quiet", "--shingle", "words:1"]);
        command.args(flags).succeed().text().to_owned()
    };
    // Of 61 words 54 are in both, so bands that are made for 0.9 agree as well.
    let minhash = ["--method", "minhash", "--functions", "128"];
    let below = told(
        &[
            &minhash[..],
            &["--threshold", "0.9", "--recall", "0.999999"],
        ]
        .concat(),
    );
    assert!(
        below.contains("minhash proposes the pair (they agree in"),
        "{below}"
    );
    assert!(
        below.contains("and 1 is needed), but its resemblance is below the threshold"),
        "{below}"
    );
    let failed = told(
        &[
            &minhash[..],
            &["--threshold", "0.6", "--and", "containment:words:2:0.99"],
        ]
        .concat(),
    );
    assert!(
        failed.contains("and 1 is needed), but it fails a further test"),
        "{failed}"
    );
    let copies = told(&["--method", "exact"]);
    assert!(
        copies.starts_with("not exact copies: the texts differ (resemblance 0.8852)"),
        "{copies}"
    );
    assert!(copies.contains("exact does not find the pair"), "{copies}");
}

#[test]
fn a_pair_that_the_job_does_not_compare_was_told_as_found() {
    let folder = Folder::new();
    let line = |id: &str, lang: &str, text: &str| {
        json!({"id": id, "lang": lang, "text": text}).to_string() + "\n"
    };
    let lines = line("a", "en", STORY)
        + &line("b", "fr", STORY)
        + &line("c", "en", &format!("{STORY} today"));
    let input = folder.add("in.jsonl", lines);
    let told = |other: &str, flags: &[&str]| {
        let mut command = lookalike("explain");
        command.args(["a", other, "--in"]).arg(&input).args(flags);
        let row = command.arg("--json").succeed().json();
        let mut pairs = lookalike("pairs");
        let pairs = pairs.arg(&input).args(flags).arg("-q").succeed().lines();
        let is_listed = pairs
            .iter()
            .any(|pair| pair["a"] == "a" && pair["b"] == other);
        assert_eq!(row["found"]["found"], is_listed, "{other} {flags:?}");
        row["excluded"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(
        told("b", &["--within", "lang"]),
        "their categories are \"en\" and \"fr\""
    );
    assert_eq!(told("b", &["--across", "lang"]), "");
    assert_eq!(told("c", &["--within", "lang"]), "");
    assert_eq!(
        told("c", &["--across", "lang"]),
        "both are of the category \"en\""
    );
    assert!(told("c", &["--lengths", "0.999999"]).starts_with("their lengths are"));
    assert_eq!(told("b", &["--lengths", "0.999999"]), "");
}
