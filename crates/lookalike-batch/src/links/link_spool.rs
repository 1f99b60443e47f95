//! Links of all pages in memory and temporary files, divided by ranges of the numbers that they start with: each range is sorted by itself.

use std::io;
use std::path::Path;
use std::sync::mpsc::SyncSender;

use crate::spill::frame_sort::{FrameSort, SortedFrames, split_frame};
use crate::spill::partitions::{PARTS, PartitionedFile};

/// Number of bytes that are read at a time.
const PIECE: usize = 64 << 10;

/// Memory for links, and how it is divided.
#[derive(Clone, Copy)]
pub(super) struct LinkMemory {
    /// Bytes for links, and again for the fields made from them.
    pub(super) spool: u64,
    /// Bytes that each thread has for sorting.
    pub(super) sort: u64,
    /// Number of threads that sort at the same time.
    pub(super) threads: usize,
    /// Number of ranges.
    pub(super) parts: usize,
}

impl LinkMemory {
    pub(super) fn of(memory: u64, workers: usize) -> Self {
        /// Minimum bytes for the sorts of a thread.
        const MIN_SORT: u64 = 256 << 10;
        /// Minimum bytes of a range in memory: what is written to disk at once.
        const MIN_PART: u64 = 256 << 10;
        // A sort takes half as much again as its budget while its buffers grow. A quarter of the memory is left for links on their way.
        let (spool, sort) = (memory / 4, memory / 6);
        let threads = (sort / MIN_SORT).clamp(1, workers as u64);
        Self {
            spool,
            sort: sort / threads,
            threads: threads as usize,
            parts: (spool / MIN_PART).clamp(1, PARTS as u64) as usize,
        }
    }
}

/// Strings that start with a number, each after its length.
pub(super) struct LinkSpool {
    frames: PartitionedFile<u8>,
    parts: u64,
    /// Number above all numbers.
    numbers: u64,
}

impl LinkSpool {
    /// Creates an empty spool for numbers below `numbers`, which keeps `budget` bytes in memory.
    pub(super) fn new(folder: &Path, parts: usize, numbers: u64, budget: u64) -> io::Result<Self> {
        Ok(Self {
            frames: PartitionedFile::with_parts(folder, parts, budget)?,
            parts: parts as u64,
            numbers,
        })
    }

    /// Adds strings with this number, each after its length.
    pub(super) fn push(&self, number: u32, frames: &[u8]) -> io::Result<()> {
        if frames.is_empty() {
            return Ok(());
        }
        let part = (u64::from(number) * self.parts / self.numbers) as usize;
        let add = |all: &mut Vec<u8>| all.extend_from_slice(frames);
        self.frames.push(part, frames.len(), add)
    }

    /// Returns the strings of a range in ascending order.
    pub(super) fn sorted(&self, part: usize, mut sort: FrameSort) -> io::Result<SortedFrames> {
        let mut rest = Vec::new();
        self.frames.pieces(part, PIECE, &mut |piece: &[u8]| {
            rest.extend_from_slice(piece);
            let mut behind = &rest[..];
            while let Some((frame, next)) = split_frame(behind) {
                sort.push(frame)?;
                behind = next;
            }
            // The next piece has the rest of the last string.
            let read = rest.len() - behind.len();
            rest.drain(..read);
            io::Result::Ok(())
        })?;
        sort.finish()
    }

    /// Passes on the bytes of all ranges, as they were added, until nobody receives them.
    pub(super) fn send(&self, pieces: &SyncSender<io::Result<Vec<u8>>>) {
        let mut send = |piece: &[u8]| pieces.send(Ok(piece.to_vec())).map_err(io::Error::other);
        let sent = (0..self.parts as usize)
            .try_for_each(|part| self.frames.pieces(part, PIECE, &mut send));
        if let Err(error) = sent {
            // Fails if it was the receiver that ended.
            let _ = pieces.send(Err(error));
        }
    }

    pub(super) fn bytes_on_disk(&self) -> u64 {
        self.frames.bytes_on_disk()
    }
}
