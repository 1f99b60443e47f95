//! Collects pairs, sorts them, on disk if they are many, and writes each line once.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use lookalike_hamming::{JoinedTables, Word};
use serde::Serialize;

use super::checkpoint::{JoinCheckpoint, JoinState};
use super::stream_position::StreamedPart;
use crate::dedup::result_lines::write_line;
use crate::error::{BatchError, OUTPUT};
use crate::fingerprints::files::{FingerprintName, ListedId};
use crate::locks::{into_inner, lock};
use crate::parallel::map_parallel_limited;
use crate::spill::frame_sort::{FrameSort, HeldFrames, LENGTH, SortedFrames};

// A byte is enough for a distance: at most `MAX_DISTANCE` bits, or 128 places (`MinEqual::places`).
/// A pair as bytes that sort like its line: the key of f, the key of q, the distance (1 byte).
///
/// The key of a number is a 0 byte and its eight bytes, most significant first. The key of any other name is a 1 byte, its text, and a 0 byte as the
/// end. Bytes of the text that are 0 or 1 are escaped: a 1 byte before a 1 or a 2.
type MatchRecord<'a> = &'a [u8];

const NUMBER: u8 = 0;
const TEXT: u8 = 1;
/// End of a text, and the byte before an escaped one.
const END: u8 = 0;
const ESCAPE: u8 = 1;
/// Bytes that one thread collects before it takes the lock.
const LARGE: usize = 1 << 20;

/// All pairs found so far. Threads share it, each with its own [`MatchBuffer`].
pub(super) struct SharedMatches {
    matches: Mutex<JoinMatches>,
    /// The first failure of any thread to hand over its pairs.
    failed: OnceLock<io::Error>,
}

impl SharedMatches {
    /// Creates pairs that are sorted with `budget` bytes of memory. With a checkpoint and its file, another join can resume from them, and they include
    /// those of an earlier one.
    pub(super) fn new(
        folder: &Path,
        budget: u64,
        threads: usize,
        kept: Option<(JoinCheckpoint, File)>,
    ) -> Self {
        // Vectors double when they grow.
        let pairs = FrameSort::new(budget / 2, folder).threads(threads);
        let (pairs, kept) = match kept {
            Some((kept, file)) => (pairs.resumed(file, kept.state.runs.clone()), Some(kept)),
            None => (pairs, None),
        };
        Self {
            matches: Mutex::new(JoinMatches {
                folder: folder.to_owned(),
                threads,
                pairs,
                kept,
            }),
            failed: OnceLock::new(),
        }
    }

    pub(super) fn buffer(&self) -> MatchBuffer<'_> {
        MatchBuffer {
            found: Vec::new(),
            shared: self,
        }
    }

    /// Tells whether a thread could not hand over its pairs. Pairs are lost then, so finding more is of no use.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.get().is_some()
    }

    /// Returns the state of an interrupted join.
    pub(super) fn state(&self) -> JoinState {
        let matches = lock(&self.matches);
        let state = matches.kept.as_ref().map(|kept| kept.state.clone());
        state.unwrap_or_default()
    }

    /// Saves all pairs so far as complete for some tables and for the first streamed fingerprints. Does nothing once pairs are lost, because a resumed
    /// join would miss them.
    pub(super) fn keep(
        &self,
        tables: JoinedTables,
        streamed: StreamedPart,
    ) -> Result<(), BatchError> {
        let mut matches = lock(&self.matches);
        match self.has_failed() {
            true => Ok(()),
            false => matches.keep(tables, streamed),
        }
    }

    /// Returns all pairs, unless some are lost.
    pub(super) fn into_inner(self) -> Result<JoinMatches, BatchError> {
        let matches = into_inner(self.matches);
        match self.failed.into_inner() {
            Some(error) => Err(BatchError::temporary(&matches.folder)(error)),
            None => Ok(matches),
        }
    }
}

/// Buffer of the pairs that one thread found.
pub(super) struct MatchBuffer<'a> {
    /// Records, each after its length.
    found: Vec<u8>,
    shared: &'a SharedMatches,
}

