//! Operations on documents: one, or a batch in one step.

use axum::http::StatusCode;
use axum::response::Response;
use lookalike::Fingerprint;
use lookalike_store::{Answer, Document, Outcome, StoreError, Time, Verdict, Write};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use super::asked::{Asked, Cost, Nothing, Task};
use super::held;
use crate::diff;
use crate::judgement::{Judgement, Report, digits, metadata};
use crate::operation::Operation;
use crate::problem::Problem;
use crate::request::{
    Answered, Entry, GetOptions, Id, InsertOptions, Items, Kept, Looks, Probe, QueryOptions,
    ScopeOptions, Shape, packed,
};
use crate::sketch::{Bench, Own};
use crate::verify::verify;

/// Memory that a neighbour may take in an answer.
const NEIGHBOUR: usize = 1024;

/// The answer to an insert.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "InsertAnswer")]
pub(crate) struct Inserted {
    /// Whether there was one with this id.
    replaced: bool,
    #[serde(serialize_with = "digits")]
    #[schemars(with = "Option<String>")]
    fingerprint: Option<Fingerprint>,
}

/// The answer to a check-and-insert.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CheckAndInsertAnswer")]
pub(crate) struct Checked {
    #[serde(flatten)]
    report: Report,
    /// Whether it was inserted.
    inserted: bool,
    /// Whether there was one with this id.
    known: bool,
}

/// The answer to a delete.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DeleteAnswer")]
pub(crate) struct Deleted {
    /// Whether there was one.
    existed: bool,
}

/// A document as it is kept.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "StoredDocument")]
pub(crate) struct Shown<'d> {
    id: &'d str,
    #[serde(serialize_with = "digits")]
    #[schemars(with = "Option<String>")]
    fingerprint: Option<Fingerprint>,
    /// Milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    metadata: Option<Box<RawValue>>,
    /// When it was asked for, and is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'d str>,
}

/// A document, or `null` where there is none.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(rename = "FoundDocument")]
pub(crate) struct Found<'d>(Option<Shown<'d>>);

impl Answered for Inserted {
    fn packed(&self) -> u8 {
        packed::byte(None, self.replaced)
    }
}

impl Answered for Checked {
    fn packed(&self) -> u8 {
        packed::byte(self.report.distance(), self.inserted)
    }
}

impl Answered for Deleted {
    fn packed(&self) -> u8 {
        packed::byte(None, self.existed)
    }
}

impl Answered for Found<'_> {
    fn packed(&self) -> u8 {
        packed::byte(None, self.0.is_some())
    }
}

/// `POST /v1/collections/NAME/check`: verdicts alone, all of one moment.
pub(crate) async fn check(asked: Asked<ScopeOptions>) -> Result<Response, Problem> {
    let scope = asked.options.scope()?;
    let work = move |mut task: Task<'_>| {
        let radius = scope.radius_in(&task.collection)?;
        let items = task.items::<Probe>()?;
        let scheme = &task.settings.scheme;
        let codes = items.try_map(|probe, place| {
            let content = probe.content();
            content
                .and_then(|content| task.bench.fingerprint(scheme, &content))
                .map_err(|problem| problem.at(place))
        });
        let (codes, shape) = codes?.into_parts();
        let known: Vec<Fingerprint> = codes.iter().flatten().copied().collect();
        let verdicts = task.collection.check_many(&known, radius, task.now)?;
        let mut verdicts = verdicts.into_iter();
        let judged = codes.into_iter().map(|code| match code {
            // What has no features resembles nothing.
            None => Judgement::new(Verdict::New, None),
            Some(code) => Judgement::new(verdicts.next().unwrap_or(Verdict::New), Some(code)),
        });
        let judged: Vec<Judgement> = judged.collect();
        task.app.metrics.documents(Operation::Check, judged.len());
        let given = judged.iter().map(Judgement::verdict);
        task.app.metrics.verdicts(given);
        Ok(shape.write(&judged))
    };
    asked.answer(Cost::QUICK, work).await
}

/// `POST /v1/collections/NAME/query`: verdicts with the neighbours.
pub(crate) async fn query(asked: Asked<QueryOptions>) -> Result<Response, Problem> {
    let (scope, looks) = (asked.options.scope()?, asked.options.looks()?);
    let work = move |mut task: Task<'_>| {
        let radius = scope.radius_in(&task.collection)?;
        let items = task.items::<Probe>()?;
        let reports = items.try_map(|probe, place| {
            let report = probe
                .content()
                .and_then(|content| task.own(&content, looks))
                .and_then(|own| {
                    let Some(code) = own.fingerprint else {
                        return Ok(Report::nothing());
                    };
                    let found = task.collection.query(code, radius, task.now, looks.limit)?;
                    task.report(found, &own, looks)
                });
            report.map_err(|problem| problem.at(place))
        });
        let (reports, shape) = reports?.into_parts();
        task.app.metrics.documents(Operation::Query, reports.len());
        task.app
            .metrics
            .verdicts(reports.iter().map(Report::verdict));
        Ok(shape.write(&reports))
    };
    asked.answer(neighbours(looks), work).await
}

