//! External sort of byte strings of any length: sorted runs in one temporary file, merged. Equal strings are returned once.
//!
//! Like [`super::external_sort`], which sorts values of one size.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::temporary_file;

/// Number of bytes that a merge reads from a run at a time.
const STEP: usize = 32 << 10;
/// Number of bytes that are written at a time.
const WRITTEN: usize = 256 << 10;
/// Number of bytes of the length before each string in the file.
const LENGTH: usize = 4;
// Four steps, so that a merge of the smallest sort still reads four runs at a time.
/// Minimum budget in bytes.
const MIN_BUDGET: usize = 4 * STEP;

/// Sorts byte strings that are pushed in any order.
pub(crate) struct FrameSort {
    bytes: Vec<u8>,
    frames: Vec<FrameExtent>,
    /// Maximum number of bytes held, of strings and their positions.
    budget: usize,
    runs: Vec<FrameRun>,
    file: Option<File>,
    folder: PathBuf,
    ways: usize,
}

/// A string in memory.
#[derive(Clone, Copy)]
pub(crate) struct FrameExtent {
    start: usize,
    length: u32,
}

/// Byte positions of the sorted strings of a run in the file.
#[derive(Clone, Copy)]
struct FrameRun {
    start: u64,
    end: u64,
}

impl FrameSort {
    /// Creates an empty sort. Memory: the budget, and half as much again while buffers grow.
    pub(crate) fn new(budget: u64, folder: &Path) -> Self {
        let budget = usize::try_from(budget)
            .unwrap_or(usize::MAX)
            .max(MIN_BUDGET);
        Self {
            bytes: Vec::new(),
            frames: Vec::new(),
            budget,
            runs: Vec::new(),
            file: None,
            folder: folder.to_owned(),
            // Each run of a merge has a buffer of `STEP` bytes. Merging fewer than two runs would never end.
            ways: (budget / STEP).clamp(2, 1024),
        }
    }

    /// Adds a string of less than 4 GiB.
    pub(crate) fn push(&mut self, frame: &[u8]) -> io::Result<()> {
        let held = self.bytes.len() + self.frames.len() * size_of::<FrameExtent>();
        // A string longer than the budget is held alone.
        if held + frame.len() > self.budget && !self.frames.is_empty() {
            self.spill()?;
        }
        self.frames.push(FrameExtent {
            start: self.bytes.len(),
            length: u32::try_from(frame.len()).map_err(io::Error::other)?,
        });
        self.bytes.extend_from_slice(frame);
        Ok(())
    }

    /// Returns the number of bytes written to the temporary file so far.
    fn temporary_bytes(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.end)
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        self.frames
            .sort_unstable_by(|a, b| a.of(bytes).cmp(b.of(bytes)));
        // Here already, so that duplicates are not written to the file.
        self.frames.dedup_by(|a, b| a.of(bytes) == b.of(bytes));
    }

    fn spill(&mut self) -> io::Result<()> {
        self.sort();
        let start = self.temporary_bytes();
        let file = temporary_file(&mut self.file, &self.folder)?;
        let frames = self.frames.iter().map(|frame| Ok(frame.of(&self.bytes)));
        let end = start + write_run(file, frames)?;
        self.runs.push(FrameRun { start, end });
        self.bytes.clear();
        self.frames.clear();
        Ok(())
    }

    /// Returns all strings in ascending order.
    pub(crate) fn finish(mut self) -> io::Result<SortedFrames> {
        if self.runs.is_empty() {
            self.sort();
            return Ok(SortedFrames::Held {
                bytes: self.bytes,
                frames: self.frames.into_iter(),
            });
        }
        self.spill()?;
        // Free this memory for the buffers of the merge.
        (self.bytes, self.frames) = (Vec::new(), Vec::new());
        let file = self.file.take().expect("there are runs");
        while self.runs.len() > self.ways {
            let start = self.temporary_bytes();
            // Merge the oldest runs, which are the shortest; the merged run goes to the end of the queue.
            let first: Vec<FrameRun> = self.runs.drain(..self.ways).collect();
            let mut merge = FrameMerge::new(file.try_clone()?, &first)?;
            let merged = std::iter::from_fn(|| merge.next().transpose());
            let end = start + write_run(&file, merged)?;
            self.runs.push(FrameRun { start, end });
        }
        FrameMerge::new(file, &self.runs).map(SortedFrames::Merged)
    }
}

impl FrameExtent {
    fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start..self.start + self.length as usize]
    }
}

/// Writes a run at the end of the file and returns its length in bytes.
fn write_run<F: AsRef<[u8]>>(
    file: &File,
    frames: impl Iterator<Item = io::Result<F>>,
) -> io::Result<u64> {
    // Writes use the file's cursor and reads of a merge use positions, so both can alternate.
    let mut out = BufWriter::with_capacity(WRITTEN, file);
    let mut written = 0;
    for frame in frames {
        let frame = frame?;
        let frame = frame.as_ref();
        out.write_all(&(frame.len() as u32).to_le_bytes())?;
        out.write_all(frame)?;
        written += (LENGTH + frame.len()) as u64;
    }
    out.flush()?;
    Ok(written)
}

/// Iterator over sorted strings.
pub(crate) enum SortedFrames {
    /// All strings, which fit in the budget.
    Held {
        /// Their bytes.
        bytes: Vec<u8>,
        /// Their positions, in ascending order of the strings.
        frames: std::vec::IntoIter<FrameExtent>,
    },
    /// A merge of the runs in the file.
    Merged(FrameMerge),
}

