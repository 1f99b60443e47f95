//! Defers very common chunks: which chunks, for which units, and why the result stays exact.
//!
//! A chunk in a million pages makes half a trillion pairs, nearly all of which share nothing else. But a pair that shares at least T chunks must
//! share one outside any T - 1 of them. So every unit may *defer* up to T - 1 of its most common chunks: it is not listed under them when pairs are
//! counted. Chunks in more units than a cut are *common*. They are ranked by the number of their units, the most common first, and each unit defers
//! its first T - 1 of them.
//!
//! Of a pair, let `late` be the unit whose last deferred chunk has the higher rank. A common chunk that was not counted for the pair is deferred by
//! one of the two units, so its rank is at most that of the last chunk that `late` defers. `late` has the chunk, so it defers it too. Therefore:
//! shared chunks = counted chunks + deferred chunks of `late` that the other unit has. The second summand is at most T - 1, so a pair with T shared
//! chunks was counted at least once.

use std::io;
use std::path::Path;

use bytemuck::Zeroable;

use super::postings::{PostingLists, Postings};
use super::similar_lists::common_items;
use crate::spill::table_column::TableColumn;

/// Number of counted pairs a record below which deferral does not pay.
const MIN_PAIRS_PER_RECORD: u64 = 16;
/// Chunks in at most this many units are never common.
const MIN_COMMON_UNITS: u32 = 16;

/// Counts of the common chunks of one unit, stored together because they are read together.
#[derive(Clone, Copy, Zeroable)]
struct DeferredCounts {
    /// Number of chunks that it defers.
    deferred: u32,
    /// One more than the rank of the last chunk that it defers; 0 if it defers none.
    last: u32,
    /// Number of common chunks that it has.
    held: u32,
}

/// The common chunks, and what each unit defers of them.
pub(crate) struct Deferral {
    /// Chunks in more units than this are common.
    pub(crate) cut: u32,
    /// Common chunks, the most common first: number of units and position of the list.
    pub(crate) common: Vec<(u32, u64)>,
    /// Counts of each unit; empty if there are no common chunks.
    units: TableColumn<DeferredCounts>,
    /// For each common chunk, the units that have but do not defer it.
    pub(crate) remainder: PostingLists,
    /// Number of pairs that need not be counted.
    pub(crate) spared: u64,
    /// Number of pairs of units in all remaining lists.
    pub(crate) pairs: u64,
}

fn pairs(units: u64) -> u64 {
    units * units.saturating_sub(1) / 2
}

/// Returns the cut: the largest number of units such that all pairs of chunks in at most so many units are cheap to count.
fn cut(postings: &Postings, min_shared: u32) -> u32 {
    // With a threshold of 1, units may not defer anything (T - 1 = 0).
    if min_shared == 1 {
        return u32::MAX;
    }
    let easy = MIN_PAIRS_PER_RECORD * postings.records;
    let mut sum = 0_u64;
    // In ascending order of units: the rare chunks, with few pairs each, are counted first.
    for (&units, &chunks) in &postings.histogram {
        sum = sum.saturating_add(pairs(u64::from(units)).saturating_mul(chunks));
        if sum > easy && units > MIN_COMMON_UNITS {
            return units - 1;
        }
    }
    u32::MAX
}

/// Returns the number of pairs of units in all shared chunks, which an engine without deferral has to count.
pub(crate) fn all_pairs(postings: &Postings) -> u64 {
    // Sums saturate: a chunk of 2^32 units alone has 2^63 pairs. They serve only choices and counts for people.
    let of = |(&units, &chunks): (&u32, &u64)| pairs(u64::from(units)).saturating_mul(chunks);
    postings
        .histogram
        .iter()
        .map(of)
        .fold(0, u64::saturating_add)
}

