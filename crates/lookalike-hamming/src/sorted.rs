//! The paper's tables as they stand in the paper (Manku et al. 2007, section 3.1): sorted lists, searched by bisection or
//! interpolation. A baseline to measure the engine against, and a second oracle.

use super::build::{BuildAddressing, BuildError};
use super::code::sealed::Sealed;
use super::code::{Code, Integer, Word};
use super::design::Design;
use super::{Effort, HammingIndex, RadiusTooLarge};
use std::ops::Range;

/// Search for the first entry of a prefix in a sorted table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixLookup {
    /// Halving: O(log n) steps always.
    Binary,
    /// Interpolation, as if entries were spread evenly (Perl and Reingold 1977): O(log log n) expected steps on
    /// random codes. A guess that does not halve the range is followed by a halving, so that none takes more than O(log^2 n).
    Interpolation,
}

/// One sorted list of permuted codes for each table of an exact design.
///
/// Memory: the whole code for each table. A search costs a look-up and a scan of all entries that
/// share the whole key, for each table.
#[derive(Clone, Debug)]
pub struct SortedTables<C: Code> {
    tables: Vec<SortedTable<C::Word>>,
    len: usize,
    radius: u32,
    lookup: PrefixLookup,
}

#[derive(Clone, Debug)]
struct SortedTable<W> {
    addressing: BuildAddressing<W>,
    permuted: Vec<W>,
}

impl<C: Code> SortedTables<C> {
    /// Sorts `codes` once for each table. O(T n log n).
    ///
    /// # Errors
    ///
    /// [`BuildError::OtherWidth`], and [`BuildError::NotExact`] for a design with error budgets:
    /// the paper's search probes exact prefixes only.
    pub fn build(codes: &[C], design: &Design, lookup: PrefixLookup) -> Result<Self, BuildError> {
        if design.bits() != C::Word::BITS {
            return Err(BuildError::OtherWidth {
                design: design.bits(),
                codes: C::Word::BITS,
            });
        }
        if design.budget() > 0 {
            return Err(BuildError::NotExact);
        }
        let tables = design
            .tables()
            .iter()
            .map(|key| SortedTable::new(codes, key.mask));
        let tables: Vec<_> = tables.collect();
        let len = tables.first().map_or(0, |table| table.permuted.len());
        Ok(Self {
            tables,
            len,
            radius: design.radius(),
            lookup,
        })
    }
}

impl<W: Word> SortedTable<W> {
    fn new<C: Code<Word = W>>(codes: &[C], mask: u128) -> Self {
        // A prefix of 64 bits identifies a code well enough.
        let dropped = mask.count_ones().saturating_sub(64);
        let address = (0..dropped).fold(mask, |mask, _| mask & mask.wrapping_sub(1));
        let addressing = BuildAddressing::new(address);
        let mut permuted: Vec<_> = codes
            .iter()
            .map(|code| addressing.permuted(code.word()))
            .collect();
        permuted.sort_unstable();
        permuted.dedup();
        Self {
            addressing,
            permuted,
        }
    }

    /// The entries that share the prefix of `word`.
    fn matches(&self, word: W, lookup: PrefixLookup) -> &[W] {
        let (prefix, first) = self.prefix(word);
        let bits = self.addressing.rest_bits;
        let at = match lookup {
            PrefixLookup::Binary => self.permuted.partition_point(|&entry| entry < first),
            PrefixLookup::Interpolation => {
                let read = |at: usize| self.permuted[at].to_u128();
                interpolated(self.permuted.len(), first.to_u128(), W::BITS, read)
            }
        };
        let from = &self.permuted[at..];
        let within = |entry: &&W| entry.above(bits) == prefix;
        &from[..from.iter().take_while(within).count()]
    }

    /// The prefix of a code, and the least entry that has it.
    fn prefix(&self, word: W) -> (u64, W) {
        let bits = self.addressing.rest_bits;
        let prefix = self.addressing.permuted(word).above(bits);
        (prefix, W::joined(prefix, W::ZERO, bits))
    }

    /// Number of entries that a search for the first entry of the prefix of `word` reads.
    fn reads(&self, word: W, lookup: PrefixLookup) -> u64 {
        let first = self.prefix(word).1.to_u128();
        let mut reads = 0;
        let read = |at: usize| {
            reads += 1;
            self.permuted[at].to_u128()
        };
        let len = self.permuted.len();
        match lookup {
            PrefixLookup::Binary => bisected(0..len, first, read),
            PrefixLookup::Interpolation => interpolated(len, first, W::BITS, read),
        };
        reads
    }
}

impl<C: Code> SortedTables<C> {
    /// Number of entries that the searches for the first entry of each prefix read, over all tables: the price of a lookup where each
    /// read is one of a disk.
    pub fn lookup_reads(&self, query: C) -> u64 {
        let tables = self.tables.iter();
        let reads = tables.map(|table| table.reads(query.word(), self.lookup));
        reads.sum()
    }
}

