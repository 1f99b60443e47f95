//! Records that arrive in input order and leave in another, in bounded memory.
//!
//! Stands in front of `kept.jsonl` and `removed.jsonl`, which are written in the order of ids. Records are scattered
//! into partitions of neighbouring places, in memory while they fit and in one temporary file beyond; then all threads
//! put partitions in order, which are written one after another. A record that is too long to be held goes to a file of its
//! own at once and is copied from there.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::parallel::in_order;
use crate::spill::partitions::{PartitionedFile, into_inner, lock};

/// Adds a frame: place and length in 4 bytes each, then the bytes.
fn add_frame(frames: &mut Vec<u8>, place: u32, length: usize, bytes: [&[u8]; 2]) {
    frames.extend_from_slice(&place.to_le_bytes());
    frames.extend_from_slice(&(length as u32).to_le_bytes());
    bytes
        .iter()
        .for_each(|bytes| frames.extend_from_slice(bytes));
}

/// A record, or a part of one, that lies in the file of long records.
struct LongRecord {
    offset: u64,
    length: u64,
}

/// Records that are too long to be held.
#[derive(Default)]
struct LongRecords {
    records: Vec<LongRecord>,
    file: Option<File>,
    end: u64,
}

impl LongRecords {
    /// Adds a record; returns its number.
    fn add(&mut self, folder: &Path, bytes: &[u8]) -> io::Result<u32> {
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(tempfile::tempfile_in(folder)?),
        };
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

/// See the module's header. Shared between threads. Memory: the budget, and while partitions are written three of them a thread.
pub(crate) struct RecordArranger {
    folder: PathBuf,
    frames: PartitionedFile<u8>,
    places_per_part: usize,
    threads: usize,
    longs: Mutex<LongRecords>,
}

/// Longer records do not go through memory.
const LONG: usize = 1 << 20;

/// A partition in order.
struct ArrangedPart {
    bytes: Vec<u8>,
    /// Numbers of long records, and before which byte each comes.
    longs: Vec<(usize, usize)>,
}

impl RecordArranger {
    /// For `places` records of about `bytes` in all, of which at most `budget` bytes are held; so many threads put them in order.
    ///
    /// # Errors
    /// When no file can be made in `folder`.
    pub(crate) fn new(
        folder: &Path,
        places: usize,
        bytes: u64,
        budget: u64,
        threads: usize,
    ) -> io::Result<Self> {
        // Partitions that are read back whole are a quarter of the budget at most; and each is put in order by
        // jumping about in it, so it should fit the cache.
        let fitting = bytes.saturating_mul(4 * threads as u64) / budget.max(1);
        let parts = fitting.max(bytes >> 20).clamp(1, 4096) as usize;
        Ok(Self {
            folder: folder.to_owned(),
            frames: PartitionedFile::with_parts(folder, parts, budget)?,
            places_per_part: places.div_ceil(parts).max(1),
            threads,
            longs: Mutex::default(),
        })
    }

    /// Adds bytes to the record at `place`; parts of one record come in order, from one thread.
    pub(crate) fn add(&self, place: u32, bytes: &[u8]) -> io::Result<()> {
        self.add_whole(place, [bytes, b""])
    }

    /// As [`RecordArranger::add`] for a line whose end is missing.
    pub(crate) fn add_line(&self, place: u32, line: &[u8]) -> io::Result<()> {
        self.add_whole(place, [line, b"\n"])
    }

    fn add_whole(&self, place: u32, bytes: [&[u8]; 2]) -> io::Result<()> {
        let length = bytes[0].len() + bytes[1].len();
        if length > LONG {
            let mut parts = bytes.into_iter().filter(|part| !part.is_empty());
            return parts.try_for_each(|part| self.add_long(place, part));
        }
        self.add_framed(place, length, bytes)
    }

    /// As [`RecordArranger::add`] for a part of a record that is too long to be held.
    pub(crate) fn add_long(&self, place: u32, bytes: &[u8]) -> io::Result<()> {
        // A frame in memory that names the part keeps its place among the record's other parts.
        let number = lock(&self.longs).add(&self.folder, bytes)?;
        // No frame in memory is as long, so the length says that a number follows.
        self.add_framed(place, LONG + 1, [&number.to_le_bytes(), b""])
    }

