//! Operations on documents: on one, or on a batch at once.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;
use lookalike_store::{
    CollectionSettings, MAX_ID_BYTES, QueryResult, SketchForm, StoredDocument, UnixMillis, WriteOp,
    WriteOutcome,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use super::collection_request::{CollectionRequest, CollectionTask, NoOptions, RequestCost};
use crate::content::RequestContent;
use crate::operation::ApiOperation;
use crate::problem::ProblemDetails;
use crate::request::{
    CheckAndInsertOptions, ContentItem, DocumentId, ExpiringDocument, GetOptions, HexBits,
    InsertOptions, ItemResponse, ItemsShape, MAX_METADATA_BYTES, NeighbourOptions, NewDocument,
    QueryOptions, RequestItems, ScopeOptions, packed,
};
use crate::response::with_permit;
use crate::sketch_cache::{QuerySketch, SketchCache};
use crate::verdict::{QueryResponse, ScoreRule, VerdictResponse, metadata, shown_fingerprint};
use crate::verify::verify;
use crate::word_diff;
use crate::worker_pool::{WorkLimit, run_inline};

/// Memory in bytes that a neighbour may take in an answer: its id and metadata, both as stored and as JSON.
const NEIGHBOUR: usize = 2 * (MAX_ID_BYTES + MAX_METADATA_BYTES);

/// The answer to an insert.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "InsertAnswer")]
pub(crate) struct InsertResponse {
    /// True if a document with this id existed.
    replaced: bool,
    /// Fingerprint of the document; `null` if its text has no features. Left out for other texts if the collection holds other sketches.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    fingerprint: Option<Option<HexBits>>,
}

/// The answer to a check-and-insert.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CheckAndInsertAnswer")]
pub(crate) struct CheckAndInsertResponse {
    #[serde(flatten)]
    report: QueryResponse,
    /// True if the document was inserted.
    inserted: bool,
    /// True if a document with this id existed.
    known: bool,
}

/// The answer to an expire.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ExpireAnswer")]
pub(crate) struct ExpireResponse {
    /// True if the document existed.
    existed: bool,
}

/// The answer to a delete.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DeleteAnswer")]
pub(crate) struct DeleteResponse {
    /// True if the document existed.
    existed: bool,
}

/// A document as it is kept.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "StoredDocument")]
pub(crate) struct DocumentResponse {
    id: String,
    /// Fingerprint of the document; `null` if its text has no features. Left out for other texts if the collection holds other sketches.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    fingerprint: Option<Option<HexBits>>,
    /// Time of expiry in milliseconds since 1970; `null` means never.
    expires_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    metadata: Option<Box<RawValue>>,
    /// Text of the document, if requested and kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl DocumentResponse {
    fn new(document: &StoredDocument, form: SketchForm, with_text: bool) -> Self {
        Self {
            id: document.id.clone(),
            fingerprint: shown_fingerprint(document.sketch(form).as_ref()),
            expires_ms: document.expires.map(|UnixMillis(end)| end),
            metadata: metadata(&document.metadata),
            // The other texts of a batch are not in memory at the same time.
            text: document.text.as_ref().filter(|_| with_text).cloned(),
        }
    }
}

/// A document, or `null` if there is none.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(rename = "FoundDocument")]
pub(crate) struct GetResponse(Option<DocumentResponse>);

impl ItemResponse for InsertResponse {
    fn packed(&self) -> u8 {
        packed::byte(None, self.replaced)
    }
}

impl ItemResponse for CheckAndInsertResponse {
    fn packed(&self) -> u8 {
        packed::byte(self.report.verdict.distance, self.inserted)
    }
}

impl ItemResponse for DeleteResponse {
    fn packed(&self) -> u8 {
        packed::byte(None, self.existed)
    }
}

impl ItemResponse for ExpireResponse {
    fn packed(&self) -> u8 {
        packed::byte(None, self.existed)
    }
}

impl ItemResponse for GetResponse {
    fn packed(&self) -> u8 {
        packed::byte(None, self.0.is_some())
    }
}

/// Handles `POST /v1/collections/NAME/check`: returns only verdicts, all as of the same moment.
pub(crate) async fn check(
    request: CollectionRequest<ScopeOptions>,
) -> Result<Response, ProblemDetails> {
    let scope = request.options.scope()?;
    let work = move |mut task: CollectionTask<'_>| {
        let scope = scope.of(&task.collection)?;
        let items = task.contents::<ContentItem>()?;
        let keys = items.try_map(|probe| Ok(task.sketch(&probe.content()?, false)?.key));
        let (keys, shape) = keys?.into_parts();
        // One search for the whole batch, so that memory accesses of many fingerprints overlap.
        let verdicts = task.collection.check_many(&keys, scope, task.time.now)?;
        let rule = ScoreRule::of(&task.settings);
        let judged = verdicts.into_iter().zip(&keys);
        let judged = judged.map(|(verdict, key)| VerdictResponse::new(verdict, key, rule));
        let judged: Vec<VerdictResponse> = judged.collect();
        task.app
            .metrics
            .documents(ApiOperation::Check, judged.len());
        let given = judged.iter().map(|judged| judged.verdict);
        task.app.metrics.verdicts(given);
        Ok(shape.write(&judged))
    };
    let cost = RequestCost {
        reads_texts: true,
        ..RequestCost::QUICK
    };
    request.answer(cost, work).await
}

