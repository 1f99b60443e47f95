//! The count engine when the lists do not fit in memory (Shivakumar and Garcia-Molina 1998, section 2, probabilistic counting): coarse counts, candidates, exact counts.
//!
//! The lists stay in their file and are read from one end to the other, once or a few times for each *range* of first
//! units of pairs:
//!
//! 1. coarse: each pair adds one to the counter at its hash, or to two counters at two hashes. A counter is one byte and
//!    stops at 255. Pairs that fall on one counter can only make it larger, so no pair is lost;
//! 2. candidates: each pair whose counters reach what it needs is counted exactly, in a table;
//! 3. the deferred chunks are added for the pairs that can reach the threshold with them, and what does is a row.
//!
//! What a pair needs is its own: the threshold less what its deferred chunks can add; therefore the counters are kept
//! until the candidates are found, where the source reduces them to a bitmap. A pilot counts the pairs of a sample of
//! units exactly and tells how many of what need: from that the number of hashes and the load of the counters are chosen,
//! or that coarse counting does not pay (at a threshold of 1 every pair is a candidate). A range whose candidates do not
//! fit after all is halved and repeated.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use hashbrown::HashTable;
use lookalike::hash::avalanche;
use serde::Serialize;

use super::SharedCount;
use super::defer::{CommonChunks, Deferral};
use super::postings::Postings;
use crate::error::BatchError;
use crate::spill::table_column::TableColumn;

/// Bytes of a pair in the table of candidates, the growth of the table included.
const CANDIDATE: u64 = 40;
/// Pairs that the pilot counts.
const PILOT: u64 = 1 << 20;

/// The engine; see the module's header.
pub(crate) struct CoarseEngine<'a> {
    pub(crate) postings: &'a Postings,
    pub(crate) deferral: &'a Deferral,
    pub(crate) min_shared: u32,
    /// Bytes of counters and candidates.
    pub(crate) budget: u64,
}

/// Figures of coarse counting: what the pilot saw, what was chosen for that, what came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CoarseFigures {
    /// Units that the pilot sampled.
    pub pilot_units: u64,
    /// Pairs of these with later units, which it counted exactly.
    pub pilot_pairs: u64,
    /// Pairs of all units that share a counted chunk, as the pilot lets expect.
    pub expected_pairs: u64,
    /// Of these, pairs whose counted chunks can do: with the deferred ones they may reach the threshold.
    pub expected_enough: u64,
    /// Pairs to be counted exactly, as expected of the choice: those that can do, and others that share their counters.
    pub expected_candidates: u64,
    /// Hashes of a pair; 0 where coarse counting does not pay, and every pair is a candidate.
    pub hashes: u32,
    /// Counters, a byte each.
    pub counters: u64,
    /// Pairs that were counted exactly; of a resumed job, in what was left.
    pub candidates: u64,
    /// Ranges that were halved because their candidates did not fit.
    pub halved: u64,
    /// Ranges that the units were cut into, which the passes of the chunking tell.
    #[serde(skip)]
    pub ranges: u64,
}

/// Counts that the pilot saw, scaled to all pairs.
#[derive(Default)]
struct PilotSample {
    /// Units that were sampled, and their pairs, not scaled.
    units: u64,
    pairs: u64,
    /// Pairs that have what they need.
    enough: f64,
    /// Other pairs by what they lack, from 1.
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

