//! Search for the first entry of a prefix in a sorted table, as in the paper: by bisection, always in O(log n) steps; or by interpolation, as if
//! entries were spread evenly (Perl and Reingold 1977), in O(log log n) expected steps on random codes. A guess that does not halve the range is
//! followed by a halving, so that no search takes more than O(log^2 n) steps.

use std::ops::Range;

/// Returns the number of entries less than `target`, which lies in a range, by halving.
pub(crate) fn bisected(
    range: Range<usize>,
    target: u64,
    mut read: impl FnMut(usize) -> u64,
) -> usize {
    let Range {
        start: mut low,
        end: mut high,
    } = range;
    while low < high {
        let middle = low.midpoint(high);
        match read(middle) < target {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

/// A range that contains the answer, and the values just outside of it.
struct Bracket {
    low: usize,
    high: usize,
    below: u64,
    above: u64,
}

impl Bracket {
    /// Narrows the range by a value that was read at a position; returns true if the value is less than `target`.
    fn narrow(&mut self, at: usize, value: u64, target: u64) -> bool {
        let is_less = value < target;
        match is_less {
            true => (self.low, self.below) = (at + 1, value),
            false => (self.high, self.above) = (at, value),
        }
        is_less
    }
}

/// Returns the number of entries less than `target` among `len` sorted entries.
///
/// Each step guesses a position, and continues from there in strides of the error to be expected with random entries, doubled each time, until the
/// target lies between two positions.
pub(crate) fn interpolated(len: usize, target: u64, mut read: impl FnMut(usize) -> u64) -> usize {
    const FEW: usize = 4;
    let mut bracket = Bracket {
        low: 0,
        high: len,
        below: 0,
        above: u64::MAX,
    };
    while bracket.high - bracket.low > FEW {
        let (low, high) = (bracket.low, bracket.high);
        let entries = (high - low) as f64;
        let span = bracket.above.saturating_sub(bracket.below).max(1) as f64;
        let share = (target.saturating_sub(bracket.below) as f64 / span).clamp(0.0, 1.0);
        // The number of entries below the target is binomial, and this is its standard deviation. The guess is off by about that much, so strides of
        // that length bracket the target in two or three reads.
        let mut stride = (entries * share * (1.0 - share)).sqrt() as usize + 1;
        // A share of 1 would be after the range.
        let mut at = (low + (share * entries) as usize).min(high - 1);
        let goes_up = bracket.narrow(at, read(at), target);
        loop {
            let next = match goes_up {
                true => at.checked_add(stride).filter(|next| *next < high),
                false => at.checked_sub(stride).filter(|next| *next >= low),
            };
            let Some(next) = next else { break };
            at = next;
            if bracket.narrow(at, read(at), target) != goes_up {
                break;
            }
            stride *= 2;
        }
        if bracket.high - bracket.low > (high - low) / 2 {
            let middle = bracket.low.midpoint(bracket.high);
            bracket.narrow(middle, read(middle), target);
        }
    }
    bisected(bracket.low..bracket.high, target, read)
}
