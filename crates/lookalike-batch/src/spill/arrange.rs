//! Records that arrive in input order and leave in another, in bounded memory.
//!
//! Stands in front of `kept.jsonl` and `removed.jsonl`, which are written in the order of ids. Records are scattered
//! into partitions of neighbouring places, in memory while they fit and in one temporary file beyond; then one
//! partition after another is put in order and written. A record that is too long to be held goes to a file of its
//! own at once and is copied from there.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Frames of one partition: place and length in 4 bytes each, then the bytes.
#[derive(Default)]
struct FramePartition {
    frames: Vec<u8>,
    extents: Vec<(u64, usize)>,
}

/// A record, or a part of one, that lies in the file of long records.
struct LongRecord {
    place: u32,
    offset: u64,
    length: u64,
}

/// See the module's header. Memory: the budget, and while a partition is written that partition.
pub(crate) struct RecordArranger {
    folder: PathBuf,
    parts: Vec<FramePartition>,
    places_per_part: usize,
    buffered: usize,
    budget: usize,
    spill: Option<File>,
    end: u64,
    longs: Vec<LongRecord>,
    long_file: Option<File>,
    long_end: u64,
}

/// Longer records do not go through memory.
const LONG: usize = 1 << 20;

impl RecordArranger {
    /// For `places` records of about `bytes` in all, of which at most `budget` bytes are held.
    pub(crate) fn new(folder: &Path, places: usize, bytes: u64, budget: u64) -> Self {
        // A partition is read back whole, so it gets a quarter of the budget at most; and it is put in order by
        // jumping about in it, so it should fit the cache.
        let fitting = bytes.saturating_mul(4) / budget.max(1);
        let parts = fitting.max(bytes >> 20).clamp(1, 4096) as usize;
        Self {
            folder: folder.to_owned(),
            places_per_part: places.div_ceil(parts).max(1),
            parts: (0..parts).map(|_| FramePartition::default()).collect(),
            buffered: 0,
            budget: usize::try_from(budget).unwrap_or(usize::MAX),
            spill: None,
            end: 0,
            longs: Vec::new(),
            long_file: None,
            long_end: 0,
        }
    }

    /// Adds bytes to the record at `place`; parts of one record come in order.
    pub(crate) fn add(&mut self, place: u32, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > LONG {
            return self.add_long(place, bytes);
        }
        let part = &mut self.parts[place as usize / self.places_per_part];
        part.frames.extend_from_slice(&place.to_le_bytes());
        part.frames
            .extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        part.frames.extend_from_slice(bytes);
        self.buffered += bytes.len() + 8;
        if self.buffered > self.budget {
            self.spill()
        } else {
            Ok(())
        }
    }

    /// As [`RecordArranger::add`] for a part of a record that is too long to be held.
    pub(crate) fn add_long(&mut self, place: u32, bytes: &[u8]) -> io::Result<()> {
        // A frame in memory that names the part keeps its place among the record's other parts.
        let file = match &self.long_file {
            Some(file) => file,
            None => self.long_file.insert(tempfile::tempfile_in(&self.folder)?),
        };
        file.write_all_at(bytes, self.long_end)?;
        self.longs.push(LongRecord {
            place,
            offset: self.long_end,
            length: bytes.len() as u64,
        });
        self.long_end += bytes.len() as u64;
        let marker = (self.longs.len() - 1) as u32;
        let part = &mut self.parts[place as usize / self.places_per_part];
        part.frames.extend_from_slice(&place.to_le_bytes());
        part.frames
            .extend_from_slice(&(LONG as u32 + 1).to_le_bytes());
        part.frames.extend_from_slice(&marker.to_le_bytes());
        self.buffered += 12;
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        if self.spill.is_none() {
            self.spill = Some(tempfile::tempfile_in(&self.folder)?);
        }
        let file = self.spill.as_ref().expect("opened above");
        for part in self.parts.iter_mut().filter(|part| !part.frames.is_empty()) {
            file.write_all_at(&part.frames, self.end)?;
            part.extents.push((self.end, part.frames.len()));
            self.end += part.frames.len() as u64;
            part.frames = Vec::new();
        }
        self.buffered = 0;
        Ok(())
    }

    /// Writes all records in order.
    pub(crate) fn finish(mut self, out: &mut impl Write) -> io::Result<()> {
        for part in std::mem::take(&mut self.parts) {
            let mut frames = Vec::new();
            for &(offset, length) in &part.extents {
                let start = frames.len();
                frames.resize(start + length, 0);
                self.spill
                    .as_ref()
                    .expect("extents lie in it")
                    .read_exact_at(&mut frames[start..], offset)?;
            }
            let frames = if frames.is_empty() {
                part.frames
            } else {
                [frames, part.frames].concat()
            };
            self.write_part(&frames, out)?;
        }
        Ok(())
    }

    fn write_part(&self, frames: &[u8], out: &mut impl Write) -> io::Result<()> {
        let word = |at: usize| {
            u32::from_le_bytes(frames[at..at + 4].try_into().expect("frames are whole"))
        };
        let mut index: Vec<(u32, usize)> = Vec::new();
        let mut at = 0;
        while at < frames.len() {
            index.push((word(at), at));
            let length = word(at + 4) as usize;
            at += 8 + if length > LONG { 4 } else { length };
        }
        index.sort_unstable();
        for (place, at) in index {
            let length = word(at + 4) as usize;
            if length > LONG {
                self.copy_long(&self.longs[word(at + 8) as usize], place, out)?;
            } else {
                out.write_all(&frames[at + 8..at + 8 + length])?;
            }
        }
        Ok(())
    }

    fn copy_long(&self, long: &LongRecord, place: u32, out: &mut impl Write) -> io::Result<()> {
        debug_assert_eq!(long.place, place, "markers name their record");
        let mut file = self.long_file.as_ref().expect("long records lie in it");
        file.seek(SeekFrom::Start(long.offset))?;
        io::copy(&mut file.take(long.length), out).map(drop)
    }
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
        ) {
            let folder = tempfile::tempdir().unwrap();
            let bytes = lengths.iter().sum::<usize>() as u64;
            let mut arranger = RecordArranger::new(folder.path(), lengths.len(), bytes, budget);
            let record = |place: usize| vec![b'a' + (place % 26) as u8; lengths[place]];
            let mut order: Vec<usize> = (0..lengths.len()).collect();
            order.sort_by_key(|&i| (i as u32).wrapping_mul(seed | 1));
            for place in order {
                let bytes = record(place);
                let cut = bytes.len() / 3;
                arranger.add(place as u32, &bytes[..cut]).unwrap();
                arranger.add(place as u32, &bytes[cut..]).unwrap();
            }
            let mut out = Vec::new();
            arranger.finish(&mut out).unwrap();
            prop_assert_eq!(out, (0..lengths.len()).flat_map(record).collect::<Vec<u8>>());
        }
    }

    #[test]
    fn long_records_do_not_pass_through_memory() {
        let folder = tempfile::tempdir().unwrap();
        let mut arranger = RecordArranger::new(folder.path(), 3, 10, 100);
        let long = vec![7; LONG + 5];
        arranger.add(2, b"last").unwrap();
        arranger.add(1, &long).unwrap();
        assert!(arranger.buffered < 100);
        arranger.add(1, b"tail").unwrap();
        arranger.add(0, b"first").unwrap();
        let mut out = Vec::new();
        arranger.finish(&mut out).unwrap();
        assert_eq!(out, [b"first".as_slice(), &long, b"tail", b"last"].concat());
    }
}
