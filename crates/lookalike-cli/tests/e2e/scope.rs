//! `--within`, `--across`, `--lengths` and `--bits` with `dedup` and `pairs`, compared with plain definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::results::Results;
use crate::support::{Finish, Folder, Numbers, Pairs, STORY, corpus, listed, lookalike, pairs_of};

/// Writes families of near copies and equal texts, in four languages and on five sites; some records have neither.
pub(crate) fn mixed(folder: &Folder) -> (PathBuf, BTreeMap<String, Value>) {
    let mut numbers = Numbers(77);
    let (mut lines, mut documents) = (Vec::new(), BTreeMap::new());
    for at in 0..240 {
        let family = numbers.below(12);
        let mut words: Vec<String> = (0..60).map(|word| format!("f{family}w{word}")).collect();
        for _ in 0..numbers.below(4) {
            let place = numbers.below(60);
            words[place] = format!("x{}", numbers.below(3));
        }
        words.truncate([60, 60, 60, 48][numbers.below(4)]);
        let text = match numbers.below(12) {
            0 => "...".to_owned(),
            _ => words.join(" "),
        };
        let mut record = json!({ "id": format!("d{at:03}"), "text": text });
        if let Some(lang) = ["de", "en", "fr", "zh"].get(numbers.below(5)) {
            record["meta"] = json!({ "lang": lang });
        }
        if let Some(site) =
            ["A.example", "b.example", "a.example:80", "www.a.example"].get(numbers.below(5))
        {
            record["url"] = format!("https://{site}/{at}").into();
        }
        lines.push(record.to_string());
        documents.insert(format!("d{at:03}"), record);
    }
    (folder.add("mixed.jsonl", lines.join("\n")), documents)
}

fn language(record: &Value) -> String {
    record["meta"]["lang"].to_string()
}

pub(crate) fn site(record: &Value) -> String {
    let url = record["url"].as_str().unwrap_or_default();
    let host = url.split('/').nth(2).unwrap_or_default();
    host.to_lowercase().trim_end_matches(":80").to_owned()
}

pub(crate) fn pairs(input: &Path, flags: &[&str]) -> Pairs {
    let mut command = lookalike("pairs");
    command.arg(input).arg("-q").args(flags);
    if !flags.contains(&"exact") && !flags.contains(&"--threshold") {
        command.args(["--threshold", "0.7"]);
    }
    pairs_of(&command.succeed().lines(), "similarity")
}

