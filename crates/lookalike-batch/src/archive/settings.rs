//! Settings for building an archive.

use std::fmt;
use std::str::FromStr;

use crate::archive::format::MAX_RECORD_IN_BLOCK;
use crate::setting_words::ParseSettingError;

/// Compression settings of an archive. They do not affect what it restores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveSettings {
    /// Compression level.
    pub level: ArchiveLevel,
    /// Size of the blocks.
    pub block: ArchiveBlockSize,
}

/// Compression level from 1 to 19.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveLevel(i32);

impl ArchiveLevel {
    pub(super) fn number(self) -> i32 {
        self.0
    }
}

impl Default for ArchiveLevel {
    fn default() -> Self {
        Self(19)
    }
}

impl FromStr for ArchiveLevel {
    type Err = ParseSettingError;

    fn from_str(text: &str) -> Result<Self, ParseSettingError> {
        let level = text.parse().ok().filter(|level| (1..=19).contains(level));
        let fault = "is not a compression level from 1 to 19";
        let level = level.ok_or_else(|| ParseSettingError::malformed(text, fault));
        level.map(Self)
    }
}

impl fmt::Display for ArchiveLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Bytes of documents that are compressed together, from 64 KiB to 32 MiB. A single document of up to 32 MiB always lies in one block.
///
/// Larger blocks compress better. Reading one document decompresses its block and at most one other, so smaller blocks make that faster and take less
/// memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveBlockSize(u64);

impl ArchiveBlockSize {
    /// The smallest block size.
    pub const MIN: Self = Self(64 << 10);
    /// The largest block size, and the default.
    pub const MAX: Self = Self(MAX_RECORD_IN_BLOCK);

    /// Returns the size in bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }
}

impl Default for ArchiveBlockSize {
    fn default() -> Self {
        Self::MAX
    }
}

impl TryFrom<u64> for ArchiveBlockSize {
    type Error = ArchiveBlockSizeError;

    fn try_from(bytes: u64) -> Result<Self, ArchiveBlockSizeError> {
        match (Self::MIN.0..=Self::MAX.0).contains(&bytes) {
            true => Ok(Self(bytes)),
            false => Err(ArchiveBlockSizeError { bytes }),
        }
    }
}

/// Error: a block size outside the allowed range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the block size of an archive is from 64K to 32M, not {bytes} bytes")]
pub struct ArchiveBlockSizeError {
    /// The size in bytes.
    pub bytes: u64,
}
