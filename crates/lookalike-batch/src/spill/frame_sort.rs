//! External sort of byte strings of any length: sorted runs in one temporary file, merged. Equal strings are returned once.
//!
//! Like [`super::external_sort`], which sorts values of one size.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::temporary_file;
use crate::dedup::hashing_stream::HashingStream;
use crate::parallel_sort::sort_unequal_by;

/// Number of bytes that a merge reads from a run at a time.
const STEP: usize = 32 << 10;
/// Number of bytes that are written at a time.
const WRITTEN: usize = 256 << 10;
/// Number of bytes of the length before each string, in memory and in the file.
pub(crate) const LENGTH: usize = 4;
// Four steps, so that a merge of the smallest sort still reads four runs at a time.
/// Minimum budget in bytes.
const MIN_BUDGET: usize = 4 * STEP;

/// Sorts byte strings that are pushed in any order.
pub(crate) struct FrameSort {
    held: HeldFrames,
    /// Maximum number of bytes held, of strings and their positions.
    budget: usize,
    /// Number of threads that sort.
    threads: usize,
    runs: Vec<FrameRun>,
    file: Option<File>,
    folder: PathBuf,
    ways: usize,
}

/// Strings in memory.
#[derive(Default)]
pub(crate) struct HeldFrames {
    /// The strings, each after its length.
    bytes: Vec<u8>,
    frames: Vec<FramePosition>,
    /// Number of strings that were returned.
    returned: usize,
}

/// Position of a string in memory, with its first bytes as a number that sorts the same way.
#[derive(Clone, Copy)]
struct FramePosition {
    prefix: u64,
    start: usize,
}

/// Byte positions of the sorted strings of a run in the file, and their checksum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FrameRun {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) check: u64,
}

impl FrameSort {
    /// Creates an empty sort. Memory: the budget, and half as much again while buffers grow.
    pub(crate) fn new(budget: u64, folder: &Path) -> Self {
        let budget = usize::try_from(budget)
            .unwrap_or(usize::MAX)
            .max(MIN_BUDGET);
        Self {
            held: HeldFrames::default(),
            budget,
            threads: 1,
            runs: Vec::new(),
            file: None,
            folder: folder.to_owned(),
            // Each run of a merge has a buffer of `STEP` bytes. Merging fewer than two runs would never end.
            ways: (budget / STEP).clamp(2, 1024),
        }
    }

    /// Sets the number of threads that sort. With several, the positions of the strings are copied.
    pub(crate) fn threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Continues with the runs of an earlier sort, which are all that the file contains.
    pub(crate) fn resumed(self, file: File, runs: Vec<FrameRun>) -> Self {
        Self {
            runs,
            file: Some(file),
            ..self
        }
    }

    /// Adds a string of less than 4 GiB.
    pub(crate) fn push(&mut self, frame: &[u8]) -> io::Result<()> {
        let length = u32::try_from(frame.len()).map_err(io::Error::other)?;
        self.make_room(frame.len(), 1)?;
        self.held.bytes.extend_from_slice(&length.to_le_bytes());
        self.held.bytes.extend_from_slice(frame);
        self.held.add_positions();
        Ok(())
    }

    /// Moves strings, each after its length, into the sort. After an error they are still in `frames`, but strings that were added before may be lost.
    pub(crate) fn append(&mut self, frames: &mut Vec<u8>) -> io::Result<()> {
        // Their positions are counted from the next time on.
        self.make_room(frames.len(), 0)?;
        self.held.bytes.append(frames);
        self.held.add_positions();
        Ok(())
    }

    /// Writes a run if more strings would exceed the budget. What is longer than the budget is held alone.
    fn make_room(&mut self, bytes: usize, frames: usize) -> io::Result<()> {
        let frames = frames + self.held.frames.len();
        let held = self.held.bytes.len() + frames * size_of::<FramePosition>();
        if held + bytes > self.budget && !self.held.frames.is_empty() {
            self.spill()?;
        }
        Ok(())
    }

    /// Returns the runs in the file, one after another.
    pub(crate) fn runs(&self) -> &[FrameRun] {
        &self.runs
    }

