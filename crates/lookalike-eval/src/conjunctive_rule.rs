//! Rules of two tests that must both pass: finds the two settings and cuts that agree best with labels.
//!
//! Measures of different features err on different pairs: pages of one template share runs of words but not runs of function words. Both tests use
//! the same scheme except for the features, so that a job can apply them (`--and`). Tests and cuts look better on the labels that they were chosen by
//! than on others; [`JudgedScores::expectations`] estimates their accuracy on other labels.

use std::fmt;

use lookalike::{Sketch, SketchValue};
use serde::Serialize;

use crate::decimal::shortest_between;
use crate::document_set::DocumentIds;
use crate::interval::{ShareEstimate, f1};
use crate::label::JudgedPair;
use crate::sweep::{SettingTally, SweepSetting, judged_score};

/// Maximum number of cuts tried for the first test.
const MAX_CUTS: usize = 256;

/// Two settings with their cuts, and how well the rule of both agrees with the labels.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ConjunctiveRule {
    /// Description of the first test.
    pub first: String,
    /// Description of the second test.
    pub second: String,
    /// Pairs that pass both tests.
    pub found: u64,
    /// Those of the found pairs that are true.
    pub correct: u64,
    /// Share of the found pairs that are true.
    pub precision: ShareEstimate,
    /// Share of the true pairs that are found.
    pub recall: ShareEstimate,
    /// Harmonic mean of precision and recall, on the labels by which tests and cuts were chosen.
    pub f1: f64,
    /// Positions of the two settings.
    pub settings: [usize; 2],
    /// Cuts of the two settings.
    pub cuts: [f64; 2],
}

/// Scores of all judged pairs under one setting; 0 for pairs with a document that has no sketch.
pub(crate) struct SettingScores {
    pub(crate) setting: SweepSetting,
    /// Name of the group of settings among which the best is sought.
    pub(crate) choice: String,
    pub(crate) scores: Vec<f64>,
    /// Positions of the pairs, from the largest score to the smallest.
    pub(crate) order: Vec<u32>,
    /// Smallest cut as the first of two tests. `None` if it cannot be the first.
    min_first_cut: Option<f64>,
}

impl SettingScores {
    fn new(setting: SweepSetting, choice: String, scores: Vec<f64>) -> Self {
        let mut order: Vec<u32> = (0..scores.len() as u32).collect();
        // Stable, so that pairs with equal scores keep the order of the labels on every machine.
        order.sort_by(|&a, &b| scores[b as usize].total_cmp(&scores[a as usize]));
        Self {
            setting,
            choice,
            scores,
            order,
            min_first_cut: Some(0.0),
        }
    }

    /// Returns the decimal with the fewest places that lets the same pairs pass as `cut`.
    fn shortest_cut(&self, cut: f64) -> f64 {
        // The largest score that must stay below the cut.
        let below = self.scores.iter().copied().filter(|score| *score < cut);
        shortest_between(below.fold(0.0, f64::max), cut)
    }
}

/// Judged pairs with their scores under many settings.
///
/// ```
/// use lookalike::Scheme;
/// use lookalike_eval::{DocumentSet, JudgedPair, JudgedScores, SweepSetting, sketches_of};
///
/// // b has the words of a in another order, c those of a but one, and d most runs of a.
/// let texts = [("a", "p q r s t u"), ("b", "u t s r q p"), ("c", "p q r s t v"), ("d", "w q r s t x")];
/// let documents = DocumentSet::new(texts)?;
/// let judged = [(1, false), (2, true), (3, false)].map(|(b, is_true)| JudgedPair { a: 0, b, is_true, has_equal_texts: false });
/// let mut scores = JudgedScores::new(&documents, &judged);
/// for shingle in ["words:1", "words:2"] {
///     let scheme = Scheme::default().shingle(shingle.parse()?);
///     scores.add_sketches(SweepSetting::from(scheme), "none".to_owned(), &sketches_of(&documents, &scheme));
/// }
/// let rules = scores.conjunctive_rules(1);
/// assert_eq!((rules[0].found, rules[0].f1), (1, 1.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct JudgedScores {
    pub(crate) judged: Vec<JudgedPair>,
    pub(crate) truth: Vec<bool>,
    pub(crate) all: Vec<SettingScores>,
    /// The two ids of each pair, separated by a line break.
    pub(crate) ids: Vec<String>,
    /// Number of documents.
    pub(crate) documents: u32,
}

