//! Measures precision and recall of schemes, against labels or against the exact answer.
//!
//! The evaluation uses the sketches that jobs use, so that it measures the real thing. The steps:
//!
//! 1. Documents become a [`DocumentSet`], ordered by id, or a [`SketchedSet`] without texts ([`document_set`]).
//! 2. The truth is a [`LabelSet`] ([`label`]) or the exact resemblance ([`mod@score`]).
//! 3. Each setting scores pairs ([`mod@score`]). Every cut of the scores is a [`CurvePoint`] with precision, recall and their confidence
//!    limits ([`curve`], [`interval`]).
//! 4. [`sweep`](sweep()) does this for many settings and recommends some. [`halves`] and [`nested`] estimate the accuracy on other data,
//!    and [`RecallAudit`] estimates from a sample which share of the pairs a method finds. [`cluster`] compares clusterings,
//!    [`text_dedup_benchmark`] counts by published rules, and [`conjunctive_rule`] finds the two settings that together agree best with
//!    labels.
//! 5. [`stratified_sample`] draws pairs for people to judge, equally many from each band of similarity, and [`stratified_labels`] weights
//!    their labels accordingly.
//! 6. [`page`] renders a sweep as one self-contained page.
//!
//! ```
//! use lookalike::{Scheme, Sketch};
//! use lookalike_eval::{DocumentSet, GroundTruth, SweepSetting, measure, sketches_of};
//!
//! let rose = "a rose is a rose is a rose";
//! let documents = DocumentSet::new([("a", rose), ("b", "A rose is a rose! Is a rose"), ("c", "no flower at all, is it?")])?;
//! let labels = r#"{"a":"a","b":"b","label":true}
//!                 {"a":"b","b":"c","label":false}"#;
//! let truth = GroundTruth::of_labels(labels, &documents, 1.0)?;
//!
//! let setting = SweepSetting::from(Scheme::default().sketch(Sketch::Simhash));
//! let row = measure(&setting, &sketches_of(&documents, &setting.scheme), &truth);
//! let best = row.curve.best.expect("pairs with a score");
//! assert_eq!((best.found, best.precision.value, best.recall.value), (1, 1.0, 1.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing here reads files, prints or draws random numbers: samples are determined by a seed.

pub mod audit;
pub mod cluster;
pub mod conjunctive_rule;
pub mod curve;
mod decimal;
mod document_halves;
pub mod document_set;
pub mod halves;
pub mod interval;
pub mod label;
pub mod nested;
pub mod page;
mod plot;
pub mod score;
pub mod stratified_labels;
pub mod stratified_sample;
pub mod sweep;
pub mod text_dedup_benchmark;

pub use audit::{
    AuditProgress, AuditReport, AuditedMethod, DocumentSampler, ProposalRule, RecallAudit,
    SampleTooLarge, audit_bands,
};
pub use conjunctive_rule::{ConjunctiveRule, JudgedScores};
pub use curve::{CountedScore, CurvePoint, ScoreCurve};
pub use document_halves::DocumentHalves;
pub use document_set::{
    DocumentIds, DocumentSet, DocumentSetError, EvaluatedDocument, SketchedDocument, SketchedSet,
};
pub use halves::{HalvedAccuracy, expected_accuracy_of_halves};
pub use interval::{CountEstimate, ShareEstimate};
pub use label::{JudgedPair, LabelError, LabelSet, PairLabel, judged};
pub use nested::ExpectedAccuracy;
pub use score::{
    HalvedCounts, ScoreCounts, ScoredPair, SetMeasure, for_each_scored_pair, score, score_counts,
    scored_pairs,
};
pub use stratified_labels::StratifiedLabels;
pub use stratified_sample::{PairStratum, SampledPair, StratifiedSample, StratifiedSampler};
pub use sweep::{
    AccuracyTarget, GroundTruth, Recommendation, SettingTally, SweepError, SweepLimits,
    SweepResult, SweepRow, SweepSetting, SweptDocument, SweptDocuments, for_each_tally, measure,
    sketches_of, sweep,
};

/// The example of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct EvalReadme;
