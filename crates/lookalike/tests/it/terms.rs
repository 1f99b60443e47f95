//! Tables of terms against plain counting; their bytes, and what is refused.

use std::collections::BTreeMap;

use lookalike::terms::{TermsFileError, TermsMismatch};
use lookalike::{Scheme, Terms, TermsBuilder};
use proptest::prelude::*;

fn table(documents: &[Vec<u64>]) -> Terms {
    let mut builder = TermsBuilder::new(&Scheme::default());
    for set in documents {
        builder.add(set);
    }
    builder.finish()
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

    #[test]
    fn bytes_and_back_and_no_damage_passes(documents in documents(), at in any::<usize>(), flip in 1..=255u8) {
        let terms = table(&documents);
        let mut bytes = terms.to_bytes();
        prop_assert_eq!(Terms::from_bytes(&bytes, None), Ok(terms));
        prop_assert!(Terms::from_bytes(&bytes[..at % bytes.len()], None).is_err());
        let at = at % bytes.len();
        bytes[at] ^= flip;
        prop_assert!(Terms::from_bytes(&bytes, None).is_err(), "byte {}", at);
    }
}

#[test]
fn other_files_and_later_versions_are_named() {
    let refused = |bytes: &[u8]| Terms::from_bytes(bytes, None).unwrap_err();
    assert_eq!(refused(b"{\"id\": 1}"), TermsFileError::Magic);
    let mut bytes = table(&[]).to_bytes();
    bytes[7] = 2;
    assert_eq!(refused(&bytes), TermsFileError::Version { found: 2 });
}

#[test]
fn a_table_of_other_features_or_another_collection_is_refused() {
    let terms = table(&[vec![1, 2], vec![2]]);
    let fitting = Scheme {
        terms: Some(terms.id()),
        ..Scheme::default()
    };
    assert_eq!(terms.ensure_fits(&fitting), Ok(()));
    let words = Scheme {
        shingle: "words:1".parse().unwrap(),
        ..fitting
    };
    let refused = terms.ensure_fits(&words).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("shingle (words:5 and words:1)"),
        "{refused}"
    );
    let other = table(&[vec![1, 2], vec![2], vec![3]]);
    assert_ne!(terms.id(), other.id());
    assert!(matches!(
        other.ensure_fits(&fitting),
        Err(TermsMismatch::Id { .. })
    ));
}
