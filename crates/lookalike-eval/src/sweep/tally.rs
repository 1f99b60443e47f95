//! Counts of one setting, from which its row follows.

use std::collections::BTreeMap;

use lookalike::{Sketch, SketchValue};
use serde::{Deserialize, Serialize};

use super::{SweepRow, SweepSetting};
use crate::curve::{CountedScore, ScoreCurve};
use crate::score::{HalvedCounts, ScoreCounts};

/// Pairs of one setting by their scores, and what its sketches take: all that is measured, in integers, so that what is written down and
/// read again gives the same row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingTally {
    /// Bits of all sketches as they would be stored.
    sketch_bits: u64,
    sketches: u64,
    without_sketch: u64,
    scores: TalliedScores,
    /// The same of the pairs in each half of the documents.
    halves: [TalliedScores; 2],
}

/// Bits of a score, pairs that have it, and true ones among them; from the largest score to the smallest.
type TalliedScores = Vec<(u64, u64, u64)>;

fn tallied(found: &ScoreCounts, correct: &ScoreCounts) -> TalliedScores {
    let scores = found.descending().into_iter();
    scores
        .map(|(score, number)| (score.to_bits(), number, correct.of(score)))
        .collect()
}

fn counted(scores: &TalliedScores) -> impl Iterator<Item = CountedScore> {
    scores.iter().map(|&(bits, found, correct)| CountedScore {
        score: f64::from_bits(bits),
        found,
        correct,
    })
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
            ..Self::default()
        }
    }

    /// Adds the pairs that were found, and the true ones among them.
    #[must_use]
    pub(super) fn with_pairs(self, found: &HalvedCounts, correct: &HalvedCounts) -> Self {
        Self {
            scores: tallied(&found.all, &correct.all),
            halves: [0, 1].map(|half| tallied(&found.halves[half], &correct.halves[half])),
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

    /// The pairs of a half that score at least `cut`.
    pub(crate) fn counts_of_half(&self, half: usize, cut: f64) -> CountedScore {
        let none = CountedScore {
            score: cut,
            found: 0,
            correct: 0,
        };
        let above = counted(&self.halves[half]).take_while(|one| one.score >= cut);
        above.fold(none, |sum, one| CountedScore {
            found: sum.found + one.found,
            correct: sum.correct + one.correct,
            ..sum
        })
    }

    /// The row of the setting on one half of the documents, or on all.
    pub(super) fn row(
        &self,
        half: Option<usize>,
        setting: &SweepSetting,
        true_pairs: u64,
        cuts: &[f64],
    ) -> SweepRow {
        let scheme = &setting.scheme;
        let scores = half.map_or(&self.scores, |half| &self.halves[half]);
        let counts: Vec<CountedScore> = counted(scores).collect();
        let name = |cut| setting.cut_name(cut);
        let mut curve = ScoreCurve::of_counts(&counts, true_pairs, cuts, name);
        if super::counts_hashes(scheme.sketch) {
            curve = curve.with_exact_points(|cut| format!("equal = {cut}"));
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
