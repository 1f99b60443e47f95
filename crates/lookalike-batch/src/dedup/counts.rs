//! Counts of a job: what was read, decided, compared and written.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::boilerplate::BoilerplateCounts;
use crate::dedup::decision::ClusterTable;
use crate::dedup::decision_table::DecisionTable;
use crate::dedup::document_decision::DocumentDecision;
use crate::dedup::documents::DocumentTable;
use crate::dedup::pages::PageCounts;
use crate::parallel::in_ranges;

/// Counts of the input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InputCounts {
    /// Number of records that were read as documents.
    pub documents: u64,
    /// Number of these that are only compared with.
    pub against: u64,
    /// Number of different texts, of pages visible ones; if categories or sites are distinguished, of each of them. Like all counts of texts and
    /// records, it includes those that are only compared with.
    pub distinct_texts: u64,
    /// Number of records whose text, as it is compared, another record has too, except one record per text, whether they are kept or removed.
    /// `documents` = `distinct_texts` + `repeated_texts` + `empty` + `too_long`.
    pub repeated_texts: u64,
    /// Number of records without a text, or with only white space: they equal no other record.
    pub empty: u64,
    /// Number of these whose text field is absent or null.
    pub missing_text: u64,
    /// Number of records longer than the limit: they are compared only for equal bytes.
    pub too_long: u64,
    /// Number of different texts without a feature: they are compared only as exact copies.
    pub without_features: u64,
    /// Number of features that propose no candidates because more different texts have them than the settings allow.
    pub stop_features: u64,
    /// Number of records in which invalid characters, or values that have no representation, were replaced.
    pub characters_replaced: u64,
    /// Number of records with text that was wrongly decoded before.
    pub mojibake: u64,
    /// Number of records with words that mix look-alike letters of Latin, Greek and Cyrillic.
    pub homoglyphs: u64,
    /// Number of records without a category, if categories are compared; together they form one category.
    pub without_category: u64,
    /// Number of records without an id, which were given one.
    pub ids_generated: u64,
    /// Number of these in a job that names the field of the id.
    pub ids_missing: u64,
    /// Number of records, except those that are only compared with, without a value in the field that orders survivors.
    pub keep_missing: u64,
    /// Number of such records with a value there that the rule cannot use.
    pub keep_unusable: u64,
    /// The first of those values, its place, and why it cannot be used.
    pub keep_unusable_first: Option<String>,
    /// Number of records that were renamed because another record has the same id.
    pub ids_repeated: u64,
    /// Number of records that could not be read; see `skipped`.
    pub unreadable: u64,
    /// Bytes of input as stored, before decompression.
    pub input_bytes: u64,
    /// Bytes of these that are only compared with.
    pub against_bytes: u64,
    /// Bytes of text as it is compared.
    pub text_bytes: u64,
    /// Bytes of these that are only compared with.
    pub against_text_bytes: u64,
    /// Bytes of feature sets in temporary storage on disk.
    pub temporary_bytes: u64,
    /// Maximum number of bytes of document tables in temporary files at a time, because they exceeded their share of the memory.
    #[serde(default)]
    pub tables_on_disk: u64,
    /// Counts of the boilerplate removed from texts, if that was requested.
    pub boilerplate: Option<BoilerplateCounts>,
    /// Counts of HTML pages of which a part was chosen, if there are any.
    pub html: Option<PageCounts>,
    /// The collection that the documents were compared with, if there is one. Its documents are in none of the other counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection: Option<CollectionUse>,
}

/// Use of a collection whose documents are not read again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CollectionUse {
    /// Number of documents in it.
    pub documents: u64,
    /// Number of these that were compared: they have the text of a new document, or share so many candidate keys with it that they may
    /// resemble it.
    pub looked_at: u64,
}

impl InputCounts {
    /// Returns the number of records, without those that are only compared with.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.documents - self.against
    }

    /// Returns a sentence for each field that records lack or have wrong values in.
    pub fn field_notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let mut note = |count: u64, sentence: String| {
            if count > 0 {
                let noun = if count == 1 { "record" } else { "records" };
                notes.push(format!("{count} {noun} {sentence}"));
            }
        };
        note(
            self.missing_text,
            "without a text field: never a duplicate".to_owned(),
        );
        note(
            self.ids_missing,
            "without the field for ids: identified by file and position".to_owned(),
        );
        note(
            self.keep_missing,
            "without a value for the survivor rule: ranked last".to_owned(),
        );
        let first = self.keep_unusable_first.as_deref().unwrap_or_default();
        note(
            self.keep_unusable,
            format!(
                "with a value that the survivor rule cannot use, ranked last; the first: {first}"
            ),
        );
        notes
    }
}

