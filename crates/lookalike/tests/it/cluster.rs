//! Survivors: promise 4 of the design, and independence of the order of the pairs.

use lookalike::{Decision, survivors};
use proptest::prelude::*;

fn similarity(pairs: &[(usize, usize, f64)], a: usize, b: usize) -> Option<f64> {
    let same = |&&(x, y, _): &&(usize, usize, f64)| (x, y) == (a, b) || (y, x) == (a, b);
    pairs
        .iter()
        .filter(same)
        .map(|pair| pair.2)
        .reduce(f64::max)
}

/// A permutation of documents and pairs among them.
fn collections() -> impl Strategy<Value = (Vec<usize>, Vec<(usize, usize, f64)>)> {
    (1..25usize).prop_flat_map(|documents| {
        let similarity = prop::sample::select(vec![0.5, 0.8, 0.8, 0.9, 1.0]);
        let pairs = prop::collection::vec((0..documents, 0..documents, similarity), 0..60);
        (
            Just((0..documents).collect::<Vec<_>>()).prop_shuffle(),
            pairs,
        )
    })
}

proptest! {
    #[test]
    fn each_document_is_decided_by_the_survivors_before_it((priority, pairs) in collections()) {
        let decisions = survivors(&priority, &pairs);
        for (place, &document) in priority.iter().enumerate() {
            let kept: Vec<usize> = priority[..place]
                .iter()
                .copied()
                .filter(|&other| decisions[other] == Decision::Survivor)
                .collect();
            // The most similar, of equals the first: a later one must be strictly better.
            let mut best: Option<(usize, f64)> = None;
            for other in kept {
                if let Some(found) = similarity(&pairs, document, other)
                    && best.is_none_or(|(_, most)| found > most)
                {
                    best = Some((other, found));
                }
            }
            let expected = best.map_or(Decision::Survivor, |(survivor, similarity)| {
                Decision::Removed { survivor, similarity }
            });
            prop_assert_eq!(decisions[document], expected);
        }
    }

    #[test]
    fn the_order_of_the_pairs_and_their_sides_mean_nothing((priority, pairs) in collections()) {
        let turned: Vec<_> = pairs.iter().rev().map(|&(a, b, s)| (b, a, s)).collect();
        prop_assert_eq!(survivors(&priority, &pairs), survivors(&priority, &turned));
    }
}

#[test]
fn chains_do_not_drift() {
    let pairs: Vec<_> = (0..9).map(|i| (i, i + 1, 0.9)).collect();
    let priority: Vec<usize> = (0..10).collect();
    let kept = survivors(&priority, &pairs)
        .iter()
        .filter(|d| **d == Decision::Survivor)
        .count();
    assert_eq!(kept, 5, "every other link of the chain stays");
}

#[test]
fn odd_input_is_taken() {
    assert!(survivors(&[], &[(0, 1, 1.0)]).is_empty());
    let decisions = survivors(
        &[2, 0],
        &[(0, 0, 1.0), (0, 9, 1.0), (1, 2, 1.0), (0, 2, f64::NAN)],
    );
    assert_eq!(decisions[1], Decision::Survivor);
    assert!(matches!(
        decisions[0],
        Decision::Removed { survivor: 2, .. }
    ));
}
