//! Records divided into partitions, in memory while they fit and in temporary files otherwise.
//!
//! Connects two passes of a job: the first distributes records by some key, the second takes one partition after
//! another, each small enough to be sorted in the cache. All partitions share a few files, so that the process does not run out of
//! file descriptors.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytemuck::Pod;

use crate::locks::lock;
use crate::parallel::run_on_threads;

/// Number of partitions of a spool, unless it is created with another number.
pub(crate) const PARTS: usize = 256;

/// Maximum number of files of a spool. There are several because file systems let only one thread at a time write to a file.
const FILES: usize = 8;

/// Maximum number of bytes of a block. Allocators map larger blocks separately and unmap them when they are freed, which costs more than filling
/// them.
const BLOCK_BYTES: usize = 64 << 10;

/// Partitioned records of a plain type; see the module's header. It is shared between threads, which wait for each other only if they
/// use the same partition.
pub(crate) struct PartitionedFile<T> {
    parts: Vec<Mutex<PartitionBuffer<T>>>,
    /// Bytes that all partitions hold in memory. Updated under the lock of the partition that changes.
    buffered: AtomicU64,
    budget: u64,
    folder: PathBuf,
    files: Mutex<Vec<Arc<SpillFile>>>,
    /// Number of the partition that is written to a file next, modulo the number of partitions.
    next: AtomicUsize,
}

struct SpillFile {
    file: File,
    end: AtomicU64,
}

impl SpillFile {
    /// Creates an unnamed file.
    fn new(folder: &Path) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            // Without a name, so that a killed job leaves nothing behind.
            file: tempfile::tempfile_in(folder)?,
            end: AtomicU64::new(0),
        }))
    }
}

/// The records of a partition.
struct PartitionBuffer<T> {
    // One vector would be copied each time it grows, and then take twice its memory.
    /// Records in memory, in blocks that do not move.
    blocks: Vec<Vec<T>>,
    /// Number of records in memory.
    count: usize,
    /// Bytes allocated for the blocks, including free capacity.
    held: u64,
    /// Records that were pushed before those in memory, in order.
    extents: Vec<SpilledExtent>,
}

impl<T> PartitionBuffer<T> {
    fn new() -> Self {
        Self {
            blocks: Vec::new(),
            count: 0,
            held: 0,
            extents: Vec::new(),
        }
    }

    /// Lets `add` push `records` records to one block.
    fn push(&mut self, records: usize, add: impl FnOnce(&mut Vec<T>)) {
        let has_room = |block: &Vec<T>| block.capacity() - block.len() >= records;
        if !self.blocks.last().is_some_and(has_room) {
            // The new block is as large as all others together, so that few records take little memory and many records are in few blocks.
            let most = (BLOCK_BYTES / size_of::<T>()).max(1);
            let block = Vec::with_capacity(self.count.clamp(1, most).max(records));
            self.held += (block.capacity() * size_of::<T>()) as u64;
            self.blocks.push(block);
        }
        if let Some(block) = self.blocks.last_mut() {
            let before = block.len();
            add(block);
            debug_assert_eq!(block.len() - before, records);
        }
        self.count += records;
    }
}

/// Consecutive records of a partition in a file.
struct SpilledExtent {
    file: Arc<SpillFile>,
    offset: u64,
    records: usize,
}

impl SpilledExtent {
    /// Reads the records after the first `skipped` ones into `records`.
    fn read<T: Pod>(&self, skipped: usize, records: &mut [T]) -> io::Result<()> {
        let offset = self.offset + (skipped * size_of::<T>()) as u64;
        let file = &self.file.file;
        file.read_exact_at(bytemuck::cast_slice_mut(records), offset)
    }
}

/// Writes blocks with `records` records in total to a file.
fn spill<T: Pod>(
    file: Arc<SpillFile>,
    blocks: &[Vec<T>],
    records: usize,
) -> io::Result<SpilledExtent> {
    let bytes = (records * size_of::<T>()) as u64;
    // This reserves the range, so threads write to the same file without a lock. Nobody reads it before the extent is in its partition.
    let offset = file.end.fetch_add(bytes, Ordering::Relaxed);
    let mut at = offset;
    for block in blocks {
        let block: &[u8] = bytemuck::cast_slice(block);
        file.file.write_all_at(block, at)?;
        at += block.len() as u64;
    }
    Ok(SpilledExtent {
        file,
        offset,
        records,
    })
}

impl<T: Pod> PartitionedFile<T> {
    /// Creates a spool of [`PARTS`] partitions that keeps at most `budget` bytes in memory and the rest in unnamed files in `folder`.
    pub(crate) fn new(folder: &Path, budget: u64) -> io::Result<Self> {
        Self::with_parts(folder, PARTS, budget)
    }

