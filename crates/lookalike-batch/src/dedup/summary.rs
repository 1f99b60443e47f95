//! Summary of a job: the contents of `run.json`, from which the text for users is also made.

use std::path::PathBuf;

use lookalike_corpus::{InputOptions, Inputs, SkippedPart};
use serde::Serialize;

use crate::dedup::collection::addition::AddedDocuments;
use crate::dedup::counts::{
    CollectionUse, ComparisonCounts, DecisionCounts, InputCounts, WrittenBytes,
};
use crate::dedup::documents::DocumentTable;
use crate::dedup::just_below::{BelowThresholdCounts, ClosePair, MarginBins};
use crate::dedup::scan::ScannedCollection;
use crate::observer::MeasuredCost;
use crate::report::ClusterRow;
use crate::settings::JobLimits;
use crate::skipped::{SkippedInput, SkippedRow, SkippedRows};

/// Summary of `dedup`: the contents of `run.json`.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct DedupSummary {
    /// The program: [`PROGRAM`](lookalike_corpus::PROGRAM), by which a folder of results is recognised.
    pub program: &'static str,
    /// Version of the program.
    pub version: &'static str,
    /// The command line.
    pub command: String,
    /// Name of the method.
    pub method: String,
    /// Minimum resemblance of a near-duplicate.
    pub threshold: f64,
    /// Maximum distance, for simhash.
    pub distance: Option<u32>,
    /// Candidates of Henzinger's combination for which the distance counts.
    pub distance_for: Option<crate::settings::DistanceFor>,
    /// Pairs that count: all, or those within a category or across categories.
    pub scope: crate::settings::PairScope,
    /// Definition of the category.
    pub category: Option<String>,
    /// Minimum length of the shorter text as a share of the longer one.
    pub lengths: Option<f64>,
    /// Further tests that every near-duplicate passed.
    pub and: Vec<String>,
    /// Canonical text of the scheme.
    pub scheme: String,
    /// Id of the scheme.
    pub scheme_id: String,
    /// Rules that choose the survivor of a cluster.
    pub keep: String,
    /// Maximum number of bytes of a document; longer ones were compared only for equal bytes.
    pub max_document: u64,
    /// True if every near-duplicate was verified by exact resemblance.
    pub verified: bool,
    /// Share of the pairs at the threshold that the method proposes, if it can be computed.
    pub recall: Option<f64>,
    /// Counts of the input.
    pub counts: InputCounts,
    /// Counts of the decisions.
    pub decisions: DecisionCounts,
    /// Counts of the comparisons.
    pub comparisons: ComparisonCounts,
    /// Bytes of the results.
    pub written: WrittenBytes,
    /// Documents kept just below the threshold.
    pub below_threshold: BelowThreshold,
    /// Parts that were not read, by kind.
    pub skipped: Vec<SkippedRow>,
    /// Places of the kept documents within the folder of the results: `kept.jsonl`, `kept` for files, or both.
    pub kept_in: Vec<String>,
    /// Names of all files and folders that the job wrote to its folder: [`IfExists::Overwrite`](crate::IfExists::Overwrite) replaces only these.
    pub results: Vec<String>,
    /// Tables of the kept and the removed rows of each source that gets separate tables, in the order of the sources, without those
    /// that are only compared with. Not part of `run.json`.
    #[serde(skip)]
    pub tables: Vec<Option<[PathBuf; 2]>>,
    /// The largest clusters, as in the report. Not part of `run.json`.
    #[serde(skip)]
    pub largest: Vec<ClusterRow>,
    /// Resource limits of the job.
    pub limits: JobLimits,
    /// True if the decisions of an interrupted job were reused.
    pub resumed: bool,
    /// Numbers of documents added to a collection and in it, if the job adds to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<AddedDocuments>,
    /// Cost of the job.
    pub measured: MeasuredCost,
}

/// Kept texts of a sample whose most similar other kept text is just below the threshold, in bins of similarity.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BelowThreshold {
    /// Lower end of the first bin; the last bin ends at the threshold.
    pub from: f64,
    /// Number of kept texts of the sample in each bin; bins have equal width.
    pub kept: Vec<u64>,
    /// The most similar of their pairs with that text, in descending order of similarity.
    pub closest: Vec<BelowThresholdPair>,
    /// Number of kept texts in the sample, which is chosen by their hashes. The most similar one of each was searched among all kept texts.
    pub sampled: u64,
    /// Number of kept texts, except those that are only compared with.
    pub texts: u64,
}

impl BelowThreshold {
    pub(crate) fn new(
        just_below: &BelowThresholdCounts,
        threshold: f64,
        documents: &DocumentTable,
    ) -> Self {
        let id = |document: u32| documents.id(document as usize).to_owned();
        let pair = |pair: &ClosePair| BelowThresholdPair {
            a: id(pair.a),
            b: id(pair.b),
            similarity: pair.similarity(),
        };
        Self {
            from: MarginBins::below(threshold).from(),
            kept: just_below.kept.clone(),
            closest: just_below.closest.iter().map(pair).collect(),
            sampled: just_below.sampled,
            texts: just_below.texts,
        }
    }
}

/// Two kept documents whose resemblance is just below the threshold.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BelowThresholdPair {
    /// The less preferred document.
    pub a: String,
    /// The more preferred document.
    pub b: String,
    /// Their resemblance.
    pub similarity: f64,
}

/// Returns the counts of a scan.
pub(crate) fn input_counts(
    scanned: &ScannedCollection,
    inputs: &Inputs,
    against_sources: usize,
    options: &InputOptions,
    repeated_ids: u64,
) -> InputCounts {
    let tally = &scanned.tally;
    let documents = &scanned.documents;
    let stored = scanned.stored;
    let read = documents.len() as u64 - stored.documents;
    // Texts that are too long are counted by record, in `too_long`.
    let new = scanned.classes.len() - stored.classes as usize;
    // Pages of one visible text are several classes if they differ in the main text or the title.
    let distinct = new as u64 - tally.long_classes - scanned.classes.repeated_texts(new);
    let others = distinct + tally.empty + tally.fields.too_long;
    let against = inputs.sources[..against_sources].iter();
    InputCounts {
        documents: read,
        against: documents.against as u64 - stored.documents,
        distinct_texts: distinct,
        repeated_texts: read - others,
        empty: tally.empty,
        missing_text: tally.fields.missing(),
        too_long: tally.fields.too_long,
        without_features: tally.featureless,
        stop_features: 0,
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
        // Documents of a collection were not read.
        against_text_bytes: (documents.stored..documents.against)
            .map(|document| documents.lengths.get(document))
            .sum(),
        // Set when the whole job is done.
        tables_on_disk: 0,
        temporary_bytes: scanned.sets.bytes_on_disk()
            + scanned.page_sets.bytes_on_disk()
            + scanned
                .test_sets
                .iter()
                .map(|test| test.sets.bytes_on_disk())
                .sum::<u64>(),
        boilerplate: tally.removed.counts(options),
        html: (tally.pages.pages > 0).then_some(tally.pages),
        collection: stored.collection.map(|documents| CollectionUse {
            documents,
            looked_at: stored.documents,
        }),
    }
}

/// Returns the rows of what was skipped, by kind: unreadable records, and files that were not read or not to the end, including `more`.
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
