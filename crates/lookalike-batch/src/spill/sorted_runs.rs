//! Sorted runs of records in one temporary file, and their merge.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytemuck::Pod;

use super::offset_writer::OffsetWriter;
use super::temporary_file;
use crate::error::BatchError;

/// Number of bytes that a merge reads from a run at a time.
pub(crate) const STEP: usize = 32 << 10;

/// A record of a run.
pub(crate) trait RunRecord: Ord {
    /// Number of bytes at the start of a record that tell its length.
    const HEAD: usize;

    /// Returns the number of bytes of a record with this start.
    fn length(head: &[u8]) -> usize;

    /// Reads a record from its bytes.
    fn read(bytes: &[u8]) -> Self;

    fn write(&self, out: &mut OffsetWriter<'_>) -> io::Result<()>;
}

impl<T: Pod + Ord> RunRecord for T {
    const HEAD: usize = size_of::<T>();

    fn length(_: &[u8]) -> usize {
        Self::HEAD
    }

    fn read(bytes: &[u8]) -> Self {
        bytemuck::pod_read_unaligned(bytes)
    }

    fn write(&self, out: &mut OffsetWriter<'_>) -> io::Result<()> {
        out.write_all(bytemuck::bytes_of(self))
    }
}

/// Sorted runs in a temporary file.
pub(crate) struct SortedRuns<T> {
    /// Positions in bytes.
    runs: Vec<Range<u64>>,
    file: Option<Arc<File>>,
    folder: PathBuf,
    /// Maximum number of runs that are merged at a time.
    ways: usize,
    /// True if a merge returns equal records once.
    is_distinct: bool,
    record: PhantomData<fn() -> T>,
}

impl<T> SortedRuns<T> {
    /// Creates an empty set of runs. A merge takes memory up to the budget.
    pub(crate) fn new(budget: u64, folder: &Path) -> Self {
        Self {
            runs: Vec::new(),
            file: None,
            folder: folder.to_owned(),
            // Each run that is merged has a block of one step in memory. Merging fewer than two runs would never end.
            ways: (budget as usize / STEP).clamp(2, 1024),
            is_distinct: false,
            record: PhantomData,
        }
    }

    /// Returns equal records once.
    pub(crate) fn distinct(self) -> Self {
        Self {
            is_distinct: true,
            ..self
        }
    }

    /// Continues a file with these runs.
    pub(crate) fn with_file(self, file: File, runs: Vec<Range<u64>>) -> Self {
        Self {
            runs,
            file: Some(Arc::new(file)),
            ..self
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns the number of bytes written so far, including runs that have been merged.
    pub(crate) fn bytes(&self) -> u64 {
        // A merged run goes to the end of the file, and is then the last one.
        self.runs.last().map_or(0, |run| run.end)
    }

    /// Returns a closure for `map_err` that makes an error of the temporary file.
    pub(crate) fn failed(&self) -> impl Fn(io::Error) -> BatchError + '_ {
        BatchError::temporary(&self.folder)
    }

    /// Makes the runs durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.sync_data())
    }

    /// Adds a run, whose records `write` puts in ascending order.
    pub(crate) fn add(
        &mut self,
        write: impl FnOnce(&mut OffsetWriter<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let start = self.bytes();
        let file = temporary_file(&mut self.file, &self.folder)?;
        let mut out = OffsetWriter::new(file, start);
        write(&mut out)?;
        out.flush()?;
        let end = out.end;
        self.runs.push(start..end);
        Ok(())
    }
}

impl<T: RunRecord> SortedRuns<T> {
    /// Adds a run of ascending values.
    pub(crate) fn add_all(&mut self, mut values: impl Iterator<Item = T>) -> io::Result<()> {
        self.add(|out| values.try_for_each(|value| value.write(out)))
    }

    /// Calls `visit` with the records of all runs in ascending order.
    pub(crate) fn merge(
        mut self,
        mut visit: impl FnMut(T) -> Result<(), BatchError>,
    ) -> Result<(), BatchError> {
        let merged = self.merged();
        let failed = self.failed();
        let mut merged = merged.map_err(&failed)?;
        merged.try_for_each(|record| visit(record.map_err(&failed)?))
    }

