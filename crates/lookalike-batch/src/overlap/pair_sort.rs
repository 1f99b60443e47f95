//! Counts how often each pair occurs by sorting: runs that fit in memory are sorted and counted, then merged.
//!
//! A pair of units is stored in as few bits as their numbers need, so that sorting takes a few passes over digits instead of comparisons. A run is
//! stored as pairs with their counts, since most pairs occur many times.

use std::io;
use std::path::Path;

use crate::error::BatchError;
use crate::spill::sorted_runs::SortedRuns;

/// Maximum number of pairs in a run. More would gain little and exceed every cache.
const MAX_RUN_PAIRS: usize = 1 << 25;
/// Minimum number of pairs in a run, whatever the budget.
const MIN_RUN_PAIRS: usize = 1 << 10;
/// Bits of the first digit, by which pairs are scattered: a bucket of the largest run then fits a cache.
const FIRST: u32 = 10;
/// Bits of each further digit.
const DIGIT: u32 = 8;
/// Fewer values than this are sorted by comparisons.
const SMALL: usize = 1 << 9;

/// Two units, the smaller first, and the number of occurrences of the pair.
type CountedPair = [u32; 3];

/// Counts pairs of units by sorting.
pub(crate) struct PairSort {
    /// Bits of a unit's number.
    bits: u32,
    pairs: Vec<u64>,
    scratch: Vec<u64>,
    capacity: usize,
    runs: SortedRuns<CountedPair>,
}

impl PairSort {
    /// Creates a counter for pairs of `units` units. It takes the budget in memory, or slightly more if that is very small.
    pub(crate) fn new(units: usize, budget: u64, folder: &Path) -> Self {
        // While a run is sorted, scattering needs the same space again for each pair.
        let pair = 2 * size_of::<u64>();
        Self {
            // Units are numbered below `units`, so these bits hold every number.
            bits: units.max(2).ilog2() + 1,
            pairs: Vec::new(),
            scratch: Vec::new(),
            capacity: (budget as usize / pair).clamp(MIN_RUN_PAIRS, MAX_RUN_PAIRS),
            runs: SortedRuns::new(budget, folder),
        }
    }

    /// Adds one occurrence of the pair of `a` and each unit of `others`.
    #[inline]
    pub(crate) fn push(&mut self, a: u32, others: &[u32]) -> io::Result<()> {
        let mut others = others;
        while !others.is_empty() {
            let room = self.capacity - self.pairs.len();
            let (now, later) = others.split_at(room.min(others.len()));
            // Pack the two units into as few bits as possible, so that the sort needs few digits.
            let first = u64::from(a) << self.bits;
            self.pairs.extend(now.iter().map(|&b| first | u64::from(b)));
            others = later;
            if self.pairs.len() == self.capacity {
                self.spill()?;
            }
        }
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        sort(&mut self.pairs, &mut self.scratch, 2 * self.bits);
        let bits = self.bits;
        self.runs.add_all(counted(&self.pairs, bits))?;
        self.pairs.clear();
        Ok(())
    }

    /// Visits every pair with its number of occurrences, in ascending order.
    pub(crate) fn drain(
        mut self,
        mut visit: impl FnMut(CountedPair) -> Result<(), BatchError>,
    ) -> Result<(), BatchError> {
        if self.runs.is_empty() {
            sort(&mut self.pairs, &mut self.scratch, 2 * self.bits);
            return counted(&self.pairs, self.bits).try_for_each(visit);
        }
        self.spill().map_err(self.runs.failed())?;
        let Self { runs, .. } = self;
        let mut open: Option<CountedPair> = None;
        runs.merge(|[a, b, count]| {
            // Each run has its own counts. Those of one pair are now adjacent and are added up.
            if let Some(pair) = open.as_mut().filter(|pair| pair[..2] == [a, b]) {
                pair[2] += count;
                return Ok(());
            }
            open.replace([a, b, count]).map_or(Ok(()), &mut visit)
        })?;
        open.map_or(Ok(()), visit)
    }
}