/// Handles `POST /v1/collections/NAME/query`: returns verdicts with neighbours.
pub(crate) async fn query(
    request: CollectionRequest<QueryOptions>,
) -> Result<Response, ProblemDetails> {
    let (scope, neighbours) = (request.options.scope()?, request.options.neighbours()?);
    let work = move |mut task: CollectionTask<'_>| {
        let scope = scope.of(&task.collection)?;
        let items = task.contents::<ContentItem>()?;
        let reports = items.try_map_placed(|probe, place| {
            // Not placed: running out of time concerns the whole request, not the item at which it was noticed.
            task.limit.check()?;
            let report = probe
                .content()
                .and_then(|content| task.sketch(&content, neighbours.verifies(&task.settings)))
                .and_then(|sketch| {
                    let (now, page) = (task.time.now, neighbours.page);
                    let found = task
                        .collection
                        .query(sketch.key.clone(), scope, now, page)?;
                    report(task.cache, &task.settings, found, &sketch, neighbours)
                });
            report.map_err(|problem| problem.at(place))
        });
        let (reports, shape) = reports?.into_parts();
        task.app
            .metrics
            .documents(ApiOperation::Query, reports.len());
        task.app
            .metrics
            .verdicts(reports.iter().map(|report| report.verdict.verdict));
        Ok(shape.write(&reports))
    };
    request.answer(neighbours_cost(neighbours), work).await
}

/// Handles `POST /v1/collections/NAME/insert`: inserts documents, each replacing any with the same id.
pub(crate) async fn insert(
    request: CollectionRequest<InsertOptions>,
) -> Result<Response, ProblemDetails> {
    let options = request.options.checked()?;
    let writes = move |task: &mut CollectionTask<'_>| {
        // An insert searches for nothing: this refuses a scheme or radius that the collection does not have.
        options.scope.radius_in(&task.collection)?;
        let documents = task.documents(None, options.time_to_live)?;
        documents.try_map(|(document, sketch)| {
            let fingerprint = shown_fingerprint(sketch.key.sketch.as_ref());
            Ok((WriteOp::Insert(document), fingerprint))
        })
    };
    let answer = |outcome, fingerprint| InsertResponse {
        replaced: matches!(outcome, WriteOutcome::Inserted { replaced: true }),
        fingerprint,
    };
    write_each(request, ApiOperation::Insert, writes, answer).await
}

