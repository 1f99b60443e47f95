//! Samples drawn by bands, and the estimates from their labels for the whole collection.

use lookalike::{Scheme, Sketch};
use lookalike_eval::stratified_labels::StratifiedLabels;
use lookalike_eval::stratified_sample::{
    SampledBand, ScoreBand, StratifiedSample, bands, default_bands,
};
use lookalike_eval::sweep::sketches_of;
use lookalike_eval::{DocumentSet, ScoredPair, StratifiedSampler, scored_pairs};

use crate::families;

fn simhash() -> Scheme {
    Scheme::default().sketch(Sketch::Simhash)
}

fn stratified_sample(
    collection: &DocumentSet,
    scored: impl Iterator<Item = ScoredPair>,
    bands: &[ScoreBand],
    each: usize,
    seed: u64,
) -> StratifiedSample {
    let ids = collection.documents().iter().map(|one| one.id.clone());
    let ids: Vec<String> = ids.collect();
    let mut sampler = StratifiedSampler::new(&ids, bands, each, seed);
    scored.for_each(|pair| sampler.add(pair));
    sampler.finish()
}

fn drawn(
    collection: &DocumentSet,
    scored: Vec<ScoredPair>,
    numbers: &[f64],
    each: usize,
) -> StratifiedSample {
    let bands = bands(Sketch::Simhash, numbers).unwrap();
    stratified_sample(collection, scored.into_iter(), &bands, each, 0)
}

#[test]
fn every_band_gives_equally_many_or_all_it_has() {
    let collection = families(40, 6);
    let scored = scored_pairs(&sketches_of(&collection, &simhash()), 40.0);
    let numbers = default_bands(Sketch::Simhash);
    let stratified_sample = drawn(&collection, scored.clone(), &numbers, 5);
    for (at, SampledBand { band, pairs, drawn }) in stratified_sample.bands.iter().enumerate() {
        let distance = numbers[at];
        assert_eq!(band.name, format!("k = {distance}"));
        let all = scored.iter().filter(|pair| 64.0 - pair.score == distance);
        assert_eq!(*pairs, all.count() as u64);
        assert_eq!(*drawn, (*pairs).min(5));
        let own = stratified_sample
            .pairs
            .iter()
            .filter(|pair| pair.stratum.name == band.name);
        assert!(own.clone().all(|pair| 64.0 - pair.score == distance));
        assert_eq!(own.count() as u64, *drawn);
    }
    assert!(stratified_sample.bands.iter().any(|band| band.drawn == 5));
    assert!(stratified_sample.bands.iter().any(|band| band.drawn < 5));
}

#[test]
fn a_sample_does_not_depend_on_the_order_of_pairs() {
    let collection = families(30, 5);
    let mut scored = scored_pairs(&sketches_of(&collection, &simhash()), 44.0);
    let first = drawn(&collection, scored.clone(), &[3.0, 8.0, 20.0], 7);
    scored.reverse();
    assert_eq!(
        first,
        drawn(&collection, scored.clone(), &[3.0, 8.0, 20.0], 7)
    );
    let numbers = bands(Sketch::Simhash, &[3.0, 8.0, 20.0]).unwrap();
    let other = stratified_sample(&collection, scored.into_iter(), &numbers, 7, 1);
    assert_ne!(first.pairs, other.pairs);
    let by_band = |stratified_sample: &StratifiedSample| {
        stratified_sample
            .pairs
            .is_sorted_by_key(|pair| pair.stratum.number)
    };
    assert!(!by_band(&first), "bands are mixed");
}

#[test]
fn numbers_that_are_no_bands_are_refused() {
    for (sketch, numbers) in [
        (Sketch::Simhash, &[3.0, 3.0][..]),
        (Sketch::Simhash, &[1.5]),
        (Sketch::Simhash, &[33.0]),
        (Sketch::None, &[0.0, 0.5]),
        (Sketch::None, &[1.5]),
        (Sketch::None, &[]),
        (Sketch::None, &[f64::NAN]),
        (Sketch::Buckets { buckets: 8 }, &[9.0]),
    ] {
        assert!(bands(sketch, numbers).is_err(), "{sketch} {numbers:?}");
    }
    let names = |sketch, numbers: &[f64]| -> Vec<String> {
        let bands = bands(sketch, numbers).unwrap();
        bands.into_iter().map(|band| band.name).collect()
    };
    assert_eq!(names(Sketch::Simhash, &[0.0, 3.0]), ["k = 0", "k = 1 to 3"]);
    assert_eq!(
        names(Sketch::None, &[0.5, 0.9]),
        ["0.9 or more", "0.5 to 0.9"]
    );
    let shingles = Sketch::SuperShingle { groups: 6, rows: 2 };
    assert_eq!(
        names(shingles, &[1.0, 2.0, 5.0]),
        ["equal = 5 to 6", "equal = 2 to 4", "equal = 1"]
    );
    assert_eq!(names(shingles, &[6.0]), ["equal = 6"]);
}

/// Defines the truth of these tests: pairs of one family are true.
fn same_family(a: &str, b: &str) -> bool {
    a[..3] == b[..3]
}

