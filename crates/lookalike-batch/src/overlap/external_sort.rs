//! Sorting more than memory holds: sorted runs in one temporary file, merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytemuck::Pod;

/// Bytes that each run is read by while runs are merged.
const STEP: usize = 16 << 10;

/// Takes values in any order; see the module's header.
pub(crate) struct ExternalSort<T> {
    values: Vec<T>,
    /// Values that fit the budget.
    capacity: usize,
    runs: Vec<Run>,
    file: Option<File>,
    folder: PathBuf,
}

/// Sorted values in the file, by position.
#[derive(Clone, Copy)]
struct Run {
    start: u64,
    end: u64,
}

impl<T: Pod + Ord> ExternalSort<T> {
    pub(crate) fn new(budget: u64, folder: &Path) -> Self {
        let capacity = (budget as usize).max(2 * STEP) / size_of::<T>();
        Self {
            values: Vec::new(),
            capacity,
            runs: Vec::new(),
            file: None,
            folder: folder.to_owned(),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, value: T) -> io::Result<()> {
        if self.values.len() == self.capacity {
            self.spill()?;
        }
        self.values.push(value);
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        self.values.sort_unstable();
        if self.file.is_none() {
            self.file = Some(tempfile::tempfile_in(&self.folder)?);
        }
        let start = self.runs.last().map_or(0, |run| run.end);
        let end = start + self.values.len() as u64;
        write(
            self.file.as_ref().expect("opened above"),
            &self.values,
            start,
        )?;
        self.runs.push(Run { start, end });
        self.values.clear();
        Ok(())
    }

    /// Visits all values in ascending order.
    pub(crate) fn drain<E: From<io::Error>>(
        mut self,
        mut visit: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.runs.is_empty() {
            self.values.sort_unstable();
            return self.values.into_iter().try_for_each(visit);
        }
        self.spill()?;
        self.values = Vec::new();
        let ways = (self.capacity * size_of::<T>() / STEP).clamp(2, 1024);
        let file = self.file.take().expect("there are runs");
        while self.runs.len() > ways {
            self.shorten(&file, ways)?;
        }
        Merge::new(&file, &self.runs)?.try_for_each(|value| visit(value?))
    }

    /// Merges the first runs into one at the end of the file.
    fn shorten(&mut self, file: &File, ways: usize) -> io::Result<()> {
        let first: Vec<Run> = self.runs.drain(..ways).collect();
        let start = self.runs.last().expect("more runs than ways").end;
        let mut end = start;
        let mut block = Vec::with_capacity(STEP / size_of::<T>());
        for value in Merge::<T>::new(file, &first)? {
            block.push(value?);
            if block.len() == block.capacity() {
                write(file, &block, end)?;
                end += block.len() as u64;
                block.clear();
            }
        }
        write(file, &block, end)?;
        self.runs.push(Run {
            start,
            end: end + block.len() as u64,
        });
        Ok(())
    }
}

fn write<T: Pod>(file: &File, values: &[T], position: u64) -> io::Result<()> {
    file.write_all_at(
        bytemuck::cast_slice(values),
        position * size_of::<T>() as u64,
    )
}

/// Runs merged on the fly.
struct Merge<'f, T> {
    file: &'f File,
    runs: Vec<Reader<T>>,
    heads: BinaryHeap<Reverse<(T, usize)>>,
}

struct Reader<T> {
    rest: Run,
    block: Vec<T>,
    at: usize,
}

impl<T: Pod + Ord> Reader<T> {
    fn next(&mut self, file: &File) -> io::Result<Option<T>> {
        if self.at == self.block.len() {
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

impl<'f, T: Pod + Ord> Merge<'f, T> {
    fn new(file: &'f File, runs: &[Run]) -> io::Result<Self> {
        let reader = |run: &Run| Reader {
            rest: *run,
            block: Vec::new(),
            at: 0,
        };
        let mut runs: Vec<Reader<T>> = runs.iter().map(reader).collect();
        let mut heads = BinaryHeap::new();
        for (number, run) in runs.iter_mut().enumerate() {
            heads.extend(run.next(file)?.map(|value| Reverse((value, number))));
        }
        Ok(Self { file, runs, heads })
    }
}

impl<T: Pod + Ord> Iterator for Merge<'_, T> {
    type Item = io::Result<T>;

    fn next(&mut self) -> Option<io::Result<T>> {
        let mut head = self.heads.peek_mut()?;
        let Reverse((value, number)) = *head;
        match self.runs[number].next(self.file) {
            Ok(Some(next)) => head.0 = (next, number),
            Ok(None) => drop(std::collections::binary_heap::PeekMut::pop(head)),
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
            // 4,096 values a run, two ways: runs of runs.
            let mut sort = ExternalSort::new(0, folder.path());
            values.iter().try_for_each(|&value| sort.push(value)).unwrap();
            let mut found = Vec::new();
            sort.drain(|value| { found.push(value); io::Result::Ok(()) }).unwrap();
            let mut expected = values;
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}
