//! `lookalike evaluate` on the public corpora and on invalid input.

use std::collections::{BTreeSet, HashMap};
use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use crate::support::{
    Finish, Folder, TRUTH, contents, corpus, examples, json_lines, lookalike, pairs_of,
};
use serde_json::{Value, json};

fn best_f1(set: &str, positive: &str, flags: &[&str]) -> Option<f64> {
    let documents = corpus(&format!("{set}/docs.jsonl"))?;
    let labels = corpus(&format!("{set}/pairs.jsonl"))?;
    let mut command = lookalike("evaluate");
    command
        .arg("labels")
        .arg(documents)
        .arg("--labels")
        .arg(labels);
    let answer = command
        .args(["--positive", positive, "--json"])
        .args(flags)
        .succeed()
        .json();
    answer["row"]["curve"]["best"]["f1"].as_f64()
}

/// Compares a scheme of 8 bytes per page with human judgements.
#[test]
fn a_fingerprint_agrees_with_people() {
    let flags = ["--shingle", "words:3", "--sketch", "simhash:64"];
    if let Some(f1) = best_f1("webis-s3-pairs", "1", &flags) {
        assert!(f1 >= 0.86, "{f1}");
    }
    if let Some(f1) = best_f1("webis-s3-pairs", "1", &["--shingle", "words:3"]) {
        assert!(f1 >= 0.89, "{f1}");
    }
}

/// Counts the pairs of different texts at resemblance 0.8 in the truth file of the wire stories. Evaluations count these pairs, because they set
/// copies aside.
fn true_pairs_of_different_texts() -> Option<usize> {
    let documents = corpus("reuters21578/docs.jsonl.gz")?;
    let texts: HashMap<String, String> = json_lines(&contents(&documents))
        .into_iter()
        .map(|row| {
            let field = |name: &str| row[name].as_str().unwrap().to_owned();
            (field("id"), field("text"))
        })
        .collect();
    let truth = corpus("reuters21578/jaccard_w5.jsonl").unwrap();
    let truth = pairs_of(&json_lines(&contents(&truth)), "j");
    let near = truth.iter().filter(|pair| *pair.1 >= 0.8);
    let pairs: BTreeSet<[&str; 2]> = near
        .map(|((a, b), _)| {
            let mut both = [&*texts[a], &*texts[b]];
            both.sort_unstable();
            both
        })
        .filter(|[a, b]| a != b)
        .collect();
    Some(pairs.len())
}

/// The limits of the audit must contain the brute-force truth, for the sample and for all documents.
#[test]
fn an_audit_agrees_with_the_truth_file() {
    let Some(documents) = corpus("reuters21578/docs.jsonl.gz") else {
        return;
    };
    let truth = true_pairs_of_different_texts().unwrap();
    let audit = |sample: &str| {
        let mut command = lookalike("evaluate");
        command
            .arg("audit")
            .arg(&documents)
            .args(TRUTH)
            .args(["--json", "--quiet"]);
        command.args(["--method", "simhash", "--distance", "6", "--sample", sample]);
        command.succeed().json()
    };
    let (part, all) = (audit("3000"), audit("100000"));
    assert_eq!(all["true_pairs"], truth, "once, not from both ends");
    assert_eq!(all["recall"]["low"], all["recall"]["high"], "exact");
    let limits = part["all_true_pairs"].as_array().unwrap();
    let number = |value: &Value| value.as_f64().unwrap();
    assert!(number(&limits[1]) <= truth as f64 && truth as f64 <= number(&limits[2]));
    let recall = number(&all["recall"]["value"]);
    assert!(number(&part["recall"]["low"]) <= recall && recall <= number(&part["recall"]["high"]));
    // Stories with the text of another are set aside; these are the corpus's own numbers.
    assert_eq!(
        (&all["documents"], &all["copies"]),
        (&json!(9_920), &json!(137))
    );
    assert_eq!(
        (&part["documents"], &part["copies"]),
        (&json!(9_920), &json!(137))
    );
}

