//! The count engine for lists that do not fit in memory (Shivakumar and Garcia-Molina 1998, section 2, probabilistic counting): coarse counts,
//! candidates, exact counts.
//!
//! The lists stay in their file. They are read sequentially, once or a few times for each *range* of units that come first in a pair:
//!
//! 1. Coarse counts: each occurrence of a pair increments the counter at its hash, or the two counters at two hashes. A counter is one byte and stops
//!    at 255. Pairs that share a counter can only make it larger, so no pair is lost.
//! 2. Candidates: each pair whose counters reach the number that it needs is counted exactly, in a table.
//! 3. Deferred chunks are added for the pairs that can reach the threshold with them. Each pair that reaches it becomes a row.
//!
//! Each pair needs its own number: the threshold minus what its deferred chunks can add. The counters are therefore kept until the candidates are
//! found, while the source reduces them to a bitmap. A pilot counts the pairs of a sample of units exactly, and estimates how many pairs need which
//! number. From that follow the number of hashes and the load of the counters, or that coarse counting does not pay (with a threshold of 1 every pair
//! is a candidate). A range whose candidates do not fit in memory is halved and repeated.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use hashbrown::HashTable;
use lookalike::hash::avalanche;
use serde::Serialize;

use super::defer::{CommonChunks, Deferral};
use super::postings::Postings;
use super::{RowSink, SharedCount};
use crate::error::BatchError;
use crate::spill::table_column::TableColumn;

// An entry has 16 bytes and a control byte, at a load of 7/16 right after the table has grown: 39 bytes.
/// Bytes of a pair in the table of candidates, including the growth of the table.
const CANDIDATE: u64 = 40;
/// Number of pairs that the pilot aims to count.
const PILOT: u64 = 1 << 20;

/// The coarse count engine; see the module documentation.
pub(crate) struct CoarseEngine<'a> {
    pub(crate) postings: &'a Postings,
    pub(crate) deferral: &'a Deferral,
    pub(crate) min_shared: u32,
    /// Bytes for counters and candidates.
    pub(crate) budget: u64,
}

/// Figures of coarse counting: the pilot's findings, the choices based on them, and the outcome.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CoarseFigures {
    /// Number of units in the pilot's sample.
    pub pilot_units: u64,
    /// Pairs of these units with later ones, counted exactly.
    pub pilot_pairs: u64,
    /// Expected number of pairs of all units that share a counted chunk, estimated from the pilot.
    pub expected_pairs: u64,
    /// Expected number of these pairs that may reach the threshold with their deferred chunks.
    pub expected_enough: u64,
    /// Expected number of pairs to count exactly: those that may reach the threshold, and others that share their counters.
    pub expected_candidates: u64,
    /// Number of hashes of a pair. 0 if coarse counting does not pay, so that every pair is a candidate.
    pub hashes: u32,
    /// Number of counters, one byte each.
    pub counters: u64,
    /// Number of pairs counted exactly. For a resumed job, only those of the remaining part.
    pub candidates: u64,
    /// Number of ranges that were halved because their candidates did not fit in memory.
    pub halved: u64,
    /// Number of ranges that the units were divided into. The passes of the chunking report it.
    #[serde(skip)]
    pub ranges: u64,
}

/// Counts of the pilot; those of pairs are scaled to all pairs.
#[derive(Default)]
struct PilotSample {
    /// Sampled units and their pairs, not scaled.
    units: u64,
    pairs: u64,
    /// Pairs that reach the number that they need.
    enough: f64,
    /// Other pairs by how much they fall short, from 1.
    lacking: BTreeMap<u32, f64>,
}

/// Candidates with their exact counts.
struct CandidateTable {
    pairs: HashTable<(u64, u32)>,
    most: usize,
}

impl CandidateTable {
    fn new(most: usize) -> Self {
        Self {
            pairs: HashTable::new(),
            most,
        }
    }

    /// Adds one to a pair's count. Returns false if the table is full.
    #[inline]
    fn add(&mut self, pair: u64, hash: u64) -> bool {
        if let Some(entry) = self.pairs.find_mut(hash, |entry| entry.0 == pair) {
            entry.1 += 1;
            return true;
        }
        // Checked before the insertion, since growing is what would exceed the memory.
        if self.pairs.len() >= self.most {
            return false;
        }
        self.pairs
            .insert_unique(hash, (pair, 1), |entry| avalanche(entry.0));
        true
    }
}

fn key(a: u32, b: u32) -> u64 {
    u64::from(a) << 32 | u64::from(b)
}

