//! Sorts fingerprints for an archive (Manku et al. 2007, section 3.2), which stores them in ascending order.
//!
//! The fingerprints are split into partitions by their first byte, on disk if they are many, and the partitions are sorted one after another. A
//! partition that is too large to be sorted in memory is split again by the next byte. Fingerprints that agree in all bytes are equal and need no
//! sorting. The memory does therefore not depend on how the fingerprints are distributed.

use std::io;
use std::path::{Path, PathBuf};

use lookalike::scheme::SchemeId;
use lookalike_corpus::AtomicFile;
use lookalike_hamming::{ArchiveWriter, DEFAULT_BLOCK_BYTES, FileError, GapCounts};

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
/// Number of bytes in a fingerprint, and so of levels of partitions.
const LEVELS: u32 = 8;

/// Collector of fingerprints for an archive.
pub(super) struct ArchiveSorter {
    cuts: PartitionCuts,
    spool: PartitionedFile<u64>,
    batch: Vec<u64>,
}

/// Settings of the partitions.
struct PartitionCuts {
    folder: PathBuf,
    /// Bytes that may be sorted at once.
    sorted: u64,
    /// Bytes that each further level may keep in memory.
    kept: u64,
}

impl ArchiveSorter {
    pub(super) fn new(scratch: ArchiveScratch<'_>) -> io::Result<Self> {
        let quarter = scratch.memory / 4;
        Ok(Self {
            cuts: PartitionCuts {
                folder: scratch.folder.to_owned(),
                sorted: quarter,
                // Levels nest, and each keeps its share until the finer ones are done.
                kept: quarter / u64::from(LEVELS),
            },
            spool: PartitionedFile::new(scratch.folder, quarter)?,
            batch: Vec::new(),
        })
    }

    /// Adds a fingerprint.
    pub(super) fn push(&mut self, code: u64) -> io::Result<()> {
        self.batch.push(code);
        if self.batch.len() == BATCH {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        scatter(&self.spool, 0, &self.batch)?;
        self.batch.clear();
        Ok(())
    }

    /// Writes all fingerprints in ascending order.
    pub(super) fn write(
        mut self,
        file: AtomicFile,
        scheme: SchemeId,
    ) -> Result<AtomicFile, FileError> {
        self.flush()?;
        // Count gaps before writing, because the archive starts with the single code that is used throughout.
        let mut gaps = GapCounts::default();
        for part in self.largest() {
            self.cuts.part(&self.spool, part, 0, &mut |codes| {
                codes.iter().for_each(|&code| gaps.observe(code));
                Ok(())
            })?;
        }
        let mut out = ArchiveWriter::new(file, scheme.0, &gaps, DEFAULT_BLOCK_BYTES)?;
        for part in 0..PARTS {
            self.cuts.part(&self.spool, part, 0, &mut |codes| {
                codes.iter().try_for_each(|&code| out.push(code))
            })?;
        }
        out.finish()
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

impl PartitionCuts {
    /// Passes a partition to `sink` in ascending order.
    fn part(
        &self,
        spool: &PartitionedFile<u64>,
        part: usize,
        level: u32,
        sink: &mut dyn FnMut(&[u64]) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        let records = spool.records(part);
        if level + 1 == LEVELS {
            // All fingerprints here are equal.
            return spool.pieces(part, BATCH, sink);
        }
        // Half a MiB is sorted at once even with a tiny budget; otherwise levels of almost empty partitions would nest for nothing.
        if records * 8 <= self.sorted.max(8 * BATCH as u64) {
            let mut codes = Vec::with_capacity(records as usize);
            spool.pieces(part, BATCH, &mut |piece| {
                codes.extend_from_slice(piece);
                Ok::<_, FileError>(())
            })?;
            codes.sort_unstable();
            return sink(&codes);
        }
        // `spool` keeps the records, because the counting pass is followed by the writing pass, which cuts the partition once more.
        let finer = PartitionedFile::new(&self.folder, self.kept)?;
        spool.pieces(part, BATCH, &mut |piece| {
            scatter(&finer, level + 1, piece).map_err(FileError::from)
        })?;
        (0..PARTS).try_for_each(|part| self.part(&finer, part, level + 1, sink))
    }
}

/// Distributes fingerprints into the partitions of one of their bytes, where level 0 is the most significant byte.
fn scatter(spool: &PartitionedFile<u64>, level: u32, codes: &[u64]) -> io::Result<()> {
    let mut writer = SpoolWriter::new(spool);
    for &code in codes {
        let byte = code >> (56 - 8 * level) & 0xff;
        writer.push(byte as usize, code)?;
    }
    writer.finish()
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
            ascending.write(file, SchemeId(7)).unwrap().commit().unwrap();
            let mut expected = codes;
            expected.sort_unstable();
            prop_assert_eq!(archived(&path), expected);
        }
    }

    #[test]
    fn partitions_too_large_to_sort_are_cut_by_every_byte() {
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
            .write(file, SchemeId(7))
            .unwrap()
            .commit()
            .unwrap();
        let mut expected = [vec![5; equal], odd.to_vec()].concat();
        expected.sort_unstable();
        assert_eq!(archived(&path), expected);
    }
}