/// If every pair is labelled, the curve is exact.
#[test]
fn all_labels_give_the_exact_curve() {
    let collection = families(20, 6);
    let scored = scored_pairs(&sketches_of(&collection, &simhash()), 40.0);
    let stratified_sample = drawn(
        &collection,
        scored.clone(),
        &[4.0, 12.0, 18.0, 24.0],
        usize::MAX,
    );
    let labels = || {
        let pairs = stratified_sample.pairs.iter();
        pairs.map(|pair| (&pair.stratum, Some(same_family(&pair.a, &pair.b))))
    };
    let stratified_labels = StratifiedLabels::new(labels()).unwrap();
    assert_eq!(
        (
            stratified_labels.untouched(),
            stratified_labels.unlabelled()
        ),
        (0, 0)
    );
    let all_true = labels().filter(|label| label.1 == Some(true)).count() as f64;
    let mut found = 0;
    for (point, band) in stratified_labels
        .curve()
        .iter()
        .zip(stratified_labels.bands())
    {
        found += band.stratum.pairs;
        let correct: u64 = stratified_labels
            .bands()
            .iter()
            .take(band.stratum.number as usize)
            .map(|t| t.trues)
            .sum();
        assert_eq!(point.found, found);
        for (estimate, exact) in [
            (point.precision, correct as f64 / found as f64),
            (point.recall, correct as f64 / all_true),
        ] {
            assert!((estimate.value - exact).abs() < 1e-12);
            assert!(estimate.high - estimate.low < 1e-12);
        }
    }
}

/// Checks two bands computed by hand: 100 pairs of which 9 in 10 are true, and 1000 of which 1 in 10 is.
#[test]
fn bands_are_weighted_by_what_they_stand_for() {
    let stratum = |number, pairs| lookalike_eval::PairStratum {
        number,
        of: 3,
        name: format!("band {number}"),
        pairs,
        drawn: 12,
    };
    let (near, far) = (stratum(1, 100), stratum(2, 1000));
    let labels = |of: &'static str| {
        of.chars().map(|c| match c {
            't' => Some(true),
            'f' => Some(false),
            _ => None,
        })
    };
    let all = labels("tttttttttf").map(|label| (&near, label));
    let all = all.chain(labels("ftffffffffuu").map(|label| (&far, label)));
    let stratified_labels = StratifiedLabels::new(all).unwrap();
    assert_eq!(
        (
            stratified_labels.untouched(),
            stratified_labels.unlabelled()
        ),
        (1, 2)
    );
    let curve = stratified_labels.curve();
    let near_enough = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
    near_enough(curve[0].precision.value, 0.9);
    near_enough(curve[1].precision.value, 190.0 / 1100.0);
    near_enough(curve[0].recall.value, 90.0 / 190.0);
    near_enough(curve[1].recall.value, 1.0);
    // Two of twelve labels are unknown, so 1 to 3 of 12 are true.
    near_enough(
        curve[1].precision_with_unknown.0,
        (90.0 + 1000.0 / 12.0) / 1100.0,
    );
    near_enough(
        curve[1].precision_with_unknown.1,
        (90.0 + 3000.0 / 12.0) / 1100.0,
    );
    let mixed = [(&near, Some(true)), (&stratum(1, 99), Some(true))];
    assert!(StratifiedLabels::new(mixed).is_err());
}

#[test]
fn bands_of_unknown_labels_counted_as_false() {
    let stratum = |number, pairs| lookalike_eval::PairStratum {
        number,
        of: 3,
        name: format!("band {number}"),
        pairs,
        drawn: 10,
    };
    let bands = [
        (stratum(1, 1000), None),
        (stratum(2, 100), Some(true)),
        (stratum(3, 100), Some(false)),
    ];
    let labels = bands
        .iter()
        .flat_map(|(stratum, label)| std::iter::repeat_n((stratum, *label), 10));
    let curve = StratifiedLabels::new(labels).unwrap().curve();
    let figures = |at: usize| (curve[at].precision.value, curve[at].recall.value);
    // Nothing is known about the first band; after it, 100 of 100 pairs are true, then 100 of 200.
    for share in [curve[0].precision, curve[0].recall] {
        assert_eq!((share.low, share.high), (0.0, 1.0));
    }
    assert_eq!((figures(1), curve[1].f1), ((1.0, 1.0), 1.0));
    assert_eq!(figures(2), (0.5, 1.0));
    // The limits of what is unknown stay those of all pairs: 100 to 1,100 of 1,100.
    let unknown = curve[1].precision_with_unknown;
    assert_eq!(unknown, (100.0 / 1100.0, 1.0));
}

/// 95 % limits must hold the truth in at least 85 of 100 samples.
#[test]
fn limits_of_samples_hold_the_truth() {
    let collection = families(60, 6);
    let scored = scored_pairs(&sketches_of(&collection, &simhash()), 36.0);
    let bands = bands(Sketch::Simhash, &[14.0, 20.0, 24.0, 28.0]).unwrap();
    let curve = |each, seed| {
        let stratified_sample =
            stratified_sample(&collection, scored.iter().copied(), &bands, each, seed);
        let label = |pair: &lookalike_eval::SampledPair| Some(same_family(&pair.a, &pair.b));
        let labels: Vec<_> = stratified_sample
            .pairs
            .iter()
            .map(|pair| (&pair.stratum, label(pair)))
            .collect();
        StratifiedLabels::new(labels).unwrap().curve()
    };
    let exact = curve(usize::MAX, 0);
    let (mut held, mut all) = (0, 0);
    for seed in 0..100 {
        for (sampled, exact) in curve(25, seed).iter().zip(&exact) {
            for (estimate, truth) in [
                (sampled.precision, exact.precision.value),
                (sampled.recall, exact.recall.value),
            ] {
                all += 1;
                held += u32::from(estimate.low <= truth + 1e-9 && truth - 1e-9 <= estimate.high);
            }
        }
    }
    assert!(f64::from(held) >= 0.85 * f64::from(all), "{held} of {all}");
}
