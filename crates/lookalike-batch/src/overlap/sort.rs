//! The sort engine (Shivakumar and Garcia-Molina 1998, section 2.1): writes out, sorts and counts every pair of units in every list.
//!
//! Each chunk of each pair takes eight bytes until it is counted, and disk space for what does not fit in memory. Very common chunks are deferred as
//! in the count engine ([`crate::overlap::defer`]) if the lists of their units fit in memory; otherwise they are paired like all others.

use std::io;
use std::path::Path;

use super::defer::{CommonChunks, Deferral};
use super::pair_sort::PairSort;
use super::postings::Postings;
use super::{RowSink, SharedCount};
use crate::error::BatchError;

/// The sort engine; see the module documentation.
pub(crate) struct SortEngine<'a> {
    pub(crate) postings: &'a Postings,
    pub(crate) deferral: &'a Deferral,
    pub(crate) min_shared: u32,
    /// Bytes for sorting.
    pub(crate) budget: u64,
    pub(crate) folder: &'a Path,
}

impl SortEngine<'_> {
    /// Tells whether common chunks are deferred.
    pub(crate) fn defers(&self) -> bool {
        !self.deferral.is_empty() && CommonChunks::bytes(self.deferral) <= self.budget / 4
    }

    /// Passes the rows of all pairs whose first unit is `from` or later to `emit`, in order. `done` gets the number of finished lists and may end the
    /// work.
    pub(crate) fn rows(
        &self,
        from: u32,
        emit: &mut RowSink<'_>,
        done: &dyn Fn(u64) -> io::Result<()>,
    ) -> Result<(), BatchError> {
        let temporary = BatchError::temporary(self.folder);
        let pairs = self.pairs(from, done).map_err(&temporary)?;
        // Takes at most a quarter of the budget, as `defers` checks, beside the half that the sort has.
        let common = self
            .defers()
            .then(|| CommonChunks::new(self.postings, self.deferral, |_| true))
            .transpose()
            .map_err(&temporary)?;
        let count = |[a, b, counted]: [u32; 3]| {
            let shared = match &common {
                // Skip pairs that cannot reach the threshold even with all deferred chunks, without walking the lists of common chunks.
                Some(_) if counted + self.deferral.max_addition(a, b) < self.min_shared => {
                    return Ok(());
                }
                Some(common) => counted + common.uncounted(self.deferral, a, b),
                None => counted,
            };
            match shared >= self.min_shared {
                true => emit(SharedCount { a, b, shared }),
                false => Ok(()),
            }
        };
        pairs.drain(count)
    }

    fn pairs(&self, from: u32, done: &dyn Fn(u64) -> io::Result<()>) -> io::Result<PairSort> {
        let units = self.postings.sizes.len();
        let mut pairs = PairSort::new(units, self.budget / 2, self.folder);
        let mut lists = 0;
        let mut push = |list: &[u32]| {
            // A resumed job already has the rows of earlier first units, so it skips their pairs.
            let start = list.partition_point(|&unit| unit < from);
            for (i, &a) in list.iter().enumerate().skip(start) {
                pairs.push(a, &list[i + 1..])?;
            }
            lists += 1;
            // Lists are short, so the observer is not told of each.
            if lists % 4096 == 0 {
                done(lists)?;
            }
            Ok(())
        };
        match self.defers() {
            true => self.deferral.scan(self.postings, push)?,
            // Without deferral the common lists are read like all others.
            false => self.postings.lists.scan(|_, list| push(list))?,
        }
        Ok(pairs)
    }
}
