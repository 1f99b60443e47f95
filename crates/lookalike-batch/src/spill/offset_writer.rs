//! Buffered writing from a position of a file on.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

/// Number of bytes that are written at a time.
const BLOCK_BYTES: usize = 256 << 10;

/// Writer that starts at a position of a file.
pub(crate) struct OffsetWriter<'f> {
    file: &'f File,
    block: Vec<u8>,
    /// Position of the end of what was written to the file.
    pub(crate) end: u64,
}

impl<'f> OffsetWriter<'f> {
    pub(crate) fn new(file: &'f File, start: u64) -> Self {
        Self {
            file,
            block: Vec::new(),
            end: start,
        }
    }
}

impl Write for OffsetWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.block.extend_from_slice(bytes);
        // Most writes are small, and a system call for each would cost more than the rest.
        if self.block.len() >= BLOCK_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.block, self.end)?;
        self.end += self.block.len() as u64;
        self.block.clear();
        Ok(())
    }
}
