//! In how many documents each feature occurs: the jobs behind `lookalike terms`.

use std::path::Path;

use lookalike::feature::FeatureExtractor;
use lookalike::hash::siphash::SipKey;
use lookalike::scheme::Scheme;
use lookalike::terms::TermsFileError;
use lookalike::{GrowingTerms, SchemeMismatch, TermCounts};
use lookalike_corpus::Record;
use serde::Serialize;

use crate::boilerplate::BoilerplateCounts;
use crate::document_memory::DocumentUse;
use crate::error::BatchError;
use crate::record_scan::{RecordScan, RecordWorker};
use crate::skipped::SkippedRow;

/// The job: what to read and how texts become features.
pub struct TermTable<'a> {
    /// Sources to read, and how.
    pub scan: RecordScan<'a>,
    /// Scheme whose features are counted.
    pub scheme: Scheme,
    /// True to keep the features of single documents too.
    pub singles: bool,
}

/// Summary of a table that was made.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TermsSummary {
    /// Documents that were read for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<u64>,
    /// Documents counted, those of tables that it was made of included.
    pub documents: u64,
    /// Features of the table in use: those that two or more documents had when its weights were taken.
    pub terms: u64,
    /// Counts of what was taken out of texts, if anything was to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boilerplate: Option<BoilerplateCounts>,
    /// The id of the table.
    pub id: String,
    /// Canonical text of the scheme whose features were counted.
    pub scheme: String,
    /// Of a table that was made of another one: how far its weights had moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftSummary>,
    /// Parts that were not read, by reason.
    pub skipped: Vec<SkippedRow>,
}

/// Distance of the weights of the counts from those in use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DriftSummary {
    /// Bits of a 64-bit fingerprint that would change, on average.
    pub bits: f64,
    /// Bits from which on the weights are taken over.
    pub tolerance: f64,
    /// True if they were: the table has another id than before.
    pub renewed: bool,
}

/// A table that cannot be read, or not be put together with another one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TermsError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The file is no table.
    #[error(transparent)]
    File(#[from] TermsFileError),
    /// It counts other features than the first table, or than the options say.
    #[error("the table of terms counts other features: {0}")]
    Features(#[from] SchemeMismatch),
    /// It does not fit the memory.
    #[error(transparent)]
    Memory(BatchError),
}

/// Reads a table with its counts. `key` is the secret key of the token hash, where it has one; `memory` is what may be taken for it, in bytes.
///
/// # Errors
/// [`TermsError`].
pub fn read_terms(
    path: &Path,
    key: Option<SipKey>,
    memory: u64,
) -> Result<GrowingTerms, TermsError> {
    // The bytes, and the counts as pairs of 16 bytes for 12 in the file.
    let needed = std::fs::metadata(path)?.len() * 7 / 3;
    ensure_fits(needed, memory).map_err(TermsError::Memory)?;
    Ok(GrowingTerms::from_bytes(&std::fs::read(path)?, key)?)
}

/// Adds the counts of `other` to those of `table`. Both must fit into `memory` bytes, and the sum beside them.
///
/// # Errors
/// [`TermsError`].
pub fn merge_terms(
    table: &mut GrowingTerms,
    other: GrowingTerms,
    memory: u64,
) -> Result<(), TermsError> {
    let (_, counts) = other.into_parts();
    let needed = 2 * (table.counts().memory() + counts.memory());
    ensure_fits(needed, memory).map_err(TermsError::Memory)?;
    Ok(table.merge(counts)?)
}

impl TermsSummary {
    /// The summary of a table that nothing was read for.
    #[must_use]
    pub fn of(table: &GrowingTerms) -> Self {
        Self {
            documents: table.counts().documents(),
            terms: table.terms().len() as u64,
            id: table.terms().id().to_string(),
            scheme: table.terms().scheme().to_string(),
            ..Self::default()
        }
    }
}

impl DriftSummary {
    /// Lets `table` take over the weights of its counts if they are `tolerance` bits away or more.
    pub fn follow(table: &mut GrowingTerms, tolerance: f64) -> Self {
        let drift = table.follow(tolerance);
        Self {
            bits: drift.bits,
            tolerance,
            renewed: drift.renewed,
        }
    }
}

struct TermCounter {
    extractor: FeatureExtractor,
}

/// The sets of one chunk, one after another.
#[derive(Default)]
struct TermSets {
    features: Vec<u64>,
    ends: Vec<usize>,
}

impl RecordWorker for TermCounter {
    type Product = TermSets;

    fn add(&mut self, record: &Record<'_>, sets: &mut TermSets) {
        let set = self.extractor.feature_set(&record.text);
        sets.features.extend_from_slice(set);
        sets.ends.push(sets.features.len());
    }

    fn shrink(&mut self) {
        self.extractor.shrink();
    }
}

impl TermTable<'_> {
    /// Counts all documents. The summary says what was read, and nothing of the table.
    ///
    /// # Errors
    /// [`BatchError`]: the input cannot be read, or the counts do not fit the memory.
    pub fn count(&self) -> Result<(TermCounts, TermsSummary), BatchError> {
        let mut counts = TermCounts::new(&self.scheme);
        if self.singles {
            counts = counts.with_singles();
        }
        let counter = || TermCounter {
            extractor: FeatureExtractor::new(&self.scheme),
        };
        let documents = DocumentUse::Features(&self.scheme);
        let read = self.scan.run(documents, counter, |sets: TermSets| {
            let mut start = 0;
            for end in sets.ends {
                counts.add(&sets.features[start..end]);
                start = end;
            }
            // The counts are merged into a list of their own: twice their size for a moment.
            ensure_fits(2 * counts.memory(), self.scan.limits.memory)
        })?;
        let summary = TermsSummary {
            read: Some(read.records),
            boilerplate: read.boilerplate,
            skipped: read.skipped,
            ..TermsSummary::default()
        };
        Ok((counts, summary))
    }
}

fn ensure_fits(needed: u64, left: u64) -> Result<(), BatchError> {
    if needed <= left {
        return Ok(());
    }
    Err(BatchError::Memory {
        what: "the table of terms",
        needed,
        left,
        least: needed,
    })
}
