//! Bands: computed recall compared with observed recall, and keys compared with the documentation.

use lookalike::hash::{splitmix64, xxh3_64};
use lookalike::{Banding, MinHash, resemblance_of};
use proptest::prelude::*;

proptest! {
    #[test]
    fn recall_is_one_minus_the_chance_that_every_band_misses(
        bands in 0..60usize, rows in 1..20usize, s in 0.0..=1.0f64
    ) {
        let expected = 1.0 - (1.0 - s.powi(rows as i32)).powi(bands as i32);
        let recall = Banding { bands, rows }.recall(s);
        prop_assert!((recall - expected).abs() < 1e-12, "{recall} {expected}");
    }

    #[test]
    fn the_banding_for_a_threshold_reaches_the_recall_and_one_row_more_does_not(
        functions in 1..300usize, threshold in 0.05..0.99f64, recall in 0.5..0.9999f64
    ) {
        match Banding::for_threshold(functions, threshold, recall) {
            Some(banding) => {
                prop_assert!(banding.recall(threshold) >= recall);
                prop_assert_eq!(banding.bands, functions / banding.rows);
                for rows in banding.rows + 1..=functions {
                    let stricter = Banding { bands: functions / rows, rows };
                    prop_assert!(stricter.recall(threshold) < recall);
                }
            }
            None => {
                let widest = Banding { bands: functions, rows: 1 };
                prop_assert!(widest.recall(threshold) < recall);
            }
        }
    }

    #[test]
    fn keys_hash_the_rows_under_the_number_of_the_band(
        bands in 0..12usize, rows in 1..80usize, minima in prop::collection::vec(any::<u32>(), 0..300)
    ) {
        let keys: Vec<u64> = Banding { bands, rows }.keys(&minima).collect();
        prop_assert_eq!(keys.len(), bands.min(minima.len() / rows));
        for (band, key) in keys.iter().enumerate() {
            let bytes: Vec<u8> =
                minima[band * rows..][..rows].iter().flat_map(|m| m.to_le_bytes()).collect();
            prop_assert_eq!(*key, xxh3_64(&bytes, band as u64));
        }
    }
}

#[test]
fn a_threshold_of_one_needs_one_band_only() {
    assert_eq!(
        Banding::for_threshold(128, 1.0, 0.999),
        Some(Banding {
            bands: 1,
            rows: 128
        })
    );
    assert_eq!(Banding::for_threshold(0, 0.8, 0.9), None);
    assert_eq!(Banding::for_threshold(128, 0.0, 0.9), None);
}

#[test]
fn pairs_are_found_as_often_as_computed() {
    let banding = Banding { bands: 16, rows: 8 };
    let minhash = MinHash::new(128, 5);
    let (mut state, mut found) = (1, 0);
    const TRIALS: usize = 3000;
    for _ in 0..TRIALS {
        let common: Vec<u64> = (0..70).map(|_| splitmix64(&mut state)).collect();
        let mut keys = || {
            let own = (0..15).map(|_| splitmix64(&mut state));
            let set: Vec<u64> = common.iter().copied().chain(own).collect();
            let signature = minhash.signature(&set).unwrap();
            banding.keys(signature.values()).collect::<Vec<u64>>()
        };
        let (a, b) = (keys(), keys());
        found += usize::from(a.iter().zip(&b).any(|(a, b)| a == b));
    }
    let expected = banding.recall(resemblance_of(70, 85, 85));
    let share = found as f64 / TRIALS as f64;
    assert!(
        (share - expected).abs() < 0.04,
        "{share} instead of {expected}"
    );
}
