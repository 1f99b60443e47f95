//! The worked examples of the source documents.

use lookalike::{
    FeatureExtractor, Fingerprint, MinHash, Scheme, Simhash, intersection_size, resemblance,
};

fn set(shingle: &str, text: &str) -> Vec<u64> {
    let scheme = Scheme::default().shingle(shingle.parse().unwrap());
    FeatureExtractor::new(&scheme).feature_set(text).to_vec()
}

/// V1: the two lines share 2 of 9 trigrams, so the similarity is 0.22.
#[test]
fn v1_the_raven() {
    let a = set("words:3", "Once upon a midnight dreary, while I pondered");
    let b = set("words:3", "Once upon a time, while I pondered");
    assert_eq!((a.len(), b.len()), (6, 5));
    assert_eq!(intersection_size(&a, &b), 2);
    assert_eq!(resemblance(&a, &b), 2.0 / 9.0);
    assert_eq!(format!("{:.2}", resemblance(&a, &b)), "0.22");
}

/// V1: a set ignores repetition.
#[test]
fn v1_a_rose() {
    let a = set("words:3", "a rose is a rose");
    let b = set("words:3", "a rose is a rose is a rose");
    assert_eq!(resemblance(&a, &b), 1.0);
}

/// Vassilvitskii 2007: 84 functions, 6 super-shingles of 14, similar when 2 or more agree.
#[test]
fn v2_and_v3_eighty_four_functions_in_six_groups() {
    let text: String = (0..400).map(|i| format!("word{} ", i * i % 389)).collect();
    let changed = text.replacen("word4 ", "other ", 1);
    let minhash = MinHash::new(84, 0);
    let shingles = |text: &str| {
        let signature = minhash.signature(&set("words:3", text)).unwrap();
        assert_eq!(signature.values().len(), 84);
        let shingles = signature.super_shingles(6, 14).unwrap();
        assert_eq!(shingles.values().len(), 6);
        shingles
    };
    assert_eq!(shingles(&text).agreeing(&shingles(&text)), 6);
    assert!(shingles(&text).agreeing(&shingles(&changed)) >= 2);
    assert_eq!(
        shingles(&text).agreeing(&shingles("something else altogether")),
        0
    );
}

/// The simhash by hand, on four bits: weights 3, 2 and 1.
///
/// ```text
/// feature   weight   bit 3  2  1  0
/// 1010         3        +3 -3 +3 -3
/// 0110         2        -2 +2 +2 -2
/// 0011         1        -1 -1 +1 +1
/// sum                    0 -2 +6 -4
/// sign                   0  0  1  0     (a tie gives 0)
/// ```
#[test]
fn m1_by_hand() {
    let features = [(0b1010, 3), (0b0110, 2), (0b0011, 1)];
    assert_eq!(Simhash::weighted(&features), Some(Fingerprint(0b0010)));
    let heavier = [(0b1010, 4), (0b0110, 2), (0b0011, 1)];
    assert_eq!(Simhash::weighted(&heavier), Some(Fingerprint(0b1010)));
}

/// Holub, Charikar's hash: features are tokens or super-tokens (word tuples), and weights are counts.
#[test]
fn h1_tokens_and_super_tokens() {
    let fingerprint = |shingle: &str, text: &str| {
        let scheme = Scheme::default().shingle(shingle.parse().unwrap());
        Simhash::fingerprint(FeatureExtractor::new(&scheme).features(text)).unwrap()
    };
    let one = fingerprint("words:1", "a rose is a rose is a rose");
    assert_eq!(one, fingerprint("words:1", "rose rose rose a a a is is"));
    assert_ne!(
        fingerprint("words:2", "a rose is a rose is a rose"),
        fingerprint("words:2", "rose rose rose a a a is is")
    );
    // A token that weighs more than all others together decides every bit.
    assert_eq!(
        fingerprint("words:1", "x x x y z"),
        fingerprint("words:1", "x")
    );
}