impl Deferral {
    /// Finds the common chunks and what is deferred.
    ///
    /// Memory: 12 bytes for each unit and 16 for each common chunk, of which there is at most one in [`MIN_COMMON_UNITS`] records.
    pub(crate) fn new(
        postings: &Postings,
        min_shared: u32,
        budget: u64,
        folder: &Path,
    ) -> io::Result<Self> {
        let cut = cut(postings, min_shared);
        let mut deferral = Self {
            cut,
            common: Vec::new(),
            units: TableColumn::new(),
            remainder: PostingLists::new(budget),
            spared: 0,
            pairs: 0,
        };
        let rare = postings.histogram.range(..=cut);
        deferral.pairs = rare
            .map(|(&units, &chunks)| pairs(u64::from(units)).saturating_mul(chunks))
            .fold(0, u64::saturating_add);
        if cut < u32::MAX {
            deferral.rank(postings)?;
            // A pair that shares nothing but deferred chunks then shares fewer than `min_shared`, so it is rightly never counted.
            deferral.walk(postings, min_shared - 1, folder)?;
        }
        Ok(deferral)
    }

    fn rank(&mut self, postings: &Postings) -> io::Result<()> {
        postings.lists.scan(|position, list| {
            if list.len() as u32 > self.cut {
                self.common.push((list.len() as u32, position));
            }
            Ok(())
        })?;
        // Equal counts may be in any order: exactness only needs the same order for all units.
        self.common
            .sort_unstable_by_key(|&(units, position)| (std::cmp::Reverse(units), position));
        Ok(())
    }

    /// Lets every unit defer its first `most` common chunks.
    fn walk(&mut self, postings: &Postings, most: u32, folder: &Path) -> io::Result<()> {
        self.units = TableColumn::zeroed(postings.sizes.len());
        let (mut buffer, mut active) = (Vec::new(), Vec::new());
        for (rank, &(length, position)) in self.common.iter().enumerate() {
            active.clear();
            for &unit in postings.lists.get(position, length, &mut buffer)? {
                let own = &mut self.units[unit as usize];
                // Ranks ascend here, so the first `most` chunks of a unit are its most common ones.
                own.held += 1;
                if own.deferred < most {
                    own.deferred += 1;
                    // 0 stays for units that defer nothing.
                    own.last = rank as u32 + 1;
                } else {
                    active.push(unit);
                }
            }
            let left = pairs(active.len() as u64);
            self.pairs = self.pairs.saturating_add(left);
            self.spared = self.spared.saturating_add(pairs(u64::from(length)) - left);
            // A single unit makes no pair.
            if active.len() > 1 {
                self.remainder.add(&active, folder)?;
            }
        }
        Ok(())
    }

    /// Tells whether nothing is deferred.
    pub(crate) fn is_empty(&self) -> bool {
        self.common.is_empty()
    }

    /// Orders a pair so that the unit whose deferred chunks decide comes first.
    #[inline]
    pub(crate) fn late(&self, a: u32, b: u32) -> (u32, u32) {
        if self.units[a as usize].last >= self.units[b as usize].last {
            (a, b)
        } else {
            (b, a)
        }
    }

    /// Returns the number of chunks that a unit defers.
    #[inline]
    pub(crate) fn deferred(&self, unit: u32) -> u32 {
        self.units[unit as usize].deferred
    }

    /// Returns the number of common chunks that a unit has. There must be common chunks.
    pub(crate) fn common_chunk_count(&self, unit: u32) -> u32 {
        self.units[unit as usize].held
    }

    /// Returns the number of common chunks of each unit; empty if there are no common chunks.
    pub(crate) fn common_chunk_counts(&self) -> impl ExactSizeIterator<Item = u32> {
        self.units.iter().map(|unit| unit.held)
    }

    /// Returns the maximum that deferred chunks can add to the count of a pair.
    #[inline]
    pub(crate) fn max_addition(&self, a: u32, b: u32) -> u32 {
        if self.is_empty() {
            return 0;
        }
        let [a, b] = [a, b].map(|unit| self.units[unit as usize]);
        // The chunks that `late` defers; the other unit shares at most as many as the common chunks it has.
        // The same choice as in `late`, also for equal ranks.
        match a.last >= b.last {
            true => a.deferred.min(b.held),
            false => b.deferred.min(a.held),
        }
    }

