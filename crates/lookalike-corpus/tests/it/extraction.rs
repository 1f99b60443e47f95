//! Share of the main text of real pages that the modes find, by the measures of two public benchmarks.

use std::collections::HashMap;
use std::hash::Hash;

use lookalike::{Extraction, HtmlMode};
use lookalike_corpus::HtmlText;
use serde_json::Value;

/// Returns the tokens `\w+`.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    words.filter(|word| !word.is_empty())
}

fn bag<T: Hash + Eq>(items: impl Iterator<Item = T>) -> HashMap<T, u32> {
    let mut bag = HashMap::new();
    for item in items {
        *bag.entry(item).or_insert(0) += 1;
    }
    bag
}

fn size<T>(bag: &HashMap<T, u32>) -> f64 {
    bag.values().map(|&count| f64::from(count)).sum()
}

/// Returns the size of the intersection of two multisets.
fn shared<T: Hash + Eq>(a: &HashMap<T, u32>, b: &HashMap<T, u32>) -> f64 {
    let both = a
        .iter()
        .filter_map(|(item, &n)| Some(f64::from(n.min(*b.get(item)?))));
    both.sum()
}

fn f1(precision: f64, recall: f64) -> f64 {
    2.0 * precision * recall / (precision + recall)
}

/// Returns the multiset of shingles of four tokens, case-sensitive; a shorter text is one shingle.
fn shingles(text: &str) -> HashMap<Vec<&str>, u32> {
    let tokens: Vec<&str> = tokens(text).collect();
    bag(tokens.windows(tokens.len().clamp(1, 4)).map(<[_]>::to_vec))
}

/// Computes the measure of article-extraction-benchmark: F1 of the mean precision and recall.
fn article_score(pages: &[(String, String)]) -> f64 {
    let (mut precision, mut recall) = (Vec::new(), Vec::new());
    for (truth, found) in pages {
        let (truth, found) = (shingles(truth), shingles(found));
        let both = shared(&truth, &found);
        if !found.is_empty() {
            precision.push(both / size(&found));
        }
        if !truth.is_empty() {
            recall.push(both / size(&truth));
        }
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    f1(mean(&precision), mean(&recall))
}

/// Computes the measure of WCXB: mean of the pages' F1 over words in lower case.
fn word_score(pages: &[(String, String)]) -> f64 {
    let score = |(truth, found): &(String, String)| {
        let (truth, found) = (truth.to_lowercase(), found.to_lowercase());
        let (truth, found) = (bag(tokens(&truth)), bag(tokens(&found)));
        match shared(&truth, &found) {
            0.0 => f64::from(truth.is_empty() && found.is_empty()),
            both => f1(both / size(&found), both / size(&truth)),
        }
    };
    pages.iter().map(score).sum::<f64>() / pages.len() as f64
}

/// Returns the true and the found text of every page.
fn pages(corpus: &str, mode: HtmlMode) -> Option<Vec<(String, String)>> {
    let mut extractor = HtmlText::new(Extraction {
        mode,
        ..Default::default()
    })
    .unwrap();
    let lines = crate::support::shared_lines(corpus)?;
    let page = |line: &String| {
        let page: Value = serde_json::from_str(line).unwrap();
        let mut found = String::new();
        extractor.extract(page["html"].as_str().unwrap(), &mut found);
        (page["text"].as_str().unwrap().to_owned(), found)
    };
    Some(lines.iter().map(page).collect())
}

#[test]
fn the_scorers_know_known_answers() {
    let page = |truth: &str, found: &str| vec![(truth.to_owned(), found.to_owned())];
    assert_eq!(article_score(&page("a b c d e", "a b c d e")), 1.0);
    // One of two shingles is found, and the only one found is right.
    assert_eq!(article_score(&page("a b c d e", "a b c d")), f1(1.0, 0.5));
    assert_eq!(word_score(&page("A b b", "a b c d")), f1(0.5, 2.0 / 3.0));
    assert_eq!(word_score(&page("a", "b")), 0.0);
}

/// Modes, with their minimum F1 on article-extraction-benchmark and on wcxb-pages.
const GOALS: [(HtmlMode, f64, f64); 3] = [
    (HtmlMode::Fast, 0.87, 0.78),
    (HtmlMode::Main, 0.954, 0.85),
    (HtmlMode::Quality, 0.965, 0.86),
];

#[test]
#[expect(clippy::print_stderr, reason = "figures for the documentation")]
fn modes_reach_their_goals_on_public_benchmarks() {
    let is_built = |mode: HtmlMode| HtmlText::new(mode.into()).is_ok();
    for (mode, articles, words) in GOALS.into_iter().filter(|(mode, ..)| is_built(*mode)) {
        let Some(found) = pages("article-extraction-benchmark/pages.jsonl.gz", mode) else {
            return;
        };
        let score = article_score(&found);
        eprintln!("{mode}: {score:.4} on articles");
        assert!(score >= articles, "{mode}: {score} on articles");
        let found = pages("wcxb-pages/pages.jsonl.gz", mode).unwrap();
        let score = word_score(&found);
        eprintln!("{mode}: {score:.4} on pages of seven kinds");
        assert!(score >= words, "{mode}: {score} on pages of seven kinds");
    }
}
