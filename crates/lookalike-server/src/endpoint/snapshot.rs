//! Snapshots of the open store.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use lookalike_store::{SnapshotSummary, StoreError, is_name};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::{Arc, TryLockError};

use super::collection_request::{NoOptions, body_bytes, object};
use crate::app_state::AppState;
use crate::client::{KeyName, RequestSender};
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
    _: NoOptions,
    request: Request,
) -> Result<Response, ProblemDetails> {
    let by: Option<KeyName> = request.extensions().get().cloned();
    let client = RequestSender::of(&request);
    let body = receive(&app, request).await?;
    let permit = app.memory.work(client, body_bytes(&body)).await?;
    let made = app.on_worker(move |app| make(app, &body, by.as_ref()));
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
    // This occupies a worker as long as it takes: files are linked if possible, and read once for their checksums. A second one would only
    // wait for the first, on another worker.
    let _alone = match app.snapshotting.try_lock() {
        Ok(alone) => alone,
        // After a panic, too, no other snapshot is being made.
        Err(TryLockError::Poisoned(alone)) => alone.into_inner(),
        Err(TryLockError::WouldBlock) => {
            let reason = "another snapshot is being made";
            return Err(ProblemDetails::busy("snapshots", reason));
        }
    };
    let summary = snapshot_into(app, folder, &name)?;
    let entry = LogEntry::new(LogLevel::Info, "snapshot-made").with("name", name.as_str());
    app.log_change(entry.with("bytes", summary.bytes), by);
    Ok(SnapshotResponse {
        name,
        collections: summary.collections,
        files: summary.files,
        bytes: summary.bytes,
    })
}

fn snapshot_into(
    app: &AppState,
    folder: &Path,
    name: &str,
) -> Result<SnapshotSummary, ProblemDetails> {
    let unusable = |error: String| {
        ProblemDetails::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "storage",
            "the directory of the snapshots cannot be used",
            "see the log of the service for the reason",
        )
        .with_operator_detail(error)
    };
    let usable = |done: io::Result<()>| {
        done.map_err(|error| unusable(format!("{}: {error}", folder.display())))
    };
    // It may have been removed since the start, for example together with old snapshots. As then, only its owner may read it.
    usable(DirBuilder::new().recursive(true).mode(0o700).create(folder))?;
    let made = app.store.snapshot(folder.join(name));
    let summary = made.map_err(|error| match &error {
        StoreError::DiskFull { path } if path.starts_with(folder) => ProblemDetails::new(
            StatusCode::INSUFFICIENT_STORAGE,
            "disk-full",
            "the disk of the snapshots is full, so no snapshot was made",
            "free some space there, for example by removing old snapshots, and send the request again",
        )
        .with_operator_detail(error.to_string()),
        StoreError::Io { path, .. } if path.starts_with(folder) => unusable(error.to_string()),
        _ => error.into(),
    })?;
    // The store syncs the directory that it opened first, which may be the removed one.
    usable(File::open(folder).and_then(|folder| folder.sync_all()))?;
    Ok(summary)
}
