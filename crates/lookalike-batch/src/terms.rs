//! Numbers of documents in which each feature occurs: the jobs behind `lookalike terms`.

use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use lookalike::feature::FeatureExtractor;
use lookalike::hash::siphash::SipKey;
use lookalike::terms::TermsFileError;
use lookalike::{GrowingTerms, SchemeMismatch, TermCounts};
use lookalike_corpus::Record;
use serde::Serialize;

use crate::boilerplate::BoilerplateCounts;
use crate::document_memory::{DocumentUse, fixed_bytes};
use crate::error::BatchError;
use crate::locks::{into_inner, lock};
use crate::parallel::map_parallel_limited;
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

/// Counts a worker's documents, and passes their features on to the shards.
struct TermCounter<'s> {
    extractor: FeatureExtractor,
    shards: &'s TermShards,
    /// Features that wait for each shard.
    buffers: Vec<Vec<u64>>,
}

/// Number of documents of one chunk, and of their features.
#[derive(Default)]
struct CountedDocuments {
    documents: u64,
    features: u64,
}

impl RecordWorker for TermCounter<'_> {
    type Product = CountedDocuments;

    fn add(&mut self, record: &Record<'_>, counted: &mut CountedDocuments) {
        let set = self.extractor.feature_set(&record.text);
        counted.documents += 1;
        counted.features += set.len() as u64;
        for &feature in set {
            let shard = self.shards.shard_of(feature);
            let buffer = &mut self.buffers[shard];
            buffer.push(feature);
            if buffer.len() == BUFFER {
                self.shards.add(shard, buffer);
            }
        }
    }

    fn shrink(&mut self) {
        self.extractor.shrink();
    }

    fn finish(mut self) -> Result<(), BatchError> {
        let buffers = self.buffers.iter_mut().enumerate();
        buffers.for_each(|(shard, buffer)| self.shards.add(shard, buffer));
        Ok(())
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
        let failed = BatchError::temporary(self.folder);
        let shards = TermShards::new(counts, memory, limits.workers(), self.folder);
        let shards = shards.map_err(&failed)?;
        let counter = || TermCounter {
            extractor: FeatureExtractor::new(&scheme),
            shards: &shards,
            buffers: vec![Vec::new(); shards.shards.len()],
        };
        let read = self
            .scan
            .run(documents, counter, |counted: CountedDocuments, _| {
                counts.add_counted(counted.documents, counted.features);
                match lock(&shards.failed).take() {
                    None => Ok(()),
                    Some(error) => Err(failed(error)),
                }
            })?;
        let bytes_on_disk = shards.finish(counts, memory, self.folder)?;
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

/// Number of features that a worker collects for a shard before it waits for the shard.
const BUFFER: usize = 128;

/// Counts divided by ranges of features, so that threads count at the same time.
struct TermShards {
    shards: Vec<Mutex<TermShard>>,
    /// Number of threads.
    workers: usize,
    /// Maximum bytes for the counts of a shard.
    share: u64,
    /// First error of a temporary file. Then some counts are missing.
    failed: Mutex<Option<io::Error>>,
}

/// Counts of a range of features.
struct TermShard {
    counts: TermCounts,
    runs: TermRuns,
}

impl TermShards {
    /// Moves the counts to shards.
    fn new(
        counts: &mut TermCounts,
        memory: TermsMemory,
        workers: usize,
        folder: &Path,
    ) -> io::Result<Self> {
        /// Number of shards for each thread: with one, threads would often wait for the same shard.
        const SHARDS: usize = 4;
        /// Maximum number of shards, each of which may have an open file.
        const MAX_SHARDS: u64 = 128;
        /// Minimum bytes of a shard, so that its runs are long.
        const MIN_SHARE: u64 = 1 << 20;
        /// Bytes that remain for each feature of a batch: the batch itself takes an eighth of them, and a merge moves about ten features for each
        /// one that is read.
        const MERGE_BYTES_PER_FEATURE: u64 = 256;
        let wanted = if workers < 2 { 1 } else { SHARDS * workers };
        let fitting = (memory.remaining() / MIN_SHARE).clamp(1, MAX_SHARDS);
        let count = wanted.min(fitting as usize);
        let buffers = (workers * count * BUFFER * size_of::<u64>()) as u64;
        let share = memory.remaining().saturating_sub(buffers) / count as u64;
        let batch = usize::try_from(share / MERGE_BYTES_PER_FEATURE).unwrap_or(usize::MAX);
        // Shards are merged by all threads at the same time, with a quarter of the memory.
        let merging = memory.remaining() / 4 / workers.min(count) as u64;
        let held = counts.take();
        let mut rest = &held[..];
        let shard = |number: usize| {
            let own = rest.partition_point(|entry| shard_of(entry.0, count) <= number);
            let mut shard = TermShard {
                counts: counts.without_documents(),
                runs: TermRuns::new(merging, folder),
            };
            shard.counts.set_batch(batch);
            let own = rest.split_off(..own).unwrap_or_default();
            // Until all shards have theirs, the counts are in memory twice.
            match 2 * size_of_val(own) as u64 > share {
                true => shard.runs.add(own)?,
                false => shard.counts.restore(own.to_vec()),
            }
            Ok(Mutex::new(shard))
        };
        let shards: io::Result<_> = (0..count).map(shard).collect();
        Ok(Self {
            shards: shards?,
            workers,
            share,
            failed: Mutex::default(),
        })
    }

    fn shard_of(&self, feature: u64) -> usize {
        shard_of(feature, self.shards.len())
    }

    /// Moves features to a shard.
    fn add(&self, number: usize, features: &mut Vec<u64>) {
        let mut shard = lock(&self.shards[number]);
        let TermShard { counts, runs } = &mut *shard;
        // Check before the lists grow.
        if counts.memory_with(features.len()) > self.share
            && let Err(error) = runs.add(&counts.take())
        {
            *lock(&self.failed) = Some(error);
        }
        counts.add(features);
        features.clear();
    }

    /// Moves the counts of all shards to `counts`. Drops features of single documents that need not be kept. Returns the bytes that were written to
    /// temporary files.
    fn finish(
        self,
        counts: &mut TermCounts,
        memory: TermsMemory,
        folder: &Path,
    ) -> Result<u64, BatchError> {
        let failed = BatchError::temporary(folder);
        if let Some(error) = into_inner(self.failed) {
            return Err(failed(error));
        }
        let mut shards: Vec<TermShard> = self.shards.into_iter().map(into_inner).collect();
        let needed = map_parallel_limited(shards.iter_mut(), self.workers, |shard| {
            shard.counts.memory_of_table()
        });
        let are_on_disk = shards.iter().any(|shard| shard.runs.bytes > 0)
            || needed.into_iter().sum::<u64>() > memory.remaining();
        let kept = KeptTerms::new(counts.keeps_singles(), memory);
        let merged = map_parallel_limited(shards.into_iter(), self.workers, |mut shard| {
            let mut held = shard.counts.take();
            if !are_on_disk {
                held.retain(|&(_, count)| kept.keeps(count.into()));
                return Ok((held, 0));
            }
            // The counts in memory are the last run.
            shard.runs.add(&held).map_err(&failed)?;
            drop(held);
            let bytes = shard.runs.bytes;
            Ok((shard.runs.merged(&kept)?, bytes))
        });
        let merged = merged.into_iter().collect::<Result<Vec<_>, BatchError>>()?;
        kept.ensure_fit(memory)?;
        let bytes = merged.iter().map(|(_, bytes)| bytes).sum();
        let features: usize = merged.iter().map(|(counts, _)| counts.len()).sum();
        // Shards are ranges of features in their order. Each is freed once it is copied.
        let mut parts = merged.into_iter().map(|(counts, _)| counts);
        let mut all = parts.next().unwrap_or_default();
        all.reserve_exact(features - all.len());
        parts.for_each(|part| all.extend(part));
        counts.restore(all);
        Ok(bytes)
    }
}

/// Returns the number of the shard, of `shards`, that has a feature. Features are hashes, so shards have about the same size.
fn shard_of(feature: u64, shards: usize) -> usize {
    ((u128::from(feature) * shards as u128) >> 64) as usize
}

/// Counts in temporary files: runs of ascending features, each with its number of documents.
struct TermRuns {
    runs: SortedRuns<[u64; 2]>,
    bytes: u64,
}

/// Features that runs are merged into, of several shards.
struct KeptTerms {
    /// True if features of single documents are kept.
    singles: bool,
    /// Number of all features to keep, even those that do not fit, so that the error can name the memory for all of them.
    features: AtomicU64,
    /// Number of features that fit.
    most: u64,
}

impl KeptTerms {
    fn new(singles: bool, memory: TermsMemory) -> Self {
        Self {
            singles,
            features: AtomicU64::new(0),
            most: memory.remaining() / TABLE_BYTES,
        }
    }

    /// Tells whether a feature with this count is kept.
    fn keeps(&self, count: u64) -> bool {
        count > u64::from(!self.singles)
    }

    /// Returns an error if the table of all features does not fit.
    fn ensure_fit(self, memory: TermsMemory) -> Result<(), BatchError> {
        memory.ensure_fits(self.features.into_inner() * TABLE_BYTES)
    }
}

impl TermRuns {
    fn new(budget: u64, folder: &Path) -> Self {
        Self {
            runs: SortedRuns::new(budget, folder),
            bytes: 0,
        }
    }

    fn add(&mut self, counts: &[(u64, u32)]) -> io::Result<()> {
        if counts.is_empty() {
            return Ok(());
        }
        self.bytes += size_of_val(counts) as u64;
        let rows = counts.iter();
        self.runs
            .add_all(rows.map(|&(feature, count)| [feature, count.into()]))
    }

    /// Merges all runs, and returns the features to keep. If these do not fit, with those of other shards, some are missing.
    fn merged(self, kept: &KeptTerms) -> Result<Vec<(u64, u32)>, BatchError> {
        let mut merged = Vec::new();
        let mut keep = |[feature, count]: [u64; 2]| {
            // Only now is the count of a feature complete, since each run has a part of it.
            if kept.keeps(count) && kept.features.fetch_add(1, Ordering::Relaxed) < kept.most {
                grow(&mut merged);
                // Tables store counts of 32 bits.
                merged.push((feature, u32::try_from(count).unwrap_or(u32::MAX)));
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
        // `grow` leaves up to a fifth of the list unused.
        merged.shrink_to_fit();
        Ok(merged)
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
                runs.add(&part.into_iter().collect::<Vec<_>>()).unwrap();
            }
            all.retain(|_, count| singles || *count > 1);
            let memory = |limit| TermsMemory { limit, taken: 100 };
            let needed = all.len() as u64 * TABLE_BYTES;
            let expected: Vec<_> = all.into_iter().collect();
            // With one byte too little, unless there is nothing to keep, the error names the limit that suffices.
            let kept = KeptTerms::new(singles, memory(100 + needed));
            prop_assert_eq!(&runs.merged(&kept).unwrap(), &expected);
            prop_assert!(kept.ensure_fit(memory(100 + needed)).is_ok());
            if needed > 0 {
                let mut runs = TermRuns::new(0, folder.path());
                runs.add(&expected).unwrap();
                let kept = KeptTerms::new(singles, memory(99 + needed));
                prop_assert!(runs.merged(&kept).unwrap().len() < expected.len());
                let refused = kept.ensure_fit(memory(99 + needed));
                let is_told = matches!(refused, Err(BatchError::Memory { least, .. }) if least == 100 + needed);
                prop_assert!(is_told);
            }
        }
    }
}
