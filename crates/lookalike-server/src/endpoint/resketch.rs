//! Resketching a collection while it is used: another scheme, table of terms, radius or number of equal places, from the texts that it
//! keeps.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use axum::http::StatusCode;
use axum::response::Response;
use lookalike_corpus::spawn_detached;
use lookalike_store::{Collection, CollectionSettings, RebuildTarget, StoreError, StoredDocument};

use super::collection::CollectionResponse;
use super::collection_request::{CollectionRequest, CollectionTask, NoOptions, RequestCost};
use crate::app_state::AppState;
use crate::content::{ContentSource, ContentTraits, RequestContent};
use crate::event_log::{LogEntry, LogLevel};
use crate::problem::ProblemDetails;
use crate::request::{EncodedBody, ResketchedCollection, ShownRadius};
use crate::resketch_jobs::ResketchProgress;
use crate::response::{json, with_permit};
use crate::scheme::usable_scheme;
use crate::scheme_state::{BOILERPLATE, SchemeState};
use crate::sketch_cache::SketchCache;

/// Stack size of the thread, on which texts of any structure are sketched.
const STACK: usize = 8 << 20;

/// Handles `POST /v1/collections/NAME/resketch`.
pub(crate) async fn resketch(
    request: CollectionRequest<NoOptions>,
) -> Result<Response, ProblemDetails> {
    let (app, by) = (Arc::clone(&request.app), request.by.clone());
    let work = move |mut task: CollectionTask<'_>| {
        let (settings, name) = (
            Arc::clone(&task.settings),
            task.collection.name().to_owned(),
        );
        let mut target = task.object::<ResketchedCollection>()?.target(&settings)?;
        let mut held = task.collection.scheme_parts()?;
        // Learned lines stay, or the scheme is refused. For another scheme, its table must have been sent; for the same scheme, a table may
        // have been sent as well.
        held.retain(|part| {
            let stays = part.name == BOILERPLATE || target.scheme == settings.scheme;
            stays && target.parts.iter().all(|sent| sent.name != part.name)
        });
        target.parts.extend(held);
        // The id of a table of terms is part of the scheme, so another table means another scheme.
        let is_new = target.scheme != settings.scheme || target.radius != settings.radius;
        let mut shown = CollectionResponse::open(&app, &task.collection);
        shown.set_resketching(None);
        if is_new {
            check_texts(&settings, &target)?;
            let documents = task.collection.stats().documents;
            let nearness = ShownRadius::of(target.scheme.sketch_form(), target.radius);
            let progress = ResketchProgress::new(target.scheme.id(), nearness, documents);
            // Before the thread starts, because the thread drops its job at its end, which may come at any moment.
            let progress = app.resketches.begin(&name, progress, app.clock.now())?;
            // This job and no other, which may have begun by the time of the answer.
            shown.set_resketching(Some(progress.info()));
            let entry = LogEntry::new(LogLevel::Info, "collection-resketching");
            let entry = entry.with("scheme", target.scheme.id().to_string());
            app.log_change(entry.with("collection", name.as_str()), by.as_ref());
            start(&app, &task.collection, target, progress)?;
        }
        Ok((is_new, EncodedBody::json(&shown)))
    };
    let ((is_new, shown), permit) = request.on_worker(RequestCost::default(), work).await?;
    let status = match is_new {
        true => StatusCode::ACCEPTED,
        false => StatusCode::OK,
    };
    Ok(with_permit(status, shown, permit))
}

/// Handles `DELETE /v1/collections/NAME/resketch`.
pub(crate) async fn cancel(
    request: CollectionRequest<NoOptions>,
) -> Result<Response, ProblemDetails> {
    let CollectionRequest { app, name, by, .. } = request;
    let cancelled = app.on_worker(move |app| {
        let collection = app.collection(&name)?;
        let job = app.resketches.cancel(&name)?;
        let mut shown = CollectionResponse::open(app, &collection);
        shown.set_resketching(job.map(|job| job.info()));
        let entry = LogEntry::new(LogLevel::Info, "resketch-cancelling");
        app.log_change(entry.with("collection", name.as_str()), by.as_ref());
        Ok(EncodedBody::json(&shown))
    });
    Ok(json(StatusCode::ACCEPTED, cancelled.await?.bytes))
}

/// Returns an error if the texts of the collection cannot be sketched under the new scheme.
fn check_texts(
    settings: &CollectionSettings,
    target: &RebuildTarget,
) -> Result<(), ProblemDetails> {
    if target.scheme == settings.scheme {
        // A change of the radius alone needs no texts.
        return Ok(());
    }
    if !settings.keep.texts {
        return Err(ProblemDetails::conflict(
            "no-texts",
            "the collection keeps no texts, so that its documents cannot be sketched anew",
            "create a collection with this scheme, insert the documents there, and remove this one; one with `keep.texts` can be sketched anew later",
        ));
    }
    let old = usable_scheme(settings.scheme.text())?;
    let new = usable_scheme(target.scheme.text())?;
    let differs = if old.html != new.html {
        "another extraction of pages: pages are not kept, but only the texts that were extracted of them"
    } else if old.boilerplate != new.boilerplate {
        "other learned lines: of texts only what they left is kept"
    } else if !old.fields.is_none() || !new.fields.is_none() {
        "fields: links and anchors are not kept"
    } else {
        return Ok(());
    };
    Err(ProblemDetails::invalid(
        format!("the documents cannot be sketched anew under a scheme with {differs}"),
        "create a collection with this scheme and insert the documents there",
    ))
}

