//! Records cut into partitions, in memory while they fit and in temporary files beyond.
//!
//! Stands between the passes of a job: one pass scatters records by some key, the next takes one partition after
//! another, each small enough to be sorted in cache. Partitions share a few files, so that no number of them
//! exhausts the process's file descriptors.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytemuck::Pod;

use crate::locks::lock;
use crate::parallel::on_threads;

/// Number of partitions of every spool.
pub(crate) const PARTS: usize = 256;

/// Files of a spool at most. File systems let one thread at a time write to a file.
const FILES: usize = 8;

/// Bytes of a block at most. Allocators map larger ones one by one, and unmap them when they are freed, which costs more than to fill them.
const BLOCK_BYTES: usize = 64 << 10;

/// Partitioned records of a plain type; see the module's header. Shared between threads, which wait for one another only where they
/// meet in a partition.
pub(crate) struct PartitionedFile<T> {
    parts: Vec<Mutex<PartitionBuffer<T>>>,
    /// Bytes that all partitions hold in memory. Changed under the lock of the partition that changes.
    buffered: AtomicU64,
    budget: u64,
    folder: PathBuf,
    files: Mutex<Vec<Arc<SpillFile>>>,
    /// The partition that goes to a file next, modulo their number.
    next: AtomicUsize,
}

struct SpillFile {
    file: File,
    end: AtomicU64,
}

impl SpillFile {
    /// One without a name.
    fn new(folder: &Path) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            file: tempfile::tempfile_in(folder)?,
            end: AtomicU64::new(0),
        }))
    }
}

/// The records of a partition.
struct PartitionBuffer<T> {
    /// Those in memory, in blocks that do not move.
    blocks: Vec<Vec<T>>,
    /// Number of those.
    count: usize,
    /// Bytes that the blocks take, with the room that is left in them: that is what the process holds.
    held: u64,
    /// Records that came before those, in their order.
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

