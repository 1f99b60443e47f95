//! Real corpora with their brute-force truth: exactly the true pairs are found.

use std::path::Path;

use crate::support::{Finish, Pairs, TRUTH, contents, corpus, json_lines, lookalike, pairs_of};

/// A corpus and its truth file.
struct Set {
    documents: &'static str,
    truth: &'static str,
    shingle: &'static str,
}

const REUTERS: Set = Set {
    documents: "reuters21578/docs.jsonl.gz",
    truth: "reuters21578/jaccard_w5.jsonl",
    shingle: "words:5",
};
const NEWSGROUPS: Set = Set {
    documents: "newsgroups20/docs.jsonl.gz",
    truth: "newsgroups20/jaccard_w5.jsonl",
    shingle: "words:5",
};
const LICENSES: Set = Set {
    documents: "license-texts/docs.jsonl.gz",
    truth: "license-texts/jaccard_w5.jsonl.gz",
    shingle: "words:5",
};
const LAWS: Set = Set {
    documents: "de-laws-revisions/docs.jsonl.gz",
    truth: "de-laws-revisions/jaccard_w5.jsonl.gz",
    shingle: "words:5",
};

impl Set {
    /// Returns the true pairs at or above a threshold.
    fn pairs(&self, threshold: f64) -> Option<Pairs> {
        let mut truth = pairs_of(&json_lines(&contents(&corpus(self.truth)?)), "j");
        truth.retain(|_, j| *j >= threshold);
        Some(truth)
    }

    /// Returns the pairs that the command finds, and checks their order.
    fn found(&self, threshold: f64, flags: &[&str]) -> Option<Pairs> {
        let documents = corpus(self.documents)?;
        Some(run_pairs(&documents, self.shingle, threshold, flags))
    }

    /// Checks that the command finds exactly the truth, which has `count` pairs.
    #[track_caller]
    fn is_found_exactly(&self, threshold: f64, count: usize) {
        let (Some(truth), Some(found)) = (self.pairs(threshold), self.found(threshold, &[])) else {
            return;
        };
        assert_eq!(truth.len(), count, "the truth itself has changed");
        same(&truth, &found);
    }

    /// Checks that the command with each of these options finds only true pairs with their true similarities. Returns the shares found.
    #[track_caller]
    fn recalls<const N: usize>(&self, threshold: f64, runs: [&[&str]; N]) -> Option<[f64; N]> {
        let truth = self.pairs(threshold)?;
        Some(runs.map(|flags| {
            let found = self.found(threshold, flags).unwrap();
            are_true(&truth, &found);
            found.len() as f64 / truth.len() as f64
        }))
    }

    #[track_caller]
    fn recall(&self, threshold: f64, flags: &[&str]) -> Option<f64> {
        self.recalls(threshold, [flags]).map(|[share]| share)
    }
}

fn run_pairs(documents: &Path, shingle: &str, threshold: f64, flags: &[&str]) -> Pairs {
    let mut command = lookalike("pairs");
    command.arg(documents).args([
        "--quiet",
        "--shingle",
        shingle,
        "--threshold",
        &threshold.to_string(),
    ]);
    let rows = command.args(TRUTH).args(flags).succeed().lines();
    let keys: Vec<[&str; 2]> = rows
        .iter()
        .map(|row| ["a", "b"].map(|end| row[end].as_str().unwrap()))
        .collect();
    assert!(keys.iter().all(|[a, b]| a < b), "a < b");
    assert!(keys.is_sorted_by(|x, y| x < y), "sorted, each once");
    pairs_of(&rows, "similarity")
}

/// Checks that both have the same pairs with the same similarities.
#[track_caller]
fn same(truth: &Pairs, found: &Pairs) {
    are_true(truth, found);
    let missing = truth.iter().filter(|row| !found.contains_key(row.0));
    // All that were found are true, so as many are all of them.
    if found.len() != truth.len() {
        panic!("missing {:?}", missing.take(3).collect::<Vec<_>>());
    }
}

