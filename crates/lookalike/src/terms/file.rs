//! The bytes of a table of terms: version, scheme, counts, checksum.

use thiserror::Error;

use super::{GrowingTerms, TermCounts, Terms};
use crate::hash::siphash::SipKey;
use crate::hash::xxh3_64;
use crate::scheme::TermsId;
use crate::scheme::{ParseSchemeError, Scheme};

/// First bytes of every table; the last one is the version.
const MAGIC: &[u8; 8] = b"LKTERM\0\x01";

/// Error for bytes that are not a table of terms.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TermsFileError {
    /// The bytes begin differently.
    #[error("not a table of terms")]
    Magic,
    /// The version is unknown to this build.
    #[error("unknown version {found} of a table of terms; this build reads version 1")]
    Version {
        /// The version found.
        found: u8,
    },
    /// Bytes are missing, or there are too many.
    #[error("the table of terms is truncated or too long: make it again")]
    Length,
    /// The bytes are not those that were written.
    #[error("the table of terms is damaged, its checksum differs: make it again")]
    Checksum,
    /// The scheme in the table is invalid in this build.
    #[error("the table of terms was made under another scheme: {0}")]
    Scheme(ParseSchemeError),
}

impl GrowingTerms {
    /// Returns the table as bytes, little-endian: magic and version (8), length of the scheme's text (4), the text, documents (8), features (8), the
    /// features ascending (8 each), their counts (4 each), and XXH3-64 of everything before (8), which is the table's id. Then the growing counts
    /// follow: documents (8), occurrences (8), 1 if features of one document are listed, else 0 (1), and 0 if the counts are those of the table (1);
    /// otherwise 1 and then the number of features, features and counts as above. XXH3-64 of everything before (8) is at the end.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let Self { terms, counts } = self;
        let mut bytes = terms.header_bytes(counts.documents, counts.occurrences, counts.singles);
        // If nothing was counted after the table was made, its lists would be stored twice.
        let own = !terms.has_counts(&counts.counts);
        bytes.push(own.into());
        if own {
            let counts = &counts.counts;
            extend_lists(
                &mut bytes,
                counts.iter().map(|count| count.0),
                counts.iter().map(|count| count.1),
            );
        }
        sealed(bytes)
    }

    /// Parses the table from its bytes. `key` is the secret key of the token hash, if it has one.
    ///
    /// # Errors
    /// Returns [`TermsFileError`] if the bytes are not an intact table; nothing is read from damaged bytes.
    pub fn from_bytes(bytes: &[u8], key: Option<SipKey>) -> Result<Self, TermsFileError> {
        let (terms, mut reader) = parse_terms(bytes, key)?;
        let (documents, occurrences) = (reader.number::<8>()?, reader.number::<8>()?);
        let (singles, own) = (reader.flag()?, reader.flag()?);
        let own = own.then(|| reader.lists()).transpose()?;
        if !reader.0.is_empty() {
            return Err(TermsFileError::Length);
        }
        let (features, numbers) = match &own {
            Some((features, numbers)) => (features, numbers),
            None => (&terms.features, &terms.counts),
        };
        let mut counts = TermCounts::new(&terms.scheme);
        counts.documents = documents;
        counts.occurrences = occurrences;
        counts.singles = singles;
        let features = features.iter().copied();
        counts.counts = features.zip(numbers.iter().copied()).collect();
        Ok(Self { terms, counts })
    }
}

impl Terms {
    /// Parses the table that a scheme names from the bytes of [`GrowingTerms::to_bytes`]. `key` is the secret key of the token hash, if it has one.
    ///
    /// # Errors
    /// Returns [`TermsFileError`] if the bytes are not an intact table; nothing is read from damaged bytes.
    pub fn from_bytes(bytes: &[u8], key: Option<SipKey>) -> Result<Self, TermsFileError> {
        // The growing counts that follow are verified, but not read.
        Ok(parse_terms(bytes, key)?.0)
    }

