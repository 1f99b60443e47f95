//! Draws pairs for people to judge, equally many from each band of distance or similarity (Manku et al. 2007, section 4.1).
//!
//! True pairs are rare and most pairs are far apart, so a plain sample would contain hardly any true pairs. Here every band gives equally many. The
//! number of pairs that a band represents in the collection is stored with each pair, so that [`crate::stratified_labels`] can weight the bands.

use std::collections::BinaryHeap;

use lookalike::Sketch;
use lookalike::hash::{avalanche, xxh3_64};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::score::{ScoredPair, most_hashes};

/// Band of scores: at least `low` and below `high`.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreBand {
    /// The band in the terms of the sketch, such as `k = 3`.
    pub name: String,
    /// Minimum score, included.
    pub low: f64,
    /// Upper end, excluded.
    pub high: f64,
}

/// Error: numbers that do not define bands.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("bands {given}: {reason}")]
pub struct BandError {
    given: String,
    reason: String,
}

/// Returns the bands of a sketch between these numbers, the most similar first.
///
/// For fingerprints each number is the largest distance of its band: 0, 3, 6 define the bands 0, 1 to 3 and 4 to 6. For all other sketches it is the
/// smallest score: 0.5, 0.9 define the bands from 0.5 to below 0.9 and from 0.9 on.
///
/// # Errors
/// [`BandError`] if the numbers do not ascend or are out of range for the sketch.
pub fn bands(sketch: Sketch, numbers: &[f64]) -> Result<Vec<ScoreBand>, BandError> {
    let refused = |reason: &str| {
        let given: Vec<String> = numbers.iter().map(f64::to_string).collect();
        let (given, reason) = (given.join(","), reason.to_owned());
        Err(BandError { given, reason })
    };
    if numbers.is_empty() || !numbers.is_sorted_by(|a, b| a < b) {
        return refused("give ascending numbers");
    }
    let whole = |most: f64| move |&n: &f64| n.fract() == 0.0 && n <= most;
    match (sketch.fingerprint_bits(), most_hashes(sketch)) {
        (0, None) => {
            if !numbers.iter().all(|n| (0.01..=1.0).contains(n)) {
                return refused("a similarity is a number from 0.01 to 1");
            }
            Ok(similarities(numbers, f64::INFINITY))
        }
        (0, Some(most)) => {
            let most = f64::from(most);
            if !numbers.iter().all(|n| *n >= 1.0 && whole(most)(n)) {
                return refused("hashes that agree are whole numbers from 1 to their number");
            }
            Ok(counts(numbers, most))
        }
        (bits, _) => {
            let bits = f64::from(bits);
            if !numbers.iter().all(|n| *n >= 0.0 && whole(bits / 2.0)(n)) {
                return refused("a distance is a whole number from 0 to half of the bits");
            }
            Ok(distances(numbers, bits))
        }
    }
}

fn similarities(numbers: &[f64], top: f64) -> Vec<ScoreBand> {
    let ends = numbers.iter().skip(1).copied().chain([top]);
    let band = |(&low, high): (&f64, f64)| ScoreBand {
        name: match high.is_finite() {
            true => format!("{low} to {high}"),
            false => format!("{low} or more"),
        },
        low,
        high,
    };
    let mut bands: Vec<ScoreBand> = numbers.iter().zip(ends).map(band).collect();
    bands.reverse();
    bands
}

/// Returns bands of whole numbers, the last of which ends with `most`.
fn counts(numbers: &[f64], most: f64) -> Vec<ScoreBand> {
    let mut bands = similarities(numbers, most + 1.0);
    for band in &mut bands {
        band.name = match (band.low, band.high - 1.0) {
            (low, last) if low == last => format!("equal = {last}"),
            (low, last) => format!("equal = {low} to {last}"),
        };
    }
    bands
}

fn distances(numbers: &[f64], bits: f64) -> Vec<ScoreBand> {
    let before = [-1.0].into_iter().chain(numbers.iter().copied());
    let band = |(before, &most): (f64, &f64)| ScoreBand {
        name: match before + 1.0 == most {
            true => format!("k = {most}"),
            false => format!("k = {} to {most}", before + 1.0),
        },
        low: bits - most,
        high: bits - before,
    };
    before.zip(numbers).map(band).collect()
}

/// Returns the default bands: for fingerprints, distances 0 to 10 as in the paper (figure 1, plus distance 0); for sketches that count hashes, each
/// number of agreeing hashes; otherwise similarities from 0.3 on in tenths.
#[must_use]
pub fn default_bands(sketch: Sketch) -> Vec<f64> {
    match (sketch.fingerprint_bits(), most_hashes(sketch)) {
        (0, None) => (3..=9).map(|tenth| f64::from(tenth) / 10.0).collect(),
        (0, Some(most)) => (1..=most).map(f64::from).collect(),
        _ => (0..=10).map(f64::from).collect(),
    }
}

/// Band of a pair, with the number of pairs that it represents. Stored with the pair and its label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairStratum {
    /// Number of the band, from 1 for the most similar; empty bands are not counted.
    pub number: u32,
    /// Number of bands with pairs.
    pub of: u32,
    /// Description of the band.
    pub name: String,
    /// Pairs of the collection in this band.
    pub pairs: u64,
    /// Pairs drawn from this band.
    pub drawn: u64,
}

