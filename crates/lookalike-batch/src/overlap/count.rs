//! The count engine with its lists in memory: one counter a unit, and one unit after another.
//!
//! For each unit the lists of its chunks are run through and the units in them counted (Shivakumar and Garcia-Molina 1998, section 2, probabilistic counting, with as many counters as
//! units and a hash that never collides), equal lists at once ([`crate::overlap::interned_lists`]), then the deferred chunks are added ([`crate::overlap::defer`]). Rows come out
//! in order, so that nothing needs sorting and memory does not depend on their number.

use std::io;
use std::sync::mpsc;

use lookalike_hamming::threads::join_all;

use super::SharedCount;
use super::defer::{CommonChunks, Deferral};
use super::interned_lists::{self, END, InternedList, InternedLists};
use super::postings::Postings;
use crate::error::BatchError;
use crate::spill::prefetch::prefetch;

/// Units whose rows one thread makes before the next.
const BLOCK: u32 = 128;

/// Rows that are handed over at once: a chunk that all documents have makes as many for each of them.
const PIECE: usize = if cfg!(test) { 3 } else { 1 << 13 };
/// Pieces of a thread that are there at once: one that is made, two that wait, and one that is written.
const PIECES: usize = 4;

/// Number of lists by which memory is prefetched ahead.
const AHEAD: usize = 16;

/// The lists of shared chunks, and for each unit the places in them behind it.
pub(crate) struct SharedLists<'a> {
    /// Units of all lists, ascending in each, with [`END`] behind it.
    members: Vec<u32>,
    /// Places in lists that one chunk has.
    single: UnitPlaces,
    /// Places in lists that several have.
    several: UnitPlaces,
    /// Of the latter, how many have each.
    weights: Vec<u32>,
    deferral: &'a Deferral,
    common: Option<CommonChunks>,
    units: u32,
    min_shared: u32,
}

/// Bytes that an index and its counters need; none suffice when places have too many digits.
pub(crate) fn needed(postings: &Postings, deferral: &Deferral, threads: usize) -> u64 {
    let words = postings.lists.words() + deferral.remainder.words();
    if words >= u64::from(END) {
        return u64::MAX;
    }
    let held: u64 = deferral.held().map(u64::from).sum();
    let lists: u64 = postings.histogram.values().sum();
    let units = postings.sizes.len() as u64;
    let rows = (threads * PIECES * PIECE * size_of::<SharedCount>()) as u64;
    let index = words * 8 + lists * interned_lists::BYTES + held * 4;
    index + units * (48 + 8 * threads as u64) + rows
}