/// `POST /v1/collections/NAME/insert`: documents, each in the place of any with its id.
pub(crate) async fn insert(asked: Asked<ScopeOptions>) -> Result<Response, Problem> {
    let (scope, app) = (asked.options.scope()?, asked.app.clone());
    let work = move |mut task: Task<'_>| {
        scope.radius_in(&task.collection)?;
        let (documents, shape) = task.documents(None)?.into_parts();
        let codes: Vec<_> = documents.iter().map(|(one, _)| one.fingerprint).collect();
        let writes = documents.into_iter().map(|(one, _)| Write::Insert(one));
        Ok((task.submit(writes.collect(), 0)?, codes, shape))
    };
    let ((submitted, codes, shape), permit) = asked.on_worker(Cost::QUICK, work).await?;
    let outcomes = submitted.wait().await?.into_iter().zip(codes);
    let answers = outcomes.map(|(outcome, fingerprint)| Inserted {
        replaced: matches!(outcome, Outcome::Inserted { replaced: true }),
        fingerprint,
    });
    let answers: Vec<Inserted> = answers.collect();
    app.metrics.documents(Operation::Insert, answers.len());
    Ok(held(shape.write(&answers), permit))
}

/// `POST /v1/collections/NAME/check-and-insert`: the verdict and the insert in one step.
pub(crate) async fn check_and_insert(asked: Asked<InsertOptions>) -> Result<Response, Problem> {
    let (scope, looks) = (asked.options.scope()?, asked.options.looks()?);
    let (insert, app) = (asked.options.insert(), asked.app.clone());
    let work = move |mut task: Task<'_>| {
        let radius = scope.radius_in(&task.collection)?;
        let (documents, shape) = task.documents(Some(looks))?.into_parts();
        let (documents, owns): (Vec<_>, Vec<_>) = documents.into_iter().unzip();
        let writes = documents.into_iter().map(|document| Write::CheckAndInsert {
            document,
            radius,
            insert,
        });
        let limit = if shape == Shape::Packed {
            0
        } else {
            looks.limit
        };
        let submitted = task.submit(writes.collect(), limit)?;
        Ok((submitted, owns, shape, task.settings))
    };
    // What is found is read by the thread that writes.
    let cost = Cost {
        quick: true,
        ..neighbours(looks)
    };
    let ((submitted, owns, shape, settings), permit) = asked.on_worker(cost, work).await?;
    let outcomes = submitted.wait().await?;
    let done = move |bench: &mut Bench| {
        let outcomes = outcomes.into_iter().zip(&owns);
        let answers = outcomes.filter_map(|(outcome, own)| match outcome {
            Outcome::Checked {
                answer,
                inserted,
                known,
            } => Some(
                report(bench, &settings, answer, own, looks).map(|report| Checked {
                    report,
                    inserted,
                    known,
                }),
            ),
            // The store answers what it was asked.
            _ => None,
        });
        answers.collect::<Result<Vec<Checked>, Problem>>()
    };
    let answers = if looks.verify {
        // It reads texts, which takes time.
        app.workers.run(done).await?
    } else {
        done(&mut Bench::default())?
    };
    app.metrics
        .documents(Operation::CheckAndInsert, answers.len());
    let given = answers.iter().map(|answer| answer.report.verdict());
    app.metrics.verdicts(given);
    Ok(held(shape.write(&answers), permit))
}

/// `POST /v1/collections/NAME/delete`.
pub(crate) async fn delete(asked: Asked<Nothing>) -> Result<Response, Problem> {
    let app = asked.app.clone();
    let work = |mut task: Task<'_>| {
        let (ids, shape) = task.ids()?.into_parts();
        let writes = ids.into_iter().map(Write::Delete).collect();
        Ok((task.submit(writes, 0)?, shape))
    };
    let ((submitted, shape), permit) = asked.on_worker(Cost::QUICK, work).await?;
    let outcomes = submitted.wait().await?.into_iter();
    let answers = outcomes.map(|outcome| Deleted {
        existed: matches!(outcome, Outcome::Deleted { existed: true }),
    });
    let answers: Vec<Deleted> = answers.collect();
    app.metrics.documents(Operation::Delete, answers.len());
    Ok(held(shape.write(&answers), permit))
}

