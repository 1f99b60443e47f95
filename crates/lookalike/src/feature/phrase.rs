//! Phrases: two words that belong together by the counts of a table of terms (Manku et al. 2007, section 5.3).

use crate::kernel::shingle;
use crate::terms::Terms;

/// Lift of a phrase: how many times more often than by chance its words must be adjacent.
const LIFT: u128 = 8;

/// Calls `visit` with the feature of each word or phrase of `tokens`, and its number of words.
pub(super) fn join(
    tokens: &[u64],
    terms: Option<&Terms>,
    least: usize,
    mut visit: impl FnMut(u64, usize),
) {
    let mut pairs = Vec::new();
    if terms.is_some() {
        // Compute all pairs at once with the vector kernel, though those inside a phrase are not used.
        shingle::extend(&mut pairs, tokens, 2);
    }
    let mut at = 0;
    while at < tokens.len() {
        // Greedy from the left: a word belongs to the first phrase that takes it. So phrases do not depend on words further on, and a change only
        // moves features near it.
        let pair = pairs.get(at).copied();
        match terms.zip(pair) {
            Some((terms, pair)) if is_phrase(terms, pair, &tokens[at..at + 2], least) => {
                visit(pair, 2);
                at += 2;
            }
            _ => {
                visit(tokens[at], 1);
                at += 1;
            }
        }
    }
}

fn is_phrase(terms: &Terms, pair: u64, words: &[u64], least: usize) -> bool {
    let count = |feature: u64| u128::from(terms.count(feature));
    let both = count(pair);
    // n_12 N >= 8 n_1 n_2 without a division: in integers, so that every machine finds the same phrases.
    both >= least as u128
        && both * u128::from(terms.documents()) >= LIFT * count(words[0]) * count(words[1])
}