impl<'a> SharedLists<'a> {
    /// Builds the index. O(records), and 8 bytes each.
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
        // Apart, so that the loop over lists of one chunk, which are most, reads no weights.
        let (several, single): (Vec<InternedList>, Vec<InternedList>) =
            lists.iter().partition(|list| list.weight > 1);
        let common = (!deferral.is_empty())
            .then(|| CommonChunks::new(postings, deferral, |_| true))
            .transpose()?;
        let (single, _) = UnitPlaces::new(&members, &single, units);
        let (several, weights) = UnitPlaces::new(&members, &several, units);
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
            met: vec![0; self.units as usize + 1],
            marks: vec![0; self.deferral.common.len().div_ceil(64)],
        }
    }

    /// Hands over the rows of all pairs whose first unit is `from` or a later one, in order. `done` hears how many units are
    /// behind, and may end the work.
    pub(crate) fn rows(
        &self,
        from: u32,
        threads: usize,
        emit: &mut dyn FnMut(SharedCount) -> Result<(), BatchError>,
        done: &dyn Fn(u64) -> Result<(), BatchError>,
    ) -> Result<(), BatchError> {
        // Small blocks, handed round: early units have most of the pairs, and a thread with a large share of
        // them would be waited for.
        let (first, blocks) = (from / BLOCK, self.units.div_ceil(BLOCK));
        if threads == 1 {
            let (mut counter, mut rows) = (self.counter(), Vec::new());
            for block in first..blocks {
                self.block(block, from, &mut counter, &mut rows, &mut |rows| {
                    rows.drain(..).try_for_each(&mut *emit)
                })?;
                rows.drain(..).try_for_each(&mut *emit)?;
                done(u64::from(block * BLOCK))?;
            }
            return Ok(());
        }
        std::thread::scope(|scope| {
            // Workers take blocks in turn and are heard in turn, so rows come in order; two pieces each bound
            // what waits. A piece that is not full ends a block.
            let workers = (0..threads as u32).map(|worker| {
                let (sender, rows) = mpsc::sync_channel(2);
                let counting = scope.spawn(move || {
                    let mut counter = self.counter();
                    // Nobody listens any more: the job has ended.
                    let send = |rows: Vec<SharedCount>| {
                        let sent = sender.send(rows);
                        sent.map_err(|_| BatchError::Cancelled)
                    };
                    for block in (first + worker..blocks).step_by(threads) {
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
                (counting, rows)
            });
            let (counting, received): (Vec<_>, Vec<_>) = workers.unzip();
            let emitted = (first..blocks).try_for_each(|block| {
                loop {
                    let rows = received[(block - first) as usize % threads].recv();
                    let rows: Vec<SharedCount> = rows.expect("workers do not panic");
                    let is_last = rows.len() < PIECE;
                    rows.into_iter().try_for_each(&mut *emit)?;
                    if is_last {
                        return done(u64::from(block * BLOCK));
                    }
                }
            });
            // Workers that have more to send end when nobody listens.
            drop(received);
            join_all(counting);
            emitted
        })
    }

    /// Makes the rows of a block; full pieces are handed over, and the rest stays in `rows`, which is empty at the beginning.
    fn block(
        &self,
        block: u32,
        from: u32,
        counter: &mut UnitCounter,
        rows: &mut Vec<SharedCount>,
        hand: &mut dyn FnMut(&mut Vec<SharedCount>) -> Result<(), BatchError>,
    ) -> Result<(), BatchError> {
        let end = self.units.min((block + 1) * BLOCK);
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

    /// Shows the rows of a unit with later ones, in their order.
    fn unit(
        &self,
        unit: u32,
        counter: &mut UnitCounter,
        show: &mut dyn FnMut(SharedCount) -> Result<(), BatchError>,
    ) -> Result<(), BatchError> {
        let met = self.meet(unit, counter);
        let UnitCounter {
            counts,
            met: others,
            ..
        } = &mut *counter;
        let mut kept = 0;
        for at in 0..met {
            let other = others[at];
            let count = &mut counts[other as usize];
            // What cannot reach the threshold with its deferred chunks is left without a look at them.
            match *count + self.deferral.most(unit, other) >= self.min_shared {
                true => {
                    others[kept] = other;
                    kept += 1;
                }
                // Counters are cleared as they are read: a unit costs what it met, not the number of units.
                false => *count = 0,
            }
        }
        others[..kept].sort_unstable();
        // Once a unit, for all its rows: then each row costs a look at the other one's chunks only.
        let common = self.common.as_ref().filter(|_| kept > 0);
        if let Some(common) = common {
            counter.mark(common.of(unit));
        }
        let shown = self.show_kept(unit, kept, counter, show);
        if let Some(common) = common {
            counter.unmark(common.of(unit));
        }
        shown
    }

    /// Shows those of the units that were met first that reach the threshold.
    fn show_kept(
        &self,
        unit: u32,
        kept: usize,
        counter: &mut UnitCounter,
        show: &mut dyn FnMut(SharedCount) -> Result<(), BatchError>,
    ) -> Result<(), BatchError> {
        for at in 0..kept {
            let other = counter.met[at];
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

    /// Counts the chunks that later units share with `unit`; how many units were met.
    fn meet(&self, unit: u32, counter: &mut UnitCounter) -> usize {
        let single = self.single.of(unit);
        let places = &self.single.places[single];
        let mut met = 0;
        for (number, &place) in places.iter().enumerate() {
            self.ask(places, number);
            met = counter.add(&self.members[place as usize..], 1, met);
        }
        let several = self.several.of(unit);
        let weights = &self.weights[several.clone()];
        let places = &self.several.places[several];
        for (number, (&place, &weight)) in places.iter().zip(weights).enumerate() {
            self.ask(places, number);
            met = counter.add(&self.members[place as usize..], weight, met);
        }
        met
    }

    /// Asks for the memory of a list that comes later.
    #[inline]
    fn ask(&self, places: &[u32], number: usize) {
        if let Some(&later) = places.get(number + AHEAD) {
            prefetch(&self.members, later as usize);
        }
    }
}

/// For each unit the places of the units that follow it in its lists, where any do.
struct UnitPlaces {
    places: Vec<u32>,
    /// Start of the places of each unit; one more at the end.
    starts: Vec<u64>,
}

impl UnitPlaces {
    /// The places in these lists, and beside each the weight of its list, if any weighs more than one.
    fn new(members: &[u32], lists: &[InternedList], units: usize) -> (Self, Vec<u32>) {
        // The last unit of a list has none behind it, and needs no place.
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
        let is_weighed = lists.first().is_some_and(|list| list.weight > 1);
        let mut weights = vec![0; if is_weighed { count } else { 0 }];
        for (unit, place, weight) in all() {
            let end = ends[unit] as usize;
            // Each start moves on to the end of its unit as places are filled in.
            ends[unit] += 1;
            places[end] = place;
            if is_weighed {
                weights[end] = weight;
            }
        }
        (Self { places, starts }, weights)
    }

    /// Range of the places of a unit.
    fn of(&self, unit: u32) -> std::ops::Range<usize> {
        self.starts[unit as usize] as usize..self.starts[unit as usize + 1] as usize
    }
}

/// One counter a unit.
struct UnitCounter {
    counts: Vec<u32>,
    /// Units counted, each once; one place more, to be written to without asking.
    met: Vec<u32>,
    /// A bit for each common chunk.
    marks: Vec<u64>,
}

impl UnitCounter {
    /// Adds to the units of a list; how many units were met so far, and are now.
    #[inline]
    fn add(&mut self, list: &[u32], weight: u32, mut met: usize) -> usize {
        for &other in list.iter().take_while(|&&other| other != END) {
            let count = &mut self.counts[other as usize];
            // Written always and kept if new: the branch that this spares cannot be predicted.
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
            // Whole words: no other unit is marked meanwhile.
            .for_each(|&rank| self.marks[rank as usize / 64] = 0);
    }
}
