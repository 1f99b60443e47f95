//! All documents of a collection, of one moment, while others write: a line of JSON each, in bounded memory.
//!
//! A thread of its own reads and waits for whoever takes the lines, so that a slow reader holds up nobody else. An export that
//! fails on its way is cut off without its last chunk: no client takes it for whole.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use http_body_util::StreamBody;
use hyper::body::Frame;
use lookalike_store::{Collection, Document, StoreError};
use tokio::sync::mpsc;

use super::asked::{Asked, Nothing};
use super::document::Shown;
use super::typed;
use crate::app::App;
use crate::log::{Entry, Level};
use crate::operation::Operation;
use crate::problem::Problem;

/// Bytes of lines that are sent at once.
const CHUNK: usize = 64 << 10;
/// Chunks that wait to be sent.
const AHEAD: usize = 4;
/// Exports at a time.
const MOST: usize = 2;

/// How many exports run.
#[derive(Debug, Default)]
pub(crate) struct Exports(Arc<AtomicUsize>);

/// One of them, until it is dropped.
struct Running(Arc<AtomicUsize>);

impl Exports {
    fn begin(&self) -> Result<Running, Problem> {
        let running = Running(Arc::clone(&self.0));
        if running.0.fetch_add(1, Ordering::Relaxed) < MOST {
            return Ok(running);
        }
        Err(Problem::busy(
            "exports",
            format!("{MOST} exports run already"),
        ))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// `GET /v1/collections/NAME/export`.
pub(crate) async fn export(asked: Asked<Nothing>) -> Result<Response, Problem> {
    let Asked { app, name, .. } = asked;
    let running = app.exports.begin()?;
    let on_worker = Arc::clone(&app);
    let collection = app
        .workers
        .run(move |_| on_worker.collection(&name))
        .await?;
    let (sender, receiver) = mpsc::channel(AHEAD);
    let started = std::thread::Builder::new()
        .name("export".to_owned())
        .spawn(move || {
            send(&app, &collection, &sender);
            drop(running);
        });
    if let Err(error) = started {
        return Err(Problem::busy(
            "exports",
            format!("no thread for it: {error}"),
        ));
    }
    let frames = futures_util::stream::unfold(receiver, |mut receiver| async {
        let frame = receiver.recv().await?;
        Some((frame, receiver))
    });
    let mut response = typed(StatusCode::OK, "application/jsonl", Bytes::new());
    *response.body_mut() = Body::new(StreamBody::new(frames));
    Ok(response)
}

type Sender = mpsc::Sender<io::Result<Frame<Bytes>>>;

fn send(app: &App, collection: &Collection, sender: &Sender) {
    let mut lines = Lines {
        sender,
        bytes: Vec::with_capacity(CHUNK),
        count: 0,
    };
    let done = collection
        .for_each(app.now(), &mut |document| lines.push(&document))
        .and_then(|()| lines.flush());
    app.metrics.documents(Operation::Export, lines.count);
    match done {
        // Whoever asked has gone.
        Err(StoreError::Closed) | Ok(()) => {}
        Err(error) => {
            let entry = Entry::new(Level::Error, "export-failed");
            app.log.say(&entry.with("reason", error.to_string()));
            // It is gone, or is told by the end that comes too early.
            let _ = sender.blocking_send(Err(io::Error::other("the export failed")));
        }
    }
}

struct Lines<'a> {
    sender: &'a Sender,
    bytes: Vec<u8>,
    count: usize,
}

impl Lines<'_> {
    fn push(&mut self, document: &Document) -> lookalike_store::Result<()> {
        serde_json::to_writer(&mut self.bytes, &Shown::of(document))
            .expect("documents have keys that are strings");
        self.bytes.push(b'\n');
        self.count += 1;
        if self.bytes.len() < CHUNK {
            return Ok(());
        }
        self.flush()
    }

    fn flush(&mut self) -> lookalike_store::Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        let chunk = std::mem::replace(&mut self.bytes, Vec::with_capacity(CHUNK));
        let sent = self.sender.blocking_send(Ok(Frame::data(chunk.into())));
        sent.map_err(|_| StoreError::Closed)
    }
}
