//! Counts of one setting, from which its row is computed.

use lookalike::{Sketch, SketchValue};
use serde::{Deserialize, Serialize};

use super::{GroundTruth, SweepRow, SweepSetting, cuts_of};
use crate::curve::{CountedScore, ScoreCurve};
use crate::score::{HalvedCounts, ScoreCounts, most_hashes};

/// Pairs of one setting by score, and the size of its sketches. All measurements are integers, so that a tally gives the same row after it is written
/// and read again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingTally {
    /// Bits of all sketches in their stored form.
    sketch_bits: u64,
    sketches: u64,
    without_sketch: u64,
    scores: TalliedScores,
    /// Scores of the pairs in each half of the documents.
    halves: [TalliedScores; 2],
    /// Bits of the score of each judged pair, in their order; empty if the truth is complete.
    judged: Vec<u64>,
}

/// Bits of a score, number of pairs with it, and number of true ones among them; from the largest score to the smallest.
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
    /// Counts these sketches; the tally has no pairs yet.
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

    /// Creates the counts of feature sets with `features` elements in all.
    pub(super) fn of_sets(features: u64, sketches: u64, without_sketch: u64) -> Self {
        Self {
            sketch_bits: 64 * features,
            sketches,
            without_sketch,
            ..Self::default()
        }
    }

    /// Adds the pairs that were found and the true ones among them.
    #[must_use]
    pub(super) fn with_pairs(self, found: &HalvedCounts, correct: &HalvedCounts) -> Self {
        Self {
            scores: tallied(&found.all, &correct.all),
            halves: [0, 1].map(|half| tallied(&found.halves[half], &correct.halves[half])),
            ..self
        }
    }

    /// Adds the score of each judged pair.
    #[must_use]
    pub(super) fn with_judged(self, scores: &[f64]) -> Self {
        Self {
            judged: scores.iter().map(|score| score.to_bits()).collect(),
            ..self
        }
    }

    /// Returns the score of each judged pair.
    pub(crate) fn judged_scores(&self) -> impl Iterator<Item = f64> {
        self.judged.iter().copied().map(f64::from_bits)
    }

    /// The pairs of a half that score at least `cut`.
    pub(crate) fn counts_of_half(&self, half: usize, cut: f64) -> CountedScore {
        let none = CountedScore {
            score: cut,
            found: 0,
            correct: 0,
        };
        // Scores descend, so the first one below the cut ends the sum.
        let above = counted(&self.halves[half]).take_while(|one| one.score >= cut);
        above.fold(none, |sum, one| CountedScore {
            found: sum.found + one.found,
            correct: sum.correct + one.correct,
            ..sum
        })
    }

    /// Returns the row of the setting for one half of the documents, or for all if `half` is `None`.
    pub(super) fn row(
        &self,
        half: Option<usize>,
        setting: &SweepSetting,
        truth: &GroundTruth,
        true_pairs: u64,
    ) -> SweepRow {
        let cuts = cuts_of(setting, truth);
        let scheme = &setting.scheme;
        let scores = half.map_or(&self.scores, |half| &self.halves[half]);
        let counts: Vec<CountedScore> = counted(scores).collect();
        let name = |cut| setting.cut_name(cut);
        let mut curve = ScoreCurve::of_counts(&counts, true_pairs, &cuts, name);
        if most_hashes(scheme.sketch).is_some() {
            curve = curve.with_exact_points(|cut| format!("equal = {cut}"));
        } else if matches!(truth, GroundTruth::Complete { .. }) {
            curve = curve.up_to_last_point();
        }
        SweepRow {
            features: setting.features_name(),
            weight: scheme.weight.to_string(),
            sketch: setting.sketch_name(),
            scheme: scheme.to_string(),
            // The mean over documents that have a sketch: the others cost nothing.
            bytes: self.sketch_bits as f64 / 8.0 / self.sketches.max(1) as f64,
            without_sketch: self.without_sketch,
            curve,
        }
    }
}

/// Returns the bits of a sketch in its stored form.
fn stored_bits(sketch: Sketch, value: &SketchValue) -> u64 {
    match (value, sketch) {
        (SketchValue::Set(set), _) => 64 * set.len() as u64,
        (SketchValue::Bits(_, bits), _) => u64::from(*bits),
        // In memory a place takes 32 bits, on disk only the bits that the sketch keeps.
        (SketchValue::Signature(places), Sketch::BBit { bits, .. }) => {
            places.len() as u64 * u64::from(bits)
        }
        (SketchValue::Signature(places), _) => 32 * places.len() as u64,
        (SketchValue::Hashes(hashes), _) => 64 * hashes.len() as u64,
    }
}
