//! Operations on documents: one, or a batch in one step.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use lookalike::Fingerprint;
use lookalike_store::{Collection, Document, Outcome, StoreError, Time, Verdict, Write};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::{Name, Options, held, name, options};
use crate::app::App;
use crate::judgement::{Judgement, Report, metadata};
use crate::memory::Share;
use crate::operation::Operation;
use crate::problem::Problem;
use crate::request::{
    Entry, Id, InsertOptions, Items, Kept, Probe, QueryOptions, Received, ScopeOptions, Shape,
    receive,
};
use crate::sketch::Bench;

/// Memory that a neighbour may take in an answer.
const NEIGHBOUR: usize = 1024;
/// Requests that wait to be written before more are refused.
const WAITING_WRITES: usize = 4096;

/// The answer to an insert.
#[derive(Serialize)]
struct Inserted {
    replaced: bool,
    fingerprint: Option<String>,
}

/// The answer to a check-and-insert.
#[derive(Serialize)]
struct Checked {
    #[serde(flatten)]
    report: Report,
    inserted: bool,
    known: bool,
}

/// The answer to a delete.
#[derive(Serialize)]
struct Deleted {
    existed: bool,
}

/// A document as it is kept.
#[derive(Serialize)]
struct Shown {
    id: String,
    fingerprint: Option<String>,
    /// Milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Box<RawValue>>,
}

/// `POST /v1/collections/NAME/check`: verdicts alone, all of one moment.
pub(crate) async fn check(
    State(app): State<Arc<App>>,
    path: Name,
    query: Options<ScopeOptions>,
    request: Request,
) -> Result<Response, Problem> {
    let (name, scope) = (name(path)?, options(query)?.scope()?);
    let Received { bytes, share } = receive(&app, request, 0).await?;
    let on_worker = Arc::clone(&app);
    let answer = app.workers.run(move |bench| {
        let app = on_worker;
        let collection = app.collection(&name)?;
        let radius = scope.radius_in(&collection)?;
        let items = Items::<Probe>::parse(&bytes, app.limits.batch)?;
        drop(bytes);
        let (codes, shape) = sketches(bench, &collection, items)?.into_parts();
        let known: Vec<Fingerprint> = codes.iter().flatten().copied().collect();
        let verdicts = collection.check_many(&known, radius, app.now())?;
        let mut verdicts = verdicts.into_iter();
        let judged = codes.into_iter().map(|code| match code {
            // What has no features resembles nothing.
            None => Judgement::new(Verdict::New, None),
            Some(code) => Judgement::new(verdicts.next().unwrap_or(Verdict::New), Some(code)),
        });
        let judged: Vec<Judgement> = judged.collect();
        app.metrics.documents(Operation::Check, judged.len());
        app.metrics.verdicts(judged.iter().map(Judgement::verdict));
        Ok(shape.json(judged))
    });
    Ok(held(answer.await?, share))
}

/// `POST /v1/collections/NAME/query`: verdicts with the neighbours.
pub(crate) async fn query(
    State(app): State<Arc<App>>,
    path: Name,
    query: Options<QueryOptions>,
    request: Request,
) -> Result<Response, Problem> {
    let (name, options) = (name(path)?, options(query)?);
    let (scope, limit) = (options.scope()?, options.limit()?);
    let (bytes, share) = receive_for_neighbours(&app, request, limit).await?;
    let on_worker = Arc::clone(&app);
    let answer = app.workers.run(move |bench| {
        let app = on_worker;
        let collection = app.collection(&name)?;
        let radius = scope.radius_in(&collection)?;
        let items = Items::<Probe>::parse(&bytes, app.limits.batch)?;
        drop(bytes);
        let (codes, shape) = sketches(bench, &collection, items)?.into_parts();
        let now = app.now();
        let reports = codes.into_iter().map(|code| match code {
            None => Ok(Report::nothing()),
            Some(code) => Ok(Report::new(
                collection.query(code, radius, now, limit)?,
                Some(code),
            )),
        });
        let reports = reports.collect::<Result<Vec<Report>, Problem>>()?;
        app.metrics.documents(Operation::Query, reports.len());
        app.metrics.verdicts(reports.iter().map(Report::verdict));
        Ok(shape.json(reports))
    });
    Ok(held(answer.await?, share))
}

