//! Collects pairs, sorts them, on disk if they are many, and writes each line once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use lookalike_hamming::{JoinedTables, Word};
use serde::Serialize;

use super::checkpoint::{JoinCheckpoint, JoinState, checked_run};
use super::stream_position::StreamedPart;
use crate::error::{BatchError, OUTPUT};
use crate::fingerprints::files::{FingerprintName, ListedId};
use crate::parallel::map_parallel_limited;
use crate::parallel_sort::sort_unequal_by;
use crate::spill::temporary_file;

// A byte is enough for a distance: at most `MAX_DISTANCE` bits, or 128 places (`MinEqual::places`).
/// A pair as bytes that sort like its line: lengths of both keys (4 bytes each), key of f, key of q, distance (1 byte).
///
/// The key of a number is a 0 byte and its eight bytes, most significant first. The key of any other name is a 1 byte and its text.
type MatchRecord<'a> = &'a [u8];

const LENGTH: usize = 4;
const LENGTHS: usize = 2 * LENGTH;
/// Number of bytes after the keys.
const TAIL: usize = 1;
const NUMBER: u8 = 0;
const TEXT: u8 = 1;
/// Bytes that one thread collects before it takes the lock.
const LARGE: usize = 1 << 20;
/// Bytes of each sorted run that are read at once.
const RUN_BYTES: usize = 1 << 16;

/// Pairs that one thread found.
#[derive(Default)]
pub(super) struct FoundPairs(Vec<u8>);

impl FoundPairs {
    /// Adds a pair.
    pub(super) fn push(&mut self, f: FingerprintName<'_>, q: FingerprintName<'_>, distance: u32) {
        let start = self.begin();
        self.key(start, f);
        self.key(start + LENGTH, q);
        self.0.push(distance as u8);
    }

    /// Adds a pair of fingerprints together with a name for the second.
    pub(super) fn push_codes<W: Word>(
        &mut self,
        codes: [W; 2],
        name: FingerprintName<'_>,
        distance: u32,
    ) {
        let start = self.begin();
        let width = W::BITS / 8;
        for code in codes {
            // Most significant byte first, so that bytes sort as the numbers do.
            let bytes = code.to_u128().to_be_bytes();
            self.0.extend_from_slice(&bytes[16 - width as usize..]);
        }
        // The first key holds both fingerprints, so all records of a pair are adjacent, the one with the smallest name first.
        self.0[start..start + LENGTH].copy_from_slice(&(2 * width).to_le_bytes());
        self.key(start + LENGTH, name);
        self.0.push(distance as u8);
    }

    fn begin(&mut self) -> usize {
        let start = self.0.len();
        self.0.extend_from_slice(&[0; LENGTHS]);
        start
    }

    /// Appends a key and stores its length at `place`.
    fn key(&mut self, place: usize, name: FingerprintName<'_>) {
        let before = self.0.len();
        match name {
            // Use the digits, which results show, so that it sorts among other texts.
            FingerprintName::Fingerprint(code) => {
                self.0.push(TEXT);
                self.0.extend_from_slice(code.to_string().as_bytes());
            }
            FingerprintName::Text(text) => {
                self.0.push(TEXT);
                self.0.extend_from_slice(text.as_bytes());
            }
            FingerprintName::Number(number) => {
                self.0.push(NUMBER);
                self.0.extend_from_slice(&number.to_be_bytes());
            }
        }
        let length = (self.0.len() - before) as u32;
        self.0[place..place + LENGTH].copy_from_slice(&length.to_le_bytes());
    }

    /// Adds a pair within one collection, the smaller name first.
    pub(super) fn push_ordered(
        &mut self,
        a: FingerprintName<'_>,
        b: FingerprintName<'_>,
        distance: u32,
    ) {
        if a <= b {
            self.push(a, b, distance);
        } else {
            self.push(b, a, distance);
        }
    }

    /// Tells whether it is time to hand the pairs over.
    pub(super) fn is_large(&self) -> bool {
        self.0.len() >= LARGE
    }
}

/// Returns the lengths of the two keys of the record at the start of `bytes`.
fn lengths(bytes: &[u8]) -> (usize, usize) {
    let length = |at: usize| {
        let four = bytes[at..].first_chunk().copied().unwrap_or_default();
        u32::from_le_bytes(four) as usize
    };
    (length(0), length(4))
}

