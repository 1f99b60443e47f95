//! Deduplication of documents from a caller, and its decisions.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, LargeStringBuilder, StringBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, BooleanArray, LargeStringArray, UInt64Array};
use lookalike_batch::{
    BatchError, DedupCluster, DedupDecisions, DocumentDecision, DocumentDedup, SavedDecisions,
};
use lookalike_cli::program::{self, DocumentJob, ProgramJob};
use pyo3::prelude::*;

use crate::array::{ArrowArray, ArrowTable};
use crate::documents::{CallerRows, DocumentSource, SourceError};
use crate::error::{CallError, warnings_for_python};
use crate::jobs::{RenderedExplanation, observed, observed_to_end, rendered_explanation};
use crate::work::{catch_panic, locked, raised_late};

/// Decisions about every document, without what they were made of.
#[pyclass(frozen, name = "Decisions", module = "lookalike._lookalike")]
pub(crate) struct DocumentDecisions {
    /// Ids of all documents. Those that others were only compared with come first.
    ids: LargeStringArray,
    against: usize,
    /// Number of documents that are in a collection, which come before all others.
    in_collection: usize,
    outcomes: Vec<DocumentDecision>,
    clusters: ClusterLists,
}

/// Clusters of more than one document.
#[derive(Default)]
struct ClusterLists {
    survivors: Vec<u32>,
    /// Ends of each cluster's range in `members`.
    ends: Vec<usize>,
    members: Vec<u32>,
}

/// Result of a job over rows: the decisions; the pairs; a JSON array with counts of what was read and decided, the scheme and the
/// threshold; the warnings; and an exception that came too late to keep the documents out of a collection.
type RowsResult = (
    DocumentDecisions,
    ArrowTable,
    String,
    Vec<String>,
    Option<PyErr>,
);

/// Deduplicates documents with the options of `lookalike dedup`.
#[pyfunction]
#[pyo3(signature = (words, documents, against, folder, progress=None))]
pub(crate) fn dedup_documents(
    py: Python<'_>,
    words: Vec<OsString>,
    documents: CallerRows,
    against: Option<CallerRows>,
    folder: PathBuf,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<RowsResult> {
    let ProgramJob { done, warnings } = program::document_job(&words);
    let DocumentJob {
        settings,
        limits,
        options,
        against: collection,
        into,
    } = done.map_err(CallError::from)?;
    let order = settings.keep.order_field().map_err(CallError::value)?;
    let order = order.map(Arc::new);
    // This must be done on the calling thread, which has the interpreter; afterwards documents can be read on any thread.
    let documents = DocumentSource::of(py, documents, order.clone())?;
    let against = against.map(|against| DocumentSource::of(py, against, order));
    let against = against.transpose()?.map(DocumentSource::against);
    let (scheme, threshold) = (settings.scheme.to_string(), settings.threshold);
    let done = observed_to_end(py, progress, |observer| {
        let job = DocumentDedup::new(&folder)
            .settings(settings)
            .limits(limits)
            .options(options)
            .against_collection(&collection)
            .into_collection(&into)
            .observer(observer);
        let result = |decided: &DedupDecisions| -> Result<_, CallError> {
            let (read, kept) = (decided.counts(), decided.decision_counts());
            let summary = serde_json::to_string(&(read, kept, &scheme, threshold));
            let summary = summary.map_err(CallError::value)?;
            let pairs = pair_table(decided)?;
            Ok((DocumentDecisions::of_rows(decided), pairs, summary))
        };
        // Before the documents are added to a collection, which takes seconds for many of them.
        let decided = job.try_decide_then(against.into_iter().flatten(), documents, |decided| {
            result(&decided).map_err(|error| BatchError::Given(Box::new(SourceError::from(error))))
        });
        decided.map_err(original_error)
    });
    let ((decisions, pairs, summary), raised) = done?;
    let raised = raised_late(raised, into.is_some())?;
    let warnings = warnings_for_python(warnings);
    Ok((decisions, pairs, summary, warnings, raised))
}

/// Returns the original error of the document source, if it caused the error of the job.
fn original_error(error: BatchError) -> CallError {
    if let BatchError::Given(source) = &error
        && let Some(SourceError(slot)) = source.downcast_ref::<SourceError>()
        && let Some(error) = locked(slot).take()
    {
        return error;
    }
    error.into()
}

/// Returns the pairs of similar documents, each with the smaller id first, in the order of both ids, and whether one of the two was only
/// compared with.
fn pair_table(decided: &DedupDecisions) -> Result<ArrowTable, CallError> {
    let mut pairs = Vec::new();
    let visited = decided.pairs(|pair| {
        pairs.push(pair);
        Ok(())
    });
    visited.map_err(|error| CallError::Failed(error.to_string()))?;
    // Documents that others are only compared with have the first numbers, whatever their ids; of two documents with the same id they come
    // first.
    for pair in &mut pairs {
        if (decided.id(pair.a), pair.a) > (decided.id(pair.b), pair.b) {
            std::mem::swap(&mut pair.a, &mut pair.b);
        }
    }
    pairs.sort_by_key(|pair| (decided.id(pair.a), decided.id(pair.b), pair.a, pair.b));
    let (mut a, mut b) = (LargeStringBuilder::new(), LargeStringBuilder::new());
    let (mut similarities, mut against) = (Float64Builder::new(), StringBuilder::new());
    let is_against = |document: u32| (document as usize) < decided.against();
    for pair in pairs {
        a.append_value(decided.id(pair.a));
        b.append_value(decided.id(pair.b));
        similarities.append_value(pair.similarity);
        against.append_option(match (is_against(pair.a), is_against(pair.b)) {
            (true, _) => Some("a"),
            (_, true) => Some("b"),
            _ => None,
        });
    }
    ArrowTable::of(vec![
        ("a", Arc::new(a.finish())),
        ("b", Arc::new(b.finish())),
        ("similarity", Arc::new(similarities.finish())),
        ("against", Arc::new(against.finish())),
    ])
}

/// A document of a job over rows to be explained.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ExplainedRow {
    documents: CallerRows,
    row: usize,
    id: String,
}

