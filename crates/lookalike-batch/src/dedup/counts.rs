//! Counts of a job: what was read, decided, looked at and written.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::boilerplate::BoilerplateCounts;
use crate::dedup::decision::ClusterTable;
use crate::dedup::decision_table::DecisionTable;
use crate::dedup::document_decision::DocumentDecision;
use crate::dedup::documents::DocumentTable;
use crate::dedup::pages::PageCounts;
use crate::parallel::in_ranges;

/// Counts of what was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InputCounts {
    /// Records that were read as documents.
    pub documents: u64,
    /// Of these, only compared with.
    pub against: u64,
    /// Different texts; where categories or sites are told apart, those of each.
    pub distinct_texts: u64,
    /// Records whose text, as it is compared, another record has too, but for one of each text; whatever becomes of them.
    /// `documents` = `distinct_texts` + `repeated_texts` + `empty` + `too_long`.
    pub repeated_texts: u64,
    /// Records without a text, or with white space only: they equal nothing.
    pub empty: u64,
    /// Of these, records whose text field is absent or null.
    pub missing_text: u64,
    /// Records longer than the limit: compared for equal bytes only.
    pub too_long: u64,
    /// Different texts without a feature: compared as exact copies only.
    pub without_features: u64,
    /// Features that propose no candidates, because more different texts have them than was set.
    pub stop_features: u64,
    /// Records in which broken characters were replaced.
    pub characters_replaced: u64,
    /// Records with text that was decoded wrongly before it came here.
    pub mojibake: u64,
    /// Records with words that mix look-alike letters of Latin, Greek and Cyrillic.
    pub homoglyphs: u64,
    /// Within or across categories: records without a category, which form one of their own.
    pub without_category: u64,
    /// Records that had no id and were given one.
    pub ids_generated: u64,
    /// Of these, where the field of the id was named.
    pub ids_missing: u64,
    /// Records, but for those that are only compared with, without a value in the field by which survivors are chosen.
    pub keep_missing: u64,
    /// The same with a value there that the rule cannot use.
    pub keep_unusable: u64,
    /// The first of those values, where it is, and why it cannot be used.
    pub keep_unusable_first: Option<String>,
    /// Records whose id another had, and that were numbered.
    pub ids_repeated: u64,
    /// Records that could not be read; see `skipped`.
    pub unreadable: u64,
    /// Bytes of input as stored, that is before decompression.
    pub input_bytes: u64,
    /// Of these, only compared with.
    pub against_bytes: u64,
    /// Bytes of text, as it is compared.
    pub text_bytes: u64,
    /// Of these, only compared with.
    pub against_text_bytes: u64,
    /// Distinct features of all different texts, in temporary storage on disk.
    pub spilled_bytes: u64,
    /// Most bytes of tables of documents that were in temporary files at once, because they took more than their share of the memory.
    #[serde(default)]
    pub tables_on_disk: u64,
    /// Counts of what was taken out of texts, if anything was to be.
    pub boilerplate: Option<BoilerplateCounts>,
    /// HTML pages of which a part was chosen, where there are any.
    pub html: Option<PageCounts>,
    /// The collection that the documents were compared with, if there is one. Its documents are in no other count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection: Option<CollectionUse>,
}

/// Use of a collection that is not read again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CollectionUse {
    /// Documents in it.
    pub documents: u64,
    /// Of these, documents that were looked at: they have the text of a new one, or share so many candidate keys with it that they may
    /// resemble it.
    pub looked_at: u64,
}

impl InputCounts {
    /// A sentence for every field that records lack, or have something else in.
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

/// Counts of what was decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DecisionCounts {
    /// Documents kept, those that are only compared with not counted.
    pub kept: u64,
    /// Documents removed because a reader sees the same text as of a kept one. Those of equal text that are all removed for a
    /// kept one that resembles them are not among these: see [`InputCounts::repeated_texts`].
    pub removed_exact: u64,
    /// Documents removed because they resemble a kept one.
    pub removed_near: u64,
    /// Of these, pages with the main text of a kept one, of which a reader sees something else.
    pub removed_same_main_text: u64,
    /// Texts that are kept though their main text resembles that of a kept page: the pages differ in the rest.
    pub kept_as_pages: u64,
    /// Kept documents for which others were removed.
    pub clusters: u64,
    /// Bytes of the texts of removed documents: what is saved of `text_bytes` without `against_text_bytes`.
    pub removed_text_bytes: u64,
    /// The cluster from which most documents were removed.
    pub largest_cluster: Option<LargestCluster>,
}

/// The cluster from which most documents were removed, the first of several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LargestCluster {
    /// The document that is kept.
    pub survivor: String,
    /// Number of documents removed for it.
    pub removed: u64,
}

/// Fewer removed documents than this are no reason for an alert.
const FEW_REMOVED: u64 = 20;

impl DecisionCounts {
    /// The largest cluster, if it holds more than half of what is removed: a template that was taken for the text looks so.
    #[must_use]
    pub fn dominant_cluster(&self) -> Option<&LargestCluster> {
        let removed = self.removed_exact + self.removed_near;
        let largest = self.largest_cluster.as_ref();
        largest.filter(|largest| largest.removed >= FEW_REMOVED && 2 * largest.removed > removed)
    }

    pub(crate) fn new(
        documents: &DocumentTable,
        outcomes: &DecisionTable,
        clusters: &ClusterTable,
        threads: usize,
    ) -> Self {
        let mut largest: Option<LargestCluster> = None;
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

    /// Counts of consecutive documents; none of clusters.
    fn of_documents(
        documents: &DocumentTable,
        outcomes: &DecisionTable,
        range: Range<usize>,
    ) -> Self {
        let mut decisions = Self::default();
        for (document, outcome) in range.clone().zip(outcomes.documents_in(range)) {
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

/// Bytes of the records as they are written, before compression. Those that are only compared with are not written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WrittenBytes {
    /// Of kept records.
    pub kept: u64,
    /// Of removed records.
    pub removed: u64,
    /// Of files in `skipped/`, of which nothing was read.
    pub skipped: u64,
    /// Number of these.
    pub skipped_files: u64,
}

/// Counts of what was looked at while survivors were chosen; the same for any number of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ComparisonCounts {
    /// Texts met in the groups of others, but for those of about the same rank.
    pub visits: u64,
    /// Pairs of these: their sizes, and how many groups they share, were looked at.
    pub candidates: u64,
    /// Pairs whose features were compared.
    pub compared: u64,
}

impl ComparisonCounts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.visits += other.visits;
        self.candidates += other.candidates;
        self.compared += other.compared;
    }
}