/// A drawn pair, as one line of the file of pairs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampledPair {
    /// The smaller id.
    pub a: String,
    /// The larger id.
    pub b: String,
    /// [`lookalike::sketch::SketchValue::score`] of the pair.
    pub score: f64,
    /// Its band.
    pub stratum: PairStratum,
}

/// A band, with its numbers of pairs.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledBand {
    /// The band.
    pub band: ScoreBand,
    /// Number of pairs of the collection in it.
    pub pairs: u64,
    /// Number of pairs drawn from it.
    pub drawn: u64,
}

/// A stratified sample of pairs.
#[derive(Debug, Clone, PartialEq)]
pub struct StratifiedSample {
    /// The pairs in random order, so that a person who stops early has judged pairs of all bands.
    pub pairs: Vec<SampledPair>,
    /// All bands, including empty ones.
    pub bands: Vec<SampledBand>,
}

/// Sampler that draws equally many pairs from each band.
///
/// ```
/// use lookalike::Sketch;
/// use lookalike_eval::stratified_sample::bands;
/// use lookalike_eval::{ScoredPair, StratifiedSampler};
///
/// let ids: Vec<String> = (0..100).map(|id| id.to_string()).collect();
/// let bands = bands(Sketch::None, &[0.5, 0.9])?;
/// let mut sampler = StratifiedSampler::new(&ids, &bands, 10, 0);
/// // One pair in the upper band, and 98 in the lower.
/// (1..100).for_each(|b| sampler.add(ScoredPair { a: 0, b, score: if b == 1 { 0.95 } else { 0.6 } }));
/// let sample = sampler.finish();
/// assert_eq!(sample.pairs.len(), 11);
/// // A pair tells what it stands for.
/// assert!(sample.pairs.iter().any(|pair| (pair.stratum.pairs, pair.stratum.drawn) == (98, 10)));
/// # Ok::<(), lookalike_eval::stratified_sample::BandError>(())
/// ```
///
/// Draws `each` pairs from each band, or all pairs of a smaller one. It draws the pairs whose ids have the smallest hashes under a seed, so that the
/// result does not depend on any order. Pairs outside all bands do not count. Memory: the drawn pairs, and 8 bytes for each document.
#[derive(Debug)]
pub struct StratifiedSampler<'a> {
    ids: &'a [String],
    hashes: Vec<u64>,
    bands: &'a [ScoreBand],
    each: usize,
    /// Pairs drawn so far from each band: hash, positions, bits of the score.
    heaps: Vec<BinaryHeap<(u64, u32, u32, u64)>>,
    counts: Vec<u64>,
}

impl<'a> StratifiedSampler<'a> {
    /// Creates a sampler for pairs of the documents with these ids.
    #[must_use]
    pub fn new(ids: &'a [String], bands: &'a [ScoreBand], each: usize, seed: u64) -> Self {
        let hashes = ids.iter().map(|id| xxh3_64(id.as_bytes(), seed)).collect();
        Self {
            ids,
            hashes,
            bands,
            each,
            heaps: vec![BinaryHeap::new(); bands.len()],
            counts: vec![0; bands.len()],
        }
    }

    /// Offers one pair to the sample, in time logarithmic in `each`.
    pub fn add(&mut self, pair: ScoredPair) {
        let inside = |band: &ScoreBand| band.low <= pair.score && pair.score < band.high;
        let Some(at) = self.bands.iter().position(inside) else {
            return;
        };
        self.counts[at] += 1;
        let [a, b] = [pair.a, pair.b].map(|at| self.hashes[at as usize]);
        let hash = avalanche(a.rotate_left(1) ^ b);
        // The score is stored as bits because floats have no total order for the heap.
        let entry = (hash, pair.a, pair.b, pair.score.to_bits());
        let heap = &mut self.heaps[at];
        if heap.len() < self.each {
            heap.push(entry);
        } else if heap.peek().is_some_and(|last| entry < *last) {
            // The top is the largest of the smallest hashes so far, so replace it.
            heap.pop();
            heap.push(entry);
        }
    }

    /// Returns the sample.
    #[must_use]
    pub fn finish(self) -> StratifiedSample {
        let of = self.counts.iter().filter(|&&count| count > 0).count() as u32;
        let (mut number, mut all, mut drawn_bands) = (0, Vec::new(), Vec::new());
        for ((band, heap), pairs) in self.bands.iter().zip(self.heaps).zip(self.counts) {
            number += u32::from(pairs > 0);
            let drawn = heap.len() as u64;
            let stratum = || PairStratum {
                number,
                of,
                name: band.name.clone(),
                pairs,
                drawn,
            };
            all.extend(heap.into_iter().map(|entry| (entry, stratum())));
            drawn_bands.push(SampledBand {
                band: band.clone(),
                pairs,
                drawn,
            });
        }
        // Sorting by hash across all bands mixes them.
        all.sort_unstable_by_key(|(entry, _)| *entry);
        let pair = |((_, a, b, score), stratum): (_, PairStratum)| SampledPair {
            a: self.ids[a as usize].clone(),
            b: self.ids[b as usize].clone(),
            score: f64::from_bits(score),
            stratum,
        };
        StratifiedSample {
            pairs: all.into_iter().map(pair).collect(),
            bands: drawn_bands,
        }
    }
}
