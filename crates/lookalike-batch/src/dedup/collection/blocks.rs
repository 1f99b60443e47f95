//! Files of blocks with a checksum each, which are written sequentially and read at random.
//!
//! A block has 4,096 bytes: 4,088 of content, then the XXH3-64 of the content; the last block is shorter. The seed of the checksum is the
//! identity of the file plus the number of the block, so that a block of another file, or from another place, is detected.
//! Positions count bytes of content.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use lookalike_corpus::{AtomicFile, Compression, open_regular};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::dedup::collection::error::CollectionError;

const BLOCK: usize = 4096;
const CHECKSUM: usize = 8;
/// Number of bytes of content in a block.
pub(crate) const CONTENT: usize = BLOCK - CHECKSUM;

/// Returns the length of a file with this much content.
fn file_bytes(content: u64) -> u64 {
    content + content.div_ceil(CONTENT as u64) * CHECKSUM as u64
}

fn checksum(identity: u64, block: u64, content: &[u8]) -> [u8; CHECKSUM] {
    xxh3_64_with_seed(content, identity.wrapping_add(block)).to_le_bytes()
}

/// A file of blocks that is being written. It gets its name in [`CheckedBlockWriter::commit`].
pub(crate) struct CheckedBlockWriter {
    file: AtomicFile,
    identity: u64,
    block: Vec<u8>,
    blocks: u64,
}

impl CheckedBlockWriter {
    pub(crate) fn create(path: &Path, identity: u64) -> io::Result<Self> {
        Ok(Self {
            file: AtomicFile::create(path, Compression::None)?,
            identity,
            block: Vec::with_capacity(BLOCK),
            blocks: 0,
        })
    }

    /// Returns the number of bytes of content written so far.
    pub(crate) fn position(&self) -> u64 {
        self.blocks * CONTENT as u64 + self.block.len() as u64
    }

    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(CONTENT - self.block.len()));
            self.block.extend_from_slice(now);
            bytes = later;
            if self.block.len() == CONTENT {
                self.end_block()?;
            }
        }
        Ok(())
    }

    /// Writes an entry of a table with entries of one size, none of which is split between blocks: see [`BlockTable`].
    pub(crate) fn write_entry(&mut self, entry: &[u8]) -> io::Result<()> {
        if self.block.len() + entry.len() > CONTENT {
            self.fill_block()?;
        }
        self.write(entry)
    }

    /// Fills the current block with zeros, unless it is empty, so that the next write starts a block.
    pub(crate) fn fill_block(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        self.block.resize(CONTENT, 0);
        self.end_block()
    }

    fn end_block(&mut self) -> io::Result<()> {
        let sum = checksum(self.identity, self.blocks, &self.block);
        self.block.extend_from_slice(&sum);
        self.file.write_all(&self.block)?;
        self.block.clear();
        self.blocks += 1;
        Ok(())
    }

    /// Completes the file, syncs it to disk and gives it its name. Returns the number of bytes of its content.
    pub(crate) fn commit(mut self) -> io::Result<u64> {
        // Before the last block ends, because `position` takes ended blocks for full ones.
        let content = self.position();
        if !self.block.is_empty() {
            self.end_block()?;
        }
        self.file.commit()?;
        Ok(content)
    }
}

/// A table of entries of one size that starts at a block, with as many entries in each block as fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockTable {
    pub(crate) first_block: u64,
    pub(crate) entries: u64,
    /// Number of bytes of an entry.
    pub(crate) width: usize,
}

impl BlockTable {
    /// Returns the number of entries in a block.
    pub(crate) fn per_block(&self) -> u64 {
        (CONTENT / self.width) as u64
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.entries.div_ceil(self.per_block())
    }

    /// Returns the number of the block after the last one.
    pub(crate) fn end_block(&self) -> u64 {
        // Numbers in a damaged manifest saturate, and then exceed the blocks of the file.
        self.first_block.saturating_add(self.blocks())
    }

    /// Returns the number of the block that contains an entry.
    pub(crate) fn block_of(&self, entry: u64) -> u64 {
        self.first_block.saturating_add(entry / self.per_block())
    }

    /// Returns the position of an entry in its block.
    pub(crate) fn offset_of(&self, entry: u64) -> usize {
        (entry % self.per_block()) as usize * self.width
    }
}

/// The blocks that were read last.
#[derive(Default)]
pub(crate) struct BlockRun {
    first: u64,
    /// Complete blocks, with their checksums.
    bytes: Vec<u8>,
}

impl BlockRun {
    fn contains(&self, first: u64, count: u64) -> bool {
        // A short last block does not count, because no table needs it.
        let blocks = (self.bytes.len() / BLOCK) as u64;
        let before = first.checked_sub(self.first);
        before.is_some_and(|before| before.saturating_add(count) <= blocks)
    }

