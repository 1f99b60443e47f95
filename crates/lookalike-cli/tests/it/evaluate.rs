//! `lookalike evaluate` through the binary, on the public corpora and on bad input.

use crate::support::{Finish, Folder, TRUTH, corpus, lookalike, pairs_of};
use serde_json::Value;

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

/// A scheme of 8 bytes a page against what people say.
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

/// The audit's limits hold what the brute-force truth says, on the sample and on the whole.
#[test]
fn an_audit_agrees_with_the_truth_file() {
    let Some(documents) = corpus("reuters21578/docs.jsonl.gz") else {
        return;
    };
    let truth = corpus("reuters21578/jaccard_w5.jsonl").unwrap();
    let mut truth = pairs_of(
        &crate::support::json_lines(&crate::support::contents(&truth)),
        "j",
    );
    truth.retain(|_, j| *j >= 0.8);
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
    assert_eq!(all["true_pairs"], 2 * truth.len());
    let limits = part["all_true_pairs"].as_array().unwrap();
    let number = |value: &Value| value.as_f64().unwrap();
    assert!(number(&limits[1]) <= truth.len() as f64 && truth.len() as f64 <= number(&limits[2]));
    let recall = number(&all["recall"]["value"]);
    assert!(number(&part["recall"]["low"]) <= recall && recall <= number(&part["recall"]["high"]));
}

#[test]
fn a_sweep_writes_a_page_and_advises() {
    let folder = Folder::new();
    let story = crate::support::STORY;
    let rows: Vec<(String, String)> = (0..12)
        .map(|at| {
            (
                format!("d{at}"),
                format!("{} {story} and ended as number {}", at / 2, at / 2),
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
        text.text().contains("The cheapest that reach it"),
        "{}",
        text.text()
    );
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("<h2>Advice</h2>") && html.contains("<svg class=\"plot\""));
    let json = command.arg("--json").succeed().json();
    // simhash with four weights, three other sketches, two shingle sizes each.
    assert_eq!(json["rows"].as_array().unwrap().len(), 14);
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
        &["all 1 labels are true", "--positive"],
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
        .says(&["3 documents: all of them are the sample"]);
    lookalike("evaluate")
        .arg("audit")
        .arg(&input)
        .fail(2)
        .says(&["exact"]);
}
