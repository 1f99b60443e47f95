//! The status of the service, for load balancers and Prometheus.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use lookalike_store::CollectionHealth;
use schemars::JsonSchema;
use serde::Serialize;

use crate::app_state::AppState;
use crate::host;
use crate::metrics::{CollectionMeasurement, GaugeValues};
use crate::problem::ProblemDetails;
use crate::request::EncodedBody;

/// The answer of a running process.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Health")]
pub(crate) struct HealthResponse {
    #[schemars(extend("enum" = ["ok"]))]
    status: &'static str,
}

/// Readiness of the service.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Readiness")]
pub(crate) struct ReadyResponse {
    #[schemars(extend("enum" = ["ready", "not-ready"]))]
    status: &'static str,
    /// Collections that keep the service from being ready.
    collections: Vec<UnreadyCollection>,
    /// True if the clock is ahead of the elapsed time and not trusted.
    clock_held: bool,
}

/// A collection that is not fully usable.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "UnreadyCollection")]
struct UnreadyCollection {
    /// Left out if keys are required, because this answer needs none, and in answers to other hosts than this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    collection: Option<String>,
    #[schemars(extend("enum" = ["damaged", "stopped", "disk-full"]))]
    state: &'static str,
}

/// Handles `GET /healthz`: the process answers.
pub(crate) async fn health() -> Response {
    let answer = EncodedBody::json(&HealthResponse { status: "ok" });
    crate::response::json(StatusCode::OK, answer.bytes)
}

/// Returns the reason why an open collection takes no writes, or `None` if it does.
fn unready(health: &CollectionHealth) -> Option<&'static str> {
    if health.stopped.is_some() {
        Some("stopped")
    } else if health.disk_full {
        Some("disk-full")
    } else {
        None
    }
}

/// Runs `look` on a separate thread, one call at a time for each `turn`, so that it works even if all workers are busy.
///
/// A separate thread is needed because the store may be locked while a collection is created, and threads that serve connections must not
/// wait.
async fn run_outside_pool<T: Send + 'static>(
    app: &Arc<AppState>,
    turn: &tokio::sync::Mutex<()>,
    look: impl FnOnce(&AppState) -> T + Send + 'static,
) -> Result<T, ProblemDetails> {
    let _turn = turn.lock().await;
    let app = Arc::clone(app);
    let looked = tokio::task::spawn_blocking(move || look(&app)).await;
    looked.map_err(|_| ProblemDetails::panic())
}

/// Handles `GET /readyz`: all collections are open and take writes, and the clock is trusted.
pub(crate) async fn ready(
    State(app): State<Arc<AppState>>,
    request: Request,
) -> Result<Response, ProblemDetails> {
    if app.is_stopping() {
        return Err(ProblemDetails::busy("stopping", "the service is stopping"));
    }
    // A page of any site can make its name resolve to this machine, and would read the answer.
    let hides_names = app.keys().are_required() || !host::is_local(&request);
    let wrong = run_outside_pool(&app, &app.ready_turn, move |app| {
        let all = app.store.collections().into_iter();
        let wrong = all.filter_map(|(name, opened)| {
            let state = match opened {
                Err(_) => "damaged",
                Ok(collection) => unready(&collection.health())?,
            };
            Some(UnreadyCollection {
                collection: (!hides_names).then_some(name),
                state,
            })
        });
        wrong.collect::<Vec<_>>()
    });
    let wrong = wrong.await?;
    let held = app.clock.is_held();
    let (status, word) = if wrong.is_empty() && !held {
        (StatusCode::OK, "ready")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not-ready")
    };
    let answer = EncodedBody::json(&ReadyResponse {
        status: word,
        collections: wrong,
        clock_held: held,
    });
    Ok(crate::response::json(status, answer.bytes))
}

/// Handles `GET /metrics`.
pub(crate) async fn metrics(State(app): State<Arc<AppState>>) -> Result<Response, ProblemDetails> {
    let text = run_outside_pool(&app, &app.status_turn, |app| {
        // Documents that have expired by now must not count as live.
        app.observe_time();
        let all = app.store.collections().into_iter();
        let collections = all.map(|(name, opened)| {
            let open = opened.ok();
            (
                name,
                open.map(|open| CollectionMeasurement {
                    stats: open.stats(),
                    health: open.health(),
                    queued: open.queued(),
                }),
            )
        });
        app.metrics.text(&GaugeValues {
            waiting: app.workers.waiting(),
            request_memory: app.memory.in_use(),
            clock_held: app.clock.is_held(),
            time_ahead: app.clock.ahead(),
            collections: &collections.collect::<Vec<_>>(),
        })
    });
    let mut response = Response::new(Body::from(text.await?));
    // The version of Prometheus's text format.
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}
