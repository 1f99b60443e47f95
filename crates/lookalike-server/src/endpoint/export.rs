//! Export of all documents of a collection as of one moment, while others write: one JSON line each, in bounded memory.
//!
//! A separate thread reads the documents and waits for the client to take the lines, so that a slow client holds up nobody else. An export
//! that fails midway is cut off without the final chunk, so that no client takes it for complete.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use futures_util::Stream;
use http_body_util::StreamBody;
use hyper::body::Frame;
use lookalike_corpus::spawn_detached;
use lookalike_store::{Collection, CollectionSettings, StoreError, StoredDocument};
use tokio::sync::mpsc;

use super::collection_request::{CollectionRequest, NoOptions};
use crate::app_state::AppState;
use crate::connection_activity::{ConnectionActivity, RequestInProgress};
use crate::event_log::{LogEntry, LogLevel};
use crate::operation::ApiOperation;
use crate::problem::ProblemDetails;
use crate::request::ExportedDocument;
use crate::response::typed;

/// Number of bytes of lines that are sent at once.
const CHUNK: usize = 64 << 10;
/// Maximum number of chunks that wait to be sent.
const MAX_QUEUED_CHUNKS: usize = 4;
/// Handles `GET /v1/collections/NAME/export`.
pub(crate) async fn export(
    request: CollectionRequest<NoOptions>,
) -> Result<Response, ProblemDetails> {
    let activity = request.activity();
    let CollectionRequest { app, name, .. } = request;
    // First, so that a refused export takes no worker.
    let running = app.begin_export()?;
    let collection = app.on_worker(move |app| app.collection(&name)).await?;
    let (sender, receiver) = mpsc::channel(MAX_QUEUED_CHUNKS);
    let thread = std::thread::Builder::new().name("export".to_owned());
    let started = spawn_detached(thread, move || {
        send(&app, &collection, &sender);
        // Only freed once the last chunk was taken: an export that is read slowly counts until its end.
        drop(running);
    });
    if let Err(error) = started {
        return Err(ProblemDetails::busy(
            "exports",
            format!("no thread for it: {error}"),
        ));
    }
    // The channel is bounded, so a slow client stops the thread that reads the store instead of filling the memory.
    let mut response = typed(StatusCode::OK, "application/jsonl", Bytes::new());
    *response.body_mut() = Body::new(StreamBody::new(frames(receiver, activity)));
    Ok(response)
}

/// A part of an export; `None` after the last one.
type ExportPart = io::Result<Option<Frame<Bytes>>>;
type PartSender = mpsc::Sender<ExportPart>;

/// Returns the parts as a body, which fails unless the final `None` was sent.
fn frames(
    receiver: mpsc::Receiver<ExportPart>,
    activity: Option<Arc<ConnectionActivity>>,
) -> impl Stream<Item = io::Result<Frame<Bytes>>> {
    futures_util::stream::unfold(Some(receiver), move |receiver| {
        let activity = activity.clone();
        async move {
            let mut receiver = receiver?;
            // The connection is idle only while its client does not take what is there.
            let working = activity.as_ref().map(RequestInProgress::begin);
            let part = receiver.recv().await;
            drop(working);
            match part {
                // `None` ends the stream without an error, after which hyper sends the final chunk.
                Some(Ok(frame)) => frame.map(|frame| (Ok(frame), Some(receiver))),
                Some(Err(error)) => Some((Err(error), None)),
                // The thread has panicked: the channel was closed without a final `None`.
                None => Some((Err(io::Error::other("the export was interrupted")), None)),
            }
        }
    })
}

fn send(app: &AppState, collection: &Collection, sender: &PartSender) {
    let mut lines = ExportLines {
        sender,
        bytes: Vec::with_capacity(CHUNK),
        count: 0,
        settings: collection.settings(),
    };
    let done = collection
        .for_each(app.clock.now(), &mut |document| lines.push(&document))
        .and_then(|()| lines.flush());
    app.metrics.documents(ApiOperation::Export, lines.count);
    match done {
        // The client is gone.
        Err(StoreError::Closed) => {}
        Ok(()) => drop(sender.blocking_send(Ok(None))),
        Err(error) => {
            let entry = LogEntry::new(LogLevel::Error, "export-failed");
            app.log.record(&entry.with("reason", error.to_string()));
            // The client is gone, or notices the truncated body.
            let _ = sender.blocking_send(Err(io::Error::other("the export failed")));
        }
    }
}

struct ExportLines<'a> {
    sender: &'a PartSender,
    bytes: Vec<u8>,
    count: usize,
    settings: Arc<CollectionSettings>,
}

impl ExportLines<'_> {
    fn push(&mut self, document: &StoredDocument) -> lookalike_store::Result<()> {
        let exported = ExportedDocument::new(document, &self.settings);
        serde_json::to_writer(&mut self.bytes, &exported)
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
        let sent = self
            .sender
            .blocking_send(Ok(Some(Frame::data(chunk.into()))));
        sent.map_err(|_| StoreError::Closed)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::time::Duration;

    use futures_util::StreamExt as _;
    use tokio::time::timeout;

    use super::*;
    use crate::load_shedding::TimedStream;

    #[tokio::test]
    async fn an_export_of_mostly_deleted_documents_was_cut_off_as_idle() {
        let arrival = TimedStream::new(tokio::io::empty()).arrival();
        let activity = Arc::new(ConnectionActivity::new(arrival));
        let (sender, receiver) = mpsc::channel(MAX_QUEUED_CHUNKS);
        let mut parts = pin!(frames(receiver, Some(Arc::clone(&activity))));
        let pause = Duration::from_millis(20);
        let part = timeout(pause, parts.next()).await;
        assert!(part.is_err(), "there is none yet");
        assert!(!activity.is_idle_for(Duration::ZERO));
        let line = Frame::data(Bytes::from("{}\n"));
        sender.send(Ok(Some(line))).await.expect("a part");
        assert!(parts.next().await.expect("a part").is_ok());
        assert!(
            activity.is_idle_for(Duration::ZERO),
            "the client has to take it"
        );
    }

    #[tokio::test]
    async fn an_export_that_a_panic_cut_off_looked_whole() {
        for is_whole in [true, false] {
            let (sender, receiver) = mpsc::channel(MAX_QUEUED_CHUNKS);
            let line = Frame::data(Bytes::from("{}\n"));
            sender.send(Ok(Some(line))).await.expect("a part");
            if is_whole {
                sender.send(Ok(None)).await.expect("the end");
            }
            // This is what a panic of the thread leaves.
            drop(sender);
            let parts: Vec<_> = frames(receiver, None).collect().await;
            assert!(parts[0].is_ok());
            let last = parts.last().expect("a part");
            assert_eq!(
                (parts.len(), last.is_ok()),
                (2 - usize::from(is_whole), is_whole)
            );
        }
    }
}
