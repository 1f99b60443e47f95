//! Scores of pairs: every pair of a collection whose sketches are alike enough.

mod join;
mod scored_pair;

use lookalike::intersection_size;
pub use lookalike::resemblance::SetMeasure;
use lookalike::sketch::SketchValue;
use lookalike_hamming::SelfJoinLimits;

pub use scored_pair::ScoredPair;

/// The score of two sketches: their own, but for other measures of sets. In [0, 1] for sets.
#[must_use]
pub fn score(measure: SetMeasure, a: &SketchValue, b: &SketchValue) -> f64 {
    match (measure, a, b) {
        (SetMeasure::Resemblance, ..) => a.score(b),
        (_, SketchValue::Set(x), SketchValue::Set(y)) => {
            measure.of(intersection_size(x, y), x.len(), y.len())
        }
        _ => a.score(b),
    }
}

/// Every pair whose score is at least `least`, which must be above 0, by position.
#[must_use]
pub fn scored_pairs(sketches: &[Option<SketchValue>], least: f64) -> Vec<ScoredPair> {
    let mut pairs = Vec::new();
    each_scored_pair(sketches, least, SelfJoinLimits::default(), |pair| {
        pairs.push(pair);
    });
    pairs.sort_unstable_by_key(|pair| (pair.a, pair.b));
    pairs
}

/// Visits every pair whose score is at least `least`, which must be above 0, once, in any order. Pairs take no memory.
///
/// Fingerprints are joined by [`lookalike_hamming::self_join`], each different one once, under `limits`. Sets and signatures
/// are joined by prefixes, hashes by their keys, on one thread.
pub fn each_scored_pair(
    sketches: &[Option<SketchValue>],
    least: f64,
    limits: SelfJoinLimits,
    mut visit: impl FnMut(ScoredPair) + Send,
) {
    match sketches.iter().flatten().next() {
        None => {}
        Some(SketchValue::Set(_)) => join::sets(sketches, least, &mut visit),
        Some(SketchValue::Hashes(_)) => join::hashes(sketches, least, &mut visit),
        Some(SketchValue::Signature(_)) => join::signatures(sketches, least, &mut visit),
        Some(SketchValue::Bits(_, 32)) => {
            join::fingerprints(sketches, least, limits, |code| code as u32, visit);
        }
        Some(SketchValue::Bits(_, 64)) => {
            join::fingerprints(sketches, least, limits, |code| code as u64, visit);
        }
        Some(SketchValue::Bits(..)) => {
            join::fingerprints(sketches, least, limits, |code| code, visit);
        }
    }
}