#[test]
fn a_sweep_writes_a_page_and_advises() {
    let folder = Folder::new();
    let story = crate::support::STORY;
    let rows: Vec<(String, String)> = (0..12)
        .map(|at| {
            (
                format!("d{at}"),
                format!("day{0} of day{0} {story} and ended as number {at}", at / 2),
            )
        })
        .collect();
    let rows: Vec<(&str, &str)> = rows.iter().map(|(id, text)| (&**id, &**text)).collect();
    let input = folder.records("in.jsonl", &rows);
    let page = folder.path("sweep.html");
    let mut command = lookalike("evaluate");
    command
        .arg("sweep")
        .arg(&input)
        .args(["--shingles", "words:2,words:3", "--page"])
        .arg(&page);
    let text = command.succeed();
    assert!(
        text.text().contains("The cheapest settings that reach it"),
        "{}",
        text.text()
    );
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("<h2>Recommendations</h2>") && html.contains("<svg class=\"plot\""));
    let json = command.arg("--json").succeed().json();
    // These are simhash with four weights and three other sketches, for two shingle sizes, with and without a mask.
    assert_eq!(json["rows"].as_array().unwrap().len(), 28);
    assert!(!json["advice"].as_array().unwrap().is_empty());
}

#[test]
fn bad_labels_are_refused_with_their_lines() {
    let folder = Folder::new();
    let input = folder.records(
        "in.jsonl",
        &[("a", "one two"), ("b", "one two"), ("c", "three")],
    );
    let refused = |labels: &str, words: &[&str]| {
        let labels = folder.add("labels.jsonl", labels);
        let mut command = lookalike("evaluate");
        command
            .arg("labels")
            .arg(&input)
            .arg("--labels")
            .arg(labels);
        command.fail(1).says(words);
    };
    refused(
        "{\"a\":\"a\",\"b\":\"x\",\"label\":1}\n",
        &["line 1", "\"x\""],
    );
    refused(
        "{\"a\":\"a\",\"b\":\"b\",\"label\":1}\n{\"a\":\"a\",\"b\":\"b\",\"label\":0}\n",
        &["lines 1 and 2", "contradict"],
    );
    refused(
        "{\"a\":\"a\",\"b\":\"b\",\"label\":1}\n",
        &["all labels (1) are true", "--positive"],
    );
    let clusters = folder.add(
        "clusters.jsonl",
        "{\"id\":\"a\",\"cluster\":1}\n{\"id\":\"b\",\"cluster\":1}\n",
    );
    let mut command = lookalike("evaluate");
    command
        .arg("labels")
        .arg(&input)
        .arg("--labels")
        .arg(clusters);
    let answer = command.args(["--json", "--cut", "0.9"]).succeed().json();
    assert_eq!(answer["adjusted_rand_index"], 1.0);
    let mut audit = lookalike("evaluate");
    audit
        .arg("audit")
        .arg(&input)
        .args(["--method", "simhash", "--sample", "10"]);
    audit
        .succeed()
        .says(&["2 documents of different texts: all of them are the sample"]);
    lookalike("evaluate")
        .arg("audit")
        .arg(&input)
        .fail(2)
        .says(&["exact"]);
}

/// Returns an `evaluate sweep` command for a corpus with labels, or `None` if the corpus is not available.
fn labelled_sweep(name: &str) -> Option<Command> {
    let documents = corpus(&format!("{name}/docs.jsonl"))?;
    let labels = corpus(&format!("{name}/pairs.jsonl"))?;
    let mut command = lookalike("evaluate");
    command.arg("sweep").arg(documents);
    command.arg("--labels").arg(labels);
    Some(command)
}

/// The function words of a text and its runs of words fail on different pages, so together they agree with human judgements better than either alone.
#[test]
fn two_tests_agree_with_people() {
    let Some(mut command) = labelled_sweep("webis-s3-pairs") else {
        return;
    };
    command.args(["--shingles", "words:2,words:3,words:5,stops:4"]);
    command.args([
        "--sketches",
        "none",
        "--measures",
        "resemblance,coverage",
        "--two-tests",
    ]);
    let answer = command.arg("--json").succeed().json();
    let best = &answer["two_tests"][0];
    assert!(best["f1"].as_f64().unwrap() >= 0.92, "{best}");
    let expected = answer["expected"].as_array().unwrap().last().unwrap();
    assert_eq!(expected["choice"], "two tests");
    assert!(expected["f1"].as_f64().unwrap() >= 0.88, "{expected}");
    let one = |flags: &[&str]| best_f1("webis-s3-pairs", "1", flags).unwrap();
    let alone = one(&["--shingle", "stops:4", "--measure", "coverage"]);
    assert!(
        (0.9..best["f1"].as_f64().unwrap()).contains(&alone),
        "{alone}"
    );
}