/// Returns the record at the start of `bytes`, without what follows it.
fn first(bytes: &[u8]) -> MatchRecord<'_> {
    let (f, q) = lengths(bytes);
    &bytes[..LENGTHS + f + q + TAIL]
}

/// Splits a record into both keys and the rest.
fn keys(record: MatchRecord<'_>) -> (&[u8], &[u8], &[u8]) {
    let (f, _) = lengths(record);
    let (f_key, rest) = record[LENGTHS..].split_at(f);
    let (q_key, tail) = rest.split_at(rest.len() - TAIL);
    (f_key, q_key, tail)
}

/// Returns the first bytes of the key of f as a number that sorts the same way.
fn prefix(record: MatchRecord<'_>) -> u64 {
    let key = keys(record).0;
    let mut eight = [0; 8];
    // Short keys are padded with zeros. Equal prefixes prove nothing, so whole keys are then compared.
    let length = key.len().min(8);
    eight[..length].copy_from_slice(&key[..length]);
    u64::from_be_bytes(eight)
}

/// All pairs found so far.
pub(super) struct JoinMatches {
    folder: PathBuf,
    budget: u64,
    /// Number of threads that sort.
    threads: usize,
    bytes: Vec<u8>,
    /// Prefix of each record in memory, and its position.
    places: Vec<(u64, usize)>,
    file: Option<File>,
    /// Start and end of each sorted run on disk.
    runs: Vec<(u64, u64)>,
    /// List of the runs on disk, if the join can be resumed.
    kept: Option<JoinCheckpoint>,
    /// True if pairs were lost because they could not be written to disk.
    has_lost: bool,
}

impl JoinMatches {
    pub(super) fn new(folder: &Path, budget: u64, threads: usize) -> Self {
        Self {
            folder: folder.to_owned(),
            budget,
            threads,
            bytes: Vec::new(),
            places: Vec::new(),
            file: None,
            runs: Vec::new(),
            kept: None,
            has_lost: false,
        }
    }

    /// Creates pairs that another join can resume from, including those of an earlier one.
    pub(super) fn resumed(
        folder: &Path,
        budget: u64,
        threads: usize,
        kept: (JoinCheckpoint, File),
    ) -> Self {
        let (kept, file) = kept;
        Self {
            file: Some(file),
            runs: kept.runs(),
            kept: Some(kept),
            ..Self::new(folder, budget, threads)
        }
    }

    /// Returns the state of an interrupted join.
    pub(super) fn state(&self) -> JoinState {
        let state = self.kept.as_ref().map(|kept| kept.state.clone());
        state.unwrap_or_default()
    }

    /// Saves all pairs so far as complete for some tables and for the first streamed fingerprints. Does nothing once [`JoinMatches::append`] has
    /// failed, because a resumed join would miss the lost pairs.
    pub(super) fn keep(
        &mut self,
        tables: JoinedTables,
        streamed: StreamedPart,
    ) -> Result<(), BatchError> {
        if self.kept.is_none() || self.has_lost {
            return Ok(());
        }
        // Pairs that are only in memory would be lost with the process.
        self.spill().map_err(BatchError::temporary(&self.folder))?;
        match (&mut self.kept, &self.file) {
            (Some(kept), Some(file)) => kept.save(file, tables, streamed),
            _ => Ok(()),
        }
    }

    /// Returns the number of bytes on disk.
    pub(super) fn bytes_on_disk(&self) -> u64 {
        self.runs.last().map_or(0, |&(_, end)| end)
    }

    /// Takes over the pairs that a thread found.
    pub(super) fn append(&mut self, found: &mut FoundPairs) -> io::Result<()> {
        let appended = self.absorb(found);
        self.has_lost |= appended.is_err();
        appended
    }