/// Explains two documents of a job over rows: see [`explain`](crate::jobs::explain).
#[pyfunction]
pub(crate) fn explain_documents(
    py: Python<'_>,
    words: Vec<OsString>,
    a: ExplainedRow,
    b: ExplainedRow,
) -> PyResult<RenderedExplanation> {
    let source_a = DocumentSource::of(py, a.documents, None)?;
    let source_b = DocumentSource::of(py, b.documents, None)?;
    observed(py, None, |observer| {
        let documents = [source_a.document(a.row)?, source_b.document(b.row)?];
        let names = [&*a.id, &*b.id];
        rendered_explanation(program::explain_given(&words, names, documents, observer))
    })
}

/// Reads the decisions that a job over files left at `path`, and the row number of each document in the results. These are concatenated as
/// follows: the kept and the removed records of all sources without tables of their own, then the kept and the removed rows of each other
/// source. `own_tables` tells which sources have tables of their own; `in_order` tells whether records are in the order of the input
/// instead of the order of ids.
#[pyfunction]
pub(crate) fn open_decisions(
    py: Python<'_>,
    path: PathBuf,
    in_order: bool,
    own_tables: Vec<bool>,
) -> PyResult<(DocumentDecisions, ArrowArray)> {
    Ok(py.detach(|| {
        let saved =
            SavedDecisions::open(&path).map_err(|error| CallError::of_path(&path, error))?;
        let rows = result_rows(&saved, in_order, &own_tables);
        let rows: UInt64Array = rows.into_iter().map(Some).collect();
        let decisions = DocumentDecisions::of_files(&saved);
        Ok::<_, CallError>((decisions, ArrowArray(Arc::new(rows))))
    })?)
}

fn result_rows(saved: &SavedDecisions, in_order: bool, own_tables: &[bool]) -> Vec<u64> {
    let against = saved.against();
    let outcomes: Vec<DocumentDecision> = saved.decisions().collect();
    let of_sources: Vec<_> = saved.source_documents().collect();
    // Sources of `--against` come first, and have no rows in the results.
    let new = &of_sources[of_sources.len() - own_tables.len()..];
    let mut has_own = vec![false; outcomes.len()];
    let mut groups: Vec<Vec<u32>> = Vec::new();
    for (documents, _) in new.iter().zip(own_tables).filter(|(_, own)| **own) {
        has_own[documents.start as usize..documents.end as usize].fill(true);
        groups.push(documents.clone().collect());
    }
    let is_shared = |document: &u32| *document as usize >= against && !has_own[*document as usize];
    let shared = match in_order {
        true => (0..outcomes.len() as u32).filter(is_shared).collect(),
        false => saved.by_id().iter().copied().filter(is_shared).collect(),
    };
    // The order in which results are concatenated: those that sources share come first.
    groups.insert(0, shared);
    let mut rows = vec![0; outcomes.len() - against];
    let mut next = 0;
    for group in groups {
        // Each group is a table of kept rows followed by one of removed rows.
        for is_kept in [true, false] {
            let outcome = |document: &&u32| outcomes[**document as usize];
            for &document in group
                .iter()
                .filter(|document| outcome(document).survivor().is_none() == is_kept)
            {
                rows[document as usize - against] = next;
                next += 1;
            }
        }
    }
    rows
}

