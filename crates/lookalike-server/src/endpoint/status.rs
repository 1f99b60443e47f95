//! How the service is: for load balancers and for Prometheus.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use lookalike_store::Health;
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::App;
use crate::metric::{Gauges, is_disk_full};
use crate::problem::Problem;
use crate::request::Written;

/// The answer of a process that is there.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Healthy {
    #[schemars(extend("enum" = ["ok"]))]
    status: &'static str,
}

/// Whether requests can be answered.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Readiness {
    #[schemars(extend("enum" = ["ready", "not-ready"]))]
    status: &'static str,
    /// Those that keep the service from being ready.
    collections: Vec<Unready>,
    /// Whether the clock is ahead of what went by, and not believed.
    clock_held: bool,
}

/// A collection that does not do all it should.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "UnreadyCollection")]
struct Unready {
    collection: String,
    #[schemars(extend("enum" = ["damaged", "stopped", "disk-full"]))]
    state: &'static str,
}

/// `GET /healthz`: the process answers.
pub(crate) async fn health() -> Response {
    let answer = Written::json(&Healthy { status: "ok" });
    super::json(StatusCode::OK, answer.bytes)
}

/// Why a collection that is open takes no writes.
fn unready(health: &Health) -> Option<&'static str> {
    if health.stopped.is_some() {
        Some("stopped")
    } else if is_disk_full(health) {
        Some("disk-full")
    } else {
        None
    }
}

/// `GET /readyz`: all collections are open and take writes, and the clock is believed.
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    if app.is_stopping() {
        return Err(Problem::busy("stopping", "the service is stopping"));
    }
    let on_worker = Arc::clone(&app);
    let wrong = app.workers.run(move |_| {
        let all = on_worker.store.collections().into_iter();
        let wrong = all.filter_map(|(name, opened)| {
            let state = match opened {
                Err(_) => "damaged",
                Ok(collection) => unready(&collection.health())?,
            };
            Some(Unready {
                collection: name,
                state,
            })
        });
        Ok(wrong.collect::<Vec<_>>())
    });
    let wrong = wrong.await?;
    let held = app.is_clock_held();
    let (status, word) = if wrong.is_empty() && !held {
        (StatusCode::OK, "ready")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not-ready")
    };
    let answer = Written::json(&Readiness {
        status: word,
        collections: wrong,
        clock_held: held,
    });
    Ok(super::json(status, answer.bytes))
}

/// `GET /metrics`.
pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let on_worker = Arc::clone(&app);
    let text = app.workers.run(move |_| {
        let app = on_worker;
        let all = app.store.collections().into_iter();
        let collections = all.map(|(name, opened)| {
            let open = opened.ok();
            (
                name,
                open.map(|open| (open.stats(), open.health(), open.queued())),
            )
        });
        Ok(app.metrics.text(&Gauges {
            waiting: app.workers.waiting(),
            request_memory: app.memory.taken(),
            clock_held: app.is_clock_held(),
            time_ahead: app.time_ahead(),
            collections: &collections.collect::<Vec<_>>(),
        }))
    });
    let mut response = Response::new(Body::from(text.await?));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}
