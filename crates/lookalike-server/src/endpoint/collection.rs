//! Operations on collections.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lookalike_store::{Collection, StoreError};
use schemars::JsonSchema;
use serde::Serialize;

use super::asked::{Asked, Cost, Nothing, object};
use super::{held, json};
use crate::app::App;
use crate::log::{Entry, Level};
use crate::problem::Problem;
use crate::request::{ChangedCollection, KeptParts, NewCollection, Written};

/// A collection as it is shown.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Collection")]
pub(crate) struct Shown {
    name: String,
    /// `open`, or `damaged`: then nothing else is known.
    #[schemars(extend("enum" = ["open", "damaged"]))]
    state: &'static str,
    #[serde(flatten)]
    open: Option<Open>,
}

#[derive(Serialize, JsonSchema)]
struct Open {
    /// The whole text of its scheme.
    scheme: String,
    /// 16 hexadecimal digits.
    scheme_id: String,
    /// Largest distance of a query.
    radius: u32,
    /// `null`: documents live for ever, unless they have a time of their own.
    ttl_seconds: Option<u64>,
    keep: KeptParts,
    documents: u64,
    /// Parts that a check looks through; one after it was compacted.
    runs: usize,
    /// Whether one run of all is being made.
    compacting: bool,
    /// False when its disk failed.
    writable: bool,
}

impl Shown {
    fn of(name: String, opened: Result<Arc<Collection>, StoreError>) -> Self {
        match opened {
            Ok(collection) => Self {
                name,
                state: "open",
                open: Some(Open::of(&collection)),
            },
            Err(_) => Self {
                name,
                state: "damaged",
                open: None,
            },
        }
    }
}

impl Open {
    fn of(collection: &Collection) -> Self {
        let (settings, stats) = (collection.settings(), collection.stats());
        Self {
            scheme: settings.scheme.text().to_owned(),
            scheme_id: settings.scheme.id().to_string(),
            radius: settings.radius,
            ttl_seconds: settings.time_to_live.map(|life| life.as_secs()),
            keep: settings.keep.into(),
            documents: stats.documents,
            runs: stats.runs.len(),
            compacting: collection.is_compacting(),
            writable: collection.health().stopped.is_none(),
        }
    }
}

/// `GET /v1/collections`.
pub(crate) async fn list(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let on_worker = Arc::clone(&app);
    let listed = app.workers.run(move |_| {
        let all = on_worker.store.collections().into_iter();
        let shown = all.map(|(name, opened)| Shown::of(name, opened));
        Ok(Written::json(&shown.collect::<Vec<_>>()))
    });
    Ok(json(StatusCode::OK, listed.await?.bytes))
}

/// `GET /v1/collections/NAME`.
pub(crate) async fn show(asked: Asked<Nothing>) -> Result<Response, Problem> {
    let Asked { app, name, .. } = asked;
    let on_worker = Arc::clone(&app);
    let shown = app.workers.run(move |_| {
        let collection = on_worker.collection(&name)?;
        Ok(Written::json(&Shown::of(name, Ok(collection))))
    });
    Ok(json(StatusCode::OK, shown.await?.bytes))
}

/// `PUT /v1/collections/NAME`: makes it; the one that is there when it has the same settings.
pub(crate) async fn create(asked: Asked<Nothing>) -> Result<Response, Problem> {
    let by = asked.by.clone();
    let work = move |app: &App, name: String, body: crate::request::Received| {
        let settings = object::<NewCollection>(&body.bytes, body.form)?.settings()?;
        let known = app.store.collections();
        let is_new = known.iter().all(|(other, _)| *other != name);
        let most = app.limits.collections;
        if is_new && known.len() >= most {
            return Err(Problem::new(
                StatusCode::CONFLICT,
                "too-many-collections",
                format!("there are {most} collections already"),
                "remove one, or start the service with a larger --max-collections",
            ));
        }
        let collection = app.store.create_collection(&name, &settings)?;
        if is_new {
            let entry = Entry::new(Level::Info, "collection-created");
            app.log_change(entry.with("collection", name.as_str()), by.as_ref());
        }
        Ok((is_new, Written::json(&Shown::of(name, Ok(collection)))))
    };
    let ((is_new, shown), permit) = asked.alone(work).await?;
    let mut response = held(shown, permit);
    if is_new {
        *response.status_mut() = StatusCode::CREATED;
    }
    Ok(response)
}

/// `PATCH /v1/collections/NAME`: changes how long documents live that are inserted from now on.
pub(crate) async fn change(asked: Asked<Nothing>) -> Result<Response, Problem> {
    let by = asked.by.clone();
    let work = move |mut task: super::asked::Task<'_>| {
        let life = task.object::<ChangedCollection>()?.time_to_live()?;
        task.collection.set_time_to_live(life)?;
        let name = task.collection.name().to_owned();
        let entry = Entry::new(Level::Info, "collection-changed");
        let entry = entry.with("collection", name.as_str());
        let seconds = life.map(|life| life.as_secs());
        let entry = entry.with("ttl_seconds", seconds);
        task.app.log_change(entry, by.as_ref());
        Ok(Written::json(&Shown::of(name, Ok(task.collection))))
    };
    asked.answer(Cost::default(), work).await
}

/// `POST /v1/collections/NAME/compact`: one run of everything, behind the scenes.
pub(crate) async fn compact(asked: Asked<Nothing>) -> Result<Response, Problem> {
    let by = asked.by.clone();
    let work = move |app: &App, name: String, body: crate::request::Received| {
        if !body.bytes.is_empty() {
            let Nothing {} = object(&body.bytes, body.form)?;
        }
        let collection = app.collection(&name)?;
        collection.compact_later()?;
        let entry = Entry::new(Level::Info, "collection-compacting");
        app.log_change(entry.with("collection", name.as_str()), by.as_ref());
        Ok(Written::json(&Shown::of(name, Ok(collection))))
    };
    let (begun, permit) = asked.alone(work).await?;
    let mut response = held(begun, permit);
    *response.status_mut() = StatusCode::ACCEPTED;
    Ok(response)
}

/// `DELETE /v1/collections/NAME`: removes it with all that is in it.
pub(crate) async fn drop_collection(asked: Asked<Nothing>) -> Result<Response, Problem> {
    let Asked { app, name, by, .. } = asked;
    let on_worker = Arc::clone(&app);
    let dropped = app.workers.run(move |_| {
        let app = on_worker;
        app.store.drop_collection(&name)?;
        let entry = Entry::new(Level::Info, "collection-removed");
        app.log_change(entry.with("collection", name), by.as_ref());
        Ok(())
    });
    dropped.await?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}
