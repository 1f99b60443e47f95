//! Errors of fingerprint files and archives, and the reading of their numbers.

use std::io::{self, Read};
use xxhash_rust::xxh3::xxh3_64;

/// Error of a fingerprint file, archive or index.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Reading or writing failed.
    #[error("reading or writing fingerprints")]
    Io(#[from] io::Error),
    /// The first bytes are not those of this kind of file.
    #[error("not a {expected}: it does not begin with {magic:?}")]
    WrongMagic {
        /// The kind of file.
        expected: &'static str,
        /// First bytes of such a file.
        magic: &'static str,
    },
    /// The version is unknown to this program.
    #[error("unknown version {found} of the {kind} format; this program reads version {known}")]
    Version {
        /// The kind of file.
        kind: &'static str,
        /// Version of the file.
        found: u32,
        /// Version that this program reads.
        known: u32,
    },
    /// The codes have another width.
    #[error("the file holds codes of {found} bits, not {wanted}")]
    OtherWidth {
        /// Width of the file.
        found: u32,
        /// Width that was asked for.
        wanted: u32,
    },
    /// The tables that are already written are not those of the design.
    #[error("the tables written so far are of another design")]
    OtherDesign,
    /// A check failed, or an impossible value was read.
    #[error("damaged at byte {offset}: {what}")]
    Damaged {
        /// Start of the damaged part.
        offset: u64,
        /// Description of the damage.
        what: &'static str,
    },
    /// The file ends too early.
    #[error("cut off at byte {offset}")]
    Truncated {
        /// End of the file.
        offset: u64,
    },
    /// Fingerprints that must be ascending are not.
    #[error("fingerprint {at} is smaller than the one before it: sort them first")]
    NotSorted {
        /// Position of the fingerprint.
        at: u64,
    },
    /// The id is too long for any file.
    #[error("an id of {0} bytes is too long for a fingerprint file; the maximum is 125,829,120")]
    LongId(usize),
    /// An id that is a text was given to a file whose ids are numbers.
    #[error("the ids of this fingerprint file are numbers, so it takes no texts")]
    NumberIds,
    /// The block size is out of range.
    #[error("a block size of {0} bytes is not possible; choose 64 to 65536")]
    BlockSize(u32),
}

/// The beginning of the files of one format.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct FileFormat {
    /// The first four bytes.
    pub magic: &'static str,
    /// A file of the format.
    pub file: &'static str,
    /// The format.
    pub kind: &'static str,
    pub version: u32,
}

impl FileFormat {
    /// Returns the first eight bytes.
    pub fn start(&self) -> [u8; 8] {
        let mut start = [0; 8];
        start[..4].copy_from_slice(self.magic.as_bytes());
        start[4..].copy_from_slice(&self.version.to_le_bytes());
        start
    }

    /// Checks a header, which ends with its checksum.
    pub fn check(&self, header: &[u8]) -> Result<(), FileError> {
        if !header.starts_with(self.magic.as_bytes()) {
            return Err(FileError::WrongMagic {
                expected: self.file,
                magic: self.magic,
            });
        }
        // Compared before the check, because the header of another version may have another length.
        let (kind, found, known) = (self.kind, number(&header[4..8]) as u32, self.version);
        if found != known {
            return Err(FileError::Version { kind, found, known });
        }
        let (content, check) = header.split_at(header.len() - 8);
        if xxh3_64(content) != number(check) {
            let what = "the header does not match its checksum";
            return Err(FileError::Damaged { offset: 0, what });
        }
        Ok(())
    }
}

/// Reads a little-endian number of at most eight bytes.
pub(super) fn number(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(whole)
}

/// Returns an error unless the input ends here, at `offset`.
pub(super) fn expect_end(input: &mut impl Read, offset: u64) -> Result<(), FileError> {
    match input.take(1).read_to_end(&mut Vec::new())? {
        0 => Ok(()),
        _ => Err(FileError::Damaged {
            offset,
            what: "bytes follow the end",
        }),
    }
}

/// Fills `bytes`, or returns [`FileError::Truncated`] if the file ends before.
pub(super) fn read_or_truncated(
    input: &mut impl Read,
    bytes: &mut [u8],
    offset: u64,
) -> Result<(), FileError> {
    // Not `read_exact`, which does not tell where the file ends.
    let mut filled = 0;
    while filled < bytes.len() {
        match input.read(&mut bytes[filled..]) {
            Ok(0) => {
                return Err(FileError::Truncated {
                    offset: offset + filled as u64,
                });
            }
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