type Category = (&'static str, fn(&Value) -> String);

const CATEGORIES: [Category; 2] = [("meta.lang", language), ("site", site)];

/// The pairs of a scope are those of all pairs whose categories are equal, or different.
#[test]
fn a_scope_chooses_among_all_pairs() {
    let folder = Folder::new();
    let (input, documents) = mixed(&folder);
    let all = pairs(&input, &[]);
    for (field, category) in CATEGORIES {
        let same = |(a, b): &(String, String)| category(&documents[a]) == category(&documents[b]);
        for (flag, wanted) in [("--within", true), ("--across", false)] {
            let found = pairs(&input, &[flag, field]);
            let expected: Pairs = all
                .iter()
                .filter(|(pair, _)| same(pair) == wanted)
                .map(|(pair, similarity)| (pair.clone(), *similarity))
                .collect();
            assert!(!expected.is_empty() && expected.len() < all.len());
            assert_eq!(found, expected, "{flag} {field}");
            // Equal texts without words are pairs as well.
            let bare = |pair: &(String, String)| documents[&pair.0]["text"] == "...";
            assert!(found.keys().any(bare), "{flag} {field}");
        }
    }
}

/// In large groups, documents of the most common category are no candidates of each other; all other pairs must be found.
#[test]
fn categories_that_share_a_template_have_all_their_pairs() {
    let folder = Folder::new();
    let mut numbers = Numbers(3);
    let mut document = |number: usize, template: &str, lang: &str| {
        let words: Vec<String> = (0..20)
            .map(|_| format!("w{}", numbers.below(1 << 30)))
            .collect();
        let text = format!("{template} {}", words.join(" "));
        json!({ "id": format!("{lang}{number:03}"), "text": text, "lang": lang }).to_string()
    };
    let template = |name: &str| {
        (0..12)
            .map(|word| format!("{name}{word} "))
            .collect::<String>()
    };
    let (own, common) = (template("own"), template("common"));
    let mut lines = Vec::new();
    for (lang, count) in [("de", 150), ("en", 70), ("fr", 30)] {
        lines.extend((0..count).map(|number| document(number, &common, lang)));
    }
    lines.extend((200..500).map(|number| document(number, &own, "de")));
    let input = folder.add("in.jsonl", lines.join("\n"));
    let flags = ["--threshold", "0.01"];
    let all = pairs(&input, &flags);
    let across = ["--threshold", "0.01", "--across", "lang"];
    let expected: Pairs = all
        .into_iter()
        .filter(|((a, b), _)| a[..2] != b[..2])
        .collect();
    assert_eq!(expected.len(), 150 * 70 + 150 * 30 + 70 * 30);
    assert_eq!(pairs(&input, &across), expected);
    let options = [["--threads", "1"], ["--threads", "4"], ["--memory", "64M"]];
    let [one, four, little] = options.map(|more| {
        let flags = [&across[..], &more].concat();
        folder.dedup_into(more[1], &input, &flags)
    });
    for other in [&four, &little] {
        assert_eq!(Results::stable(&one.folder), Results::stable(&other.folder));
    }
}

/// Approximate methods find all equal texts across categories, and report nothing outside the scope.
#[test]
fn every_method_keeps_to_its_scope() {
    let folder = Folder::new();
    let (input, documents) = mixed(&folder);
    let all = pairs(&input, &[]);
    for method in [
        "exact",
        "minhash",
        "oph",
        "super-shingle",
        "simhash",
        "henzinger",
        "mod-p",
        "winnow",
        "buckets",
    ] {
        for (flag, wanted) in [("--within", true), ("--across", false)] {
            let found = pairs(&input, &[flag, "meta.lang", "--method", method]);
            for (pair, similarity) in &found {
                assert_eq!(all.get(pair), Some(similarity), "{method} {flag} {pair:?}");
                let (a, b) = (&documents[&pair.0], &documents[&pair.1]);
                assert_eq!(
                    language(a) == language(b),
                    wanted,
                    "{method} {flag} {pair:?}"
                );
            }
            let equal = all.keys().filter(|(a, b)| {
                let (a, b) = (&documents[a], &documents[b]);
                a["text"] == b["text"] && (language(a) == language(b)) == wanted
            });
            for pair in equal {
                assert_eq!(found.get(pair), Some(&1.0), "{method} {flag} {pair:?}");
            }
        }
    }
}

/// Checks promise 4 within a scope: every removed document resembles a kept one that it may be compared with, and no two kept documents are such a
/// pair.
#[test]
fn survivors_are_of_the_same_scope() {
    let folder = Folder::new();
    let (input, documents) = mixed(&folder);
    for (field, category) in CATEGORIES {
        for (flag, wanted) in [("--within", true), ("--across", false)] {
            let allowed = pairs(&input, &[flag, field]);
            let flags = [flag, field, "--threshold", "0.7"];
            let results = folder.dedup(&input, &flags);
            let kept: BTreeSet<String> = results.kept_ids().into_iter().collect();
            assert_eq!(results.count("counts", "documents"), 240);
            assert_eq!(kept.len() + results.removed_ids().len(), 240);
            let none = documents.values().filter(|record| match field {
                "site" => record["url"].is_null(),
                _ => record["meta"].is_null(),
            });
            assert_eq!(
                results.count("counts", "without_category"),
                none.count() as u64
            );
            assert_eq!(results.run["scope"], flag[2..]);
            assert_eq!(results.run["category"], field);
            let removals = results.removals();
            assert_eq!(removals.len(), results.removed_ids().len());
            for (id, (survivor, similarity, exact)) in removals {
                assert!(kept.contains(survivor));
                let (a, b) = (&documents[id], &documents[survivor]);
                assert_eq!(category(a) == category(b), wanted, "{id} {survivor}");
                assert_eq!(exact, a["text"] == b["text"], "{id} {survivor}");
                let pair = (id.min(survivor).to_owned(), id.max(survivor).to_owned());
                assert_eq!(allowed.get(&pair), Some(&similarity));
            }
            let apart = |(a, b): &(String, String)| !(kept.contains(a) && kept.contains(b));
            assert!(allowed.keys().all(apart), "{flag} {field}");
        }
    }
}

/// `--within` gives the same results as one job per category.
#[test]
fn within_is_each_category_alone() {
    let folder = Folder::new();
    let (input, documents) = mixed(&folder);
    let whole = folder.dedup(&input, &["--within", "meta.lang", "--threshold", "0.7"]);
    let languages: BTreeSet<String> = documents.values().map(language).collect();
    let mut kept = Vec::new();
    for wanted in languages {
        let lines = documents
            .values()
            .filter(|record| language(record) == wanted);
        let lines: Vec<String> = lines.map(Value::to_string).collect();
        let part = folder.add("part.jsonl", lines.join("\n"));
        kept.extend(folder.dedup(&part, &["--threshold", "0.7"]).kept_ids());
    }
    kept.sort();
    assert_eq!(whole.kept_ids(), kept);
}

#[test]
fn a_scope_does_not_depend_on_order_threads_or_memory() {
    let folder = Folder::new();
    let (input, _) = mixed(&folder);
    let text = std::fs::read_to_string(&input).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    Numbers(5).shuffle(&mut lines);
    let other = folder.add("other.jsonl", lines.join("\n"));
    for flags in [["--across", "site"], ["--within", "site"]] {
        let stable = |input: &Path, more: &[&str]| {
            let results = folder.dedup(input, &[&flags[..], more].concat());
            Results::stable(&results.folder)
        };
        let first = stable(&input, &["--threads", "1"]);
        assert_eq!(
            first,
            stable(&other, &["--threads", "2", "--memory", "64M"])
        );
    }
}

#[test]
fn a_copy_of_a_kept_text_was_removed_as_near_to_another() {
    let folder = Folder::new();
    let line = |id: &str, lang: &str, text: &str| {
        json!({ "id": id, "lang": lang, "text": text }).to_string() + "\n"
    };
    // Of one language, so both are kept; their features are the same.
    let lines = line("a", "en", &STORY.to_uppercase()) + &line("b", "en", STORY);
    let input = folder.add("in.jsonl", lines + &line("c", "fr", STORY));
    for method in ["allpairs", "minhash"] {
        let results = folder.dedup(&input, &["--across", "lang", "--method", method]);
        assert_eq!(results.removals()["c"], ("b", 1.0, true), "{method}");
        assert_eq!(results.count("decisions", "removed_exact"), 1);
    }
}

/// Documents given with `--against` are never removed, and do not remove new documents of their own category.
#[test]
fn across_sites_against_earlier_pages() {
    let folder = Folder::new();
    let page = |id: &str, site: &str, text: &str| {
        json!({ "id": id, "url": format!("http://{site}/{id}"), "text": text }).to_string() + "\n"
    };
    let old = folder.add("old.jsonl", page("o", "one.example", STORY));
    let retold = format!("{STORY} today");
    let new = folder.add(
        "new.jsonl",
        page("a", "one.example", STORY)
            + &page("b", "two.example", STORY)
            + &page("c", "two.example", &retold),
    );
    let flags = ["--across", "site", "--against", old.to_str().unwrap()];
    let results = folder.dedup(&new, &flags);
    assert_eq!(results.kept_ids(), ["a"]);
    let removals = results.removals();
    assert_eq!((removals["b"].0, removals["b"].2), ("o", true));
    assert_eq!((removals["c"].0, removals["c"].2), ("o", false));
    let none = folder.dedup(&new, &["--across", "site"]);
    assert_eq!(
        none.kept_ids().len(),
        2,
        "one of a, and of b and c one or both"
    );
}

/// Regression test: an old document with the same text and category kept all new ones, whatever other old documents there were.
#[test]
fn a_copy_of_an_old_page_of_another_shop_was_kept_for_the_sake_of_one_of_its_own() {
    let folder = Folder::new();
    let line = |id: &str, shop: &str| json!({"id": id, "text": STORY, "shop": shop}).to_string();
    let old = folder.add("old.jsonl", [line("o1", "a"), line("o2", "b")].join("\n"));
    let new = folder.add("new.jsonl", [line("n1", "a"), line("n2", "c")].join("\n"));
    let only = folder.add("only.jsonl", line("o1", "a"));
    for method in ["allpairs", "minhash", "simhash", "exact"] {
        let seen = folder.path(format!("seen-{method}"));
        let options = ["--across", "shop", "--method", method];
        let mut build = lookalike("collection");
        build.arg("build").arg(&seen).arg(&old);
        build.args(options).succeed();
        for against in [&old, &seen, &only] {
            let out = folder.path("out");
            let mut job = lookalike("dedup");
            job.arg(&new).args(options).arg("--overwrite").arg("-o");
            job.arg(&out).arg("--against").arg(against).succeed();
            let results = Results::read(&out);
            let removals = results.removals();
            let removed: BTreeMap<&str, &str> = removals
                .iter()
                .map(|(id, removal)| (&**id, removal.0))
                .collect();
            // `n1` and `o1` are from the same shop, so only `o2` removes `n1`.
            let expected = match against == &only {
                true => BTreeMap::from([("n2", "o1")]),
                false => BTreeMap::from([("n1", "o2"), ("n2", "o1")]),
            };
            assert_eq!(removed, expected, "{method} {}", against.display());
        }
        // Added documents count as old from then on.
        let more = folder.add("more.jsonl", line("m", "c"));
        let into = |input: &Path| {
            let out = folder.path("into");
            let mut job = lookalike("dedup");
            job.arg(input).args(options).arg("--overwrite").arg("-o");
            job.arg(&out).arg("--against").arg(&seen);
            job.arg("--into").arg(&seen).succeed();
            std::fs::read_to_string(out.join("kept.jsonl")).unwrap()
        };
        let unlike = folder.add(
            "unlike.jsonl",
            json!({"id": "u", "text": "quite another story", "shop": "a"}).to_string(),
        );
        assert!(into(&unlike).contains("another story"), "{method}");
        let copy = folder.add(
            "copy.jsonl",
            json!({"id": "v", "text": "quite another story", "shop": "b"}).to_string(),
        );
        assert_eq!(into(&copy), "", "{method}");
        assert_eq!(into(&more), "", "{method}");
    }
}

/// Regression test: lists had no category, so all lists counted as equal; 1 and 1.0 had different categories.
#[test]
fn a_category_is_the_value_of_its_field_whatever_its_type() {
    let folder = Folder::new();
    let found = |values: [&str; 2], scope: &str| {
        let line = |id: &str, value: &str| {
            format!(r#"{{"id":"{id}","text":{},"k":{value}}}"#, json!(STORY))
        };
        let lines = [line("a", values[0]), line("b", values[1])];
        let input = folder.add("in.jsonl", lines.join("\n"));
        let mut command = lookalike("pairs");
        let rows = command.arg(&input).args(["-q", scope, "k"]).succeed();
        rows.lines().len()
    };
    for (values, are_one) in [
        (["1", "1.0"], true),
        (["-0.5", "-5e-1"], true),
        (["100", "1e2"], true),
        (["1", "2"], false),
        (["9007199254740993", "9007199254740992"], false),
        ([r#"["en"]"#, r#"["de"]"#], false),
        ([r#"["en"]"#, r#"["en"]"#], true),
        ([r#"{"a":1}"#, r#"{"a":2}"#], false),
        (["true", "false"], false),
    ] {
        assert_eq!(
            found(values, "--within"),
            usize::from(are_one),
            "{values:?}"
        );
        assert_eq!(
            found(values, "--across"),
            usize::from(!are_one),
            "{values:?}"
        );
    }
}

#[test]
fn fifty_five_of_a_hundred_bytes_was_less_than_a_share_of_055() {
    let folder = Folder::new();
    let words: Vec<String> = (10..30).map(|word| format!("aa{word}")).collect();
    let (long, short) = (
        format!("{}.", words.join(" ")),
        format!("{}.", words[..11].join(" ")),
    );
    assert_eq!((short.len(), long.len()), (55, 100));
    let input = folder.records("in.jsonl", &[("a", &long), ("b", &short)]);
    let found = |share: &str| {
        let mut command = lookalike("pairs");
        command.arg(&input).args(["--lengths", share]);
        command.args(["--threshold", "0.3"]).succeed().lines().len()
    };
    assert_eq!([found("0.55"), found("0.5501")], [1, 0]);
}

#[test]
fn lengths_are_a_second_test() {
    let folder = Folder::new();
    let (input, documents) = mixed(&folder);
    let all = pairs(&input, &[]);
    let length = |id: &String| documents[id]["text"].as_str().unwrap().len() as f64;
    let is_close = |(a, b): &(String, String), share: f64| {
        length(a).min(length(b)) >= share * length(a).max(length(b))
    };
    for (share, flag) in [(0.9, "0.9"), (1.0, "1")] {
        let mut expected = all.clone();
        expected.retain(|pair, _| is_close(pair, share));
        assert!(!expected.is_empty() && expected.len() < all.len());
        assert_eq!(pairs(&input, &["--lengths", flag]), expected);
        let results = folder.dedup(&input, &["--lengths", flag, "--threshold", "0.7"]);
        let kept: BTreeSet<String> = results.kept_ids().into_iter().collect();
        for (id, (survivor, ..)) in results.removals() {
            let pair = (id.min(survivor).to_owned(), id.max(survivor).to_owned());
            assert!(expected.contains_key(&pair), "{pair:?}");
        }
        assert!(
            expected
                .keys()
                .all(|(a, b)| !(kept.contains(a) && kept.contains(b)))
        );
    }
    for wrong in ["0", "1.5", "-1"] {
        let mut command = lookalike("pairs");
        command.arg(&input).arg(format!("--lengths={wrong}"));
        command.fail(2).says(&["lengths", "such as --lengths 0.5"]);
    }
}

#[test]
fn scopes_that_contradict_or_mean_nothing() {
    let folder = Folder::new();
    let (input, _) = mixed(&folder);
    let mut both = lookalike("pairs");
    both.arg(&input)
        .args(["--within", "site", "--across", "site"]);
    assert_eq!(both.finish().status, Some(2));
    let mut nowhere = lookalike("pairs");
    nowhere.arg(&input).args(["--within", "no.such.field"]);
    nowhere.fail(1).says(&[
        "none of the 240 records",
        "within no.such.field",
        "--within",
    ]);
    let table = folder.add(
        "t.csv",
        "id,lang,text\na,de,one two three\nb,en,one two three\nc,de,one two three\n",
    );
    let columns = |field: &str| {
        pairs(&table, &["--within", field])
            .into_keys()
            .collect::<Vec<_>>()
    };
    let expected = [("a".to_owned(), "c".to_owned())];
    assert_eq!(
        (columns("lang"), columns("2")),
        (expected.to_vec(), expected.to_vec())
    );
}

/// Simhash of every width finds the pairs that a scan over the fingerprints finds, and the distances of the wide ones are consistent.
#[test]
fn simhash_of_every_width() {
    let Some(documents) = corpus("mccormick-articles/docs.jsonl") else {
        return;
    };
    for (bits, distance) in [("32", "6"), ("64", "12"), ("128", "24")] {
        let flags = [
            "--method",
            "simhash",
            "--bits",
            bits,
            "--distance",
            distance,
        ];
        let mut command = lookalike("pairs");
        command
            .arg(&documents)
            .args(flags)
            .args(["-q", "--threshold", "0.5"]);
        let rows = command.succeed().lines();
        let exact = pairs(&documents, &[]);
        let most: u64 = distance.parse().unwrap();
        assert!(
            rows.iter()
                .all(|row| row["distance"].as_u64().unwrap() <= most)
        );
        let found = pairs_of(&rows, "similarity");
        assert!(!found.is_empty());
        for (pair, similarity) in found.iter().filter(|entry| *entry.1 >= 0.7) {
            assert_eq!(exact.get(pair), Some(similarity));
        }
        let mut wrong = lookalike("pairs");
        wrong
            .arg(&documents)
            .args(["--method", "simhash", "--bits", bits, "--distance", "33"]);
        wrong.fail(2).says(&["above", bits]);
    }
    // The narrow fingerprint is the low half of the wide one, so the distance of the wide ones is at least as large.
    let distances = |bits: &str| {
        let mut command = lookalike("pairs");
        command.arg(&documents).args([
            "-q",
            "--method",
            "simhash",
            "--bits",
            bits,
            "--distance",
            "8",
        ]);
        let rows = command.args(["--threshold", "0.3"]).succeed().lines();
        let distance = |row: &Value| {
            let id = |end: &str| row[end].as_str().unwrap().to_owned();
            ((id("a"), id("b")), row["distance"].as_u64().unwrap())
        };
        rows.iter().map(distance).collect::<BTreeMap<_, _>>()
    };
    let (narrow, middle, wide) = (distances("32"), distances("64"), distances("128"));
    for (pair, distance) in &wide {
        assert!(middle[pair] <= *distance);
    }
    for (pair, distance) in &middle {
        assert!(narrow[pair] <= *distance);
    }
    let results = Folder::new();
    let flags = ["--method", "simhash", "--bits", "128", "--distance", "20"];
    let done = results.dedup(&documents, &flags);
    assert!(
        done.run["scheme"]
            .as_str()
            .unwrap()
            .contains("sketch=simhash:128")
    );
    assert!(done.count("decisions", "removed_near") > 0);
}

/// As in Manku et al. 2007, section 5.3, anchors and links are features in addition to those of the text, in every command that makes sketches.
#[test]
fn anchors_and_links_are_features() {
    let folder = Folder::new();
    let page = |id: &str, text: &str, anchors: Value, links: Value| {
        json!({ "id": id, "text": text, "anchors": anchors, "in_links": links }).to_string() + "\n"
    };
    let ferry =
        json!([{ "text": "the ferry", "before": "take", "after": "at nine" }, "ferry times"]);
    let links = json!(["http://a/", "http://b/", "http://c/"]);
    let input = folder.add(
        "in.jsonl",
        page("a", "one two three four five", ferry.clone(), links.clone())
            + &page(
                "b",
                "one two three four five",
                Value::Null,
                json!("http://z/"),
            )
            + &page(
                "c",
                "six seven eight nine ten",
                ferry.clone(),
                links.clone(),
            )
            + &page("d", "six seven eight nine ten", ferry, links),
    );
    let flags = ["--shingle", "words:1", "--fields", "anchors:3~2,in-links:2"];
    let similarity = |flags: &[&str], a: &str, b: &str| -> Option<f64> {
        let mut command = lookalike("pairs");
        command
            .arg(&input)
            .args(["-q", "--threshold", "0.05"])
            .args(flags);
        let found = pairs_of(&command.succeed().lines(), "similarity");
        found.get(&(a.to_owned(), b.to_owned())).copied()
    };
    // The shared features are the words of the anchors (the, ferry, times, take, at, nine) and three links.
    assert_eq!(similarity(&flags, "a", "c"), Some(9.0 / 19.0));
    assert_eq!(similarity(&flags[..2], "a", "c"), None);
    assert_eq!(
        similarity(&flags, "a", "b"),
        Some(5.0 / 15.0),
        "an equal text, but other anchors"
    );
    assert_eq!(similarity(&flags[..2], "a", "b"), Some(1.0));
    assert_eq!(similarity(&flags, "c", "d"), Some(1.0));
    let results = folder.dedup(&input, &[&flags[..], &["--threshold", "0.9"]].concat());
    assert_eq!(results.kept_ids().len(), 3);
    assert!(
        results.run["scheme"]
            .as_str()
            .unwrap()
            .contains("fields=anchors:3~2,in-links:2")
    );
    let mut explain = lookalike("explain");
    explain
        .args(["a", "c", "--json", "--in"])
        .arg(&input)
        .args(flags);
    let told = explain.succeed().json();
    assert_eq!(told["resemblance"], 9.0 / 19.0);
    let shared = listed(&told, "shared_features");
    assert!(
        shared.contains(&"anchor: ferry") && shared.contains(&"link from http://b/"),
        "{shared:?}"
    );
    let fingerprints = |flags: &[&str]| {
        let mut command = lookalike("fingerprint");
        let rows = command.arg(&input).args(flags).succeed().lines();
        rows.iter()
            .map(|row| row["fingerprint"].to_string())
            .collect::<Vec<_>>()
    };
    let (with, without) = (fingerprints(&flags), fingerprints(&flags[..2]));
    assert_eq!(
        (without[0] == without[1], with[0] == with[1]),
        (true, false)
    );
    assert_eq!(with[2], with[3]);
    // A record with invalid anchors is lost alone, and a field that does not exist is refused.
    let bad = folder.add(
        "bad.jsonl",
        "{\"id\":\"a\",\"text\":\"x\",\"anchors\":7}\n{\"id\":\"b\",\"text\":\"y\",\"anchors\":\"z\",\"in_links\":[\"http://a/\"]}\n",
    );
    let mut command = lookalike("pairs");
    command
        .arg(&bad)
        .args(flags)
        .arg("--json")
        .lose()
        .says(&["\"unreadable\":1"]);
    command
        .arg("--strict")
        .fail(1)
        .says(&["line 1", "the field anchors must hold"]);
    let mut wrong = lookalike("pairs");
    wrong.arg(&input).args(["--fields", "links:1"]);
    assert_eq!(wrong.finish().status, Some(2));
}

#[test]
fn commands_that_were_told_to_be_quiet_warned() {
    let folder = Folder::new();
    let (input, _) = mixed(&folder);
    let input = input.to_str().unwrap();
    for words in [
        &[
            "collection",
            "build",
            "seen",
            input,
            "--within",
            "meta.lang",
        ][..],
        &[
            "archive",
            "build",
            input,
            "-o",
            "all.lka",
            "--within",
            "meta.lang",
        ],
        &[
            "dedup", input, "-o", "out", "--method", "exact", "--pairs", "all",
        ],
    ] {
        let mut command = lookalike(words[0]);
        command.current_dir(folder.path("")).args(&words[1..]);
        assert_eq!(command.arg("-q").succeed().err, "", "{words:?}");
    }
}
