//! Records that arrive in one order and are written in another, in bounded memory.
//!
//! Used for `kept.jsonl` and `removed.jsonl`, which are written in the order of ids. Records are divided into
//! partitions of neighbouring places, which stay in memory while they fit and are written to temporary files otherwise. In the end, all
//! threads sort partitions, which are written one after another. A record that is too long to be held is written to a separate
//! file at once and copied from there.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::locks::lock;
use crate::parallel::in_order;
use crate::spill::partitions::PartitionedFile;
use crate::spill::table_column::TableColumn;
use crate::spill::temporary_file;

/// A record, or a part of one, in the file of long records.
struct LongRecord {
    offset: u64,
    length: u64,
}

/// Records that are too long to be held in memory.
#[derive(Default)]
struct LongRecords {
    records: TableColumn<LongRecord>,
    file: Option<File>,
    end: u64,
}

impl LongRecords {
    /// Adds a record and returns its number.
    fn add(&mut self, folder: &Path, bytes: &[u8]) -> io::Result<u32> {
        let file = temporary_file(&mut self.file, folder)?;
        file.write_all_at(bytes, self.end)?;
        let number = self.records.len() as u32;
        self.records.push(LongRecord {
            offset: self.end,
            length: bytes.len() as u64,
        });
        self.end += bytes.len() as u64;
        Ok(number)
    }

    fn copy(&self, number: usize, out: &mut impl Write) -> io::Result<()> {
        let record = &self.records[number];
        let mut file = self.file.as_ref().expect("a record lies in it");
        file.seek(SeekFrom::Start(record.offset))?;
        io::copy(&mut file.take(record.length), out).map(drop)
    }
}

/// Expected size of all outputs together.
pub(crate) struct ExpectedRecords {
    // At least the number of places in use: a larger place would fall into the partitions of the next output. `bytes` is only an estimate.
    /// Number of places in each output.
    pub(crate) places: usize,
    pub(crate) bytes: u64,
}

/// Arranges records as described in the module's header. It is shared between threads, and its outputs share one budget, however records are
/// distributed among them. Memory: the budget, and while partitions are written as much again, or four times the largest one.
pub(crate) struct RecordArranger {
    folder: PathBuf,
    frames: PartitionedFile<u8>,
    /// Number of partitions of each output.
    parts: usize,
    places_per_part: usize,
    /// Maximum number of bytes of a part of a record that is held in memory: some times the mean, because the records of a partition are read back
    /// together.
    long: usize,
    budget: u64,
    threads: usize,
    longs: Mutex<LongRecords>,
}

/// Number of bytes before each part of a record.
const FRAME_HEADER: usize = 8;

// A partition is read back and sorted as a whole, so a single record must not decide how much memory that takes.
/// Maximum number of bytes of a part that is held in memory, whatever the mean.
const LONG: usize = 1 << 20;

/// Number of bytes of a part that may always be held in memory: a separate read costs more.
const SHORT: usize = 1 << 12;

/// Number of times the mean length up to which a record is held in memory.
const TIMES_MEAN: u64 = 8;

/// A sorted partition.
struct ArrangedPart {
    bytes: Vec<u8>,
    /// For each long record, the position in `bytes` before which it is written, and its number.
    longs: Vec<(usize, usize)>,
}

impl RecordArranger {
    /// Creates an arranger for `outputs` outputs that holds at most `budget` bytes and sorts with `threads` threads.
    ///
    /// # Errors
    /// Returns an error if no file can be created in `folder`.
    pub(crate) fn new(
        folder: &Path,
        outputs: usize,
        expected: &ExpectedRecords,
        budget: u64,
        threads: usize,
    ) -> io::Result<Self> {
        let ExpectedRecords { places, bytes } = *expected;
        // For short records, most of the memory is overhead.
        let bytes = bytes + places as u64 * (FRAME_HEADER + size_of::<FramePosition>()) as u64;
        // Partitions are read back whole, so together those of all threads take at most an eighth of the budget; and sorting one
        // accesses it at random, so it should fit in the cache. One output may get all records.
        let fitting = bytes.saturating_mul(8 * threads as u64) / budget.max(1);
        let parts = fitting.max(bytes >> 20).clamp(1, 4096) as usize;
        let long = TIMES_MEAN.saturating_mul(bytes) / places.max(1) as u64;
        Ok(Self {
            folder: folder.to_owned(),
            frames: PartitionedFile::with_parts(folder, outputs * parts, budget)?,
            parts,
            // Not 0, since places are divided by it.
            places_per_part: places.div_ceil(parts).max(1),
            long: long.clamp(SHORT as u64, LONG as u64) as usize,
            budget,
            threads,
            longs: Mutex::default(),
        })
    }

