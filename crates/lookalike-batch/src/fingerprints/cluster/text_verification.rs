//! Verifies removals by fingerprint with the texts: a document is only removed if it resembles its survivor.
//!
//! The texts of removed documents and of their survivors are read once more, each once. Feature sets go to disk if there are many. The resemblance of
//! each pair is exact, as in `dedup`.

use std::sync::Arc;

use lookalike::feature::FeatureExtractor;
use lookalike::resemblance::{intersection_at_least, resemblance_of, shared_needed};
use lookalike::{Scheme, Terms};
use lookalike_corpus::{InputOptions, Inputs, Record};
use lookalike_hamming::threads::map_parallel;

use super::documents::ClusterDocuments;
use super::error::ClusterError;
use super::id_table::IdTable;
use super::memory_shares::MemoryShares;
use super::outcomes::{ClusterOutcomes, DocumentOutcome};
use super::{FingerprintClustering, VerificationCounts};
use crate::document_memory::DocumentUse;
use crate::error::BatchError;
use crate::fingerprints::files::ListedId;
use crate::observer::JobStage;
use crate::record_scan::{RecordScan, RecordWorker};
use crate::settings_error::SettingsError;
use crate::skipped::SkippedRow;
use crate::spill::feature_sets::{SetPosition, SetStore, header, place};
use crate::spill::table_column::TableColumn;
use crate::spill::table_memory::check;

/// Value that means no document.
const NO_DOCUMENT: u32 = u32::MAX;

lookalike::job! {
    /// Texts of the documents, and the rule that they must satisfy.
    #[derive(Clone, Debug)]
    pub struct TextVerification<'a> {
        /// Creates a verification with the features of the default scheme.
        new(inputs: &'a Inputs);
        /// Sets how sources are read: the options that were passed to [`Inputs::discover`].
        options: InputOptions,
        /// Sets the steps from texts to features.
        pub(super) scheme: Scheme,
        /// Sets the table of terms that the scheme names.
        terms: Option<Arc<Terms>>,
        /// Sets the minimum resemblance of a removed document to its survivor, above 0 and at most 1. Default: 0.8.
        pub(super) threshold: f64 = 0.8,
    }
}

/// Documents that would be removed, in document order, and their survivors.
#[derive(Default)]
struct ClaimedRemovals {
    ids: IdTable,
    /// Number of a removed document's id, and rank of its survivor.
    removed: TableColumn<[u32; 2]>,
    /// Number of each survivor's id, by rank.
    survivors: TableColumn<u32>,
}

/// Removals after verification with the texts.
pub(super) struct VerifiedRemovals {
    // An `Option<f64>` would take 16 bytes instead of 8.
    /// Resemblance of each removed document to its survivor, in document order. NaN if it is below the threshold.
    pub(super) similarities: TableColumn<f64>,
    pub(super) counts: VerificationCounts,
    /// Texts that could not be read.
    pub(super) skipped: Vec<SkippedRow>,
}

/// Feature sets of the documents, by number of their ids.
struct TextSets {
    sets: SetStore,
    /// Place and size of each set. `None` for a document that was not found.
    places: TableColumn<Option<(SetPosition, u32)>>,
    /// Texts that could not be read.
    skipped: Vec<SkippedRow>,
}

impl TextSets {
    fn set<'b>(
        &'b self,
        number: u32,
        buffer: &'b mut Vec<u64>,
    ) -> std::io::Result<Option<&'b [u64]>> {
        match self.places[number as usize] {
            Some((at, size)) => self.sets.get(number, at, size as usize, buffer).map(Some),
            None => Ok(None),
        }
    }
}

struct TextWorker<'a> {
    verification: &'a TextVerification<'a>,
    ids: &'a IdTable,
    extractor: FeatureExtractor,
}

/// Feature sets of one chunk, each preceded by its header.
#[derive(Default)]
struct TextBatch {
    words: Vec<u64>,
    /// For each set the number of its id, the position of its header, and its size.
    sets: Vec<(u32, u32, u32)>,
}

