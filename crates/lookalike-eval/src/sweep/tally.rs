//! Counts of one setting, from which its row follows.

use std::collections::BTreeMap;

use lookalike::{Sketch, SketchValue};
use serde::{Deserialize, Serialize};

use super::{SweepRow, SweepSetting};
use crate::curve::{CountedScore, ScoreCurve};
use crate::score::ScoreCounts;

/// Pairs of one setting by their scores, and what its sketches take: all that is measured, in integers, so that what is written down and
/// read again gives the same row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingTally {
    /// Bits of all sketches as they would be stored.
    sketch_bits: u64,
    sketches: u64,
    without_sketch: u64,
    /// Bits of a score, pairs that have it, and true ones among them; from the largest score to the smallest.
    scores: Vec<(u64, u64, u64)>,
}

impl SettingTally {
    /// The counts of these sketches, without pairs.
    pub(super) fn of_sketches(sketch: Sketch, sketches: &[Option<SketchValue>]) -> Self {
        let mut tally = Self::default();
        for value in sketches {
            match value {
                Some(value) => {
                    tally.sketches += 1;
                    tally.sketch_bits += stored_bits(sketch, value);
                }
                None => tally.without_sketch += 1,
            }
        }
        tally
    }

    /// The counts of sets of features with so many elements in all.
    pub(super) fn of_sets(features: u64, sketches: u64, without_sketch: u64) -> Self {
        Self {
            sketch_bits: 64 * features,
            sketches,
            without_sketch,
            scores: Vec::new(),
        }
    }

    /// Adds the pairs that were found, and the true ones among them.
    #[must_use]
    pub(super) fn with_pairs(self, found: &ScoreCounts, correct: &ScoreCounts) -> Self {
        let scores = found.descending().into_iter();
        Self {
            scores: scores
                .map(|(score, number)| (score.to_bits(), number, correct.of(score)))
                .collect(),
            ..self
        }
    }

    /// Adds judged pairs, each with its truth.
    #[must_use]
    pub(super) fn with_judged(self, judged: impl Iterator<Item = (f64, bool)>) -> Self {
        let mut by_score: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for (score, is_true) in judged {
            let counts = by_score.entry(score.to_bits()).or_default();
            *counts = (counts.0 + 1, counts.1 + u64::from(is_true));
        }
        // Scores are above 0, so that their bits are in their order.
        let scores = by_score.into_iter().rev();
        Self {
            scores: scores
                .map(|(bits, (found, correct))| (bits, found, correct))
                .collect(),
            ..self
        }
    }

    /// The row of the setting: `cuts` are those that its curve is shown at.
    pub(super) fn row(&self, setting: &SweepSetting, true_pairs: u64, cuts: &[f64]) -> SweepRow {
        let scheme = &setting.scheme;
        let counts = self
            .scores
            .iter()
            .map(|&(bits, found, correct)| CountedScore {
                score: f64::from_bits(bits),
                found,
                correct,
            });
        let counts: Vec<CountedScore> = counts.collect();
        let name = |cut| setting.cut_name(cut);
        let mut curve = ScoreCurve::of_counts(&counts, true_pairs, cuts, name);
        if super::counts_hashes(scheme.sketch) {
            curve = curve.with_exact_points(|cut| format!("agree = {cut}"));
        }
        SweepRow {
            features: setting.features_name(),
            weight: scheme.weight.to_string(),
            sketch: setting.sketch_name(),
            scheme: scheme.to_string(),
            bytes: self.sketch_bits as f64 / 8.0 / self.sketches.max(1) as f64,
            without_sketch: self.without_sketch,
            curve,
        }
    }
}

/// Bits of a sketch as it would be stored.
fn stored_bits(sketch: Sketch, value: &SketchValue) -> u64 {
    match (value, sketch) {
        (SketchValue::Set(set), _) => 64 * set.len() as u64,
        (SketchValue::Bits(_, bits), _) => u64::from(*bits),
        (SketchValue::Signature(places), Sketch::BBit { bits, .. }) => {
            places.len() as u64 * u64::from(bits)
        }
        (SketchValue::Signature(places), _) => 32 * places.len() as u64,
        (SketchValue::Hashes(hashes), _) => 64 * hashes.len() as u64,
    }
}
