//! Numbers of documents in which each feature occurs: the jobs behind `lookalike terms`.

use std::path::Path;

use lookalike::feature::FeatureExtractor;
use lookalike::hash::siphash::SipKey;
use lookalike::terms::TermsFileError;
use lookalike::{GrowingTerms, SchemeMismatch};
use lookalike_corpus::Record;
use serde::Serialize;

use crate::boilerplate::BoilerplateCounts;
use crate::document_memory::{DocumentUse, fixed_bytes};
use crate::error::BatchError;
use crate::record_scan::{RecordScan, RecordWorker};
use crate::skipped::SkippedRow;
use crate::spill::sorted_runs::SortedRuns;

/// The job of counting: its input, and the folder for its temporary files.
#[derive(Debug)]
pub struct TermTable<'a> {
    scan: RecordScan<'a>,
    folder: &'a Path,
}

/// Memory for tables of terms.
#[derive(Clone, Copy, Debug)]
pub struct TermsMemory {
    /// The limit of the whole process, in bytes.
    limit: u64,
    /// Bytes of it that are used for other things.
    taken: u64,
}

impl TermsMemory {
    /// Creates the memory of a command that reads tables but no documents.
    #[must_use]
    pub fn of_tables(limit: u64) -> Self {
        /// Bytes of code.
        const FIXED: u64 = 26 << 20;
        Self {
            limit,
            taken: FIXED,
        }
    }

    /// Returns the memory that is left next to other tables of `held` bytes.
    #[must_use]
    pub fn reserving(self, held: u64) -> Self {
        Self {
            taken: self.taken + held,
            ..self
        }
    }

    fn remaining(self) -> u64 {
        self.limit.saturating_sub(self.taken)
    }

    /// Returns an error if `needed` bytes are not left.
    fn ensure_fits(self, needed: u64) -> Result<(), BatchError> {
        BatchError::ensure_memory("the table of terms", needed, self.limit, self.taken)
    }
}

/// Maximum number of bytes per feature of a table that is read, merged and written: 16 in the counts, and 12 each in the table, in the
/// next table, and in the file.
const TABLE_BYTES: u64 = 52;

/// Summary of a table that a job made.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TermsSummary {
    /// Number of documents read for it; `None` if it was made of tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<u64>,
    /// Number of these without a text, which count as documents without features.
    pub missing_text: u64,
    /// Number of these longer than the limit, which count as documents without features.
    pub too_long: u64,
    /// Number of documents counted, including those of the tables that it was made of.
    pub documents: u64,
    /// Number of features in the weights: those that occurred in two or more documents when the weights were taken.
    pub terms: u64,
    /// Counts of the boilerplate removed from texts, if that was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boilerplate: Option<BoilerplateCounts>,
    /// The id of the table.
    pub id: String,
    /// Canonical text of the scheme whose features were counted.
    pub scheme: String,
    /// Distance by which the weights had moved, if the table was made of another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftSummary>,
    /// Bytes of counts that were written to temporary files.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes_on_disk: u64,
    /// Parts that were not read, by kind.
    pub skipped: Vec<SkippedRow>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// Distance between the weights in use and those of the newest counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DriftSummary {
    /// Bits of a 64-bit fingerprint that would change, on average.
    pub bits: f64,
    /// Number of bits from which on the weights are replaced.
    pub tolerance: f64,
    /// True if they were replaced, which gives the table a new id.
    pub renewed: bool,
}

/// A table that cannot be read or merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TermsError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The file is no table.
    #[error(transparent)]
    File(#[from] TermsFileError),
    /// The table counts other features than the first table or the options.
    #[error("the table of terms counts other features: {0}")]
    Features(SchemeMismatch),
    /// The table does not fit in the memory.
    #[error(transparent)]
    Memory(BatchError),
}

impl From<SchemeMismatch> for TermsError {
    fn from(mismatch: SchemeMismatch) -> Self {
        Self::Features(mismatch)
    }
}

