//! Computes precision and recall at every cut from scored pairs and the truth.

use serde::Serialize;

use crate::decimal::shortest_between;
use crate::interval::{ShareEstimate, f1};

/// Precision and recall at one cut of the scores.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CurvePoint {
    /// Minimum score that counts. Parsing its printed form gives the same value.
    pub cut: f64,
    /// The cut in the terms of the sketch, such as `k <= 3`.
    pub parameter: String,
    /// Pairs found.
    pub found: u64,
    /// Those of the found pairs that are true.
    pub correct: u64,
    /// Share of the found pairs that are true.
    pub precision: ShareEstimate,
    /// Share of the true pairs that are found.
    pub recall: ShareEstimate,
    /// Harmonic mean of precision and recall.
    pub f1: f64,
}

/// Number of pairs with one score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CountedScore {
    /// The score.
    pub score: f64,
    /// Pairs that have it.
    pub found: u64,
    /// Those of the pairs that are true.
    pub correct: u64,
}

/// Precision and recall at all cuts, from the strictest to the loosest.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ScoreCurve {
    /// Number of all true pairs.
    pub true_pairs: u64,
    /// Points at the requested cuts.
    pub points: Vec<CurvePoint>,
    /// For sketches that count hashes: the pairs that agree in exactly as many hashes as the cut says. [`Self::points`] has those that agree in at
    /// least as many.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exactly: Vec<CurvePoint>,
    /// Point with the largest F1 among all cuts up to [`Self::loosest`]. `None` if no pair was found.
    pub best: Option<CurvePoint>,
    /// True if [`Self::best`] finds all that was counted, but not all true pairs, so that a looser cut may be better.
    pub is_best_at_end: bool,
    /// Loosest cut that was tried, in the terms of the sketch. `None` if all were.
    pub loosest: Option<String>,
    /// Mean of the precision at each true pair in the order of scores; equal scores count as one step. True pairs beyond [`Self::loosest`] add 0.
    pub average_precision: f64,
}

impl ScoreCurve {
    /// Creates the curve of scored pairs `(score, is_true)`, in any order. `true_pairs` includes true pairs without a score. `name` describes a cut
    /// in the terms of the sketch.
    ///
    /// ```
    /// use lookalike_eval::ScoreCurve;
    ///
    /// let scores = vec![(0.9, true), (0.8, false), (0.8, true)];
    /// let curve = ScoreCurve::new(scores, 4, &[0.9, 0.8], |cut| format!("resemblance >= {cut}"));
    /// let point = &curve.points[1];
    /// assert_eq!((point.found, point.correct, point.recall.value), (3, 2, 0.5));
    /// ```
    #[must_use]
    pub fn new(
        mut scores: Vec<(f64, bool)>,
        true_pairs: u64,
        cuts: &[f64],
        name: impl Fn(f64) -> String,
    ) -> Self {
        scores.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let groups = scores.chunk_by(|a, b| a.0 == b.0);
        let counts = groups.map(|equal| CountedScore {
            score: equal[0].0,
            found: equal.len() as u64,
            correct: equal.iter().filter(|pair| pair.1).count() as u64,
        });
        Self::of_counts(&counts.collect::<Vec<_>>(), true_pairs, cuts, name)
    }

    /// Creates the curve of pairs that are already counted by score, from the largest score to the smallest.
    #[must_use]
    pub fn of_counts(
        scores: &[CountedScore],
        true_pairs: u64,
        cuts: &[f64],
        name: impl Fn(f64) -> String,
    ) -> Self {
        let point = |cut: f64, (found, correct): (u64, u64)| {
            let counted = CountedScore {
                score: cut,
                found,
                correct,
            };
            CurvePoint::new(counted, name(cut), true_pairs)
        };
        // `sums` are the pairs found and correct at the current score or above.
        let (mut best, mut area, mut sums) = (None::<CurvePoint>, 0.0, (0, 0));
        let mut sums_at = Vec::with_capacity(scores.len());
        for (at, counted) in scores.iter().enumerate() {
            sums = (sums.0 + counted.found, sums.1 + counted.correct);
            sums_at.push(sums);
            // Any cut between two scores finds the same pairs. The shortest decimal is the easiest to type.
            let below = scores.get(at + 1).map_or(0.0, |next| next.score);
            let here = point(shortest_between(below, counted.score), sums);
            // Average precision is the mean over true pairs of the precision at the pair. True pairs without a score add 0.
            area += here.precision.value * counted.correct as f64;
            // Scores descend, so the strictest cut wins a tie.
            if best.as_ref().is_none_or(|best| here.f1 > best.f1) {
                best = Some(here);
            }
        }
        // The last of the scores that reach the cut has the sums of all of them.
        let at = |cut: f64| match scores.partition_point(|counted| counted.score >= cut) {
            0 => (0, 0),
            end => sums_at[end - 1],
        };
        Self {
            true_pairs,
            points: cuts.iter().map(|&cut| point(cut, at(cut))).collect(),
            exactly: Vec::new(),
            best,
            is_best_at_end: false,
            loosest: None,
            average_precision: area / true_pairs.max(1) as f64,
        }
    }

