//! Reads raw little-endian numbers of 32, 64 or 128 bits, one for each fingerprint.

use std::io::Read;

use lookalike_hamming::{FileError, Word};

use super::open::FingerprintStream;

/// Bytes read at once, few enough to stay in the second-level cache until they are converted.
const READ_BYTES: usize = 1 << 17;

/// A stream of numbers.
pub(crate) struct RawReader {
    input: FingerprintStream,
    bytes: Vec<u8>,
    offset: u64,
}

impl RawReader {
    pub(crate) fn new(input: FingerprintStream) -> Self {
        Self {
            input,
            bytes: vec![0; READ_BYTES],
            offset: 0,
        }
    }

    /// Appends the next numbers. Returns false at the end.
    pub(crate) fn read<W: Word>(&mut self, out: &mut Vec<W>) -> Result<bool, FileError> {
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
        // Pieces are whole numbers of fingerprints, so only the end of the input can leave a partial one.
        if !numbers.remainder().is_empty() {
            return Err(FileError::Truncated {
                offset: self.offset,
            });
        }
        out.extend(numbers.map(W::read));
        Ok(filled == READ_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// A stream whose every second read is interrupted; the others return three bytes.
    struct Interrupted(&'static [u8], bool);

    impl Read for Interrupted {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let most = out.len().min(3);
            self.0.read(&mut out[..most])
        }
    }

    #[test]
    fn a_signal_ended_the_reading_of_gathered_fingerprints() {
        let bytes = &[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0];
        let mut reader = RawReader::new(Box::new(Interrupted(bytes, false)));
        let mut codes = Vec::<u32>::new();
        while reader.read(&mut codes).unwrap() {}
        assert_eq!(codes, [1, 2, 3]);
    }
}
