//! Turns two texts into rows: aligns equal units, then the words between them, then pairs units.

use std::collections::HashMap;
use std::ops::Range;

use super::align::{AlignedRange, align};
use super::text::{DiffText, DiffUnit, cut};
use super::{DiffLine, DiffRow, DiffSpan};

/// A common run of fewer characters between two changes is considered chance and marked as changed.
const CHANCE: usize = 4;

/// Both texts, with marks on the words that they do not share.
struct TextComparison<'t> {
    a: DiffText<'t>,
    b: DiffText<'t>,
    /// For each word of `a`, whether it is changed.
    marked_a: Vec<bool>,
    marked_b: Vec<bool>,
    rows: Vec<(Option<usize>, Option<usize>)>,
}

/// Aligns two texts line by line and marks the words that differ.
///
/// The left sides of the rows, in order, are exactly the lines of `a`; the right sides those of
/// `b`. The unmarked words of both sides are the same sequence. The result is a function of the two
/// texts alone.
///
/// # Complexity
///
/// `O(n log n)` for `n` words plus at most about `2^28` steps in the worst case. Two texts of
/// together more than 1 MiB are compared by whole lines instead of words.
#[must_use]
pub fn side_by_side(a: &str, b: &str) -> Vec<DiffRow> {
    let (a, b) = cut(a, b);
    let mut units = align_units(&a, &b);
    // Blank lines match anywhere, so on their own they would split what belongs together.
    units.retain(|run| {
        a.units[run.a..run.a + run.len]
            .iter()
            .any(|unit| !unit.words.is_empty())
    });
    let (marked_a, marked_b) = (vec![true; a.words.len()], vec![true; b.words.len()]);
    let mut comparison = TextComparison {
        a,
        b,
        marked_a,
        marked_b,
        rows: Vec::new(),
    };
    let (mut i, mut j) = (0, 0);
    for run in units {
        comparison.gap(i..run.a, j..run.b);
        comparison.equal(run);
        (i, j) = (run.a + run.len, run.b + run.len);
    }
    let ends = (comparison.a.units.len(), comparison.b.units.len());
    comparison.gap(i..ends.0, j..ends.1);
    comparison.finish()
}

/// Aligns units by their words, so that white space does not matter.
fn align_units(a: &DiffText<'_>, b: &DiffText<'_>) -> Vec<AlignedRange> {
    let mut numbers = HashMap::new();
    let mut number = |text: &DiffText<'_>| -> Vec<u32> {
        let keys = text.units.iter().map(|unit| text.ids(&unit.words));
        keys.map(|key| {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            *numbers.entry(key).or_insert(next)
        })
        .collect()
    };
    align(&number(a), &number(b))
}

