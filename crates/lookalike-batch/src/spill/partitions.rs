//! Records cut into partitions, in memory while they fit and in one temporary file beyond.
//!
//! Stands between the passes of a job: one pass scatters records by some key, the next takes one partition after
//! another, each small enough to be sorted in cache. All partitions share one file, so that no number of them
//! exhausts the process's file descriptors.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytemuck::Pod;

use crate::parallel::on_threads;

/// Number of partitions of every spool.
pub(crate) const PARTS: usize = 256;

/// Partitioned records of a plain type; see the module's header. Shared between threads, which wait for one another only where they
/// meet in a partition.
pub(crate) struct PartitionedFile<T> {
    parts: Vec<Mutex<PartitionBuffer<T>>>,
    /// Bytes that all partitions hold in memory. Changed under the lock of the partition that changes.
    buffered: AtomicU64,
    budget: u64,
    file: File,
    /// End of the file.
    end: AtomicU64,
    /// The partition that goes to the file next, modulo their number.
    next: AtomicUsize,
}

struct PartitionBuffer<T> {
    records: Vec<T>,
    /// Records that came before those, in their order.
    extents: Vec<SpilledExtent>,
}

impl<T> PartitionBuffer<T> {
    /// Bytes that the records take, with the room in which they grow: that is what the process holds.
    fn held(&self) -> u64 {
        (self.records.capacity() * size_of::<T>()) as u64
    }
}

#[derive(Clone, Copy)]
struct SpilledExtent {
    offset: u64,
    records: usize,
}

impl<T: Pod> PartitionedFile<T> {
    /// A spool of [`PARTS`] partitions that keeps at most `budget` bytes in memory and the rest in a file without a name in `folder`.
    pub(crate) fn new(folder: &Path, budget: u64) -> io::Result<Self> {
        Self::with_parts(folder, PARTS, budget)
    }

    /// As [`PartitionedFile::new`], of so many partitions.
    pub(crate) fn with_parts(folder: &Path, parts: usize, budget: u64) -> io::Result<Self> {
        let part = |_| {
            Mutex::new(PartitionBuffer {
                records: Vec::new(),
                extents: Vec::new(),
            })
        };
        Ok(Self {
            parts: (0..parts).map(part).collect(),
            buffered: AtomicU64::new(0),
            budget,
            file: tempfile::tempfile_in(folder)?,
            end: AtomicU64::new(0),
            next: AtomicUsize::new(0),
        })
    }

    /// Moves the records of a thread's buffer into a partition.
    pub(crate) fn append(&self, part: usize, records: &mut Vec<T>) -> io::Result<()> {
        self.extend(part, |all| all.append(records))
    }

    /// Lets `add` push records to a partition; they stay together.
    pub(crate) fn extend(&self, part: usize, add: impl FnOnce(&mut Vec<T>)) -> io::Result<()> {
        let mut part = lock(&self.parts[part]);
        let before = part.held();
        add(&mut part.records);
        let grown = part.held() - before;
        let buffered = self.buffered.fetch_add(grown, Ordering::Relaxed) + grown;
        // Making room locks one partition after another, this one among them.
        drop(part);
        match buffered > self.budget {
            true => self.make_room(),
            false => Ok(()),
        }
    }

    /// Sends partitions to the file, each in its turn, until the others fit the budget.
    fn make_room(&self) -> io::Result<()> {
        // Half of the average: the largest partition has more, so something always goes.
        // Small partitions stay: an extent of a few records would cost a read of its own later.
        let share = self.budget / self.parts.len() as u64 / 2;
        while self.buffered.load(Ordering::Relaxed) > self.budget {
            let next = self.next.fetch_add(1, Ordering::Relaxed) % self.parts.len();
            let mut part = lock(&self.parts[next]);
            let held = part.held();
            if held < share || part.records.is_empty() {
                continue;
            }
            let records = std::mem::take(&mut part.records);
            self.buffered.fetch_sub(held, Ordering::Relaxed);
            let bytes: &[u8] = bytemuck::cast_slice(&records);
            let offset = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            // Only this partition is locked meanwhile: the others take records, or go to the file beside it.
            self.file.write_all_at(bytes, offset)?;
            part.extents.push(SpilledExtent {
                offset,
                records: records.len(),
            });
        }
        Ok(())
    }

    /// Number of partitions.
    pub(crate) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Number of records of a partition.
    pub(crate) fn records(&self, part: usize) -> u64 {
        let part = lock(&self.parts[part]);
        let on_disk: usize = part.extents.iter().map(|extent| extent.records).sum();
        (on_disk + part.records.len()) as u64
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
                let offset = extent.offset + (start * size_of::<T>()) as u64;
                self.file
                    .read_exact_at(bytemuck::cast_slice_mut(&mut piece), offset)?;
                sink(&piece)?;
            }
        }
        part.records.chunks(most).try_for_each(sink)
    }

    /// Takes a partition out: all its records, in the order in which they came.
    pub(crate) fn take(&self, part: usize) -> io::Result<Vec<T>> {
        let (last, extents) = {
            let mut part = lock(&self.parts[part]);
            self.buffered.fetch_sub(part.held(), Ordering::Relaxed);
            (
                std::mem::take(&mut part.records),
                std::mem::take(&mut part.extents),
            )
        };
        if extents.is_empty() {
            return Ok(last);
        }
        let on_disk: usize = extents.iter().map(|extent| extent.records).sum();
        let mut records = Vec::with_capacity(on_disk + last.len());
        // Read without the lock: an extent is never written again.
        for extent in extents {
            let start = records.len();
            records.resize(start + extent.records, T::zeroed());
            self.file.read_exact_at(
                bytemuck::cast_slice_mut(&mut records[start..]),
                extent.offset,
            )?;
        }
        records.extend_from_slice(&last);
        Ok(records)
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

/// Locks a mutex whose holders never panic half way through a change.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The value behind a lock that nobody needs any more, whatever became of the threads that held it.
pub(crate) fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
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