    /// Counts a pair once more; false when the table is full.
    #[inline]
    fn add(&mut self, pair: u64, hash: u64) -> bool {
        if let Some(entry) = self.pairs.find_mut(hash, |entry| entry.0 == pair) {
            entry.1 += 1;
            return true;
        }
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
    /// Hands over the rows of all pairs whose first unit is `from` or a later one, in order. `done` hears how many units are
    /// behind, and may end the work.
    pub(crate) fn rows(
        &self,
        from: u32,
        emit: &mut dyn FnMut(SharedCount) -> Result<(), BatchError>,
        temporary: &dyn Fn(io::Error) -> BatchError,
        done: &dyn Fn(u64) -> Result<(), BatchError>,
    ) -> Result<CoarseFigures, BatchError> {
        let work = self.work().map_err(temporary)?;
        let total: u64 = work.iter().sum();
        let pilot = self.pilot(&work, total).map_err(temporary)?;
        let (mut figures, load) = self.choose(&pilot, total);
        let mut waiting: Vec<Range<u32>> = ranges(&work, load);
        waiting.retain_mut(|range| {
            range.start = range.start.max(from);
            range.start < range.end
        });
        // Taken from the end: halves of a range go back on top.
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

    /// Pairs of each unit with later ones, as often as they share a counted chunk.
    fn work(&self) -> io::Result<TableColumn<u64>> {
        let mut work = TableColumn::zeroed(self.postings.sizes.len());
        self.deferral.scan(self.postings, |list| {
            // A unit is first in a pair with each that follows it in the list: so the work of a range is that
            // of its first units.
            let later = (0..list.len() as u64).rev();
            list.iter()
                .zip(later)
                .for_each(|(&unit, later)| work[unit as usize] += later);
            Ok(())
        })?;
        Ok(work)
    }

    /// Visits every pair of every list whose first unit is wanted.
    fn pairs(
        &self,
        wanted: impl Fn(u32) -> bool,
        mut visit: impl FnMut(u32, u32) -> io::Result<bool>,
    ) -> io::Result<bool> {
        let mut more = true;
        self.deferral.scan(self.postings, |list| {
            for (i, &a) in list.iter().enumerate().filter(|(_, a)| wanted(**a)) {
                for &b in &list[i + 1..] {
                    // A scan has no early end: once the visit has said no, the rest passes by.
                    more = more && visit(a, b)?;
                }
            }
            Ok(())
        })?;
        Ok(more)
    }

    fn needed(&self, a: u32, b: u32) -> u32 {
        self.min_shared
            // One at least: a pair with enough shared chunks was counted somewhere (`defer`), so one that was
            // never met is none.
            .saturating_sub(self.deferral.most(a, b))
            .max(1)
    }

    fn pilot(&self, work: &[u64], total: u64) -> io::Result<PilotSample> {
        // The sample is expected to fill half of the table, which leaves room for units with more pairs than
        // the average.
        let one_in = (total / PILOT.min(self.budget / CANDIDATE / 2).max(1)).max(1);
        // Units are numbered by their names: a hash spreads the sample over all of them.
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

    /// Chooses the number of hashes and how many pairs, counted as often as they meet, make a range.
    ///
    /// The cost of a choice: reading the lists twice a range, and what candidates and counters take of the processor, all
    /// in nanoseconds as measured.
    fn choose(&self, pilot: &PilotSample, total: u64) -> (CoarseFigures, u64) {
        const READ: f64 = 1.5;
        const COUNT: f64 = 3.0;
        const EXACT: f64 = 15.0;
        let words = (self.postings.lists.words() + self.deferral.remainder.words()) as f64;
        let total = total.max(1) as f64;
        let most = (self.budget / 2 / CANDIDATE).max(1) as f64;
        let counters = (self.budget / 2).max(1 << 10);
        let distinct = pilot.enough + pilot.lacking.values().sum::<f64>();
        // Without counters every pair is counted exactly, and the lists are read once a range.
        let mut best = {
            let load = (most * total / distinct.max(1.0)).max(most);
            (
                words * READ * (total / load).ceil() + EXACT * total,
                0,
                load,
                distinct,
            )
        };
        for hashes in [1, 2] {
            for eighths in [1, 2, 4, 8, 16, 32, 64] {
                let each = f64::from(eighths) / 8.0;
                // A pair that lacks some counts is a candidate if others add as many to each of its counters,
                // whose additions are about Poisson distributed.
                let false_ones = pilot.lacking.iter().map(|(&lack, pairs)| {
                    pairs * poisson_tail(each * f64::from(hashes), lack).powi(hashes as i32)
                });
                let candidates = pilot.enough + false_ones.sum::<f64>();
                // A fifth of the table is left for ranges with more candidates than the average.
                let load = (each * counters as f64).min(0.8 * most * total / candidates.max(1.0));
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

    /// The rows whose first unit is in a range; none when its candidates do not fit and it can be halved.
    fn range(
        &self,
        range: Range<u32>,
        figures: &mut CoarseFigures,
    ) -> io::Result<Option<Vec<SharedCount>>> {
        let counters = self.counters(&range, figures)?;
        // One unit cannot be halved. It has at most one pair for each later unit.
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
                    // Counters stop at 255: no more can be asked of them.
                    // The less loaded of two counters decides: both count all of the pair, so neither is below
                    // its true count.
                    .is_none_or(|c| u32::from(c.least(hash)) >= self.needed(a, b).min(255));
                Ok(!is_candidate || table.add(key(a, b), hash))
            },
        )?;
        if !fits {
            return Ok(None);
        }
        // The common chunks below take the half of the budget that these had.
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
            .filter(|row| row.shared >= self.needed(row.a, row.b))
            .collect();
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

    /// Adds the deferred chunks, for so many rows at once that the common chunks of their units fit.
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
            // One row at least, whatever the budget.
            while take < rest.len() && (take == 0 || bytes < self.budget / 2) {
                for unit in [rest[take].a, rest[take].b] {
                    if !std::mem::replace(&mut wanted[unit as usize], true) {
                        bytes += 4 * u64::from(self.deferral.held_by(unit));
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

/// Counters of one byte, addressed by hashes of pairs.
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
        // The high half of the product: any number of counters, and no division.
        let place = move |hash: u64| ((u128::from(hash) * count) >> 64) as usize;
        [hash, other]
            .into_iter()
            .take(self.hashes as usize)
            .map(place)
    }

    #[inline]
    fn add(&mut self, hash: u64) {
        for place in self.places(hash) {
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

/// Units cut so that the work of each range is at most `load`, or the range is one unit.
fn ranges(work: &[u64], load: u64) -> Vec<Range<u32>> {
    let (mut ranges, mut start, mut sum) = (Vec::new(), 0, 0_u64);
    for (unit, &work) in work.iter().enumerate() {
        if sum + work > load && unit as u32 > start {
            ranges.push(start..unit as u32);
            (start, sum) = (unit as u32, 0);
        }
        sum += work;
    }
    ranges.push(start..work.len() as u32);
    ranges
}

/// The chance that a Poisson variable of this mean is at least `least`.
fn poisson_tail(mean: f64, least: u32) -> f64 {
    let mut term = (-mean).exp();
    let mut below = 0.0;
    for i in 0..least {
        below += term;
        term *= mean / f64::from(i + 1);
        // Beyond the mean terms only fall: what is left is no part of a double any more.
        if f64::from(i) > mean && term < f64::MIN_POSITIVE {
            break;
        }
    }
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
        // In no time: `--min-shared` may be as large.
        assert!(poisson_tail(16.0, u32::MAX) < 1e-12);
    }
}
