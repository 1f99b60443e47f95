//! Scores of pairs: every pair of a collection whose sketches are alike enough.

mod join;
mod scored_pair;

use lookalike::intersection_size;
pub use lookalike::resemblance::SetMeasure;
use lookalike::sketch::SketchValue;

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
///
/// Sets are joined by prefixes, hashes by their keys; fingerprints and signatures are compared
/// each with each, which takes n^2 / 2 comparisons of some nanoseconds.
#[must_use]
pub fn scored_pairs(sketches: &[Option<SketchValue>], least: f64) -> Vec<ScoredPair> {
    let kind = sketches.iter().flatten().next();
    let mut pairs = match kind {
        None => Vec::new(),
        Some(SketchValue::Set(_)) => join::sets(sketches, least),
        Some(SketchValue::Hashes(_)) => join::hashes(sketches, least),
        Some(SketchValue::Bits(..)) => fingerprints(sketches, least),
        Some(SketchValue::Signature(_)) => signatures(sketches, least),
    };
    pairs.sort_unstable_by_key(|pair| (pair.a, pair.b));
    pairs
}

fn fingerprints(sketches: &[Option<SketchValue>], least: f64) -> Vec<ScoredPair> {
    let bits_of = |(at, sketch): (usize, &Option<SketchValue>)| match sketch {
        Some(SketchValue::Bits(value, bits)) => Some((at as u32, value.0, *bits)),
        _ => None,
    };
    let all: Vec<(u32, u128, u32)> = sketches.iter().enumerate().filter_map(bits_of).collect();
    let Some(&(_, _, bits)) = all.first() else {
        return Vec::new();
    };
    let radius = (f64::from(bits) - least.max(0.0)).floor() as u32;
    let low: Vec<u64> = all.iter().map(|entry| entry.1 as u64).collect();
    let mut pairs = Vec::new();
    for (x, &(a, value, _)) in all.iter().enumerate() {
        for (y, &other) in low.iter().enumerate().skip(x + 1) {
            // The low half alone rules out nearly all.
            if (value as u64 ^ other).count_ones() > radius {
                continue;
            }
            let distance = (value ^ all[y].1).count_ones();
            if distance <= radius {
                let score = f64::from(bits - distance);
                pairs.push(ScoredPair {
                    a,
                    b: all[y].0,
                    score,
                });
            }
        }
    }
    pairs
}

fn signatures(sketches: &[Option<SketchValue>], least: f64) -> Vec<ScoredPair> {
    let places_of = |(at, sketch): (usize, &Option<SketchValue>)| match sketch {
        Some(SketchValue::Signature(places)) => Some((at as u32, places.to_vec())),
        _ => None,
    };
    let all: Vec<(u32, Vec<u32>)> = sketches.iter().enumerate().filter_map(places_of).collect();
    let mut pairs = Vec::new();
    for (x, (a, own)) in all.iter().enumerate() {
        for (b, other) in &all[x + 1..] {
            let equal: u32 = own.iter().zip(other).map(|(a, b)| u32::from(a == b)).sum();
            let score = f64::from(equal) / own.len() as f64;
            if score >= least {
                pairs.push(ScoredPair {
                    a: *a,
                    b: *b,
                    score,
                });
            }
        }
    }
    pairs
}