/// Checks that all these pairs are true, with their similarities; truth files are rounded to six digits.
#[track_caller]
fn are_true(truth: &Pairs, found: &Pairs) {
    for (pair, similarity) in found {
        let truly = truth.get(pair);
        assert!(
            truly.is_some_and(|truly| (similarity - truly).abs() <= 1e-6),
            "{pair:?}: {similarity}, really {truly:?}"
        );
    }
}

#[test]
fn reuters_exactly() {
    REUTERS.is_found_exactly(0.3, 623);
    REUTERS.is_found_exactly(0.5, 442);
    REUTERS.is_found_exactly(0.8, 277);
}

#[test]
fn newsgroups_exactly() {
    NEWSGROUPS.is_found_exactly(0.2, 4191);
    for threshold in [0.5, 0.8] {
        let Some(truth) = NEWSGROUPS.pairs(threshold) else {
            return;
        };
        NEWSGROUPS.is_found_exactly(threshold, truth.len());
    }
}

#[test]
fn all_479_257_pairs_of_licenses() {
    LICENSES.is_found_exactly(0.5, 479_257);
}

#[test]
fn german_laws_exactly() {
    let Some(truth) = LAWS.pairs(0.3) else { return };
    LAWS.is_found_exactly(0.3, truth.len());
    LAWS.is_found_exactly(0.9, 199);
}

#[test]
fn chinese_and_every_script_by_characters() {
    let chars = |documents, truth| Set {
        documents,
        truth,
        shingle: "chars:5",
    };
    chars("zh-laws/docs.jsonl.gz", "zh-laws/jaccard_c5.jsonl").is_found_exactly(0.3, 455);
    chars("zh-articles/docs.jsonl.gz", "zh-articles/jaccard_c5.jsonl").is_found_exactly(0.3, 20);
    chars("udhr/docs.jsonl.gz", "udhr/jaccard_c5.jsonl").is_found_exactly(0.2, 12);
    chars("udhr/docs.jsonl.gz", "udhr/jaccard_c5.jsonl").is_found_exactly(0.8, 4);
}

#[test]
fn pages_of_manuals_exactly() {
    let java = Set {
        documents: "java-api-html/docs.jsonl.gz",
        truth: "java-api-html/jaccard_w5.jsonl.gz",
        shingle: "words:5",
    };
    let manual = Set {
        documents: "manual-versions-html/docs.jsonl.gz",
        truth: "manual-versions-html/jaccard_w5.jsonl.gz",
        shingle: "words:5",
    };
    let install = Set {
        documents: "install-guide-html/docs.jsonl.gz",
        truth: "install-guide-html/jaccard_c5.jsonl.gz",
        shingle: "chars:5",
    };
    for set in [java, manual, install] {
        for threshold in [0.3, 0.8] {
            let Some(truth) = set.pairs(threshold) else {
                return;
            };
            set.is_found_exactly(threshold, truth.len());
        }
    }
}

/// The article heuristics alone would select a table that many of these pages share, and find 0.407 of the pairs, besides 111 pairs of different
/// pages.
#[test]
fn pages_of_reference_in_the_default_mode() {
    let folder = "java-api-html";
    let (Some(documents), Some(versions)) = (
        corpus(&format!("{folder}/docs.jsonl.gz")),
        corpus(&format!("{folder}/versions.jsonl.gz")),
    ) else {
        return;
    };
    let mut same = json_lines(&contents(&versions));
    same.retain(|row| row["j"].as_f64().is_some_and(|j| j >= 0.8));
    let same = pairs_of(&same, "j");
    let rows = lookalike("pairs")
        .arg(documents)
        .args(["--text", "html", "--threshold", "0.8", "--quiet"])
        .args(TRUTH)
        .succeed()
        .lines();
    let found = pairs_of(&rows, "similarity");
    let right = same.keys().filter(|two| found.contains_key(*two)).count();
    assert!(
        right as f64 >= 0.97 * same.len() as f64,
        "{right} of {}",
        same.len()
    );
    let page = |id: &str| id.split_once(':').map(|(_, page)| page.to_owned());
    let other = found.keys().filter(|(a, b)| page(a) != page(b)).count();
    assert!(other <= 4, "{other} pairs of different pages");
}