    fn absorb(&mut self, found: &mut FoundPairs) -> io::Result<()> {
        // Spill before taking over, so that no record is in two runs.
        let memory = self.bytes.len() + found.0.len() + 16 * self.places.len();
        // Vectors double when they grow.
        if 2 * memory as u64 > self.budget && !self.places.is_empty() {
            self.spill()?;
        }
        let mut at = self.bytes.len();
        self.bytes.append(&mut found.0);
        while at < self.bytes.len() {
            let record = first(&self.bytes[at..]);
            self.places.push((prefix(record), at));
            at += record.len();
        }
        Ok(())
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        // Most comparisons are decided by the prefixes, without reading the records.
        sort_unequal_by(&mut self.places, self.threads, |a, b| {
            // Only places are sorted, 16 bytes each. Records stay where they are until they are written in order.
            let record = |place: &(u64, usize)| first(&bytes[place.1..]);
            (a.0.cmp(&b.0))
                .then_with(|| keys(record(a)).cmp(&keys(record(b))))
                // A pair may occur several times.
                .then(a.1.cmp(&b.1))
        });
    }

    fn spill(&mut self) -> io::Result<()> {
        self.sort();
        let start = self.bytes_on_disk();
        let file = temporary_file(&mut self.file, &self.folder)?;
        // A run that failed may have been written in part.
        file.seek(SeekFrom::Start(start))?;
        let mut end = start;
        let check = checked_run(file, |out| {
            self.places.iter().try_for_each(|&(_, at)| {
                let record = first(&self.bytes[at..]);
                end += record.len() as u64;
                out.write_all(record)
            })
        })?;
        // A checkpoint may come without new pairs.
        if end > start {
            self.runs.push((start, end));
            if let Some(kept) = &mut self.kept {
                kept.add_run(start, end, check);
            }
        }
        self.bytes.clear();
        self.places.clear();
        Ok(())
    }

    /// Writes a line for each distinct pair, in order. Returns the number of lines.
    pub(super) fn write(
        mut self,
        sides: PairSides,
        out: &mut dyn Write,
        temporary: impl Fn(io::Error) -> BatchError,
    ) -> Result<u64, BatchError> {
        // A merge of runs yields one record at a time, which leaves no block that several threads could format.
        if self.file.is_none() && self.threads > 1 {
            self.sort();
            return self.write_sorted(sides, out);
        }
        let mut lines = MatchLines {
            out,
            sides,
            last: Vec::new(),
            count: 0,
        };
        self.for_each(&mut |record| lines.write(record), temporary)?;
        lines.end()
    }

    /// Writes the lines of the pairs in memory, which several threads format.
    fn write_sorted(&self, sides: PairSides, out: &mut dyn Write) -> Result<u64, BatchError> {
        /// Number of lines that a thread formats at once.
        const LINES: usize = 1 << 13;
        let record = |place: usize| first(&self.bytes[self.places[place].1..]);
        let all = self.places.len();
        let made = |from: usize| -> Result<(Vec<u8>, u64), BatchError> {
            let mut made = Vec::new();
            let mut lines = MatchLines {
                out: &mut made,
                sides,
                // Equal records are adjacent, and only the first is written.
                last: from
                    .checked_sub(1)
                    .map_or(Vec::new(), |last| record(last).to_vec()),
                count: 0,
            };
            (from..all.min(from + LINES)).try_for_each(|place| lines.write(record(place)))?;
            let count = lines.count;
            Ok((made, count))
        };
        let mut count = 0;
        // A round of all threads at a time, so that only so many formatted lines are in memory.
        for start in (0..all).step_by(LINES * self.threads) {
            let parts = (all - start).div_ceil(LINES).min(self.threads);
            let starts = (0..parts).map(|part| start + part * LINES);
            for made in map_parallel_limited(starts, self.threads, made) {
                let (lines, written) = made?;
                out.write_all(&lines).map_err(unwritten)?;
                count += written;
            }
        }
        out.flush().map_err(unwritten)?;
        Ok(count)
    }