/// `POST /v1/collections/NAME/get`: documents by id; in a batch `null` for those that are not there.
pub(crate) async fn get(asked: Asked<GetOptions>) -> Result<Response, Problem> {
    let with_text = asked.options.text;
    let fixed = if with_text {
        // As it is kept, and as JSON.
        4 * asked.app.limits.body_bytes
    } else {
        0
    };
    let cost = Cost {
        fixed,
        item: NEIGHBOUR,
        ..Cost::default()
    };
    let work = move |mut task: Task<'_>| {
        let (ids, shape) = task.ids()?.into_parts();
        if with_text && shape != Shape::One {
            return Err(Problem::invalid(
                "texts are shown of one document at a time",
                "leave out text=true, or ask for each document",
            ));
        }
        let found = ids.iter().map(|id| {
            let found = task.collection.get(id, task.now)?;
            Ok(found.map(|document| Brief::of(&document, with_text)))
        });
        let found = found.collect::<Result<Vec<_>, StoreError>>()?;
        if shape == Shape::One && found.iter().all(Option::is_none) {
            return Err(Problem::new(
                StatusCode::NOT_FOUND,
                "no-document",
                "the collection has no document with this id",
                "it was never inserted, was deleted, or has expired",
            ));
        }
        task.app.metrics.documents(Operation::Get, found.len());
        let shown = found
            .iter()
            .map(|found| Found(found.as_ref().map(Brief::shown)));
        Ok(shape.write(&shown.collect::<Vec<_>>()))
    };
    asked.answer(cost, work).await
}

/// What is shown of a document, without the rest: texts of a batch are not in memory together.
struct Brief(Document);

impl Brief {
    fn of(document: &Document, with_text: bool) -> Self {
        Self(Document {
            id: document.id.clone(),
            fingerprint: document.fingerprint,
            expires: document.expires,
            metadata: document.metadata.clone(),
            text: document.text.as_ref().filter(|_| with_text).cloned(),
            ..Document::default()
        })
    }

    fn shown(&self) -> Shown<'_> {
        Shown::of(&self.0)
    }
}

impl<'d> Shown<'d> {
    /// All that is shown of a document, its text included if it has one.
    pub(crate) fn of(document: &'d Document) -> Self {
        Self {
            id: &document.id,
            fingerprint: document.fingerprint,
            expires_ms: document.expires.map(|Time(end)| end),
            metadata: metadata(&document.metadata),
            text: document.text.as_deref(),
        }
    }
}

/// Memory for the neighbours of all items.
fn neighbours(looks: Looks) -> Cost {
    let each = NEIGHBOUR + if looks.diff { diff::LARGEST } else { 0 };
    Cost {
        item: looks.limit * each,
        ..Cost::default()
    }
}

/// A report, with its neighbours verified if that was asked for.
fn report(
    bench: &mut Bench,
    settings: &lookalike_store::CollectionSettings,
    found: Answer,
    own: &Own,
    looks: Looks,
) -> Result<Report, Problem> {
    let verified = looks.verify.then(|| {
        let near = found.neighbours.iter();
        near.map(|near| verify(bench, settings, own, near, looks.diff))
            .collect::<Result<Vec<_>, Problem>>()
    });
    Ok(Report::new(found, own.fingerprint, verified.transpose()?))
}

impl Task<'_> {
    fn report(&mut self, found: Answer, own: &Own, looks: Looks) -> Result<Report, Problem> {
        report(self.bench, &self.settings, found, own, looks)
    }

    /// What neighbours are compared with, as far as that is asked for.
    fn own(&mut self, content: &crate::request::Content, looks: Looks) -> Result<Own, Problem> {
        if looks.verify {
            return self.bench.own(&self.settings, content);
        }
        let fingerprint = self.bench.fingerprint(&self.settings.scheme, content)?;
        Ok(Own {
            fingerprint,
            ..Own::default()
        })
    }

    /// Documents of the body's contents, and what their neighbours are compared with.
    fn documents(&mut self, looks: Option<Looks>) -> Result<Items<(Document, Own)>, Problem> {
        let items = self.items::<Entry>()?;
        items.try_map(|entry, place| {
            let document = entry.parts(self.now).and_then(|(content, kept)| {
                let Kept {
                    id,
                    expires,
                    metadata,
                } = kept;
                let own = match looks.filter(|looks| looks.verify) {
                    Some(looks) => self.own(&content, looks)?,
                    None => Own::default(),
                };
                let document = Document {
                    id,
                    expires,
                    metadata,
                    ..self.bench.document(&self.settings, &content)?
                };
                let fingerprint = document.fingerprint;
                Ok((document, Own { fingerprint, ..own }))
            });
            document.map_err(|problem| problem.at(place))
        })
    }

    fn ids(&mut self) -> Result<Items<String>, Problem> {
        let items = self.items::<Id>()?;
        items.try_map(|id, place| id.checked().map_err(|problem| problem.at(place)))
    }
}