    /// Appends bytes to the record at a place of an output. The parts of a record must be added in order, by one thread.
    pub(crate) fn add(&self, output: usize, place: u32, bytes: &[u8]) -> io::Result<()> {
        self.add_whole(output, place, [bytes, b""])
    }

    /// Appends a line as [`RecordArranger::add`] does, and ends it.
    pub(crate) fn add_line(&self, output: usize, place: u32, line: &[u8]) -> io::Result<()> {
        self.add_whole(output, place, [line, b"\n"])
    }

    fn add_whole(&self, output: usize, place: u32, bytes: [&[u8]; 2]) -> io::Result<()> {
        let length = bytes[0].len() + bytes[1].len();
        if length > self.long {
            // Each part gets a frame of its own, so the line break still follows its line.
            let mut parts = bytes.into_iter().filter(|part| !part.is_empty());
            return parts.try_for_each(|part| match part.len() > SHORT {
                true => self.add_long(output, place, part),
                false => self.add_framed(output, place, part.len(), [part, b""]),
            });
        }
        self.add_framed(output, place, length, bytes)
    }

    /// Appends a part that is too long to be held in memory, as [`RecordArranger::add`] does for others.
    pub(crate) fn add_long(&self, output: usize, place: u32, bytes: &[u8]) -> io::Result<()> {
        // A frame in memory with the number of the part keeps its place among the other parts of the record.
        let number = lock(&self.longs).add(&self.folder, bytes)?;
        // Frames in memory are never this long, so the length marks a number.
        self.add_framed(output, place, LONG + 1, [&number.to_le_bytes(), b""])
    }

    fn add_framed(
        &self,
        output: usize,
        place: u32,
        length: usize,
        bytes: [&[u8]; 2],
    ) -> io::Result<()> {
        // The partitions of an output are adjacent, so `finish` takes a range of them.
        let part = output * self.parts + place as usize / self.places_per_part;
        let framed = FRAME_HEADER + bytes[0].len() + bytes[1].len();
        self.frames.push(part, framed, |frames| {
            // Place and length in 4 bytes each, then the bytes.
            frames.extend_from_slice(&place.to_le_bytes());
            frames.extend_from_slice(&(length as u32).to_le_bytes());
            (bytes.iter()).for_each(|bytes| frames.extend_from_slice(bytes));
        })
    }

    /// Writes all records of an output in order, and drops them.
    pub(crate) fn finish(&self, output: usize, out: &mut impl Write) -> io::Result<()> {
        // Nothing is added any more, so no thread waits for this lock while the output is written.
        let longs = lock(&self.longs);
        let parts: Vec<usize> = (output * self.parts..(output + 1) * self.parts).collect();
        let largest = parts.iter().map(|&part| self.frames.records(part)).max();
        // A thread has a partition in work, in its own order and sorted, and two waiting. Partitions are not of equal size.
        let fitting = self.budget / (4 * largest.unwrap_or(0)).max(1);
        let threads = fitting.clamp(1, self.threads.max(1) as u64) as usize;
        // In blocks: a frame is whole within its block, and nothing has to be copied into one vector.
        let arranged = |part| Ok(arrange(self.frames.take_blocks(part)?));
        // A partition holds neighbouring places, so writing the partitions one after another keeps the order of places.
        in_order(parts, threads, arranged, |part: ArrangedPart| {
            let mut written = 0;
            for (at, number) in part.longs {
                out.write_all(&part.bytes[written..at])?;
                written = at;
                longs.copy(number, out)?;
            }
            out.write_all(&part.bytes[written..])
        })
    }
}

// The derived order compares the fields from top to bottom, so their order is the order of the output.
/// A frame of a partition.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct FramePosition {
    place: u32,
    /// Block numbers, and positions in a block, ascend in the order of arrival.
    block: u32,
    at: usize,
}