/// Returns the number of a record's id. An id that is a number in a fingerprint file is matched by its digits.
fn number_of(ids: &IdTable, id: &str) -> Option<u32> {
    // Record ids are always texts, whereas fingerprint files may also have numbers as ids.
    let by_text = ids.find(&ListedId::Text(id.into()));
    by_text.or_else(|| {
        let number: u64 = id.parse().ok()?;
        ids.find(&ListedId::Number(number))
            // Only as numbers are printed: `007` is not the id `7`.
            .filter(|_| number.to_string() == id)
    })
}

impl RecordWorker for TextWorker<'_> {
    type Product = TextBatch;

    fn add(&mut self, record: &Record<'_>, made: &mut TextBatch) {
        let Some(number) = number_of(self.ids, &record.id) else {
            return;
        };
        let set = match self.verification.options.fields.is_none() {
            true => self.extractor.feature_set(&record.text),
            false => {
                self.extractor
                    .extract_with(&record.text, &record.fields)
                    .set
            }
        };
        let start = made.words.len() as u32;
        made.sets.push((number, start, set.len() as u32));
        made.words.push(header(number, set.len()));
        made.words.extend_from_slice(set);
    }

    fn shrink(&mut self) {
        self.extractor.shrink();
    }
}

impl ClaimedRemovals {
    fn collect(
        outcomes: &ClusterOutcomes<'_>,
        documents: &ClusterDocuments<'_>,
        shares: &MemoryShares,
    ) -> Result<Self, BatchError> {
        let mut claimed = Self {
            survivors: std::iter::repeat_n(NO_DOCUMENT, outcomes.ranking.classes.len()).collect(),
            ..Self::default()
        };
        let sizes = outcomes.sizes();
        documents.for_each(&mut |document| {
            let (rank, outcome) = outcomes.of(&document);
            // A kept document that nothing is removed for needs no text.
            let survivor = rank.filter(|&rank| sizes[rank as usize] > 0);
            let (is_removed, rank) = match (outcome, survivor) {
                (DocumentOutcome::Removed { survivor, .. }, _) => (true, survivor),
                (DocumentOutcome::Kept, Some(rank)) => (false, rank),
                _ => return Ok(()),
            };
            // Texts are found by id, which bare fingerprints do not have.
            if document.is_bare {
                return Err(ClusterError::NoIds.into());
            }
            let (id, before) = (document.id.listed(), claimed.ids.len());
            let number = claimed.ids.number(&id);
            if number < before {
                let id = id.to_string();
                return Err(ClusterError::RepeatedId { id }.into());
            }
            match is_removed {
                true => claimed.removed.push([number, rank]),
                false => claimed.survivors[rank as usize] = number,
            }
            // Often enough to stop long before the memory is full, and rarely enough to cost nothing.
            if number.is_multiple_of(1 << 14) {
                // Each removed document has two numbers here and will have a similarity.
                let used = claimed.ids.memory() + 16 * claimed.removed.len() as u64;
                shares.ensure_list(used, u64::from(number))?;
            }
            Ok(())
        })?;
        Ok(claimed)
    }
}