/// In copied answers of 250 words, runs of words and of function words with case kept are reliable together.
#[test]
fn two_tests_tell_copied_answers() {
    let Some(mut command) = labelled_sweep("clough-short-answers") else {
        return;
    };
    command.args(["--positive", "2", "--case", "keep", "--sketches", "none"]);
    command.args(["--measures", "resemblance,containment", "--two-tests"]);
    command.args(["--shingles", "words:4,words:5,stops:2", "--json"]);
    let answer = command.succeed().json();
    let two = answer["two_tests"].as_array().unwrap();
    let both = two.iter().find(|both| {
        let name = |side: &str| both[side].as_str().unwrap().to_owned();
        name("first").starts_with("containment") && name("second").starts_with("resemblance")
    });
    let both = both.unwrap();
    assert!(both["f1"].as_f64().unwrap() >= 0.86, "{both}");
    let expected = answer["expected"].as_array().unwrap().last().unwrap();
    assert_eq!(expected["choice"], "two tests");
    assert!(
        expected["f1"].as_f64().unwrap() < both["f1"].as_f64().unwrap(),
        "{expected}"
    );
}

#[test]
fn measures_and_two_tests_want_labels() {
    let folder = Folder::new();
    let input = folder.records(
        "in.jsonl",
        &[("a", "one two"), ("b", "one two"), ("c", "three")],
    );
    let mut sweep = lookalike("evaluate");
    sweep
        .arg("sweep")
        .arg(&input)
        .args(["--measures", "coverage"]);
    sweep.fail(2).says(&["--labels"]);
    let mut two = lookalike("evaluate");
    two.arg("sweep").arg(&input).arg("--two-tests");
    assert_eq!(two.finish().status, Some(2));
    let labels = folder.add(
        "labels.jsonl",
        "{\"a\":\"a\",\"b\":\"b\",\"label\":1}\n{\"a\":\"a\",\"b\":\"c\",\"label\":0}\n",
    );
    let mut measure = lookalike("evaluate");
    measure
        .arg("labels")
        .arg(&input)
        .arg("--labels")
        .arg(labels);
    measure.args(["--measure", "coverage", "--sketch", "simhash:64"]);
    measure.fail(2).says(&["--sketch none"]);
}

/// Measures a 64-bit simhash on news at resemblance 0.8, before verification, with settings chosen on these stories. Lengths as a second test give
/// the precision. The goals of 0.95 and 0.93 were reached only while copies counted, which are half of all pairs and trivial to find.
#[test]
fn a_fingerprint_and_the_length_find_what_resembles() {
    let Some(documents) = corpus("reuters21578/docs.jsonl.gz") else {
        return;
    };
    let audit = |flags: &[&str]| {
        let mut command = lookalike("evaluate");
        command
            .arg("audit")
            .arg(&documents)
            .args(TRUTH)
            .args(["--json", "--quiet"]);
        command
            .args([
                "--method",
                "simhash",
                "--distance",
                "9",
                "--sample",
                "20000",
            ])
            .args(flags);
        let answer = command.succeed().json();
        ["precision", "recall"].map(|share| answer[share]["value"].as_f64().unwrap())
    };
    let ([precision, recall], [plain, same]) = (audit(&["--lengths", "0.81"]), audit(&[]));
    assert!(precision >= 0.91 && recall >= 0.88, "{precision} {recall}");
    assert!(plain < precision && (same - recall).abs() < 1e-12);
    // The sweep gives the same figures.
    let mut sweep = lookalike("evaluate");
    sweep
        .arg("sweep")
        .arg(&documents)
        .args(TRUTH)
        .args(["--sketches", "simhash:64"]);
    sweep.args([
        "--shingles",
        "words:5",
        "--weights",
        "set",
        "--lengths",
        "0.81",
        "--json",
    ]);
    let answer = sweep.succeed().json();
    let points = answer["rows"][0]["curve"]["points"].as_array().unwrap();
    let nine = points
        .iter()
        .find(|point| point["parameter"] == "k <= 9")
        .unwrap();
    assert!((nine["precision"]["value"].as_f64().unwrap() - precision).abs() < 1e-12);
    assert!((nine["recall"]["value"].as_f64().unwrap() - recall).abs() < 1e-12);
    // Shingles of six words weighted by rarity do nearly as well alone.
    let mut rare = lookalike("evaluate");
    rare.arg("sweep").arg(&documents).args(TRUTH);
    rare.args([
        "--sketches",
        "simhash:64",
        "--shingles",
        "words:6",
        "--weights",
        "idf",
    ]);
    let answer = rare.arg("--json").succeed().json();
    let points = answer["rows"][0]["curve"]["points"].as_array().unwrap();
    let ten = points.iter().find(|point| point["parameter"] == "k <= 10");
    let share = |name: &str| ten.unwrap()[name]["value"].as_f64().unwrap();
    assert!(
        share("precision") >= 0.91 && share("recall") >= 0.87,
        "{ten:?}"
    );
    let mut wrong = lookalike("evaluate");
    wrong.arg("sweep").arg(&documents).args(["--lengths", "0"]);
    assert_eq!(wrong.finish().status, Some(2));
}