    /// Returns the content of a block, which must have been read.
    pub(crate) fn content(&self, block: u64) -> &[u8] {
        // Blocks in a run are full: `load` refuses the shorter last block of a file.
        let from = (block - self.first) as usize * BLOCK;
        &self.bytes[from..from + CONTENT]
    }
}

/// A file of blocks that is being read. Blocks are checked each time they are read.
pub(crate) struct CheckedBlockFile {
    file: File,
    path: PathBuf,
    identity: u64,
    content: u64,
}

impl CheckedBlockFile {
    /// Opens a file with `content` bytes of content.
    pub(crate) fn open(path: &Path, identity: u64, content: u64) -> Result<Self, CollectionError> {
        let file = open_regular(path).map_err(CollectionError::unopened(path))?;
        let metadata = file.metadata();
        let metadata = metadata.map_err(CollectionError::unreadable(path))?;
        let (found, expected) = (metadata.len(), file_bytes(content));
        // Detect a truncated file here, and not only when a missing block is read.
        if found != expected {
            return Err(CollectionError::damaged(
                path,
                format!("the file has {found} bytes, but {expected} were written"),
            ));
        }
        Ok(Self {
            file,
            path: path.to_owned(),
            identity,
            content,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of bytes of the file.
    pub(crate) fn bytes(&self) -> u64 {
        file_bytes(self.content)
    }

    /// Reads `length` bytes at `position` into `bytes`, replacing its contents.
    pub(crate) fn read(
        &self,
        position: u64,
        length: usize,
        bytes: &mut Vec<u8>,
    ) -> Result<(), CollectionError> {
        let end = position
            .checked_add(length as u64)
            .filter(|&end| end <= self.content)
            .ok_or_else(|| self.past_end_error())?;
        // An empty range may be at the end, where no block exists.
        if length == 0 {
            bytes.clear();
            return Ok(());
        }
        let first = position / CONTENT as u64;
        let last = (end - 1) / CONTENT as u64;
        self.read_blocks(first, last + 1 - first, bytes)?;
        strip_checksums(bytes, (position - first * CONTENT as u64) as usize, length);
        Ok(())
    }

    /// Reads `count` blocks, unless `run` already has them.
    pub(crate) fn load(
        &self,
        first: u64,
        count: u64,
        run: &mut BlockRun,
    ) -> Result<(), CollectionError> {
        if run.contains(first, count) {
            return Ok(());
        }
        // Taken out, because a failed read would leave other bytes in the run.
        let mut bytes = std::mem::take(&mut run.bytes);
        let end = first
            .checked_add(count)
            .and_then(|end| end.checked_mul(CONTENT as u64));
        // Tables are filled up to the end of a block, so a block that is not full cannot be one of theirs.
        if end.is_none_or(|end| end > self.content) {
            return Err(self.past_end_error());
        }
        self.read_blocks(first, count, &mut bytes)?;
        *run = BlockRun { first, bytes };
        Ok(())
    }

    fn past_end_error(&self) -> CollectionError {
        CollectionError::damaged(&self.path, "it refers to data beyond its end")
    }

    /// Reads `count` blocks of the file with their checksums, and checks these.
    fn read_blocks(
        &self,
        first: u64,
        count: u64,
        bytes: &mut Vec<u8>,
    ) -> Result<(), CollectionError> {
        let from = first * BLOCK as u64;
        // Complete blocks, because a checksum covers a complete block; the last block of the file is shorter.
        let to = (from + count * BLOCK as u64).min(file_bytes(self.content));
        bytes.resize((to - from) as usize, 0);
        self.file
            .read_exact_at(bytes, from)
            .map_err(CollectionError::unreadable(&self.path))?;
        self.check(first, bytes)
    }

    /// Checks the checksums of blocks from `first` on.
    fn check(&self, first: u64, blocks: &[u8]) -> Result<(), CollectionError> {
        for (number, block) in (first..).zip(blocks.chunks(BLOCK)) {
            let is_right = block
                .split_last_chunk()
                .is_some_and(|(content, sum)| *sum == checksum(self.identity, number, content));
            if !is_right {
                let place = number * BLOCK as u64;
                let reason = format!("damaged within the {BLOCK} bytes at {place}");
                return Err(CollectionError::damaged(&self.path, reason));
            }
        }
        Ok(())
    }

    /// Checks the whole file. Returns the number of its bytes.
    pub(crate) fn verify(&self) -> Result<u64, CollectionError> {
        const STEP: u64 = 256 * CONTENT as u64;
        let mut bytes = Vec::new();
        let mut position = 0;
        while position < self.content {
            let length = STEP.min(self.content - position);
            self.read(position, length as usize, &mut bytes)?;
            position += length;
        }
        Ok(file_bytes(self.content))
    }
}

/// Removes checksums, and the bytes before and after the wanted ones, from blocks.
fn strip_checksums(bytes: &mut Vec<u8>, skipped: usize, length: usize) {
    let mut kept = 0;
    let mut at = skipped;
    while kept < length {
        // `at` is a position in the blocks as read, with their checksums; it is never within a checksum.
        let here = (CONTENT - at % BLOCK).min(length - kept);
        bytes.copy_within(at..at + here, kept);
        kept += here;
        at += here + CHECKSUM;
    }
    bytes.truncate(length);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(path: &Path, content: &[u8], step: usize) {
        let mut writer = CheckedBlockWriter::create(path, 7).unwrap();
        content
            .chunks(step)
            .for_each(|bytes| writer.write(bytes).unwrap());
        assert_eq!(writer.commit().unwrap(), content.len() as u64);
    }

    fn content(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * at / 7) as u8).collect()
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_from_any_place(
            length in prop_oneof![0..20_000_usize, 4080..4100_usize, 8170..8190_usize],
            step in 1..9_000_usize,
            ranges in prop::collection::vec((0.0..=1.0_f64, 0.0..=1.0_f64), 1..8),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("blocks");
            let content = content(length);
            written(&path, &content, step);
            let file = CheckedBlockFile::open(&path, 7, length as u64).unwrap();
            let mut found = Vec::new();
            for (start, share) in ranges {
                let start = (start * length as f64) as usize;
                let count = (share * (length - start) as f64) as usize;
                file.read(start as u64, count, &mut found).unwrap();
                prop_assert_eq!(&found, &content[start..start + count]);
            }
            prop_assert_eq!(file.verify().unwrap(), std::fs::metadata(&path).unwrap().len());
        }
    }

    proptest! {
        #[test]
        fn no_entry_of_a_table_is_in_two_blocks(
            before in 0..9_000_usize,
            entries in 0..3_000_u64,
            width in prop::sample::select(vec![4_usize, 12, 24]),
            count in 1..4_u64,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("blocks");
            let mut writer = CheckedBlockWriter::create(&path, 7).unwrap();
            writer.write(&content(before)).unwrap();
            writer.fill_block().unwrap();
            let table = BlockTable { first_block: writer.position() / CONTENT as u64, entries, width };
            let entry = |number: u64| -> Vec<u8> { (0..width as u64).map(|at| (number * 7 + at) as u8).collect() };
            (0..entries).for_each(|number| writer.write_entry(&entry(number)).unwrap());
            writer.fill_block().unwrap();
            let position = writer.commit().unwrap();
            prop_assert_eq!(position, table.end_block() * CONTENT as u64);
            let file = CheckedBlockFile::open(&path, 7, position).unwrap();
            let mut run = BlockRun::default();
            for number in 0..entries {
                let block = table.block_of(number);
                file.load(block, count.min(table.end_block() - block), &mut run).unwrap();
                let at = table.offset_of(number);
                prop_assert_eq!(&run.content(block)[at..at + width], entry(number));
            }
            prop_assert!(file.load(table.end_block(), 1, &mut run).is_err());
            prop_assert!(file.load(u64::MAX, 1, &mut run).is_err());
        }
    }

    #[test]
    fn changed_bytes_and_cuts_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("blocks");
        written(&path, &content(9000), 1000);
        let good = std::fs::read(&path).unwrap();
        let refused = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let opened = CheckedBlockFile::open(&path, 7, 9000);
            opened.and_then(|file| file.verify()).err()
        };
        // All of a block have one checksum, and all bits have their turn.
        for at in (0..good.len()).step_by(7) {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            let error = refused(&bad).unwrap().to_string();
            assert!(error.contains("damaged within"), "{error}");
        }
        for length in (0..good.len()).step_by(37) {
            let error = refused(&good[..length]).unwrap().to_string();
            assert!(error.contains("were written"), "{error}");
        }
        assert!(refused(&good).is_none());
    }

    #[test]
    fn blocks_of_another_file_and_from_another_place_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("blocks");
        written(&path, &content(9000), 1000);
        let other = CheckedBlockFile::open(&path, 8, 9000).unwrap();
        assert!(other.verify().is_err());
        let mut bytes = std::fs::read(&path).unwrap();
        let (first, second) = bytes.split_at_mut(BLOCK);
        first.swap_with_slice(&mut second[..BLOCK]);
        std::fs::write(&path, &bytes).unwrap();
        assert!(
            CheckedBlockFile::open(&path, 7, 9000)
                .unwrap()
                .verify()
                .is_err()
        );
    }
}
