//! The paper's tables as they stand in the paper (Manku et al. 2007, section 3.1): sorted lists, searched by bisection or
//! interpolation. A baseline to measure the engine against, and a second oracle.

use super::build::{BuildAddressing, BuildError};
use super::code::sealed::Sealed;
use super::code::{Code, Word};
use super::design::Design;
use super::{Effort, HammingIndex, RadiusTooLarge};

/// Search for the first entry of a prefix in a sorted table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixLookup {
    /// Halving: O(log n) steps always.
    Binary,
    /// Interpolation, as if entries were spread evenly: O(log log n) expected steps on
    /// random codes; every other step halves, so that none takes more than 2 log n.
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
        let bits = self.addressing.rest_bits;
        let prefix = self.addressing.permuted(word).above(bits);
        let first = W::joined(prefix, W::ZERO, bits);
        let from = &self.permuted[lower_bound(&self.permuted, first, lookup)..];
        let within = |entry: &&W| entry.above(bits) == prefix;
        &from[..from.iter().take_while(within).count()]
    }
}

/// Number of entries less than `target`.
fn lower_bound<W: Word>(sorted: &[W], target: W, lookup: PrefixLookup) -> usize {
    match lookup {
        PrefixLookup::Binary => sorted.partition_point(|&entry| entry < target),
        PrefixLookup::Interpolation => interpolated(sorted, target),
    }
}

fn interpolated<W: Word>(sorted: &[W], target: W) -> usize {
    // The answer lies in low..=high.
    let (mut low, mut high, mut halve) = (0, sorted.len(), false);
    while high - low > 8 {
        let (first, last) = (sorted[low].to_u128(), sorted[high - 1].to_u128());
        let wanted = target.to_u128();
        if wanted <= first {
            return low;
        }
        if wanted > last {
            return high;
        }
        let span = (high - low - 1) as f64;
        let share = (wanted - first) as f64 / (last - first) as f64;
        let guess = if halve {
            (low + high) / 2
        } else {
            low + (share * span) as usize
        };
        let guess = guess.clamp(low, high - 1);
        if sorted[guess] < target {
            low = guess + 1;
        } else {
            high = guess;
        }
        halve = !halve;
    }
    low + sorted[low..high]
        .iter()
        .take_while(|&&entry| entry < target)
        .count()
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

    #[test]
    fn both_lookups_find_the_lower_bound() {
        let spread: Vec<u64> = (0..500_u64).map(|i| i.wrapping_mul(i) * 3).collect();
        let skewed: Vec<u64> = (0..60_u32).map(|i| 1_u64 << i).collect();
        for sorted in [spread, skewed, vec![], vec![5; 40]] {
            for &entry in sorted.iter().chain(&[0, 5, u64::MAX]) {
                for target in [entry.saturating_sub(1), entry, entry.saturating_add(1)] {
                    let expected = sorted.iter().filter(|&&entry| entry < target).count();
                    assert_eq!(lower_bound(&sorted, target, PrefixLookup::Binary), expected);
                    assert_eq!(
                        lower_bound(&sorted, target, PrefixLookup::Interpolation),
                        expected
                    );
                }
            }
        }
    }
}