#[test]
fn values_that_mean_nothing_gave_figures() {
    let (folder, input) = crate::refusals::two();
    let clusters = "{\"id\":\"a\",\"cluster\":1}\n{\"id\":\"b\",\"cluster\":1}\n";
    let clusters = folder.add("clusters.jsonl", clusters);
    let cut = |sketch: &str, cut: &str| {
        let mut command = lookalike("evaluate");
        command.arg("labels").arg(&input).arg("--labels");
        command
            .arg(&clusters)
            .args(["--sketch", sketch, "--cut", cut]);
        command
    };
    let bits = "a whole number of equal bits, 32 to 64";
    let hashes = "a whole number of equal hashes, 1 to 6";
    let share = "a share above 0 and at most 1";
    let impossible = [
        ("simhash:64", "3", bits),
        ("simhash:64", "9", "55 for a distance of 9"),
        ("simhash:64", "0.8", bits),
        ("simhash:64", "60.5", bits),
        ("simhash:64", "65", bits),
        ("super-shingle:6x2", "7", hashes),
        ("super-shingle:6x2", "0", hashes),
        ("minhash:32", "20", share),
        ("none", "1.5", share),
        ("none", "nan", share),
    ];
    for (sketch, score, wanted) in impossible {
        cut(sketch, score).fail(2).says(&["--cut", wanted]);
    }
    for (sketch, score) in [
        ("simhash:64", "32"),
        ("super-shingle:6x2", "6"),
        ("none", "1"),
    ] {
        cut(sketch, score).succeed();
    }
    let codes = folder.path("codes.lkfp");
    let mut make = lookalike("fingerprint");
    make.arg(&input).arg("-o").arg(&codes).succeed();
    let mut given = lookalike("evaluate");
    given.args(["labels", "--fingerprints", "--cut", "3", "--labels"]);
    given.arg(&clusters).arg(&codes).fail(2).says(&[bits]);
    for words in [
        ["sweep", "--precision", "7"],
        ["sweep", "--recall", "nan"],
        ["audit", "--sample", "0"],
    ] {
        let refused = lookalike("evaluate").args(words).arg(&input).fail(2);
        refused.says(&[words[1], words[2]]);
    }
    let mut empty = lookalike("evaluate");
    empty.args(["audit", "--method", "simhash"]);
    let none = empty.arg(folder.add("empty.jsonl", "")).fail(1);
    none.says(&["0 documents; a pair needs at least two"]);
}

#[test]
fn labels_drawn_by_bands_passed_for_the_collection_in_a_sweep() {
    let folder = Folder::new();
    let texts = ["a b c d e", "a b c d f", "g h i j k"];
    let line = |(id, text): (usize, &str)| json!({"id": id.to_string(), "text": text}).to_string();
    let documents: Vec<String> = texts.into_iter().enumerate().map(line).collect();
    let input = folder.add("in.jsonl", documents.join("\n"));
    let says = |with_bands: bool| {
        let label = |number: u32, is_true: bool| {
            let mut label = json!({"a": "0", "b": number.to_string(), "label": is_true});
            if with_bands {
                label["stratum"] = json!({"number": number, "of": 2, "name": "", "pairs": 10 * number, "drawn": 1});
            }
            label.to_string()
        };
        let labels = [label(1, true), label(2, false)].join("\n");
        let labels = folder.add("labels.jsonl", labels);
        let mut sweep = lookalike("evaluate");
        sweep.arg("sweep").arg(&input).arg("--labels").arg(labels);
        sweep.args(["--sketches", "none", "--shingles", "words:1", "--json"]);
        let truth = sweep.succeed().json()["truth"].as_str().unwrap().to_owned();
        truth.contains("not of the collection")
    };
    assert_eq!((says(true), says(false)), (true, false));
}