impl CoarseEngine<'_> {
    /// Passes the rows of all pairs whose first unit is `from` or later to `emit`, in order. `done` gets the number of finished units and may end the
    /// work.
    pub(crate) fn rows(
        &self,
        from: u32,
        emit: &mut RowSink<'_>,
        temporary: &dyn Fn(io::Error) -> BatchError,
        done: &dyn Fn(u64) -> Result<(), BatchError>,
    ) -> Result<CoarseFigures, BatchError> {
        let work = self.work().map_err(temporary)?;
        let total: u64 = work.iter().sum();
        let pilot = self.pilot(&work, total).map_err(temporary)?;
        let (mut figures, load) = self.choose(&pilot, total);
        let mut waiting: Vec<Range<u32>> = ranges(&work, load);
        // A resumed job plans for all units, as before, and leaves out what is finished.
        waiting.retain_mut(|range| {
            range.start = range.start.max(from);
            range.start < range.end
        });
        // Ranges are taken from the end, so the halves of a range go back on top.
        waiting.reverse();
        while let Some(range) = waiting.pop() {
            let Some(rows) = self.range(range.clone(), &mut figures).map_err(temporary)? else {
                let middle = range.start.midpoint(range.end);
                figures.halved += 1;
                // The first half is taken next, so that rows stay in order.
                waiting.extend([middle..range.end, range.start..middle]);
                continue;
            };
            figures.ranges += 1;
            rows.into_iter().try_for_each(&mut *emit)?;
            done(u64::from(range.end))?;
        }
        Ok(figures)
    }

    /// Returns, for each unit, the number of its pairs with later units, counted once for each shared counted chunk.
    fn work(&self) -> io::Result<TableColumn<u64>> {
        let mut work = TableColumn::zeroed(self.postings.sizes.len());
        self.deferral.scan(self.postings, |list| {
            // A unit comes first in a pair with each unit after it in the list, so the work of a range is that of its first units.
            let later = (0..list.len() as u64).rev();
            list.iter()
                .zip(later)
                .for_each(|(&unit, later)| work[unit as usize] += later);
            Ok(())
        })?;
        Ok(work)
    }

    /// Visits every pair of every list whose first unit is `wanted`.
    fn pairs(
        &self,
        wanted: impl Fn(u32) -> bool,
        mut visit: impl FnMut(u32, u32) -> io::Result<bool>,
    ) -> io::Result<bool> {
        let mut more = true;
        self.deferral.scan(self.postings, |list| {
            for (i, &a) in list.iter().enumerate().filter(|(_, a)| wanted(**a)) {
                for &b in &list[i + 1..] {
                    // A scan cannot end early, so once `visit` has returned false the rest is skipped.
                    more = more && visit(a, b)?;
                }
            }
            Ok(())
        })?;
        Ok(more)
    }

    fn needed(&self, a: u32, b: u32) -> u32 {
        self.min_shared
            // At least one: a pair with enough shared chunks was counted somewhere (see `defer`), so pairs that were never counted are out.
            .saturating_sub(self.deferral.max_addition(a, b))
            .max(1)
    }

    fn pilot(&self, work: &[u64], total: u64) -> io::Result<PilotSample> {
        // The sample should fill half of the table, which leaves room for units with more pairs than the average.
        let one_in = (total / PILOT.min(self.budget / CANDIDATE / 2).max(1)).max(1);
        // Units are numbered by name; the hash spreads the sample over all of them.
        let sampled = |unit: u32| avalanche(u64::from(unit)).is_multiple_of(one_in);
        let units = (0..work.len() as u32).filter(|&unit| sampled(unit));
        let (units, seen) = units.fold((0, 0), |(units, seen), unit| {
            (units + 1, seen + work[unit as usize])
        });
        let mut table = CandidateTable::new((self.budget / CANDIDATE) as usize);
        self.pairs(sampled, |a, b| {
            Ok(table.add(key(a, b), avalanche(key(a, b))))
        })?;
        let mut pilot = PilotSample {
            units,
            pairs: table.pairs.len() as u64,
            enough: 0.0,
            lacking: BTreeMap::new(),
        };
        // Scaled by pairs counted each time they meet, not by units: units differ in work by orders of magnitude.
        let scale = total as f64 / seen.max(1) as f64;
        for &(pair, count) in &table.pairs {
            let needed = self.needed((pair >> 32) as u32, pair as u32);
            match needed.checked_sub(count) {
                None | Some(0) => pilot.enough += scale,
                Some(lack) => *pilot.lacking.entry(lack).or_default() += scale,
            }
        }
        Ok(pilot)
    }

    /// Chooses the number of hashes and the load of a range: its number of pairs, counted each time they meet.
    ///
    /// The cost of a choice is the time to read the lists twice for each range, plus the processor time of candidates and counters. All costs are in
    /// nanoseconds, as measured.
    fn choose(&self, pilot: &PilotSample, total: u64) -> (CoarseFigures, u64) {
        const READ: f64 = 1.5;
        const COUNT: f64 = 3.0;
        const EXACT: f64 = 15.0;
        let words = (self.postings.lists.words() + self.deferral.remainder.words()) as f64;
        // Lists of one unit each have no pairs at all.
        let total = total.max(1) as f64;
        // Half of the budget is for candidates, the other half for counters.
        let most = (self.budget / 2 / CANDIDATE).max(1) as f64;
        let counters = (self.budget / 2).max(1 << 10);
        let distinct = pilot.enough + pilot.lacking.values().sum::<f64>();
        // Without counters every pair is counted exactly, and the lists are read once for each range.
        let mut best = {
            // So many occurrences always fit in the table, even if all are of different pairs.
            let load = (most * total / distinct.max(1.0)).max(most);
            (
                words * READ * (total / load).ceil() + EXACT * total,
                0,
                load,
                distinct,
            )
        };
        for hashes in [1, 2] {
            // From one occurrence of a pair for eight counters to eight for each.
            for eighths in [1, 2, 4, 8, 16, 32, 64] {
                let each = f64::from(eighths) / 8.0;
                // A pair that falls short becomes a candidate if other pairs add as much to each of its counters. Their additions are roughly Poisson
                // distributed.
                let false_ones = pilot.lacking.iter().map(|(&lack, pairs)| {
                    // Two hashes double the additions to each counter, but both counters must be too large at the same time.
                    pairs * poisson_tail(each * f64::from(hashes), lack).powi(hashes as i32)
                });
                let candidates = pilot.enough + false_ones.sum::<f64>();
                // Leave a fifth of the table free for ranges with more candidates than the average.
                let load = (each * counters as f64).min(0.8 * most * total / candidates.max(1.0));
                // Lists are read twice, for counters and for candidates. Each occurrence of a pair increments its counters and looks them up,
                // and the share of occurrences that belong to candidates is counted exactly.
                let cost = 2.0 * words * READ * (total / load).ceil()
                    + 2.0 * COUNT * f64::from(hashes) * total
                    + EXACT * total * candidates / distinct.max(1.0);
                if cost < best.0 {
                    best = (cost, hashes, load, candidates);
                }
            }
        }
        let (_, hashes, load, candidates) = best;
        let figures = CoarseFigures {
            pilot_units: pilot.units,
            pilot_pairs: pilot.pairs,
            expected_pairs: distinct.round() as u64,
            expected_enough: pilot.enough.round() as u64,
            expected_candidates: candidates.round() as u64,
            hashes,
            counters: if hashes > 0 { counters } else { 0 },
            ..CoarseFigures::default()
        };
        (figures, load as u64)
    }

    /// Returns the rows whose first unit is in a range. `None` if its candidates do not fit and it can be halved.
    fn range(
        &self,
        range: Range<u32>,
        figures: &mut CoarseFigures,
    ) -> io::Result<Option<Vec<SharedCount>>> {
        let counters = self.counters(&range, figures)?;
        // A range of one unit cannot be halved. It has at most one pair for each later unit.
        let alone = range.end - range.start == 1;
        let most = if alone {
            usize::MAX
        } else {
            (self.budget / 2 / CANDIDATE) as usize
        };
        let mut table = CandidateTable::new(most);
        let fits = self.pairs(
            |a| range.contains(&a),
            |a, b| {
                let hash = avalanche(key(a, b));
                let is_candidate = counters
                    .as_ref()
                    // Counters stop at 255, so the condition cannot ask for more. The smaller of two counters decides: both include all counts of the
                    // pair, so neither is below its true count.
                    .is_none_or(|c| u32::from(c.least(hash)) >= self.needed(a, b).min(255));
                Ok(!is_candidate || table.add(key(a, b), hash))
            },
        )?;
        if !fits {
            return Ok(None);
        }
        // The common chunks below take the counters' half of the budget.
        drop(counters);
        figures.candidates += table.pairs.len() as u64;
        let mut rows: Vec<SharedCount> = table
            .pairs
            .into_iter()
            .map(|(pair, shared)| SharedCount {
                a: (pair >> 32) as u32,
                b: pair as u32,
                shared,
            })
            // The exact count drops pairs that only shared counters, before their common chunks are collected.
            .filter(|row| row.shared >= self.needed(row.a, row.b))
            .collect();
        // The table has no order. Ranges are disjoint in the first unit, so sorting each one orders all rows.
        rows.sort_unstable_by_key(|row| (row.a, row.b));
        self.add_deferred(&mut rows)?;
        rows.retain(|row| row.shared >= self.min_shared);
        Ok(Some(rows))
    }

    fn counters(
        &self,
        range: &Range<u32>,
        figures: &CoarseFigures,
    ) -> io::Result<Option<CoarseCounters>> {
        if figures.hashes == 0 {
            return Ok(None);
        }
        let mut counters = CoarseCounters::new(figures.counters, figures.hashes);
        self.pairs(
            |a| range.contains(&a),
            |a, b| {
                counters.add(avalanche(key(a, b)));
                Ok(true)
            },
        )?;
        Ok(Some(counters))
    }

    /// Adds the deferred chunks, for as many rows at once as the common chunks of their units fit in memory.
    fn add_deferred(&self, rows: &mut [SharedCount]) -> io::Result<()> {
        if self.deferral.is_empty() {
            return Ok(());
        }
        let mut wanted = TableColumn::zeroed(self.postings.sizes.len());
        let mut rest = rows;
        while !rest.is_empty() {
            wanted.fill(false);
            let mut bytes = 0;
            let mut take = 0;
            // At least one row, whatever the budget.
            while take < rest.len() && (take == 0 || bytes < self.budget / 2) {
                for unit in [rest[take].a, rest[take].b] {
                    if !std::mem::replace(&mut wanted[unit as usize], true) {
                        bytes += 4 * u64::from(self.deferral.common_chunk_count(unit));
                    }
                }
                take += 1;
            }
            let common =
                CommonChunks::new(self.postings, self.deferral, |unit| wanted[unit as usize])?;
            let (now, later) = rest.split_at_mut(take);
            now.iter_mut()
                .for_each(|row| row.shared += common.uncounted(self.deferral, row.a, row.b));
            rest = later;
        }
        Ok(())
    }
}

