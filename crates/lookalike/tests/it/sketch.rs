//! Sketches: compared with second implementations of their definitions, laws, and the statistics of min-hash.

use lookalike::hash::splitmix64;
use lookalike::{Fingerprint, MinHash, Signature, Simhash, resemblance_of};
use proptest::prelude::*;

/// Computes a simhash by definition (Manku et al. 2007, section 2): add the weight where the bit is 1, subtract it where it is 0, keep the signs.
fn defined_simhash(features: &[(u64, i32)]) -> Option<Fingerprint> {
    let sum = |bit: u32| -> i64 {
        let sign = |feature: u64| if feature >> bit & 1 == 1 { 1 } else { -1 };
        features
            .iter()
            .map(|&(feature, weight)| sign(feature) * i64::from(weight))
            .sum()
    };
    let bits = (0..64)
        .filter(|&bit| sum(bit) > 0)
        .fold(0, |bits, bit| bits | 1 << bit);
    (!features.is_empty()).then_some(Fingerprint(bits))
}

/// Computes a signature one function at a time, with the hash family of the documentation.
fn defined_signature(functions: usize, seed: u64, features: &[u64]) -> Vec<u32> {
    let mut state = seed;
    (0..functions)
        .map(|_| {
            let draw = splitmix64(&mut state);
            let (a, b) = ((draw >> 32) as u32 | 1, draw as u32);
            let fold = |f: u64| (f >> 32) as u32 ^ f as u32;
            features
                .iter()
                .map(|&f| a.wrapping_mul(fold(f)).wrapping_add(b))
                .min()
                .unwrap()
        })
        .collect()
}

proptest! {
    #[test]
    fn simhash_keeps_the_signs_of_weighted_sums(
        features in prop::collection::vec((any::<u64>(), any::<i32>()), 0..200)
    ) {
        prop_assert_eq!(Simhash::weighted(&features), defined_simhash(&features));
        let plain: Vec<u64> = features.iter().map(|feature| feature.0).collect();
        let ones: Vec<(u64, i32)> = plain.iter().map(|&feature| (feature, 1)).collect();
        prop_assert_eq!(Simhash::fingerprint(&plain), defined_simhash(&ones));
    }

    #[test]
    fn repetition_is_weight(features in prop::collection::vec((any::<u64>(), 1..6i32), 1..40)) {
        let repeated: Vec<u64> = features
            .iter()
            .flat_map(|&(feature, times)| std::iter::repeat_n(feature, times as usize))
            .collect();
        prop_assert_eq!(Simhash::fingerprint(&repeated), Simhash::weighted(&features));
    }

    #[test]
    fn distance_is_a_metric(a in any::<u64>(), b in any::<u64>(), c in any::<u64>()) {
        let [a, b, c] = [a, b, c].map(Fingerprint);
        prop_assert_eq!(a.distance(b), b.distance(a));
        prop_assert_eq!(a.distance(b) == 0, a == b);
        prop_assert!(a.distance(c) <= a.distance(b) + b.distance(c));
    }

    #[test]
    fn fingerprints_are_sixteen_digits(bits in any::<u64>()) {
        let text = Fingerprint(bits).to_string();
        prop_assert_eq!(text.len(), 16);
        prop_assert_eq!(format!("{:016x}", Fingerprint(bits)), text.clone());
        prop_assert_eq!(text.parse(), Ok(Fingerprint(bits)));
    }

    #[test]
    fn signatures_are_those_of_the_definition(
        functions in 1..300usize,
        seed in any::<u64>(),
        features in prop::collection::vec(any::<u64>(), 1..60),
    ) {
        let signature = MinHash::new(functions, seed).signature(&features).unwrap();
        prop_assert_eq!(signature.values(), defined_signature(functions, seed, &features));
    }

    #[test]
    fn order_and_repetition_do_not_change_a_signature(
        features in prop::collection::vec(any::<u64>(), 1..60)
    ) {
        let minhash = MinHash::new(40, 1);
        let turned: Vec<u64> = features.iter().rev().chain(&features).copied().collect();
        prop_assert_eq!(minhash.signature(&features), minhash.signature(&turned));
    }
}

#[test]
fn no_functions_and_no_features_give_no_signature() {
    assert_eq!(MinHash::new(0, 1).signature(&[1]), None);
    assert_eq!(MinHash::new(1, 1).signature(&[]), None);
}