#[test]
fn shares_of_an_audit_were_no_quotients_of_the_numbers_beside_them() {
    let audit = |seed: u64, flags: &[&str]| {
        let mut command = lookalike("evaluate");
        command.arg("audit").arg(examples().join("articles.jsonl"));
        command.args([
            "--method",
            "simhash",
            "--distance",
            "8",
            "--threshold",
            "0.5",
        ]);
        command.args(["--sample", "25", "--seed", &seed.to_string()]);
        command.args(flags).succeed()
    };
    let differs = |seed: &u64| {
        let row = audit(*seed, &["--json"]).json();
        let number = |pointer: &str| row.pointer(pointer).and_then(Value::as_f64).unwrap();
        let quotient = |of: &str| number("/found") / number(of).max(1.0);
        let differs = |share: &str, of: &str| (number(share) - quotient(of)).abs() > 1e-9;
        let differs =
            differs("/recall/value", "/true_pairs") || differs("/precision/value", "/proposed");
        let said = audit(*seed, &[])
            .text()
            .contains("count a pair of two sampled documents for both");
        assert_eq!(said, differs, "{seed}");
        differs
    };
    assert!((0..8).filter(differs).count() > 0);
}

/// Returns an `evaluate` command of a folder's `in.jsonl` with these labels.
fn labelled(folder: &Folder, what: &str, labels: &str, flags: &[&str]) -> Command {
    let mut command = lookalike("evaluate");
    command.arg(what).arg(folder.path("in.jsonl"));
    command.arg("--labels").arg(folder.add("labels", labels));
    command.args(flags).arg("--json");
    command
}

#[test]
fn equal_texts_without_a_whole_sketch_counted_as_missed() {
    let folder = Folder::new();
    let texts = [
        ("p", "one two three"),
        ("q", "four five six"),
        ("x", "!!!"),
        ("z", "!!!"),
    ];
    folder.records(
        "in.jsonl",
        &[&texts[..], &[("r", "red"), ("s", "red")]].concat(),
    );
    let pair = |a, b, label| format!("{{\"a\":\"{a}\",\"b\":\"{b}\",\"label\":{label}}}\n");
    let pairs = pair("x", "z", 1) + &pair("r", "s", 1) + &pair("p", "q", 0);
    for sketch in
        "none simhash:64 minhash:16 mod-p:16 buckets:8 i-match:6 super-shingle:6x14".split(' ')
    {
        let flags = ["--sketch", sketch];
        let answer = labelled(&folder, "labels", &pairs, &flags).succeed().json();
        let precision = &answer["row"]["curve"]["average_precision"];
        assert_eq!(precision, 1.0, "{sketch}");
        let flags = ["--shingles", "words:1", "--sketches", sketch];
        let swept = labelled(&folder, "sweep", &pairs, &flags).succeed().json();
        assert_eq!(
            swept["rows"][0]["curve"]["average_precision"], 1.0,
            "{sketch}"
        );
    }
    let cluster = |(id, cluster)| format!("{{\"id\":\"{id}\",\"cluster\":{cluster}}}\n");
    let clusters: String = [("x", 1), ("z", 1), ("r", 2), ("s", 2), ("p", 3), ("q", 4)]
        .map(cluster)
        .concat();
    let answer = labelled(&folder, "labels", &clusters, &[]).succeed().json();
    assert_eq!(answer["adjusted_rand_index"], 1.0);
    let core = "{\"core_id\":\"x\",\"labelled_duplicates\":[\"z\"]}\n{\"core_id\":\"p\",\"labelled_duplicates\":[]}\n";
    let answer = labelled(&folder, "labels", core, &["--sketch", "buckets:8"])
        .succeed()
        .json();
    assert_eq!(answer["accuracy"], 1.0);
}

