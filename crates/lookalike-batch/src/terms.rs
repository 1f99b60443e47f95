//! In how many documents each feature occurs: the jobs behind `lookalike terms`.

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
use crate::spill::external_sort::SortedRuns;

/// The job: what to read, and where counts go meanwhile.
#[derive(Debug)]
pub struct TermTable<'a> {
    scan: RecordScan<'a>,
    folder: &'a Path,
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
    /// Bytes of counts that went to temporary files.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes_on_disk: u64,
    /// Parts that were not read, by reason.
    pub skipped: Vec<SkippedRow>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// Distance of the weights of the counts from those in use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
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
    Features(SchemeMismatch),
    /// It does not fit the memory.
    #[error(transparent)]
    Memory(BatchError),
}

impl From<SchemeMismatch> for TermsError {
    fn from(mismatch: SchemeMismatch) -> Self {
        Self::Features(mismatch)
    }
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
    Ok(table.counts_mut().merge(counts)?)
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

impl<'a> TermTable<'a> {
    /// Creates the job. Counts that do not fit the memory go to `folder`.
    pub fn new(scan: RecordScan<'a>, folder: &'a Path) -> Self {
        Self { scan, folder }
    }

    /// Adds the documents of the input to the counts of `table`. The weights of the table stay until [`GrowingTerms::follow`]. The summary
    /// says what was read, not what the table has.
    ///
    /// Counts that do not fit the memory go to temporary files as sorted runs, which are merged at the end. Most features of a large
    /// collection occur in a single document: they take no memory in the end, unless the table keeps them.
    ///
    /// # Errors
    /// [`BatchError`]: the input cannot be read, temporary files cannot be written, or the table does not fit the memory.
    pub fn count(&self, table: &mut GrowingTerms) -> Result<TermsSummary, BatchError> {
        /// Bytes that are left for each feature of a batch: it takes an eighth of them, and a merge moves some ten features for each that
        /// is read.
        const LEFT_FOR_EACH: u64 = 256;
        let in_use = table.memory() - table.counts().memory();
        let counts = table.counts_mut();
        let scheme = *counts.scheme();
        let documents = DocumentUse::Features(&scheme);
        let RecordScan {
            options, limits, ..
        } = &self.scan;
        let memory = TermsMemory {
            limit: limits.memory,
            taken: fixed_bytes(limits, documents, options) + in_use,
        };
        let batch = usize::try_from(memory.left() / LEFT_FOR_EACH).unwrap_or(usize::MAX);
        counts.set_batch(batch);
        let counter = || TermCounter {
            extractor: FeatureExtractor::new(&scheme),
        };
        let failed = BatchError::temporary(self.folder);
        let mut runs = TermRuns::new(memory.left() / 4, self.folder);
        let read = self.scan.run(documents, counter, |sets: TermSets, _| {
            // Before the lists grow.
            let new = sets.features.len();
            if counts.memory_with(new) > memory.left() {
                runs.add(counts.take()).map_err(&failed)?;
                let needed = counts.memory_with(new);
                memory.ensure_fits(needed, || needed)?;
            }
            let mut start = 0;
            for end in sets.ends {
                counts.add(&sets.features[start..end]);
                start = end;
            }
            Ok(())
        })?;
        if runs.bytes > 0 || counts.memory_of_table() > memory.left() {
            runs.add(counts.take()).map_err(&failed)?;
        }
        let bytes_on_disk = runs.bytes;
        if bytes_on_disk > 0 {
            counts.restore(runs.merged(counts.keeps_singles(), memory)?);
        }
        let needed = counts.memory_of_table();
        memory.ensure_fits(needed, || needed)?;
        Ok(TermsSummary {
            read: Some(read.records),
            boilerplate: read.boilerplate,
            bytes_on_disk,
            skipped: read.skipped,
            ..TermsSummary::default()
        })
    }
}

/// Counts in temporary files: runs of features, ascending, each with the number of its documents.
struct TermRuns<'a> {
    runs: SortedRuns<[u64; 2]>,
    bytes: u64,
    folder: &'a Path,
}

impl<'a> TermRuns<'a> {
    fn new(budget: u64, folder: &'a Path) -> Self {
        Self {
            runs: SortedRuns::new(budget, folder),
            bytes: 0,
            folder,
        }
    }

    fn add(&mut self, counts: Vec<(u64, u32)>) -> std::io::Result<()> {
        self.bytes += size_of_val(counts.as_slice()) as u64;
        let rows = counts.into_iter();
        self.runs
            .add(rows.map(|(feature, count)| [feature, count.into()]))
    }

    /// Merges all runs. Drops the features of single documents unless `singles` is true. Refuses what makes a table that does not fit.
    fn merged(self, singles: bool, memory: TermsMemory) -> Result<Vec<(u64, u32)>, BatchError> {
        let failed = BatchError::temporary(self.folder);
        let mut kept = Vec::new();
        // Of those that are kept, whether they fit or not: a refusal tells what all of them take.
        let mut features = 0_u64;
        let most = memory.left() / TABLE_BYTES;
        let mut keep = |feature: u64, count: u64| {
            if count > u64::from(!singles) {
                features += 1;
                if features <= most {
                    grow(&mut kept);
                    kept.push((feature, u32::try_from(count).unwrap_or(u32::MAX)));
                }
            }
        };
        let mut last: Option<[u64; 2]> = None;
        let merge = self.runs.merge(|[feature, count]: [u64; 2]| {
            match &mut last {
                Some(last) if last[0] == feature => last[1] += count,
                _ => {
                    if let Some([feature, count]) = last.replace([feature, count]) {
                        keep(feature, count);
                    }
                }
            }
            Ok::<_, std::io::Error>(())
        });
        merge.map_err(failed)?;
        if let Some([feature, count]) = last {
            keep(feature, count);
        }
        let needed = features * TABLE_BYTES;
        memory.ensure_fits(needed, || needed)?;
        kept.shrink_to_fit();
        Ok(kept)
    }
}

/// Grows a full list by a quarter: the old and the new one together take less than the table will.
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
            // A byte too little, where there is anything, is told with the number that does.
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
