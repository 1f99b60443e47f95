//! Estimates the accuracy of the best of many settings on labels that had no part in the choice.
//!
//! Measured on the labels by which it was chosen, the best of many settings and cuts looks too good: the more choices there were, the more so. Here
//! the whole choice, of settings and of cuts, is repeated on four fifths of the labels and tested on the last fifth (nested cross-validation; Varma
//! and Simon, BMC Bioinformatics 7, 2006). Labelled pairs that share documents, directly or through other pairs, are a *family* and stay together.
//! The limits come from drawing families with replacement (Efron's bootstrap).

use std::collections::HashMap;

use lookalike::cluster::Components;
use lookalike::hash::{splitmix64, xxh3_64};
use serde::Serialize;

use crate::conjunctive_rule::{
    JudgedScores, SettingScores, best_cut, best_cuts, passes, true_pairs,
};
use crate::interval::f1;
use crate::label::JudgedPair;

/// Number of folds that the labels are split into.
const FOLDS: usize = 5;
/// Number of different splits; the figures are means over them.
const REPEATS: u64 = 3;
/// Number of bootstrap draws of families for the limits.
const DRAWS: usize = 1000;
/// Maximum number of labels × cuts × combinations to try: about ten seconds.
const MAX_STEPS: u64 = 10_000_000_000;

/// Expected accuracy, on other labels, of a choice among settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ExpectedAccuracy {
    /// Description of the settings that were chosen among.
    pub choice: String,
    /// Number of settings, or of combinations of two.
    pub settings: usize,
    /// Families of labelled pairs.
    pub families: usize,
    /// True if each pair counts as a family of its own, because shared documents connect nearly all pairs. The true limits are then wider.
    pub pairs_alone: bool,
    /// Share of the found pairs that are true.
    pub precision: f64,
    /// Share of the true pairs that are found.
    pub recall: f64,
    /// Harmonic mean of precision and recall.
    pub f1: f64,
    /// Lower 95 % limit of F1.
    pub low: f64,
    /// Upper 95 % limit of F1.
    pub high: f64,
}

/// Family of each labelled pair.
struct LabelFamilies {
    of_pair: Vec<usize>,
    count: usize,
    /// See [`ExpectedAccuracy::pairs_alone`].
    pairs_alone: bool,
}

impl LabelFamilies {
    /// Groups pairs that are connected by documents. If that gives fewer families than folds, each pair is its own family.
    fn new(judged: &[JudgedPair], documents: u32) -> Self {
        let mut components = Components::new(documents);
        for pair in judged {
            components.join(pair.a, pair.b);
        }
        let mut numbers: HashMap<u32, usize> = HashMap::new();
        let mut number = |pair: &JudgedPair| {
            let next = numbers.len();
            *numbers.entry(components.first(pair.a)).or_insert(next)
        };
        let of_pair: Vec<usize> = judged.iter().map(&mut number).collect();
        match numbers.len() {
            // With fewer families, some fold would be empty.
            count if count >= FOLDS => Self {
                of_pair,
                count,
                pairs_alone: false,
            },
            _ => Self {
                of_pair: (0..judged.len()).collect(),
                count: judged.len(),
                pairs_alone: true,
            },
        }
    }

    /// Returns the fold of each pair. Families go, from the largest to the smallest, to the fold with the fewest pairs; families of equal size are
    /// ordered by the smallest hash of their pairs' ids.
    fn folds(&self, ids: &[String], seed: u64) -> Vec<usize> {
        let mut families = vec![(0_usize, u64::MAX); self.count];
        for (&family, ids) in self.of_pair.iter().zip(ids) {
            let (pairs, least) = families[family];
            families[family] = (pairs + 1, least.min(xxh3_64(ids.as_bytes(), seed)));
        }
        let mut order: Vec<usize> = (0..self.count).collect();
        // The seeded hash of the ids shuffles families of equal size differently in each repeat, and never by the order of the labels.
        order.sort_by_key(|&family| (usize::MAX - families[family].0, families[family].1));
        let (mut fold_of, mut sizes) = (vec![0; self.count], [0_usize; FOLDS]);
        // The largest families first, each to the emptiest fold, so that folds differ by less than one family in the end.
        for family in order {
            let fold = (0..FOLDS).min_by_key(|&fold| sizes[fold]).unwrap_or(0);
            fold_of[family] = fold;
            sizes[fold] += families[family].0;
        }
        self.of_pair.iter().map(|&family| fold_of[family]).collect()
    }
}

/// Numbers of found, correct and true pairs.
#[derive(Clone, Copy, Default)]
struct FoldTally([f64; 3]);

impl FoldTally {
    fn add(&mut self, other: Self) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own += other;
        }
    }

    fn shares(self) -> (f64, f64, f64) {
        let [found, correct, trues] = self.0;
        let share = |of: f64| if of > 0.0 { correct / of } else { 0.0 };
        (share(found), share(trues), f1(share(found), share(trues)))
    }
}

/// A chosen rule: tells whether a pair passes.
type ChosenRule<'s> = Box<dyn Fn(usize) -> bool + 's>;
/// Function that chooses a rule by the pairs that a filter lets count.
type ChooseRule<'c, 's> = &'c dyn Fn(&dyn Fn(usize) -> bool) -> ChosenRule<'s>;

