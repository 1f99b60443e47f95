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
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::parallel::in_order;
use crate::spill::partitions::{into_inner, lock};

/// Frames of one partition: place and length in 4 bytes each, then the bytes.
#[derive(Default)]
struct FramePartition {
    frames: Vec<u8>,
    extents: Vec<(u64, usize)>,
}

impl FramePartition {
    /// Begins a frame of so many bytes.
    fn begin(&mut self, place: u32, length: usize) {
        self.frames.extend_from_slice(&place.to_le_bytes());
        self.frames
            .extend_from_slice(&(length as u32).to_le_bytes());
    }
}

/// A record, or a part of one, that lies in the file of long records.
struct LongRecord {
    offset: u64,
    length: u64,
}

/// A file that grows.
#[derive(Default)]
struct GrowingFile {
    file: Option<File>,
    end: u64,
}

impl GrowingFile {
    /// Appends bytes; returns where they begin.
    fn append(&mut self, folder: &Path, bytes: &[u8]) -> io::Result<u64> {
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(tempfile::tempfile_in(folder)?),
        };
        let start = self.end;
        file.write_all_at(bytes, start)?;
        self.end += bytes.len() as u64;
        Ok(start)
    }

    fn get(&self) -> &File {
        self.file.as_ref().expect("something lies in it")
    }
}

/// Records that are too long to be held.
#[derive(Default)]
struct LongRecords {
    records: Vec<LongRecord>,
    file: GrowingFile,
}

/// See the module's header. Shared between threads. Memory: the budget, and while partitions are written three of them a thread.
pub(crate) struct RecordArranger {
    folder: PathBuf,
    parts: Vec<Mutex<FramePartition>>,
    places_per_part: usize,
    buffered: AtomicUsize,
    budget: usize,
    threads: usize,
    spill: Mutex<GrowingFile>,
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
    pub(crate) fn new(
        folder: &Path,
        places: usize,
        bytes: u64,
        budget: u64,
        threads: usize,
    ) -> Self {
        // Partitions that are read back whole are a quarter of the budget at most; and each is put in order by
        // jumping about in it, so it should fit the cache.
        let fitting = bytes.saturating_mul(4 * threads as u64) / budget.max(1);
        let parts = fitting.max(bytes >> 20).clamp(1, 4096) as usize;
        Self {
            folder: folder.to_owned(),
            places_per_part: places.div_ceil(parts).max(1),
            parts: (0..parts).map(|_| Mutex::default()).collect(),
            buffered: AtomicUsize::new(0),
            budget: usize::try_from(budget).unwrap_or(usize::MAX),
            threads,
            spill: Mutex::default(),
            longs: Mutex::default(),
        }
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
        // Counted before the frame is there: `make_room` of another thread subtracts it, and the count must not
        // pass below zero.
        let is_full = self.count(length + 8);
        let mut part = self.part(place);
        part.begin(place, length);
        bytes
            .iter()
            .for_each(|bytes| part.frames.extend_from_slice(bytes));
        // `make_room` locks the file first and then every part: a part that is still locked would be a
        // deadlock.
        drop(part);
        self.make_room(is_full)
    }

    /// As [`RecordArranger::add`] for a part of a record that is too long to be held.
    pub(crate) fn add_long(&self, place: u32, bytes: &[u8]) -> io::Result<()> {
        // A frame in memory that names the part keeps its place among the record's other parts.
        let mut longs = lock(&self.longs);
        let LongRecords { records, file } = &mut *longs;
        let marker = records.len() as u32;
        records.push(LongRecord {
            offset: file.append(&self.folder, bytes)?,
            length: bytes.len() as u64,
        });
        drop(longs);
        // Place, length and number of the long record, 4 bytes each.
        let is_full = self.count(12);
        let mut part = self.part(place);
        // No frame in memory is as long, so the length says that a number follows.
        part.begin(place, LONG + 1);
        part.frames.extend_from_slice(&marker.to_le_bytes());
        drop(part);
        self.make_room(is_full)
    }

