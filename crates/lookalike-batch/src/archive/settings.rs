//! Settings of an archive that is built.

use std::fmt;
use std::str::FromStr;

use crate::archive::format::LONGEST_IN_BLOCK;
use crate::setting_words::ParseSettingError;

/// The way in which an archive is compressed. What it gives back does not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveSettings {
    /// Level of compression.
    pub level: ArchiveLevel,
    /// Size of the blocks.
    pub block: ArchiveBlockSize,
}

/// Level of compression, from 1 to 19.
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

/// Bytes of documents that are compressed together, from 64 KiB to 32 MiB; one document of up to 32 MiB always is.
///
/// Larger blocks compress better. One document is read by unpacking its block, and at most one more: smaller blocks are faster at that,
/// and take less memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveBlockSize(u64);

impl ArchiveBlockSize {
    /// The smallest.
    pub const MIN: Self = Self(64 << 10);
    /// The largest, and the default.
    pub const MAX: Self = Self(LONGEST_IN_BLOCK);

    /// The size in bytes.
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

/// A size that blocks of an archive cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the block size of an archive is from 64K to 32M, not {bytes} bytes")]
pub struct ArchiveBlockSizeError {
    /// The size in bytes.
    pub bytes: u64,
}