#[test]
fn the_ten_planted_articles() {
    let set = Set {
        documents: "mccormick-articles/docs.jsonl",
        truth: "mccormick-articles/jaccard_w3.jsonl",
        shingle: "words:3",
    };
    let Some(planted) = corpus("mccormick-articles/pairs.jsonl") else {
        return;
    };
    let planted = pairs_of(&json_lines(&contents(&planted)), "jaccard_w3");
    assert_eq!(planted.len(), 10);
    for threshold in [0.25, 0.8] {
        same(&planted, &set.found(threshold, &[]).unwrap());
    }
    let exact = set.pairs(0.1).unwrap();
    set.is_found_exactly(0.1, exact.len());
}

/// The default scheme segments words by Unicode's rules: the words differ, but the duplicates are the same.
#[test]
fn the_default_scheme_finds_the_planted_articles_too() {
    let Some(documents) = corpus("mccormick-articles/docs.jsonl") else {
        return;
    };
    let planted = pairs_of(
        &json_lines(&contents(
            &corpus("mccormick-articles/pairs.jsonl").unwrap(),
        )),
        "jaccard_w3",
    );
    let found = lookalike("pairs")
        .arg(documents)
        .arg("--quiet")
        .succeed()
        .lines();
    assert!(pairs_of(&found, "similarity").keys().eq(planted.keys()));
}

#[test]
fn minhash_has_precision_1_and_the_recall_it_states() {
    for (set, threshold) in [
        (&REUTERS, 0.8),
        (&REUTERS, 0.5),
        (&NEWSGROUPS, 0.5),
        (&LAWS, 0.8),
    ] {
        let Some(recall) = set.recall(threshold, &["--method", "minhash"]) else {
            return;
        };
        assert!(recall >= 0.999, "{}: {recall}", set.documents);
    }
}

#[test]
fn super_shingles_find_a_part_of_the_truth() {
    for (set, least) in [(&REUTERS, 0.7), (&LAWS, 0.7), (&NEWSGROUPS, 0.5)] {
        let Some(recall) = set.recall(0.8, &["--method", "super-shingle"]) else {
            return;
        };
        assert!(recall >= least, "{}: {recall}", set.documents);
    }
}

/// Fingerprints of texts at resemblance 0.8 differ in some ten of 64 bits, so a larger distance finds more.
#[test]
fn simhash_finds_a_part_of_the_truth() {
    for set in [&REUTERS, &LAWS, &NEWSGROUPS] {
        let simhash = |distance| ["--method", "simhash", "--distance", distance];
        let runs = ["3", "10", "16"].map(simhash);
        let Some([near, wide, widest]) = set.recalls(0.8, runs.each_ref().map(|run| &run[..]))
        else {
            return;
        };
        assert!(
            0.3 < near && near < wide && wide < widest,
            "{}: {near}, {wide}, {widest}",
            set.documents
        );
        assert!(
            wide > 0.8 && widest > 0.98,
            "{}: {wide}, {widest}",
            set.documents
        );
    }
}

#[test]
fn approximate_methods_on_dense_families() {
    let methods = ["minhash", "super-shingle", "simhash"];
    let runs = methods.map(|method| ["--method", method]);
    let Some(recalls) = LICENSES.recalls(0.8, runs.each_ref().map(|run| &run[..])) else {
        return;
    };
    for ((method, recall), least) in methods.iter().zip(recalls).zip([0.999, 0.1, 0.01]) {
        assert!(recall >= least, "{method}: {recall}");
    }
}