impl FingerprintClustering<'_> {
    /// Verifies all removals with the texts.
    pub(super) fn verify_removals(
        &self,
        texts: &TextVerification<'_>,
        outcomes: &ClusterOutcomes<'_>,
        documents: &ClusterDocuments<'_>,
        shares: &MemoryShares,
    ) -> Result<VerifiedRemovals, BatchError> {
        let claimed = ClaimedRemovals::collect(outcomes, documents, shares)?;
        let sets = self.read_texts(texts, &claimed.ids, shares)?;
        check(self.folder).map_err(BatchError::temporary(self.folder))?;
        self.observer.stage(JobStage::Compare, 0);
        // NaN stays where the threshold is not reached, or a text is missing.
        let mut similarities: TableColumn<f64> =
            std::iter::repeat_n(f64::NAN, claimed.removed.len()).collect();
        // Each thread writes to its own part of the results, which need no lock and stay in document order.
        let share = claimed.removed.len().div_ceil(self.limits.workers()).max(1);
        let shares_of_work = claimed.removed.chunks(share);
        let compared = map_parallel(
            shares_of_work.zip(similarities.chunks_mut(share)),
            |(removed, found)| {
                resemblances(&sets, removed, &claimed.survivors, texts.threshold, found)
            },
        );
        let compared: std::io::Result<()> = compared.into_iter().collect();
        compared.map_err(BatchError::temporary(self.folder))?;
        let mut counts = VerificationCounts {
            texts: sets.places.iter().flatten().count() as u64,
            missing: sets.places.iter().filter(|place| place.is_none()).count() as u64,
            ..VerificationCounts::default()
        };
        let is_there = |number: u32| sets.places[number as usize].is_some();
        let removed = claimed.removed.iter().zip(similarities.iter());
        for (&[number, survivor], _) in removed.filter(|(_, similarity)| similarity.is_nan()) {
            counts.kept_after_all += 1;
            let survivor = claimed.survivors[survivor as usize];
            counts.without_text += u64::from(!is_there(number) || !is_there(survivor));
        }
        Ok(VerifiedRemovals {
            similarities,
            counts,
            skipped: sets.skipped,
        })
    }

    /// Reads the texts of the documents in the table.
    fn read_texts(
        &self,
        texts: &TextVerification<'_>,
        ids: &IdTable,
        shares: &MemoryShares,
    ) -> Result<TextSets, BatchError> {
        let extractor = FeatureExtractor::with_terms(&texts.scheme, texts.terms.as_ref())
            .map_err(SettingsError::from)?;
        let worker = || TextWorker {
            verification: texts,
            ids,
            extractor: extractor.clone(),
        };
        let documents = DocumentUse::Features(&texts.scheme);
        let scan = RecordScan::new(texts.inputs)
            .options(texts.options.clone())
            .limits(self.limits.clone())
            .losses(self.losses)
            .observer(self.observer);
        let mut read = TextSets {
            sets: SetStore::new(shares.texts()),
            places: std::iter::repeat_n(None, ids.len() as usize).collect(),
            skipped: Vec::new(),
        };
        let counts = scan.run(documents, worker, |made: TextBatch, _| {
            let segment = read.sets.push(made.words, self.folder);
            let segment = segment.map_err(BatchError::temporary(self.folder))?;
            for (number, word, size) in made.sets {
                let known = &mut read.places[number as usize];
                // If two texts had one id, it would be unclear which one the fingerprint belongs to.
                if known.replace((place(segment, word), size)).is_some() {
                    let id = ids.id(number).to_string();
                    return Err(ClusterError::RepeatedId { id }.into());
                }
            }
            Ok(())
        })?;
        read.skipped = counts.skipped;
        // Most likely other files were named than the fingerprints were made of; everything would be kept without a word.
        let none_is_there = ids.len() > 0 && read.places.iter().all(Option::is_none);
        match none_is_there {
            true => Err(ClusterError::NoTexts {
                records: counts.records,
                id: ids.id(0).to_string(),
            }
            .into()),
            false => Ok(read),
        }
    }
}

/// Stores the resemblance of each removed document to its survivor, if it reaches the threshold.
fn resemblances(
    sets: &TextSets,
    removed: &[[u32; 2]],
    survivors: &[u32],
    threshold: f64,
    found: &mut [f64],
) -> std::io::Result<()> {
    let (mut own, mut other) = (Vec::new(), Vec::new());
    for (&[document, survivor], found) in removed.iter().zip(found) {
        let survivor = survivors[survivor as usize];
        let (Some(a), Some(b)) = (
            sets.set(document, &mut own)?,
            sets.set(survivor, &mut other)?,
        ) else {
            continue;
        };
        // Texts without features resemble nothing.
        if a.is_empty() || b.is_empty() {
            continue;
        }
        let needed = shared_needed(a.len(), b.len(), threshold);
        if let Some(shared) = intersection_at_least(a, b, needed) {
            *found = resemblance_of(shared, a.len(), b.len());
        }
    }
    Ok(())
}
