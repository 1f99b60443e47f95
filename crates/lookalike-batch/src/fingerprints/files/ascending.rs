//! Sorts fingerprints for an archive (Manku et al. 2007, section 3.2), which stores them in ascending order.
//!
//! The fingerprints are split into partitions by their first byte, on disk if they are many, and the partitions are sorted one after another, on disk
//! if they are large. The memory does therefore not depend on how the fingerprints are distributed.

use std::io;
use std::path::{Path, PathBuf};

use lookalike::scheme::SchemeId;
use lookalike_corpus::AtomicFile;
use lookalike_hamming::{ArchiveWriter, DEFAULT_BLOCK_BYTES, FileError, GapCounts};

use crate::error::BatchError;
use crate::spill::external_sort::ExternalSort;
use crate::spill::partitions::{PARTS, PartitionedFile, SpoolWriter};

/// Temporary space for data that does not fit in memory.
#[derive(Clone, Copy, Debug)]
pub struct ArchiveScratch<'a> {
    /// Folder for temporary files.
    pub folder: &'a Path,
    /// Bytes of resident memory for the whole process.
    pub memory: u64,
}

/// At least one in this many fingerprints has its gaps counted; these determine the code used for all.
const COUNTED: u64 = 8;
/// Number of fingerprints that are partitioned at a time.
const BATCH: usize = 1 << 16;

/// Collector of fingerprints for an archive.
pub(super) struct ArchiveSorter {
    /// Fingerprints by their first byte.
    spool: PartitionedFile<u64>,
    batch: Vec<u64>,
    folder: PathBuf,
    /// Bytes that may be sorted at once.
    sorted: u64,
}

impl ArchiveSorter {
    pub(super) fn new(scratch: ArchiveScratch<'_>) -> io::Result<Self> {
        let quarter = scratch.memory / 4;
        Ok(Self {
            spool: PartitionedFile::new(scratch.folder, quarter)?,
            batch: Vec::new(),
            folder: scratch.folder.to_owned(),
            sorted: quarter,
        })
    }

    /// Adds a fingerprint.
    pub(super) fn push(&mut self, code: u64) -> io::Result<()> {
        self.batch.push(code);
        match self.batch.len() == BATCH {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut writer = SpoolWriter::new(&self.spool);
        for code in self.batch.drain(..) {
            writer.push((code >> 56) as usize, code)?;
        }
        writer.finish()
    }

    /// Writes all fingerprints in ascending order. `failed` wraps an error of the file.
    pub(super) fn write(
        mut self,
        file: AtomicFile,
        scheme: SchemeId,
        failed: &dyn Fn(FileError) -> BatchError,
    ) -> Result<AtomicFile, BatchError> {
        let flushed = self.flush();
        flushed.map_err(BatchError::temporary(&self.folder))?;
        // Count gaps before writing, because the archive starts with the single code that is used throughout.
        let mut gaps = GapCounts::default();
        for part in self.largest() {
            self.for_each(part, |code| {
                gaps.observe(code);
                Ok(())
            })?;
        }
        let out = ArchiveWriter::new(file, scheme.0, &gaps, DEFAULT_BLOCK_BYTES);
        let mut out = out.map_err(failed)?;
        for part in 0..PARTS {
            self.for_each(part, |code| out.push(code).map_err(failed))?;
        }
        out.finish().map_err(failed)
    }

    /// Visits the fingerprints of a partition in ascending order, and keeps them: the counting pass is followed by the writing pass.
    fn for_each(
        &self,
        part: usize,
        visit: impl FnMut(u64) -> Result<(), BatchError>,
    ) -> Result<(), BatchError> {
        let mut sort = ExternalSort::new(self.sorted, &self.folder);
        let read = self.spool.pieces(part, BATCH, &mut |codes| {
            codes.iter().try_for_each(|&code| sort.push(code))
        });
        read.map_err(BatchError::temporary(&self.folder))?;
        sort.drain(visit)
    }

    /// Returns the largest partitions, in byte order, that together hold enough fingerprints for counting gaps.
    fn largest(&self) -> Vec<usize> {
        let mut parts: Vec<(u64, usize)> = (0..PARTS)
            .map(|part| (self.spool.records(part), part))
            .collect();
        let all: u64 = parts.iter().map(|(records, _)| records).sum();
        parts.sort_unstable_by_key(|&(records, part)| (std::cmp::Reverse(records), part));
        let mut seen = 0;
        let mut chosen: Vec<usize> = parts
            .into_iter()
            .take_while(|(records, _)| {
                let more = COUNTED * seen < all;
                seen += records;
                more
            })
            .map(|(_, part)| part)
            .collect();
        // Gaps are counted between neighbours in ascending order. Those across omitted partitions are too large, but there are at most 255 of them.
        chosen.sort_unstable();
        chosen
    }
}

#[cfg(test)]
mod tests {
    use lookalike_corpus::Compression;
    use lookalike_hamming::FingerprintArchiveReader;
    use proptest::prelude::*;