/// The best cuts for some of the pairs, with their F1.
#[derive(Clone, Copy, Default)]
pub(crate) struct BestCuts {
    pub(crate) f1: f64,
    pub(crate) cuts: (f64, f64),
}

impl fmt::Debug for JudgedScores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("JudgedScores");
        shown
            .field("judged", &self.judged.len())
            .finish_non_exhaustive()
    }
}

impl JudgedScores {
    /// Creates the judged pairs of a collection, without scores yet.
    #[must_use]
    pub fn new(documents: &dyn DocumentIds, judged: &[JudgedPair]) -> Self {
        let ids = |pair: &JudgedPair| format!("{}\n{}", documents.id(pair.a), documents.id(pair.b));
        Self {
            judged: judged.to_vec(),
            truth: judged.iter().map(|pair| pair.is_true).collect(),
            all: Vec::new(),
            ids: judged.iter().map(ids).collect(),
            documents: documents.len() as u32,
        }
    }

    /// Adds the scores that a sweep found under more settings, given in the same order. Its truth must be the pairs given to [`Self::new`].
    pub fn add_tallies(&mut self, settings: &[SweepSetting], tallies: &[SettingTally]) {
        for (setting, tally) in settings.iter().zip(tallies) {
            let (choice, scores) = (setting.scheme.sketch.to_string(), tally.judged_scores());
            let scores = SettingScores::new(*setting, choice, scores.collect());
            self.all.push(scores);
        }
    }

    /// Scores the pairs by existing sketches, given in the order of the documents. The best setting is chosen among those with the same `choice`, and
    /// among all. [`SweepSetting::lengths`] is not applied: the sketches need not come with texts. A sweep applies it, see [`Self::add_tallies`].
    pub fn add_sketches(
        &mut self,
        setting: SweepSetting,
        choice: String,
        sketches: &[Option<SketchValue>],
    ) {
        let score = |pair: &JudgedPair| judged_score(&setting, sketches, pair);
        let scores = self.judged.iter().map(score).collect();
        // Without the lengths, so that no rule combines it with a setting that applies them.
        let setting = setting.lengths(None);
        self.all.push(SettingScores::new(setting, choice, scores));
    }

    /// Limits the first of two tests to settings and cuts for which `allows` returns true. If it allows a cut of a setting, it allows all larger ones.
    pub fn limit_first_tests(&mut self, allows: impl Fn(&SweepSetting, f64) -> bool) {
        for own in &mut self.all {
            let descending = own.order.iter().map(|&at| own.scores[at as usize]);
            let allowed = descending.take_while(|&cut| cut > 0.0 && allows(&own.setting, cut));
            own.min_first_cut = allowed.last();
        }
    }

    /// Returns the pairs of settings that a job can test together: their schemes differ only in features and sketch, and the second is a measure of
    /// sets.
    pub(crate) fn combinations(&self) -> Vec<(usize, usize)> {
        // `--and` adds a test of other features to a job, which reads texts under one scheme: everything but the features must be equal.
        let base = |setting: &SweepSetting| {
            setting
                .scheme
                .features_only()
                .shingle(lookalike::Shingle::default())
        };
        let is_set = |at: usize| self.all[at].setting.scheme.sketch == Sketch::None;
        let may_be_first = |pair: &(usize, usize)| self.all[pair.0].min_first_cut.is_some();
        let mut pairs = Vec::new();
        for first in 0..self.all.len() {
            for second in first + 1..self.all.len() {
                let (a, b) = (&self.all[first].setting, &self.all[second].setting);
                if base(a) == base(b) && a.lengths == b.lengths {
                    match (is_set(first), is_set(second)) {
                        // If both are sets, each order gives the same rule up to the cuts that are tried, so one order is enough.
                        (_, true) => pairs.push((first, second)),
                        (true, false) => pairs.push((second, first)),
                        (false, false) => {}
                    }
                }
            }
        }
        pairs.retain(may_be_first);
        pairs
    }

    /// Returns the best combinations of two settings that a job can test together: at most `most`, the best first, ties in the order of the settings.
    /// The time is pairs of settings × labels × cuts, of which there are at most 256.
    #[must_use]
    pub fn conjunctive_rules(&self, most: usize) -> Vec<ConjunctiveRule> {
        let best = |(first, second)| {
            let best = best_cuts(&self.all[first], &self.all[second], &self.truth, |_| true);
            (best, [first, second])
        };
        let mut found: Vec<(BestCuts, [usize; 2])> =
            self.combinations().into_iter().map(best).collect();
        // Stable: ties stay in the order of the settings.
        found.sort_by(|a, b| b.0.f1.total_cmp(&a.0.f1));
        found.truncate(most);
        found
            .into_iter()
            .map(|(best, settings)| self.report(best, settings))
            .collect()
    }

