//! The low-level structure of a run file: checksummed blocks of any length, and sections that are read as a whole, page by page.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lookalike_hamming::huge_page_buffer;

use crate::checksum::{FileChecksum, FileIdentity};
use crate::codec::fixed;
use crate::error::{Result, StoreError};
use crate::fs::{FileHandle, FileSystem, read_exact, write_all};

/// Size of a page of a section in bytes, including its checksum.
pub(crate) const PAGE: usize = 1 << 16;
/// Size of a page's contents in bytes.
pub(crate) const PAGE_CONTENT: usize = PAGE - CHECK;
/// Size of a checksum in bytes.
pub(crate) const CHECK: usize = 8;
/// Number of bytes that are buffered before they are written.
const BUFFER: usize = 1 << 20;
/// Number of written bytes after which they are synced, so that no later sync has to wait for all of them.
const UNSYNCED: u64 = 16 << 20;

/// The location of a section: its offset, and the length of its contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunSection {
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

impl RunSection {
    /// Returns the end of the section in the file, or `None` if that overflows.
    pub(crate) fn end(&self) -> Option<u64> {
        let pages = self.length.div_ceil(PAGE_CONTENT as u64);
        let stored = pages.checked_mul(CHECK as u64)?.checked_add(self.length)?;
        self.offset.checked_add(stored)
    }
}

/// The location of a sorted index in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexLocation {
    /// Offset of the first block.
    pub(crate) offset: u64,
    /// Number of entries.
    pub(crate) count: u64,
    /// First key of each block, 8 bytes each.
    pub(crate) first_keys: RunSection,
}

/// Returns [`StoreError::Closed`] once the run is cancelled.
pub(crate) fn check_cancelled(cancelled: &AtomicBool) -> Result<()> {
    if cancelled.load(Ordering::Acquire) {
        Err(StoreError::Closed)
    } else {
        Ok(())
    }
}

/// Writes a new file from beginning to end.
#[derive(Debug)]
pub(crate) struct BlockWriter<'a> {
    /// Set once the run is cancelled.
    pub(crate) cancelled: &'a AtomicBool,
    reader: BlockReader,
    buffer: Vec<u8>,
    // Number of bytes in the file, and of those among them that are synced.
    written: u64,
    synced: u64,
}

impl<'a> BlockWriter<'a> {
    pub(crate) fn create(
        fs: &dyn FileSystem,
        path: &Path,
        identity: FileIdentity,
        cancelled: &'a AtomicBool,
    ) -> Result<Self> {
        let file = fs
            .create(path)
            .map_err(StoreError::io(path, "creating a run"))?;
        Ok(Self {
            cancelled,
            reader: BlockReader::new(file, path, identity),
            // A whole page is appended before the buffer is checked.
            buffer: Vec::with_capacity(BUFFER + PAGE),
            written: 0,
            synced: 0,
        })
    }

    /// Returns the offset of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    pub(crate) fn checksum(&self) -> FileChecksum {
        self.reader.checksum
    }

    /// Writes the buffered bytes to the file. Returns a reader of what is written.
    pub(crate) fn flushed(&mut self) -> Result<BlockReader> {
        self.flush()?;
        Ok(self.reader.clone())
    }

    /// Appends bytes without a checksum.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Appends a block and its checksum. Returns its offset.
    pub(crate) fn block(&mut self, content: &[u8]) -> Result<u64> {
        let offset = self.offset();
        let check = self.checksum().of_block(content, offset);
        self.buffer.extend_from_slice(content);
        self.raw(&check.to_le_bytes())?;
        Ok(offset)
    }

    /// Writes a section with these contents.
    pub(crate) fn section(&mut self, bytes: &[u8]) -> Result<RunSection> {
        let mut section = SectionWriter::new(self);
        section.put(bytes)?;
        section.finish()
    }

    fn flush(&mut self) -> Result<()> {
        check_cancelled(self.cancelled)?;
        write_all(&*self.reader.file, &self.buffer, self.written)
            .map_err(StoreError::io(&self.reader.path, "writing a run"))?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        // Syncing gigabytes at the end would delay every sync of the log that comes after, because ext4 commits its journal in order.
        if self.written - self.synced > UNSYNCED {
            self.sync()?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        let synced = self.reader.file.sync();
        synced.map_err(StoreError::io(&self.reader.path, "syncing a run"))?;
        self.synced = self.written;
        Ok(())
    }

    /// Syncs the file, but not the folder that names it.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.flush()?;
        self.sync()
    }
}

/// Writes the contents of a section piece by piece.
pub(crate) struct SectionWriter<'a, 'b> {
    out: &'a mut BlockWriter<'b>,
    page: Vec<u8>,
    offset: u64,
    length: u64,
}

impl<'a, 'b> SectionWriter<'a, 'b> {
    pub(crate) fn new(out: &'a mut BlockWriter<'b>) -> Self {
        let offset = out.offset();
        Self {
            out,
            page: Vec::with_capacity(PAGE),
            offset,
            length: 0,
        }
    }