    fn part(&self, place: u32) -> std::sync::MutexGuard<'_, FramePartition> {
        lock(&self.parts[place as usize / self.places_per_part])
    }

    /// Counts bytes before they are in memory, where another thread might send them to the file; true if they are too many.
    fn count(&self, bytes: usize) -> bool {
        self.buffered.fetch_add(bytes, Ordering::Relaxed) + bytes > self.budget
    }

    /// Sends all that is in memory to the file if that is full.
    fn make_room(&self, is_full: bool) -> io::Result<()> {
        if !is_full {
            return Ok(());
        }
        let mut spill = lock(&self.spill);
        // Another thread may have done it meanwhile.
        if self.buffered.load(Ordering::Relaxed) <= self.budget {
            return Ok(());
        }
        for part in &self.parts {
            let mut part = lock(part);
            if part.frames.is_empty() {
                continue;
            }
            let frames = std::mem::take(&mut part.frames);
            let start = spill.append(&self.folder, &frames)?;
            part.extents.push((start, frames.len()));
            // A count for a decision, not a guard of the frames: these are under the locks of their parts.
            self.buffered.fetch_sub(frames.len(), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Writes all records in order.
    pub(crate) fn finish(self, out: &mut impl Write) -> io::Result<()> {
        let (spill, longs) = (into_inner(self.spill), into_inner(self.longs));
        let parts = self.parts.into_iter().map(into_inner).collect();
        let arrange = |part| arrange(part, &spill);
        // Neighbouring places share a partition, so partitions one after another are in the order of places.
        in_order(parts, self.threads, arrange, |part: ArrangedPart| {
            let mut written = 0;
            for (at, number) in part.longs {
                out.write_all(&part.bytes[written..at])?;
                written = at;
                let long = &longs.records[number];
                let mut file = longs.file.get();
                file.seek(SeekFrom::Start(long.offset))?;
                io::copy(&mut file.take(long.length), out)?;
            }
            out.write_all(&part.bytes[written..])
        })
    }
}

/// Puts a partition in order.
fn arrange(part: FramePartition, spill: &GrowingFile) -> io::Result<ArrangedPart> {
    let mut frames = part.frames;
    if !part.extents.is_empty() {
        let last = std::mem::take(&mut frames);
        let lengths = part.extents.iter().map(|(_, length)| length);
        frames = Vec::with_capacity(lengths.sum::<usize>() + last.len());
        for (offset, length) in part.extents {
            let start = frames.len();
            frames.resize(start + length, 0);
            spill.get().read_exact_at(&mut frames[start..], offset)?;
        }
        frames.extend_from_slice(&last);
    }
    let word =
        |at: usize| u32::from_le_bytes(frames[at..at + 4].try_into().expect("frames are whole"));
    let mut index: Vec<(u32, usize)> = Vec::new();
    let mut at = 0;
    while at < frames.len() {
        // Positions rise in the order of arrival, across spills too: extents are in order, and what is in
        // memory came last.
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
    Ok(arranged)
}

#[cfg(test)]
mod tests {
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
            let arranger = RecordArranger::new(folder.path(), lengths.len(), bytes, budget, threads);
            let record = |place: usize| vec![b'a' + (place % 26) as u8; lengths[place]];
            let mut order: Vec<usize> = (0..lengths.len()).collect();
            order.sort_by_key(|&i| (i as u32).wrapping_mul(seed | 1));
            std::thread::scope(|scope| {
                for own in order.chunks(order.len().div_ceil(threads).max(1)) {
                    let (arranger, record) = (&arranger, &record);
                    scope.spawn(move || for &place in own {
                        let bytes = record(place);
                        let cut = bytes.len() / 3;
                        arranger.add(place as u32, &bytes[..cut]).unwrap();
                        arranger.add_line(place as u32, &bytes[cut..]).unwrap();
                    });
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
        let arranger = RecordArranger::new(folder.path(), 3, 10, 100, 2);
        let long = vec![7; LONG + 5];
        arranger.add(2, b"last").unwrap();
        arranger.add(1, &long).unwrap();
        assert!(arranger.buffered.load(Ordering::Relaxed) < 100);
        arranger.add(1, b"tail").unwrap();
        arranger.add(0, b"first").unwrap();
        let mut out = Vec::new();
        arranger.finish(&mut out).unwrap();
        assert_eq!(out, [b"first".as_slice(), &long, b"tail", b"last"].concat());
    }
}