/// Handles `POST /v1/collections/NAME/check-and-insert`: returns the verdict and inserts in one atomic step.
pub(crate) async fn check_and_insert(
    request: CollectionRequest<CheckAndInsertOptions>,
) -> Result<Response, ProblemDetails> {
    let (scope, neighbours) = (request.options.scope()?, request.options.neighbours()?);
    let (insert, app) = (request.options.insert(), request.app.clone());
    let work = move |mut task: CollectionTask<'_>| {
        let scope = scope.of(&task.collection)?;
        let (documents, shape) = task.documents(Some(neighbours), None)?.into_parts();
        let (documents, owns): (Vec<_>, Vec<_>) = documents.into_iter().unzip();
        // The compact answer has no neighbours, so none need be read.
        let limit = if shape == ItemsShape::Packed {
            0
        } else {
            neighbours.page.limit
        };
        let writes = documents
            .into_iter()
            .map(|document| WriteOp::CheckAndInsert {
                document,
                scope,
                insert,
                limit,
            });
        let submitted = task.submit(writes.collect())?;
        Ok((submitted, owns, shape, task.collection))
    };
    // Documents that are found are read by a worker, once the writes are done.
    let cost = RequestCost {
        quick: true,
        ..neighbours_cost(neighbours)
    };
    let ((submitted, owns, shape, collection), permit) = request.on_worker(cost, work).await?;
    let settings = collection.settings();
    // The writer thread answers through a channel and never waits for this task: otherwise one slow client would block all writes.
    let written = submitted.wait().await?;
    let reads = written.shows_neighbours();
    let verifies = neighbours.verifies(&settings) && reads;
    let on_worker = Arc::clone(&app);
    let done = move |cache: &mut SketchCache, limit: &WorkLimit<'_>| {
        if verifies {
            cache.set_scheme_state(on_worker.scheme_states.of(&collection)?);
        }
        let mut neighbours = neighbours;
        // The documents are written, so their verdicts are told however long it takes to read their neighbours, and to compare them.
        let outcomes = written.outcomes_while(|| limit.check().is_ok())?;
        let outcomes = outcomes.into_iter().zip(&owns);
        let answers = outcomes.filter_map(|(outcome, sketch)| match outcome {
            WriteOutcome::Checked {
                answer,
                inserted,
                known,
            } => {
                if verifies && limit.check().is_err() {
                    neighbours = neighbours.unverified();
                }
                let report = report(cache, &settings, answer, sketch, neighbours);
                Some(report.map(|report| CheckAndInsertResponse {
                    report,
                    inserted,
                    known,
                }))
            }
            // The store answers each write with its own kind of outcome.
            _ => None,
        });
        answers.collect::<Result<Vec<CheckAndInsertResponse>, ProblemDetails>>()
    };
    let answers = if reads {
        // On a worker, because this reads documents, which takes time.
        app.workers.run_when_free(done).await
    } else {
        run_inline(done)
    };
    let answers = answers.map_err(ProblemDetails::of_written)?;
    app.metrics
        .documents(ApiOperation::CheckAndInsert, answers.len());
    let given = answers.iter().map(|answer| answer.report.verdict.verdict);
    app.metrics.verdicts(given);
    Ok(with_permit(StatusCode::OK, shape.write(&answers), permit))
}

/// Handles `POST /v1/collections/NAME/delete`.
pub(crate) async fn delete(
    request: CollectionRequest<NoOptions>,
) -> Result<Response, ProblemDetails> {
    let writes =
        |task: &mut CollectionTask<'_>| task.ids()?.try_map(|id| Ok((WriteOp::Delete(id), ())));
    let answer = |outcome, ()| DeleteResponse {
        existed: matches!(outcome, WriteOutcome::Deleted { existed: true }),
    };
    write_each(request, ApiOperation::Delete, writes, answer).await
}

/// Handles `POST /v1/collections/NAME/expire`: changes the expiry of documents.
pub(crate) async fn expire(
    request: CollectionRequest<NoOptions>,
) -> Result<Response, ProblemDetails> {
    let writes = |task: &mut CollectionTask<'_>| {
        let (items, from) = (task.items::<ExpiringDocument>()?, task.time.lives_from);
        items.try_map(|item| {
            let (id, expires) = item.checked(from)?;
            Ok((WriteOp::Expire { id, expires }, ()))
        })
    };
    let answer = |outcome, ()| ExpireResponse {
        existed: matches!(outcome, WriteOutcome::Expiring { existed: true }),
    };
    write_each(request, ApiOperation::Expire, writes, answer).await
}

/// Writes something of each item, and answers by what came of it, and by what was noted of the item.
pub(super) async fn write_each<O, N: Send + 'static, A: ItemResponse>(
    request: CollectionRequest<O>,
    operation: ApiOperation,
    writes: impl FnOnce(&mut CollectionTask<'_>) -> Result<RequestItems<(WriteOp, N)>, ProblemDetails>
    + Send
    + 'static,
    answer: fn(WriteOutcome, N) -> A,
) -> Result<Response, ProblemDetails> {
    let app = request.app.clone();
    let work = move |mut task: CollectionTask<'_>| {
        let (writes, shape) = writes(&mut task)?.into_parts();
        let (writes, notes): (Vec<_>, Vec<_>) = writes.into_iter().unzip();
        Ok((task.submit(writes)?, notes, shape))
    };
    let ((submitted, notes, shape), permit) = request.on_worker(RequestCost::QUICK, work).await?;
    let outcomes = submitted.wait().await?.outcomes()?.into_iter().zip(notes);
    let answers = outcomes.map(|(outcome, note)| answer(outcome, note));
    let answers: Vec<A> = answers.collect();
    app.metrics.documents(operation, answers.len());
    Ok(with_permit(StatusCode::OK, shape.write(&answers), permit))
}