impl TextComparison<'_> {
    /// Records a run of equal units.
    fn equal(&mut self, run: AlignedRange) {
        for (i, j) in (run.a..run.a + run.len).zip(run.b..) {
            self.marked_a[self.a.units[i].words.clone()].fill(false);
            self.marked_b[self.b.units[j].words.clone()].fill(false);
            self.rows.push((Some(i), Some(j)));
        }
    }

    /// Compares the words of the units between equal ones, and pairs these units.
    fn gap(&mut self, a: Range<usize>, b: Range<usize>) {
        let words_a = words_of(&self.a.units[a.clone()]);
        let words_b = words_of(&self.b.units[b.clone()]);
        let mut runs = align(&self.a.ids(&words_a), &self.b.ids(&words_b));
        for run in &mut runs {
            (run.a, run.b) = (run.a + words_a.start, run.b + words_b.start);
        }
        self.drop_coincidences(&mut runs, &words_a, &words_b);
        for run in &runs {
            self.marked_a[run.a..run.a + run.len].fill(false);
            self.marked_b[run.b..run.b + run.len].fill(false);
        }
        let pairs = self.pair_units(&runs, a.start, b.start);
        self.push_gap_rows(a, b, &pairs);
    }

    /// Removes runs of a few characters between changes on both sides.
    fn drop_coincidences(&self, runs: &mut Vec<AlignedRange>, a: &Range<usize>, b: &Range<usize>) {
        // Neighbours are taken from all runs, before any is removed, so one removal does not lead to another.
        let ends: Vec<(usize, usize)> = std::iter::once((a.start, b.start))
            .chain(runs.iter().map(|run| (run.a + run.len, run.b + run.len)))
            .collect();
        let starts: Vec<(usize, usize)> = runs
            .iter()
            .skip(1)
            .map(|run| (run.a, run.b))
            .chain([(a.end, b.end)])
            .collect();
        let mut index = 0;
        runs.retain(|run| {
            let (before, after) = (ends[index], starts[index]);
            index += 1;
            let between = before.0 < run.a
                && before.1 < run.b
                && run.a + run.len < after.0
                && run.b + run.len < after.1;
            let words = &self.a.words[run.a..run.a + run.len];
            !between || words.iter().map(|word| word.bytes.len()).sum::<usize>() >= CHANCE
        });
    }

    /// Returns the chain of unit pairs, ascending on both sides, that shares the most text.
    fn pair_units(&self, runs: &[AlignedRange], a: usize, b: usize) -> Vec<(usize, usize)> {
        let mut shared: Vec<(usize, usize, usize)> = Vec::new();
        let (mut i, mut j) = (a, b);
        for (x, y) in runs
            .iter()
            .flat_map(|run| (run.a..run.a + run.len).zip(run.b..))
        {
            // Words ascend on both sides, so each search goes on from the last unit.
            i = unit_of(&self.a.units, i, x);
            j = unit_of(&self.b.units, j, y);
            let weight = self.a.words[x].bytes.len();
            match shared.last_mut() {
                Some(last) if (last.0, last.1) == (i, j) => last.2 += weight,
                _ => shared.push((i, j, weight)),
            }
        }
        heaviest_chain(&shared)
    }

    /// Appends the rows of a gap: the given pairs, and the units between them side by side.
    fn push_gap_rows(&mut self, a: Range<usize>, b: Range<usize>, pairs: &[(usize, usize)]) {
        let (mut i, mut j) = (a.start, b.start);
        for &(x, y) in pairs {
            self.push_unpaired(i..x, j..y);
            self.rows.push((Some(x), Some(y)));
            (i, j) = (x + 1, y + 1);
        }
        self.push_unpaired(i..a.end, j..b.end);
    }

    /// Puts units side by side in order. A blank line only stands next to a blank one, or alone.
    fn push_unpaired(&mut self, mut a: Range<usize>, mut b: Range<usize>) {
        loop {
            let blank = |units: &[DiffUnit], at: usize| units[at].words.is_empty();
            let left = a.clone().next().map(|at| (at, blank(&self.a.units, at)));
            let right = b.clone().next().map(|at| (at, blank(&self.b.units, at)));
            let (left, right) = match (left, right) {
                (None, None) => break,
                (Some((_, true)), Some((_, false))) => (a.next(), None),
                (Some((_, false)), Some((_, true))) => (None, b.next()),
                _ => (a.next(), b.next()),
            };
            self.rows.push((left, right));
        }
    }

    fn finish(self) -> Vec<DiffRow> {
        let line = |text: &DiffText<'_>, marked: &[bool], at: Option<usize>| {
            at.map(|at| diff_line(text, marked, &text.units[at]))
        };
        let row = |&(i, j): &(Option<usize>, Option<usize>)| DiffRow {
            left: line(&self.a, &self.marked_a, i),
            right: line(&self.b, &self.marked_b, j),
        };
        self.rows.iter().map(row).collect()
    }
}

/// Returns the words of adjacent units.
fn words_of(units: &[DiffUnit]) -> Range<usize> {
    match (units.first(), units.last()) {
        (Some(first), Some(last)) => first.words.start..last.words.end,
        _ => 0..0,
    }
}

/// Returns the unit at or after `from` that contains a word.
fn unit_of(units: &[DiffUnit], mut from: usize, word: usize) -> usize {
    while units[from].words.end <= word {
        from += 1;
    }
    from
}

/// Returns the chain with the largest weight that ascends strictly on both sides. The pairs ascend weakly.
fn heaviest_chain(shared: &[(usize, usize, usize)]) -> Vec<(usize, usize)> {
    // `best[k]` is the weight of the best chain among the first k pairs.
    let mut best = vec![0; shared.len() + 1];
    let mut before = vec![0; shared.len()];
    let mut free = 0;
    for (k, &(i, j, weight)) in shared.iter().enumerate() {
        // Pairs before `free` share neither position with this one. Both positions ascend, so `free` only moves forward.
        // This stops at the pair itself at the latest, which is not before itself.
        while shared[free].0 < i && shared[free].1 < j {
            free += 1;
        }
        before[k] = free;
        best[k + 1] = best[k].max(best[free] + weight);
    }
    let mut chain = Vec::new();
    let mut k = shared.len();
    while k > 0 {
        if best[k] == best[k - 1] {
            k -= 1;
        } else {
            chain.push((shared[k - 1].0, shared[k - 1].1));
            k = before[k - 1];
        }
    }
    chain.reverse();
    chain
}

/// Returns a unit with the marks of its words. White space between two marked words is marked too.
fn diff_line(text: &DiffText<'_>, marked: &[bool], unit: &DiffUnit) -> DiffLine {
    let mut spans: Vec<DiffSpan> = Vec::new();
    let mut push = |bytes: Range<usize>, changed: bool| {
        let piece = &text.source[bytes];
        match spans.last_mut() {
            _ if piece.is_empty() => {}
            Some(last) if last.changed == changed => last.text.push_str(piece),
            _ => spans.push(DiffSpan {
                text: piece.to_owned(),
                changed,
            }),
        }
    };
    let (mut at, mut before) = (unit.bytes.start, false);
    for index in unit.words.clone() {
        let (bytes, changed) = (text.words[index].bytes.clone(), marked[index]);
        push(at..bytes.start, before && changed);
        at = bytes.end;
        before = changed;
        push(bytes, changed);
    }
    push(at..unit.bytes.end, false);
    DiffLine {
        number: unit.line,
        continued: unit.continued,
        spans,
    }
}