    /// Visits every list in which pairs are counted: those of rare chunks, and the remainders of common ones.
    pub(crate) fn scan(
        &self,
        postings: &Postings,
        mut visit: impl FnMut(&[u32]) -> io::Result<()>,
    ) -> io::Result<()> {
        postings
            .lists
            .scan(|_, list| match list.len() as u32 > self.cut {
                true => Ok(()),
                false => visit(list),
            })?;
        self.remainder.scan(|_, list| visit(list))
    }
}

/// Ranks of the common chunks of units, ascending.
///
/// Memory: 4 bytes for each common chunk of a unit.
pub(crate) struct CommonChunks {
    starts: TableColumn<u64>,
    ranks: TableColumn<u32>,
}

impl CommonChunks {
    /// Returns the bytes that the common chunks of all units need.
    pub(crate) fn bytes(deferral: &Deferral) -> u64 {
        deferral
            .common_chunk_counts()
            .map(|held| 16 + 4 * u64::from(held))
            .sum()
    }

    /// Collects the common chunks of the units that are `wanted`.
    pub(crate) fn new(
        postings: &Postings,
        deferral: &Deferral,
        wanted: impl Fn(u32) -> bool,
    ) -> io::Result<Self> {
        let mut starts = TableColumn::new();
        starts.push(0_u64);
        for (unit, held) in deferral.common_chunk_counts().enumerate() {
            let held = if wanted(unit as u32) {
                u64::from(held)
            } else {
                0
            };
            let end = starts[unit] + held;
            starts.push(end);
        }
        let mut ends = starts.clone();
        let mut ranks = TableColumn::zeroed(*starts.last().expect("begins with 0") as usize);
        let mut buffer = Vec::new();
        for (rank, &(length, position)) in deferral.common.iter().enumerate() {
            let list = postings.lists.get(position, length, &mut buffer)?;
            for &unit in list.iter().filter(|&&unit| wanted(unit)) {
                let end = &mut ends[unit as usize];
                ranks[*end as usize] = rank as u32;
                *end += 1;
            }
        }
        Ok(Self { starts, ranks })
    }

    /// Returns the ranks of a unit's common chunks, ascending.
    pub(crate) fn of(&self, unit: u32) -> &[u32] {
        &self.ranks[self.starts[unit as usize] as usize..self.starts[unit as usize + 1] as usize]
    }

    /// Returns the number of common chunks that a pair shares and that were not counted.
    pub(crate) fn uncounted(&self, deferral: &Deferral, a: u32, b: u32) -> u32 {
        let (late, other) = deferral.late(a, b);
        // Ranks ascend, and a unit defers the first chunks that it has, so these are a prefix.
        let deferred = &self.of(late)[..deferral.deferred(late) as usize];
        common_items(deferred, self.of(other)) as u32
    }

    /// Does the same as [`Self::uncounted`] if the common chunks of one unit are marked by bits, without merging two lists.
    #[inline]
    pub(crate) fn uncounted_by(
        &self,
        marks: &[u64],
        deferral: &Deferral,
        marked: u32,
        other: u32,
    ) -> u32 {
        let ranks = self.of(other);
        let (own, others) = (
            deferral.units[marked as usize],
            deferral.units[other as usize],
        );
        let is_marked = |rank: u32| (marks[rank as usize / 64] >> (rank % 64) & 1) as u32;
        if own.last >= others.last {
            // A marked chunk is deferred if its rank is not after the last deferred one.
            let before = ranks.iter().take_while(|&&rank| rank < own.last);
            return before.map(|&rank| is_marked(rank)).sum();
        }
        let deferred = &ranks[..others.deferred as usize];
        deferred.iter().map(|&rank| is_marked(rank)).sum()
    }
}