/// Starts the thread of a job. Requests only wait for it during the moment in which the collection is replaced.
fn start(
    app: &Arc<AppState>,
    collection: &Arc<Collection>,
    target: RebuildTarget,
    progress: Arc<ResketchProgress>,
) -> Result<(), ProblemDetails> {
    let (on_thread, checked) = (Arc::clone(app), Arc::clone(collection));
    let thread = std::thread::Builder::new()
        .name("resketch".to_owned())
        .stack_size(STACK);
    let rebuild = move || run(&on_thread, &checked, &target, &progress);
    spawn_detached(thread, rebuild).map_err(|error| {
        app.resketches.forget(collection.name());
        ProblemDetails::busy("resketching", format!("no thread for it: {error}"))
    })
}

/// The reason why a job ends without a new collection.
enum ResketchError {
    /// The job was cancelled, or the collection was removed.
    Cancelled,
    Failed(ProblemDetails),
}

impl From<ProblemDetails> for ResketchError {
    fn from(problem: ProblemDetails) -> Self {
        Self::Failed(problem)
    }
}

impl From<StoreError> for ResketchError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NoCollection(_) | StoreError::Closed => Self::Cancelled,
            other => Self::Failed(other.into()),
        }
    }
}

fn run(
    app: &AppState,
    collection: &Arc<Collection>,
    target: &RebuildTarget,
    progress: &ResketchProgress,
) {
    let (begun, name) = (Instant::now(), collection.name());
    let job = || rebuild(app, collection, target, progress);
    let done = catch_unwind(AssertUnwindSafe(job));
    match done.unwrap_or_else(|_| Err(ProblemDetails::panic().into())) {
        Ok(()) => {
            // Replaced by the new one, the old collection is not current in either case.
            let is_gone = || app.store.collection(name).is_err();
            app.resketches.succeed(name, is_gone);
            app.metrics.resketched("done");
            let entry = LogEntry::new(LogLevel::Info, "collection-resketched");
            let entry = entry.with("collection", name);
            app.log
                .record(&entry.with("seconds", begun.elapsed().as_secs_f64()));
        }
        Err(ResketchError::Cancelled) => {
            app.resketches.forget(name);
            app.metrics.resketched("cancelled");
            let entry = LogEntry::new(LogLevel::Info, "resketch-cancelled");
            app.log.record(&entry.with("collection", name));
        }
        Err(ResketchError::Failed(problem)) => {
            app.metrics.resketched("failed");
            let entry = LogEntry::new(LogLevel::Error, "resketch-failed").with("collection", name);
            app.log
                .record(&entry.with("reason", problem.for_operators()));
            // A collection that was created anew under the same name must not show the failure of the old one.
            let is_gone = || !app.store.is_current(collection);
            app.resketches.fail(name, problem.to_string(), is_gone);
        }
    }
}

fn rebuild(
    app: &AppState,
    collection: &Arc<Collection>,
    target: &RebuildTarget,
    progress: &ResketchProgress,
) -> Result<(), ResketchError> {
    let old = collection.settings();
    let is_same_scheme = old.scheme == target.scheme;
    let settings = CollectionSettings::clone(&old).scheme(target.scheme.clone());
    // Not from `SchemeStates`, which reads the parts that the collection holds now.
    let state = match target.parts[..] {
        [] => None,
        _ => Some(Arc::new(SchemeState::read(&target.parts)?)),
    };
    // The limit of `WorkerPool::start`: a text that could be inserted can be sketched again.
    let mut cache = SketchCache::new(app.limits.request_memory.saturating_mul(2));
    let mut convert = |document: StoredDocument| {
        if app.is_stopping() || progress.is_cancelled() {
            return Err(ResketchError::Cancelled);
        }
        progress.count();
        if is_same_scheme {
            return Ok(document);
        }
        // Set the state for every document, because `shrink` drops it after a long text.
        cache.set_scheme_state(state.clone());
        let sketched = sketched(&mut cache, &settings, document);
        cache.shrink();
        Ok(sketched?)
    };
    let may_replace = || match progress.begin_replacement() {
        true => Ok(()),
        false => Err(ResketchError::Cancelled),
    };
    app.store
        .rebuild_collection(collection, target, &mut convert, may_replace)
        .map(drop)
}

/// Converts a document to another scheme: everything derived from its text is computed again.
fn sketched(
    cache: &mut SketchCache,
    settings: &CollectionSettings,
    document: StoredDocument,
) -> Result<StoredDocument, ProblemDetails> {
    let Some(text) = document.text else {
        return Err(ProblemDetails::conflict(
            "no-texts",
            format!(
                "the document {:?} was inserted as a sketch, without its text, so that it cannot be sketched anew",
                document.id
            ),
            "insert its text, or delete it, and begin again",
        ));
    };
    let content = RequestContent {
        source: ContentSource::Text(text),
        // Kept, because the hash of a page covers all text that a reader sees.
        text_hash: document.text_hash,
        // Learned lines are already removed from the stored text; without a place, none are removed again.
        place: ContentTraits::default(),
    };
    let (made, _) = cache.document(settings, &content, false)?;
    Ok(StoredDocument {
        id: document.id,
        expires: document.expires,
        metadata: document.metadata,
        // Category and length belong to the document, whatever the scheme.
        traits: document.traits,
        ..made
    })
}
