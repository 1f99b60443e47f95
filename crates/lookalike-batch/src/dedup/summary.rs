//! Summary of a job: `run.json`, and the source of what a person reads.

use std::path::PathBuf;

use lookalike_corpus::{InputOptions, Inputs, SkippedPart};
use serde::{Deserialize, Serialize};

use crate::boilerplate::BoilerplateCounts;
use crate::dedup::collection::addition::AddedDocuments;
use crate::dedup::decision::{ClusterTable, DocumentDecision};
use crate::dedup::documents::DocumentTable;
use crate::dedup::just_below::{BelowMargin, ClosePair, JustBelow};
use crate::dedup::pages::PageCounts;
use crate::dedup::scan::ScannedCollection;
use crate::observer::MeasuredCost;
use crate::report::ClusterRow;
use crate::settings::JobLimits;
use crate::skipped::{SkippedInput, SkippedRow, SkippedRows};

/// Summary of `dedup`: the content of `run.json`.
#[derive(Clone, Debug, Serialize)]
pub struct DedupSummary {
    /// The program: [`PROGRAM`](lookalike_corpus::PROGRAM), by which a folder of results is known.
    pub program: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The command line.
    pub command: String,
    /// Name of the method.
    pub method: String,
    /// Least resemblance of a near-duplicate.
    pub threshold: f64,
    /// Largest distance, for simhash.
    pub distance: Option<u32>,
    /// For which candidates of Henzinger's combination the distance counts.
    pub distance_for: Option<crate::settings::DistanceFor>,
    /// Pairs that count: all, or those within a category or across categories.
    pub scope: crate::settings::PairScope,
    /// Definition of the category.
    pub category: Option<String>,
    /// Least share of the longer text that the shorter one has.
    pub lengths: Option<f64>,
    /// Further tests that every near-duplicate passed.
    pub and: Vec<String>,
    /// Canonical text of the scheme.
    pub scheme: String,
    /// Its id.
    pub scheme_id: String,
    /// Document of a cluster that survives.
    pub keep: String,
    /// Longer documents, in bytes, were compared for equal bytes only.
    pub max_document: u64,
    /// Every near-duplicate was verified by exact resemblance.
    pub verified: bool,
    /// Share of pairs at the threshold that the method proposes, where that can be computed.
    pub recall: Option<f64>,
    /// Counts of what was read.
    pub counts: InputCounts,
    /// Counts of what was decided.
    pub decisions: DecisionCounts,
    /// Counts of what was looked at for that.
    pub comparisons: ComparisonCounts,
    /// Counts of what was written.
    pub written: WrittenBytes,
    /// Number of documents kept just below the threshold.
    pub below_threshold: BelowThreshold,
    /// Parts that were not read, by reason.
    pub skipped: Vec<SkippedRow>,
    /// Places of the kept documents, within the folder of the results: `kept.jsonl`, `kept` for files, or both.
    pub kept_in: Vec<String>,
    /// Tables of the kept and the removed rows of each source that has tables of its own, in the order of the sources; those given with
    /// `--against` are not among them. Not part of `run.json`.
    #[serde(skip)]
    pub tables: Vec<Option<[PathBuf; 2]>>,
    /// The largest clusters, as the report shows them. Not part of `run.json`.
    #[serde(skip)]
    pub largest: Vec<ClusterRow>,
    /// Limits of the job.
    pub limits: JobLimits,
    /// True if the decisions of an interrupted job were taken over.
    pub resumed: bool,
    /// Documents that were added to a collection, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<AddedDocuments>,
    /// Cost of the job.
    pub measured: MeasuredCost,
}

/// Counts of what was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputCounts {
    /// Records that were read as documents.
    pub documents: u64,
    /// Of these, given with `--against`.
    pub against: u64,
    /// Different texts; with `--within`, `--across` or `--distance-for site` those of each category.
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
    /// Records in which broken characters were replaced.
    pub characters_replaced: u64,
    /// Records with text that was decoded wrongly before it came here.
    pub mojibake: u64,
    /// Records with words that mix look-alike letters of Latin, Greek and Cyrillic.
    pub homoglyphs: u64,
    /// With `--within` or `--across`: records without a category, which form one of their own.
    pub without_category: u64,
    /// Records that had no id and were given one.
    pub ids_generated: u64,
    /// Of these, where the field of the id was named.
    pub ids_missing: u64,
    /// Records, but for those given with `--against`, without a value in the field by which survivors are chosen.
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
    /// Of these, given with `--against`.
    pub against_bytes: u64,
    /// Bytes of text, as it is compared.
    pub text_bytes: u64,
    /// Of these, given with `--against`.
    pub against_text_bytes: u64,
    /// Distinct features of all different texts, in temporary storage on disk.
    pub spilled_bytes: u64,
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
pub struct CollectionUse {
    /// Documents in it.
    pub documents: u64,
    /// Of these, documents that have a text or a candidate key in common with a new one, and were looked at.
    pub looked_at: u64,
}