    /// Visits each pair of fingerprints added by [`FoundPairs::push_codes`], with its smallest name and the distance.
    pub(super) fn for_each_smallest_name<W: Word>(
        self,
        mut visit: impl FnMut([W; 2], FingerprintName<'_>, u32) -> Result<(), BatchError>,
        temporary: impl Fn(io::Error) -> BatchError,
    ) -> Result<(), BatchError> {
        let mut last: Option<[W; 2]> = None;
        self.for_each(
            &mut |record| {
                let (codes, name, tail) = keys(record);
                let (first, second) = codes.split_at(codes.len() / 2);
                let codes = [first, second].map(|bytes| {
                    let little: Vec<u8> = bytes.iter().rev().copied().collect();
                    W::read(&little)
                });
                // Keys are sorted by both fingerprints and then by name, so the first record of a pair has the smallest name.
                if last == Some(codes) {
                    return Ok(());
                }
                last = Some(codes);
                let id = id_of(name);
                let name = match &id {
                    ListedId::Number(number) => FingerprintName::Number(*number),
                    ListedId::Text(text) => FingerprintName::Text(text),
                };
                visit(codes, name, tail[0].into())
            },
            temporary,
        )
    }

    /// Visits all records in order.
    fn for_each(
        mut self,
        visit: &mut dyn FnMut(MatchRecord<'_>) -> Result<(), BatchError>,
        temporary: impl Fn(io::Error) -> BatchError,
    ) -> Result<(), BatchError> {
        self.sort();
        let Some(file) = self.file.take() else {
            return (self.places.iter()).try_for_each(|&(_, at)| visit(first(&self.bytes[at..])));
        };
        self.narrow(&file, &temporary)?;
        let memory = MatchRun::Memory(&self.bytes, self.places.iter());
        merge(&file, &self.runs, Some(memory), visit, &temporary)
    }

    /// Merges runs until pieces of all remaining runs fit in memory.
    fn narrow(
        &mut self,
        file: &File,
        temporary: &dyn Fn(io::Error) -> BatchError,
    ) -> Result<(), BatchError> {
        // Each run of a merge has a buffer of `RUN_BYTES`. Merging fewer than two runs would never end.
        let ways = (self.budget / RUN_BYTES as u64).clamp(2, 1024) as usize;
        while self.runs.len() > ways {
            // Merge the oldest runs first; the merged run is used again only after all others.
            let first: Vec<(u64, u64)> = self.runs.drain(..ways).collect();
            let run = self.merge_to_disk(file, &first, temporary)?;
            self.runs.push(run);
        }
        Ok(())
    }

    /// Merges some sorted runs into a longer one after all others. Returns its start and end.
    fn merge_to_disk(
        &self,
        file: &File,
        runs: &[(u64, u64)],
        temporary: &dyn Fn(io::Error) -> BatchError,
    ) -> Result<(u64, u64), BatchError> {
        let all = self.runs.iter().chain(runs);
        let start = all.map(|&(_, end)| end).max().unwrap_or(0);
        // The cursor of the file is at its end, since reads of a merge use positions.
        let (mut out, mut end) = (BufWriter::with_capacity(1 << 18, file), start);
        let mut last = Vec::new();
        let mut write = |record: MatchRecord<'_>| {
            // A pair found by several tables is in several runs; written once here, it is not merged again and again.
            if last != record {
                last.clear();
                last.extend_from_slice(record);
                end += record.len() as u64;
                out.write_all(record).map_err(temporary)?;
            }
            Ok(())
        };
        merge(file, runs, None, &mut write, temporary)?;
        out.flush().map_err(temporary)?;
        Ok((start, end))
    }
}

/// Visits the records of sorted runs on disk and of those in memory, in order.
fn merge(
    file: &File,
    runs: &[(u64, u64)],
    memory: Option<MatchRun<'_>>,
    visit: &mut dyn FnMut(MatchRecord<'_>) -> Result<(), BatchError>,
    temporary: &dyn Fn(io::Error) -> BatchError,
) -> Result<(), BatchError> {
    let disk = runs.iter().map(|&(at, end)| {
        let extent = FileExtent { file, at, end };
        MatchRun::Disk(BufReader::with_capacity(RUN_BYTES, extent))
    });
    let mut runs: Vec<MatchRun<'_>> = disk.chain(memory).collect();
    let mut heads = BinaryHeap::new();
    for (number, run) in runs.iter_mut().enumerate() {
        let head = run.next().map_err(temporary)?;
        heads.extend(head.map(|record| Reverse(RunHead { record, number })));
    }
    while let Some(Reverse(RunHead { record, number })) = heads.pop() {
        visit(&record)?;
        let head = runs[number].next().map_err(temporary)?;
        heads.extend(head.map(|record| Reverse(RunHead { record, number })));
    }
    Ok(())
}

/// The next record of a run.
#[derive(PartialEq, Eq)]
struct RunHead {
    record: Vec<u8>,
    number: usize,
}

impl Ord for RunHead {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (keys(&self.record).cmp(&keys(&other.record))).then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for RunHead {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// A sorted run.
enum MatchRun<'a> {
    Disk(BufReader<FileExtent<'a>>),
    Memory(&'a [u8], std::slice::Iter<'a, (u64, usize)>),
}

impl MatchRun<'_> {
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        match self {
            Self::Memory(bytes, places) => {
                Ok(places.next().map(|&(_, at)| first(&bytes[at..]).to_vec()))
            }
            Self::Disk(reader) => {
                let mut record = vec![0; LENGTHS];
                // Check both: the extent ends long before the buffer is empty.
                if reader.get_ref().is_empty() && reader.buffer().is_empty() {
                    return Ok(None);
                }
                reader.read_exact(&mut record)?;
                let (f, q) = lengths(&record);
                record.resize(LENGTHS + f + q + TAIL, 0);
                reader.read_exact(&mut record[LENGTHS..])?;
                Ok(Some(record))
            }
        }
    }
}

/// A range of a file with its own read position.
struct FileExtent<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

impl FileExtent<'_> {
    fn is_empty(&self) -> bool {
        self.at >= self.end
    }
}

impl Read for FileExtent<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let wanted = out.len().min((self.end - self.at) as usize);
        let count = self.file.read_at(&mut out[..wanted], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// Names of the two id fields of a pair.
#[derive(Clone, Copy)]
pub(super) enum PairSides {
    /// `f` and `q`, for two collections.
    FQ,
    /// `a` and `b`, for one collection.
    AB,
}

#[derive(Serialize)]
#[serde(untagged)]
enum MatchLine<'a> {
    Two {
        f: ListedId<'a>,
        q: ListedId<'a>,
        distance: u8,
    },
    One {
        a: ListedId<'a>,
        b: ListedId<'a>,
        distance: u8,
    },
}

/// Returns the id in a key.
fn id_of(key: &[u8]) -> ListedId<'_> {
    match (key[0], key[1..].try_into()) {
        (NUMBER, Ok(eight)) => ListedId::Number(u64::from_be_bytes(eight)),
        _ => ListedId::Text(String::from_utf8_lossy(&key[1..])),
    }
}