/// Handles `POST /v1/collections/NAME/get`: returns documents by id; in a batch `null` for each that does not exist.
pub(crate) async fn get(
    request: CollectionRequest<GetOptions>,
) -> Result<Response, ProblemDetails> {
    let with_text = request.options.text;
    let cost = RequestCost {
        // The text as stored, and as JSON.
        fixed: usize::from(with_text) * 4 * request.app.limits.body_bytes,
        item: NEIGHBOUR,
        ..RequestCost::default()
    };
    let work = move |mut task: CollectionTask<'_>| {
        let (ids, shape) = task.ids()?.into_parts();
        if with_text && shape != ItemsShape::One {
            return Err(ProblemDetails::invalid(
                "texts are shown of one document at a time",
                "leave out text=true, or ask for each document",
            ));
        }
        let form = task.settings.sketch_form();
        let found = ids.iter().map(|id| {
            // Documents may be large, and each is read as a whole.
            task.limit.check()?;
            let found = task.collection.get(id, task.time.now)?;
            let shown = found.map(|document| DocumentResponse::new(&document, form, with_text));
            Ok(GetResponse(shown))
        });
        let found = found.collect::<Result<Vec<_>, ProblemDetails>>()?;
        // In a batch, one missing document must not fail the others, so it is `null` there.
        if shape == ItemsShape::One && found.iter().all(|found| found.0.is_none()) {
            return Err(ProblemDetails::new(
                StatusCode::NOT_FOUND,
                "no-document",
                "the collection has no document with this id",
                "it was never inserted, was deleted, or has expired",
            ));
        }
        task.app.metrics.documents(ApiOperation::Get, found.len());
        Ok(shape.write(&found))
    };
    request.answer(cost, work).await
}

/// Returns the memory for the neighbours of all items.
fn neighbours_cost(neighbours: NeighbourOptions) -> RequestCost {
    let each = NEIGHBOUR + usize::from(neighbours.diff) * word_diff::MAX_DIFF_BYTES;
    RequestCost {
        item: neighbours.page.limit * each,
        ..RequestCost::default()
    }
}

/// Creates the report on an item, with its neighbours verified if that was requested.
fn report(
    cache: &mut SketchCache,
    settings: &CollectionSettings,
    found: QueryResult,
    sketch: &QuerySketch,
    neighbours: NeighbourOptions,
) -> Result<QueryResponse, ProblemDetails> {
    let verified = neighbours.verifies(settings).then(|| {
        let near = found.neighbours.iter();
        near.map(|near| verify(cache, settings, sketch, near, neighbours.diff))
            .collect::<Result<Vec<_>, ProblemDetails>>()
    });
    Ok(QueryResponse::new(
        found,
        &sketch.key,
        ScoreRule::of(settings),
        verified.transpose()?,
    ))
}

impl CollectionTask<'_> {
    /// Sketches a content to search for; if `compares`, with everything needed to compare it with neighbours.
    fn sketch(
        &mut self,
        content: &RequestContent,
        compares: bool,
    ) -> Result<QuerySketch, ProblemDetails> {
        let mut sketch = self.cache.query_sketch(&self.settings, content, compares)?;
        // A content that is only searched for has no id, so its site comes from its URL.
        sketch.key.traits.category = content.place.category(&self.settings.pairs, None);
        Ok(sketch)
    }

    /// Returns the documents of the body, and what is needed to compare them with neighbours.
    fn documents(
        &mut self,
        neighbours: Option<NeighbourOptions>,
        time_to_live: Option<Duration>,
    ) -> Result<RequestItems<(StoredDocument, QuerySketch)>, ProblemDetails> {
        let items = self.contents::<NewDocument>()?;
        let compares = neighbours.is_some_and(|neighbours| neighbours.verifies(&self.settings));
        items.try_map(|entry| {
            let (content, kept) = entry.parts(self.time.lives_from, time_to_live)?;
            let (document, sketch) = self.cache.document(&self.settings, &content, compares)?;
            let mut document = StoredDocument {
                id: kept.id,
                expires: kept.expires,
                metadata: kept.metadata,
                ..document
            };
            let pairs = &self.settings.pairs;
            document.traits.category = content.place.category(pairs, Some(&document.id));
            Ok((document, sketch))
        })
    }

    fn ids(&mut self) -> Result<RequestItems<String>, ProblemDetails> {
        self.items::<DocumentId>()?.try_map(DocumentId::checked)
    }
}