/// `POST /v1/collections/NAME/insert`: documents, each in the place of any with its id.
pub(crate) async fn insert(
    State(app): State<Arc<App>>,
    path: Name,
    query: Options<ScopeOptions>,
    request: Request,
) -> Result<Response, Problem> {
    let (name, scope) = (name(path)?, options(query)?.scope()?);
    let Received { bytes, share } = receive(&app, request, 0).await?;
    let on_worker = Arc::clone(&app);
    let written = app.workers.run(move |bench| {
        let app = on_worker;
        let collection = app.collection(&name)?;
        scope.radius_in(&collection)?;
        let now = app.now();
        let items = Items::<Entry>::parse(&bytes, app.limits.batch)?;
        drop(bytes);
        let (documents, shape) = documents(bench, &collection, items, now)?.into_parts();
        let codes: Vec<_> = documents
            .iter()
            .map(|document| document.fingerprint)
            .collect();
        let writes = documents.into_iter().map(Write::Insert).collect();
        Ok(submit(&collection, writes, now, 0)?.of(codes, shape))
    });
    let (outcomes, codes, shape) = written.await?.wait().await?;
    let answers = outcomes
        .into_iter()
        .zip(codes)
        .map(|(outcome, code)| Inserted {
            replaced: matches!(outcome, Outcome::Inserted { replaced: true }),
            fingerprint: code.map(|code| code.to_string()),
        });
    let answers: Vec<Inserted> = answers.collect();
    app.metrics.documents(Operation::Insert, answers.len());
    Ok(held(shape.json(answers), share))
}

/// `POST /v1/collections/NAME/check-and-insert`: the verdict and the insert in one step.
pub(crate) async fn check_and_insert(
    State(app): State<Arc<App>>,
    path: Name,
    query: Options<InsertOptions>,
    request: Request,
) -> Result<Response, Problem> {
    let (name, options) = (name(path)?, options(query)?);
    let (scope, limit, insert) = (options.scope()?, options.limit()?, options.insert());
    let (bytes, share) = receive_for_neighbours(&app, request, limit).await?;
    let on_worker = Arc::clone(&app);
    let written = app.workers.run(move |bench| {
        let app = on_worker;
        let collection = app.collection(&name)?;
        let radius = scope.radius_in(&collection)?;
        let now = app.now();
        let items = Items::<Entry>::parse(&bytes, app.limits.batch)?;
        drop(bytes);
        let (documents, shape) = documents(bench, &collection, items, now)?.into_parts();
        let codes: Vec<_> = documents
            .iter()
            .map(|document| document.fingerprint)
            .collect();
        let writes = documents.into_iter().map(|document| Write::CheckAndInsert {
            document,
            radius,
            insert,
        });
        Ok(submit(&collection, writes.collect(), now, limit)?.of(codes, shape))
    });
    let (outcomes, codes, shape) = written.await?.wait().await?;
    let answers = outcomes
        .into_iter()
        .zip(codes)
        .filter_map(|(outcome, code)| match outcome {
            Outcome::Checked {
                answer,
                inserted,
                known,
            } => Some(Checked {
                report: Report::new(answer, code),
                inserted,
                known,
            }),
            // The store answers what it was asked.
            _ => None,
        });
    let answers: Vec<Checked> = answers.collect();
    app.metrics
        .documents(Operation::CheckAndInsert, answers.len());
    app.metrics
        .verdicts(answers.iter().map(|answer| answer.report.verdict()));
    Ok(held(shape.json(answers), share))
}

/// `POST /v1/collections/NAME/delete`.
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    path: Name,
    request: Request,
) -> Result<Response, Problem> {
    let name = name(path)?;
    let Received { bytes, share } = receive(&app, request, 0).await?;
    let on_worker = Arc::clone(&app);
    let written = app.workers.run(move |_| {
        let app = on_worker;
        let collection = app.collection(&name)?;
        let (ids, shape) = ids(&bytes, app.limits.batch)?.into_parts();
        let writes = ids.into_iter().map(Write::Delete).collect();
        Ok(submit(&collection, writes, app.now(), 0)?.of(Vec::new(), shape))
    });
    let (outcomes, _, shape) = written.await?.wait().await?;
    let answers = outcomes.into_iter().map(|outcome| Deleted {
        existed: matches!(outcome, Outcome::Deleted { existed: true }),
    });
    let answers: Vec<Deleted> = answers.collect();
    app.metrics.documents(Operation::Delete, answers.len());
    Ok(held(shape.json(answers), share))
}

