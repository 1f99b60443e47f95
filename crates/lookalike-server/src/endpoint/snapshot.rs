//! Snapshots of a store that is open.

use std::path::Path;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;

use super::asked::{body_bytes, object};
use super::held;
use crate::app::App;
use crate::gate::KeyName;
use crate::log::{Entry, Level};
use crate::problem::Problem;
use crate::request::{NewSnapshot, Received, Written, receive};

/// The answer when a snapshot was made.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Snapshot")]
pub(crate) struct Made {
    name: String,
    collections: usize,
    files: usize,
    /// Those of runs are shared with the store as long as both have them.
    bytes: u64,
}

/// `POST /v1/snapshots`: a snapshot of all collections, in the directory that the service was started with.
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Problem> {
    let by: Option<KeyName> = request.extensions().get().cloned();
    let body = receive(&app, request).await?;
    let permit = app.memory.work(body_bytes(&body)).await?;
    let on_worker = Arc::clone(&app);
    let made = app
        .workers
        .run(move |_| make(&on_worker, &body, by.as_ref()));
    let mut response = held(Written::json(&made.await?), permit);
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

fn make(app: &App, body: &Received, by: Option<&KeyName>) -> Result<Made, Problem> {
    let NewSnapshot { name } = object(&body.bytes, body.form)?;
    let Some(folder) = &app.snapshots else {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "no-snapshots",
            "the service was started without a directory for snapshots",
            "start it with --snapshots DIR, on the file system of the data",
        ));
    };
    check_name(&name)?;
    let summary = app.store.snapshot(&Path::new(folder).join(&name))?;
    let entry = Entry::new(Level::Info, "snapshot-made").with("name", name.as_str());
    app.log_change(entry.with("bytes", summary.bytes), by);
    Ok(Made {
        name,
        collections: summary.collections,
        files: summary.files,
        bytes: summary.bytes,
    })
}

/// Names are no paths.
fn check_name(name: &str) -> Result<(), Problem> {
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    if (1..=64).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::BAD_REQUEST,
        "bad-name",
        "this is no name of a snapshot: 1 to 64 of a-z, 0-9, - and _",
        "choose another name",
    ))
}
