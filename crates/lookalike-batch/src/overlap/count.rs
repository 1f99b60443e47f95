//! The count engine for lists in memory: one counter for each unit, one unit after another.
//!
//! For each unit the engine walks the lists of its chunks and counts the units in them (Shivakumar and Garcia-Molina 1998, section 2, probabilistic
//! counting, with as many counters as units and a hash without collisions). Equal lists are counted at once ([`crate::overlap::interned_lists`]), and
//! the deferred chunks are added afterwards ([`crate::overlap::defer`]). Rows come out in order, so nothing needs sorting and memory does not depend
//! on their number.

use std::io;
use std::sync::mpsc;

use lookalike_hamming::threads::{join_all, spawn_scoped};

use super::defer::{CommonChunks, Deferral};
use super::interned_lists::{self, END, InternedList, InternedLists};
use super::postings::Postings;
use super::{RowSink, SharedCount};
use crate::error::BatchError;
use crate::spill::prefetch::prefetch;

/// Number of units in a block, which one thread counts as a whole.
const BLOCK: u32 = 128;

/// Maximum number of rows handed over at once: a chunk that all documents have gives each of them a row with every other.
const PIECE: usize = if cfg!(test) { 3 } else { 1 << 13 };
/// Maximum number of a thread's pieces in memory: one being made, two waiting, and one being written.
const PIECES: usize = 4;

/// Number of lists by which memory is prefetched ahead.
const PREFETCH_DISTANCE: usize = 16;

/// Lists of shared chunks, with each unit's places after itself in them.
pub(crate) struct SharedLists<'a> {
    /// Units of all lists, ascending in each, and [`END`] after each list.
    members: Vec<u32>,
    /// Places in lists that belong to one chunk.
    single: UnitPositions,
    /// Places in lists that belong to several chunks.
    several: UnitPositions,
    /// Number of chunks of each list in `several`.
    weights: Vec<u32>,
    deferral: &'a Deferral,
    common: Option<CommonChunks>,
    units: u32,
    min_shared: u32,
}

/// Returns the bytes that an index and its counters need. `u64::MAX` if places do not fit 32 bits.
pub(crate) fn needed(postings: &Postings, deferral: &Deferral, threads: usize) -> u64 {
    let words = postings.lists.words() + deferral.remainder.words();
    // Places have 32 bits, and one value marks the end of a list.
    if words >= u64::from(END) {
        return u64::MAX;
    }
    let held: u64 = deferral.common_chunk_counts().map(u64::from).sum();
    let lists: u64 = postings.histogram.values().sum();
    let units = postings.sizes.len() as u64;
    let rows = (threads * PIECES * PIECE * size_of::<SharedCount>()) as u64;
    // Four bytes of a member and four of a place for each record; below, eight for the counters of each unit and thread.
    let index = words * 8 + lists * interned_lists::BYTES + held * 4;
    index + units * (48 + 8 * threads as u64) + rows
}

impl<'a> SharedLists<'a> {
    /// Builds the index in O(records) time, with 8 bytes for each record.
    pub(crate) fn new(
        postings: &Postings,
        deferral: &'a Deferral,
        min_shared: u32,
    ) -> io::Result<Self> {
        let mut alike = InternedLists::new(postings.histogram.values().sum::<u64>() as usize);
        deferral.scan(postings, |list| {
            alike.add(list);
            Ok(())
        })?;
        let InternedLists { members, lists, .. } = alike;
        let units = postings.sizes.len();
        // Keep the lists of one chunk separate: they are the majority, and their loop need not read weights.
        let (several, single): (Vec<InternedList>, Vec<InternedList>) =
            lists.iter().partition(|list| list.weight > 1);
        let common = (!deferral.is_empty())
            .then(|| CommonChunks::new(postings, deferral, |_| true))
            .transpose()?;
        let (single, _) = UnitPositions::new(&members, &single, units);
        let (several, weights) = UnitPositions::new(&members, &several, units);
        Ok(Self {
            members,
            single,
            several,
            weights,
            deferral,
            common,
            units: units as u32,
            min_shared,
        })
    }

    fn counter(&self) -> UnitCounter {
        UnitCounter {
            counts: vec![0; self.units as usize],
            // One more, because `add` writes an entry before it knows whether the unit is new.
            met: vec![0; self.units as usize + 1],
            marks: vec![0; self.deferral.common.len().div_ceil(64)],
        }
    }