    fn report(&self, best: BestCuts, settings: [usize; 2]) -> ConjunctiveRule {
        let [first, second] = settings.map(|at| &self.all[at]);
        let trues = self.truth.iter().filter(|is_true| **is_true).count() as u64;
        let found: Vec<usize> = (0..self.truth.len())
            .filter(|&at| passes(first, second, best.cuts, at))
            .collect();
        let correct = found.iter().filter(|&&at| self.truth[at]).count() as u64;
        let found = found.len() as u64;
        let (precision, recall) = (
            ShareEstimate::of(correct, found),
            ShareEstimate::of(correct, trues),
        );
        let cuts = [
            first.shortest_cut(best.cuts.0),
            second.shortest_cut(best.cuts.1),
        ];
        let name = |scores: &SettingScores, cut: f64| {
            let setting = &scores.setting;
            format!("{} of {}", setting.cut_name(cut), setting.features_name())
        };
        ConjunctiveRule {
            first: name(first, cuts[0]),
            second: name(second, cuts[1]),
            found,
            correct,
            precision,
            recall,
            f1: f1(precision.value, recall.value),
            settings,
            cuts,
        }
    }
}

/// Returns the cuts with the largest F1 over the pairs for which `counts` returns true; among ties, the strictest.
pub(crate) fn best_cuts(
    first: &SettingScores,
    second: &SettingScores,
    truth: &[bool],
    counts: impl Fn(usize) -> bool,
) -> BestCuts {
    let trues = true_pairs(truth, &counts);
    let mut cuts: Vec<f64> = first
        .order
        .iter()
        .map(|&at| first.scores[at as usize])
        .collect();
    // Equal scores are adjacent in `order`. Scores of pairs that do not count are tried too: a score without its label tells nothing.
    cuts.dedup();
    // Each cut of the first test costs a pass over all labels, and neighbouring cuts differ by a few pairs only.
    let step = cuts.len().div_ceil(MAX_CUTS).max(1);
    let mut best = BestCuts::default();
    let least = first.min_first_cut.unwrap_or(f64::INFINITY);
    // A cut of 0 would pass documents without a sketch, which score 0.
    let allowed = |cut: &&f64| **cut > 0.0 && **cut >= least;
    for &cut in cuts.iter().step_by(step).filter(allowed) {
        // For a given first cut, the best second cut is found exactly, in one pass over the order of its scores.
        let passes = |at| counts(at) && first.scores[at] >= cut;
        let (f1, score) = best_cut(second, truth, trues, passes);
        // Only a larger F1 replaces it. Cuts descend, so the strictest of ties stays.
        if f1 > best.f1 {
            best = BestCuts {
                f1,
                cuts: (cut, score),
            };
        }
    }
    best
}

/// The largest F1 of a test over the pairs that count, of which so many are true, and its cut; the strictest of equals.
pub(crate) fn best_cut(
    scores: &SettingScores,
    truth: &[bool],
    trues: usize,
    counts: impl Fn(usize) -> bool,
) -> (f64, f64) {
    // From the largest score down: one more pair passes with each step.
    let order = scores.order.iter().map(|&at| at as usize);
    let mut order = order.filter(|&at| counts(at)).peekable();
    let (mut found, mut correct, mut best) = (0_usize, 0_usize, (0.0, f64::INFINITY));
    while let Some(at) = order.next() {
        let score = scores.scores[at];
        if score <= 0.0 {
            break;
        }
        found += 1;
        correct += usize::from(truth[at]);
        let ties = order
            .peek()
            .is_some_and(|&next| scores.scores[next] == score);
        // 2pr / (p + r), with p = correct / found and r = correct / trues.
        let f1 = 2.0 * correct as f64 / (trues + found) as f64;
        // Behind the last of equal scores only: no cut parts them.
        if !ties && f1 > best.0 {
            best = (f1, score);
        }
    }
    best
}

/// The number of true pairs among those that count.
pub(crate) fn true_pairs(truth: &[bool], counts: impl Fn(usize) -> bool) -> usize {
    let all = 0..truth.len();
    all.filter(|&at| truth[at] && counts(at)).count()
}

pub(crate) fn passes(
    first: &SettingScores,
    second: &SettingScores,
    cuts: (f64, f64),
    at: usize,
) -> bool {
    first.scores[at] >= cuts.0 && second.scores[at] >= cuts.1
}