/// Returns the sorted pairs, each once with its count.
fn counted(pairs: &[u64], bits: u32) -> impl Iterator<Item = CountedPair> {
    let unit = (1_u64 << bits) - 1;
    pairs.chunk_by(|a, b| a == b).map(move |equal| {
        let pair = equal[0];
        [
            (pair >> bits) as u32,
            (pair & unit) as u32,
            equal.len() as u32,
        ]
    })
}

/// Sorts values of `bits` bits: by their first digit into buckets that fit a cache, then each bucket digit by digit, from the last.
fn sort(values: &mut [u64], scratch: &mut Vec<u64>, bits: u32) {
    if values.len() < SMALL {
        return values.sort_unstable();
    }
    scratch.resize(values.len(), 0);
    // 0 if the first digit holds the whole pair.
    let rest = bits.saturating_sub(FIRST);
    let first = |value: u64| (value >> rest) as usize;
    // Start with the highest digit: the rest then works in buckets that fit the cache, which a plain digit sort would not.
    let ends = scatter::<{ 1 << FIRST }>(values, scratch, first);
    let mut start = 0;
    for end in ends {
        let (bucket, room) = (&mut scratch[start..end], &mut values[start..end]);
        sort_bucket(bucket, room, rest);
        start = end;
    }
}

/// Sorts values that agree in all but their last `bits` bits into `out`, which must have the same length.
fn sort_bucket(values: &mut [u64], out: &mut [u64], bits: u32) {
    if values.len() < SMALL {
        values.sort_unstable();
        return out.copy_from_slice(values);
    }
    let passes = bits.div_ceil(DIGIT);
    let (mut from, mut to) = (values, out);
    for pass in 0..passes {
        let digit = |value: u64| (value >> (pass * DIGIT)) as usize % (1 << DIGIT);
        scatter::<{ 1 << DIGIT }>(from, to, digit);
        (from, to) = (to, from);
    }
    // The last pass wrote into the slice that is now `from`: after an odd number of passes that is `out`.
    if passes.is_multiple_of(2) {
        to.copy_from_slice(from);
    }
}

/// Moves values into the buckets of a digit, keeping their order in each. Returns the ends of the buckets.
fn scatter<const BUCKETS: usize>(
    from: &[u64],
    to: &mut [u64],
    digit: impl Fn(u64) -> usize,
) -> [usize; BUCKETS] {
    let mut places = [0; BUCKETS];
    from.iter()
        // Digits are smaller than the number of buckets. The remainder shows this to the compiler, which then omits bounds checks.
        .for_each(|&value| places[digit(value) % BUCKETS] += 1);
    let mut start = 0;
    for place in &mut places {
        (*place, start) = (start, start + *place);
    }
    for &value in from {
        let place = &mut places[digit(value) % BUCKETS];
        to[*place] = value;
        *place += 1;
    }
    places
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pairs_are_counted(
            lists in prop::collection::vec((0_u32..300, prop::collection::vec(0_u32..300, 0..200)), 0..60),
            units in 300_usize..100_000,
        ) {
            let folder = tempfile::tempdir().unwrap();
            // A budget of 0 gives runs of 1,024 pairs.
            let mut sort = PairSort::new(units, 0, folder.path());
            let mut expected = BTreeMap::new();
            for (a, others) in &lists {
                sort.push(*a, others).unwrap();
                others.iter().for_each(|&b| *expected.entry((*a, b)).or_insert(0) += 1);
            }
            let mut found = Vec::new();
            sort.drain(|[a, b, count]| { found.push(((a, b), count)); Ok(()) }).unwrap();
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn digits_sort_as_comparing_does(values in prop::collection::vec(any::<u64>(), 0..3000), bits in 2_u32..=64) {
            let mut values: Vec<u64> = values.iter().map(|value| value >> (64 - bits)).collect();
            let mut expected = values.clone();
            expected.sort_unstable();
            sort(&mut values, &mut Vec::new(), bits);
            prop_assert_eq!(values, expected);
        }
    }
}