/// Reads a table with its counts. `key` is the secret key of the token hash, if it has one.
///
/// # Errors
/// [`TermsError`].
pub fn read_terms(
    path: &Path,
    key: Option<SipKey>,
    memory: TermsMemory,
) -> Result<GrowingTerms, TermsError> {
    // Each feature takes 12 bytes of the file.
    let needed = std::fs::metadata(path)?.len().div_ceil(12) * TABLE_BYTES;
    memory.ensure_fits(needed).map_err(TermsError::Memory)?;
    Ok(GrowingTerms::from_bytes(&std::fs::read(path)?, key)?)
}

/// Adds the counts of `other` to those of `table`. Both, and their sum besides, must fit in the memory.
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
    // An upper bound: features that both tables have count twice.
    let features = (table.counts().distinct() + counts.distinct()) as u64;
    let needed = merging.max(features * TABLE_BYTES);
    memory.ensure_fits(needed).map_err(TermsError::Memory)?;
    Ok(table.counts_mut().merge(counts)?)
}

impl TermsSummary {
    /// Returns the summary of a table for which nothing was read.
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
    /// Replaces the weights of `table` by those of its counts if they are at least `tolerance` bits apart.
    pub fn refresh_weights(table: &mut GrowingTerms, tolerance: f64) -> Self {
        let drift = table.refresh_weights(tolerance);
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

/// The feature sets of one chunk, concatenated.
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

impl<'a> TermTable<'a> {
    /// Creates the job. Counts that do not fit in the memory are written to `folder`.
    pub fn new(scan: RecordScan<'a>, folder: &'a Path) -> Self {
        Self { scan, folder }
    }

    /// Adds the documents of the input to the counts of `table`. The weights of the table do not change until [`GrowingTerms::refresh_weights`].
    /// The summary describes what was read, not the table.
    ///
    /// Counts that do not fit in the memory are written to temporary files as sorted runs, which are merged at the end. Most features of a large
    /// collection occur in a single document: they take no memory in the end, unless the table keeps them.
    ///
    /// # Errors
    /// [`BatchError`]: the input cannot be read, temporary files cannot be written, or the table does not fit in the memory.
    pub fn count(&self, table: &mut GrowingTerms) -> Result<TermsSummary, BatchError> {
        /// Bytes that remain for each feature of a batch: the batch itself takes an eighth of them, and a merge moves about ten features for each
        /// one that is read.
        const MERGE_BYTES_PER_FEATURE: u64 = 256;
        // The weights in use stay in memory while the counts grow.
        let in_use = table.memory() - table.counts().memory();
        let counts = table.counts_mut();
        let scheme = *counts.scheme();
        let documents = DocumentUse::Features(&scheme);
        let (inputs, options, limits) = (self.scan.inputs, &self.scan.options, &self.scan.limits);
        let memory = TermsMemory {
            limit: limits.memory,
            taken: fixed_bytes(limits, documents, inputs, options) + in_use,
        };
        let batch =
            usize::try_from(memory.remaining() / MERGE_BYTES_PER_FEATURE).unwrap_or(usize::MAX);
        counts.set_batch(batch);
        let counter = || TermCounter {
            extractor: FeatureExtractor::new(&scheme),
        };
        let failed = BatchError::temporary(self.folder);
        let mut runs = TermRuns::new(memory.remaining() / 4, self.folder);
        let read = self.scan.run(documents, counter, |sets: TermSets, _| {
            // Check before the lists grow.
            let new = sets.features.len();
            if counts.memory_with(new) > memory.remaining() {
                runs.add(counts.take()).map_err(&failed)?;
                let needed = counts.memory_with(new);
                memory.ensure_fits(needed)?;
            }
            let mut start = 0;
            for end in sets.ends {
                counts.add(&sets.features[start..end]);
                start = end;
            }
            Ok(())
        })?;
        // The counts in memory are the last run, if there are others.
        if runs.bytes > 0 || counts.memory_of_table() > memory.remaining() {
            runs.add(counts.take()).map_err(&failed)?;
        }
        let bytes_on_disk = runs.bytes;
        if bytes_on_disk > 0 {
            counts.restore(runs.merged(counts.keeps_singles(), memory)?);
        }
        let needed = counts.memory_of_table();
        memory.ensure_fits(needed)?;
        Ok(TermsSummary {
            read: Some(read.records),
            missing_text: read.missing,
            too_long: read.too_long,
            boilerplate: read.boilerplate,
            bytes_on_disk,
            skipped: read.skipped,
            ..TermsSummary::default()
        })
    }
}

/// Counts in temporary files: runs of ascending features, each with its number of documents.
struct TermRuns {
    runs: SortedRuns<[u64; 2]>,
    bytes: u64,
}

impl TermRuns {
    fn new(budget: u64, folder: &Path) -> Self {
        Self {
            runs: SortedRuns::new(budget, folder),
            bytes: 0,
        }
    }

    fn add(&mut self, counts: Vec<(u64, u32)>) -> std::io::Result<()> {
        self.bytes += size_of_val(counts.as_slice()) as u64;
        let rows = counts.into_iter();
        self.runs
            .add_all(rows.map(|(feature, count)| [feature, count.into()]))
    }

    /// Merges all runs. Drops features of single documents unless `singles` is true. Returns an error if the resulting table does not fit.
    fn merged(self, singles: bool, memory: TermsMemory) -> Result<Vec<(u64, u32)>, BatchError> {
        let mut kept = Vec::new();
        // Counts all features to keep, even those that do not fit, so that the error can name the memory for all of them.
        let mut features = 0_u64;
        let most = memory.remaining() / TABLE_BYTES;
        let mut keep = |[feature, count]: [u64; 2]| {
            // Only now is the count of a feature complete, since each run has a part of it.
            if count > u64::from(!singles) {
                features += 1;
                if features <= most {
                    grow(&mut kept);
                    // Tables store counts of 32 bits.
                    kept.push((feature, u32::try_from(count).unwrap_or(u32::MAX)));
                }
            }
        };
        let mut last: Option<[u64; 2]> = None;
        self.runs.merge(|[feature, count]: [u64; 2]| {
            match &mut last {
                Some(last) if last[0] == feature => last[1] += count,
                _ => last
                    .replace([feature, count])
                    .into_iter()
                    .for_each(&mut keep),
            }
            Ok(())
        })?;
        // No later feature ends the last one.
        last.into_iter().for_each(keep);
        let needed = features * TABLE_BYTES;
        memory.ensure_fits(needed)?;
        // `grow` leaves up to a fifth of the list unused.
        kept.shrink_to_fit();
        Ok(kept)
    }
}

/// Grows a full list by a quarter: the old and the new list together then take less than the table will.
fn grow(list: &mut Vec<(u64, u32)>) {
    if list.len() == list.capacity() {
        list.reserve_exact(list.len() / 4 + 1024);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_make_the_counts_of_a_map(
            parts in prop::collection::vec(prop::collection::btree_map(0..50_u64, 1..4_u32, 0..40), 0..6),
            singles in any::<bool>(),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let mut runs = TermRuns::new(0, folder.path());
            let mut all = BTreeMap::new();
            for part in parts {
                part.iter().for_each(|(&feature, &count)| *all.entry(feature).or_insert(0) += count);
                runs.add(part.into_iter().collect()).unwrap();
            }
            all.retain(|_, count| singles || *count > 1);
            let memory = |limit| TermsMemory { limit, taken: 100 };
            let needed = all.len() as u64 * TABLE_BYTES;
            let expected: Vec<_> = all.into_iter().collect();
            // With one byte too little, unless there is nothing to keep, the error names the limit that suffices.
            let mut found = runs.merged(singles, memory(100 + needed));
            prop_assert_eq!(found.as_ref().ok(), Some(&expected));
            if needed > 0 {
                let mut runs = TermRuns::new(0, folder.path());
                runs.add(expected.clone()).unwrap();
                found = runs.merged(singles, memory(99 + needed));
                let is_told = matches!(found, Err(BatchError::Memory { least, .. }) if least == 100 + needed);
                prop_assert!(is_told);
            }
        }
    }
}
