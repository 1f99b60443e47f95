//! The published vectors of `docs/vectors`: no release may change any of their values.
//!
//! A new version of schemes gets new files. To write the files for new inputs, run `cargo test -p lookalike --test it -- --ignored write_vectors`.

use std::fmt::Display;
use std::path::PathBuf;

use lookalike::{FeatureExtractor, MinHash, Scheme, Simhash, Sketch};
use serde_json::{Value, json};

pub(crate) fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/vectors")
        .join(name)
}

pub(crate) fn rows(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(path(name)).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub(crate) fn hex(values: impl IntoIterator<Item = impl Display>) -> Value {
    values
        .into_iter()
        .map(|value| json!(value.to_string()))
        .collect()
}

pub(crate) fn features(scheme: &Scheme, text: &str) -> Value {
    let mut extractor = FeatureExtractor::new(scheme);
    hex(extractor
        .features(text)
        .iter()
        .map(|feature| format!("{feature:016x}")))
}

/// Returns the sketch of a text, or null if it has none.
fn sketch(scheme: &Scheme, text: &str) -> Value {
    let mut extractor = FeatureExtractor::new(scheme);
    let features = extractor.extract(text);
    let signature = || MinHash::new(scheme.sketch.functions(), scheme.seed).signature(features.set);
    match scheme.sketch {
        Sketch::None => panic!("the scheme makes no sketch"),
        Sketch::Simhash => Simhash::of(&features).map(|bits| json!(bits.to_string())),
        Sketch::MinHash { .. } => signature()
            .map(|made| hex(made.values().iter().map(|minimum| format!("{minimum:08x}")))),
        Sketch::SuperShingle { groups, rows } => signature().map(|made| {
            let made = made.super_shingles(groups.into(), rows.into()).unwrap();
            hex(made.values().iter().map(|group| format!("{group:016x}")))
        }),
        other => panic!("no vectors of {other}"),
    }
    .unwrap_or(Value::Null)
}

/// Returns the default scheme with the given fields replaced, such as `shingle=words:1 seed=42`.
pub(crate) fn scheme_with(fields: &str) -> Scheme {
    let mut scheme = Scheme::default().to_string();
    for field in fields.split(' ') {
        let (name, _) = field.split_once('=').expect("a field");
        let own = scheme
            .split(' ')
            .find(|own| own.split_once('=').is_some_and(|own| own.0 == name))
            .expect("a field of schemes")
            .to_owned();
        scheme = scheme.replace(&format!(" {own}"), &format!(" {field}"));
    }
    scheme.parse().unwrap()
}

fn check(name: &str, key: &str, value: fn(&Scheme, &str) -> Value) {
    let rows = rows(name);
    assert!(rows.len() >= 20, "{name} is cut short");
    for row in rows {
        let scheme: Scheme = row["scheme"].as_str().unwrap().parse().unwrap();
        let text = row["text"].as_str().unwrap();
        assert_eq!(
            value(&scheme, text),
            row[key],
            "{name} moved: {scheme} {text:?}"
        );
    }
}

#[test]
fn features_stay() {
    check("features.jsonl", "features", features);
}

#[test]
fn simhash_stays() {
    check("simhash.jsonl", "fingerprint", sketch);
}

#[test]
fn minhash_stays() {
    check("minhash.jsonl", "signature", sketch);
}

#[test]
fn super_shingles_stay() {
    check("super-shingle.jsonl", "super_shingles", sketch);
}

#[cfg(feature = "languages")]
#[test]
fn features_of_languages_stay() {
    check("languages.jsonl", "features", features);
}

/// Texts that dictionaries, stop words or stems change, used in addition to [`TEXTS`].
#[cfg(feature = "languages")]
const LANGUAGE_TEXTS: &[&str] = &[
    "\u{6211}\u{4eec}\u{6765}\u{5230}\u{5317}\u{4eac}\u{6e05}\u{534e}\u{5927}\u{5b66}\u{ff0c}\u{5f00}\u{6e90}\u{6709}\u{4e00}\u{4e2a}\u{597d}\u{5904}\u{3002}",
    "\u{7528}Python3\u{7f16}\u{5199}\u{7a0b}\u{5e8f}\u{3005} ABC\u{516c}\u{53f8}",
    "\u{6771}\u{4eac}\u{90fd}\u{306b}\u{4f4f}\u{3093}\u{3067}\u{3044}\u{307e}\u{3059}\u{3002}\u{30b3}\u{30f3}\u{30d4}\u{30e5}\u{30fc}\u{30bf}",
    "\u{e01}\u{e0e}\u{e2b}\u{e21}\u{e32}\u{e22}\u{e44}\u{e17}\u{e22} \u{e9e}\u{eb2}\u{eaa}\u{eb2}\u{ea5}\u{eb2}\u{ea7}",
    "\u{1797}\u{17b6}\u{179f}\u{17b6}\u{1781}\u{17d2}\u{1798}\u{17c2}\u{179a} \u{1019}\u{103c}\u{1014}\u{103a}\u{1019}\u{102c}\u{1018}\u{102c}\u{101e}\u{102c}",
    "The runners were running through the connected forests of their villages, and nobody stopped them.",
    "Die verbundenen W\u{e4}lder sind alles, was den D\u{f6}rfern dieses Landes noch geblieben ist.",
];

#[cfg(feature = "languages")]
const LANGUAGE_SCHEMES: &[&str] = &[
    "segment=languages/jieba-0.11.0/icu-2.4.0 shingle=words:1",
    "normalize=nfkc case=keep segment=languages/jieba-0.11.0/icu-2.4.0 shingle=words:3 seed=7",
    "shingle=words:1 stop=de,en/stop-words-0.10.1",
    "shingle=words:2 stop=auto/whatlang-0.18.0/stop-words-0.10.1 stem=auto/whatlang-0.18.0/frostem-2.20261016.1",
    "segment=languages/jieba-0.11.0/icu-2.4.0 shingle=words:1 stem=en/frostem-2.20261016.1",
];

#[cfg(feature = "languages")]
#[test]
#[ignore = "writes the file that another test compares with"]
fn write_vectors_of_languages() {
    let mut out = String::new();
    for scheme in LANGUAGE_SCHEMES {
        let scheme = scheme_with(scheme);
        for text in TEXTS.iter().chain(LANGUAGE_TEXTS) {
            let features = features(&scheme, text);
            let row = json!({"scheme": scheme.to_string(), "text": text, "features": features});
            out += &format!("{row}\n");
        }
    }
    std::fs::write(path("languages.jsonl"), out).unwrap();
}

pub(crate) const TEXTS: &[&str] = &[
    "",
    " \t\r\n",
    "!?",
    "word",
    "The quick brown fox jumps over the lazy dog; THE QUICK BROWN FOX!",
    "line one\r\nline two\nline\tthree",
    "nul\0byte and \u{7f} delete",
    "can't stop: 3.14, 1,000 and a:b or x_y __ __init__ U.S.A.",
    "caf\u{e9} cafe\u{301} CAF\u{c9}",
    "Stra\u{df}e \u{d6}L\u{c4} na\u{ef}ve \u{132}sselmeer \u{fb01}n",
    "\u{39f}\u{394}\u{39f}\u{3a3} \u{3a3}\u{3b1}\u{3c2} \u{3a3}",
    "\u{130}stanbul I\u{131} \u{1c5}",
    "\u{41c}\u{43e}\u{441}\u{43a}\u{432}\u{430} \u{2014} \u{441}\u{442}\u{43e}\u{43b}\u{438}\u{446}\u{430}",
    "\u{627}\u{644}\u{633}\u{644}\u{627}\u{645} \u{639}\u{644}\u{64a}\u{643}\u{645}",
    "\u{5e9}\u{5b8}\u{5dc}\u{5d5}\u{5b9}\u{5dd} \u{5e6}\u{5d4}\"\u{5dc}",
    "\u{928}\u{92e}\u{938}\u{94d}\u{924}\u{947} \u{926}\u{941}\u{928}\u{93f}\u{92f}\u{93e}",
    "\u{e2a}\u{e27}\u{e31}\u{e2a}\u{e14}\u{e35}\u{e0a}\u{e32}\u{e27}\u{e42}\u{e25}\u{e01}",
    "\u{6211}\u{80fd}\u{541e}\u{4e0b}\u{73bb}\u{7483}\u{800c}\u{4e0d}\u{4f24}\u{8eab}\u{4f53}\u{3002}",
    "\u{79c1}\u{306f}\u{30ac}\u{30e9}\u{30b9}\u{3092}\u{98df}\u{3079}\u{3089}\u{308c}\u{307e}\u{3059}",
    "\u{b098}\u{b294} \u{c720}\u{b9ac}\u{b97c} \u{1102}\u{1161}",
    "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} \u{1f1e9}\u{1f1ea} ok \u{1f44d}\u{1f3fd}",
    "\u{ff26}\u{ff55}\u{ff4c}\u{ff4c}\u{3000}\u{ff57}\u{ff49}\u{ff44}\u{ff54}\u{ff48} \u{2460}\u{a0}\u{bd}",
    "pneumonoultramicroscopicsilicovolcanoconiosis 12345678901234567 abcdefgh abcdefghi",
    "a rose is a rose is a rose is a rose is a rose",
    "co\u{ad}op\u{ad}er\u{ad}a\u{ad}tion zero\u{200b}width \u{ad} 1\u{2060}234 \u{feff}caf\u{65}\u{34f}\u{301}",
    "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645} \u{d28}\u{d4d}\u{200d} \u{2764}\u{fe0f} \u{200f}\u{5e9}\u{5dc}\u{5d5}\u{5dd}\u{200e} \u{845b}\u{e0100}",
    "don\u{2019}t \u{ab}\u{201c}quote\u{201d}\u{bb} \u{5e6}\u{5d4}\u{5f4}\u{5dc} 1939\u{2013}45 \u{2212}5\u{2033}",
    "\u{645}\u{64f}\u{62d}\u{64e}\u{645}\u{651}\u{62f} \u{645}\u{62d}\u{640}\u{640}\u{645}\u{62f} \u{623}\u{627}\u{654} \u{644}\u{670}\u{647}",
    "\u{ff76}\u{ff9e}\u{ff97}\u{ff7d} \u{ff11}\u{ff12}\u{ff21}\u{3000}\u{ffe5} \u{ffc2}\u{1f04}\u{439} \u{1ebf} \u{f8}",
];

/// A text with white space beyond ASCII, used in addition to [`TEXTS`].
const SPACED_TEXT: &str = "one\u{a0} two \u{3000}\u{3000}three\u{2003}four\u{205f}\n10\u{202f}000";

const FEATURE_SCHEMES: &[&str] = &[
    "shingle=words:5",
    "shingle=words:1 seed=42",
    "normalize=nfkc case=keep shingle=chars:5",
    "normalize=none segment=word-chars shingle=words:3",
    "normalize=nfkc segment=word-chars shingle=words:1 weight=tf seed=7",
    "normalize=none segment=word-chars shingle=chars:5",
    "case=keep segment=word-chars shingle=chars:9 seed=18446744073709551615",
    "segment=word-chars shingle=words:1",
    "segment=word-chars shingle=words:1 fold=accents,punctuation,arabic,width",
    "normalize=nfkc segment=word-chars shingle=words:2 fold=accents,arabic",
    "normalize=none case=keep segment=word-chars shingle=words:1 fold=punctuation,width",
    "shingle=words:1 fold=punctuation,width",
    "segment=word-chars shingle=words:3/9:2",
    "segment=word-chars shingle=words:5/3:1 seed=3",
    "shingle=chars:5",
];

fn write(name: &str, key: &str, kind: &str, value: fn(&Scheme, &str) -> Value) {
    let mut out = String::new();
    for &scheme in FEATURE_SCHEMES {
        for text in TEXTS.iter().chain([&SPACED_TEXT]) {
            let scheme = scheme_with(&format!("{scheme} sketch={kind}"));
            let row =
                json!({"scheme": scheme.to_string(), "text": text, key: value(&scheme, text)});
            out += &format!("{row}\n");
        }
    }
    std::fs::write(path(name), out).unwrap();
}

#[test]
#[ignore = "writes the files that the other tests compare with"]
fn write_vectors() {
    write("features.jsonl", "features", "none", features);
    write("simhash.jsonl", "fingerprint", "simhash:64", sketch);
    write("minhash.jsonl", "signature", "minhash:8", sketch);
    write(
        "super-shingle.jsonl",
        "super_shingles",
        "super-shingle:6x14",
        sketch,
    );
}
