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
use crate::document_memory::{DocumentUse, fixed_bytes};
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
    /// Bytes of other tables that are in memory meanwhile.
    pub held: u64,
}

/// Memory for tables of terms.
#[derive(Clone, Copy, Debug)]
pub struct TermsMemory {
    /// The limit of the whole process.
    limit: u64,
    /// Bytes of it that are for something else.
    taken: u64,
}

impl TermsMemory {
    /// Memory of a command that reads tables, and no documents.
    #[must_use]
    pub fn of_tables(limit: u64) -> Self {
        /// Bytes of code.
        const FIXED: u64 = 26 << 20;
        Self {
            limit,
            taken: FIXED,
        }
    }

    /// The rest beside so many bytes of other tables.
    #[must_use]
    pub fn beside(self, held: u64) -> Self {
        Self {
            taken: self.taken + held,
            ..self
        }
    }

    fn left(self) -> u64 {
        self.limit.saturating_sub(self.taken)
    }

    /// Refuses to take so many bytes, if they are not left. `wanted` are those that the whole job will need.
    fn ensure_fits(self, needed: u64, wanted: impl FnOnce() -> u64) -> Result<(), BatchError> {
        if needed <= self.left() {
            return Ok(());
        }
        let needed = needed.max(wanted());
        Err(BatchError::Memory {
            what: "the table of terms",
            needed,
            left: self.left(),
            least: self.taken + needed,
        })
    }
}

/// Bytes of a feature in a table that is read, put together with others and written, at most: 16 in the counts, 12 each in the table, in the
/// one that follows it, and in the file.
const TABLE_BYTES: u64 = 52;

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

/// Reads a table with its counts. `key` is the secret key of the token hash, where it has one.
///
/// # Errors
/// [`TermsError`].
pub fn read_terms(
    path: &Path,
    key: Option<SipKey>,
    memory: TermsMemory,
) -> Result<GrowingTerms, TermsError> {
    // 12 bytes of the file are a feature.
    let needed = std::fs::metadata(path)?.len().div_ceil(12) * TABLE_BYTES;
    memory
        .ensure_fits(needed, || needed)
        .map_err(TermsError::Memory)?;
    Ok(GrowingTerms::from_bytes(&std::fs::read(path)?, key)?)
}

/// Adds the counts of `other` to those of `table`. Both must fit into the memory, and the sum beside them.
///
/// # Errors
/// [`TermsError`].
pub fn merge_terms(
    table: &mut GrowingTerms,
    other: GrowingTerms,
    memory: TermsMemory,
) -> Result<(), TermsError> {
    let (_, counts) = other.into_parts();
    let merging = table.memory() + table.counts().memory() + 2 * counts.memory();
    let features = (table.counts().distinct() + counts.distinct()) as u64;
    let needed = merging.max(features * TABLE_BYTES);
    memory
        .ensure_fits(needed, || needed)
        .map_err(TermsError::Memory)?;
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
        /// Bytes that are left for each feature of a batch: it takes an eighth of them, and a merge moves some ten features for each that
        /// is read.
        const LEFT_FOR_EACH: u64 = 256;
        let documents = DocumentUse::Features(&self.scheme);
        let RecordScan {
            inputs,
            options,
            limits,
            ..
        } = self.scan;
        let memory = TermsMemory {
            limit: limits.memory,
            taken: fixed_bytes(limits, documents, options) + self.held,
        };
        let batch = usize::try_from(memory.left() / LEFT_FOR_EACH).unwrap_or(usize::MAX);
        let mut counts = TermCounts::new(&self.scheme).with_batch(batch);
        if self.singles {
            counts = counts.with_singles();
        }
        let counter = || TermCounter {
            extractor: FeatureExtractor::new(&self.scheme),
        };
        let total = inputs.total_bytes();
        let read = self.scan.run(documents, counter, |sets: TermSets, read| {
            let new = sets.features.len();
            // Before the lists grow. All of the input is taken to have as many different features as this part of it.
            memory.ensure_fits(counts.memory_with(new), || {
                let parts = (total as f64 / read.max(1) as f64).max(1.0);
                let features = ((counts.distinct() + new) as f64 * parts) as u64;
                // With the batch, which has an eighth of what is left.
                features * TABLE_BYTES / 7 * 8
            })?;
            let mut start = 0;
            for end in sets.ends {
                counts.add(&sets.features[start..end]);
                start = end;
            }
            Ok(())
        })?;
        let needed = counts.memory_of_table();
        memory.ensure_fits(needed, || needed)?;
        let summary = TermsSummary {
            read: Some(read.records),
            boilerplate: read.boilerplate,
            skipped: read.skipped,
            ..TermsSummary::default()
        };
        Ok((counts, summary))
    }
}
