//! Checksums of data on the medium: XXH3-64, with a seed that says what the bytes are and where they belong.
//!
//! The seed covers the collection, the file, the offset and a number, so that an intact block that was moved within a file, swapped with
//! another, or copied from another file or store does not match.

use std::path::Path;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::codec::fixed;
use crate::error::{Result, StoreError};

/// The identity of a file: its collection and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    pub(crate) collection: u64,
    pub(crate) number: u64,
}

/// Computes the checksums of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileChecksum(u64);

impl FileChecksum {
    pub(crate) fn new(file: FileIdentity) -> Self {
        // All seeds of a file derive from the hash of this pair, so that offsets of different files do not line up.
        let numbers = [file.collection, file.number];
        Self(xxh3_64(&numbers.map(u64::to_le_bytes).concat()))
    }

    /// Returns the checksum of the block at an offset.
    pub(crate) fn of_block(self, bytes: &[u8], offset: u64) -> u64 {
        self.of_numbered_block(bytes, offset, 0)
    }

    /// Returns the checksum of the block at an offset, distinguished by a number, such as that of a frame.
    pub(crate) fn of_numbered_block(self, bytes: &[u8], offset: u64, number: u64) -> u64 {
        #[cfg(any(test, feature = "fuzzing"))]
        if CHECKS_DISABLED.get() {
            return 0;
        }
        xxh3_64_with_seed(bytes, self.seed(offset, number))
    }

    fn seed(self, offset: u64, number: u64) -> u64 {
        // Multiplying by an odd number, here those of SplitMix64, is a bijection: no two offsets of a file share a seed, and no two numbers
        // at the same offset do.
        let mixed = self.0 ^ offset.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed.rotate_left(29) ^ number.wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }
}

/// Returns the header of a file: its letters, the version of the format, numbers, zeros, and a checksum.
pub(crate) fn header<const BYTES: usize>(
    letters: [u8; 4],
    version: u32,
    numbers: &[u64],
) -> [u8; BYTES] {
    let mut header = [0; BYTES];
    header[..4].copy_from_slice(&letters);
    header[4..8].copy_from_slice(&version.to_le_bytes());
    let (slots, _) = header[8..].as_chunks_mut();
    for (slot, number) in slots.iter_mut().zip(numbers) {
        *slot = number.to_le_bytes();
    }
    let check = whole_file(&header[..BYTES - 8]);
    header[BYTES - 8..].copy_from_slice(&check.to_le_bytes());
    header
}

/// Checks a header that begins with four letters and a version and ends with its checksum. `other` describes a file that begins with other
/// letters.
pub(crate) fn check_header(
    path: &Path,
    header: &[u8],
    letters: [u8; 4],
    other: &'static str,
    known: u32,
) -> Result<()> {
    if header[..4] != letters {
        return Err(StoreError::foreign(path, other));
    }
    // The version comes before the check: another version may place its check elsewhere.
    let found = fixed(&header[4..8]) as u32;
    if found != known {
        return Err(StoreError::version(path, found, known));
    }
    let (content, check) = header.split_at(header.len() - 8);
    if whole_file(content) != fixed(check) {
        let what = "the header does not match its checksum";
        return Err(StoreError::damaged(path, 0, what));
    }
    Ok(())
}

/// Checksum of a small file that is read whole.
pub(crate) fn whole_file(bytes: &[u8]) -> u64 {
    #[cfg(any(test, feature = "fuzzing"))]
    if CHECKS_DISABLED.get() {
        return 0;
    }
    xxh3_64(bytes)
}

#[cfg(any(test, feature = "fuzzing"))]
thread_local! {
    static CHECKS_DISABLED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Makes all checksums of this thread zero, so that none fails.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn disable_checks(disable_checks: bool) {
    CHECKS_DISABLED.set(disable_checks);
}
