//! External sort of values of a fixed size: sorted runs in one temporary file, merged.

use std::io;
use std::path::Path;

use bytemuck::Pod;

use super::sorted_runs::{STEP, SortedRuns};
use crate::error::BatchError;

/// Sorts values that are pushed in any order.
pub(crate) struct ExternalSort<T> {
    values: Vec<T>,
    /// Number of values that fit in the budget.
    capacity: usize,
    runs: SortedRuns<T>,
}

impl<T: Pod + Ord> ExternalSort<T> {
    pub(crate) fn new(budget: u64, folder: &Path) -> Self {
        // A merge reads at least two runs, with a step of each in memory.
        let bytes = (budget as usize).max(2 * STEP);
        Self {
            values: Vec::new(),
            capacity: bytes / size_of::<T>(),
            runs: SortedRuns::new(budget, folder),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, value: T) -> io::Result<()> {
        // Before the push, so that values that just fit are never written.
        if self.values.len() == self.capacity {
            self.spill()?;
        }
        self.values.push(value);
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        self.values.sort_unstable();
        // `drain` keeps the allocation, which the next run fills again.
        self.runs.add_all(self.values.drain(..))
    }

    /// Calls `visit` with all values in ascending order.
    pub(crate) fn drain(
        mut self,
        visit: impl FnMut(T) -> Result<(), BatchError>,
    ) -> Result<(), BatchError> {
        if self.runs.is_empty() {
            self.values.sort_unstable();
            return self.values.into_iter().try_for_each(visit);
        }
        self.spill().map_err(self.runs.failed())?;
        // The merge reuses the memory budget of the values.
        let Self { runs, values, .. } = self;
        drop(values);
        runs.merge(visit)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn values_come_out_sorted(values in prop::collection::vec(0_u64..500, 0..40_000)) {
            let folder = tempfile::tempdir().unwrap();
            // 8,192 values per run and two ways, so that merged runs are merged again.
            let mut sort = ExternalSort::new(0, folder.path());
            values.iter().try_for_each(|&value| sort.push(value)).unwrap();
            let mut found = Vec::new();
            sort.drain(|value| { found.push(value); Ok(()) }).unwrap();
            let mut expected = values;
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}
