//! Two tests that must both pass: which two settings, and which cuts, agree best with labels.
//!
//! Measures of different features err on different pairs: runs of words are shared by pages of one
//! template, runs of function words are not. Cuts that are chosen on the labels they are judged by
//! flatter; so the best are judged again with cuts chosen on four fifths of the labels and used on
//! the last.

use lookalike::hash::xxh3_64;
use serde::Serialize;

use crate::collection::Collection;
use crate::interval::{Estimate, f1};
use crate::label::JudgedPair;
use crate::sweep::{Setting, Tokens};

/// Cuts of the first test that are tried at most.
const MOST_CUTS: usize = 256;
/// Parts of the labels for the second judgement.
const FOLDS: usize = 5;

/// Two settings with their cuts, and how well they agree with the labels together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TwoTests {
    /// The first test in words.
    pub first: String,
    /// The second.
    pub second: String,
    /// Pairs that pass both.
    pub found: u64,
    /// Of these, true ones.
    pub correct: u64,
    /// Share of the found pairs that are true.
    pub precision: Estimate,
    /// Share of the true pairs that are found.
    pub recall: Estimate,
    /// Their harmonic mean.
    pub f1: f64,
    /// F1 with cuts chosen on four fifths of the labels and used on the last fifth.
    pub held_out_f1: f64,
}

/// Scores of all judged pairs under a setting; 0 where a document has no sketch.
struct Scores {
    setting: Setting,
    scores: Vec<f64>,
    /// Positions from the largest score to the smallest.
    order: Vec<u32>,
}

/// The best cuts over some of the pairs.
#[derive(Clone, Copy, Default)]
struct Best {
    f1: f64,
    cuts: (f64, f64),
}

/// The best combinations of two of the settings, at most `most`, the best first; equals in the order
/// of the settings. Time: pairs of settings times labels times the number of cuts, at most 256.
#[must_use]
pub fn two_tests(
    collection: &Collection,
    settings: &[Setting],
    judged: &[JudgedPair],
    most: usize,
) -> Vec<TwoTests> {
    let all = scores(collection, settings, judged);
    let truth: Vec<bool> = judged.iter().map(|pair| pair.2).collect();
    let mut found = Vec::new();
    for (at, first) in all.iter().enumerate() {
        for second in &all[at + 1..] {
            let best = best_cuts(first, second, &truth, |_| true);
            found.push((best, first, second));
        }
    }
    found.sort_by(|a, b| b.0.f1.total_cmp(&a.0.f1));
    found.truncate(most);
    let folds = folds(collection, judged);
    found
        .into_iter()
        .map(|(best, first, second)| report(best, first, second, &truth, &folds))
        .collect()
}

fn scores(collection: &Collection, settings: &[Setting], judged: &[JudgedPair]) -> Vec<Scores> {
    let mut tokens: Vec<Tokens<'_>> = Vec::new();
    let mut all = Vec::new();
    for setting in settings {
        let at = match tokens.iter().position(|tokens| tokens.fit(&setting.scheme)) {
            Some(at) => at,
            None => {
                tokens.push(Tokens::new(collection, &setting.scheme));
                tokens.len() - 1
            }
        };
        let sketches = tokens[at].sketches(&setting.scheme);
        let score = |pair: &JudgedPair| {
            let (a, b) = (&sketches[pair.0 as usize], &sketches[pair.1 as usize]);
            let both = a.as_ref().zip(b.as_ref());
            let both = both.filter(|_| setting.allows(collection, pair.0, pair.1));
            both.map_or(0.0, |(a, b)| setting.measure.score(a, b))
        };
        let scores: Vec<f64> = judged.iter().map(score).collect();
        let mut order: Vec<u32> = (0..judged.len() as u32).collect();
        order.sort_by(|&a, &b| scores[b as usize].total_cmp(&scores[a as usize]));
        all.push(Scores {
            setting: *setting,
            scores,
            order,
        });
    }
    all
}