/// Writer of lines. A record that equals the previous one is skipped.
struct MatchLines<'a> {
    out: &'a mut dyn Write,
    sides: PairSides,
    last: Vec<u8>,
    count: u64,
}

impl MatchLines<'_> {
    fn write(&mut self, record: MatchRecord<'_>) -> Result<(), BatchError> {
        // A pair may be found several times; equal records are adjacent after the sort.
        if self.last == record {
            return Ok(());
        }
        self.last.clear();
        self.last.extend_from_slice(record);
        self.count += 1;
        let (f, q, tail) = keys(record);
        let distance = tail[0];
        let (f, q) = (id_of(f), id_of(q));
        let line = match self.sides {
            PairSides::FQ => MatchLine::Two { f, q, distance },
            PairSides::AB => MatchLine::One {
                a: f,
                b: q,
                distance,
            },
        };
        crate::dedup::result_lines::write_line(self.out, &line).map_err(unwritten)
    }

    fn end(self) -> Result<u64, BatchError> {
        self.out.flush().map_err(unwritten)?;
        Ok(self.count)
    }
}

pub(super) fn unwritten(source: io::Error) -> BatchError {
    BatchError::result(Path::new(OUTPUT))(source)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::unfinished::JobFolder;

    #[test]
    fn pairs_that_the_disk_did_not_take_counted_as_kept() {
        let folder = tempfile::tempdir().unwrap();
        let checkpoint = JobFolder::of_join(&folder.path().join("pairs"), false).unwrap();
        let (kept, file) = JoinCheckpoint::open(&checkpoint, String::new(), 0).unwrap();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut matches = JoinMatches::resumed(folder.path(), 0, 1, (kept, full));
        let append = |matches: &mut JoinMatches| {
            let mut found = FoundPairs::default();
            found.push(FingerprintName::Number(1), FingerprintName::Number(2), 3);
            matches.append(&mut found)
        };
        append(&mut matches).unwrap();
        let error = append(&mut matches).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        // Disk space was freed, but the pairs are lost, so a resumed join must find them again.
        matches.file = Some(file);
        let tables = JoinedTables {
            done: 1,
            all: 2,
            design: 0,
        };
        matches.keep(tables, StreamedPart::default()).unwrap();
        let (kept, _) = JoinCheckpoint::open(&checkpoint, String::new(), 0).unwrap();
        assert_eq!(kept.state.tables(), JoinedTables::default());
    }

    #[test]
    fn lines_that_several_threads_make_are_those_of_one() {
        let folder = tempfile::tempdir().unwrap();
        let written = |threads: usize| {
            let mut matches = JoinMatches::new(folder.path(), 1 << 30, threads);
            let mut found = FoundPairs::default();
            // Each pair occurs three times, so that equal ones lie on both sides of the boundaries between parts.
            for number in (0..90_000_u64).map(|number| number * 7_919 % 30_000) {
                let name = FingerprintName::Number(number);
                found.push(name, FingerprintName::Text("q"), 2);
            }
            matches.append(&mut found).unwrap();
            let mut out = Vec::new();
            let temporary = BatchError::temporary(folder.path());
            let count = matches.write(PairSides::FQ, &mut out, temporary);
            (count.unwrap(), out)
        };
        let one = written(1);
        assert_eq!(one.0, 30_000);
        assert!(written(3) == one && written(2) == one);
    }

    #[test]
    fn pairs_beyond_a_small_memory_were_read_from_all_runs_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut matches = JoinMatches::new(folder.path(), 3 * RUN_BYTES as u64, 2);
        // A run is half of the memory, and three runs are merged at once.
        let count = 164_000_u64;
        for start in (0..count).step_by(1000) {
            let mut found = FoundPairs::default();
            for number in start..start + 1000 {
                let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % count;
                found.push(
                    FingerprintName::Number(mixed),
                    FingerprintName::Number(1),
                    2,
                );
            }
            matches.append(&mut found).unwrap();
        }
        assert!(matches.runs.len() > 30, "{}", matches.runs.len());
        let temporary = BatchError::temporary(folder.path());
        let file = matches.file.as_ref().unwrap().try_clone().unwrap();
        matches.narrow(&file, &temporary).unwrap();
        assert!(matches.runs.len() <= 3, "{}", matches.runs.len());
        let mut found: Vec<Vec<u8>> = Vec::new();
        let visit = &mut |record: MatchRecord<'_>| {
            found.push(record.to_vec());
            Ok(())
        };
        matches.for_each(visit, temporary).unwrap();
        assert!(found.is_sorted_by(|a, b| keys(a) <= keys(b)));
        found.dedup();
        let mut all: Vec<u64> = (0..count)
            .map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % count)
            .collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(found.len(), all.len());
    }

    proptest! {
        #[test]
        fn pairs_come_out_sorted_and_once_whatever_the_memory(
            pairs in prop::collection::vec(("[ab]{0,10}", 0..400_u64, 0..3_u32), 0..400),
            budget in prop_oneof![Just(0_u64), Just(4_000), Just(1 << 20)],
            threads in 1..4_usize,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let mut matches = JoinMatches::new(folder.path(), budget, threads);
            for some in pairs.chunks(50) {
                let mut found = FoundPairs::default();
                for (f, q, distance) in some {
                    found.push(FingerprintName::Text(f), FingerprintName::Number(*q), *distance);
                }
                matches.append(&mut found).unwrap();
            }
            let mut out = Vec::new();
            let count = matches.write(PairSides::FQ, &mut out, BatchError::temporary(folder.path())).unwrap();
            let mut expected = pairs;
            expected.sort();
            expected.dedup();
            let lines: Vec<String> = expected
                .iter()
                .map(|(f, q, distance)| format!("{{\"f\":\"{f}\",\"q\":{q},\"distance\":{distance}}}\n"))
                .collect();
            prop_assert_eq!(count, lines.len() as u64);
            prop_assert_eq!(String::from_utf8(out).unwrap(), lines.concat());
        }
    }
}
