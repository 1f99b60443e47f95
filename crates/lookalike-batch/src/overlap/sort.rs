//! The sort engine (Shivakumar and Garcia-Molina 1998, section 2.1): every pair of units in every list, sorted, counted.
//!
//! Its price is eight bytes for each chunk of each pair at a time, and disk for what does not fit. Very common chunks are
//! deferred as the count engine does ([`crate::overlap::defer`]) where the lists of who has them fit the memory, and
//! paired like all others where not.

use std::io;
use std::path::Path;

use super::SharedCount;
use super::defer::{CommonChunks, Deferral};
use super::pair_sort::PairSort;
use super::postings::Postings;
use crate::error::BatchError;

/// The engine; see the module's header.
pub(crate) struct SortEngine<'a> {
    pub(crate) postings: &'a Postings,
    pub(crate) deferral: &'a Deferral,
    pub(crate) min_shared: u32,
    /// Bytes to sort with.
    pub(crate) budget: u64,
    pub(crate) folder: &'a Path,
}

/// Temporary files and results fail in different places.
pub(crate) enum SortFailure {
    Here(io::Error),
    There(BatchError),
}

impl From<io::Error> for SortFailure {
    fn from(error: io::Error) -> Self {
        Self::Here(error)
    }
}

impl SortEngine<'_> {
    /// True if common chunks are deferred.
    pub(crate) fn defers(&self) -> bool {
        !self.deferral.is_empty() && CommonChunks::bytes(self.deferral) <= self.budget / 4
    }

    /// Hands over the rows of all pairs whose first unit is `from` or a later one, in order. `done` hears how many lists are
    /// behind, and may end the work.
    pub(crate) fn rows(
        &self,
        from: u32,
        emit: &mut dyn FnMut(SharedCount) -> Result<(), BatchError>,
        done: &dyn Fn(u64) -> io::Result<()>,
    ) -> Result<(), BatchError> {
        let temporary = BatchError::temporary(self.folder);
        let pairs = self.pairs(from, done).map_err(&temporary)?;
        let common = self
            .defers()
            .then(|| CommonChunks::new(self.postings, self.deferral, |_| true))
            .transpose()
            .map_err(&temporary)?;
        let count = |[a, b, counted]: [u32; 3]| {
            let shared = match &common {
                // Out of reach whatever was deferred: both lists of common chunks need not be walked.
                Some(_) if counted + self.deferral.most(a, b) < self.min_shared => return Ok(()),
                Some(common) => counted + common.uncounted(self.deferral, a, b),
                None => counted,
            };
            match shared >= self.min_shared {
                true => emit(SharedCount { a, b, shared }).map_err(SortFailure::There),
                false => Ok(()),
            }
        };
        pairs.drain(count).map_err(|failure| match failure {
            SortFailure::Here(error) => temporary(error),
            SortFailure::There(error) => error,
        })
    }

    fn pairs(&self, from: u32, done: &dyn Fn(u64) -> io::Result<()>) -> io::Result<PairSort> {
        let units = self.postings.sizes.len();
        let mut pairs = PairSort::new(units, self.budget / 2, self.folder);
        let mut lists = 0;
        let mut push = |list: &[u32]| {
            // A resumed job has the rows of earlier first units: their pairs are not made again.
            let start = list.partition_point(|&unit| unit < from);
            for (i, &a) in list.iter().enumerate().skip(start) {
                pairs.push(a, &list[i + 1..])?;
            }
            lists += 1;
            if lists % 4096 == 0 {
                done(lists)?;
            }
            Ok(())
        };
        match self.defers() {
            true => self.deferral.scan(self.postings, push)?,
            false => self.postings.lists.scan(|_, list| push(list))?,
        }
        Ok(pairs)
    }
}
