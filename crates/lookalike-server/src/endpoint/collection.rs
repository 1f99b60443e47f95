//! Operations on collections.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lookalike_store::{CategoryScope, Collection, StoreError};
use schemars::JsonSchema;
use serde::Serialize;

use super::collection_request::{CollectionRequest, NoOptions, RequestCost, object};
use crate::api_key::KeyScope;
use crate::app_state::AppState;
use crate::event_log::{LogEntry, LogLevel};
use crate::problem::ProblemDetails;
use crate::recall::RecallResponse;
use crate::request::{
    ChangedCollection, EncodedBody, KeptParts, NewCollection, ParagraphRuleOption, ShownNearness,
};
use crate::resketch_jobs::ResketchInfo;
use crate::response::{json, with_permit};
use crate::sync::lock;

/// A collection as it is shown.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Collection")]
pub(crate) struct CollectionResponse {
    name: String,
    /// `open`, or `damaged`: then nothing else is known.
    #[schemars(extend("enum" = ["open", "damaged"]))]
    state: &'static str,
    #[serde(flatten)]
    open: Option<OpenCollectionInfo>,
}

#[derive(Serialize, JsonSchema)]
struct OpenCollectionInfo {
    /// The whole text of its scheme.
    scheme: String,
    /// 16 hexadecimal digits.
    scheme_id: String,
    /// Table of terms that the scheme rests on.
    #[serde(skip_serializing_if = "Option::is_none")]
    terms: Option<TermsInfo>,
    /// Learned lines that are left out of texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    boilerplate: Option<BoilerplateInfo>,
    /// Largest distance of a query, where the collection holds fingerprints.
    #[serde(skip_serializing_if = "Option::is_none")]
    radius: Option<u32>,
    /// Minimum number of super-shingles or minima that near-duplicates have in common, where the collection holds these.
    #[serde(skip_serializing_if = "Option::is_none")]
    equal: Option<u32>,
    /// `null`: documents live for ever, unless they have a time of their own.
    ttl_seconds: Option<u64>,
    keep: KeptParts,
    /// End of a paragraph, where paragraphs are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    paragraphs: Option<ParagraphRuleOption>,
    /// Field of which documents with the same value are compared, or `site`.
    #[serde(skip_serializing_if = "Option::is_none")]
    within: Option<String>,
    /// Field of which documents with different values are compared, or `site`.
    #[serde(skip_serializing_if = "Option::is_none")]
    across: Option<String>,
    /// Least share of the longer text's bytes that the shorter one has.
    #[serde(skip_serializing_if = "Option::is_none")]
    lengths: Option<f64>,
    recall: RecallResponse,
    /// Documents that live.
    documents: u64,
    /// Documents that take space: also those that were deleted or have expired, until merges drop them.
    stored: u64,
    /// Parts that a check looks through; one after it was compacted.
    runs: usize,
    /// True while all documents are being merged into one run.
    compacting: bool,
    /// The job that sketches the documents anew, while it runs or if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    resketching: Option<ResketchInfo>,
    /// False when its disk failed.
    writable: bool,
}

/// A table of terms, which a collection holds.
#[derive(Serialize, JsonSchema)]
struct TermsInfo {
    /// Its id, which stands in the scheme: 16 hexadecimal digits.
    id: String,
    /// Documents that were counted.
    documents: u64,
    /// Features that two of them or more have.
    features: usize,
}

impl TermsInfo {
    /// Of a collection whose table can be read; requests tell why one cannot.
    fn of(app: &AppState, collection: &Collection) -> Option<Self> {
        let state = app.scheme_states.of(collection).ok().flatten()?;
        let terms = state.terms.as_ref()?;
        Some(Self {
            id: terms.id().to_string(),
            documents: terms.documents(),
            features: terms.len(),
        })
    }
}