impl MatchBuffer<'_> {
    /// Adds a pair of F and Q.
    pub(super) fn push(&mut self, f: FingerprintName<'_>, q: FingerprintName<'_>, distance: u32) {
        let start = self.begin();
        self.key(f);
        self.key(q);
        self.end(start, distance);
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

    /// Adds a pair of fingerprints together with a name for the second.
    pub(super) fn push_codes<W: Word>(
        &mut self,
        codes: [W; 2],
        name: FingerprintName<'_>,
        distance: u32,
    ) {
        let start = self.begin();
        // Both fingerprints first, so that all records of a pair are adjacent, the one with the smallest name first.
        for code in codes {
            // Most significant byte first, so that bytes sort as the numbers do.
            let bytes = code.to_u128().to_be_bytes();
            self.found
                .extend_from_slice(&bytes[16 - code_bytes::<W>()..]);
        }
        self.key(name);
        self.end(start, distance);
    }

    /// Makes room for the length of a record. Returns where the record starts.
    fn begin(&mut self) -> usize {
        self.found.extend_from_slice(&[0; LENGTH]);
        self.found.len()
    }

    fn end(&mut self, start: usize, distance: u32) {
        self.found.push(distance as u8);
        let length = (self.found.len() - start) as u32;
        self.found[start - LENGTH..start].copy_from_slice(&length.to_le_bytes());
        if self.found.len() >= LARGE {
            self.append();
        }
    }

    /// Appends the key of a name.
    fn key(&mut self, name: FingerprintName<'_>) {
        match name {
            // Use the digits, which results show, so that it sorts among other texts.
            FingerprintName::Fingerprint(code) => self.text(&code.to_string()),
            FingerprintName::Text(text) => self.text(text),
            FingerprintName::Number(number) => {
                self.found.push(NUMBER);
                self.found.extend_from_slice(&number.to_be_bytes());
            }
        }
    }

    fn text(&mut self, text: &str) {
        self.found.push(TEXT);
        match text.bytes().any(|byte| byte <= ESCAPE) {
            false => self.found.extend_from_slice(text.as_bytes()),
            true => {
                for byte in text.bytes() {
                    match byte <= ESCAPE {
                        true => self.found.extend_from_slice(&[ESCAPE, byte + 1]),
                        false => self.found.push(byte),
                    }
                }
            }
        }
        self.found.push(END);
    }

    /// Hands over the pairs found so far.
    pub(super) fn append(&mut self) {
        // Under the lock until the failure is known, so that no state is saved without the lost pairs.
        let mut matches = lock(&self.shared.matches);
        if let Err(error) = matches.pairs.append(&mut self.found) {
            // Later errors follow from the first.
            let _ = self.shared.failed.set(error);
            // They are lost. Kept, they would be handed over again with every further pair.
            self.found = Vec::new();
        }
    }
}

impl Drop for MatchBuffer<'_> {
    fn drop(&mut self) {
        self.append();
    }
}

/// Returns the bytes of a fingerprint in a record.
fn code_bytes<W: Word>() -> usize {
    W::BITS as usize / 8
}

/// Splits the name off the front of a record.
fn split_name(record: MatchRecord<'_>) -> (ListedId<'_>, &[u8]) {
    let (kind, rest) = record.split_at(1);
    if kind == [NUMBER] {
        let (number, rest) = rest.split_at(8);
        let number = number.try_into().map_or(0, u64::from_be_bytes);
        return (ListedId::Number(number), rest);
    }
    // There always is an end, because `MatchBuffer` wrote the record.
    let end = rest.iter().position(|&byte| byte == END);
    let (text, rest) = rest.split_at(end.unwrap_or(rest.len() - 1));
    (ListedId::Text(text_of(text)), &rest[1..])
}

/// Returns a text of which some bytes may be escaped.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    if !bytes.contains(&ESCAPE) {
        return String::from_utf8_lossy(bytes);
    }
    let (mut text, mut bytes) = (Vec::new(), bytes.iter());
    while let Some(&byte) = bytes.next() {
        text.push(match byte {
            ESCAPE => bytes.next().map_or(byte, |escaped| escaped - 1),
            byte => byte,
        });
    }
    String::from_utf8_lossy(&text).into_owned().into()
}