impl<'a> FromIterator<DedupCluster<'a>> for ClusterLists {
    fn from_iter<C: IntoIterator<Item = DedupCluster<'a>>>(clusters: C) -> Self {
        let mut lists = Self::default();
        for cluster in clusters {
            lists.survivors.push(cluster.survivor);
            lists.members.extend_from_slice(cluster.members);
            lists.ends.push(lists.members.len());
        }
        lists
    }
}

impl ClusterLists {
    /// Returns the survivor and the other members of each cluster.
    fn iter(&self) -> impl Iterator<Item = (u32, &[u32])> {
        let starts = std::iter::once(&0).chain(&self.ends);
        let members = starts.zip(&self.ends);
        let members = members.map(|(&start, &end)| &self.members[start..end]);
        self.survivors.iter().copied().zip(members)
    }
}

impl DocumentDecisions {
    fn of_rows(decided: &DedupDecisions) -> Self {
        Self {
            ids: id_column(decided.len(), |document| decided.id(document)),
            against: decided.against(),
            in_collection: 0,
            outcomes: decided.decisions().collect(),
            clusters: decided.clusters().collect(),
        }
    }

    fn of_files(saved: &SavedDecisions) -> Self {
        Self {
            ids: id_column(saved.decisions().len(), |document| saved.id(document)),
            against: saved.against(),
            in_collection: saved
                .source_documents()
                .next()
                .map_or(0, |documents| documents.start as usize),
            outcomes: saved.decisions().collect(),
            clusters: saved.clusters().collect(),
        }
    }

    /// Returns the decisions on the job's own documents, without those that they were compared with.
    fn own(&self) -> &[DocumentDecision] {
        &self.outcomes[self.against..]
    }

    fn id(&self, document: u32) -> &str {
        self.ids.value(document as usize)
    }

    fn ids_of(&self, documents: impl Iterator<Item = u32>) -> ArrayRef {
        let ids = documents.map(|document| Some(self.id(document)));
        Arc::new(ids.collect::<LargeStringArray>())
    }
}

fn id_column<'a>(count: usize, id: impl Fn(u32) -> &'a str) -> LargeStringArray {
    (0..count as u32)
        .map(|document| Some(id(document)))
        .collect()
}

#[pymethods]
impl DocumentDecisions {
    /// Returns true for each document that is kept.
    #[getter]
    fn mask(&self) -> ArrowArray {
        let kept = self.own().iter();
        let kept = kept.map(|decision| Some(decision.survivor().is_none()));
        ArrowArray(Arc::new(kept.collect::<BooleanArray>()))
    }

    /// Returns the ids of all documents.
    #[getter(ids)]
    fn own_ids(&self) -> ArrowArray {
        ArrowArray(Arc::new(self.ids.slice(self.against, self.own().len())))
    }

    /// Returns the number of documents that others were only compared with.
    #[getter]
    fn against(&self) -> usize {
        self.against
    }

    /// Returns the number of those that a job over files took from a collection without reading them.
    #[getter]
    fn in_collection(&self) -> usize {
        self.in_collection
    }

