//! Operations on collections.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lookalike_store::sync::lock;
use lookalike_store::{CategoryScope, Collection};
use schemars::JsonSchema;
use serde::Serialize;

use super::collection_request::{CollectionRequest, NoOptions, RequestCost, object};
use crate::api_key::KeyScope;
use crate::app_state::AppState;
use crate::event_log::{LogEntry, LogLevel};
use crate::problem::ProblemDetails;
use crate::recall::RecallResponse;
use crate::request::{
    ChangedCollection, EncodedBody, KeptParts, NewCollection, ParagraphRuleOption, ShownRadius,
};
use crate::resketch_jobs::ResketchInfo;
use crate::response::{json, with_permit};

/// A collection as it is shown.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Collection")]
pub(crate) struct CollectionResponse {
    name: String,
    /// `open`, or `damaged`: nothing else is then known.
    #[schemars(extend("enum" = ["open", "damaged"]))]
    state: &'static str,
    #[serde(flatten)]
    open: Option<OpenCollectionInfo>,
}

#[derive(Serialize, JsonSchema)]
struct OpenCollectionInfo {
    /// Full text of its scheme.
    scheme: String,
    /// Id of its scheme: 16 hexadecimal digits.
    scheme_id: String,
    /// Table of terms that the scheme uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    terms: Option<TermsInfo>,
    /// Learned lines that are removed from texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    boilerplate: Option<BoilerplateInfo>,
    /// Largest distance of a query, if the collection holds fingerprints.
    #[serde(skip_serializing_if = "Option::is_none")]
    radius: Option<u32>,
    /// Minimum number of super-shingles or minima that near-duplicates have in common, if the collection holds these.
    #[serde(skip_serializing_if = "Option::is_none")]
    equal: Option<u32>,
    /// Lifetime of documents without one of their own; `null` means forever.
    ttl_seconds: Option<u64>,
    keep: KeptParts,
    /// Rule for the ends of paragraphs, if paragraphs are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    paragraphs: Option<ParagraphRuleOption>,
    /// Field whose values must be the same for documents to be compared, or `site`.
    #[serde(skip_serializing_if = "Option::is_none")]
    within: Option<String>,
    /// Field whose values must differ for documents to be compared, or `site`.
    #[serde(skip_serializing_if = "Option::is_none")]
    across: Option<String>,
    /// Minimum length of the shorter text as a share of the longer one, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    lengths: Option<f64>,
    recall: RecallResponse,
    /// Number of live documents.
    documents: u64,
    /// Number of documents that take space, including deleted and expired ones until merges drop them.
    stored: u64,
    /// Number of parts that a check searches; one after compaction.
    runs: usize,
    /// True while all documents are being merged into one run.
    compacting: bool,
    /// Job that sketches the documents again, while it runs or if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    resketching: Option<ResketchInfo>,
    /// Number of the last job that sketched the documents again, since the service was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    resketched: Option<u64>,
    /// False if its disk failed.
    writable: bool,
}

/// The table of terms that a collection holds.
#[derive(Serialize, JsonSchema)]
struct TermsInfo {
    /// Id of the table, which is also in the scheme: 16 hexadecimal digits.
    id: String,
    /// Number of documents that were counted.
    documents: u64,
    /// Number of features that occur in two or more of them.
    features: usize,
}

/// The learned lines that a collection holds.
#[derive(Serialize, JsonSchema)]
struct BoilerplateInfo {
    /// Id of the lines in the scheme.
    id: String,
    /// Number of lines.
    lines: usize,
}

impl CollectionResponse {
    /// A collection, if it could be opened.
    fn new(app: &AppState, name: String, opened: Option<&Collection>) -> Self {
        Self {
            name,
            state: if opened.is_some() { "open" } else { "damaged" },
            open: opened.map(|collection| OpenCollectionInfo::of(app, collection)),
        }
    }

    /// Describes an open collection.
    pub(crate) fn open(app: &AppState, collection: &Collection) -> Self {
        Self::new(app, collection.name().to_owned(), Some(collection))
    }

    /// Sets the job that is shown.
    pub(crate) fn set_resketching(&mut self, job: Option<ResketchInfo>) {
        if let Some(open) = &mut self.open {
            open.resketching = job;
        }
    }

    /// The body that shows an open collection.
    pub(crate) fn body(app: &AppState, collection: &Collection) -> EncodedBody {
        EncodedBody::json(&Self::open(app, collection))
    }
}

impl OpenCollectionInfo {
    fn of(app: &AppState, collection: &Collection) -> Self {
        // Documents that have expired by now do not count.
        collection.observe_time(app.clock.now());
        let (settings, stats) = (collection.settings(), collection.stats());
        let category = |scope| {
            let pairs = &settings.pairs;
            pairs.category.clone().filter(|_| pairs.scope == scope)
        };
        let nearness = ShownRadius::of(settings.sketch_form(), settings.radius);
        // Parts that cannot be read are not shown; requests report why.
        let parts = app.scheme_states.of(collection).ok().flatten();
        let parts = parts.unwrap_or_default();
        let (resketching, resketched) = app.resketches.info(collection.name());
        Self {
            scheme: settings.scheme.text().to_owned(),
            scheme_id: settings.scheme.id().to_string(),
            terms: parts.terms.as_deref().map(|terms| TermsInfo {
                id: terms.id().to_string(),
                documents: terms.documents(),
                features: terms.len(),
            }),
            boilerplate: parts.boilerplate.as_deref().map(|lines| BoilerplateInfo {
                id: lines.scheme().to_string(),
                lines: lines.len(),
            }),
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
            resketching,
            resketched,
            writable: collection.health().stopped.is_none(),
        }
    }
}

