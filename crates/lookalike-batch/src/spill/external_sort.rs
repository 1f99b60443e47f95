//! External sort of values of a fixed size: sorted runs in one temporary file, merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytemuck::Pod;

use super::temporary_file;
use crate::error::BatchError;

/// Number of bytes that a merge reads from a run at a time.
const STEP: usize = 16 << 10;
/// Number of bytes that are written at a time.
const WRITTEN: usize = 128 << 10;

/// Sorts values that are pushed in any order.
pub(crate) struct ExternalSort<T> {
    values: Vec<T>,
    /// Number of values that fit in the budget.
    capacity: usize,
    runs: SortedRuns<T>,
}

/// Sorted runs in a temporary file.
pub(crate) struct SortedRuns<T> {
    runs: Vec<SortedRun>,
    file: Option<File>,
    folder: PathBuf,
    /// Maximum number of runs that are merged at a time.
    ways: usize,
    block: Vec<T>,
}

// Positions count values, not bytes; `write` and `RunReader::next` convert them.
/// Positions of the sorted values of a run in the file.
#[derive(Clone, Copy)]
struct SortedRun {
    start: u64,
    end: u64,
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
        self.runs.add(self.values.drain(..))
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

impl<T: Pod + Ord> SortedRuns<T> {
    /// Creates an empty set of runs. A merge takes memory up to the budget, and `add` takes one block.
    pub(crate) fn new(budget: u64, folder: &Path) -> Self {
        Self {
            runs: Vec::new(),
            file: None,
            folder: folder.to_owned(),
            // Each run that is merged has a block of one step in memory.
            ways: (budget as usize / STEP).clamp(2, 1024),
            block: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns a closure for `map_err` that makes an error of the temporary file.
    pub(crate) fn failed(&self) -> impl Fn(io::Error) -> BatchError + '_ {
        BatchError::temporary(&self.folder)
    }

    /// Writes one run; `values` must be sorted.
    pub(crate) fn add(&mut self, values: impl Iterator<Item = T>) -> io::Result<()> {
        let file = temporary_file(&mut self.file, &self.folder)?;
        let start = self.runs.last().map_or(0, |run| run.end);
        let run = write_run(file, start, &mut self.block, values.map(Ok))?;
        self.runs.push(run);
        Ok(())
    }

    /// Calls `visit` with the values of all runs in ascending order.
    pub(crate) fn merge(
        mut self,
        mut visit: impl FnMut(T) -> Result<(), BatchError>,
    ) -> Result<(), BatchError> {
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        let narrowed = self.narrow(&file);
        let failed = self.failed();
        let mut values = narrowed
            .and_then(|()| RunMerge::new(&file, &self.runs))
            .map_err(&failed)?;
        values.try_for_each(|value| visit(value.map_err(&failed)?))
    }

    /// Merges runs until a block of each fits the budget.
    fn narrow(&mut self, file: &File) -> io::Result<()> {
        // The oldest runs are merged first, so every value is rewritten about equally often. The space of merged runs is not reused.
        while self.runs.len() > self.ways {
            let first: Vec<SortedRun> = self.runs.drain(..self.ways).collect();
            // The last run ends at the end of the file. A merged run goes to the end of the queue.
            let start = self.runs.last().map_or(0, |run| run.end);
            let merged = RunMerge::new(file, &first)?;
            let run = write_run(file, start, &mut self.block, merged)?;
            self.runs.push(run);
        }
        Ok(())
    }
}

/// Writes sorted values at a position of the file, block by block.
fn write_run<T: Pod>(
    file: &File,
    start: u64,
    block: &mut Vec<T>,
    values: impl Iterator<Item = io::Result<T>>,
) -> io::Result<SortedRun> {
    // Values are small, so one system call for each would cost more than the sort.
    let most = WRITTEN / size_of::<T>();
    let mut end = start;
    block.clear();
    for value in values {
        block.push(value?);
        if block.len() == most {
            write(file, block, end)?;
            end += block.len() as u64;
            block.clear();
        }
    }
    write(file, block, end)?;
    let end = end + block.len() as u64;
    Ok(SortedRun { start, end })
}

fn write<T: Pod>(file: &File, values: &[T], position: u64) -> io::Result<()> {
    file.write_all_at(
        bytemuck::cast_slice(values),
        position * size_of::<T>() as u64,
    )
}

/// Iterator that merges runs.
struct RunMerge<'f, T> {
    file: &'f File,
    runs: Vec<RunReader<T>>,
    heads: BinaryHeap<Reverse<(T, usize)>>,
}

// `rest` is what is still to be read from the file; `block[at..]` is read but not yet returned.
struct RunReader<T> {
    rest: SortedRun,
    block: Vec<T>,
    at: usize,
}

impl<T: Pod + Ord> RunReader<T> {
    fn next(&mut self, file: &File) -> io::Result<Option<T>> {
        if self.at == self.block.len() {
            // At the end of the run the block is empty, and `get` below returns `None`.
            let count = (self.rest.end - self.rest.start).min((STEP / size_of::<T>()) as u64);
            self.block.resize(count as usize, T::zeroed());
            let from = self.rest.start * size_of::<T>() as u64;
            file.read_exact_at(bytemuck::cast_slice_mut(&mut self.block), from)?;
            self.rest.start += count;
            self.at = 0;
        }
        let value = self.block.get(self.at).copied();
        self.at += 1;
        Ok(value)
    }
}

impl<'f, T: Pod + Ord> RunMerge<'f, T> {
    fn new(file: &'f File, runs: &[SortedRun]) -> io::Result<Self> {
        let reader = |run: &SortedRun| RunReader {
            rest: *run,
            block: Vec::new(),
            at: 0,
        };
        let mut runs: Vec<RunReader<T>> = runs.iter().map(reader).collect();
        let mut heads = BinaryHeap::new();
        for (number, run) in runs.iter_mut().enumerate() {
            heads.extend(run.next(file)?.map(|value| Reverse((value, number))));
        }
        Ok(Self { file, runs, heads })
    }
}

impl<T: Pod + Ord> Iterator for RunMerge<'_, T> {
    type Item = io::Result<T>;

    fn next(&mut self) -> Option<io::Result<T>> {
        let mut head = self.heads.peek_mut()?;
        let Reverse((value, number)) = *head;
        match self.runs[number].next(self.file) {
            // In place, which needs one sift instead of the two of a pop and a push.
            Ok(Some(next)) => head.0 = (next, number),
            Ok(None) => drop(std::collections::binary_heap::PeekMut::pop(head)),
            // All callers stop at the first error, so the head may stay in the heap.
            Err(error) => return Some(Err(error)),
        }
        Some(Ok(value))
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
            // 4,096 values per run and two ways, so that merged runs are merged again.
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
