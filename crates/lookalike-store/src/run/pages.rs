//! A run file from below: sealed blocks of any length, and sections that are read whole, page by page.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lookalike_hamming::huge_page_buffer;

use crate::checksum::FileChecksum;
use crate::codec::fixed;
use crate::error::{Result, StoreError};
use crate::fs::{FileHandle, FileSystem, read_exact, write_all};

/// Bytes of a page of a section with its check.
pub(crate) const PAGE: usize = 1 << 16;
/// Bytes of its content.
pub(crate) const PAGE_CONTENT: usize = PAGE - CHECK;
/// Bytes of a check.
pub(crate) const CHECK: usize = 8;
/// Bytes that are gathered before they are written.
const BUFFER: usize = 1 << 20;
/// Bytes that are written before they are made durable, so that no later sync has to wait for all of them.
const UNSYNCED: u64 = 16 << 20;

/// A section: where it begins, and the length of its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunSection {
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

impl RunSection {
    /// End in the file; `None` beyond the end of any.
    pub(crate) fn end(&self) -> Option<u64> {
        let pages = self.length.div_ceil(PAGE_CONTENT as u64);
        let stored = pages.checked_mul(CHECK as u64)?.checked_add(self.length)?;
        self.offset.checked_add(stored)
    }
}

/// Location of a sorted index in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexLocation {
    /// Offset of the first block.
    pub(crate) offset: u64,
    /// Number of entries.
    pub(crate) count: u64,
    /// First key of each block, 8 bytes each.
    pub(crate) first_keys: RunSection,
}

/// Gives up what is not wanted any more.
pub(crate) fn ensure_wanted(cancelled: &AtomicBool) -> Result<()> {
    if cancelled.load(Ordering::Acquire) {
        Err(StoreError::Closed)
    } else {
        Ok(())
    }
}

/// Writes a new file from its first byte to its last.
#[derive(Debug)]
pub(crate) struct BlockWriter<'a> {
    /// Set when the run is not wanted any more.
    cancelled: &'a AtomicBool,
    path: PathBuf,
    file: Arc<dyn FileHandle>,
    checksum: FileChecksum,
    buffer: Vec<u8>,
    written: u64,
    synced: u64,
}

impl<'a> BlockWriter<'a> {
    pub(crate) fn create(
        fs: &dyn FileSystem,
        path: &Path,
        checksum: FileChecksum,
        cancelled: &'a AtomicBool,
    ) -> Result<Self> {
        let file = fs
            .create(path)
            .map_err(StoreError::io(path, "creating a run"))?;
        Ok(Self {
            cancelled,
            path: path.to_owned(),
            file: file.into(),
            checksum,
            buffer: Vec::with_capacity(BUFFER + PAGE),
            written: 0,
            synced: 0,
        })
    }

    /// Offset of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    pub(crate) fn checksum(&self) -> FileChecksum {
        self.checksum
    }

    /// The file, to be read where it is written already: see [`BlockWriter::flush`].
    pub(crate) fn file(&self) -> Arc<dyn FileHandle> {
        Arc::clone(&self.file)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Appends a block and its check; where it begins.
    pub(crate) fn block(&mut self, content: &[u8]) -> Result<u64> {
        let offset = self.offset();
        let check = self.checksum.of_block(content, offset);
        self.buffer.extend_from_slice(content);
        self.raw(&check.to_le_bytes())?;
        Ok(offset)
    }

    /// A section of these bytes.
    pub(crate) fn section(&mut self, bytes: &[u8]) -> Result<RunSection> {
        let mut section = SectionWriter::new(self);
        section.put(bytes)?;
        section.finish()
    }

    /// The flag that says whether the run is not wanted any more.
    pub(crate) fn cancelled(&self) -> &'a AtomicBool {
        self.cancelled
    }

    /// Hands everything to the file, so that it can be read back.
    pub(crate) fn flush(&mut self) -> Result<()> {
        ensure_wanted(self.cancelled)?;
        write_all(&*self.file, &self.buffer, self.written)
            .map_err(StoreError::io(&self.path, "writing a run"))?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        // A run of gigabytes in one sync at the end would delay every sync of the log behind it: ext4 writes a
        // journal in order.
        if self.written - self.synced > UNSYNCED {
            self.sync()?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.file
            .sync()
            .map_err(StoreError::io(&self.path, "syncing a run"))?;
        self.synced = self.written;
        Ok(())
    }

    /// Makes the file durable, but for its name.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.flush()?;
        self.sync()
    }
}