    /// Creates a spool of `parts` partitions; otherwise as [`PartitionedFile::new`].
    pub(crate) fn with_parts(folder: &Path, parts: usize, budget: u64) -> io::Result<Self> {
        // The other files are created when they are needed.
        let first = SpillFile::new(folder)?;
        Ok(Self {
            parts: (0..parts)
                .map(|_| Mutex::new(PartitionBuffer::new()))
                .collect(),
            buffered: AtomicU64::new(0),
            budget,
            folder: folder.to_owned(),
            files: Mutex::new(vec![first]),
            next: AtomicUsize::new(0),
        })
    }

    /// Moves the records of a thread's buffer into a partition.
    pub(crate) fn append(&self, part: usize, records: &mut Vec<T>) -> io::Result<()> {
        match records.is_empty() {
            true => Ok(()),
            false => self.push(part, records.len(), |all| all.append(records)),
        }
    }

    /// Lets `add` push `records` records to a partition; they stay together, in memory or on disk.
    pub(crate) fn push(
        &self,
        part: usize,
        records: usize,
        add: impl FnOnce(&mut Vec<T>),
    ) -> io::Result<()> {
        let mut part = lock(&self.parts[part]);
        let before = part.held;
        part.push(records, add);
        let grown = part.held - before;
        if grown == 0 {
            // The usual case, in which threads do not contend for the sum.
            return Ok(());
        }
        // Relaxed: the sum only decides when to write. The records themselves are guarded by the locks of their partitions.
        let buffered = self.buffered.fetch_add(grown, Ordering::Relaxed) + grown;
        // `make_room` locks one partition after another, including this one.
        drop(part);
        match buffered > self.budget {
            true => self.make_room(),
            false => Ok(()),
        }
    }

    /// Writes partitions to files, one after another, until the rest fits in the budget.
    fn make_room(&self) -> io::Result<()> {
        // Half of the average: the largest partition exceeds it, so there is always one to write. Small partitions stay in memory, because an extent
        // of a few records would later cost a separate read.
        let share = self.budget / self.parts.len() as u64 / 2;
        while self.buffered.load(Ordering::Relaxed) > self.budget {
            let next = self.next.fetch_add(1, Ordering::Relaxed);
            let mut part = lock(&self.parts[next % self.parts.len()]);
            // With a tiny budget the share is 0, and only the count tells an empty partition from one to write.
            if part.held < share || part.count == 0 {
                continue;
            }
            // Before writing, so that other threads do not write more than necessary meanwhile.
            self.buffered
                .fetch_sub(std::mem::take(&mut part.held), Ordering::Relaxed);
            let blocks = std::mem::take(&mut part.blocks);
            let records = std::mem::take(&mut part.count);
            // Only this partition is locked meanwhile: others can take records, or be written to another file.
            let extent = spill(self.file(next % FILES), &blocks, records)?;
            part.extents.push(extent);
        }
        Ok(())
    }

    /// Returns the file with this number, or another one if the system does not allow more files.
    fn file(&self, number: usize) -> Arc<SpillFile> {
        let mut files = lock(&self.files);
        // A file is added each time a partition meets a number that does not exist yet, so small jobs need only one.
        if number >= files.len()
            && let Ok(file) = SpillFile::new(&self.folder)
        {
            files.push(file);
        }
        Arc::clone(&files[number % files.len()])
    }

    /// Returns the number of records in a partition.
    pub(crate) fn records(&self, part: usize) -> u64 {
        let part = lock(&self.parts[part]);
        let on_disk: usize = part.extents.iter().map(|extent| extent.records).sum();
        (on_disk + part.count) as u64
    }

    /// Returns the number of bytes in all files.
    pub(crate) fn bytes_on_disk(&self) -> u64 {
        let files = lock(&self.files);
        let ends = files.iter().map(|file| file.end.load(Ordering::Relaxed));
        ends.sum()
    }

    /// Passes the records of a partition to `sink`, at most `most` at a time, and keeps the partition.
    pub(crate) fn pieces<E: From<io::Error>>(
        &self,
        part: usize,
        most: usize,
        sink: &mut dyn FnMut(&[T]) -> Result<(), E>,
    ) -> Result<(), E> {
        let part = lock(&self.parts[part]);
        let mut piece = Vec::new();
        for extent in &part.extents {
            for start in (0..extent.records).step_by(most) {
                piece.resize(most.min(extent.records - start), T::zeroed());
                extent.read(start, &mut piece)?;
                sink(&piece)?;
            }
        }
        let mut pieces = part.blocks.iter().flat_map(|block| block.chunks(most));
        pieces.try_for_each(sink)
    }

