//! Word-by-word differences of two texts, in bounded time and space.
//!
//! Between the words that both texts begin and end with, this is the shortest edit script (Myers 1986). If there are too many words in
//! between, all of them count as changed.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Maximum number of words of both sides together that are aligned, in at most the square of this number of steps.
const MAX_WORDS: usize = 8000;
/// Maximum number of changes that are shown.
const CHANGES: usize = 100;
/// Maximum size in bytes of the texts of all changes.
const BYTES: usize = 16 << 10;

/// Differences of two texts.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "TextDifference")]
pub(crate) struct WordDiff {
    /// Changes, in the order of the text sent.
    changes: Vec<WordChange>,
    /// True if there are more or longer changes than are shown.
    more: bool,
}

/// Words that replace others.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "TextChange")]
pub(crate) struct WordChange {
    /// Number of words of the text sent before the change.
    at: usize,
    /// Words that only the neighbour has.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    theirs: String,
    /// Words that only the text sent has.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    ours: String,
}

/// Maximum memory of a difference in bytes.
pub(crate) const MAX_DIFF_BYTES: usize = 2 * BYTES + CHANGES * 100;

impl WordDiff {
    /// Compares the text of a neighbour with the text sent.
    pub(crate) fn of(theirs: &str, ours: &str) -> Self {
        let words = |text| -> Vec<_> { str::split_whitespace(text).collect() };
        let (theirs, ours) = (words(theirs), words(ours));
        let head = common(theirs.iter().zip(&ours));
        let (a, b) = (&theirs[head..], &ours[head..]);
        // Only among the words behind the head: otherwise one word could count for both ends.
        let tail = common(a.iter().rev().zip(b.iter().rev()));
        let (a, b) = (&a[..a.len() - tail], &b[..b.len() - tail]);
        let mut diff = Self::default();
        if a.is_empty() && b.is_empty() {
            return diff;
        }
        let mut room = BYTES;
        // Myers takes O((N + M) D) steps; for entirely different texts, D is N + M.
        if a.len() + b.len() > MAX_WORDS {
            diff.push(head, a, b, &mut room);
            return diff;
        }
        let (x, y) = numbered(a, b);
        for op in capture_diff_slices(Algorithm::Myers, &x, &y) {
            if !matches!(op, DiffOp::Equal { .. }) {
                let (old, new) = (op.old_range(), op.new_range());
                diff.push(head + new.start, &a[old], &b[new], &mut room);
            }
        }
        diff
    }

    fn push(&mut self, at: usize, theirs: &[&str], ours: &[&str], room: &mut usize) {
        if self.changes.len() == CHANGES {
            self.more = true;
            return;
        }
        let mut shown = |words: &[&str]| {
            let mut text = String::new();
            for word in words {
                if word.len() + 1 > *room {
                    self.more = true;
                    break;
                }
                *room -= word.len() + 1;
                text.extend((!text.is_empty()).then_some(' '));
                text.push_str(word);
            }
            text
        };
        let (theirs, ours) = (shown(theirs), shown(ours));
        self.changes.push(WordChange { at, theirs, ours });
    }
}

/// Returns the number of equal pairs before the first unequal one.
fn common<'a>(pairs: impl Iterator<Item = (&'a &'a str, &'a &'a str)>) -> usize {
    pairs.take_while(|(a, b)| a == b).count()
}

/// Numbers words such that equal words have equal numbers, so that a comparison takes one step.
fn numbered<'t>(a: &[&'t str], b: &[&'t str]) -> (Vec<u32>, Vec<u32>) {
    let mut names: HashMap<&'t str, u32> = HashMap::new();
    let mut number = |words: &[&'t str]| -> Vec<u32> {
        let name = words.iter().map(|word| {
            let next = names.len() as u32;
            *names.entry(word).or_insert(next)
        });
        name.collect()
    };
    let a = number(a);
    (a, number(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn change(at: usize, theirs: &str, ours: &str) -> WordChange {
        let (theirs, ours) = (theirs.to_owned(), ours.to_owned());
        WordChange { at, theirs, ours }
    }

    #[test]
    fn changes_are_shown_in_their_place() {
        let diff = WordDiff::of("a b c d e f", "a x c  d\ne g f");
        assert_eq!(
            (diff.changes, diff.more),
            (vec![change(1, "b", "x"), change(5, "", "g")], false)
        );
        assert_eq!(WordDiff::of("a b", " a\nb "), WordDiff::default());
    }

    #[test]
    fn a_large_difference_is_cut_and_says_so() {
        let words = |letter: &str| format!("{letter} ").repeat(5000);
        let diff = WordDiff::of(&words("ax"), &words("b"));
        assert!(diff.more && diff.changes.len() == 1);
        let every_other = |letter: char| {
            (0..2000)
                .map(|n| format!("w{n} {letter} "))
                .collect::<String>()
        };
        let diff = WordDiff::of(&every_other('x'), &every_other('y'));
        assert!(diff.more && diff.changes.len() == CHANGES);
        let bytes: usize = diff
            .changes
            .iter()
            .map(|one| one.theirs.len() + one.ours.len())
            .sum();
        assert!(bytes <= BYTES);
    }

    proptest! {
        #[test]
        fn the_changes_make_one_text_of_the_other(a in "([ab] ){0,30}", b in "([ab] ){0,30}") {
            let diff = WordDiff::of(&a, &b);
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            // Going from the last change to the first, replace our words by theirs.
            let mut text = words(&b);
            for change in diff.changes.iter().rev() {
                let ours = words(&change.ours);
                prop_assert_eq!(&text[change.at..change.at + ours.len()], &ours[..]);
                text.splice(change.at..change.at + ours.len(), words(&change.theirs));
            }
            prop_assert_eq!(text, words(&a));
        }
    }
}