/// `POST /v1/collections/NAME/get`: documents by id; in a batch `null` for those that are not there.
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    path: Name,
    request: Request,
) -> Result<Response, Problem> {
    let name = name(path)?;
    let Received { bytes, share } = receive(&app, request, 0).await?;
    let on_worker = Arc::clone(&app);
    let answer = app.workers.run(move |_| {
        let app = on_worker;
        let collection = app.collection(&name)?;
        let (ids, shape) = ids(&bytes, app.limits.batch)?.into_parts();
        let now = app.now();
        let found = ids.iter().map(|id| collection.get(id, now));
        let found = found.collect::<Result<Vec<_>, StoreError>>()?;
        if shape == Shape::One && found.iter().all(Option::is_none) {
            return Err(Problem::new(
                StatusCode::NOT_FOUND,
                "no-document",
                "the collection has no document with this id",
                "it was never inserted, was deleted, or has expired",
            ));
        }
        app.metrics.documents(Operation::Get, found.len());
        let shown = found.iter().map(|found| found.as_deref().map(Shown::of));
        Ok(shape.json(shown.collect()))
    });
    Ok(held(answer.await?, share))
}

impl Shown {
    fn of(document: &Document) -> Self {
        Self {
            id: document.id.clone(),
            fingerprint: document.fingerprint.map(|code| code.to_string()),
            expires_ms: document.expires.map(|Time(end)| end),
            metadata: metadata(&document.metadata),
        }
    }
}

/// Reads a body with memory for the neighbours of as many items as it may hold.
async fn receive_for_neighbours(
    app: &App,
    request: Request,
    limit: usize,
) -> Result<(bytes::Bytes, Share), Problem> {
    use axum::body::HttpBody as _;
    // The smallest item, `{"text":""},`, has twelve bytes.
    let length = request.body().size_hint().upper().unwrap_or(u64::MAX);
    let items = app
        .limits
        .batch
        .min(usize::try_from(length / 12).unwrap_or(usize::MAX))
        .max(1);
    let Received { bytes, share } = receive(app, request, items * limit * NEIGHBOUR).await?;
    Ok((bytes, share))
}

/// The fingerprints of contents.
fn sketches(
    bench: &mut Bench,
    collection: &Collection,
    items: Items<Probe>,
) -> Result<Items<Option<Fingerprint>>, Problem> {
    let scheme = &collection.settings().scheme;
    items.try_map(|probe, place| {
        let content = probe.content().map_err(|problem| problem.at(place))?;
        bench
            .fingerprint(scheme, &content)
            .map_err(|problem| problem.at(place))
    })
}

/// Documents with the fingerprints of their contents.
fn documents(
    bench: &mut Bench,
    collection: &Collection,
    items: Items<Entry>,
    now: Time,
) -> Result<Items<Document>, Problem> {
    let scheme = &collection.settings().scheme;
    items.try_map(|entry, place| {
        let (content, kept) = entry.parts(now).map_err(|problem| problem.at(place))?;
        let Kept {
            id,
            expires,
            metadata,
        } = kept;
        let fingerprint = bench
            .fingerprint(scheme, &content)
            .map_err(|problem| problem.at(place))?;
        Ok(Document {
            id,
            fingerprint,
            expires,
            metadata,
            ..Document::default()
        })
    })
}

fn ids(body: &[u8], most: usize) -> Result<Items<String>, Problem> {
    Items::<Id>::parse(body, most)?
        .try_map(|id, place| id.checked().map_err(|problem| problem.at(place)))
}

/// Writes that are on their way.
struct Submitted(oneshot::Receiver<lookalike_store::Result<Vec<Outcome>>>);

/// The same, with what their answer needs besides.
struct Written {
    submitted: Submitted,
    codes: Vec<Option<Fingerprint>>,
    shape: Shape,
}

impl Submitted {
    fn of(self, codes: Vec<Option<Fingerprint>>, shape: Shape) -> Written {
        Written {
            submitted: self,
            codes,
            shape,
        }
    }
}

impl Written {
    /// Waits until the writes are durable.
    async fn wait(self) -> Result<(Vec<Outcome>, Vec<Option<Fingerprint>>, Shape), Problem> {
        let outcomes = self.submitted.0.await.unwrap_or(Err(StoreError::Closed))?;
        Ok((outcomes, self.codes, self.shape))
    }
}

/// Hands writes to the store, all or none of them.
fn submit(
    collection: &Collection,
    writes: Vec<Write>,
    now: Time,
    limit: usize,
) -> Result<Submitted, Problem> {
    if collection.queued() >= WAITING_WRITES {
        return Err(Problem::busy(
            "writes",
            "too many requests wait to be written",
        ));
    }
    let (done, submitted) = oneshot::channel();
    collection.submit(writes, now, limit, move |outcomes| {
        // Whoever asked may have gone.
        let _ = done.send(outcomes);
    });
    Ok(Submitted(submitted))
}
