//! Tables of terms, compared with plain counting; their bytes, and the files that are refused.

use std::collections::BTreeMap;

use lookalike::terms::{TermsFileError, TermsMismatch};
use lookalike::{GrowingTerms, Scheme, Simhash, TermCounts, Terms};
use proptest::prelude::*;

fn counts(documents: &[Vec<u64>]) -> TermCounts {
    let mut counts = TermCounts::new(&Scheme::default());
    for set in documents {
        counts.add(set);
    }
    counts
}

fn table(documents: &[Vec<u64>]) -> Terms {
    counts(documents).terms()
}

fn documents() -> impl Strategy<Value = Vec<Vec<u64>>> {
    let set = prop::collection::btree_set(0..60u64, 0..30);
    prop::collection::vec(set.prop_map(|set| set.into_iter().collect()), 0..20)
}

proptest! {
    #[test]
    fn counts_are_those_of_plain_counting(documents in documents()) {
        let mut counts = BTreeMap::new();
        for feature in documents.iter().flatten() {
            *counts.entry(*feature).or_insert(0u32) += 1;
        }
        let terms = table(&documents);
        prop_assert_eq!(terms.documents(), documents.len() as u64);
        prop_assert_eq!(terms.len(), counts.values().filter(|&&count| count > 1).count());
        for feature in 0..60 {
            prop_assert_eq!(terms.count(feature), counts.get(&feature).copied().unwrap_or(1));
            let exact = ((documents.len() + 1) as f64 / f64::from(terms.count(feature))).log2() * 256.0;
            prop_assert!((f64::from(terms.idf(feature)) - exact).abs() <= 2.0);
        }
        let reversed: Vec<_> = documents.into_iter().rev().collect();
        prop_assert_eq!(table(&reversed), terms);
    }

    /// The batch size does not affect the counts, and memory stays within the announced bounds.
    #[test]
    fn a_merge_takes_no_more_memory_than_told(documents in documents(), batch in 0..40usize, singles in any::<bool>()) {
        let mut small = TermCounts::new(&Scheme::default());
        small.set_batch(batch);
        if singles {
            small = small.with_singles();
        }
        for set in &documents {
            let told = small.memory_with(set.len());
            small.add(set);
            prop_assert!(small.memory() <= told);
        }
        let distinct: std::collections::BTreeSet<u64> = documents.iter().flatten().copied().collect();
        prop_assert!(small.distinct() >= distinct.len());
        let told = small.memory_of_table();
        prop_assert_eq!(small.distinct(), distinct.len());
        let grown = GrowingTerms::new(small);
        prop_assert_eq!(grown.terms(), &table(&documents));
        // The bound excludes the magic number, scheme, checksums and the like.
        let bytes = grown.memory() + grown.to_bytes().len() as u64;
        prop_assert!(bytes <= told + 300, "{} of {}", bytes, told);
    }

    #[test]
    fn bytes_and_back_and_no_damage_passes(documents in documents(), at in any::<usize>(), flip in 1..=255u8) {
        // The weights are of the first half; counting continues with the rest.
        let (first, rest) = documents.split_at(documents.len() / 2);
        let mut grown = GrowingTerms::new(counts(first));
        rest.iter().for_each(|set| grown.counts_mut().add(set));
        grown.refresh_weights(100.0);
        let mut bytes = grown.to_bytes();
        // Without any document there are no weights to keep.
        let weighed = if first.is_empty() { rest } else { first };
        prop_assert_eq!(Terms::from_bytes(&bytes, None), Ok(table(weighed)));
        prop_assert_eq!(GrowingTerms::from_bytes(&bytes, None).unwrap().to_bytes(), grown.to_bytes());
        prop_assert_eq!(Terms::from_bytes(&table(first).to_bytes(), None), Ok(table(first)));
        prop_assert!(Terms::from_bytes(&bytes[..at % bytes.len()], None).is_err());
        let at = at % bytes.len();
        bytes[at] ^= flip;
        prop_assert!(Terms::from_bytes(&bytes, None).is_err(), "byte {}", at);
    }
}

