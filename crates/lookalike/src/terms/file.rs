//! The bytes of a table of terms: version, scheme, counts, checksum.

use thiserror::Error;

use super::Terms;
use crate::hash::siphash::SipKey;
use crate::hash::xxh3_64;
use crate::scheme::TermsId;
use crate::scheme::{ParseSchemeError, Scheme};

/// First bytes of every table; the last one is the version.
const MAGIC: &[u8; 8] = b"LKTERM\0\x01";

/// Reason why bytes are no table of terms.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TermsFileError {
    /// They begin otherwise.
    #[error("this is no table of terms: make one with `lookalike terms INPUT -o FILE`")]
    Magic,
    /// They are of a later version.
    #[error(
        "the table of terms has version {found}, this build reads version 1: use a later build"
    )]
    Version {
        /// The version that stands there.
        found: u8,
    },
    /// Bytes are missing or too many.
    #[error("the table of terms is cut short or too long: make it again")]
    Length,
    /// The bytes are not those that were written.
    #[error("the table of terms is damaged, its checksum differs: make it again")]
    Checksum,
    /// The scheme in it means nothing to this build.
    #[error("the table of terms was made under another scheme: {0}")]
    Scheme(#[from] ParseSchemeError),
}

impl Terms {
    /// The table as bytes, little-endian: magic and version (8), length of the scheme's text (4),
    /// the text, documents (8), features (8), the features ascending (8 each), their counts (4
    /// each), XXH3-64 of all before (8), which is the table's id.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.body();
        bytes.extend(self.id.0.to_le_bytes());
        bytes
    }

    /// The table of these bytes. `key` is the secret key of the token hash, where it has one.
    ///
    /// # Errors
    /// [`TermsFileError`]; nothing is read from damaged bytes.
    pub fn from_bytes(bytes: &[u8], key: Option<SipKey>) -> Result<Self, TermsFileError> {
        let (body, sum) = split_magic(bytes)?
            .split_last_chunk::<8>()
            .ok_or(TermsFileError::Length)?;
        let all = &bytes[..bytes.len() - 8];
        if xxh3_64(all, 0) != u64::from_le_bytes(*sum) {
            return Err(TermsFileError::Checksum);
        }
        let mut reader = TermsReader(body);
        let length = reader.number::<4>()?;
        let text = String::from_utf8_lossy(reader.take(length)?);
        let scheme = Scheme::parse_with_key(&text, key)?;
        let (documents, entries) = (reader.number::<8>()?, reader.number::<8>()?);
        let features = reader.take(entries.checked_mul(8).ok_or(TermsFileError::Length)?)?;
        let counts = reader.take(entries * 4)?;
        if !reader.0.is_empty() {
            return Err(TermsFileError::Length);
        }
        let features = features.as_chunks().0.iter().copied();
        let counts = counts.as_chunks().0.iter().copied();
        Ok(Self {
            scheme,
            documents,
            features: features.map(u64::from_le_bytes).collect(),
            counts: counts.map(u32::from_le_bytes).collect(),
            id: TermsId(u64::from_le_bytes(*sum)),
        })
    }

    pub(super) fn checksum(&self) -> TermsId {
        TermsId(xxh3_64(&self.body(), 0))
    }

    fn body(&self) -> Vec<u8> {
        let scheme = self.scheme.to_string();
        let mut bytes = MAGIC.to_vec();
        bytes.extend((scheme.len() as u32).to_le_bytes());
        bytes.extend(scheme.as_bytes());
        bytes.extend(self.documents.to_le_bytes());
        bytes.extend((self.features.len() as u64).to_le_bytes());
        bytes.extend(self.features.iter().flat_map(|value| value.to_le_bytes()));
        bytes.extend(self.counts.iter().flat_map(|value| value.to_le_bytes()));
        bytes
    }
}

/// Bytes after the magic.
fn split_magic(bytes: &[u8]) -> Result<&[u8], TermsFileError> {
    let (magic, rest) = bytes
        .split_first_chunk::<8>()
        .ok_or(TermsFileError::Magic)?;
    if magic[..7] != MAGIC[..7] {
        return Err(TermsFileError::Magic);
    }
    if magic[7] != MAGIC[7] {
        return Err(TermsFileError::Version { found: magic[7] });
    }
    Ok(rest)
}

struct TermsReader<'a>(&'a [u8]);

impl<'a> TermsReader<'a> {
    fn take(&mut self, length: u64) -> Result<&'a [u8], TermsFileError> {
        let length = usize::try_from(length).map_err(|_| TermsFileError::Length)?;
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(TermsFileError::Length)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number<const N: usize>(&mut self) -> Result<u64, TermsFileError> {
        let taken = self.take(N as u64)?;
        let mut bytes = [0; 8];
        bytes[..N].copy_from_slice(taken);
        Ok(u64::from_le_bytes(bytes))
    }
}
