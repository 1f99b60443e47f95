//! Very common chunks are deferred: which, for whom, and why the result stays exact.
//!
//! A chunk in a million pages makes half a billion pairs, nearly all of which share nothing else. But a pair that shares
//! at least T chunks cannot share only chunks out of T - 1. So every unit may *defer* up to T - 1 of its most common
//! chunks: it is not listed under them when pairs are counted. Chunks that more units share than a cut are *common*;
//! they are ranked by the number of their units, the most common first, and each unit defers its first T - 1 of them.
//!
//! Of a pair, let `late` be the unit whose last deferred chunk has the higher rank. A common chunk that was not counted
//! for the pair is deferred by one of the two, so its rank is at most the last of `late`, so `late`, which has the chunk,
//! defers it too. Therefore: shared chunks = those counted + deferred chunks of `late` that the other one has. The
//! second summand is at most T - 1, so a pair with T shared chunks was counted at least once.

use std::io;
use std::path::Path;

use bytemuck::Zeroable;

use super::postings::{PostingLists, Postings};
use crate::spill::table_column::TableColumn;

/// Counted pairs a record that are worth no deferral.
const EASY: u64 = 16;
/// Chunks that so few units share are never common.
const LEAST_CUT: u32 = 16;

/// Facts about the common chunks of one unit: in one place, for it is asked for together.
#[derive(Clone, Copy, Zeroable)]
struct DeferredCounts {
    /// Chunks that it defers.
    deferred: u32,
    /// One more than the rank of the last that it defers, 0 for none.
    last: u32,
    /// Common chunks that it has.
    held: u32,
}

/// The common chunks, and what each unit defers of them.
pub(crate) struct Deferral {
    /// Chunks that more units share are common.
    pub(crate) cut: u32,
    /// Common chunks, most common first: units, and the position of their list.
    pub(crate) common: Vec<(u32, u64)>,
    /// Chunks that each unit defers; empty when there are no common chunks.
    units: TableColumn<DeferredCounts>,
    /// Units that do not defer a common chunk, chunk by chunk.
    pub(crate) remainder: PostingLists,
    /// Pairs that need not be counted.
    pub(crate) spared: u64,
    /// Pairs of units in all lists that remain.
    pub(crate) pairs: u64,
}

fn pairs(units: u64) -> u64 {
    units * units.saturating_sub(1) / 2
}

/// The largest number of units a chunk may have so that the pairs of all such chunks are easy to count.
fn cut(postings: &Postings, min_shared: u32) -> u32 {
    // With a threshold of 1 a unit may defer none (T - 1 = 0).
    if min_shared == 1 {
        return u32::MAX;
    }
    let easy = EASY * postings.records;
    let mut sum = 0_u64;
    for (&units, &chunks) in &postings.histogram {
        sum = sum.saturating_add(pairs(u64::from(units)).saturating_mul(chunks));
        if sum > easy && units > LEAST_CUT {
            return units - 1;
        }
    }
    u32::MAX
}

/// Pairs of units in all shared chunks: what an engine without deferral has to count.
pub(crate) fn all_pairs(postings: &Postings) -> u64 {
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
    /// Memory: 12 bytes a unit and 16 a common chunk, of which there are at most one in [`LEAST_CUT`] records.
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
        // Any order of equals does: exactness needs one order for all units, and no particular one.
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
                own.held += 1;
                if own.deferred < most {
                    own.deferred += 1;
                    own.last = rank as u32 + 1;
                } else {
                    active.push(unit);
                }
            }
            let left = pairs(active.len() as u64);
            self.pairs = self.pairs.saturating_add(left);
            self.spared = self.spared.saturating_add(pairs(u64::from(length)) - left);
            // One unit alone makes no pair.
            if active.len() > 1 {
                self.remainder.add(&active, folder)?;
            }
        }
        Ok(())
    }

    /// True if anything is deferred.
    pub(crate) fn is_empty(&self) -> bool {
        self.common.is_empty()
    }

    /// Of a pair, the unit whose deferred chunks decide, and the other one.
    #[inline]
    pub(crate) fn late(&self, a: u32, b: u32) -> (u32, u32) {
        if self.units[a as usize].last >= self.units[b as usize].last {
            (a, b)
        } else {
            (b, a)
        }
    }

    /// Number of chunks that a unit defers.
    #[inline]
    pub(crate) fn deferred(&self, unit: u32) -> u32 {
        self.units[unit as usize].deferred
    }

    /// Number of common chunks that a unit has; only where there are any.
    pub(crate) fn held_by(&self, unit: u32) -> u32 {
        self.units[unit as usize].held
    }

    /// Number of common chunks that each unit has; of no unit when there are none.
    pub(crate) fn held(&self) -> impl ExactSizeIterator<Item = u32> {
        self.units.iter().map(|unit| unit.held)
    }

    /// The most that the deferred chunks can add to what was counted for a pair.
    #[inline]
    pub(crate) fn most(&self, a: u32, b: u32) -> u32 {
        if self.is_empty() {
            return 0;
        }
        let [a, b] = [a, b].map(|unit| self.units[unit as usize]);
        // What `late` defers, of which the other has no more than it holds.
        match a.last >= b.last {
            true => a.deferred.min(b.held),
            false => b.deferred.min(a.held),
        }
    }

    /// Visits every list in which pairs are counted: the rare chunks and what remains of the common ones.
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

/// Ranks of the common chunks of units, ascending, and how many of each are deferred.
///
/// Memory: 4 bytes a common chunk of a unit.
pub(crate) struct CommonChunks {
    starts: TableColumn<u64>,
    ranks: TableColumn<u32>,
}

impl CommonChunks {
    /// Bytes that the common chunks of all units need.
    pub(crate) fn bytes(deferral: &Deferral) -> u64 {
        deferral.held().map(|held| 16 + 4 * u64::from(held)).sum()
    }

    /// The common chunks of those units that are `wanted`.
    pub(crate) fn new(
        postings: &Postings,
        deferral: &Deferral,
        wanted: impl Fn(u32) -> bool,
    ) -> io::Result<Self> {
        let mut starts = TableColumn::new();
        starts.push(0_u64);
        for (unit, held) in deferral.held().enumerate() {
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

    /// Ranks of the common chunks of a unit, ascending.
    pub(crate) fn of(&self, unit: u32) -> &[u32] {
        &self.ranks[self.starts[unit as usize] as usize..self.starts[unit as usize + 1] as usize]
    }

    /// Common chunks of a pair that were not counted.
    pub(crate) fn uncounted(&self, deferral: &Deferral, a: u32, b: u32) -> u32 {
        let (late, other) = deferral.late(a, b);
        // Ranks ascend and a unit defers the first that it has, so these are a prefix.
        let mut deferred = &self.of(late)[..deferral.deferred(late) as usize];
        let mut others = self.of(other);
        let mut shared = 0;
        while let (Some((&x, after_x)), Some((&y, after_y))) =
            (deferred.split_first(), others.split_first())
        {
            shared += u32::from(x == y);
            if x <= y {
                deferred = after_x;
            }
            if y <= x {
                others = after_y;
            }
        }
        shared
    }
    /// The same for a unit whose common chunks are marked, a bit each, and another one: no merging of two lists.
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
            // A marked chunk is deferred if it is not behind the last one that is.
            let before = ranks.iter().take_while(|&&rank| rank < own.last);
            return before.map(|&rank| is_marked(rank)).sum();
        }
        let deferred = &ranks[..others.deferred as usize];
        deferred.iter().map(|&rank| is_marked(rank)).sum()
    }
}