/// One-byte counters, addressed by hashes of pairs.
struct CoarseCounters {
    bytes: Vec<u8>,
    hashes: u32,
}

impl CoarseCounters {
    fn new(counters: u64, hashes: u32) -> Self {
        Self {
            bytes: vec![0; counters as usize],
            hashes,
        }
    }

    #[inline]
    fn places(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let count = self.bytes.len() as u128;
        let other = avalanche(hash.rotate_left(32));
        // Take the high half of the product, which works for any number of counters without a division.
        let place = move |hash: u64| ((u128::from(hash) * count) >> 64) as usize;
        [hash, other]
            .into_iter()
            .take(self.hashes as usize)
            .map(place)
    }

    #[inline]
    fn add(&mut self, hash: u64) {
        for place in self.places(hash) {
            // A counter that wrapped around would lose pairs.
            self.bytes[place] = self.bytes[place].saturating_add(1);
        }
    }

    #[inline]
    fn least(&self, hash: u64) -> u8 {
        self.places(hash)
            .map(|place| self.bytes[place])
            .min()
            .unwrap_or(u8::MAX)
    }
}

/// Divides the units into ranges whose work is at most `load`, or which are a single unit.
fn ranges(work: &[u64], load: u64) -> Vec<Range<u32>> {
    let (mut ranges, mut start, mut sum) = (Vec::new(), 0, 0_u64);
    for (unit, &work) in work.iter().enumerate() {
        // A range has at least one unit, even if that exceeds the load.
        if sum + work > load && unit as u32 > start {
            ranges.push(start..unit as u32);
            (start, sum) = (unit as u32, 0);
        }
        sum += work;
    }
    ranges.push(start..work.len() as u32);
    ranges
}

