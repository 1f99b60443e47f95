//! Deduplication of documents that a caller hands over, and what was decided.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use arrow_array::builder::{Float64Builder, LargeStringBuilder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, BooleanArray, LargeStringArray, UInt64Array};
use lookalike::Scheme;
use lookalike_batch::{BatchError, DedupDecisions, DocumentDedup};
use lookalike_cli::program::{self, DocumentJob, ProgramJob};
use lookalike_corpus::OrderField;
use pyo3::prelude::*;

use crate::array::{ArrowArray, ArrowTable};
use crate::documents::{DocumentColumns, DocumentSource, SourceError};
use crate::error::CallError;
use crate::jobs::observed;
use crate::work::caught;

/// Decisions about every row.
#[pyclass(frozen, name = "Decisions", module = "lookalike._lookalike")]
pub(crate) struct RowDecisions {
    decided: DedupDecisions,
    pairs: Vec<PairOfRows>,
    /// Cluster of every document, those of `against` first.
    clusters: Vec<u32>,
    scheme: String,
    scheme_id: String,
    threshold: f64,
}

struct PairOfRows {
    a: u32,
    b: u32,
    similarity: f64,
}

/// No cluster.
const ALONE: u32 = u32::MAX;

/// Deduplicates documents with the options of `lookalike dedup`, and returns the decisions and warnings.
#[pyfunction]
#[pyo3(signature = (words, documents, against, columns, folder, progress=None))]
pub(crate) fn dedup_documents(
    py: Python<'_>,
    words: Vec<OsString>,
    documents: &Bound<'_, PyAny>,
    against: Option<&Bound<'_, PyAny>>,
    columns: DocumentColumns,
    folder: PathBuf,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(RowDecisions, Vec<String>)> {
    let ProgramJob { done, warnings } = program::document_job(&words);
    let DocumentJob {
        settings,
        limits,
        options,
        against: collection,
        into,
    } = done.map_err(CallError::from)?;
    let order = settings
        .keep
        .field_rule()
        .map(|rule| rule.to_string().parse::<OrderField>());
    let order = order.transpose().map_err(CallError::value)?.map(Arc::new);
    let documents = DocumentSource::of(documents, columns.clone(), order.clone())?;
    let against = against.map(|against| DocumentSource::of(against, columns, order));
    let against = against.transpose()?.map(DocumentSource::against);
    let (scheme, threshold) = (settings.scheme, settings.threshold);
    let decisions = observed(py, progress, |observer| {
        let job = DocumentDedup::new(&folder)
            .settings(settings)
            .limits(limits)
            .options(options)
            .observer(observer);
        let job = match &collection {
            Some(collection) => job.against_collection(collection),
            None => job,
        };
        let job = match &into {
            Some(writer) => job.into_collection(writer),
            None => job,
        };
        let decided = job
            .decide(against.into_iter().flatten(), documents)
            .map_err(given_back)?;
        RowDecisions::of(decided, &scheme, threshold)
    })?;
    Ok((decisions, warnings))
}

/// The error of the documents themselves, where it is one.
fn given_back(error: BatchError) -> CallError {
    if let BatchError::Given(source) = &error
        && let Some(SourceError(slot)) = source.downcast_ref::<SourceError>()
    {
        let taken = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(error) = taken {
            return error;
        }
    }
    error.into()
}

impl RowDecisions {
    fn of(decided: DedupDecisions, scheme: &Scheme, threshold: f64) -> Result<Self, CallError> {
        let mut pairs = Vec::new();
        decided
            .take_pairs(|pair| {
                pairs.push(PairOfRows {
                    a: pair.a,
                    b: pair.b,
                    similarity: pair.similarity,
                });
                Ok(())
            })
            .map_err(|error| CallError::Failed(error.to_string()))?;
        let mut clusters = vec![ALONE; decided.len()];
        for (number, cluster) in (0..).zip(decided.clusters()) {
            for &document in [cluster.survivor].iter().chain(cluster.members) {
                clusters[document as usize] = number;
            }
        }
        Ok(Self {
            decided,
            pairs,
            clusters,
            scheme: scheme.to_string(),
            scheme_id: scheme.id().to_string(),
            threshold,
        })
    }

    /// The documents that were decided on, without those that they were compared with.
    fn rows(&self) -> std::ops::Range<u32> {
        self.decided.against() as u32..self.decided.len() as u32
    }

    fn ids(&self, documents: impl Iterator<Item = u32>) -> ArrayRef {
        let ids = documents.map(|document| Some(self.decided.id(document)));
        Arc::new(ids.collect::<LargeStringArray>())
    }
}

#[pymethods]
impl RowDecisions {
    /// True for rows that are kept.
    #[getter]
    fn mask(&self) -> ArrowArray {
        let decisions = &self.decided.decisions()[self.decided.against()..];
        let kept = decisions
            .iter()
            .map(|decision| Some(decision.survivor().is_none()));
        ArrowArray(Arc::new(kept.collect::<BooleanArray>()))
    }

    /// Ids of all rows.
    #[getter(ids)]
    fn row_ids(&self) -> ArrowArray {
        ArrowArray(self.ids(self.rows()))
    }

    /// Each removed document with its survivor, cluster by cluster.
    #[getter(clusters)]
    fn cluster_table(&self) -> PyResult<ArrowTable> {
        caught(|| {
            let members = || {
                self.decided.clusters().flat_map(|cluster| {
                    let survivor = cluster.survivor;
                    cluster
                        .members
                        .iter()
                        .map(move |&member| (survivor, member))
                })
            };
            let (mut similarities, mut reasons) = (Float64Builder::new(), StringBuilder::new());
            for (_, member) in members() {
                let decision = self.decided.decisions()[member as usize];
                similarities.append_value(decision.similarity());
                reasons.append_option(decision.reason());
            }
            ArrowTable::of(vec![
                (
                    "survivor",
                    self.ids(members().map(|(survivor, _)| survivor)),
                ),
                ("id", self.ids(members().map(|(_, member)| member))),
                ("similarity", Arc::new(similarities.finish())),
                ("reason", Arc::new(reasons.finish())),
            ])
        })
    }

    /// Pairs of similar documents.
    #[getter(pairs)]
    fn pair_table(&self) -> PyResult<ArrowTable> {
        caught(|| {
            let similarities = self.pairs.iter().map(|pair| Some(pair.similarity));
            ArrowTable::of(vec![
                ("a", self.ids(self.pairs.iter().map(|pair| pair.a))),
                ("b", self.ids(self.pairs.iter().map(|pair| pair.b))),
                (
                    "similarity",
                    Arc::new(similarities.collect::<arrow_array::Float64Array>()),
                ),
            ])
        })
    }

    /// Columns that say of every row what became of it.
    #[getter]
    fn annotations(&self) -> PyResult<ArrowTable> {
        caught(|| {
            let mut sizes = vec![0_u64; self.decided.clusters().len()];
            for &cluster in self.clusters.iter().filter(|&&cluster| cluster != ALONE) {
                sizes[cluster as usize] += 1;
            }
            let (mut clusters, mut of_size) = (UInt64Builder::new(), UInt64Builder::new());
            let (mut survivors, mut reasons) = (LargeStringBuilder::new(), StringBuilder::new());
            let mut similarities = Float64Builder::new();
            for row in self.rows() {
                let cluster = Some(self.clusters[row as usize]).filter(|&cluster| cluster != ALONE);
                clusters.append_option(cluster.map(u64::from));
                of_size.append_value(cluster.map_or(1, |cluster| sizes[cluster as usize]));
                let decision = self.decided.decisions()[row as usize];
                let survivor = decision.survivor();
                survivors.append_value(self.decided.id(survivor.unwrap_or(row)));
                similarities.append_option(survivor.map(|_| decision.similarity()));
                reasons.append_option(decision.reason());
            }
            let survivors: ArrayRef = Arc::new(survivors.finish());
            let decisions = &self.decided.decisions()[self.decided.against()..];
            let is_duplicate = decisions
                .iter()
                .map(|decision| Some(decision.survivor().is_some()));
            ArrowTable::of(vec![
                ("cluster_id", Arc::new(clusters.finish())),
                ("cluster_size", Arc::new(of_size.finish())),
                ("survivor_id", survivors.clone()),
                ("similarity", Arc::new(similarities.finish())),
                ("reason", Arc::new(reasons.finish())),
                ("representative_id", survivors),
                (
                    "is_duplicate",
                    Arc::new(is_duplicate.collect::<BooleanArray>()),
                ),
            ])
        })
    }

    /// Rows of the largest clusters, the survivor first; none for documents that were only compared with.
    fn largest_clusters(&self, most: usize) -> Vec<Vec<Option<u32>>> {
        let first = self.decided.against() as u32;
        let row = |document: u32| document.checked_sub(first);
        let mut clusters: Vec<_> = self.decided.clusters().collect();
        clusters.sort_by_key(|cluster| std::cmp::Reverse(cluster.members.len()));
        let rows = clusters.iter().take(most).map(|cluster| {
            let all = [cluster.survivor]
                .into_iter()
                .chain(cluster.members.iter().copied());
            all.map(row).collect()
        });
        rows.collect()
    }

    /// Rows that are kept.
    #[getter]
    fn kept_rows(&self) -> ArrowArray {
        let first = self.decided.against() as u32;
        let kept = self
            .rows()
            .filter(|&row| self.decided.decisions()[row as usize].survivor().is_none());
        let kept = kept.map(|row| Some(u64::from(row - first)));
        ArrowArray(Arc::new(kept.collect::<UInt64Array>()))
    }

    /// Counts of what was read and decided, as JSON.
    #[getter]
    fn counts(&self) -> PyResult<String> {
        let both = (self.decided.counts(), self.decided.decision_counts());
        Ok(serde_json::to_string(&both).map_err(CallError::value)?)
    }

    /// Text of the scheme.
    #[getter]
    fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Least resemblance of near-duplicates.
    #[getter]
    fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Id of the scheme.
    #[getter]
    fn scheme_id(&self) -> &str {
        &self.scheme_id
    }
}