    /// Takes all records of a partition, in the order in which they were pushed.
    pub(crate) fn take(&self, part: usize) -> io::Result<Vec<T>> {
        let mut blocks = self.take_blocks(part)?;
        if let [_] = blocks[..] {
            return Ok(blocks.remove(0));
        }
        let mut records = Vec::with_capacity(blocks.iter().map(Vec::len).sum());
        // Each block is freed once it is copied, so there are never two copies of all records.
        blocks
            .into_iter()
            .for_each(|mut block| records.append(&mut block));
        Ok(records)
    }

    /// Takes a partition like [`PartitionedFile::take`], in blocks. Records that were pushed together are in one block.
    pub(crate) fn take_blocks(&self, part: usize) -> io::Result<Vec<Vec<T>>> {
        let taken = {
            let mut part = lock(&self.parts[part]);
            self.buffered.fetch_sub(part.held, Ordering::Relaxed);
            // The partition is empty afterwards and can be filled again.
            std::mem::replace(&mut *part, PartitionBuffer::new())
        };
        // Read without the lock: an extent is never written again.
        let on_disk = taken.extents.into_iter().map(|extent| {
            let mut records = vec![T::zeroed(); extent.records];
            extent.read(0, &mut records)?;
            Ok(records)
        });
        on_disk.chain(taken.blocks.into_iter().map(Ok)).collect()
    }
}

/// Buffers of one thread for a spool.
pub(crate) struct SpoolWriter<'s, T> {
    spool: &'s PartitionedFile<T>,
    buffers: Vec<Vec<T>>,
}

impl<'s, T: Pod> SpoolWriter<'s, T> {
    // All threads share the lock of a partition, so each takes it once per this many records.
    const RECORDS: usize = 256;

    pub(crate) fn new(spool: &'s PartitionedFile<T>) -> Self {
        Self {
            spool,
            // Together the buffers of a thread hold 65,536 records, outside the budget of the spool.
            buffers: (0..PARTS)
                .map(|_| Vec::with_capacity(Self::RECORDS))
                .collect(),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, part: usize, record: T) -> io::Result<()> {
        let buffer = &mut self.buffers[part];
        buffer.push(record);
        if buffer.len() == Self::RECORDS {
            self.spool.append(part, buffer)
        } else {
            Ok(())
        }
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        for (part, buffer) in self.buffers.iter_mut().enumerate() {
            self.spool.append(part, buffer)?;
        }
        Ok(())
    }
}

/// Runs `work` for each of [`PARTS`] partitions on `threads` threads, each with a scratch value of its own.
///
/// # Errors
/// Returns the error of the first thread that had one.
pub(crate) fn by_parts<S, E: Send>(
    threads: usize,
    scratch: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let all = || -> Result<(), E> {
        let mut scratch = scratch();
        loop {
            // Threads take one partition at a time, because partitions differ in size.
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= PARTS {
                return Ok(());
            }
            work(&mut scratch, part)?;
        }
    };
    run_on_threads(threads, all).map(drop)
}

#[cfg(test)]
mod tests {
    use lookalike_hamming::threads::map_parallel;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_goes_in_comes_out_under_any_budget_and_any_threads(
            records in prop::collection::vec((0..PARTS, any::<u32>()), 0..5000),
            budget in prop_oneof![Just(0_u64), Just(64), Just(5000), Just(1 << 30)],
            threads in 1..4_usize,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let spool = PartitionedFile::<[u32; 3]>::new(folder.path(), budget).unwrap();
            map_parallel(records.chunks(records.len().div_ceil(threads).max(1)), |own| {
                let mut writer = SpoolWriter::new(&spool);
                for &(part, value) in own {
                    writer.push(part, [value, part as u32, 7]).unwrap();
                }
                writer.finish().unwrap();
            });
            prop_assert!(spool.buffered.load(Ordering::Relaxed) <= budget);
            for part in 0..PARTS {
                let mut expected: Vec<_> =
                    records.iter().filter(|r| r.0 == part).map(|r| [r.1, part as u32, 7]).collect();
                let mut shown = Vec::new();
                spool
                    .pieces(part, 100, &mut |piece| {
                        assert!(piece.len() <= 100);
                        shown.extend_from_slice(piece);
                        io::Result::Ok(())
                    })
                    .unwrap();
                prop_assert_eq!(spool.records(part), expected.len() as u64);
                let mut found = spool.take(part).unwrap();
                if threads > 1 {
                    expected.sort_unstable();
                    shown.sort_unstable();
                    found.sort_unstable();
                }
                prop_assert_eq!(&shown, &expected);
                prop_assert_eq!(found, expected);
            }
            prop_assert_eq!(spool.buffered.load(Ordering::Relaxed), 0);
        }
    }
}
