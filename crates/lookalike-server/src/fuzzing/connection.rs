//! Arbitrary bytes as the data of a connection (heads, bodies, frames), sent in one piece before it is closed.

use std::cell::RefCell;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use hyper::body::{Frame, SizeHint};
use lookalike::Fingerprint;
use lookalike_store::fs::{FileSystem as _, SimulatedFs};
use lookalike_store::{
    CollectionSettings, RetainedParts, Store, StoreOptions, StoredDocument, UnixMillis, WriteOp,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Runtime;

use crate::app_state::AppState;
use crate::config::{ServiceConfig, ServiceLimits};
use crate::event_log::{EventLog, LogLevel};
use crate::listen::serve_stream;
use crate::scheme::default_scheme;

const NOW: UnixMillis = UnixMillis(1_800_000_000_000);
const COLLECTION: &str = "pages";

/// Number of turns of the runtime without progress, with no request or only such that wait for bytes that never come, before the connection
/// is closed.
const IDLE_TURNS: usize = 8;
/// Time limit for the answers on one connection.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let post = |operation: &str, kind: &str, body: &str| {
        format!(
            "POST /v1/collections/pages/{operation} HTTP/1.1\r\nHost: localhost:7280\r\nContent-Type: {kind}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let json = |operation: &str, body: &str| post(operation, "application/json", body);
    let probe = r#"{"fingerprint":"0000000000000007"}"#;
    let one = json("check?radius=1&scheme=0000000000000000", probe);
    let chunked = "POST /v1/collections/pages/check HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n[1,2]\r\n0\r\n\r\n";
    let others = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /metrics HTTP/1.0\r\n\r\n";
    let odd = "GET http://evil.example:80/v1/%63ollections?a=b&a=c HTTP/1.1\r\nhost: a\r\nHost: b\r\nAuthorization: Bearer x\r\n\
               Origin: http://localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nX-Long: 0123456789\r\n\r\n";
    let waits = "PUT /v1/collections/pages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json; charset=utf-8\r\n\
                 Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}";
    let packed = post("check", "application/vnd.lookalike.packed", "12345678");
    let written = json(
        "check-and-insert?insert=always",
        r#"[{"id":"b","text":"a text"}]"#,
    );
    // Settings, the head of `GET /healthz`, and a ping.
    let frames = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x16\x01\x05\0\0\0\x01\x82\x86\x04\x08/healthz\
                   \x41\x09localhost\0\0\x08\x06\0\0\0\0\0abcdefgh";
    let texts = [
        others.to_owned(),
        one,
        chunked.to_owned(),
        odd.to_owned(),
        waits.to_owned(),
        packed,
        written,
        json("query?limit=3&verify=true", r#"[{"text":"a"}]"#),
        "GET /v1/collections/pages/export HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
    ];
    let texts = texts.into_iter().map(String::into_bytes);
    texts.chain([frames.to_vec()]).collect()
}

/// A service with its runtime and state.
struct Harness {
    runtime: Runtime,
    app: Arc<AppState>,
    router: Router,
    progress: Arc<RequestProgress>,
    has_failed: Arc<AtomicBool>,
    /// Size in bytes of each collection's log at the beginning.
    begun: Vec<(String, u64)>,
}

/// The number of requests in progress, and of those that wait for more of their body.
#[derive(Default)]
struct RequestProgress {
    in_progress: AtomicUsize,
    starved: AtomicUsize,
}

impl RequestProgress {
    fn reset(&self) {
        self.in_progress.store(0, Ordering::Relaxed);
        self.starved.store(0, Ordering::Relaxed);
    }

    fn is_quiet(&self) -> bool {
        self.in_progress.load(Ordering::Relaxed) == self.starved.load(Ordering::Relaxed)
    }
}

/// A request body that records when it has to wait.
struct WatchedBody {
    body: Body,
    progress: Arc<RequestProgress>,
    is_starved: bool,
}

impl WatchedBody {
    fn set_starved(&mut self, is_starved: bool) {
        match (self.is_starved, is_starved) {
            (false, true) => self.progress.starved.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.progress.starved.fetch_sub(1, Ordering::Relaxed),
            _ => return,
        };
        self.is_starved = is_starved;
    }
}

impl hyper::body::Body for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        self.set_starved(frame.is_pending());
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for WatchedBody {
    fn drop(&mut self) {
        self.set_starved(false);
    }
}

thread_local! {
    static HARNESS: RefCell<Option<Harness>> = const { RefCell::new(None) };
}

/// Sends the bytes over a connection, and checks that what comes back is an answer and that no error of the program occurred.
pub(super) fn run(bytes: &[u8]) -> Vec<u8> {
    let harness = HARNESS.take().unwrap_or_else(Harness::new);
    let answer = harness.send(bytes);
    assert!(
        !harness.has_failed.load(Ordering::Relaxed),
        "an error of the program"
    );
    let is_answer = answer.starts_with(b"HTTP/1.");
    // HTTP/2 begins with a SETTINGS frame, whose length is less than 64 KiB, so the highest of its three bytes is 0 (RFC 9113 section 4.1).
    let is_second = bytes.starts_with(b"PRI * HTTP/2.0") || !answer.is_empty() && answer[0] == 0;
    assert!(answer.is_empty() || is_answer || is_second);
    // Reuse the service only if it is unchanged, so that every input finds the same.
    if harness.state() == harness.begun {
        HARNESS.set(Some(harness));
    }
    answer
}

fn store() -> Store {
    let fs = SimulatedFs::new();
    let folder = Path::new("/store");
    fs.create_dir(folder).expect("a simulated medium");
    let options = StoreOptions::default().create(true).seed(7);
    let store = Store::open_on(Arc::new(fs), folder, options).expect("a store");
    let settings = CollectionSettings::new(&default_scheme());
    let settings = settings.keep(RetainedParts::default().texts(true));
    let pages = store.create_collection(COLLECTION, &settings);
    let document = StoredDocument {
        text: Some("a text".to_owned()),
        ..StoredDocument::new("a", Fingerprint(7))
    };
    let written = pages
        .expect("a collection")
        .write(vec![WriteOp::Insert(document)], NOW);
    written.expect("a document");
    store
}

impl Harness {
    fn new() -> Self {
        let has_failed = Arc::new(AtomicBool::new(false));
        let failed = Arc::clone(&has_failed);
        let limits = ServiceLimits::default().body_bytes(1 << 16).batch(8);
        let limits = limits.collections(4).workers(1);
        let log = EventLog::new(LogLevel::Error, move |_| {
            // The level lets only errors through.
            failed.store(true, Ordering::Relaxed)
        });
        let config = ServiceConfig::new(Arc::new(|| NOW), log);
        let config = config.limits(limits).trust_clock(true);
        let progress = Arc::<RequestProgress>::default();
        let counted = Arc::clone(&progress);
        let count = from_fn(move |request: Request, next: Next| {
            let progress = Arc::clone(&counted);
            let request = request.map(|body| {
                Body::new(WatchedBody {
                    body,
                    progress: Arc::clone(&progress),
                    is_starved: false,
                })
            });
            async move {
                progress.in_progress.fetch_add(1, Ordering::Relaxed);
                let response = next.run(request).await;
                progress.in_progress.fetch_sub(1, Ordering::Relaxed);
                response
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        let app = Arc::new(AppState::new(store(), config).expect("a service"));
        let mut harness = Self {
            runtime: runtime.expect("a runtime"),
            router: crate::route::router(&app).layer(count),
            progress,
            app,
            has_failed,
            begun: Vec::new(),
        };
        harness.begun = harness.state();
        harness
    }

    /// Returns a state that changes with every write.
    fn state(&self) -> Vec<(String, u64)> {
        let open = self.app.store.collections().into_iter();
        open.map(|(name, opened)| {
            let collection = opened.expect("a simulated medium");
            let life = collection.settings().time_to_live.unwrap_or_default();
            (name, collection.stats().log_bytes + life.as_secs())
        })
        .collect()
    }

    /// Sends the bytes, and returns everything that comes back.
    fn send(&self, bytes: &[u8]) -> Vec<u8> {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (mut reader, mut writer) = tokio::io::split(ours);
        let mut answer = Vec::new();
        let speak = async {
            // The service may close the connection before it has read everything.
            let _ = writer.write_all(bytes).await;
            // A client that has hung up gets no answer, so wait for workers however long they take, but not for the rest of an incomplete
            // body.
            let (begun, mut quiet) = (Instant::now(), 0);
            while quiet < IDLE_TURNS {
                tokio::task::yield_now().await;
                quiet = if self.progress.is_quiet() {
                    quiet + 1
                } else {
                    0
                };
                assert!(begun.elapsed() < ANSWER_TIMEOUT, "no answer");
            }
            let _ = writer.shutdown().await;
        };
        let hear = async {
            let _ = reader.read_to_end(&mut answer).await;
        };
        // Requests of a connection that timed out did not end.
        self.progress.reset();
        let served = serve_stream(&self.app, self.router.clone(), theirs);
        self.runtime
            .block_on(async { tokio::join!(served, speak, hear) });
        answer
    }
}
