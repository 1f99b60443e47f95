//! Published vectors of schemes that need more than a text (function words, phrases with their table of terms, fields of a document) and of
//! one-permutation hashing.
//!
//! To write the files for new inputs, run `cargo test -p lookalike --test it -- --ignored write_scheme_vectors`. Files that are published never
//! change.

use std::sync::Arc;

use lookalike::feature::{Anchor, DocumentFields};
use lookalike::sketch::{OnePermutation, Simhash};
use lookalike::{FeatureExtractor, Scheme, Sketch, TermCounts, Terms};
use serde_json::{Value, json};

use crate::vectors::{TEXTS, features, hex, path, rows, scheme_with};

fn scheme(row: &Value) -> Scheme {
    row["scheme"].as_str().unwrap().parse().unwrap()
}

fn strings(value: &Value) -> Vec<String> {
    let texts = value.as_array().unwrap().iter();
    texts
        .map(|text| text.as_str().unwrap().to_owned())
        .collect()
}

fn hex64(values: &[u64]) -> Value {
    hex(values.iter().map(|value| format!("{value:016x}")))
}

/// Builds the table of terms that `scheme` needs from the texts of `collection`.
fn table(scheme: &Scheme, collection: &[String]) -> Arc<Terms> {
    let mut extractor = FeatureExtractor::new(&scheme.counted());
    let mut counts = TermCounts::new(scheme);
    for text in collection {
        counts.add(extractor.extract(text).set);
    }
    Arc::new(counts.terms())
}

/// Returns all features of a text in order, with the phrases that `collection` has.
fn phrases(scheme: &Scheme, collection: &[String], text: &str) -> Value {
    let terms = table(scheme, collection);
    let mut extractor = FeatureExtractor::with_terms(scheme, &terms).unwrap();
    hex64(extractor.features(text))
}

fn document_fields(row: &Value) -> DocumentFields {
    let anchor = |anchor: &Value| {
        let part = |name: &str| anchor[name].as_str().unwrap().to_owned();
        Anchor {
            text: part("text"),
            before: part("before"),
            after: part("after"),
        }
    };
    let anchors = row["anchors"].as_array().unwrap().iter();
    DocumentFields {
        anchors: anchors.map(anchor).collect(),
        in_links: strings(&row["in_links"]),
        out_links: strings(&row["out_links"]),
    }
}

/// Returns the features with their weights in 256ths, in ascending order, and the fingerprint made of them.
fn weighted(scheme: &Scheme, text: &str, fields: &Value) -> (Value, Value) {
    let mut extractor = FeatureExtractor::new(scheme);
    let features = extractor.extract_with(text, &document_fields(fields));
    let weights = features.weights.iter();
    let weights = weights.map(|(feature, weight)| json!([format!("{feature:016x}"), weight]));
    let fingerprint = Simhash::of(&features).map(|bits| bits.to_string());
    (weights.collect(), json!(fingerprint))
}

fn one_permutation(scheme: &Scheme, text: &str) -> Value {
    let Sketch::OnePermutation { bins } = scheme.sketch else {
        panic!("no one-permutation sketch: {scheme}");
    };
    let mut extractor = FeatureExtractor::new(scheme);
    let made = OnePermutation::new(bins.into(), scheme.seed).signature(extractor.feature_set(text));
    made.map_or(Value::Null, |made| {
        hex(made.values().iter().map(|value| format!("{value:08x}")))
    })
}

/// Reads the rows of a file, and checks that there are at least `least`.
fn published(name: &str, least: usize) -> Vec<Value> {
    let rows = rows(name);
    assert!(rows.len() >= least, "{name} is cut short");
    rows
}

#[test]
fn function_words_stay() {
    for row in published("stops.jsonl", 60) {
        let text = row["text"].as_str().unwrap();
        assert_eq!(features(&scheme(&row), text), row["features"], "{row}");
    }
}

#[test]
fn phrases_stay() {
    for row in published("phrases.jsonl", 12) {
        let (collection, text) = (strings(&row["collection"]), row["text"].as_str().unwrap());
        assert_eq!(
            phrases(&scheme(&row), &collection, text),
            row["features"],
            "{row}"
        );
    }
}

#[test]
fn other_fields_stay() {
    for row in published("fields.jsonl", 20) {
        let text = row["text"].as_str().unwrap();
        let (weights, fingerprint) = weighted(&scheme(&row), text, &row["fields"]);
        assert_eq!(weights, row["weights"], "{row}");
        assert_eq!(fingerprint, row["fingerprint"], "{row}");
    }
}

#[test]
fn one_permutation_stays() {
    for row in published("oph.jsonl", 60) {
        let text = row["text"].as_str().unwrap();
        assert_eq!(
            one_permutation(&scheme(&row), text),
            row["signature"],
            "{row}"
        );
    }
}