impl InputCounts {
    pub(crate) fn of_scan(
        scanned: &ScannedCollection,
        inputs: &Inputs,
        against_sources: usize,
        options: &InputOptions,
        repeated_ids: u64,
    ) -> Self {
        let tally = &scanned.tally;
        let documents = &scanned.documents;
        let stored = scanned.stored;
        let read = documents.len() as u64 - stored.documents;
        let distinct = scanned.classes.len() as u64 - stored.classes - tally.long_classes;
        let others = distinct + tally.empty + tally.too_long;
        let against = inputs.sources[..against_sources].iter();
        Self {
            documents: read,
            against: documents.against as u64 - stored.documents,
            distinct_texts: distinct,
            repeated_texts: read - others,
            empty: tally.empty,
            missing_text: tally.missing,
            too_long: tally.too_long,
            without_features: tally.featureless,
            without_category: tally.uncategorised,
            characters_replaced: tally.replaced,
            mojibake: tally.mojibake,
            homoglyphs: tally.homoglyphs,
            ids_generated: tally.generated_ids,
            ids_missing: match options.id_field {
                Some(_) => tally.generated_ids,
                None => 0,
            },
            keep_missing: tally.unranked,
            keep_unusable: tally.rank_unusable,
            keep_unusable_first: scanned.unusable.clone(),
            ids_repeated: repeated_ids,
            unreadable: scanned.bad.len() as u64,
            input_bytes: inputs.total_bytes(),
            against_bytes: against.map(|source| source.bytes).sum(),
            text_bytes: tally.text_bytes,
            against_text_bytes: documents.lengths[documents.stored..documents.against]
                .iter()
                .sum(),
            spilled_bytes: scanned.sets.spilled()
                + scanned
                    .test_sets
                    .iter()
                    .map(|test| test.sets.spilled())
                    .sum::<u64>(),
            boilerplate: tally.removed.counts(options),
            html: (tally.pages.pages > 0).then_some(tally.pages),
            collection: stored.collection.map(|documents| CollectionUse {
                documents,
                looked_at: stored.documents,
            }),
        }
    }
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
            "without a text field: kept, equal to nothing".to_owned(),
        );
        note(
            self.ids_missing,
            "without the field that --id names: called by file and place".to_owned(),
        );
        note(
            self.keep_missing,
            "without a value for --keep: wanted least".to_owned(),
        );
        let first = self.keep_unusable_first.as_deref().unwrap_or_default();
        note(
            self.keep_unusable,
            format!("with a value that --keep cannot use, wanted least; the first: {first}"),
        );
        notes
    }
}

/// Counts of what was decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionCounts {
    /// Documents kept, those given with `--against` not counted.
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
        outcomes: &[DocumentDecision],
        clusters: &ClusterTable,
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
        for (document, outcome) in outcomes.iter().enumerate().skip(documents.against) {
            match outcome {
                DocumentDecision::Kept => decisions.kept += 1,
                DocumentDecision::Exact { .. } => decisions.removed_exact += 1,
                DocumentDecision::Near { .. } => decisions.removed_near += 1,
            }
            decisions.removed_same_main_text += u64::from(outcome.is_same_main_text());
            if *outcome != DocumentDecision::Kept {
                decisions.removed_text_bytes += documents.lengths[document];
            }
        }
        decisions
    }
}

/// Bytes of the records as they are written, before compression. Those given with `--against` are not written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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

/// Kept texts of a sample by the similarity to the most similar kept one before them, in bins just below the threshold.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BelowThreshold {
    /// Lower end of the first bin; the last one ends at the threshold.
    pub from: f64,
    /// Kept texts of the sample in bins of equal width.
    pub kept: Vec<u64>,
    /// The most similar of these pairs, most similar first.
    pub closest: Vec<BelowPair>,
    /// Kept texts of the sample, drawn by their hashes: the most similar one before each was looked for among all kept texts.
    pub sampled: u64,
    /// Kept texts, but for those given with `--against`.
    pub texts: u64,
}

impl BelowThreshold {
    pub(crate) fn new(just_below: &JustBelow, threshold: f64, documents: &DocumentTable) -> Self {
        let JustBelow {
            kept,
            closest,
            sampled,
            texts,
        } = just_below;
        let id = |document: u32| documents.id(document as usize).to_owned();
        let pair = |pair: &ClosePair| BelowPair {
            a: id(pair.a),
            b: id(pair.b),
            similarity: pair.similarity(),
        };
        Self {
            from: BelowMargin::below(threshold).from(),
            kept: kept.clone(),
            closest: closest.iter().map(pair).collect(),
            sampled: *sampled,
            texts: *texts,
        }
    }
}

/// Two kept documents that are nearly similar enough.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BelowPair {
    /// The less wanted one.
    pub a: String,
    /// The more wanted one.
    pub b: String,
    /// Their resemblance.
    pub similarity: f64,
}

/// Things that were skipped, by kind: unreadable records, and files not read or not to their end, `more` among them.
pub(crate) fn skipped(
    inputs: &Inputs,
    scanned: &ScannedCollection,
    more: &[SkippedPart],
) -> Vec<SkippedRow> {
    let mut rows = SkippedRows::default();
    for bad in &scanned.bad {
        rows.take(SkippedInput::record(inputs, bad));
    }
    for skip in inputs.skips.iter().chain(&scanned.skips).chain(more) {
        rows.take(SkippedInput::part(skip));
    }
    rows.finish()
}