/// The cuts of the largest F1 over the pairs that count; the strictest of equals.
fn best_cuts(
    first: &Scores,
    second: &Scores,
    truth: &[bool],
    counts: impl Fn(usize) -> bool,
) -> Best {
    let trues = (0..truth.len())
        .filter(|&at| truth[at] && counts(at))
        .count();
    let mut cuts: Vec<f64> = first
        .order
        .iter()
        .map(|&at| first.scores[at as usize])
        .collect();
    cuts.dedup();
    let step = cuts.len().div_ceil(MOST_CUTS).max(1);
    let mut best = Best::default();
    for &cut in cuts.iter().step_by(step).filter(|cut| **cut > 0.0) {
        let (mut found, mut correct) = (0_usize, 0_usize);
        let passing = second.order.iter().map(|&at| at as usize);
        let mut passing = passing
            .filter(|&at| counts(at) && first.scores[at] >= cut)
            .peekable();
        while let Some(at) = passing.next() {
            found += 1;
            correct += usize::from(truth[at]);
            let score = second.scores[at];
            let ties = passing
                .peek()
                .is_some_and(|&next| second.scores[next] == score);
            let f1 = 2.0 * correct as f64 / (trues + found) as f64;
            if !ties && score > 0.0 && f1 > best.f1 {
                best = Best {
                    f1,
                    cuts: (cut, score),
                };
            }
        }
    }
    best
}

fn passes(first: &Scores, second: &Scores, cuts: (f64, f64), at: usize) -> bool {
    first.scores[at] >= cuts.0 && second.scores[at] >= cuts.1
}

/// The part that each judged pair belongs to: equally many in each, by the hash of their ids.
fn folds(collection: &Collection, judged: &[JudgedPair]) -> Vec<usize> {
    let hash = |&(a, b, _): &JudgedPair| {
        let ids = format!("{}\n{}", collection.id(a), collection.id(b));
        xxh3_64(ids.as_bytes(), 0)
    };
    let hashes: Vec<u64> = judged.iter().map(hash).collect();
    let mut order: Vec<usize> = (0..judged.len()).collect();
    order.sort_by_key(|&at| hashes[at]);
    let mut folds = vec![0; judged.len()];
    for (place, at) in order.into_iter().enumerate() {
        folds[at] = place % FOLDS;
    }
    folds
}

fn report(
    best: Best,
    first: &Scores,
    second: &Scores,
    truth: &[bool],
    folds: &[usize],
) -> TwoTests {
    let trues = truth.iter().filter(|is_true| **is_true).count() as u64;
    let tally = |passes: &dyn Fn(usize) -> bool| {
        let found: Vec<usize> = (0..truth.len()).filter(|&at| passes(at)).collect();
        let correct = found.iter().filter(|&&at| truth[at]).count();
        (found.len() as u64, correct as u64)
    };
    let (found, correct) = tally(&|at| passes(first, second, best.cuts, at));
    let by_fold: Vec<Best> = (0..FOLDS)
        .map(|fold| best_cuts(first, second, truth, |at| folds[at] != fold))
        .collect();
    let held_out = tally(&|at| passes(first, second, by_fold[folds[at]].cuts, at));
    let share = |(found, correct): (u64, u64)| {
        let (precision, recall) = (Estimate::of(correct, found), Estimate::of(correct, trues));
        (f1(precision.value, recall.value), precision, recall)
    };
    let (f1, precision, recall) = share((found, correct));
    let name = |scores: &Scores, cut: f64| {
        let scheme = &scores.setting.scheme;
        format!("{} of {}", scores.setting.cut_name(cut), scheme.shingle)
    };
    TwoTests {
        first: name(first, best.cuts.0),
        second: name(second, best.cuts.1),
        found,
        correct,
        precision,
        recall,
        f1,
        held_out_f1: share(held_out).0,
    }
}