proptest! {
    /// If the counts include features of single documents, merged parts equal one count of everything.
    #[test]
    fn tables_are_merged_without_loss_in_any_order(documents in documents(), cut in 0..20usize) {
        let part = |documents: &[Vec<u64>]| GrowingTerms::new(counts(documents).with_singles());
        let cut = cut.min(documents.len());
        let (front, back) = documents.split_at(cut);
        let whole = part(&documents);
        let (mut merged, mut turned) = (part(front), part(back));
        merged.counts_mut().merge(part(back).into_parts().1).unwrap();
        turned.counts_mut().merge(part(front).into_parts().1).unwrap();
        merged.refresh_weights(0.0);
        turned.refresh_weights(0.0);
        prop_assert_eq!(merged.to_bytes(), whole.to_bytes());
        prop_assert_eq!(turned.to_bytes(), whole.to_bytes());
        // If documents are added one by one, features that the table lists are counted exactly.
        let mut added = GrowingTerms::new(counts(front));
        back.iter().for_each(|set| added.counts_mut().add(set));
        added.refresh_weights(0.0);
        let listed = table(front);
        for feature in 0..60 {
            let (found, all) = (added.terms().count(feature), whole.terms().count(feature));
            let most = if listed.count(feature) > 1 { 0 } else { 1 };
            prop_assert!(found <= all && all <= found + most, "{}: {} of {}", feature, found, all);
        }
        // Without them no count is too high, and none is too low by more than one.
        let mut lossy = GrowingTerms::new(counts(front));
        lossy.counts_mut().merge(GrowingTerms::new(counts(back)).into_parts().1).unwrap();
        lossy.refresh_weights(0.0);
        for feature in 0..60 {
            let (found, all) = (lossy.terms().count(feature), whole.terms().count(feature));
            prop_assert!(found <= all && all <= found + 1, "{}: {} of {}", feature, found, all);
        }
    }

    #[test]
    fn decay_multiplies_every_count(documents in documents(), factor in 0.1..1.0f64) {
        let mut decayed = counts(&documents);
        decayed.decay(factor);
        let (before, after) = (table(&documents), decayed.terms());
        let is_scaled = |found: f64, count: f64| (found - count * factor).abs() < 1.0;
        prop_assert!(is_scaled(after.documents() as f64, documents.len() as f64));
        for feature in 0..60 {
            let (found, count) = (after.count(feature), before.count(feature));
            prop_assert!(found == 1 || is_scaled(found.into(), count.into()), "{} of {}", found, count);
        }
        let mut again = counts(&documents);
        again.decay(factor);
        prop_assert_eq!(GrowingTerms::new(again).to_bytes(), GrowingTerms::new(decayed).to_bytes());
    }
}

/// If counts were rounded to the nearest integer, 5 times 0.9 would stay 5.
#[test]
fn small_counts_never_decayed() {
    let mut old = TermCounts::new(&Scheme::default());
    for document in 0..1000 {
        // Each of 200 features is in five documents.
        old.add(&[1, 1000 + document % 200]);
    }
    let left = |table: &mut TermCounts| -> u32 {
        let terms = table.terms();
        (1000..1200)
            .map(|feature| terms.count(feature))
            .filter(|count| *count > 1)
            .sum()
    };
    for _ in 0..7 {
        old.decay(0.9);
    }
    let after = left(&mut old);
    // About half of the counts are left, minus features that only one document still has, which are dropped.
    assert!((350..=520).contains(&after), "{after}");
    assert!(
        (470..=478).contains(&old.documents()),
        "{}",
        old.documents()
    );
    for _ in 0..93 {
        old.decay(0.9);
    }
    assert_eq!((left(&mut old), old.documents()), (0, 0));
}

proptest! {
    /// If counts are taken out at any moments and merged elsewhere, the result equals one uninterrupted count.
    #[test]
    fn counts_taken_out_are_merged_elsewhere(documents in documents(), often in 1..10usize) {
        let mut parts = TermCounts::new(&Scheme::default());
        let mut elsewhere = BTreeMap::new();
        for (at, set) in documents.iter().enumerate() {
            parts.add(set);
            if at % often == 0 {
                parts.take().into_iter().for_each(|(feature, count)| *elsewhere.entry(feature).or_insert(0) += count);
            }
        }
        parts.take().into_iter().for_each(|(feature, count)| *elsewhere.entry(feature).or_insert(0) += count);
        parts.restore(elsewhere.into_iter().collect());
        prop_assert_eq!(GrowingTerms::new(parts).to_bytes(), GrowingTerms::new(counts(&documents)).to_bytes());
    }
}

/// Regression test: the weights of an empty table are all 0, so no angle from them is ever large.
#[test]
fn a_table_of_no_documents_stayed_empty_for_ever() {
    let mut table = GrowingTerms::new(counts(&[]));
    table.counts_mut().add(&[1, 2]);
    table.counts_mut().add(&[2, 3]);
    assert!(table.refresh_weights(1.0).renewed);
    assert_eq!((table.terms().documents(), table.terms().count(2)), (2, 2));
}

