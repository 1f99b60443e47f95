//! Snapshots of the open store.

use std::path::Path;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use lookalike_store::is_name;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;

use super::collection_request::{body_bytes, object};
use crate::app_state::AppState;
use crate::client::KeyName;
use crate::event_log::{LogEntry, LogLevel};
use crate::problem::ProblemDetails;
use crate::request::{EncodedBody, NewSnapshot, ReceivedBody, receive};
use crate::response::with_permit;

/// The answer to a request that created a snapshot.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Snapshot")]
pub(crate) struct SnapshotResponse {
    name: String,
    collections: usize,
    files: usize,
    /// Total size of the files; those of runs are shared with the store as long as both have them.
    bytes: u64,
}

/// Handles `POST /v1/snapshots`: creates a snapshot of all collections in the directory given when the service was started.
pub(crate) async fn create(
    State(app): State<Arc<AppState>>,
    request: Request,
) -> Result<Response, ProblemDetails> {
    let by: Option<KeyName> = request.extensions().get().cloned();
    let body = receive(&app, request).await?;
    let permit = app.memory.work(body_bytes(&body)).await?;
    let on_worker = Arc::clone(&app);
    let made = app
        .workers
        .run(move |_| make(&on_worker, &body, by.as_ref()));
    let made = EncodedBody::json(&made.await?);
    Ok(with_permit(StatusCode::CREATED, made, permit))
}

fn make(
    app: &AppState,
    body: &ReceivedBody,
    by: Option<&KeyName>,
) -> Result<SnapshotResponse, ProblemDetails> {
    let NewSnapshot { name } = object(&body.bytes, body.format)?;
    let Some(folder) = &app.snapshots else {
        return Err(ProblemDetails::conflict(
            "no-snapshots",
            "the service has no directory for snapshots",
            "restart it with a directory for snapshots, on the file system of the data",
        ));
    };
    // The name becomes part of a path.
    if !is_name(&name) {
        return Err(ProblemDetails::new(
            StatusCode::BAD_REQUEST,
            "bad-name",
            "this is not a valid name of a snapshot: use 1 to 64 characters of a-z, 0-9, - and _",
            "choose another name",
        ));
    }
    // This occupies a worker as long as it takes: files are linked if possible, and read once for their checksums.
    let summary = app.store.snapshot(Path::new(folder).join(&name))?;
    let entry = LogEntry::new(LogLevel::Info, "snapshot-made").with("name", name.as_str());
    app.log_change(entry.with("bytes", summary.bytes), by);
    Ok(SnapshotResponse {
        name,
        collections: summary.collections,
        files: summary.files,
        bytes: summary.bytes,
    })
}