impl JudgedScores {
    /// Returns the expected accuracy of the best setting of each sketch, of the best of all settings and, if `together`, of the best two tests.
    #[must_use]
    pub fn expectations(&self, together: bool) -> Vec<ExpectedAccuracy> {
        // A list and not a map: few kinds of sketches, and the report keeps the order of the settings.
        let mut groups: Vec<(String, Vec<&SettingScores>)> = Vec::new();
        for scores in &self.all {
            match groups.iter_mut().find(|group| group.0 == scores.choice) {
                Some(group) => group.1.push(scores),
                None => groups.push((scores.choice.clone(), vec![scores])),
            }
        }
        if groups.len() > 1 {
            groups.push(("any".to_owned(), self.all.iter().collect()));
        }
        let single = |(choice, settings): &(String, Vec<&SettingScores>)| {
            let choose = |counts: &dyn Fn(usize) -> bool| self.choose_one(settings, counts);
            self.expectation(choice.clone(), settings.len(), &choose)
        };
        let mut all: Vec<ExpectedAccuracy> = groups.iter().map(single).collect();
        let pairs = self.combinations();
        let labels = self.truth.len() as u64;
        // `best_cuts` passes over all labels once for each of at most 256 cuts.
        let steps = pairs.len() as u64 * labels * labels.min(256) * FOLDS as u64 * REPEATS;
        if together && !pairs.is_empty() && steps <= MAX_STEPS {
            let choose = |counts: &dyn Fn(usize) -> bool| self.choose_two(&pairs, counts);
            all.push(self.expectation("two tests".to_owned(), pairs.len(), &choose));
        }
        all
    }

    fn choose_one<'s>(
        &'s self,
        settings: &[&'s SettingScores],
        counts: &dyn Fn(usize) -> bool,
    ) -> ChosenRule<'s> {
        let trues = true_pairs(&self.truth, counts);
        let mut best = (0.0, f64::INFINITY, None);
        for &scores in settings {
            let (f1, cut) = best_cut(scores, &self.truth, trues, counts);
            if f1 > best.0 {
                best = (f1, cut, Some(scores));
            }
        }
        // If nothing was found on the other folds, nothing passes on this one.
        let (_, cut, scores) = best;
        Box::new(move |at| scores.is_some_and(|scores| scores.scores[at] >= cut))
    }

    fn choose_two<'s>(
        &'s self,
        pairs: &[(usize, usize)],
        counts: &dyn Fn(usize) -> bool,
    ) -> ChosenRule<'s> {
        let mut best = (0.0, None);
        for &(first, second) in pairs {
            let (first, second) = (&self.all[first], &self.all[second]);
            let found = best_cuts(first, second, &self.truth, counts);
            if found.f1 > best.0 {
                best = (found.f1, Some((first, second, found.cuts)));
            }
        }
        Box::new(move |at| {
            best.1
                .is_some_and(|(first, second, cuts)| passes(first, second, cuts, at))
        })
    }

    fn expectation<'s>(
        &'s self,
        choice: String,
        settings: usize,
        choose: ChooseRule<'_, 's>,
    ) -> ExpectedAccuracy {
        let families = LabelFamilies::new(&self.judged, self.documents);
        let mut by_family = vec![vec![FoldTally::default(); families.count]; REPEATS as usize];
        for (repeat, tallies) in by_family.iter_mut().enumerate() {
            let folds = families.folds(&self.ids, repeat as u64);
            for fold in 0..FOLDS {
                // The choice does not see this fold, and the tally sees nothing else.
                let chosen = choose(&|at| folds[at] != fold);
                for at in (0..self.truth.len()).filter(|&at| folds[at] == fold) {
                    let (found, is_true) = (chosen(at), self.truth[at]);
                    let number = |yes: bool| f64::from(u8::from(yes));
                    // By family, because the bootstrap draws whole families.
                    tallies[families.of_pair[at]].add(FoldTally([
                        number(found),
                        number(found && is_true),
                        number(is_true),
                    ]));
                }
            }
        }
        let mean = |drawn: &[usize]| {
            let shares = by_family.iter().map(|tallies| {
                let mut sum = FoldTally::default();
                // Draw the same families in every repeat: splitting labels again makes them no more independent.
                drawn.iter().for_each(|&family| sum.add(tallies[family]));
                sum.shares()
            });
            let sum = shares.fold((0.0, 0.0, 0.0), |sum, one| {
                (sum.0 + one.0, sum.1 + one.1, sum.2 + one.2)
            });
            let repeats = by_family.len() as f64;
            (sum.0 / repeats, sum.1 / repeats, sum.2 / repeats)
        };
        let everyone: Vec<usize> = (0..families.count).collect();
        let (precision, recall, f1) = mean(&everyone);
        // The seed is fixed, so that the same labels get the same limits.
        let mut state = 0;
        let mut drawn = everyone.clone();
        let mut draws: Vec<f64> = (0..DRAWS)
            .map(|_| {
                for family in &mut drawn {
                    // The bias of the remainder is below families / 2^64.
                    *family = (splitmix64(&mut state) % families.count as u64) as usize;
                }
                mean(&drawn).2
            })
            .collect();
        draws.sort_by(f64::total_cmp);
        ExpectedAccuracy {
            choice,
            settings,
            families: families.count,
            pairs_alone: families.pairs_alone,
            precision,
            recall,
            f1,
            // The 2.5 % and 97.5 % quantiles. If there are few families, both may lie on one side of the figure itself.
            low: draws[DRAWS / 40].min(f1),
            high: draws[DRAWS - 1 - DRAWS / 40].max(f1),
        }
    }
}