    /// Returns the bytes of a [`GrowingTerms`] with this table, after which nothing was counted.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let occurrences = self.counts.iter().map(|&count| u64::from(count)).sum();
        let mut bytes = self.header_bytes(self.documents, occurrences, false);
        bytes.push(0);
        sealed(bytes)
    }

    /// Returns the bytes before the growing counts' lists.
    fn header_bytes(&self, documents: u64, occurrences: u64, singles: bool) -> Vec<u8> {
        let mut bytes = self.body();
        bytes.extend(self.id.0.to_le_bytes());
        bytes.extend(documents.to_le_bytes());
        bytes.extend(occurrences.to_le_bytes());
        bytes.push(singles.into());
        bytes
    }

    pub(super) fn checksum(&self) -> TermsId {
        TermsId(xxh3_64(&self.body(), 0))
    }

    /// Returns true if these are the features and counts of the table.
    fn has_counts(&self, counts: &[(u64, u32)]) -> bool {
        let own = self
            .features
            .iter()
            .copied()
            .zip(self.counts.iter().copied());
        own.eq(counts.iter().copied())
    }

    fn body(&self) -> Vec<u8> {
        let scheme = self.scheme.to_string();
        let mut bytes = MAGIC.to_vec();
        bytes.extend((scheme.len() as u32).to_le_bytes());
        bytes.extend(scheme.as_bytes());
        bytes.extend(self.documents.to_le_bytes());
        extend_lists(
            &mut bytes,
            self.features.iter().copied(),
            self.counts.iter().copied(),
        );
        bytes
    }
}

/// Appends the checksum of the bytes to them.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend(xxh3_64(&bytes, 0).to_le_bytes());
    bytes
}

/// Appends the number of features, the features, and the counts.
fn extend_lists(
    bytes: &mut Vec<u8>,
    features: impl ExactSizeIterator<Item = u64>,
    counts: impl Iterator<Item = u32>,
) {
    bytes.reserve(8 + 12 * features.len());
    bytes.extend((features.len() as u64).to_le_bytes());
    bytes.extend(features.flat_map(u64::to_le_bytes));
    bytes.extend(counts.flat_map(u32::to_le_bytes));
}

/// Parses the table at the front of a file, and returns it with a reader of the rest. Verifies the checksum of the whole file first.
fn parse_terms(
    bytes: &[u8],
    key: Option<SipKey>,
) -> Result<(Terms, TermsReader<'_>), TermsFileError> {
    let (body, sum) = split_magic(bytes)?
        .split_last_chunk::<8>()
        .ok_or(TermsFileError::Length)?;
    let all = &bytes[..bytes.len() - 8];
    if xxh3_64(all, 0) != u64::from_le_bytes(*sum) {
        return Err(TermsFileError::Checksum);
    }
    let mut reader = TermsReader(body);
    let length = reader.number::<4>()?;
    // Invalid UTF-8 is not a scheme, so parsing refuses it.
    let text = String::from_utf8_lossy(reader.take(length)?);
    let scheme = Scheme::parse_with_key(&text, key).map_err(TermsFileError::Scheme)?;
    let documents = reader.number::<8>()?;
    let (features, counts) = reader.lists()?;
    let front = all.len() - reader.0.len();
    let id = TermsId(reader.number::<8>()?);
    // The id covers the table alone, whatever was counted after it.
    if id != TermsId(xxh3_64(&bytes[..front], 0)) {
        return Err(TermsFileError::Checksum);
    }
    let terms = Terms {
        scheme,
        documents,
        features,
        counts,
        id,
    };
    Ok((terms, reader))
}

/// Returns the bytes after the magic.
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

/// Features, ascending, and their counts.
type FeatureLists = (Box<[u64]>, Box<[u32]>);

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

    /// Reads features and their counts.
    fn lists(&mut self) -> Result<FeatureLists, TermsFileError> {
        let entries = self.number::<8>()?;
        // Slice the bytes that exist, so that a number that is too large allocates nothing.
        let features = self.take(entries.checked_mul(8).ok_or(TermsFileError::Length)?)?;
        // Cannot overflow: the features before them are twice as long.
        let counts = self.take(entries * 4)?;
        let features = features.as_chunks().0.iter().copied();
        let counts = counts.as_chunks().0.iter().copied();
        Ok((
            features.map(u64::from_le_bytes).collect(),
            counts.map(u32::from_le_bytes).collect(),
        ))
    }

    /// Reads a byte that is 0 or 1.
    fn flag(&mut self) -> Result<bool, TermsFileError> {
        match self.number::<1>()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(TermsFileError::Checksum),
        }
    }

    fn number<const N: usize>(&mut self) -> Result<u64, TermsFileError> {
        let taken = self.take(N as u64)?;
        let mut bytes = [0; 8];
        bytes[..N].copy_from_slice(taken);
        Ok(u64::from_le_bytes(bytes))
    }
}
