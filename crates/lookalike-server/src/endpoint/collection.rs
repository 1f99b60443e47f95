//! Operations on collections.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use lookalike_store::{Collection, StoreError};
use serde::Serialize;

use super::{Name, held, json, name};
use crate::app::App;
use crate::log::{Entry, Level};
use crate::problem::Problem;
use crate::request::{NewCollection, Received, parse_one, receive};

/// A collection as it is shown.
#[derive(Serialize)]
struct Shown {
    name: String,
    /// `open`, or `damaged`: then nothing else is known.
    state: &'static str,
    #[serde(flatten)]
    open: Option<Open>,
}

#[derive(Serialize)]
struct Open {
    scheme: String,
    scheme_id: String,
    radius: u32,
    ttl_seconds: Option<u64>,
    documents: u64,
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
        let settings = collection.settings();
        Self {
            scheme: settings.scheme.text().to_owned(),
            scheme_id: settings.scheme.id().to_string(),
            radius: settings.radius,
            ttl_seconds: settings.time_to_live.map(|life| life.as_secs()),
            documents: collection.stats().documents,
            writable: collection.health().stopped.is_none(),
        }
    }
}

fn written(shown: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(shown).expect("answers have keys that are strings")
}

/// `GET /v1/collections`.
pub(crate) async fn list(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let on_worker = Arc::clone(&app);
    let listed = app.workers.run(move |_| {
        let all = on_worker.store.collections().into_iter();
        Ok(written(
            &all.map(|(name, opened)| Shown::of(name, opened))
                .collect::<Vec<_>>(),
        ))
    });
    Ok(json(StatusCode::OK, listed.await?))
}

/// `GET /v1/collections/NAME`.
pub(crate) async fn show(State(app): State<Arc<App>>, path: Name) -> Result<Response, Problem> {
    let name = name(path)?;
    let on_worker = Arc::clone(&app);
    let shown = app.workers.run(move |_| {
        let collection = on_worker.collection(&name)?;
        Ok(written(&Shown::of(name, Ok(collection))))
    });
    Ok(json(StatusCode::OK, shown.await?))
}

/// `PUT /v1/collections/NAME`: makes it; the one that is there when it has the same settings.
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    path: Name,
    request: Request,
) -> Result<Response, Problem> {
    let name = name(path)?;
    let Received { bytes, share } = receive(&app, request, 0).await?;
    let on_worker = Arc::clone(&app);
    let created = app.workers.run(move |_| {
        let app = on_worker;
        let settings = parse_one::<NewCollection>(&bytes)?.settings()?;
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
            app.log.say(&entry.with("collection", name.as_str()));
        }
        Ok((is_new, written(&Shown::of(name, Ok(collection)))))
    });
    let (is_new, shown) = created.await?;
    let mut response = held(shown, share);
    if is_new {
        *response.status_mut() = StatusCode::CREATED;
    }
    Ok(response)
}

/// `DELETE /v1/collections/NAME`: removes it with all that is in it.
pub(crate) async fn drop_collection(
    State(app): State<Arc<App>>,
    path: Name,
) -> Result<Response, Problem> {
    let name = name(path)?;
    let on_worker = Arc::clone(&app);
    let dropped = app.workers.run(move |_| {
        let app = on_worker;
        app.store.drop_collection(&name)?;
        let entry = Entry::new(Level::Info, "collection-removed");
        app.log.say(&entry.with("collection", name));
        Ok(())
    });
    dropped.await?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}