#[test]
fn two_tests_were_advised_that_no_job_applies() {
    let folder = Folder::new();
    let text = |at: usize| {
        (0..12)
            .map(|word| format!("w{} ", (at / 2 * 12 + word) * (1 + at % 2 * word / 9)))
            .collect::<String>()
    };
    let texts: Vec<(String, String)> = (0..8).map(|at| (format!("d{at}"), text(at))).collect();
    let records: Vec<(&str, &str)> = texts.iter().map(|(id, text)| (&**id, &**text)).collect();
    folder.records("in.jsonl", &records);
    let labels: String = (0..7)
        .map(|at| {
            format!(
                "{{\"a\":\"d{at}\",\"b\":\"d{}\",\"label\":{}}}\n",
                at + 1,
                1 - at % 2
            )
        })
        .collect();
    let flags = [
        "--two-tests",
        "--shingles",
        "words:1,words:2",
        "--weights",
        "set",
        "--masks",
        "none",
    ];
    let answer = labelled(&folder, "sweep", &labels, &flags).succeed().json();
    // Two settings each of simhash, super-shingles, min-hash and sets: all but min-hash with each set, and the sets with each other.
    let two = answer["two_tests"].as_array().unwrap();
    assert!(!two.is_empty() && two.len() <= 9, "{two:?}");
    for rule in two {
        let command = rule["command"].as_str().unwrap_or_default();
        assert!(
            command.contains("lookalike pairs") && command.contains(" --and "),
            "{rule}"
        );
    }
    let expected = answer["expected"].as_array().unwrap().last().unwrap();
    assert_eq!(expected["choice"], "two tests");
    assert!(expected["settings"].as_u64() <= Some(9), "{expected}");
}

#[test]
fn weights_that_fit_no_features_were_left_out_of_a_sweep_without_a_word() {
    let sweep = |shingles: &str| {
        let mut command = lookalike("evaluate");
        command.arg("sweep").arg(examples().join("articles.jsonl"));
        command.args(["--shingles", shingles, "--weights", "tf-length-noun"]);
        command.args(["--sketches", "simhash:64", "--masks", "none"]);
        command
    };
    sweep("words:5")
        .fail(2)
        .says(&["tf-length-noun applies to single words", "words:1"]);
    let told = sweep("words:1,words:5,chars:9").succeed();
    told.says(&[
        "--weights tf-length-noun",
        "not tried with words:5, chars:9",
    ]);
}

#[test]
fn an_audit_of_the_method_of_equal_texts_was_said_to_miss_nothing() {
    let mut audit = lookalike("evaluate");
    audit.arg("audit").arg(examples().join("articles.jsonl"));
    audit
        .args(["--method", "exact"])
        .fail(2)
        .says(&["exact finds only equal texts"]);
}

#[test]
fn labels_with_a_byte_order_mark_were_no_json() {
    let folder = Folder::new();
    folder.records("in.jsonl", &[("a", "one"), ("b", "one"), ("c", "two")]);
    let labels = "\u{feff}{\"a\":\"a\",\"b\":\"b\",\"label\":1}\r\n{\"a\":\"a\",\"b\":\"c\",\"label\":0}\r\n";
    assert_eq!(
        labelled(&folder, "labels", labels, &[]).succeed().json()["labelled"],
        2
    );
}

#[test]
fn labels_were_refused_if_compressed_and_looked_at_only_after_all_documents() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", "one"), ("b", "one"), ("c", "two")]);
    let plain = "{\"a\":\"a\",\"b\":\"b\",\"label\":1}\n{\"a\":\"a\",\"b\":\"c\",\"label\":0}\n";
    let evaluate = |what: &str, input: &Path, labels: &Path| {
        let mut command = lookalike("evaluate");
        command.arg(what).arg(input).arg("--labels").arg(labels);
        command.args(["-q", "--json", "--memory", "64M"]);
        command
    };
    let torn = folder.add("torn.gz", [0x1f, 0x8b, 8]);
    // 300 MB, far more than they may take.
    let bomb = zstd::encode_all(std::io::repeat(b'\n').take(300 << 20), 1).unwrap();
    let bomb = folder.add("bomb.zst", bomb);
    // Refused as well, but later.
    let damaged = folder.add("damaged.jsonl", "nothing\n");
    for what in ["labels", "sweep"] {
        let expected = evaluate(what, &input, &folder.add("plain", plain)).succeed();
        let packed = zstd::encode_all(plain.as_bytes(), 1).unwrap();
        let found = evaluate(what, &input, &folder.add("packed", packed)).succeed();
        assert_eq!(found.out, expected.out, "{what}");
        let missing = folder.path("missing");
        for (labels, told) in [
            (&torn, "torn.gz: unexpected end"),
            (&missing, "missing: "),
            (&bomb, "bomb.zst: the labels do not fit"),
        ] {
            evaluate(what, &damaged, labels).fail(1).says(&[told]);
        }
    }
}
