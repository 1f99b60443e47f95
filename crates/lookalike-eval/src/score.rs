//! Scores of pairs: every pair of a collection whose sketches are alike enough.

mod join;

use std::fmt;
use std::str::FromStr;

use lookalike::sketch::SketchValue;
use serde::Serialize;

/// A pair of positions, a < b, with the score of its sketches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// The smaller position.
    pub a: u32,
    /// The larger position.
    pub b: u32,
    /// [`SketchValue::score`]; larger is more alike.
    pub score: f64,
}

/// How alike two sets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Shared features over all: the score of the sketch `none`.
    #[default]
    Resemblance,
    /// Shared features over those of the smaller set: is one in the other?
    Containment,
    /// Shared features over those of the larger set: how much of it does the smaller one cover?
    Coverage,
}

impl Measure {
    /// The score of two sketches: their own, but for other measures of sets. In [0, 1] for sets.
    #[must_use]
    pub fn score(self, a: &SketchValue, b: &SketchValue) -> f64 {
        let (SketchValue::Set(x), SketchValue::Set(y)) = (a, b) else {
            return a.score(b);
        };
        let of = match self {
            Self::Resemblance => return a.score(b),
            Self::Containment => x.len().min(y.len()),
            Self::Coverage => x.len().max(y.len()),
        };
        lookalike::intersection_size(x, y) as f64 / of.max(1) as f64
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Resemblance => "resemblance",
            Self::Containment => "containment",
            Self::Coverage => "coverage",
        })
    }
}

impl FromStr for Measure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Resemblance, Self::Containment, Self::Coverage];
        all.into_iter()
            .find(|measure| measure.to_string() == text)
            .ok_or_else(|| {
                format!("unknown measure {text:?}: use resemblance, containment or coverage")
            })
    }
}

/// Every pair whose score is at least `least`, which must be above 0, by position.
///
/// Sets are joined by prefixes, hashes by their keys; fingerprints and signatures are compared
/// each with each, which takes n^2 / 2 comparisons of some nanoseconds.
#[must_use]
pub fn scored_pairs(sketches: &[Option<SketchValue>], least: f64) -> Vec<Scored> {
    let kind = sketches.iter().flatten().next();
    let mut pairs = match kind {
        None => Vec::new(),
        Some(SketchValue::Set(_)) => join::sets(sketches, least),
        Some(SketchValue::Hashes(_)) => join::hashes(sketches, least),
        Some(SketchValue::Bits(..)) => fingerprints(sketches, least),
        Some(SketchValue::Places(_)) => signatures(sketches, least),
    };
    pairs.sort_unstable_by_key(|pair| (pair.a, pair.b));
    pairs
}

fn fingerprints(sketches: &[Option<SketchValue>], least: f64) -> Vec<Scored> {
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
                pairs.push(Scored {
                    a,
                    b: all[y].0,
                    score,
                });
            }
        }
    }
    pairs
}

fn signatures(sketches: &[Option<SketchValue>], least: f64) -> Vec<Scored> {
    let places_of = |(at, sketch): (usize, &Option<SketchValue>)| match sketch {
        Some(SketchValue::Places(places)) => Some((at as u32, places.to_vec())),
        _ => None,
    };
    let all: Vec<(u32, Vec<u32>)> = sketches.iter().enumerate().filter_map(places_of).collect();
    let mut pairs = Vec::new();
    for (x, (a, own)) in all.iter().enumerate() {
        for (b, other) in &all[x + 1..] {
            let equal: u32 = own.iter().zip(other).map(|(a, b)| u32::from(a == b)).sum();
            let score = f64::from(equal) / own.len() as f64;
            if score >= least {
                pairs.push(Scored {
                    a: *a,
                    b: *b,
                    score,
                });
            }
        }
    }
    pairs
}