/// Number of entries less than `target`, which lies in a range, by halving.
fn bisected(range: Range<usize>, target: u128, mut read: impl FnMut(usize) -> u128) -> usize {
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

/// A range in which the answer lies, and the values just outside of it.
struct Bracket {
    low: usize,
    high: usize,
    below: u128,
    above: u128,
}

impl Bracket {
    /// Takes what was read at a place into account; returns true if it is less than `target`.
    fn narrow(&mut self, at: usize, value: u128, target: u128) -> bool {
        let is_less = value < target;
        match is_less {
            true => (self.low, self.below) = (at + 1, value),
            false => (self.high, self.above) = (at, value),
        }
        is_less
    }
}

/// Number of entries less than `target` of `len` sorted entries of so many bits.
///
/// Each step guesses a place, and looks on from there in strides of the error that random entries let expect, doubled each time, until
/// the target lies between two places.
fn interpolated(len: usize, target: u128, bits: u32, mut read: impl FnMut(usize) -> u128) -> usize {
    const FEW: usize = 4;
    let mut bracket = Bracket {
        low: 0,
        high: len,
        below: 0,
        above: u128::MAX >> (128 - bits),
    };
    while bracket.high - bracket.low > FEW {
        let (low, high) = (bracket.low, bracket.high);
        let entries = (high - low) as f64;
        let span = bracket.above.saturating_sub(bracket.below).max(1) as f64;
        let share = (target.saturating_sub(bracket.below) as f64 / span).clamp(0.0, 1.0);
        // How many of the entries lie below the target is binomial: this is its standard deviation.
        // The guess is off by about that much; looking on in such strides brackets the target in two or three
        // reads.
        let mut stride = (entries * share * (1.0 - share)).sqrt() as usize + 1;
        // A share of 1 would lie behind the range.
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

impl<C: Code> Sealed for SortedTables<C> {}

impl<C: Code> HammingIndex for SortedTables<C> {
    type Code = C;

    fn len(&self) -> usize {
        self.len
    }

    fn radius(&self) -> u32 {
        self.radius
    }

    fn search(
        &self,
        query: C,
        radius: u32,
        visit: &mut dyn FnMut(C, u32),
    ) -> Result<Effort, RadiusTooLarge> {
        RadiusTooLarge::check(radius, self.radius)?;
        let mut effort = Effort::default();
        for (at, table) in self.tables.iter().enumerate() {
            let matches = table.matches(query.word(), self.lookup);
            effort.probes += 1;
            effort.candidates += matches.len() as u64;
            for &permuted in matches {
                let (addressing, bits) = (&table.addressing, table.addressing.rest_bits);
                let word = addressing.restored(permuted.above(bits), permuted.low(bits));
                let apart = word ^ query.word();
                // A code that agrees with the query in the key of an earlier table has been visited there.
                let earlier = &self.tables[..at];
                let seen = earlier
                    .iter()
                    .any(|t| apart & t.addressing.address == C::Word::ZERO);
                if apart.ones() <= radius && !seen {
                    visit(C::from_word(word), apart.ones());
                }
            }
        }
        Ok(effort)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Place and reads by both searches.
    fn both(sorted: &[u64], target: u64) -> [(usize, usize); 2] {
        let mut reads = [0, 0];
        let [bisections, guesses] = &mut reads;
        let read = |at: usize, count: &mut usize| {
            *count += 1;
            u128::from(sorted[at])
        };
        let by_halves = bisected(0..sorted.len(), target.into(), |at| read(at, bisections));
        let by_guesses = interpolated(sorted.len(), target.into(), 64, |at| read(at, guesses));
        [(by_halves, reads[0]), (by_guesses, reads[1])]
    }

    #[test]
    fn both_lookups_find_the_lower_bound() {
        let spread: Vec<u64> = (0..500_u64).map(|i| i.wrapping_mul(i) * 3).collect();
        let skewed: Vec<u64> = (0..60_u32).map(|i| 1_u64 << i).collect();
        let high: Vec<u64> = (0..300).map(|i| u64::MAX - 300 + i).collect();
        for sorted in [spread, skewed, high, vec![], vec![5; 40]] {
            for &entry in sorted.iter().chain(&[0, 5, u64::MAX]) {
                for target in [entry.saturating_sub(1), entry, entry.saturating_add(1)] {
                    let expected = sorted.iter().filter(|&&entry| entry < target).count();
                    let [(by_halves, _), (by_guesses, _)] = both(&sorted, target);
                    assert_eq!((by_halves, by_guesses), (expected, expected), "{target}");
                }
            }
        }
    }

    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB) ^ (mixed >> 31)
    }

    /// The paper's claim, counted: O(log log n) against O(log n) on random fingerprints.
    #[test]
    fn interpolation_reads_half_as_many_random_entries_as_bisection() {
        let mut state = 7;
        let mut sorted: Vec<u64> = (0..1 << 20).map(|_| random(&mut state)).collect();
        sorted.sort_unstable();
        let mut sums = [0, 0];
        for _ in 0..2000 {
            let found = both(&sorted, random(&mut state));
            assert_eq!(found[0].0, found[1].0);
            sums[0] += found[0].1;
            sums[1] += found[1].1;
        }
        assert!(sums[1] * 2 < sums[0], "{sums:?}");
    }

    /// Every entry but the last few lies at the beginning of the range: guesses are of no use, and cost little.
    #[test]
    fn hostile_entries_take_no_more_than_the_bound() {
        let mut sorted: Vec<u64> = (0..100_000).collect();
        sorted.extend((0..64).map(|bit| 1 << bit));
        sorted.sort_unstable();
        for at in (0..sorted.len()).step_by(97) {
            let [(_, by_halves), (_, by_guesses)] = both(&sorted, sorted[at]);
            assert!(by_guesses <= by_halves * by_halves, "{at}: {by_guesses}");
        }
    }
}