    /// States that only pairs which the last point finds were counted.
    #[must_use]
    pub(crate) fn up_to_last_point(mut self) -> Self {
        let Some(last) = self.points.last() else {
            return self;
        };
        self.loosest = Some(last.parameter.clone());
        if let Some(best) = self.best.as_mut().filter(|best| best.found == last.found) {
            self.is_best_at_end = best.correct < self.true_pairs;
            // A shorter decimal below the last point would find pairs that were not counted.
            if best.cut < last.cut {
                best.clone_from(last);
            }
        }
        self
    }

    /// Adds points for scores that equal a cut. The cuts must be all scores that exist, descending.
    #[must_use]
    pub fn with_exact_points(mut self, name: impl Fn(f64) -> String) -> Self {
        // Points are cumulative: what one finds beyond the stricter one before it agrees in exactly as many hashes.
        let mut above = (0, 0);
        let exact = |point: &CurvePoint| {
            let counted = CountedScore {
                score: point.cut,
                found: point.found - above.0,
                correct: point.correct - above.1,
            };
            above = (point.found, point.correct);
            CurvePoint::new(counted, name(point.cut), self.true_pairs)
        };
        self.exactly = self.points.iter().map(exact).collect();
        self
    }
}

impl CurvePoint {
    /// Creates the point of `counted` at its score.
    fn new(counted: CountedScore, parameter: String, true_pairs: u64) -> Self {
        let precision = ShareEstimate::of(counted.correct, counted.found);
        let recall = ShareEstimate::of(counted.correct, true_pairs);
        Self {
            cut: counted.score,
            parameter,
            found: counted.found,
            correct: counted.correct,
            f1: f1(precision.value, recall.value),
            precision,
            recall,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_by_hand() {
        let scores = vec![(0.9, true), (0.8, false), (0.8, true), (0.1, true)];
        let curve = ScoreCurve::new(scores, 4, &[0.85, 0.8], |cut| cut.to_string());
        let counts: Vec<_> = curve.points.iter().map(|p| (p.found, p.correct)).collect();
        assert_eq!(counts, [(1, 1), (3, 2)]);
        // Precision is 1 at the first true pair, 2/3 at the second and 3/4 at the third; one true pair is not found.
        assert!((curve.average_precision - (1.0 + 2.0 / 3.0 + 0.75) / 4.0).abs() < 1e-12);
        let best = curve.best.unwrap();
        assert_eq!((best.cut, best.found), (0.1, 4));
        assert!((best.f1 - 0.75).abs() < 1e-12);
    }

    #[test]
    fn a_best_cut_that_is_the_last_one_tried_is_marked() {
        let curve = |true_pairs, cuts: &[f64]| {
            let scores = vec![(0.9, true), (0.42, true), (0.34, true)];
            ScoreCurve::new(scores, true_pairs, cuts, |cut| cut.to_string()).up_to_last_point()
        };
        let end = curve(5, &[0.9, 0.32]);
        assert!(end.is_best_at_end);
        let best = end.best.unwrap();
        // Not 0.3, which finds pairs that were not counted.
        assert_eq!((best.cut, &*best.parameter), (0.32, "0.32"));
        assert_eq!(end.loosest.as_deref(), Some("0.32"));
        // Nothing is left to find.
        assert!(!curve(3, &[0.9, 0.3]).is_best_at_end);
    }

    #[test]
    fn exact_counts_by_hand() {
        let scores = vec![
            (3.0, true),
            (2.0, false),
            (2.0, true),
            (1.0, false),
            (1.0, false),
        ];
        let curve = ScoreCurve::new(scores, 4, &[3.0, 2.0, 1.0], |cut| format!("equal >= {cut}"));
        let curve = curve.with_exact_points(|cut| format!("equal = {cut}"));
        let rows = |points: &[CurvePoint]| -> Vec<_> {
            let row = |p: &CurvePoint| (p.parameter.clone(), p.found, p.correct, p.recall.value);
            points.iter().map(row).collect()
        };
        let row = |name: &str, found, correct, recall| (name.to_owned(), found, correct, recall);
        assert_eq!(
            rows(&curve.exactly),
            [
                row("equal = 3", 1, 1, 0.25),
                row("equal = 2", 2, 1, 0.25),
                row("equal = 1", 2, 0, 0.0)
            ]
        );
        assert_eq!(rows(&curve.points)[2], row("equal >= 1", 5, 2, 0.5));
    }
}