/// Texts that contain function words, used in addition to [`TEXTS`].
const SENTENCES: &[&str] = &[
    "It was the best of times, it was the worst of times, and all that she had said to them was not from this.",
    "Would they have been there if he had not, as you said, been on the boat with her by which we were to go?",
    "THE of And the OF and; the, of. and!",
    "no function words here except none",
    "what",
];

/// A small collection in which some words form phrases.
const COLLECTION: &[&str] = &[
    "New York has an old harbour",
    "the harbour of New York",
    "in New York it rains on the harbour master",
    "a harbour master of old York",
    "machine learning for the harbour master",
    "machine learning in New York",
    "machine learning, machine learning",
    "nothing new",
    "",
    "the the the the",
    "of the harbour",
    "on the machine",
    "quiet pages of nothing else at all",
    "another quiet page about rain",
];

fn write(name: &str, rows: &[Value]) {
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    std::fs::write(path(name), lines).unwrap();
}

fn texts() -> impl Iterator<Item = &'static str> {
    TEXTS.iter().chain(SENTENCES).copied()
}

#[test]
#[ignore = "writes the files that the other tests compare with"]
fn write_scheme_vectors() {
    let mut made = Vec::new();
    for kind in [
        "segment=word-chars shingle=stops:1",
        "segment=word-chars shingle=stops:4 seed=9",
        "normalize=none case=keep shingle=stops:3",
    ] {
        let scheme = scheme_with(kind);
        made.extend(texts().map(|text| {
            json!({"scheme": scheme.to_string(), "text": text, "features": features(&scheme, text)})
        }));
    }
    write("stops.jsonl", &made);

    made.clear();
    let collection: Vec<String> = COLLECTION.iter().map(|text| (*text).to_owned()).collect();
    for least in [2, 3] {
        let scheme = scheme_with(&format!("segment=word-chars shingle=phrases:{least}"));
        let scheme = scheme.terms(Some(table(&scheme, &collection).id()));
        made.extend(collection.iter().map(|text| {
            let features = phrases(&scheme, &collection, text);
            json!({"scheme": scheme.to_string(), "collection": collection, "text": text, "features": features})
        }));
    }
    write("phrases.jsonl", &made);

    made.clear();
    for (weight, fields) in [
        ("set", "anchors:3~5,in-links:1,out-links:1"),
        ("tf", "anchors:2"),
        ("tf", "anchors:255~2,out-links:7"),
        ("set", "in-links:4"),
    ] {
        let scheme = scheme_with(&format!(
            "segment=word-chars shingle=words:1 weight={weight} fields={fields} sketch=simhash:64"
        ));
        for (text, fields) in documents_with_fields() {
            let (weights, fingerprint) = weighted(&scheme, text, &fields);
            made.push(json!({"scheme": scheme.to_string(), "text": text, "fields": fields, "weights": weights,
                "fingerprint": fingerprint}));
        }
    }
    write("fields.jsonl", &made);

    made.clear();
    for (shingle, seed, bins) in [("words:3", 0, 16), ("words:1", 7, 200), ("chars:5", 1, 300)] {
        let scheme = scheme_with(&format!(
            "segment=word-chars shingle={shingle} seed={seed} sketch=oph:{bins}"
        ));
        made.extend(texts().map(|text| {
            let signature = one_permutation(&scheme, text);
            json!({"scheme": scheme.to_string(), "text": text, "signature": signature})
        }));
    }
    write("oph.jsonl", &made);
}

fn documents_with_fields() -> Vec<(&'static str, Value)> {
    let anchor = |text: &str, before: &str, after: &str| json!({"text": text, "before": before, "after": after});
    let fields = |anchors: Vec<Value>, in_links: &[&str], out_links: &[&str]| json!({"anchors": anchors, "in_links": in_links, "out_links": out_links});
    vec![
        ("", fields(vec![], &[], &[])),
        ("the harbour clock", fields(vec![], &[], &[])),
        (
            "the harbour clock, the clock of the harbour",
            fields(
                vec![anchor(
                    "The Harbour clock",
                    "see also on this page",
                    "which stands since the year 1903 in the square",
                )],
                &[
                    "http://a.example/1",
                    "http://b.example/",
                    "http://a.example/1",
                ],
                &["http://c.example/?q=1"],
            ),
        ),
        (
            "one two two three three three",
            fields(
                vec![
                    anchor("two", "", ""),
                    anchor("two three", "one", "four five six seven"),
                    anchor("", "left", "right"),
                ],
                &[],
                &["x", "y", "x"],
            ),
        ),
        (
            "",
            fields(
                vec![anchor("only an anchor", "a b c d e f g", "")],
                &["http://a.example/1"],
                &[],
            ),
        ),
    ]
}