    /// Lets `add` push so many records to one block.
    fn push(&mut self, records: usize, add: impl FnOnce(&mut Vec<T>)) {
        let has_room = |block: &Vec<T>| block.capacity() - block.len() >= records;
        if !self.blocks.last().is_some_and(has_room) {
            // As much as there is, so that few records take little room and many are in few blocks.
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

/// Records of a partition that follow one another in a file.
struct SpilledExtent {
    file: Arc<SpillFile>,
    offset: u64,
    records: usize,
}

impl SpilledExtent {
    /// Fills `records` with those behind the first `skipped`.
    fn read<T: Pod>(&self, skipped: usize, records: &mut [T]) -> io::Result<()> {
        let offset = self.offset + (skipped * size_of::<T>()) as u64;
        let file = &self.file.file;
        file.read_exact_at(bytemuck::cast_slice_mut(records), offset)
    }
}

/// Writes blocks of so many records to a file.
fn spill<T: Pod>(
    file: Arc<SpillFile>,
    blocks: &[Vec<T>],
    records: usize,
) -> io::Result<SpilledExtent> {
    let bytes = (records * size_of::<T>()) as u64;
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
    /// A spool of [`PARTS`] partitions that keeps at most `budget` bytes in memory and the rest in a file without a name in `folder`.
    pub(crate) fn new(folder: &Path, budget: u64) -> io::Result<Self> {
        Self::with_parts(folder, PARTS, budget)
    }

    /// As [`PartitionedFile::new`], of so many partitions.
    pub(crate) fn with_parts(folder: &Path, parts: usize, budget: u64) -> io::Result<Self> {
        // The others are made when they are needed.
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

    /// Lets `add` push so many records to a partition; they stay together, in memory or on disk.
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
            // Nearly always: threads do not fight for the sum.
            return Ok(());
        }
        let buffered = self.buffered.fetch_add(grown, Ordering::Relaxed) + grown;
        // Making room locks one partition after another, this one among them.
        drop(part);
        match buffered > self.budget {
            true => self.make_room(),
            false => Ok(()),
        }
    }

    /// Sends partitions to the files, each in its turn, until the others fit the budget.
    fn make_room(&self) -> io::Result<()> {
        // Half of the average: the largest partition has more, so something always goes.
        // Small partitions stay: an extent of a few records would cost a read of its own later.
        let share = self.budget / self.parts.len() as u64 / 2;
        while self.buffered.load(Ordering::Relaxed) > self.budget {
            let next = self.next.fetch_add(1, Ordering::Relaxed);
            let mut part = lock(&self.parts[next % self.parts.len()]);
            if part.held < share || part.count == 0 {
                continue;
            }
            // Before they are written: other threads must not send more than is needed meanwhile.
            self.buffered
                .fetch_sub(std::mem::take(&mut part.held), Ordering::Relaxed);
            let blocks = std::mem::take(&mut part.blocks);
            let records = std::mem::take(&mut part.count);
            // Only this partition is locked meanwhile: the others take records, or go to a file beside it.
            let extent = spill(self.file(next % FILES), &blocks, records)?;
            part.extents.push(extent);
        }
        Ok(())
    }

    /// A file by number; another one where the system has no more.
    fn file(&self, number: usize) -> Arc<SpillFile> {
        let mut files = lock(&self.files);
        if number >= files.len()
            && let Ok(file) = SpillFile::new(&self.folder)
        {
            files.push(file);
        }
        Arc::clone(&files[number % files.len()])
    }

    /// Number of records of a partition.
    pub(crate) fn records(&self, part: usize) -> u64 {
        let part = lock(&self.parts[part]);
        let on_disk: usize = part.extents.iter().map(|extent| extent.records).sum();
        (on_disk + part.count) as u64
    }

    /// Shows a partition, at most so many records at a time, and leaves it as it is.
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

    /// Takes a partition out: all its records, in the order in which they came.
    pub(crate) fn take(&self, part: usize) -> io::Result<Vec<T>> {
        let mut blocks = self.take_blocks(part)?;
        if let [_] = blocks[..] {
            return Ok(blocks.remove(0));
        }
        let mut records = Vec::with_capacity(blocks.iter().map(Vec::len).sum());
        // Each is freed when it is copied: there are never two of all.
        blocks
            .into_iter()
            .for_each(|mut block| records.append(&mut block));
        Ok(records)
    }

    /// As [`PartitionedFile::take`], in blocks. Records that were pushed together are in one block.
    pub(crate) fn take_blocks(&self, part: usize) -> io::Result<Vec<Vec<T>>> {
        let taken = {
            let mut part = lock(&self.parts[part]);
            self.buffered.fetch_sub(part.held, Ordering::Relaxed);
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

/// One thread's buffers in front of a spool.
pub(crate) struct SpoolWriter<'s, T> {
    spool: &'s PartitionedFile<T>,
    buffers: Vec<Vec<T>>,
}

impl<'s, T: Pod> SpoolWriter<'s, T> {
    // A partition has one lock for all threads: they take it once for so many records.
    const RECORDS: usize = 256;

    pub(crate) fn new(spool: &'s PartitionedFile<T>) -> Self {
        Self {
            spool,
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

/// Does some work for each of [`PARTS`] partitions, on so many threads, each with a scratch of its own.
///
/// # Errors
/// That of the first thread that met one.
pub(crate) fn by_parts<S, E: Send>(
    threads: usize,
    scratch: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let all = || -> Result<(), E> {
        let mut scratch = scratch();
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= PARTS {
                return Ok(());
            }
            work(&mut scratch, part)?;
        }
    };
    on_threads(threads, all).map(drop)
}

#[cfg(test)]
mod tests {
    use lookalike_hamming::threads::on_each;
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
            on_each(records.chunks(records.len().div_ceil(threads).max(1)), |own| {
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