/// Learned lines, which a collection holds.
#[derive(Serialize, JsonSchema)]
struct BoilerplateInfo {
    /// Name of the lines in the scheme.
    id: String,
    /// Number of lines.
    lines: usize,
}

impl BoilerplateInfo {
    /// Of a collection whose lines can be read; requests tell why they cannot.
    fn of(app: &AppState, collection: &Collection) -> Option<Self> {
        let state = app.scheme_states.of(collection).ok().flatten()?;
        let lines = state.boilerplate.as_ref()?;
        Some(Self {
            id: lines.scheme().to_string(),
            lines: lines.len(),
        })
    }
}

impl CollectionResponse {
    pub(crate) fn of(
        app: &AppState,
        name: String,
        opened: Result<Arc<Collection>, StoreError>,
    ) -> Self {
        match opened {
            Ok(collection) => Self {
                name,
                state: "open",
                open: Some(OpenCollectionInfo::of(app, &collection)),
            },
            Err(_) => Self {
                name,
                state: "damaged",
                open: None,
            },
        }
    }
}

impl OpenCollectionInfo {
    fn of(app: &AppState, collection: &Collection) -> Self {
        // What has expired by now does not count.
        collection.observe_time(app.now());
        let (settings, stats) = (collection.settings(), collection.stats());
        let category = |scope| {
            let pairs = &settings.pairs;
            pairs.category.clone().filter(|_| pairs.scope == scope)
        };
        let nearness = ShownNearness::of(settings.sketch_form(), settings.radius);
        Self {
            scheme: settings.scheme.text().to_owned(),
            scheme_id: settings.scheme.id().to_string(),
            terms: TermsInfo::of(app, collection),
            boilerplate: BoilerplateInfo::of(app, collection),
            radius: nearness.radius,
            equal: nearness.equal,
            ttl_seconds: settings.time_to_live.map(|life| life.as_secs()),
            keep: settings.keep.into(),
            paragraphs: settings.keep.paragraphs.then(|| settings.paragraphs.into()),
            within: category(CategoryScope::Within),
            across: category(CategoryScope::Across),
            lengths: settings.pairs.length_share,
            recall: RecallResponse::of(&settings),
            documents: stats.documents,
            stored: stats.stored,
            runs: stats.runs.len(),
            compacting: collection.is_compacting(),
            resketching: app.resketches.info(collection.name()),
            writable: collection.health().stopped.is_none(),
        }
    }
}

/// `GET /v1/collections`: those that the key is for.
pub(crate) async fn list(
    State(app): State<Arc<AppState>>,
    scope: Option<Extension<KeyScope>>,
) -> Result<Response, ProblemDetails> {
    let on_worker = Arc::clone(&app);
    let Extension(scope) = scope.unwrap_or_default();
    let listed = app.workers.run(move |_| {
        let all = on_worker.store.collections().into_iter();
        let all = all.filter(|(name, _)| scope.includes(name));
        let shown = all.map(|(name, opened)| CollectionResponse::of(&on_worker, name, opened));
        Ok(EncodedBody::json(&shown.collect::<Vec<_>>()))
    });
    Ok(json(StatusCode::OK, listed.await?.bytes))
}

/// `GET /v1/collections/NAME`.
pub(crate) async fn show(
    request: CollectionRequest<NoOptions>,
) -> Result<Response, ProblemDetails> {
    let CollectionRequest { app, name, .. } = request;
    let on_worker = Arc::clone(&app);
    let shown = app.workers.run(move |_| {
        let collection = on_worker.collection(&name)?;
        Ok(EncodedBody::json(&CollectionResponse::of(
            &on_worker,
            name,
            Ok(collection),
        )))
    });
    Ok(json(StatusCode::OK, shown.await?.bytes))
}

