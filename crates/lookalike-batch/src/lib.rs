//! Deduplication of whole collections in bounded memory.
//!
//! A [`DedupJob`] reads documents through `lookalike-corpus`, turns them into feature sets with `lookalike`, proposes
//! candidates by one of the [`Method`]s, verifies each by exact resemblance, and either chooses survivors
//! ([`DedupJob::dedup`]) or lists all pairs ([`DedupJob::write_pairs`]). The stages, with their modules, most of which are below `dedup`:
//!
//! ```text
//! scan       read once; id, class of equal texts, feature set once a class      documents, sets, frequency
//! rank       ids in order, classes from most to least wanted                    documents
//! keys       prefixes, bands, super-shingles or blocks of each class            frequency, job_keys
//! groups     classes that share a key                                           candidate_groups, spill
//! compare    candidates verified; survivors, or pairs                           verify, survivors, pairs
//! write      records read again and written under their final names             run, result_writer, output_dir, report
//! ```
//!
//! [`DedupJob::archive`] instead writes all records into one file, copies next to their survivors; a [`CollectionArchive`] extracts them.
//!
//! The result depends only on the documents and the [`JobSettings`], not on the order of the input, the number of threads, the memory, or
//! whether the job was interrupted. Text never stays in memory; feature sets and keys go to unnamed temporary files when the [`JobLimits`] are
//! reached.

#[macro_use]
mod tally;

mod archive;
mod boilerplate;
mod contents;
mod dedup;
mod document_memory;
mod error;
pub mod explain;
mod extraction;
mod fields;
pub mod fingerprints;
mod folder_refusal;
mod free_memory;
pub mod kernel;
mod links;
mod locks;
mod losses;
mod observer;
mod output_dir;
pub mod overlap;
mod parallel;
mod parallel_sort;
mod path_lock;
mod pipeline;
mod record_scan;
pub mod report;
mod setting_words;
mod settings;
mod settings_error;
mod skipped;
mod spill;
mod terms;
mod unfinished;

pub use archive::build::{ArchiveSummary, RenamedFile};
pub use archive::error::CollectionArchiveError;
pub use archive::read::{CollectionArchive, CollectionArchiveInfo};
pub use archive::settings::{
    ArchiveBlockSize, ArchiveBlockSizeError, ArchiveLevel, ArchiveSettings,
};
pub use boilerplate::{BoilerplateCounts, BoilerplateLearner};
pub use dedup::collection::addition::AddedDocuments;
#[doc(hidden)]
pub use dedup::collection::directory::COLLECTION_LOCK;
pub use dedup::collection::directory::{CollectionInfo, CollectionWriter, DocumentCollection};
pub use dedup::collection::error::CollectionError;
pub use dedup::collection::manifest::CollectionSetting;
pub use dedup::collection_job::CollectionSummary;
pub use dedup::counts::{
    CollectionUse, ComparisonCounts, DecisionCounts, InputCounts, LargestCluster, WrittenBytes,
};
pub use dedup::decided::{DedupCluster, DedupDecisions, DedupPair};
pub use dedup::document_decision::DocumentDecision;
pub use dedup::given::DocumentDedup;
pub use dedup::job::DedupJob;
pub use dedup::pages::PageCounts;
pub use dedup::pair_test::{PairTest, TestOutcome};
pub use dedup::pairs_job::PairsSummary;
pub use dedup::paragraphs::{ParagraphCounts, ParagraphRecords, ParagraphSplit};
pub use dedup::run::DEDUP_RESULTS;
pub use dedup::saved::SavedDecisions;
pub use dedup::summary::{BelowThreshold, BelowThresholdPair, DedupSummary};
#[doc(hidden)]
pub use document_memory::{DocumentUse, ensure_documents_fit};
pub use error::{BatchError, FieldSetting, MissingField};
pub use extraction::{ExtractionSummary, TextExtraction, TextFormat};
pub use fields::{FieldTally, LinkedRecords};
pub use fingerprints::MAX_DISTANCE;
pub use fingerprints::job::{FingerprintJob, FingerprintSummary};
pub use fingerprints::join::{
    FingerprintJoin, FingerprintShard, JoinSummary, MergeSummary, MergedList, PairMerge,
    PairMergeError, ParseShardError,
};
pub use folder_refusal::FolderRefusal;
pub use links::job::{LinkInversion, LinksSummary};
pub use losses::{LossLimit, LossPolicy};
pub use observer::{JobObserver, JobStage, MeasuredCost, NoProgress};
pub use output_dir::{
    IfExists, JobProgress, OutputOptions, copy_results, discard_unfinished, is_addition_staged,
    remove_unfinished,
};
#[doc(hidden)]
pub use path_lock::PathLock;
pub use record_scan::RecordScan;
pub use setting_words::ParseSettingError;
pub use settings::{
    DistanceFor, JobLimits, JobSettings, KeepRule, KeepRules, Method, PairList, PairScope,
    RecordOrder, RepeatedIds,
};
pub use settings_error::{BoundedSetting, SettingConflict, SettingsError};
pub use skipped::{LossExtent, SkippedRow, SkippedRows};
#[doc(hidden)]
pub use spill::{SPOOL, SPOOL_LOCK, remove_abandoned_spools};
pub use terms::{
    DriftSummary, TermTable, TermsError, TermsMemory, TermsSummary, merge_terms, read_terms,
};
pub use unfinished::{JobFolder, can_resume};

/// The example of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct BatchReadme;
