//! How the service is: for load balancers and for Prometheus.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::json;

use crate::app::App;
use crate::metric::Gauges;
use crate::problem::Problem;

/// `GET /healthz`: the process answers.
pub(crate) async fn health() -> Response {
    super::json(StatusCode::OK, json!({"status": "ok"}).to_string())
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
                Ok(collection) if collection.health().stopped.is_some() => "stopped",
                Ok(_) => return None,
            };
            Some(json!({"collection": name, "state": state}))
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
    Ok(super::json(
        status,
        json!({"status": word, "collections": wrong, "clock_held": held}).to_string(),
    ))
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
            collections: &collections.collect::<Vec<_>>(),
        }))
    });
    let mut response = Response::new(Body::from(text.await?));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}
