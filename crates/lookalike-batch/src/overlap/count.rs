//! The count engine with its lists in memory: one counter a unit, and one unit after another.
//!
//! For each unit the lists of its chunks are run through and the units in them counted (S6 with as many counters as
//! units and a hash that never collides), then the deferred chunks are added ([`crate::overlap::defer`]). Rows come out
//! in order, so that nothing needs sorting and memory does not depend on their number.

use std::io;
use std::sync::mpsc;

use super::Row;
use super::defer::{Common, Deferral};
use super::postings::Postings;
use crate::error::BatchError;
use crate::prefetch::prefetch;

/// Units whose rows are made at once.
const BLOCK: u32 = 128;

/// Behind the last unit of a list.
const END: u32 = u32::MAX;
/// How many lists ahead memory is asked for.
const AHEAD: usize = 16;

/// The lists of shared chunks, and for each unit the places in them behind it.
pub(crate) struct Index<'a> {
    /// Units of all lists, ascending in each, with [`END`] behind it.
    members: Vec<u32>,
    /// For each unit the places of the units that follow it in its lists, where any do.
    places: Vec<u32>,
    /// Where the places of each unit begin; one more at the end.
    starts: Vec<u64>,
    deferral: &'a Deferral,
    common: Option<Common>,
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
    words * 8 + held * 4 + postings.sizes.len() as u64 * (40 + 8 * threads as u64)
}

impl<'a> Index<'a> {
    /// Builds the index. O(records), and 8 bytes each.
    pub(crate) fn new(
        postings: &Postings,
        deferral: &'a Deferral,
        min_shared: u32,
    ) -> io::Result<Self> {
        let mut members = Vec::new();
        deferral.scan(postings, |list| {
            members.extend_from_slice(list);
            members.push(END);
            Ok(())
        })?;
        let units = postings.sizes.len();
        let (places, starts) = places(&members, units);
        let common = (!deferral.is_empty())
            .then(|| Common::new(postings, deferral, |_| true))
            .transpose()?;
        Ok(Self {
            members,
            places,
            starts,
            deferral,
            common,
            units: units as u32,
            min_shared,
        })
    }

    fn counter(&self) -> Counter {
        Counter {
            counts: vec![0; self.units as usize],
            met: vec![0; self.units as usize + 1],
            marks: vec![0; self.deferral.common.len().div_ceil(64)],
        }
    }

    /// Hands over the rows of all pairs whose first unit is `from` or a later one, in order. `done` hears how many units are
    /// behind.
    pub(crate) fn rows(
        &self,
        from: u32,
        threads: usize,
        emit: &mut dyn FnMut(Row) -> Result<(), BatchError>,
        done: &dyn Fn(u64),
    ) -> Result<(), BatchError> {
        let (first, blocks) = (from / BLOCK, self.units.div_ceil(BLOCK));
        if threads == 1 {
            let (mut counter, mut rows) = (self.counter(), Vec::new());
            for block in first..blocks {
                self.block(block, from, &mut counter, &mut rows);
                rows.drain(..).try_for_each(&mut *emit)?;
                done(u64::from(block * BLOCK));
            }
            return Ok(());
        }
        std::thread::scope(|scope| {
            let workers = (0..threads as u32).map(|worker| {
                let (sender, rows) = mpsc::sync_channel(2);
                scope.spawn(move || {
                    let mut counter = self.counter();
                    for block in (first + worker..blocks).step_by(threads) {
                        let mut rows = Vec::new();
                        self.block(block, from, &mut counter, &mut rows);
                        if sender.send(rows).is_err() {
                            break;
                        }
                    }
                });
                rows
            });
            let workers: Vec<mpsc::Receiver<Vec<Row>>> = workers.collect();
            for block in first..blocks {
                let rows = workers[(block - first) as usize % threads]
                    .recv()
                    .expect("workers do not panic");
                rows.into_iter().try_for_each(&mut *emit)?;
                done(u64::from(block * BLOCK));
            }
            Ok(())
        })
    }

    fn block(&self, block: u32, from: u32, counter: &mut Counter, rows: &mut Vec<Row>) {
        let end = self.units.min((block + 1) * BLOCK);
        (from.max(block * BLOCK)..end).for_each(|unit| self.unit(unit, counter, rows));
    }

    /// Appends the rows of a unit with later ones.
    fn unit(&self, unit: u32, counter: &mut Counter, rows: &mut Vec<Row>) {
        let met = self.meet(unit, counter);
        let start = rows.len();
        for &other in &counter.met[..met] {
            let counted = std::mem::take(&mut counter.counts[other as usize]);
            if counted + self.deferral.most(unit, other) >= self.min_shared {
                rows.push(Row {
                    a: unit,
                    b: other,
                    shared: counted,
                });
            }
        }
        if let Some(common) = self.common.as_ref().filter(|_| rows.len() > start) {
            counter.mark(common.of(unit));
            for row in &mut rows[start..] {
                row.shared += common.uncounted_by(&counter.marks, self.deferral, unit, row.b);
            }
            counter.unmark(common.of(unit));
            let mut keep = start;
            for at in start..rows.len() {
                rows[keep] = rows[at];
                keep += usize::from(rows[at].shared >= self.min_shared);
            }
            rows.truncate(keep);
        }
        rows[start..].sort_unstable_by_key(|row| row.b);
    }

    /// Counts the chunks that later units share with `unit`; how many units were met.
    fn meet(&self, unit: u32, counter: &mut Counter) -> usize {
        let (from, to) = (self.starts[unit as usize], self.starts[unit as usize + 1]);
        let places = &self.places[from as usize..to as usize];
        let mut met = 0;
        for (number, &place) in places.iter().enumerate() {
            if let Some(&later) = places.get(number + AHEAD) {
                prefetch(&self.members, later as usize);
            }
            let list = self.members[place as usize..].iter();
            for &other in list.take_while(|&&other| other != END) {
                let count = &mut counter.counts[other as usize];
                counter.met[met] = other;
                met += usize::from(*count == 0);
                *count += 1;
            }
        }
        met
    }
}

/// The places behind each unit in its lists, and where those of each unit begin.
fn places(members: &[u32], units: usize) -> (Vec<u32>, Vec<u64>) {
    let followed = || {
        let pairs = members.windows(2).enumerate();
        pairs.filter_map(|(at, pair)| (pair[1] != END).then_some((at + 1, pair[0])))
    };
    // The first unit of a list follows the end of the one before.
    let followed = || followed().filter(|(_, unit)| *unit != END);
    let mut starts = vec![0_u64; units + 1];
    followed().for_each(|(_, unit)| starts[unit as usize + 1] += 1);
    for unit in 0..units {
        starts[unit + 1] += starts[unit];
    }
    let mut ends = starts.clone();
    let mut places = vec![0; *starts.last().expect("one more than units") as usize];
    for (place, unit) in followed() {
        let end = &mut ends[unit as usize];
        places[*end as usize] = place as u32;
        *end += 1;
    }
    (places, starts)
}

/// One counter a unit.
struct Counter {
    counts: Vec<u32>,
    /// Units counted, each once; one place more, to be written to without asking.
    met: Vec<u32>,
    /// A bit for each common chunk.
    marks: Vec<u64>,
}

impl Counter {
    fn mark(&mut self, ranks: &[u32]) {
        ranks
            .iter()
            .for_each(|&rank| self.marks[rank as usize / 64] |= 1 << (rank % 64));
    }

    fn unmark(&mut self, ranks: &[u32]) {
        ranks
            .iter()
            .for_each(|&rank| self.marks[rank as usize / 64] = 0);
    }
}