    /// Returns the number of bytes written to the temporary file so far.
    pub(crate) fn temporary_bytes(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.end)
    }

    /// Writes all strings that are held to the file.
    pub(crate) fn spill(&mut self) -> io::Result<()> {
        if self.held.frames.is_empty() {
            return Ok(());
        }
        self.held.sort(self.threads);
        let start = self.temporary_bytes();
        let file = temporary_file(&mut self.file, &self.folder)?;
        let frames = (0..self.held.len()).filter_map(|at| self.held.get(at));
        self.runs.push(write_run(file, start, frames.map(Ok))?);
        self.held.bytes.clear();
        self.held.frames.clear();
        Ok(())
    }

    /// Makes the runs durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), File::sync_data)
    }

    /// Returns all strings in ascending order.
    pub(crate) fn finish(mut self) -> io::Result<SortedFrames> {
        if self.runs.is_empty() {
            self.held.sort(self.threads);
            return Ok(SortedFrames::Held(self.held));
        }
        self.spill()?;
        // Free this memory for the buffers of the merge.
        self.held = HeldFrames::default();
        let file = self.file.take().expect("there are runs");
        while self.runs.len() > self.ways {
            let start = self.temporary_bytes();
            // Merge the oldest runs, which are the shortest; the merged run goes to the end of the queue.
            let first: Vec<FrameRun> = self.runs.drain(..self.ways).collect();
            let mut merge = FrameMerge::new(file.try_clone()?, &first)?;
            let merged = std::iter::from_fn(|| merge.next().transpose());
            self.runs.push(write_run(&file, start, merged)?);
        }
        FrameMerge::new(file, &self.runs).map(SortedFrames::Merged)
    }
}

/// Splits the string off the front of strings that each follow their length.
fn split_frame(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH>()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

/// Returns the first bytes of a string as a number. Short strings are padded with zeros, so equal numbers prove nothing.
fn prefix(frame: &[u8]) -> u64 {
    let mut eight = [0; 8];
    let length = frame.len().min(8);
    eight[..length].copy_from_slice(&frame[..length]);
    u64::from_be_bytes(eight)
}

impl HeldFrames {
    /// Adds the positions of strings that were appended to the bytes.
    fn add_positions(&mut self) {
        let mut start = match self.frames.last() {
            Some(last) => last.start + LENGTH + self.at(*last).len(),
            None => 0,
        };
        while let Some((frame, _)) = split_frame(&self.bytes[start..]) {
            let prefix = prefix(frame);
            let length = frame.len();
            self.frames.push(FramePosition { prefix, start });
            start += LENGTH + length;
        }
    }

    fn at(&self, position: FramePosition) -> &[u8] {
        split_frame(&self.bytes[position.start..]).map_or(&[], |(frame, _)| frame)
    }

    fn sort(&mut self, threads: usize) {
        let mut frames = std::mem::take(&mut self.frames);
        // Only positions are moved. Most comparisons are decided by the prefixes, without reading the strings.
        sort_unequal_by(&mut frames, threads, |a, b| {
            (a.prefix.cmp(&b.prefix))
                .then_with(|| self.at(*a).cmp(self.at(*b)))
                .then(a.start.cmp(&b.start))
        });
        self.frames = frames;
    }

    /// Returns the number of strings, with equal ones.
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns the string at a position in ascending order, or `None` if it equals the one before.
    pub(crate) fn get(&self, at: usize) -> Option<&[u8]> {
        let frame = self.at(self.frames[at]);
        let before = at.checked_sub(1).map(|before| self.at(self.frames[before]));
        (before != Some(frame)).then_some(frame)
    }
}

/// Writes a run at a position of the file, which is its end.
fn write_run<F: AsRef<[u8]>>(
    file: &File,
    start: u64,
    frames: impl Iterator<Item = io::Result<F>>,
) -> io::Result<FrameRun> {
    let mut cursor = file;
    // A run that failed may have been written in part.
    cursor.seek(SeekFrom::Start(start))?;
    // Writes use the file's cursor and reads of a merge use positions, so both can alternate.
    let mut out = BufWriter::with_capacity(WRITTEN, HashingStream::new(cursor));
    for frame in frames {
        let frame = frame?;
        let frame = frame.as_ref();
        out.write_all(&(frame.len() as u32).to_le_bytes())?;
        out.write_all(frame)?;
    }
    out.flush()?;
    let written = out.get_ref();
    Ok(FrameRun {
        start,
        end: start + written.passed(),
        check: written.digest(),
    })
}

/// Iterator over sorted strings.
pub(crate) enum SortedFrames {
    /// All strings, which fit in the budget.
    Held(HeldFrames),
    /// A merge of the runs in the file.
    Merged(FrameMerge),
}

impl SortedFrames {
    /// Returns the number of bytes of the temporary file, with those of runs that have been merged.
    pub(crate) fn temporary_bytes(&self) -> u64 {
        match self {
            Self::Held(_) => 0,
            Self::Merged(merge) => merge.file_bytes,
        }
    }

    /// Returns the next string, or `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        match self {
            Self::Held(held) => {
                let next = (held.returned..held.len()).find(|&at| held.get(at).is_some());
                held.returned = next.map_or(held.len(), |at| at + 1);
                Ok(next.and_then(|at| held.get(at)).map(<[u8]>::to_vec))
            }
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