    /// Passes the rows of all pairs whose first unit is `from` or later to `emit`, in order. `done` gets the number of finished units and may end the
    /// work.
    pub(crate) fn rows(
        &self,
        from: u32,
        threads: usize,
        emit: &mut RowSink<'_>,
        done: &dyn Fn(u64) -> Result<(), BatchError>,
    ) -> Result<(), BatchError> {
        // Small blocks are dealt out in turn: early units have most of the pairs, so a thread with many of them would delay the others.
        let (first, blocks) = (from / BLOCK, self.units.div_ceil(BLOCK));
        if threads == 1 {
            return self.count_alone(from, emit, done);
        }
        std::thread::scope(|scope| {
            // Workers take blocks in turn and are received from in turn, so rows come in order. Two waiting pieces for each bound the memory. A piece
            // that is not full ends a block.
            let begin = |_| {
                let (dealer, dealt) = mpsc::channel();
                let (sender, rows) = mpsc::sync_channel(2);
                let counting = spawn_scoped(scope, move || {
                    let mut counter = self.counter();
                    // A closed channel means that the job has ended.
                    let send = |rows: Vec<SharedCount>| {
                        let sent = sender.send(rows);
                        sent.map_err(|_| BatchError::Cancelled)
                    };
                    for block in dealt {
                        let mut rows = Vec::new();
                        let ended = self
                            .block(block, from, &mut counter, &mut rows, &mut |rows| {
                                send(std::mem::take(rows))
                            })
                            .and_then(|()| send(rows));
                        if ended.is_err() {
                            break;
                        }
                    }
                });
                Some(((counting.ok()?, dealer), rows))
            };
            let (workers, received): (Vec<_>, Vec<_>) = (0..threads).map_while(begin).unzip();
            let (counting, dealers): (Vec<_>, Vec<_>) = workers.into_iter().unzip();
            let started = received.len();
            if started == 0 {
                return self.count_alone(from, emit, done);
            }
            for block in first..blocks {
                let dealer = &dealers[(block - first) as usize % started];
                dealer.send(block).expect("a worker receives all blocks");
            }
            drop(dealers);
            let emitted = (first..blocks).try_for_each(|block| {
                loop {
                    let rows = received[(block - first) as usize % started].recv();
                    // A worker ends early only if this loop has ended, so it still owes this block.
                    let rows: Vec<SharedCount> = rows.expect("workers do not panic");
                    let is_last = rows.len() < PIECE;
                    rows.into_iter().try_for_each(&mut *emit)?;
                    if is_last {
                        return done(self.finished(block));
                    }
                }
            });
            // Workers that still have rows to send stop when the channels are closed.
            drop(received);
            join_all(counting);
            emitted
        })
    }

    /// Counts on the caller's thread, which emits its rows at once and needs no channels.
    fn count_alone(
        &self,
        from: u32,
        emit: &mut RowSink<'_>,
        done: &dyn Fn(u64) -> Result<(), BatchError>,
    ) -> Result<(), BatchError> {
        let (mut counter, mut rows) = (self.counter(), Vec::new());
        for block in from / BLOCK..self.units.div_ceil(BLOCK) {
            self.block(block, from, &mut counter, &mut rows, &mut |rows| {
                rows.drain(..).try_for_each(&mut *emit)
            })?;
            rows.drain(..).try_for_each(&mut *emit)?;
            done(self.finished(block))?;
        }
        Ok(())
    }

    /// Returns the number of units up to the end of a block.
    fn finished(&self, block: u32) -> u64 {
        u64::from(self.units).min((u64::from(block) + 1) * u64::from(BLOCK))
    }

    /// Makes the rows of a block. Full pieces go to `hand`; the rest stays in `rows`, which must be empty at the start.
    fn block(
        &self,
        block: u32,
        from: u32,
        counter: &mut UnitCounter,
        rows: &mut Vec<SharedCount>,
        hand: &mut dyn FnMut(&mut Vec<SharedCount>) -> Result<(), BatchError>,
    ) -> Result<(), BatchError> {
        let end = self.units.min((block + 1) * BLOCK);
        // A resumed job may begin in the middle of a block.
        let mut units = from.max(block * BLOCK)..end;
        units.try_for_each(|unit| {
            self.unit(unit, counter, &mut |row| {
                rows.push(row);
                match rows.len() == PIECE {
                    true => hand(rows),
                    false => Ok(()),
                }
            })
        })
    }

    /// Calls `show` with the rows of a unit with later units, in order.
    fn unit(
        &self,
        unit: u32,
        counter: &mut UnitCounter,
        show: &mut RowSink<'_>,
    ) -> Result<(), BatchError> {
        let met = self.count_shared(unit, counter);
        let mut kept = 0;
        for at in 0..met {
            let other = counter.met[at];
            let count = &mut counter.counts[other as usize];
            // Drop pairs that cannot reach the threshold even with all deferred chunks, without looking at these.
            match *count + self.deferral.max_addition(unit, other) >= self.min_shared {
                true => {
                    counter.met[kept] = other;
                    kept += 1;
                }
                // Clear counters while reading them, so that a unit costs what it met, not the number of units.
                false => *count = 0,
            }
        }
        // Units were met in the order of lists. Only those that are left are sorted, which are few.
        counter.met[..kept].sort_unstable();
        // Mark the unit's common chunks once for all its rows, so that each row only looks at the other unit's chunks.
        let common = self.common.as_ref().filter(|_| kept > 0);
        if let Some(common) = common {
            counter.mark(common.of(unit));
        }
        let shown = self.emit_first(unit, kept, counter, show);
        if let Some(common) = common {
            counter.unmark(common.of(unit));
        }
        shown
    }

