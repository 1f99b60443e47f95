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

use bytemuck::Pod;

/// Number of partitions of every spool.
pub(crate) const PARTS: usize = 256;

/// Partitioned records of a plain type; see the module's header. Shared between threads.
pub(crate) struct PartitionedFile<T> {
    state: Mutex<PartitionState<T>>,
    file: File,
    budget: u64,
}

struct PartitionState<T> {
    parts: Vec<PartitionBuffer<T>>,
    buffered: u64,
    end: u64,
}

struct PartitionBuffer<T> {
    records: Vec<T>,
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
    /// A spool that keeps at most `budget` bytes in memory and the rest in a file without a name in `folder`.
    pub(crate) fn new(folder: &Path, budget: u64) -> io::Result<Self> {
        let parts = (0..PARTS)
            .map(|_| PartitionBuffer {
                records: Vec::new(),
                extents: Vec::new(),
            })
            .collect();
        let state = Mutex::new(PartitionState {
            parts,
            buffered: 0,
            end: 0,
        });
        Ok(Self {
            state,
            file: tempfile::tempfile_in(folder)?,
            budget,
        })
    }

    /// Moves the records of a thread's buffer into a partition.
    pub(crate) fn append(&self, part: usize, records: &mut Vec<T>) -> io::Result<()> {
        let mut state = lock(&self.state);
        let before = state.parts[part].held();
        state.parts[part].records.append(records);
        state.buffered += state.parts[part].held() - before;
        if state.buffered > self.budget {
            self.spill(&mut state)?;
        }
        Ok(())
    }

    /// Writes out every partition that holds its share of the budget, so that extents stay long.
    fn spill(&self, state: &mut PartitionState<T>) -> io::Result<()> {
        // Half of the average: the largest partition has more, so something always goes.
        // Small partitions stay: an extent of a few records would cost a read of its own later.
        let share = state.buffered / PARTS as u64 / 2;
        for part in 0..PARTS {
            let held = state.parts[part].held();
            if held < share {
                continue;
            }
            let records = std::mem::take(&mut state.parts[part].records);
            let bytes: &[u8] = bytemuck::cast_slice(&records);
            self.file.write_all_at(bytes, state.end)?;
            state.parts[part].extents.push(SpilledExtent {
                offset: state.end,
                records: records.len(),
            });
            state.end += bytes.len() as u64;
            state.buffered -= held;
        }
        Ok(())
    }

    /// Number of records of a partition.
    pub(crate) fn records(&self, part: usize) -> u64 {
        let state = lock(&self.state);
        let part = &state.parts[part];
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
        let state = lock(&self.state);
        let part = &state.parts[part];
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

    /// Takes a partition out: all its records, in no particular order.
    pub(crate) fn take(&self, part: usize) -> io::Result<Vec<T>> {
        let (mut records, extents) = {
            let mut state = lock(&self.state);
            let part = &mut state.parts[part];
            let held = part.held();
            let taken = (
                std::mem::take(&mut part.records),
                std::mem::take(&mut part.extents),
            );
            // While one pass takes partitions out, another may still append.
            state.buffered -= held;
            taken
        };
        // Read without the lock: an extent is never written again.
        for extent in extents {
            let start = records.len();
            records.resize(start + extent.records, T::zeroed());
            self.file.read_exact_at(
                bytemuck::cast_slice_mut(&mut records[start..]),
                extent.offset,
            )?;
        }
        Ok(records)
    }
}

/// One thread's buffers in front of a spool.
pub(crate) struct SpoolWriter<'s, T> {
    spool: &'s PartitionedFile<T>,
    buffers: Vec<Vec<T>>,
}

impl<'s, T: Pod> SpoolWriter<'s, T> {
    // All threads share one lock: they take it once for so many records.
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
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_goes_in_comes_out_under_any_budget(
            records in prop::collection::vec((0..PARTS, any::<u32>()), 0..5000),
            budget in prop_oneof![Just(0_u64), Just(64), Just(5000), Just(1 << 30)],
        ) {
            let folder = tempfile::tempdir().unwrap();
            let spool = PartitionedFile::<[u32; 3]>::new(folder.path(), budget).unwrap();
            let mut writer = SpoolWriter::new(&spool);
            for &(part, value) in &records {
                writer.push(part, [value, part as u32, 7]).unwrap();
            }
            writer.finish().unwrap();
            for part in 0..PARTS {
                let mut expected: Vec<_> =
                    records.iter().filter(|r| r.0 == part).map(|r| [r.1, part as u32, 7]).collect();
                expected.sort_unstable();
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
                shown.sort_unstable();
                prop_assert_eq!(&shown, &expected);
                found.sort_unstable();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