/// Counts of the decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DecisionCounts {
    /// Number of documents kept, without those that are only compared with.
    pub kept: u64,
    /// Number of documents removed because their visible text equals that of a kept document. Documents of equal text that are all
    /// removed for a kept one that resembles them do not count here: see [`InputCounts::repeated_texts`].
    pub removed_exact: u64,
    /// Number of documents removed because they resemble a kept document.
    pub removed_near: u64,
    /// Number of these that are pages with the main text of a kept document but another visible text.
    pub removed_same_main_text: u64,
    /// Number of texts that are kept although their main text resembles that of a kept page, because the pages differ elsewhere.
    pub kept_as_pages: u64,
    /// Number of kept documents for which others were removed.
    pub clusters: u64,
    /// Bytes of the texts of removed documents: the saving out of `text_bytes` without `against_text_bytes`.
    pub removed_text_bytes: u64,
    /// The cluster with the most removed documents.
    pub largest_cluster: Option<LargestCluster>,
}

/// The cluster with the most removed documents; the first of several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LargestCluster {
    /// Id of the document that is kept.
    pub survivor: String,
    /// Number of documents removed for it.
    pub removed: u64,
}

/// Minimum number of removed documents for an alert about a dominant cluster.
const MIN_REMOVED: u64 = 20;

impl DecisionCounts {
    /// Returns the largest cluster if it has more than half of the removed documents, as when a template is taken for the text.
    #[must_use]
    pub fn dominant_cluster(&self) -> Option<&LargestCluster> {
        let largest = self.largest_cluster.as_ref();
        largest.filter(|largest| {
            largest.removed >= MIN_REMOVED && 2 * largest.removed > self.removed()
        })
    }

    /// Returns the number of removed documents, exact and near copies together.
    #[must_use]
    pub fn removed(&self) -> u64 {
        self.removed_exact + self.removed_near
    }

    pub(crate) fn new(
        documents: &DocumentTable,
        outcomes: &DecisionTable,
        clusters: &ClusterTable,
        threads: usize,
    ) -> Self {
        let mut largest: Option<LargestCluster> = None;
        // Clusters are in the order of ids, so of several largest ones the same is named for any input order.
        for (survivor, members) in clusters.iter() {
            let removed = members.len() as u64;
            if largest
                .as_ref()
                .is_none_or(|largest| removed > largest.removed)
            {
                let survivor = documents.id(survivor as usize).to_owned();
                largest = Some(LargestCluster { survivor, removed });
            }
        }
        let mut decisions = Self {
            clusters: clusters.len() as u64,
            largest_cluster: largest,
            ..Self::default()
        };
        let new = documents.len() - documents.against;
        let parts = in_ranges(new, threads, |range| {
            let range = range.start + documents.against..range.end + documents.against;
            Self::of_documents(documents, outcomes, range)
        });
        for part in parts {
            decisions.kept += part.kept;
            decisions.removed_exact += part.removed_exact;
            decisions.removed_near += part.removed_near;
            decisions.removed_same_main_text += part.removed_same_main_text;
            decisions.removed_text_bytes += part.removed_text_bytes;
        }
        decisions
    }

    /// Counts consecutive documents, without clusters.
    fn of_documents(
        documents: &DocumentTable,
        outcomes: &DecisionTable,
        range: Range<usize>,
    ) -> Self {
        let mut decisions = Self::default();
        for document in range {
            let outcome = outcomes.get(document);
            match outcome {
                DocumentDecision::Kept => decisions.kept += 1,
                DocumentDecision::Exact { .. } => decisions.removed_exact += 1,
                DocumentDecision::Near { .. } => decisions.removed_near += 1,
            }
            decisions.removed_same_main_text += u64::from(outcome.is_same_main_text());
            if outcome != DocumentDecision::Kept {
                decisions.removed_text_bytes += documents.lengths.get(document);
            }
        }
        decisions
    }
}

/// Bytes of the records as written, before compression. Documents that are only compared with are not written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WrittenBytes {
    /// Bytes of kept records.
    pub kept: u64,
    /// Bytes of removed records.
    pub removed: u64,
    /// Bytes of files in `skipped/`, of which nothing was read.
    pub skipped: u64,
    /// Number of these files.
    pub skipped_files: u64,
}

tally! {
    /// Counts of comparisons while survivors were chosen; the same for any number of threads.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[non_exhaustive]
    pub struct ComparisonCounts {
        /// Number of texts met in the groups of others, without those of about the same rank.
        pub visits: u64,
        /// Number of pairs of these whose sizes and number of shared groups were compared.
        pub candidates: u64,
        /// Number of pairs whose features were compared.
        pub compared: u64,
    }
}