/// Numbers of pairs that were written, and of bytes on disk for sorting them.
pub(super) struct WrittenPairs {
    pub(super) count: u64,
    pub(super) temporary_bytes: u64,
}

/// Pairs that were handed over.
pub(super) struct JoinMatches {
    folder: PathBuf,
    /// Number of threads that sort and write.
    threads: usize,
    pairs: FrameSort,
    /// State of the join, if it can be resumed.
    kept: Option<JoinCheckpoint>,
}

impl JoinMatches {
    fn keep(&mut self, tables: JoinedTables, streamed: StreamedPart) -> Result<(), BatchError> {
        let Some(kept) = &mut self.kept else {
            return Ok(());
        };
        // Pairs that are only in memory would be lost with the process, and those on disk must be there before the state refers to them.
        self.pairs
            .spill()
            .and_then(|()| self.pairs.sync())
            .map_err(BatchError::temporary(&self.folder))?;
        kept.save(self.pairs.runs(), tables, streamed)
    }

    /// Writes a line for each distinct pair, in order.
    pub(super) fn write(
        self,
        sides: PairSides,
        out: &mut dyn Write,
    ) -> Result<WrittenPairs, BatchError> {
        let temporary = BatchError::temporary(&self.folder);
        let sorted = self.pairs.finish().map_err(&temporary)?;
        let temporary_bytes = sorted.temporary_bytes();
        let count = match sorted {
            SortedFrames::Held(held) => write_held(&held, sides, self.threads, out)?,
            // A merge of runs yields one record at a time, which leaves no block that several threads could format.
            mut merged @ SortedFrames::Merged(..) => {
                let mut count = 0;
                while let Some(record) = merged.next().transpose().map_err(&temporary)? {
                    sides.write(&record, out).map_err(unwritten)?;
                    count += 1;
                }
                count
            }
        };
        out.flush().map_err(unwritten)?;
        Ok(WrittenPairs {
            count,
            temporary_bytes,
        })
    }

