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
use crate::groups::Groups;

/// Units whose rows are made at once.
const BLOCK: u32 = 128;

/// The lists of shared chunks both ways.
pub(crate) struct Index<'a> {
    groups: Groups,
    deferral: &'a Deferral,
    common: Option<Common>,
    units: u32,
    min_shared: u32,
}

/// Bytes that an index and its counters need.
pub(crate) fn needed(postings: &Postings, deferral: &Deferral, threads: usize) -> u64 {
    let words = postings.lists.words() + deferral.remainder.words();
    let held: u64 = deferral.held().iter().map(|&held| u64::from(held)).sum();
    words * 12 + held * 4 + postings.sizes.len() as u64 * (40 + 8 * threads as u64)
}

impl<'a> Index<'a> {
    /// Builds the index. O(records), and 8 bytes each.
    pub(crate) fn new(
        postings: &Postings,
        deferral: &'a Deferral,
        min_shared: u32,
    ) -> io::Result<Self> {
        let mut groups = Groups {
            starts: vec![0],
            ..Groups::default()
        };
        deferral.scan(postings, |list| {
            groups.members.extend_from_slice(list);
            groups.starts.push(groups.members.len() as u64);
            Ok(())
        })?;
        groups.invert(postings.sizes.len());
        let common = (!deferral.is_empty())
            .then(|| Common::new(postings, deferral, |_| true))
            .transpose()?;
        Ok(Self {
            groups,
            deferral,
            common,
            units: postings.sizes.len() as u32,
            min_shared,
        })
    }

    fn counter(&self) -> Counter {
        Counter {
            counts: vec![0; self.units as usize],
            met: vec![0; self.units as usize + 1],
        }
    }

    /// Hands over the rows of all pairs, in order. `done` hears how many units are behind.
    pub(crate) fn rows(
        &self,
        threads: usize,
        emit: &mut dyn FnMut(Row) -> Result<(), BatchError>,
        done: &dyn Fn(u64),
    ) -> Result<(), BatchError> {
        let blocks = self.units.div_ceil(BLOCK);
        if threads == 1 {
            let (mut counter, mut rows) = (self.counter(), Vec::new());
            for block in 0..blocks {
                self.block(block, &mut counter, &mut rows);
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
                    for block in (worker..blocks).step_by(threads) {
                        let mut rows = Vec::new();
                        self.block(block, &mut counter, &mut rows);
                        if sender.send(rows).is_err() {
                            break;
                        }
                    }
                });
                rows
            });
            let workers: Vec<mpsc::Receiver<Vec<Row>>> = workers.collect();
            for block in 0..blocks {
                let rows = workers[block as usize % threads]
                    .recv()
                    .expect("workers do not panic");
                rows.into_iter().try_for_each(&mut *emit)?;
                done(u64::from(block * BLOCK));
            }
            Ok(())
        })
    }

    fn block(&self, block: u32, counter: &mut Counter, rows: &mut Vec<Row>) {
        let end = self.units.min((block + 1) * BLOCK);
        (block * BLOCK..end).for_each(|unit| self.unit(unit, counter, rows));
    }

    /// Appends the rows of a unit with later ones.
    fn unit(&self, unit: u32, counter: &mut Counter, rows: &mut Vec<Row>) {
        let met = counter.count(&self.groups, unit);
        let start = rows.len();
        for i in 0..met {
            let other = counter.met[i];
            let counted = std::mem::take(&mut counter.counts[other as usize]);
            if counted + self.deferral.most(unit, other) >= self.min_shared {
                rows.push(Row {
                    a: unit,
                    b: other,
                    shared: counted,
                });
            }
        }
        if let Some(common) = &self.common {
            rows[start..]
                .iter_mut()
                .for_each(|row| row.shared += common.uncounted(self.deferral, row.a, row.b));
            let mut keep = start;
            for i in start..rows.len() {
                if rows[i].shared >= self.min_shared {
                    rows[keep] = rows[i];
                    keep += 1;
                }
            }
            rows.truncate(keep);
        }
        rows[start..].sort_unstable_by_key(|row| row.b);
    }
}

/// One counter a unit.
struct Counter {
    counts: Vec<u32>,
    /// Units counted, each once; one place more, to be written to without asking.
    met: Vec<u32>,
}

impl Counter {
    /// Counts the chunks that later units share with `unit`; how many units were met.
    fn count(&mut self, groups: &Groups, unit: u32) -> usize {
        let mut met = 0;
        for &group in groups.of(unit) {
            for &other in groups.members(group).iter().rev() {
                if other <= unit {
                    break;
                }
                let count = &mut self.counts[other as usize];
                self.met[met] = other;
                met += usize::from(*count == 0);
                *count += 1;
            }
        }
        met
    }
}