    fn add_framed(&self, place: u32, length: usize, bytes: [&[u8]; 2]) -> io::Result<()> {
        let part = place as usize / self.places_per_part;
        self.frames
            .extend(part, |frames| add_frame(frames, place, length, bytes))
    }

    /// Writes all records in order.
    pub(crate) fn finish(self, out: &mut impl Write) -> io::Result<()> {
        let longs = into_inner(self.longs);
        let parts = (0..self.frames.parts()).collect();
        let arranged = |part| Ok(arrange(&self.frames.take(part)?));
        // Neighbouring places share a partition, so partitions one after another are in the order of places.
        in_order(parts, self.threads, arranged, |part: ArrangedPart| {
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

/// Puts the frames of a partition in order.
fn arrange(frames: &[u8]) -> ArrangedPart {
    let word =
        |at: usize| u32::from_le_bytes(frames[at..at + 4].try_into().expect("frames are whole"));
    let mut index: Vec<(u32, usize)> = Vec::new();
    let mut at = 0;
    while at < frames.len() {
        // Positions rise in the order of arrival.
        index.push((word(at), at));
        let length = word(at + 4) as usize;
        at += 8 + if length > LONG { 4 } else { length };
    }
    // By place, then by position: the parts of one record stay in the order in which they came.
    index.sort_unstable();
    let mut arranged = ArrangedPart {
        bytes: Vec::with_capacity(frames.len() - 8 * index.len()),
        longs: Vec::new(),
    };
    for (_, at) in index {
        let length = word(at + 4) as usize;
        match length > LONG {
            true => {
                let number = word(at + 8) as usize;
                arranged.longs.push((arranged.bytes.len(), number));
            }
            false => {
                let bytes = &frames[at + 8..at + 8 + length];
                arranged.bytes.extend_from_slice(bytes);
            }
        }
    }
    arranged
}

#[cfg(test)]
mod tests {
    use lookalike_hamming::threads::on_each;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn records_leave_in_order(
            lengths in prop::collection::vec(0..300_usize, 0..200),
            seed in any::<u32>(),
            budget in prop_oneof![Just(0_u64), Just(700), Just(1 << 30)],
            threads in 1..5_usize,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let bytes = lengths.iter().sum::<usize>() as u64;
            let arranger = RecordArranger::new(folder.path(), lengths.len(), bytes, budget, threads).unwrap();
            let record = |place: usize| vec![b'a' + (place % 26) as u8; lengths[place]];
            let mut order: Vec<usize> = (0..lengths.len()).collect();
            order.sort_by_key(|&i| (i as u32).wrapping_mul(seed | 1));
            on_each(order.chunks(order.len().div_ceil(threads).max(1)), |own| {
                for &place in own {
                    let bytes = record(place);
                    let cut = bytes.len() / 3;
                    arranger.add(place as u32, &bytes[..cut]).unwrap();
                    arranger.add_line(place as u32, &bytes[cut..]).unwrap();
                }
            });
            let record = |place: usize| [record(place), b"\n".to_vec()].concat();
            let mut out = Vec::new();
            arranger.finish(&mut out).unwrap();
            prop_assert_eq!(out, (0..lengths.len()).flat_map(record).collect::<Vec<u8>>());
        }
    }

    #[test]
    fn long_records_do_not_pass_through_memory() {
        let folder = tempfile::tempdir().unwrap();
        let arranger = RecordArranger::new(folder.path(), 3, 10, 100, 2).unwrap();
        let long = vec![7; LONG + 5];
        arranger.add(2, b"last").unwrap();
        arranger.add(1, &long).unwrap();
        assert!(arranger.frames.records(0) < 100);
        arranger.add(1, b"tail").unwrap();
        arranger.add(0, b"first").unwrap();
        let mut out = Vec::new();
        arranger.finish(&mut out).unwrap();
        assert_eq!(out, [b"first".as_slice(), &long, b"tail", b"last"].concat());
    }
}