    /// Visits each pair of fingerprints added by [`MatchBuffer::push_codes`], with its smallest name and the distance.
    pub(super) fn for_each_smallest_name<W: Word>(
        self,
        mut visit: impl FnMut([W; 2], FingerprintName<'_>, u32) -> Result<(), BatchError>,
    ) -> Result<(), BatchError> {
        let temporary = BatchError::temporary(&self.folder);
        let mut sorted = self.pairs.finish().map_err(&temporary)?;
        let mut last: Option<[W; 2]> = None;
        while let Some(record) = sorted.next().transpose().map_err(&temporary)? {
            let (first, rest) = record.split_at(code_bytes::<W>());
            let (second, rest) = rest.split_at(code_bytes::<W>());
            let codes = [first, second].map(|bytes| {
                let mut wide = [0; 16];
                wide[16 - bytes.len()..].copy_from_slice(bytes);
                W::from_u128(u128::from_be_bytes(wide))
            });
            // Records are sorted by both fingerprints and then by name, so the first of a pair has the smallest name.
            if last.replace(codes) == Some(codes) {
                continue;
            }
            let (id, tail) = split_name(rest);
            let name = match &id {
                ListedId::Number(number) => FingerprintName::Number(*number),
                ListedId::Text(text) => FingerprintName::Text(text),
            };
            visit(codes, name, tail[0].into())?;
        }
        Ok(())
    }
}

/// Writes the lines of pairs in memory, which several threads format. Returns the number of lines.
fn write_held(
    held: &HeldFrames,
    sides: PairSides,
    threads: usize,
    out: &mut dyn Write,
) -> Result<u64, BatchError> {
    /// Number of lines that a thread formats at once.
    const LINES: usize = 1 << 13;
    let all = held.len();
    let made = |from: usize| {
        let (mut lines, mut count) = (Vec::new(), 0);
        for record in (from..all.min(from + LINES)).filter_map(|at| held.get(at)) {
            sides.write(record, &mut lines)?;
            count += 1;
        }
        Ok((lines, count))
    };
    let mut count = 0;
    // A round of all threads at a time, so that only so many formatted lines are in memory.
    for start in (0..all).step_by(LINES * threads) {
        let parts = (all - start).div_ceil(LINES).min(threads);
        let starts = (0..parts).map(|part| start + part * LINES);
        for made in map_parallel_limited(starts, threads, made) {
            let (lines, written) = made.map_err(unwritten)?;
            out.write_all(&lines).map_err(unwritten)?;
            count += written;
        }
    }
    Ok(count)
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

impl PairSides {
    /// Writes the line of a pair.
    fn write(self, record: MatchRecord<'_>, out: &mut dyn Write) -> io::Result<()> {
        let (f, rest) = split_name(record);
        let (q, tail) = split_name(rest);
        let distance = tail[0];
        let line = match self {
            Self::FQ => MatchLine::Two { f, q, distance },
            Self::AB => MatchLine::One {
                a: f,
                b: q,
                distance,
            },
        };
        write_line(out, &line)
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
        let (kept, _) = JoinCheckpoint::open(&checkpoint, String::new(), 0).unwrap();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let matches = SharedMatches::new(folder.path(), 0, 1, Some((kept, full)));
        let append = || {
            let mut found = matches.buffer();
            // More than are held at once, whatever the budget.
            for number in 0..10_000 {
                found.push(
                    FingerprintName::Number(number),
                    FingerprintName::Number(2),
                    3,
                );
            }
        };
        append();
        assert!(!matches.has_failed());
        append();
        let error = matches.failed.get().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        // The pairs are lost, so a resumed join must find them again.
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
            let matches = SharedMatches::new(folder.path(), 1 << 30, threads, None);
            let mut found = matches.buffer();
            // Each pair occurs three times, so that equal ones lie on both sides of the boundaries between parts.
            for number in (0..90_000_u64).map(|number| number * 7_919 % 30_000) {
                let name = FingerprintName::Number(number);
                found.push(name, FingerprintName::Text("q"), 2);
            }
            drop(found);
            let mut out = Vec::new();
            let matches = matches.into_inner().unwrap();
            let written = matches.write(PairSides::FQ, &mut out).unwrap();
            (written.count, out)
        };
        let one = written(1);
        assert_eq!(one.0, 30_000);
        assert!(written(3) == one && written(2) == one);
    }

    proptest! {
        #[test]
        fn pairs_come_out_sorted_and_once_from_memory_and_from_disk(
            pairs in prop::collection::vec(("[ab\u{0}\u{1}\u{2}é]{0,10}", 0..400_u64, 0..3_u32), 0..400),
            spills in any::<bool>(),
            threads in 1..4_usize,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let matches = SharedMatches::new(folder.path(), 1 << 20, threads, None);
            for some in pairs.chunks(50) {
                let mut found = matches.buffer();
                for (f, q, distance) in some {
                    found.push(FingerprintName::Text(f), FingerprintName::Number(*q), *distance);
                }
                drop(found);
                if spills {
                    lock(&matches.matches).pairs.spill().unwrap();
                }
            }
            let mut out = Vec::new();
            let matches = matches.into_inner().unwrap();
            let WrittenPairs { count, temporary_bytes } = matches.write(PairSides::FQ, &mut out).unwrap();
            prop_assert_eq!(temporary_bytes > 0, spills && !pairs.is_empty());
            let mut expected = pairs;
            expected.sort();
            expected.dedup();
            let lines: Vec<String> = expected
                .iter()
                .map(|(f, q, distance)| format!("{{\"f\":{},\"q\":{q},\"distance\":{distance}}}\n", serde_json::to_string(f).unwrap()))
                .collect();
            prop_assert_eq!(count, lines.len() as u64);
            prop_assert_eq!(String::from_utf8(out).unwrap(), lines.concat());
        }
    }
}