/// Returns documents with a few common and many rare features; rarer features are more numerous.
fn skewed(documents: std::ops::Range<u64>) -> Vec<Vec<u64>> {
    use lookalike::hash::avalanche;
    let set = |document: u64| {
        let features = (0..60).map(|place| {
            let draw = avalanche(document * 64 + place) as f64 / u64::MAX as f64;
            avalanche(2.0f64.powf(draw * 16.0) as u64)
        });
        let distinct: std::collections::BTreeSet<u64> = features.collect();
        distinct.into_iter().collect()
    };
    documents.map(set).collect()
}

/// The drift is compared with the distances of fingerprints made one by one under both tables. It is not below their average, because the angle is a
/// concave function of the difference, and most of the difference may be in few documents.
#[test]
fn drift_tells_the_bits_that_fingerprints_move() {
    let all = skewed(0..4000);
    let distance = |old: &Terms, new: &Terms| {
        let code = |terms: &Terms, set: &[u64]| {
            let weighed: Vec<_> = set.iter().map(|&f| (f, terms.idf(f) as i32)).collect();
            Simhash::weighted(&weighed).unwrap()
        };
        let moved = all
            .iter()
            .map(|set| code(old, set).distance(code(new, set)));
        f64::from(moved.sum::<u32>()) / all.len() as f64
    };
    for grown in [1100, 2000, 4000] {
        let mut table = GrowingTerms::new(counts(&all[..1000]).with_singles());
        let old = table.terms().clone();
        all[1000..grown]
            .iter()
            .for_each(|set| table.counts_mut().add(set));
        let told = table.refresh_weights(0.0);
        assert!(told.renewed);
        let moved = distance(&old, table.terms());
        let near = moved * 0.98..moved * 1.4 + 0.02;
        assert!(
            near.contains(&told.bits),
            "{grown}: {} and {moved}",
            told.bits
        );
    }
}

#[test]
fn a_table_keeps_its_id_until_its_weights_have_moved_by_the_tolerance() {
    let all = skewed(0..4000);
    let mut table = GrowingTerms::new(counts(&all[..1000]));
    let id = table.terms().id();
    let bits = [1050, 1500, 4000].map(|end| {
        let from = table.counts().documents() as usize;
        all[from..end]
            .iter()
            .for_each(|set| table.counts_mut().add(set));
        let found = table.refresh_weights(64.0);
        assert!(!found.renewed && table.terms().id() == id);
        found.bits
    });
    assert!(
        bits.is_sorted() && bits[0] > 0.0 && bits[2] > 0.5,
        "{bits:?}"
    );
    assert_eq!(
        table.terms(),
        &GrowingTerms::new(counts(&all[..1000])).into_parts().0
    );
    assert!(!table.clone().refresh_weights(bits[2] * 1.001).renewed);
    assert!(table.refresh_weights(bits[2]).renewed && table.terms().id() != id);
    // After the weights are renewed, the drift is 0.
    assert!(table.refresh_weights(1e-6).bits < 1e-6);
}

#[test]
fn other_files_and_unknown_versions_are_named() {
    let refused = |bytes: &[u8]| Terms::from_bytes(bytes, None).unwrap_err();
    assert_eq!(refused(b"{\"id\": 1}"), TermsFileError::Magic);
    let mut bytes = table(&[]).to_bytes();
    // Version 0 used to be called a later one.
    for found in [0, 2] {
        bytes[7] = found;
        assert_eq!(refused(&bytes), TermsFileError::Version { found });
        let told = refused(&bytes).to_string();
        let expected =
            format!("unknown version {found} of a table of terms; this build reads version 1");
        assert_eq!(told, expected);
    }
}

#[test]
fn a_table_of_other_features_or_another_collection_is_refused() {
    let terms = table(&[vec![1, 2], vec![2]]);
    let fitting = Scheme::default().terms(Some(terms.id()));
    assert_eq!(terms.ensure_fits(&fitting), Ok(()));
    let words = fitting.shingle("words:1".parse().unwrap());
    let refused = terms.ensure_fits(&words).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("shingle (words:5 and words:1)"),
        "{refused}"
    );
    // It was told a second time as the source.
    assert!(std::error::Error::source(&refused).is_none());
    let other = table(&[vec![1, 2], vec![2], vec![3]]);
    assert_ne!(terms.id(), other.id());
    assert!(matches!(
        other.ensure_fits(&fitting),
        Err(TermsMismatch::Id { .. })
    ));
}