#[test]
fn what_is_no_fingerprint_is_refused() {
    for text in [
        "",
        "0",
        "+123456789abcdef",
        "0123456789abcdeg",
        "00123456789abcdef",
        "0x23456789abcdef",
    ] {
        let error = text.parse::<Fingerprint>().unwrap_err();
        assert!(
            error.to_string().contains("16 hexadecimal digits"),
            "{text:?}"
        );
    }
}

#[test]
fn nothing_has_no_sketch() {
    assert_eq!(Simhash::fingerprint(&[]), None);
    assert_eq!(Simhash::weighted(&[]), None);
    assert_eq!(MinHash::new(8, 0).signature(&[]), None);
    let mut untouched = [5; 8];
    assert!(!MinHash::new(8, 0).signature_into(&[], &mut untouched));
    assert_eq!(untouched, [5; 8]);
}

#[test]
fn signatures_of_unlike_lengths_are_not_compared() {
    let signature = |functions| MinHash::new(functions, 0).signature(&[1, 2]).unwrap();
    let error = signature(8).agreement(&signature(9)).unwrap_err();
    assert_eq!((error.expected, error.found), (8, 9));
    assert!(signature(83).super_shingles(6, 14).is_err());
    assert_eq!(
        signature(84).super_shingles(6, 14).unwrap().values().len(),
        6
    );
    assert_eq!(signature(84).agreement(&signature(84)), Ok(1.0));
}

#[test]
fn a_longer_signature_begins_with_the_shorter() {
    let features = [3, 1 << 40, 77];
    let long = MinHash::new(200, 9).signature(&features).unwrap();
    let short = MinHash::new(84, 9).signature(&features).unwrap();
    assert_eq!(long.values()[..84], *short.values());
}

/// Returns two sets with `shared` common features, and `own` more in each.
fn pair(shared: usize, own: usize, state: &mut u64) -> [Vec<u64>; 2] {
    let common: Vec<u64> = (0..shared).map(|_| splitmix64(state)).collect();
    [(); 2].map(|()| {
        common
            .iter()
            .copied()
            .chain((0..own).map(|_| splitmix64(state)))
            .collect()
    })
}

/// Checks that the estimate is unbiased and spreads like that of independent functions.
#[test]
fn agreement_estimates_resemblance() {
    const TRIALS: usize = 1500;
    const FUNCTIONS: usize = 128;
    let mut state = 2026;
    for (shared, own) in [(40, 20), (180, 10), (900, 50)] {
        let resemblance = resemblance_of(shared, shared + own, shared + own);
        let (mut sum, mut squares) = (0.0, 0.0);
        for trial in 0..TRIALS {
            let minhash = MinHash::new(FUNCTIONS, trial as u64);
            let [a, b] = pair(shared, own, &mut state).map(|set| minhash.signature(&set).unwrap());
            let error = a.agreement(&b).unwrap() - resemblance;
            sum += error;
            squares += error * error;
        }
        let expected = (resemblance * (1.0 - resemblance) / FUNCTIONS as f64).sqrt();
        let bias = sum / TRIALS as f64;
        let spread = (squares / TRIALS as f64).sqrt() / expected;
        // The bound is four standard errors of the mean; with so many trials the spread lies within 8 percent.
        assert!(
            bias.abs() < 4.0 * expected / (TRIALS as f64).sqrt(),
            "bias {bias}"
        );
        assert!((0.92..1.08).contains(&spread), "spread {spread}");
    }
}

#[test]
fn super_shingles_agree_with_the_chance_of_their_rows() {
    const TRIALS: usize = 4000;
    let minhash = MinHash::new(84, 3);
    let mut state = 7;
    let mut agreeing = 0;
    for _ in 0..TRIALS {
        let [a, b] = pair(190, 5, &mut state).map(|set| {
            let signature: Signature = minhash.signature(&set).unwrap();
            signature.super_shingles(6, 14).unwrap()
        });
        agreeing += a.agreeing(&b);
    }
    let share = agreeing as f64 / (6 * TRIALS) as f64;
    let expected = resemblance_of(190, 195, 195).powi(14);
    assert!(
        (share - expected).abs() < 0.02,
        "{share} instead of {expected}"
    );
}