    pub(crate) fn put(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.length += bytes.len() as u64;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PAGE_CONTENT - self.page.len()));
            self.page.extend_from_slice(now);
            bytes = later;
            if self.page.len() == PAGE_CONTENT {
                self.out.block(&self.page)?;
                self.page.clear();
            }
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<RunSection> {
        if !self.page.is_empty() {
            self.out.block(&self.page)?;
        }
        Ok(RunSection {
            offset: self.offset,
            length: self.length,
        })
    }
}

/// Errors are a [`StoreError`] within an [`io::Error`].
impl Write for SectionWriter<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.put(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads blocks of a file, and verifies the checksum of each.
#[derive(Clone, Debug)]
pub(crate) struct BlockReader {
    file: Arc<dyn FileHandle>,
    path: Arc<Path>,
    checksum: FileChecksum,
}

impl BlockReader {
    pub(crate) fn new(file: Box<dyn FileHandle>, path: &Path, identity: FileIdentity) -> Self {
        Self {
            file: file.into(),
            path: path.into(),
            checksum: FileChecksum::new(identity),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn checksum(&self) -> FileChecksum {
        self.checksum
    }

    /// Returns the error of damage at `offset` of the file.
    pub(crate) fn damaged(&self, offset: u64, what: impl Into<String>) -> StoreError {
        StoreError::damaged(&self.path, offset, what)
    }

    /// Returns the length of the file.
    pub(crate) fn length(&self) -> Result<u64> {
        let length = self.file.length();
        length.map_err(StoreError::io(&self.path, "reading a run"))
    }

    /// Reads bytes without a checksum.
    pub(crate) fn raw<const BYTES: usize>(&self, offset: u64) -> Result<[u8; BYTES]> {
        let mut bytes = [0; BYTES];
        read_exact(&*self.file, &mut bytes, offset)
            .map_err(StoreError::io(&self.path, "reading a run"))?;
        Ok(bytes)
    }

    /// Reads the block of `stored` bytes, including its checksum, and puts its contents into `into`.
    pub(crate) fn block(&self, offset: u64, stored: usize, into: &mut Vec<u8>) -> Result<()> {
        into.resize(stored, 0);
        read_exact(&*self.file, into, offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.damaged(offset, "the file ends within a block"),
            _ => StoreError::io(&self.path, "reading a run")(error),
        })?;
        let content = stored.saturating_sub(CHECK);
        if stored < CHECK
            || self.checksum.of_block(&into[..content], offset) != fixed(&into[content..])
        {
            let what = format!("these {stored} bytes do not match their checksum");
            return Err(self.damaged(offset, what));
        }
        into.truncate(content);
        Ok(())
    }

    /// Reads the contents of a section.
    pub(crate) fn section(&self, section: RunSection) -> Result<Vec<u8>> {
        // In a buffer of huge pages, because tables are accessed at random. The length cannot exceed that of the file (`RunFooter::fits`).
        let mut content = huge_page_buffer(section.length as usize);
        self.pages(section, &mut |page| {
            content.extend_from_slice(page);
            Ok(())
        })?;
        Ok(content)
    }

    /// Passes the contents of a section to `each`, page by page.
    pub(crate) fn pages(
        &self,
        section: RunSection,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let (mut offset, mut left, mut page) =
            (section.offset, section.length as usize, Vec::new());
        while left > 0 {
            // The sizes of pages follow from the length of the section, so no directory of pages is stored.
            let content = left.min(PAGE_CONTENT);
            self.block(offset, content + CHECK, &mut page)?;
            each(&page)?;
            offset += (content + CHECK) as u64;
            left -= content;
        }
        Ok(())
    }

    /// Passes the contents of a section to `each`, in rows of `bytes` bytes.
    pub(crate) fn rows(
        &self,
        section: RunSection,
        bytes: usize,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        // A row may start on one page and end on the next.
        let mut begun = Vec::with_capacity(bytes);
        self.pages(section, &mut |page| {
            // Zero if no row has begun: the page then starts with a whole row.
            let missing = (bytes - begun.len()) % bytes;
            let (end, page) = page.split_at(missing.min(page.len()));
            begun.extend_from_slice(end);
            if begun.len() == bytes {
                each(&begun)?;
                begun.clear();
            }
            let mut rows = page.chunks_exact(bytes);
            begun.extend_from_slice(rows.remainder());
            rows.try_for_each(&mut *each)
        })
    }

    /// Reads a section of little-endian 8-byte words.
    pub(crate) fn words(&self, section: RunSection) -> Result<Vec<u64>> {
        let mut words = Vec::with_capacity(section.length as usize / 8);
        // Pages hold whole words.
        self.pages(section, &mut |page| {
            words.extend(page.chunks_exact(8).map(fixed));
            Ok(())
        })?;
        Ok(words)
    }
}

const _: () = assert!(PAGE_CONTENT.is_multiple_of(8));