impl SortedFrames {
    /// Returns the number of bytes of the temporary file, with those of runs that have been merged.
    pub(crate) fn temporary_bytes(&self) -> u64 {
        match self {
            Self::Held { .. } => 0,
            Self::Merged(merge) => merge.file_bytes,
        }
    }

    /// Returns the next string, or `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        match self {
            Self::Held { bytes, frames } => Ok(frames.next().map(|frame| frame.of(bytes).to_vec())),
            Self::Merged(merge) => merge.next(),
        }
    }
}

/// Iterator that merges runs.
pub(crate) struct FrameMerge {
    file: File,
    /// End of the last run, which is the end of the file.
    file_bytes: u64,
    runs: Vec<FrameReader>,
    heads: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
}

// `rest` is what is still to be read from the file; `block[at..]` is read but not yet returned.
struct FrameReader {
    rest: FrameRun,
    block: Vec<u8>,
    at: usize,
}

impl FrameReader {
    /// Moves the rest of the block to its beginning and reads until the block has at least `bytes` bytes, or the run ends.
    fn fill(&mut self, file: &File, bytes: usize) -> io::Result<()> {
        if self.block.len() - self.at >= bytes {
            return Ok(());
        }
        self.block.drain(..self.at);
        self.at = 0;
        let held = self.block.len();
        // A string may be longer than a step.
        let wanted = (bytes - held).max(STEP) as u64;
        let read = wanted.min(self.rest.end - self.rest.start);
        self.block.resize(held + read as usize, 0);
        file.read_exact_at(&mut self.block[held..], self.rest.start)?;
        self.rest.start += read;
        Ok(())
    }

    fn next(&mut self, file: &File) -> io::Result<Option<Vec<u8>>> {
        // At the end of the run nothing is left to read, and the block stays shorter than a length.
        self.fill(file, LENGTH)?;
        let Some((length, _)) = self.block[self.at..].split_first_chunk::<LENGTH>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        self.fill(file, LENGTH + length)?;
        let start = self.at + LENGTH;
        self.at = start + length;
        // A copy, because the block moves when more is read.
        Ok(Some(self.block[start..self.at].to_vec()))
    }
}

impl FrameMerge {
    fn new(file: File, runs: &[FrameRun]) -> io::Result<Self> {
        let reader = |run: &FrameRun| FrameReader {
            rest: *run,
            block: Vec::new(),
            at: 0,
        };
        let file_bytes = runs.last().map_or(0, |run| run.end);
        let mut runs: Vec<FrameReader> = runs.iter().map(reader).collect();
        let mut heads = BinaryHeap::new();
        for (number, run) in runs.iter_mut().enumerate() {
            heads.extend(run.next(&file)?.map(|frame| Reverse((frame, number))));
        }
        Ok(Self {
            file,
            file_bytes,
            runs,
            heads,
        })
    }

    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some(Reverse((frame, number))) = self.heads.pop() else {
            return Ok(None);
        };
        self.advance(number)?;
        // No run contains a string twice, but several runs may contain the same string.
        while let Some(Reverse((next, number))) = self.heads.peek()
            && *next == frame
        {
            let number = *number;
            self.heads.pop();
            self.advance(number)?;
        }
        Ok(Some(frame))
    }

    /// Adds the next string of a run to the heads.
    fn advance(&mut self, number: usize) -> io::Result<()> {
        let next = self.runs[number].next(&self.file)?;
        self.heads.extend(next.map(|next| Reverse((next, number))));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_last_run_was_not_counted_among_the_temporary_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let mut sort = FrameSort::new(0, folder.path());
        // The smallest budget, 128 KiB, holds two of these strings.
        for letter in *b"abc" {
            sort.push(&[letter; 60_000]).unwrap();
        }
        let sorted = sort.finish().unwrap();
        // Each is written once, after four bytes with its length.
        assert_eq!(sorted.temporary_bytes(), 3 * 60_004);
    }

    #[test]
    fn the_runs_of_merges_were_not_counted_among_the_temporary_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let mut sort = FrameSort::new(0, folder.path());
        // Two strings a run make five runs. Four of these, with eight strings, are merged before the last merge.
        for letter in *b"abcdefghij" {
            sort.push(&[letter; 60_000]).unwrap();
        }
        let sorted = sort.finish().unwrap();
        assert_eq!(sorted.temporary_bytes(), (10 + 8) * 60_004);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn strings_come_out_sorted_and_once(
            words in prop::collection::vec("[ab]{0,6}", 0..3000),
            long in prop::collection::vec(0..60_000_usize, 0..40),
            budget in prop_oneof![Just(0), Just(1_u64 << 30)],
        ) {
            let folder = tempfile::tempdir().unwrap();
            let mut sort = FrameSort::new(budget, folder.path());
            // At most four runs at a time, so that merged runs are merged again.
            let words = words.into_iter().map(String::into_bytes);
            let all: Vec<Vec<u8>> = words.chain(long.iter().map(|length| vec![*length as u8; *length])).collect();
            all.iter().try_for_each(|frame| sort.push(frame)).unwrap();
            let mut sorted = sort.finish().unwrap();
            let found: Vec<Vec<u8>> = std::iter::from_fn(|| sorted.next().unwrap()).collect();
            let expected: BTreeSet<Vec<u8>> = all.into_iter().collect();
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