    /// Calls `show` for the first `kept` units met that reach the threshold.
    fn emit_first(
        &self,
        unit: u32,
        kept: usize,
        counter: &mut UnitCounter,
        show: &mut RowSink<'_>,
    ) -> Result<(), BatchError> {
        for at in 0..kept {
            let other = counter.met[at];
            // Cleared while it is read, for the next unit.
            let mut shared = std::mem::take(&mut counter.counts[other as usize]);
            if let Some(common) = &self.common {
                shared += common.uncounted_by(&counter.marks, self.deferral, unit, other);
            }
            if shared >= self.min_shared {
                show(SharedCount {
                    a: unit,
                    b: other,
                    shared,
                })?;
            }
        }
        Ok(())
    }

    /// Counts the chunks that later units share with `unit`. Returns the number of units met.
    fn count_shared(&self, unit: u32, counter: &mut UnitCounter) -> usize {
        let single = self.single.of(unit);
        let places = &self.single.places[single];
        let mut met = 0;
        for (number, &place) in places.iter().enumerate() {
            self.prefetch_list(places, number);
            // The list from the unit's place on: each pair is counted from its first unit only.
            met = counter.add(&self.members[place as usize..], 1, met);
        }
        let several = self.several.of(unit);
        let weights = &self.weights[several.clone()];
        let places = &self.several.places[several];
        for (number, (&place, &weight)) in places.iter().zip(weights).enumerate() {
            self.prefetch_list(places, number);
            met = counter.add(&self.members[place as usize..], weight, met);
        }
        met
    }

    /// Prefetches the memory of a list that is read later.
    #[inline]
    fn prefetch_list(&self, places: &[u32], number: usize) {
        if let Some(&later) = places.get(number + PREFETCH_DISTANCE) {
            prefetch(&self.members, later as usize);
        }
    }
}

/// For each unit, the places after itself in the lists where other units follow it.
struct UnitPositions {
    places: Vec<u32>,
    /// Start of each unit's places, plus the end of the last.
    starts: Vec<u64>,
}

impl UnitPositions {
    /// Returns the places in these lists and, if any list weighs more than one, the weight for each place.
    fn new(members: &[u32], lists: &[InternedList], units: usize) -> (Self, Vec<u32>) {
        // No unit follows the last one of a list, so it needs no place.
        let followed = |list: &InternedList| {
            let (start, weight) = (list.start as usize, list.weight);
            let pairs = members[start..].windows(2);
            let pairs = pairs.take_while(|pair| pair[1] != END).enumerate();
            pairs.map(move |(at, pair)| (pair[0] as usize, (start + at + 1) as u32, weight))
        };
        let mut starts = vec![0_u64; units + 1];
        let all = || lists.iter().flat_map(followed);
        all().for_each(|(unit, ..)| starts[unit + 1] += 1);
        for unit in 0..units {
            starts[unit + 1] += starts[unit];
        }
        let mut ends = starts.clone();
        let count = *starts.last().expect("one more than units") as usize;
        let mut places = vec![0; count];
        // Either all lists have a weight of one or none has, so the first one tells.
        let is_weighed = lists.first().is_some_and(|list| list.weight > 1);
        let mut weights = vec![0; if is_weighed { count } else { 0 }];
        for (unit, place, weight) in all() {
            let end = ends[unit] as usize;
            // The unit's start moves towards its end as places are filled in.
            ends[unit] += 1;
            places[end] = place;
            if is_weighed {
                weights[end] = weight;
            }
        }
        (Self { places, starts }, weights)
    }

    /// Returns the range of a unit's places.
    fn of(&self, unit: u32) -> std::ops::Range<usize> {
        self.starts[unit as usize] as usize..self.starts[unit as usize + 1] as usize
    }
}

/// One counter for each unit.
struct UnitCounter {
    counts: Vec<u32>,
    /// Units met, each once, plus one spare entry so that writes need no check.
    met: Vec<u32>,
    /// A bit for each common chunk.
    marks: Vec<u64>,
}

impl UnitCounter {
    /// Adds a list to the counters of its units. Takes the number of units met so far and returns the new one.
    #[inline]
    fn add(&mut self, list: &[u32], weight: u32, mut met: usize) -> usize {
        for &other in list.iter().take_while(|&&other| other != END) {
            let count = &mut self.counts[other as usize];
            // Always write, and keep the entry if it is new: this avoids a branch that cannot be predicted.
            self.met[met] = other;
            met += usize::from(*count == 0);
            *count += weight;
        }
        met
    }

    fn mark(&mut self, ranks: &[u32]) {
        ranks
            .iter()
            .for_each(|&rank| self.marks[rank as usize / 64] |= 1 << (rank % 64));
    }

    fn unmark(&mut self, ranks: &[u32]) {
        ranks
            .iter()
            // Clear whole words, since only one unit is marked at a time.
            .for_each(|&rank| self.marks[rank as usize / 64] = 0);
    }
}
