//! Tables of terms: the number of documents of a collection in which each feature occurs.
//!
//! They are the source of weights by rarity (idf; Manku et al. 2007, section 2) and of the lexicons of I-Match (Manku et al. 2007, section 5.4). A
//! table belongs to the features of one scheme, and its id is part of every scheme that uses it, so sketches made with different tables are never
//! compared. [`GrowingTerms`] keeps a table together with counts that continue to change, so that the table need not change with each document.
//! `docs/reference/formats.md` describes the bytes.

mod counts;
mod file;
mod growing;

use thiserror::Error;

use crate::scheme::{Scheme, SchemeMismatch, TermsId};
pub use counts::TermCounts;
pub use file::TermsFileError;
pub use growing::{GrowingTerms, TermsDrift};

/// Error for a table that does not fit a scheme.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TermsMismatch {
    /// The table counts the features of another scheme.
    #[error("the table of terms counts other features: {0}")]
    Features(SchemeMismatch),
    /// The scheme names another table, or none.
    #[error(
        "the scheme needs the table of terms {wanted}, and this one is {found}: give the table that it was made with"
    )]
    Id {
        /// The id in the scheme; `none` if it names no table.
        wanted: String,
        /// The id of the table.
        found: TermsId,
    },
}

/// Number of documents of a collection in which each feature occurs.
///
/// Memory: 12 bytes for each feature that occurs in at least two documents. The others are not stored: a feature that is not in the table counts as
/// occurring in one document. A lookup is a binary search.
///
/// ```
/// use lookalike::{FeatureExtractor, Scheme, TermCounts};
/// use std::sync::Arc;
///
/// let scheme = Scheme::default().shingle("words:1".parse()?).weight("idf".parse()?);
/// let mut extractor = FeatureExtractor::new(&scheme);
/// let mut counts = TermCounts::new(&scheme);
/// for text in ["the raven", "the bells", "the conqueror worm", "the raven and the bust"] {
///     counts.add(extractor.feature_set(text));
/// }
/// let terms = Arc::new(counts.terms());
/// let [the, raven] = ["the", "raven"].map(|word| extractor.features(word)[0]);
/// assert!(terms.idf(the) < terms.idf(raven));
/// // A scheme that weighs by the table names it.
/// let scheme = scheme.terms(Some(terms.id()));
/// let weighted = FeatureExtractor::with_terms(&scheme, &terms)?;
/// # _ = weighted;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    scheme: Scheme,
    documents: u64,
    // Both lists are in ascending order of features.
    features: Box<[u64]>,
    counts: Box<[u32]>,
    id: TermsId,
}

impl Terms {
    fn new(scheme: Scheme, documents: u64, features: Box<[u64]>, counts: Box<[u32]>) -> Self {
        let mut table = Self {
            scheme,
            documents,
            features,
            counts,
            id: TermsId(0),
        };
        table.id = table.checksum();
        table
    }

    /// Returns the id.
    #[must_use]
    pub fn id(&self) -> TermsId {
        self.id
    }

    /// Returns the scheme whose features are counted, without weight and sketch.
    #[must_use]
    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// Returns the number of documents that were counted.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Returns the number of features that occur in two or more documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.features.len()
    }

    /// Returns true if no feature is in two documents.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.features.is_empty()
    }

    /// Returns the number of documents with this feature, at least 1.
    #[must_use]
    pub fn count(&self, feature: u64) -> u32 {
        self.features
            .binary_search(&feature)
            .map_or(1, |at| self.counts[at])
    }

    /// Returns the inverse document frequency log2((N + 1) / n) in 256ths, at least 1. It is computed in integers, so it is the same on every
    /// machine.
    #[must_use]
    pub fn idf(&self, feature: u64) -> u32 {
        idf(self.documents, self.count(feature))
    }

    /// Checks that a scheme has the features that are counted and names this table.
    ///
    /// # Errors
    /// Returns [`TermsMismatch`], which names the difference, if it does not.
    pub fn ensure_fits(&self, scheme: &Scheme) -> Result<(), TermsMismatch> {
        let same = self.scheme.ensure_same(&scheme.counted());
        same.map_err(TermsMismatch::Features)?;
        if scheme.terms == Some(self.id) {
            return Ok(());
        }
        Err(TermsMismatch::Id {
            wanted: scheme
                .terms
                .map_or_else(|| "none".to_owned(), |id| id.to_string()),
            found: self.id,
        })
    }
}

/// Computes log2((N + 1) / n) in 256ths, at least 1.
fn idf(documents: u64, count: u32) -> u32 {
    let all = log2_256(documents.saturating_add(1));
    // A table from a file may count more documents with a feature than there are.
    (all - log2_256(count.into()).min(all)).max(1)
}

/// Computes log2 of a number in 256ths, rounded down, by squaring its mantissa bit by bit; 0 for 0.
pub(crate) fn log2_256(number: u64) -> u32 {
    let Some(whole) = number.checked_ilog2() else {
        return 0;
    };
    // The mantissa in [1, 2) with 63 bits after the point.
    let mut mantissa = number << (63 - whole);
    let mut log = whole;
    for _ in 0..8 {
        let square = u128::from(mantissa) * u128::from(mantissa);
        // log2 x^2 = 2 log2 x: a square of 2 or more sets the next bit of the logarithm, and is halved. Eight rounds of squaring give eight bits, in
        // integers, because the `log2` of system libraries differs in its last bit between machines.
        let carry = (square >> 127) as u32;
        mantissa = (square >> (63 + carry)) as u64;
        log = log << 1 | carry;
    }
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_those_of_floating_point() {
        for number in (1..5000).chain([1 << 40, (1 << 40) + 1, u64::MAX]) {
            let exact = (number as f64).log2() * 256.0;
            let found = f64::from(log2_256(number));
            assert!(
                found <= exact + 1e-9 && exact - found < 1.0 + 1e-6,
                "{number}: {found} for {exact}"
            );
        }
    }
}