    /// Returns the numbers of two documents with these ids. Documents that others were only compared with are counted first; `against` says which of
    /// the two is one of them, `a` or `b`. Otherwise, if such a document has the id of another, the other one is meant, unless the first is the
    /// survivor of the pair, or both ids are the same. Also returns true if that was a guess.
    #[pyo3(signature = (a, b, against=None))]
    fn pair(&self, a: &str, b: &str, against: Option<&str>) -> ([Option<usize>; 2], bool) {
        let find = |mut range: std::ops::Range<usize>, id: &str| {
            range.find(|&document| self.ids.value(document) == id)
        };
        let earlier = |id: &str| find(0..self.against, id);
        let number = |id: &str| find(self.against..self.outcomes.len(), id).or_else(|| earlier(id));
        let survivor = |document: Option<usize>, id: &str| {
            let survivor = self.outcomes[document?].survivor()?;
            (self.id(survivor) == id).then_some(survivor as usize)
        };
        let (first, second) = (number(a), number(b));
        match against {
            Some("a") => return ([earlier(a), second], false),
            Some(_) => return ([first, earlier(b)], false),
            None => {}
        }
        // The id of a document that was only compared with, while another with that id was taken.
        let is_guess =
            |number: Option<usize>, id| earlier(id).is_some_and(|known| Some(known) != number);
        match (survivor(second, a), survivor(first, b)) {
            (first @ Some(_), _) => ([first, second], false),
            (None, second @ Some(_)) => ([first, second], false),
            (None, None) if a == b => ([earlier(a).or(first), second], false),
            (None, None) => ([first, second], is_guess(first, a) || is_guess(second, b)),
        }
    }

    /// Returns each removed document with its survivor, cluster by cluster.
    #[getter(clusters)]
    fn cluster_table(&self) -> PyResult<ArrowTable> {
        catch_panic(|| {
            let members = || {
                let clusters = self.clusters.iter();
                clusters.flat_map(|(survivor, members)| {
                    members.iter().map(move |&member| (survivor, member))
                })
            };
            let (mut similarities, mut reasons) = (Float64Builder::new(), StringBuilder::new());
            let mut against = BooleanBuilder::new();
            for (survivor, member) in members() {
                let decision = self.outcomes[member as usize];
                similarities.append_value(decision.similarity());
                reasons.append_option(decision.reason());
                against.append_option(((survivor as usize) < self.against).then_some(true));
            }
            ArrowTable::of(vec![
                (
                    "survivor",
                    self.ids_of(members().map(|(survivor, _)| survivor)),
                ),
                ("id", self.ids_of(members().map(|(_, member)| member))),
                ("similarity", Arc::new(similarities.finish())),
                ("reason", Arc::new(reasons.finish())),
                ("against", Arc::new(against.finish())),
            ])
        })
    }

    /// Returns columns with the decision on each document.
    #[getter]
    fn annotations(&self) -> PyResult<ArrowTable> {
        catch_panic(|| {
            let mut own_cluster = vec![None; self.outcomes.len()];
            for (number, (survivor, members)) in (1_u64..).zip(self.clusters.iter()) {
                for document in [survivor].into_iter().chain(members.iter().copied()) {
                    own_cluster[document as usize] = Some((number, members.len() as u64 + 1));
                }
            }
            let (mut clusters, mut sizes) = (UInt64Builder::new(), UInt64Builder::new());
            let (mut survivors, mut reasons) = (LargeStringBuilder::new(), StringBuilder::new());
            let mut similarities = Float64Builder::new();
            for (document, decision) in (0..).zip(&self.outcomes).skip(self.against) {
                let cluster = own_cluster[document as usize];
                clusters.append_option(cluster.map(|(number, _)| number));
                sizes.append_value(cluster.map_or(1, |(_, size)| size));
                let survivor = decision.survivor();
                survivors.append_value(self.id(survivor.unwrap_or(document)));
                similarities.append_option(survivor.map(|_| decision.similarity()));
                reasons.append_option(decision.reason());
            }
            let survivors: ArrayRef = Arc::new(survivors.finish());
            let is_duplicate = self.own().iter();
            let is_duplicate = is_duplicate.map(|decision| Some(decision.survivor().is_some()));
            ArrowTable::of(vec![
                ("cluster_id", Arc::new(clusters.finish())),
                ("cluster_size", Arc::new(sizes.finish())),
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

    /// Returns the rows of the largest clusters, the survivor first; None for documents that were only compared with.
    fn largest_clusters(&self, most: usize) -> Vec<Vec<Option<u32>>> {
        let first = self.against as u32;
        // Documents that were only compared with are not rows of the caller's data.
        let row = |document: u32| document.checked_sub(first);
        let mut clusters: Vec<_> = self.clusters.iter().collect();
        clusters.sort_by_key(|(_, members)| std::cmp::Reverse(members.len()));
        let rows = clusters.iter().take(most).map(|(survivor, members)| {
            let all = [*survivor].into_iter().chain(members.iter().copied());
            all.map(row).collect()
        });
        rows.collect()
    }
}
