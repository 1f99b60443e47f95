//! An audit of bands on existing signatures. It compares all pairs and needs neither a sample nor texts.

use std::collections::HashSet;

use lookalike::{Banding, SketchValue};
use lookalike_hamming::SelfJoinLimits;

use super::AuditReport;
use crate::interval::{CountEstimate, ShareEstimate};
use crate::score::for_each_scored_pair;

/// Reports which pairs the bands find among those whose signatures agree in at least the share `least` of their places. `least` must be above 0. Of
/// equal signatures the first is compared and the others count as copies. Sketches other than signatures are ignored.
///
/// The time is that of a join of the signatures plus that of all pairs that share a band.
///
/// ```
/// use lookalike::{Banding, SketchValue};
/// use lookalike_eval::audit_bands;
/// use lookalike_hamming::SelfJoinLimits;
///
/// // Three of four places agree, in both places of one of two bands.
/// let signatures = [vec![1, 2, 3, 4], vec![1, 2, 3, 5], vec![9, 9, 9, 9]];
/// let sketches = signatures.map(|places| Some(SketchValue::Signature(places.into())));
/// let report = audit_bands(&sketches, &Banding { bands: 2, rows: 2 }, 0.75, SelfJoinLimits::default());
/// assert_eq!((report.true_pairs, report.found, report.recall.value), (1, 1, 1.0));
/// ```
#[must_use]
pub fn audit_bands(
    sketches: &[Option<SketchValue>],
    banding: &Banding,
    least: f64,
    limits: SelfJoinLimits,
) -> AuditReport {
    let all = sketches.iter().flatten().filter_map(|sketch| match sketch {
        SketchValue::Signature(minima) => Some(&**minima),
        _ => None,
    });
    // A family of n equal signatures would add n (n - 1) / 2 pairs that every banding finds, which would hide what the bands miss.
    let (mut seen, mut copies) = (HashSet::new(), 0);
    let mut different: Vec<&[u32]> = Vec::new();
    for minima in all {
        match seen.insert(minima) {
            true => different.push(minima),
            false => copies += 1,
        }
    }
    let signatures: Vec<Option<SketchValue>> = different
        .iter()
        .map(|&minima| Some(SketchValue::Signature(minima.into())))
        .collect();
    let (mut true_pairs, mut found) = (0, 0);
    // The true pairs come from a join that knows no bands, so that the bands' misses show.
    for_each_scored_pair(&signatures, least, limits, |pair| {
        let [a, b] = [pair.a, pair.b].map(|at| different[at as usize]);
        true_pairs += 1;
        found += u64::from(first_common(banding, a, b).is_some());
    });
    let proposed = proposed(banding, &different);
    let documents = different.len() as u64;
    // No estimate: all pairs were compared, so value and limits are equal.
    AuditReport {
        documents,
        copies,
        sample: documents,
        true_pairs,
        found,
        proposed,
        recall: ShareEstimate::exact(found, true_pairs),
        precision: ShareEstimate::exact(found, proposed),
        all_true_pairs: CountEstimate::exact(true_pairs as f64),
    }
}

/// Returns the first band in which two signatures agree.
fn first_common(banding: &Banding, a: &[u32], b: &[u32]) -> Option<usize> {
    bands(banding, a)
        .zip(bands(banding, b))
        .position(|(a, b)| a == b)
}

/// Returns the bands of a signature, of `rows` adjacent minima each; minima behind the last band belong to none.
fn bands<'m>(banding: &Banding, minima: &'m [u32]) -> impl Iterator<Item = &'m [u32]> {
    minima.chunks_exact(banding.rows.max(1)).take(banding.bands)
}

/// Returns the number of pairs that share a band.
fn proposed<'m>(banding: &Banding, different: &[&'m [u32]]) -> u64 {
    let mut pairs = 0;
    for band in 0..banding.bands {
        let with_band = |&minima: &&'m [u32]| Some((bands(banding, minima).nth(band)?, minima));
        let mut order: Vec<(&[u32], &[u32])> = different.iter().filter_map(with_band).collect();
        // Sorting by the rows of one band puts the signatures that share it side by side.
        order.sort_unstable_by_key(|(rows, _)| *rows);
        for group in order.chunk_by(|(a, _), (b, _)| a == b) {
            for (at, (_, a)) in group.iter().enumerate() {
                // Count a pair only in the first band that it shares.
                let is_first =
                    |(_, b): &&(&[u32], &[u32])| first_common(banding, a, b) == Some(band);
                pairs += group[at + 1..].iter().filter(is_first).count() as u64;
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_behind_the_last_minimum_panicked() {
        let sketches = [[1, 2, 3], [1, 2, 4]];
        let sketches = sketches.map(|minima| Some(SketchValue::Signature(minima.into())));
        for (bands, rows, proposed) in [(9, 2, 1), (1, 0, 1), (2, 3, 0)] {
            let banding = Banding { bands, rows };
            let report = audit_bands(&sketches, &banding, 0.5, SelfJoinLimits::default());
            assert_eq!((report.true_pairs, report.proposed), (1, proposed));
        }
    }

    #[test]
    fn figures_by_hand() {
        let banding = Banding { bands: 2, rows: 2 };
        let rows: [[u32; 4]; 5] = [
            [1, 2, 3, 4],
            // Agrees with the first signature in three of four places and in the second band.
            [1, 9, 3, 4],
            // Agrees with the first in three of four places and in the first band; with the second in two of four and in no band.
            [1, 2, 8, 4],
            // Agrees with the first in half of the places and in one band.
            [1, 2, 7, 7],
            // A copy of the previous signature.
            [1, 2, 7, 7],
        ];
        let sketches = rows.map(|row| Some(SketchValue::Signature(row.into())));
        let report = audit_bands(&sketches, &banding, 0.5, SelfJoinLimits::default());
        // At 0.5 the true pairs are 0-1, 0-2, 0-3, 1-2 (equal in places 1 and 4) and 2-3; 1-3 agrees in one place only.
        assert_eq!((report.documents, report.copies), (4, 1));
        assert_eq!(
            (report.true_pairs, report.found, report.proposed),
            (5, 4, 4)
        );
        assert_eq!((report.recall.value, report.precision.value), (0.8, 1.0));
        // At 0.75 they are 0-1 and 0-2; 0-3 and 2-3 are proposed although they are not true.
        let report = audit_bands(&sketches, &banding, 0.75, SelfJoinLimits::default());
        assert_eq!(
            (report.true_pairs, report.found, report.proposed),
            (2, 2, 4)
        );
    }
}