/// `PUT /v1/collections/NAME`: makes it; the one that is there when it has the same settings.
pub(crate) async fn create(
    request: CollectionRequest<NoOptions>,
) -> Result<Response, ProblemDetails> {
    let by = request.by.clone();
    let work = move |app: &AppState, name: String, body: crate::request::ReceivedBody| {
        let (settings, parts) = object::<NewCollection>(&body.bytes, body.format)?.settings()?;
        let _one_at_a_time = lock(&app.creating);
        let known = app.store.collections();
        // One that exists is no new one: repeating a creation at the limit is answered as the first time.
        let is_new = known.iter().all(|(other, _)| *other != name);
        let most = app.limits.collections;
        if is_new && known.len() >= most {
            return Err(ProblemDetails::new(
                StatusCode::CONFLICT,
                "too-many-collections",
                format!("there are already {most} collections"),
                "remove one, or raise the limit of the service",
            ));
        }
        let collection = app.store.create_collection_with(&name, &settings, &parts)?;
        if is_new {
            let entry = LogEntry::new(LogLevel::Info, "collection-created");
            app.log_change(entry.with("collection", name.as_str()), by.as_ref());
        }
        Ok((
            is_new,
            EncodedBody::json(&CollectionResponse::of(app, name, Ok(collection))),
        ))
    };
    let ((is_new, shown), permit) = request.without_collection(work).await?;
    let mut response = with_permit(shown, permit);
    if is_new {
        *response.status_mut() = StatusCode::CREATED;
    }
    Ok(response)
}

/// `PATCH /v1/collections/NAME`: changes how long documents live that are inserted from now on.
pub(crate) async fn change(
    request: CollectionRequest<NoOptions>,
) -> Result<Response, ProblemDetails> {
    let by = request.by.clone();
    let work = move |mut task: super::collection_request::CollectionTask<'_>| {
        let life = task.object::<ChangedCollection>()?.time_to_live()?;
        task.collection.set_time_to_live(life)?;
        let name = task.collection.name().to_owned();
        let entry = LogEntry::new(LogLevel::Info, "collection-changed");
        let entry = entry.with("collection", name.as_str());
        let seconds = life.map(|life| life.as_secs());
        let entry = entry.with("ttl_seconds", seconds);
        task.app.log_change(entry, by.as_ref());
        Ok(EncodedBody::json(&CollectionResponse::of(
            task.app,
            name,
            Ok(task.collection),
        )))
    };
    request.answer(RequestCost::default(), work).await
}

/// `POST /v1/collections/NAME/compact`: one run of everything, behind the scenes.
pub(crate) async fn compact(
    request: CollectionRequest<NoOptions>,
) -> Result<Response, ProblemDetails> {
    let by = request.by.clone();
    let work = move |app: &AppState, name: String, body: crate::request::ReceivedBody| {
        if !body.bytes.is_empty() {
            let NoOptions {} = object(&body.bytes, body.format)?;
        }
        let collection = app.collection(&name)?;
        collection.compact_later()?;
        let entry = LogEntry::new(LogLevel::Info, "collection-compacting");
        app.log_change(entry.with("collection", name.as_str()), by.as_ref());
        Ok(EncodedBody::json(&CollectionResponse::of(
            app,
            name,
            Ok(collection),
        )))
    };
    let (begun, permit) = request.without_collection(work).await?;
    let mut response = with_permit(begun, permit);
    *response.status_mut() = StatusCode::ACCEPTED;
    Ok(response)
}

/// `DELETE /v1/collections/NAME`: removes it with all that is in it.
pub(crate) async fn drop_collection(
    request: CollectionRequest<NoOptions>,
) -> Result<Response, ProblemDetails> {
    let CollectionRequest { app, name, by, .. } = request;
    let on_worker = Arc::clone(&app);
    let dropped = app.workers.run(move |_| {
        let app = on_worker;
        app.store.drop_collection(&name)?;
        app.resketches.forget_failure(&name);
        let entry = LogEntry::new(LogLevel::Info, "collection-removed");
        app.log_change(entry.with("collection", name), by.as_ref());
        Ok(())
    });
    dropped.await?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}
