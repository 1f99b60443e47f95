//! Weights of features (Manku et al. 2007, section 2; Yu, Hu and Zhang, word weight), compared with floating-point formulas and worked examples.

use std::sync::Arc;

use lookalike::scheme::Lambda;
use lookalike::{
    FeatureExtractor, Scheme, Segmentation, Simhash, TermCounts, Terms, TokenHash, Weight,
};
use proptest::prelude::*;

fn words(weight: Weight) -> Scheme {
    Scheme::default()
        .shingle("words:1".parse().unwrap())
        .segmentation(Segmentation::WordChars)
        .weight(weight)
}

fn weights(scheme: &Scheme, terms: Option<&Arc<Terms>>, text: &str) -> Vec<(u64, i32)> {
    let mut extractor = match terms {
        Some(terms) => FeatureExtractor::with_terms(scheme, terms).unwrap(),
        None => FeatureExtractor::new(scheme),
    };
    extractor.extract(text).weights.to_vec()
}

/// Builds a table of three documents: "b" is in all of them, "a" in two, "c" in one.
fn table() -> Arc<Terms> {
    let mut extractor = FeatureExtractor::new(&words(Weight::Set));
    let mut counts = TermCounts::new(&words(Weight::Set));
    for text in ["a b", "b a", "c b"] {
        counts.add(extractor.feature_set(text));
    }
    Arc::new(counts.terms())
}

proptest! {
    #[test]
    fn weights_follow_their_formulas(text in "([abcd] ){0,40}") {
        let terms = table();
        for weight in [Weight::LogTf, Weight::Idf, Weight::TfIdf, Weight::LogTfIdf] {
            let scheme = words(weight).terms(Some(terms.id()));
            let features = FeatureExtractor::new(&scheme).features(&text).to_vec();
            for (feature, found) in weights(&scheme, Some(&terms), &text) {
                let often = features.iter().filter(|&&f| f == feature).count() as f64;
                let log_tf = 1.0 + often.log2();
                let idf = (4.0 / f64::from(terms.count(feature))).log2();
                let (expected, slack) = match weight {
                    Weight::LogTf => (log_tf, 1.0),
                    Weight::Idf => (idf, 2.0),
                    Weight::TfIdf => (often * idf, 2.0 * often),
                    _ => (log_tf * idf, 8.0),
                };
                let error = (f64::from(found) - expected * 256.0).abs();
                prop_assert!(found > 0 && error <= slack, "{weight}: {found} for {expected}");
            }
        }
    }

    #[test]
    fn the_wider_fingerprint_begins_with_the_narrower(text in "([a-f]{1,3} ){1,40}") {
        for weight in [Weight::Set, Weight::Tf, Weight::LogTf] {
            let scheme = words(weight);
            let mut extractor = FeatureExtractor::new(&scheme);
            let features = extractor.extract(&text);
            let narrow = Simhash::of(&features).unwrap().0;
            let wide = Simhash::wide(&features, 128).unwrap().0;
            prop_assert_eq!(wide as u64, narrow);
            prop_assert_eq!(Simhash::wide(&features, 64).unwrap().0 as u64, narrow);
            prop_assert_eq!(Simhash::wide(&features, 32).unwrap().0, u128::from(narrow as u32));
        }
    }
}

/// Checks Yu, Hu and Zhang's weights on a sentence of nine words, for which lambda is 1: "data" occurs three times and scores 3 + 1, "of" five times
/// and scores 5, "base" once and scores 1 + 1. The largest score is 5.
#[test]
fn y1_by_hand() {
    let scheme = words(Weight::TfLengthNoun(Lambda::BY_LENGTH));
    let found = weights(&scheme, None, "data of data of data of base of of");
    let mut extractor = FeatureExtractor::new(&scheme);
    let weight_of = |word: &str, extractor: &mut FeatureExtractor| {
        let feature = extractor.features(word)[0];
        found.iter().find(|entry| entry.0 == feature).unwrap().1
    };
    for (word, score) in [("data", 4.0), ("of", 5.0), ("base", 2.0)] {
        let expected = (score / 5.0 * 1024.0_f64).round() as i32;
        assert_eq!(weight_of(word, &mut extractor), expected, "{word}");
    }
}

/// Checks the same sentence with λ = 7: "data" scores 3 + 7, "of" 5, "base" 1 + 7.
#[test]
fn lambda_is_a_parameter_of_the_scheme() {
    let scheme = words(Weight::TfLengthNoun(Lambda::new(7).unwrap()));
    let mut found: Vec<i32> = weights(&scheme, None, "data of data of data of base of of")
        .into_iter()
        .map(|entry| entry.1)
        .collect();
    found.sort_unstable();
    assert_eq!(found, [512, 819, 1024]); // 5/10, 8/10 and 10/10 of 1024
    assert_ne!(
        scheme.id(),
        words(Weight::TfLengthNoun(Lambda::BY_LENGTH)).id()
    );
    for refused in [
        "tf-length-noun:0",
        "tf-length-noun:256",
        "tf-length-noun:",
        "tf-length-noun:07",
        "tf-length-nounx",
    ] {
        let error = refused.parse::<Weight>().unwrap_err().to_string();
        assert!(error.contains("from 1 to 255"), "{error}");
    }
}

#[test]
fn token_hashes_and_their_keys_make_different_features() {
    let with = |hash| {
        let scheme = Scheme::default().hash(hash);
        FeatureExtractor::new(&scheme)
            .feature_set("one two three four five six seven")
            .to_vec()
    };
    let key = |text: &str| TokenHash::SipHash(text.parse().unwrap());
    let sets = [
        with(TokenHash::Xxh3),
        with(TokenHash::Lookup3),
        with(key("00000000000000000000000000000000")),
        with(key("00000000000000000000000000000001")),
    ];
    for (at, set) in sets.iter().enumerate() {
        assert_eq!(set.len(), 3);
        assert!(
            sets[..at]
                .iter()
                .all(|other| other.iter().all(|f| !set.contains(f)))
        );
    }
}