    /// Returns the records of all runs in ascending order.
    pub(crate) fn merged(&mut self) -> io::Result<RunMerge<T>> {
        // The oldest runs are merged first, so every record is rewritten about equally often. The space of merged runs is not reused.
        while self.runs.len() > self.ways {
            let oldest: Vec<Range<u64>> = self.runs.drain(..self.ways).collect();
            let mut merge = self.merge_of(oldest)?;
            self.add(|out| merge.try_for_each(|record| record?.write(out)))?;
        }
        self.merge_of(self.runs.clone())
    }

    fn merge_of(&self, runs: Vec<Range<u64>>) -> io::Result<RunMerge<T>> {
        let reader = |rest| {
            Some(RunReader {
                file: Arc::clone(self.file.as_ref()?),
                rest,
                block: Vec::new(),
                at: 0,
            })
        };
        RunMerge::new(
            runs.into_iter().filter_map(reader).collect(),
            self.is_distinct,
        )
    }
}

// `rest` is what is still to be read from the file; `block[at..]` is read but not yet returned.
struct RunReader {
    file: Arc<File>,
    rest: Range<u64>,
    block: Vec<u8>,
    at: usize,
}

impl RunReader {
    /// Reads until the block has `bytes` more bytes. Returns false if the run ends before.
    fn fill(&mut self, bytes: usize) -> io::Result<bool> {
        if self.block.len() - self.at < bytes {
            self.block.drain(..self.at);
            self.at = 0;
            let held = self.block.len();
            // A record may be longer than a step.
            let wanted = (bytes.max(STEP) - held) as u64;
            let read = wanted.min(self.rest.end - self.rest.start);
            self.block.resize(held + read as usize, 0);
            self.file
                .read_exact_at(&mut self.block[held..], self.rest.start)?;
            self.rest.start += read;
        }
        Ok(self.block.len() - self.at >= bytes)
    }

    fn record<T: RunRecord>(&mut self) -> io::Result<Option<T>> {
        if !self.fill(T::HEAD)? {
            return Ok(None);
        }
        let length = T::length(&self.block[self.at..self.at + T::HEAD]);
        if !self.fill(length)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let start = self.at;
        self.at += length;
        Ok(Some(T::read(&self.block[start..self.at])))
    }
}

/// Iterator that merges runs.
pub(crate) struct RunMerge<T> {
    runs: Vec<RunReader>,
    heads: BinaryHeap<Reverse<(T, usize)>>,
    is_distinct: bool,
}

impl<T: RunRecord> RunMerge<T> {
    fn new(mut runs: Vec<RunReader>, is_distinct: bool) -> io::Result<Self> {
        let mut heads = BinaryHeap::with_capacity(runs.len());
        for (number, run) in runs.iter_mut().enumerate() {
            heads.extend(run.record()?.map(|record| Reverse((record, number))));
        }
        Ok(Self {
            runs,
            heads,
            is_distinct,
        })
    }

    /// Takes the smallest record.
    fn pop(&mut self) -> io::Result<Option<T>> {
        let Some(mut head) = self.heads.peek_mut() else {
            return Ok(None);
        };
        Ok(Some(match self.runs[head.0.1].record()? {
            // In place, which needs one sift instead of the two of a pop and a push.
            Some(next) => std::mem::replace(&mut head.0.0, next),
            None => PeekMut::pop(head).0.0,
        }))
    }

    fn record(&mut self) -> io::Result<Option<T>> {
        let record = self.pop()?;
        let is_again = |head: &Reverse<(T, usize)>| Some(&head.0.0) == record.as_ref();
        while self.is_distinct && self.heads.peek().is_some_and(is_again) {
            self.pop()?;
        }
        Ok(record)
    }
}

impl<T: RunRecord> Iterator for RunMerge<T> {
    type Item = io::Result<T>;

    fn next(&mut self) -> Option<io::Result<T>> {
        self.record().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_runs_than_fit_in_the_budget_are_read_at_once() {
        let folder = tempfile::tempdir().unwrap();
        for (is_distinct, count) in [(false, 40 * 1000), (true, 1040 - 1)] {
            let mut runs = SortedRuns::<u64>::new(3 * STEP as u64, folder.path());
            runs.is_distinct = is_distinct;
            for first in 0..40 {
                // 1,000 numbers each, of which the next run has all but one.
                runs.add_all(first..first + 1000).unwrap();
            }
            assert_eq!(runs.runs.len(), 40);
            let found: Vec<u64> = runs.merged().unwrap().map(Result::unwrap).collect();
            assert!(runs.runs.len() <= 3, "{} runs", runs.runs.len());
            assert!(found.is_sorted());
            assert_eq!(found.len(), count);
        }
    }
}