/// Sorts the frames of a partition.
fn arrange(blocks: Vec<Vec<u8>>) -> ArrangedPart {
    let word = |block: &[u8], at: usize| {
        u32::from_le_bytes(block[at..at + 4].try_into().expect("frames are whole"))
    };
    let mut index = Vec::new();
    for (number, block) in (0..).zip(&blocks) {
        let mut at = 0;
        while at < block.len() {
            index.push(FramePosition {
                place: word(block, at),
                block: number,
                at,
            });
            let length = word(block, at + 4) as usize;
            // The frame of a long record holds only its number.
            at += FRAME_HEADER + if length > LONG { 4 } else { length };
        }
    }
    // By place, then by arrival: the parts of one record keep the order in which they were added.
    index.sort_unstable();
    let bytes = blocks.iter().map(Vec::len).sum::<usize>();
    let mut arranged = ArrangedPart {
        bytes: Vec::with_capacity(bytes - FRAME_HEADER * index.len()),
        longs: Vec::new(),
    };
    for FramePosition { block, at, .. } in index {
        let block = &blocks[block as usize];
        let length = word(block, at + 4) as usize;
        match length > LONG {
            true => {
                let number = word(block, at + FRAME_HEADER) as usize;
                arranged.longs.push((arranged.bytes.len(), number));
            }
            false => {
                let bytes = &block[at + FRAME_HEADER..][..length];
                arranged.bytes.extend_from_slice(bytes);
            }
        }
    }
    arranged
}

#[cfg(test)]
mod tests {
    use lookalike_hamming::threads::map_parallel;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn records_leave_in_order(
            records in prop::collection::vec((0..2_usize, 0..300_usize), 0..200),
            seed in any::<u32>(),
            budget in prop_oneof![Just(0_u64), Just(700), Just(1 << 30)],
            threads in 1..5_usize,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let expected = ExpectedRecords {
                places: records.len(),
                bytes: records.iter().map(|&(_, length)| length as u64).sum(),
            };
            let arranger = RecordArranger::new(folder.path(), 2, &expected, budget, threads).unwrap();
            let record = |place: usize| vec![b'a' + (place % 26) as u8; records[place].1];
            let mut order: Vec<usize> = (0..records.len()).collect();
            order.sort_by_key(|&i| (i as u32).wrapping_mul(seed | 1));
            map_parallel(order.chunks(order.len().div_ceil(threads).max(1)), |own| {
                for &place in own {
                    let (output, bytes) = (records[place].0, record(place));
                    let cut = bytes.len() / 3;
                    arranger.add(output, place as u32, &bytes[..cut]).unwrap();
                    arranger.add_line(output, place as u32, &bytes[cut..]).unwrap();
                }
            });
            let record = |place: usize| [record(place), b"\n".to_vec()].concat();
            for output in 0..2 {
                let mut out = Vec::new();
                arranger.finish(output, &mut out).unwrap();
                let own = (0..records.len()).filter(|&place| records[place].0 == output);
                prop_assert_eq!(out, own.flat_map(record).collect::<Vec<u8>>());
            }
        }
    }

    #[test]
    fn neighbouring_records_much_longer_than_the_mean_were_read_back_together() {
        const BUDGET: u64 = 2 << 20;
        const RECORDS: u32 = 1100;
        let folder = tempfile::tempdir().unwrap();
        let record = |place: u32| {
            let length = if place < 100 { 100_000 } else { 100 };
            vec![place as u8; length]
        };
        let expected = ExpectedRecords {
            places: RECORDS as usize,
            bytes: (0..RECORDS).map(|place| record(place).len() as u64).sum(),
        };
        let arranger = RecordArranger::new(folder.path(), 1, &expected, BUDGET, 2).unwrap();
        let places = || (0..RECORDS).rev();
        places().for_each(|place| arranger.add(0, place, &record(place)).unwrap());
        let held = (0..arranger.parts).map(|part| arranger.frames.records(part));
        let most = held.max().unwrap();
        assert!(most < BUDGET / 4, "{most} bytes in a partition");
        let mut out = Vec::new();
        arranger.finish(0, &mut out).unwrap();
        assert!(out == (0..RECORDS).flat_map(record).collect::<Vec<u8>>());
    }

    #[test]
    fn long_records_do_not_pass_through_memory() {
        let folder = tempfile::tempdir().unwrap();
        let expected = ExpectedRecords {
            places: 3,
            bytes: 10,
        };
        let arranger = RecordArranger::new(folder.path(), 1, &expected, 100, 2).unwrap();
        let long = vec![7; LONG + 5];
        arranger.add(0, 2, b"last").unwrap();
        arranger.add(0, 1, &long).unwrap();
        assert!(arranger.frames.records(0) < 100);
        arranger.add(0, 1, b"tail").unwrap();
        arranger.add(0, 0, b"first").unwrap();
        let mut out = Vec::new();
        arranger.finish(0, &mut out).unwrap();
        assert_eq!(out, [b"first".as_slice(), &long, b"tail", b"last"].concat());
    }
}