/// Writes the content of a section piece by piece.
pub(crate) struct SectionWriter<'a, 'b> {
    out: &'a mut BlockWriter<'b>,
    page: Vec<u8>,
    offset: u64,
    length: u64,
    failed: Option<StoreError>,
}

impl<'a, 'b> SectionWriter<'a, 'b> {
    pub(crate) fn new(out: &'a mut BlockWriter<'b>) -> Self {
        let offset = out.offset();
        Self {
            out,
            page: Vec::with_capacity(PAGE),
            offset,
            length: 0,
            failed: None,
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
        if let Some(error) = self.failed {
            return Err(error);
        }
        if !self.page.is_empty() {
            self.out.block(&self.page)?;
        }
        Ok(RunSection {
            offset: self.offset,
            length: self.length,
        })
    }

    /// The error of a write through [`Write`].
    pub(crate) fn take_failure(&mut self) -> Option<StoreError> {
        self.failed.take()
    }
}

impl Write for SectionWriter<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.put(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                self.failed = Some(error);
                Err(io::Error::other("writing a section"))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads sealed blocks; every one is checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockReader<'a> {
    pub(crate) file: &'a dyn FileHandle,
    pub(crate) path: &'a Path,
    pub(crate) checksum: FileChecksum,
}

impl BlockReader<'_> {
    /// The content of the block of so many bytes, check included.
    pub(crate) fn block(&self, offset: u64, stored: usize, into: &mut Vec<u8>) -> Result<()> {
        into.resize(stored, 0);
        read_exact(self.file, into, offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                StoreError::damaged(self.path, offset, "the file ends within a block")
            }
            _ => StoreError::io(self.path, "reading a run")(error),
        })?;
        let content = stored.saturating_sub(CHECK);
        if stored < CHECK
            || self.checksum.of_block(&into[..content], offset) != fixed(&into[content..])
        {
            let what = format!("these {stored} bytes do not match their check");
            return Err(StoreError::damaged(self.path, offset, what));
        }
        into.truncate(content);
        Ok(())
    }

    /// The content of a section.
    pub(crate) fn section(&self, section: RunSection) -> Result<Vec<u8>> {
        // Tables are read at random places.
        // The length is bounded by the file (`RunFooter::fits`).
        let mut content = huge_page_buffer(section.length as usize);
        self.pages(section, &mut |page| {
            content.extend_from_slice(page);
            Ok(())
        })?;
        Ok(content)
    }

    /// Hands on the content of a section page by page.
    pub(crate) fn pages(
        &self,
        section: RunSection,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let (mut offset, mut left, mut page) =
            (section.offset, section.length as usize, Vec::new());
        while left > 0 {
            // The size of a page follows from the length of the section, so that no directory of pages is
            // stored.
            let content = left.min(PAGE_CONTENT);
            self.block(offset, content + CHECK, &mut page)?;
            each(&page)?;
            offset += (content + CHECK) as u64;
            left -= content;
        }
        Ok(())
    }

    /// Hands on the content of a section in rows of so many bytes.
    pub(crate) fn rows(
        &self,
        section: RunSection,
        bytes: usize,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        // A row may begin on one page and end on the next.
        let mut begun = Vec::with_capacity(bytes);
        self.pages(section, &mut |page| {
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

    /// A section of little-endian words of eight bytes.
    pub(crate) fn words(&self, section: RunSection) -> Result<Vec<u64>> {
        let mut words = Vec::with_capacity(section.length as usize / 8);
        // A page holds a whole number of words.
        self.pages(section, &mut |page| {
            words.extend(page.chunks_exact(8).map(fixed));
            Ok(())
        })?;
        Ok(words)
    }
}

const _: () = assert!(PAGE_CONTENT.is_multiple_of(8));
