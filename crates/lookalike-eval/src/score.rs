//! Scores pairs: finds every pair of a collection whose sketches are similar enough.

mod indexed_sets;
mod join;
pub(crate) mod prefix;
mod score_counts;
mod scored_pair;

use std::sync::{Mutex, PoisonError};

pub use lookalike::resemblance::SetMeasure;
use lookalike::sketch::SketchValue;
use lookalike::{Sketch, intersection_size};
use lookalike_hamming::SelfJoinLimits;

use crate::document_halves::DocumentHalves;

pub(crate) use indexed_sets::IndexedSets;
use join::FingerprintTable;
use prefix::PrefixJoin;
use score_counts::CountingVisitor;
pub use score_counts::{HalvedCounts, ScoreCounts};
pub use scored_pair::ScoredPair;

/// Returns the score of two sketches: for sets the given measure, in [0, 1]; for others the sketch's own score.
#[must_use]
pub fn score(measure: SetMeasure, a: &SketchValue, b: &SketchValue) -> f64 {
    match (measure, a, b) {
        // Resemblance is the score that joins compute, so both agree to the last bit.
        (SetMeasure::Resemblance, ..) => a.score(b),
        (_, SketchValue::Set(x), SketchValue::Set(y)) => {
            measure.of(intersection_size(x, y), x.len(), y.len())
        }
        _ => a.score(b),
    }
}

/// Number of hashes of a sketch whose score is how many of them agree.
pub(crate) fn most_hashes(sketch: Sketch) -> Option<u8> {
    match sketch {
        Sketch::SuperShingle { groups: most, .. }
        | Sketch::Buckets { buckets: most }
        | Sketch::IMatch { lexicons: most } => Some(most),
        _ => None,
    }
}

/// Returns the largest score of a sketch.
pub(crate) fn max_score(sketch: Sketch) -> f64 {
    match (sketch.fingerprint_bits(), most_hashes(sketch)) {
        (0, None) => 1.0,
        (0, Some(most)) => most.into(),
        (bits, _) => bits.into(),
    }
}

/// Every pair whose score is at least `least`, which must be above 0, by position.
///
/// ```
/// use lookalike::sketch::{SketchValue, WideFingerprint};
/// use lookalike_eval::scored_pairs;
///
/// let codes = [0b0000, 0b0111, 0b1111].map(|code| Some(SketchValue::Bits(WideFingerprint(code), 64)));
/// // Within three bits: 61 of 64 are equal.
/// let pairs: Vec<_> = scored_pairs(&codes, 61.0).iter().map(|pair| (pair.a, pair.b, pair.score)).collect();
/// assert_eq!(pairs, [(0, 1, 61.0), (1, 2, 63.0)]);
/// ```
#[must_use]
pub fn scored_pairs(sketches: &[Option<SketchValue>], least: f64) -> Vec<ScoredPair> {
    let mut pairs = Vec::new();
    for_each_scored_pair(sketches, least, SelfJoinLimits::default(), |pair| {
        pairs.push(pair);
    });
    pairs.sort_unstable_by_key(|pair| (pair.a, pair.b));
    pairs
}

/// Visits every pair whose score is at least `least` once, in any order. `least` must be above 0. Pairs are not stored.
///
/// Fingerprints are joined by [`lookalike_hamming::self_join`], each different one once; sets, signatures and hashes by their rarest elements. All
/// joins keep to `limits`.
pub fn for_each_scored_pair(
    sketches: &[Option<SketchValue>],
    least: f64,
    limits: SelfJoinLimits,
    visit: impl FnMut(ScoredPair) + Send,
) {
    let visit = Mutex::new(visit);
    visit_pairs(sketches, least, limits, &|| {
        // One function serves all threads. Callers with much to do for each pair use `score_counts`, whose threads count on their own.
        |pair| visit.lock().unwrap_or_else(PoisonError::into_inner)(pair)
    });
}

/// Counts the pairs that score at least `least` by score, also separately in each half if the documents are split. `least` must be above 0. Pairs for
/// which `allows` returns false are left out.
#[must_use]
pub fn score_counts(
    sketches: &[Option<SketchValue>],
    least: f64,
    limits: SelfJoinLimits,
    allows: Option<&(dyn Fn(u32, u32) -> bool + Sync)>,
    halves: &DocumentHalves,
) -> HalvedCounts {
    // Without a condition on single pairs, a family of equal fingerprints is counted by its size.
    if let (Some(SketchValue::Bits(_, bits)), None) = (sketches.iter().flatten().next(), allows) {
        let bits = *bits;
        let counts = |wanted: &dyn Fn(u32) -> bool| {
            fingerprint_counts(sketches, bits, least, limits, wanted)
        };
        let of_half = |half: usize| match halves.is_empty() {
            true => ScoreCounts::default(),
            // Separate joins cost less than asking for the half of each pair.
            false => counts(&|at| halves.of(at) == Some(half)),
        };
        return HalvedCounts {
            all: counts(&|_| true),
            halves: [of_half(0), of_half(1)],
        };
    }
    let all = Mutex::default();
    visit_pairs(sketches, least, limits, &|| {
        let mut counts = CountingVisitor::new(&all);
        move |pair: ScoredPair| {
            if allows.is_none_or(|allows| allows(pair.a, pair.b)) {
                counts.add(pair.score, 1, halves.of_pair(pair.a, pair.b));
            }
        }
    });
    all.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Counts pairs of fingerprints among the documents for which `counts` returns true.
fn fingerprint_counts(
    sketches: &[Option<SketchValue>],
    bits: u32,
    least: f64,
    limits: SelfJoinLimits,
    counts: &dyn Fn(u32) -> bool,
) -> ScoreCounts {
    match bits {
        32 => FingerprintTable::<u32>::new(sketches, least, counts).counts(limits),
        64 => FingerprintTable::<u64>::new(sketches, least, counts).counts(limits),
        _ => FingerprintTable::<u128>::new(sketches, least, counts).counts(limits),
    }
}

/// Passes all pairs that score at least `least` to the visitors, one for each thread.
fn visit_pairs<V: FnMut(ScoredPair) + Send>(
    sketches: &[Option<SketchValue>],
    least: f64,
    limits: SelfJoinLimits,
    visitor: &(impl Fn() -> V + Sync),
) {
    match sketches.iter().flatten().next() {
        None => {}
        Some(SketchValue::Bits(_, 32)) => {
            FingerprintTable::<u32>::new(sketches, least, &|_| true).pairs(limits, visitor);
        }
        Some(SketchValue::Bits(_, 64)) => {
            FingerprintTable::<u64>::new(sketches, least, &|_| true).pairs(limits, visitor);
        }
        Some(SketchValue::Bits(..)) => {
            FingerprintTable::<u128>::new(sketches, least, &|_| true).pairs(limits, visitor);
        }
        Some(_) => {
            let mut visitors: Vec<V> = (0..limits.threads.max(1)).map(|_| visitor()).collect();
            let join = PrefixJoin {
                sketches,
                least,
                scratch_bytes: limits.scratch_bytes as u64,
            };
            join.run(&mut visitors);
        }
    }
}