    use super::*;

    /// Reads the fingerprints of an archive.
    fn archived(path: &Path) -> Vec<u64> {
        let bytes = std::fs::read(path).unwrap();
        let mut reader = FingerprintArchiveReader::new(bytes.as_slice()).unwrap();
        let mut codes = Vec::new();
        while reader.read_block(&mut codes).unwrap() {}
        codes
    }

    /// Generates fingerprints like real ones: some equal, many with common first bytes.
    fn codes() -> impl Strategy<Value = Vec<u64>> {
        let code = (any::<u64>(), 0..9_u32)
            .prop_map(|(code, bytes)| code & u64::MAX.checked_shr(8 * bytes).unwrap_or(0));
        prop::collection::vec((code, 1..200_usize), 0..60).prop_map(|runs| {
            runs.into_iter()
                .flat_map(|(code, times)| vec![code; times])
                .collect()
        })
    }

    proptest! {
        #[test]
        fn an_archive_holds_all_in_order_whatever_the_memory(codes in codes(), memory in prop_oneof![Just(0_u64), Just(1 << 30)]) {
            let folder = tempfile::tempdir().unwrap();
            let scratch = ArchiveScratch { folder: folder.path(), memory };
            let mut ascending = ArchiveSorter::new(scratch).unwrap();
            codes.iter().try_for_each(|&code| ascending.push(code)).unwrap();
            let path = folder.path().join("a.lkar");
            let file = AtomicFile::create(&path, Compression::None).unwrap();
            ascending.write(file, SchemeId(7), &|error| panic!("{error}")).unwrap().commit().unwrap();
            let mut expected = codes;
            expected.sort_unstable();
            prop_assert_eq!(archived(&path), expected);
        }
    }

    #[test]
    fn partitions_too_large_for_the_memory_are_sorted_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = ArchiveScratch {
            folder: folder.path(),
            memory: 0,
        };
        let mut ascending = ArchiveSorter::new(scratch).unwrap();
        // More equal fingerprints than are ever sorted at once, and some that differ in the last or the fourth byte.
        let odd = [5, 6, 0x0100_0000_0000, u64::MAX, 0];
        let equal = 3 * BATCH + 17;
        for at in 0..equal {
            ascending.push(5).unwrap();
            if let Some(&code) = odd.get(at) {
                ascending.push(code).unwrap();
            }
        }
        let path = folder.path().join("a.lkar");
        let file = AtomicFile::create(&path, Compression::None).unwrap();
        ascending
            .write(file, SchemeId(7), &|error| panic!("{error}"))
            .unwrap()
            .commit()
            .unwrap();
        let mut expected = [vec![5; equal], odd.to_vec()].concat();
        expected.sort_unstable();
        assert_eq!(archived(&path), expected);
    }
}