/// Returns the probability that a Poisson variable with this mean is at least `least`.
fn poisson_tail(mean: f64, least: u32) -> f64 {
    let mut term = (-mean).exp();
    let mut below = 0.0;
    for i in 0..least {
        below += term;
        term *= mean / f64::from(i + 1);
        // Beyond the mean the terms only fall, so the remaining ones are too small for a double.
        if f64::from(i) > mean && term < f64::MIN_POSITIVE {
            break;
        }
    }
    // Rounding may leave the sum slightly above 1.
    (1.0 - below).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_every_unit_once() {
        for load in [0, 1, 5, 100] {
            let cut = ranges(&[3, 0, 9, 1, 1, 1], load);
            assert_eq!(
                cut.iter().flat_map(Clone::clone).collect::<Vec<_>>(),
                [0, 1, 2, 3, 4, 5],
                "{load}"
            );
        }
        assert_eq!(ranges(&[], 5), vec![0..0; 1]);
    }

    #[test]
    fn tails_of_poisson() {
        assert!((poisson_tail(2.0, 1) - 0.864_665).abs() < 1e-6);
        assert!((poisson_tail(2.0, 3) - 0.323_324).abs() < 1e-6);
        assert_eq!(poisson_tail(5.0, 0), 1.0);
        // Must return at once: `--min-shared` may be this large.
        assert!(poisson_tail(16.0, u32::MAX) < 1e-12);
    }
}