/// Handles `GET /v1/collections`: lists the collections that the key is for.
pub(crate) async fn list(
    State(app): State<Arc<AppState>>,
    _: NoOptions,
    scope: Option<Extension<KeyScope>>,
) -> Result<Response, ProblemDetails> {
    // Without keys there is no scope, and the default includes all.
    let Extension(scope) = scope.unwrap_or_default();
    let listed = app.on_worker(move |app| {
        let all = app.store.collections().into_iter();
        let all = all.filter(|(name, _)| scope.includes(name));
        let shown =
            all.map(|(name, opened)| CollectionResponse::new(app, name, opened.ok().as_deref()));
        Ok(EncodedBody::json(&shown.collect::<Vec<_>>()))
    });
    Ok(json(StatusCode::OK, listed.await?.bytes))
}

/// Handles `GET /v1/collections/NAME`.
pub(crate) async fn show(
    request: CollectionRequest<NoOptions>,
) -> Result<Response, ProblemDetails> {
    let CollectionRequest { app, name, .. } = request;
    let shown = app.on_worker(move |app| {
        let collection = app.collection(&name)?;
        Ok(CollectionResponse::body(app, &collection))
    });
    Ok(json(StatusCode::OK, shown.await?.bytes))
}

/// Handles `PUT /v1/collections/NAME`: creates the collection, or returns the existing one if it has the same settings.
pub(crate) async fn create(
    request: CollectionRequest<NoOptions>,
) -> Result<Response, ProblemDetails> {
    let by = request.by.clone();
    let work = move |app: &AppState, name: String, body: crate::request::ReceivedBody| {
        let (settings, parts) = object::<NewCollection>(&body.bytes, body.format)?.settings()?;
        let _one_at_a_time = lock(&app.creating);
        let known = app.store.collections();
        // An existing collection is not a new one: a repeated creation at the limit gets the same answer as the first.
        let is_new = known.iter().all(|(other, _)| *other != name);
        let most = app.limits.collections;
        if is_new && known.len() >= most {
            return Err(ProblemDetails::conflict(
                "too-many-collections",
                format!("there are already {most} collections"),
                "remove one, or raise the limit of the service",
            ));
        }
        // Also for an existing collection: the store compares the settings and refuses others.
        let collection = app.store.create_collection_with(&name, &settings, &parts)?;
        if is_new {
            let entry = LogEntry::new(LogLevel::Info, "collection-created");
            app.log_change(entry.with("collection", name.as_str()), by.as_ref());
        }
        Ok((is_new, CollectionResponse::body(app, &collection)))
    };
    let ((is_new, shown), permit) = request.without_collection(work).await?;
    let status = match is_new {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    Ok(with_permit(status, shown, permit))
}

/// Handles `PATCH /v1/collections/NAME`: changes the lifetime of documents inserted from now on.
pub(crate) async fn change(
    request: CollectionRequest<NoOptions>,
) -> Result<Response, ProblemDetails> {
    let by = request.by.clone();
    let work = move |mut task: super::collection_request::CollectionTask<'_>| {
        let life = task.object::<ChangedCollection>()?.time_to_live()?;
        task.collection.set_time_to_live(life)?;
        let entry = LogEntry::new(LogLevel::Info, "collection-changed");
        let entry = entry.with("collection", task.collection.name());
        let seconds = life.map(|life| life.as_secs());
        let entry = entry.with("ttl_seconds", seconds);
        task.app.log_change(entry, by.as_ref());
        Ok(CollectionResponse::body(task.app, &task.collection))
    };
    request.answer(RequestCost::default(), work).await
}

/// Handles `POST /v1/collections/NAME/compact`: merges everything into one run in the background.
pub(crate) async fn compact(
    request: CollectionRequest<NoOptions>,
) -> Result<Response, ProblemDetails> {
    let by = request.by.clone();
    let work = move |app: &AppState, name: String, body: crate::request::ReceivedBody| {
        // An empty object is the same as no body.
        if !body.bytes.is_empty() {
            let NoOptions {} = object(&body.bytes, body.format)?;
        }
        let collection = app.collection(&name)?;
        collection.compact_later()?;
        let entry = LogEntry::new(LogLevel::Info, "collection-compacting");
        app.log_change(entry.with("collection", name.as_str()), by.as_ref());
        Ok(CollectionResponse::body(app, &collection))
    };
    let (begun, permit) = request.without_collection(work).await?;
    Ok(with_permit(StatusCode::ACCEPTED, begun, permit))
}

/// Handles `DELETE /v1/collections/NAME`: removes the collection and everything in it.
pub(crate) async fn drop_collection(
    request: CollectionRequest<NoOptions>,
) -> Result<Response, ProblemDetails> {
    let CollectionRequest { app, name, by, .. } = request;
    let dropped = app.on_worker(move |app| {
        app.store.drop_collection(&name)?;
        // After the removal: a job that fails meanwhile is dropped here, or finds the collection gone in `ResketchJobs::fail`.
        app.resketches.discard_ended(&name);
        let entry = LogEntry::new(LogLevel::Info, "collection-removed");
        app.log_change(entry.with("collection", name), by.as_ref());
        Ok(())
    });
    dropped.await?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}
