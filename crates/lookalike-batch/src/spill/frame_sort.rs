//! External sort of byte strings of any length: sorted runs in one temporary file, merged. Equal strings are returned once.
//!
//! Like [`super::external_sort`], which sorts values of one size.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::offset_writer::OffsetWriter;
use super::sorted_runs::{RunMerge, RunRecord, STEP, SortedRuns};
use crate::parallel_sort::sort_unequal_by;

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
    runs: SortedRuns<Frame>,
    /// The same runs, with their checksums.
    checked: Vec<FrameRun>,
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
            runs: SortedRuns::new(budget as u64, folder).distinct(),
            checked: Vec::new(),
        }
    }

    /// Sets the number of threads that sort. With several, the positions of the strings are copied.
    pub(crate) fn threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Continues with the runs of an earlier sort, which are all that the file contains.
    pub(crate) fn resumed(self, file: File, runs: Vec<FrameRun>) -> Self {
        let positions = runs.iter().map(|run| run.start..run.end).collect();
        Self {
            runs: self.runs.with_file(file, positions),
            checked: runs,
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
        &self.checked
    }

    /// Writes all strings that are held to the file.
    pub(crate) fn spill(&mut self) -> io::Result<()> {
        if self.held.frames.is_empty() {
            return Ok(());
        }
        self.held.sort(self.threads);
        let (held, start) = (&self.held, self.runs.bytes());
        let mut check = Xxh3::new();
        self.runs.add(|out| {
            (0..held.len())
                .filter_map(|at| held.get(at))
                .try_for_each(|frame| {
                    check.update(&length_of(frame));
                    check.update(frame);
                    put(out, frame)
                })
        })?;
        self.checked.push(FrameRun {
            start,
            end: self.runs.bytes(),
            check: check.digest(),
        });
        self.held.bytes.clear();
        self.held.frames.clear();
        Ok(())
    }

    /// Makes the runs durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.runs.sync()
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
        let frames = self.runs.merged()?;
        Ok(SortedFrames::Merged(frames, self.runs.bytes()))
    }
}

/// Appends the string that `write` makes, after its length.
pub(crate) fn put_frame(frames: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = frames.len();
    frames.extend([0; LENGTH]);
    write(frames);
    let length = frames.len() - start - LENGTH;
    frames[start..start + LENGTH].copy_from_slice(&(length as u32).to_le_bytes());
}

/// Splits the string off the front of strings that each follow their length.
pub(crate) fn split_frame(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
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

/// A string that was read from a run.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Frame(Vec<u8>);

impl RunRecord for Frame {
    const HEAD: usize = LENGTH;

    fn length(head: &[u8]) -> usize {
        let length = head.first_chunk().copied().unwrap_or_default();
        LENGTH + u32::from_le_bytes(length) as usize
    }

    fn read(bytes: &[u8]) -> Self {
        Self(bytes[LENGTH..].to_vec())
    }

    fn write(&self, out: &mut OffsetWriter<'_>) -> io::Result<()> {
        put(out, &self.0)
    }
}

fn length_of(frame: &[u8]) -> [u8; LENGTH] {
    (frame.len() as u32).to_le_bytes()
}

/// Writes a string to a run.
fn put(out: &mut OffsetWriter<'_>, frame: &[u8]) -> io::Result<()> {
    out.write_all(&length_of(frame))?;
    out.write_all(frame)
}

/// Iterator over sorted strings.
pub(crate) enum SortedFrames {
    /// All strings, which fit in the budget.
    Held(HeldFrames),
    /// A merge of the runs in the file, and the end of the last run, which is the end of the file.
    Merged(RunMerge<Frame>, u64),
}

impl SortedFrames {
    /// Returns the number of bytes of the temporary file, with those of runs that have been merged.
    pub(crate) fn temporary_bytes(&self) -> u64 {
        match self {
            Self::Held(_) => 0,
            Self::Merged(_, file_bytes) => *file_bytes,
        }
    }
}

impl Iterator for SortedFrames {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<io::Result<Vec<u8>>> {
        match self {
            Self::Held(held) => {
                let next = (held.returned..held.len()).find(|&at| held.get(at).is_some());
                held.returned = next.map_or(held.len(), |at| at + 1);
                Some(Ok(held.get(next?)?.to_vec()))
            }
            Self::Merged(frames, _) => frames.next().map(|frame| Ok(frame?.0)),
        }
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
            let sorted = sort.finish().unwrap();
            let found: Vec<Vec<u8>> = sorted.map(Result::unwrap).collect();
            let expected: BTreeSet<Vec<u8>> = all.into_iter().collect();
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
