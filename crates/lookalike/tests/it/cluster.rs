//! Survivors: promise 4 of the design, and independence of the order of the pairs.

use lookalike::cluster::{Components, StarClusters};
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

/// Generates a permutation of documents, and pairs among them.
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
            // Take the most similar survivor, and the first among equals: a later one must be strictly better.
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

proptest! {
    #[test]
    fn stars_from_pairs_in_order_decide_as_the_slow_definition(
        documents in 1..30_u32,
        pairs in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..6_u8), 0..90),
    ) {
        let place = |index: &prop::sample::Index| index.index(documents as usize);
        let pairs: Vec<(usize, usize, u8)> = pairs.iter().map(|(a, b, distance)| (place(a), place(b), *distance)).collect();
        let priority: Vec<usize> = (0..documents as usize).collect();
        let similar: Vec<_> = pairs.iter().map(|&(a, b, distance)| (a, b, 1.0 / (1.0 + f64::from(distance)))).collect();
        let expected = survivors(&priority, &similar);
        let mut ordered: Vec<_> = pairs.iter().filter(|(a, b, _)| a != b).copied().collect();
        ordered.sort_by_key(|&(a, b, _)| a.max(b));
        let mut stars = StarClusters::new(documents);
        for (a, b, distance) in ordered {
            stars.pair(a.max(b) as u32, a.min(b) as u32, distance);
        }
        for document in 0..documents {
            let found = stars.survivor(document);
            match expected[document as usize] {
                Decision::Survivor => prop_assert_eq!(found, None),
                Decision::Removed { survivor, similarity } => {
                    let (survivor_found, distance) = found.unwrap();
                    prop_assert_eq!(survivor_found as usize, survivor);
                    prop_assert_eq!(1.0 / (1.0 + f64::from(distance)), similarity);
                }
            }
        }
    }

    #[test]
    fn components_are_what_a_walk_along_pairs_reaches(
        documents in 1..30_u32,
        pairs in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..40),
    ) {
        let place = |index: &prop::sample::Index| index.index(documents as usize) as u32;
        let pairs: Vec<(u32, u32)> = pairs.iter().map(|(a, b)| (place(a), place(b))).collect();
        let mut components = Components::new(documents);
        for &(a, b) in &pairs {
            let were_one = components.first(a) == components.first(b);
            prop_assert_eq!(components.join(a, b), !were_one);
        }
        // Spread the smallest number along the pairs until nothing changes.
        let mut least: Vec<u32> = (0..documents).collect();
        for _ in 0..documents {
            for &(a, b) in &pairs {
                let both = least[a as usize].min(least[b as usize]);
                (least[a as usize], least[b as usize]) = (both, both);
            }
        }
        for document in 0..documents {
            prop_assert_eq!(components.first(document), least[document as usize]);
        }
    }
}

#[test]
#[should_panic(expected = "pairs come in order")]
fn pairs_out_of_order_are_refused() {
    let mut stars = StarClusters::new(3);
    stars.pair(2, 0, 1);
    stars.pair(1, 0, 1);
}
