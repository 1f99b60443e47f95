//! Raw little-endian numbers of 32, 64 or 128 bits, one a fingerprint.

use std::io::Read;

use lookalike_hamming::{FileError, Word};

use super::open::FingerprintStream;

/// Bytes that are read at once: they are in the second-level cache still when they are taken out.
const READ_BYTES: usize = 1 << 17;

/// A stream of numbers.
pub(super) struct RawReader {
    input: FingerprintStream,
    bytes: Vec<u8>,
    offset: u64,
}

impl RawReader {
    pub(super) fn new(input: FingerprintStream) -> Self {
        Self {
            input,
            bytes: vec![0; READ_BYTES],
            offset: 0,
        }
    }

    /// Appends the next numbers; false at the end.
    pub(super) fn read<W: Word>(&mut self, out: &mut Vec<W>) -> Result<bool, FileError> {
        let mut filled = 0;
        while filled < READ_BYTES {
            match self.input.read(&mut self.bytes[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        let numbers = self.bytes[..filled].chunks_exact(W::BITS as usize / 8);
        self.offset += filled as u64;
        // Pieces are whole numbers of fingerprints: only the end of the input leaves a part of one.
        if !numbers.remainder().is_empty() {
            return Err(FileError::Cut {
                offset: self.offset,
            });
        }
        out.extend(numbers.map(W::read));
        Ok(filled == READ_BYTES)
    }
}
