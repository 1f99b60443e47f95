//! Published vectors of schemes that need more than a text (function words, phrases and weights with their table of terms, keys, fields of a
//! document), of masks, of fingerprints of other widths and of one-permutation hashing.
//!
//! To write the files for new inputs, run `cargo test -p lookalike --test it -- --ignored write_scheme_vectors`. Files that are published never
//! change.

use std::sync::Arc;

use lookalike::feature::{Anchor, DocumentFields};
use lookalike::scheme::TokenHash;
use lookalike::sketch::{OnePermutation, Simhash};
use lookalike::{FeatureExtractor, Scheme, Sketch, TermCounts, Terms};
use serde_json::{Value, json};

use crate::vectors::{TEXTS, features, hex, path, rows, scheme_with};

fn scheme(row: &Value) -> Scheme {
    let key = row["key"].as_str().map(|key| key.parse().unwrap());
    Scheme::parse_with_key(row["scheme"].as_str().unwrap(), key).unwrap()
}

/// Returns the texts of a list; none if there is no list.
fn strings(value: &Value) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten();
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

/// Returns the fingerprint of a text; weights by rarity are those of `collection`.
fn fingerprint(scheme: &Scheme, collection: &[String], text: &str) -> Value {
    let terms = scheme.needs_terms().then(|| table(scheme, collection));
    let mut extractor = FeatureExtractor::with_terms(scheme, terms.as_ref()).unwrap();
    let bits = scheme.sketch.fingerprint_bits();
    let made = Simhash::wide(&extractor.extract(text), bits);
    made.map_or(Value::Null, |made| {
        json!(format!("{:0digits$x}", made.0, digits = bits as usize / 4))
    })
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

#[test]
fn words_stay() {
    for row in published("words.jsonl", 200) {
        let text = row["text"].as_str().unwrap();
        assert_eq!(features(&scheme(&row), text), row["features"], "{row}");
    }
}

#[test]
fn weights_stay() {
    for row in published("weights.jsonl", 100) {
        let (collection, text) = (strings(&row["collection"]), row["text"].as_str().unwrap());
        assert_eq!(
            fingerprint(&scheme(&row), &collection, text),
            row["fingerprint"],
            "{row}"
        );
    }
}

/// Texts that contain numbers and dates, used in addition to [`TEXTS`].
const DATED: &[&str] = &[
    "on 2024-05-01 at 9:05 pm, or Mon, 5th May 2024 21:05:33.120Z",
    "May 5, 2024; 1.5.2024, 05/01/24, 05-Jan-2024, the 1st of June, Sept. 7 and Sep. 7",
    "1,234.50 and 12:30 of 127.0.0.1, version 1.2.3, B3, 1..2, mayor 2024, you may 3x it",
    "\u{4e8e}2024\u{5e74}5\u{6708}1\u{65e5}\u{5230} \u{e27}\u{e31}\u{e19}2024-05-01\u{e27}\u{e31}\u{e19} \u{e55}2024-05-01\u{e55}",
    "am Montag, 5. MÄRZ 2024, 9:05; lundi 1er mai 2024 et 5. april; 5 de mayo del 2024, maj 2024; it was 5. May we go",
    "5 мая 2024, 5 травня і 5. května, toukokuu 2024, 5 MAYIS 2024; mars 68, 5 de la calle, Montag, 5 Brote",
    "x2024-05-01 2024-05-01x 2024-05-01T21:05+02:00! \u{664}\u{665}\u{666} \u{bd}",
];

/// Texts for long runs of words, of which some repeat words within a run.
fn repetitive() -> impl Iterator<Item = String> {
    let repeated = [("a ", 70), ("a b ", 40), ("a b c d ", 20)];
    let repeated = repeated.map(|(words, times)| words.repeat(times));
    let numbered = [40, 80].map(|count| {
        let words = (0..count).map(|number| format!("w{number}"));
        words.collect::<Vec<_>>().join(" ")
    });
    repeated.into_iter().chain(numbered)
}

/// Masks, sizes of runs, and hashes of words.
const WORD_SCHEMES: &[&str] = &[
    "mask=numbers shingle=words:1",
    "mask=dates shingle=words:2",
    "mask=numbers,dates shingle=words:3",
    "shingle=words:3+5",
    "shingle=words:1+2+4 seed=5",
    "shingle=words:1 hash=lookup3",
    "shingle=words:2 hash=lookup3 seed=1311768467463790320",
    "shingle=chars:9 hash=lookup3 seed=3",
];

/// Weights, and fingerprints of other widths.
const WEIGHT_SCHEMES: &[&str] = &[
    "shingle=words:1 weight=log-tf sketch=simhash:64",
    "shingle=words:1 weight=log-tf sketch=simhash:32",
    "shingle=words:1 weight=idf sketch=simhash:64",
    "shingle=words:2 weight=tf-idf sketch=simhash:64",
    "shingle=words:1 weight=log-tf-idf sketch=simhash:128",
    "shingle=words:3 weight=set sketch=simhash:128",
    "shingle=words:1 weight=tf sketch=simhash:128",
    "shingle=words:3+5 weight=set sketch=simhash:32",
];

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

#[test]
#[ignore = "writes the files that the other tests compare with"]
fn write_vectors_of_words_and_weights() {
    let mut made = Vec::new();
    let texts = || TEXTS.iter().chain(DATED);
    for kind in WORD_SCHEMES {
        let scheme = scheme_with(&format!("segment=word-chars {kind}"));
        made.extend(texts().map(|text| {
            json!({"scheme": scheme.to_string(), "text": text, "features": features(&scheme, text)})
        }));
    }
    let key = "000102030405060708090a0b0c0d0e0f";
    for shingle in ["words:1", "words:4"] {
        let scheme = scheme_with(&format!("segment=word-chars shingle={shingle}"));
        let scheme = scheme.hash(TokenHash::SipHash(key.parse().unwrap()));
        made.extend(texts().map(|text| {
            json!({"scheme": scheme.to_string(), "key": key, "text": text, "features": features(&scheme, text)})
        }));
    }
    for shingle in ["words:16", "words:17", "words:64"] {
        let scheme = scheme_with(&format!("segment=word-chars shingle={shingle}"));
        made.extend(repetitive().map(|text| {
            json!({"scheme": scheme.to_string(), "text": text, "features": features(&scheme, &text)})
        }));
    }
    write("words.jsonl", &made);

    made.clear();
    let collection: Vec<String> = COLLECTION.iter().map(|text| (*text).to_owned()).collect();
    for kind in WEIGHT_SCHEMES {
        let mut scheme = scheme_with(&format!("segment=word-chars {kind}"));
        if scheme.needs_terms() {
            scheme = scheme.terms(Some(table(&scheme, &collection).id()));
        }
        for text in COLLECTION.iter().chain(SENTENCES) {
            let mut row = json!({"scheme": scheme.to_string(), "text": text, "fingerprint": fingerprint(&scheme, &collection, text)});
            if scheme.needs_terms() {
                row["collection"] = json!(collection);
            }
            made.push(row);
        }
    }
    write("weights.jsonl", &made);
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
