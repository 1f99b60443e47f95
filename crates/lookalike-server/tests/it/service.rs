//! A service with a store of its own, and a clock and a log that tests control.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::BodyExt as _;
use lookalike_server::{
    ApiKeys, AppState, EventLog, LogLevel, ServiceConfig, ServiceLimits, router,
};
use lookalike_store::fs::SimulatedFs;
use lookalike_store::{Store, StoreOptions, UnixMillis};
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt as _;

/// Time at which tests begin, in milliseconds since 1970.
pub(crate) const BEGIN: u64 = 1_800_000_000_000;

/// Options for starting a service.
pub(crate) struct Started {
    pub(crate) limits: ServiceLimits,
    pub(crate) keys: ApiKeys,
    /// Time of the clock at the start, in milliseconds since 1970.
    pub(crate) at: u64,
    pub(crate) trust_clock: bool,
}

impl Default for Started {
    fn default() -> Self {
        Self {
            limits: ServiceLimits::default(),
            keys: ApiKeys::default(),
            at: BEGIN,
            trust_clock: false,
        }
    }
}

pub(crate) struct Service {
    router: Router,
    service: Arc<AppState>,
    clock: Arc<AtomicU64>,
    /// Log entries of all levels.
    pub(crate) log: Arc<Mutex<String>>,
    pub(crate) folder: TempDir,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    /// Checks the status and returns the JSON.
    #[track_caller]
    pub(crate) fn is(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        self.json()
    }

    /// Checks that the answer is a problem with this status and code, in the right form.
    #[track_caller]
    pub(crate) fn refuses(&self, status: u16, code: &str) -> Value {
        let problem = self.is(status);
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(
            (&problem["code"], &problem["status"]),
            (&json!(code), &json!(status))
        );
        for field in ["type", "title", "detail", "remedy"] {
            assert!(
                problem[field].as_str().is_some_and(|text| !text.is_empty()),
                "{problem}"
            );
        }
        problem
    }
}

impl Service {
    pub(crate) fn new() -> Self {
        Self::with(ServiceLimits::default(), ApiKeys::default())
    }

    pub(crate) fn with(limits: ServiceLimits, keys: ApiKeys) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let setup = Started {
            limits,
            keys,
            ..Started::default()
        };
        Self::on(folder, setup)
    }

    /// Shuts the service down in order, and returns the folder of its store.
    pub(crate) async fn stop(self) -> TempDir {
        let Self {
            router,
            service,
            folder,
            ..
        } = self;
        drop(router);
        service.close().await.unwrap();
        folder
    }

    /// Creates a service for the store in a folder.
    pub(crate) fn on(folder: TempDir, started: Started) -> Self {
        let options = StoreOptions::default().create(true);
        let store = Store::open(folder.path().join("data"), options).unwrap();
        Self::of(store, folder, started)
    }

    /// Creates a service for a store in the folder `/data` of a simulated medium.
    pub(crate) fn simulated(fs: &SimulatedFs) -> Self {
        Self::simulated_within(fs, ServiceLimits::default())
    }

    /// Creates the same service with other limits.
    pub(crate) fn simulated_within(fs: &SimulatedFs, limits: ServiceLimits) -> Self {
        let options = StoreOptions::default().create(true);
        let store = Store::open_on(Arc::new(fs.clone()), Path::new("/data"), options).unwrap();
        let started = Started {
            limits,
            ..Started::default()
        };
        Self::of(store, tempfile::tempdir().unwrap(), started)
    }

    /// Does what `serve` does every minute.
    pub(crate) fn log_failures(&self) {
        self.service.log_failures();
    }

    fn of(store: Store, folder: TempDir, started: Started) -> Self {
        let Started {
            limits,
            keys,
            at,
            trust_clock,
        } = started;
        let snapshots = folder.path().join("snapshots");
        std::fs::create_dir_all(&snapshots).unwrap();
        let clock = Arc::new(AtomicU64::new(at));
        let log = Arc::new(Mutex::new(String::new()));
        let (told, said) = (Arc::clone(&clock), Arc::clone(&log));
        let log_sink = EventLog::new(LogLevel::Debug, move |entry| {
            let line = format!("{} {} {}\n", entry.level, entry.event, json!(entry.fields));
            said.lock().unwrap().push_str(&line);
        });
        let now = move || UnixMillis(told.load(Ordering::Relaxed));
        let config = ServiceConfig::new(Arc::new(now), log_sink)
            .keys(keys)
            .limits(limits)
            .trust_clock(trust_clock)
            .snapshots(snapshots);
        let service = Arc::new(AppState::new(store, config).unwrap());
        Self {
            router: router(&service),
            service,
            clock,
            log,
            folder,
        }
    }

    /// Creates a service with the collection `pages`.
    pub(crate) async fn with_pages() -> Self {
        let service = Self::new();
        service.create("pages", json!({})).await.is(201);
        service
    }

    /// Advances the clock.
    pub(crate) fn pass(&self, seconds: u64) {
        self.clock.fetch_add(seconds * 1000, Ordering::Relaxed);
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let (status, headers, bytes) = self.send_for_bytes(request).await;
        Answer {
            status,
            headers,
            text: String::from_utf8(bytes).unwrap(),
        }
    }

    /// Returns a response whose body was not read.
    pub(crate) async fn begin(&self, mut request: Request<Body>) -> Response<Body> {
        // HTTP/1.1 demands one.
        let host = request.headers_mut().entry("host");
        host.or_insert(HeaderValue::from_static("localhost"));
        self.router.clone().oneshot(request).await.unwrap()
    }

    pub(crate) async fn send_for_bytes(&self, request: Request<Body>) -> (u16, HeaderMap, Vec<u8>) {
        let (parts, body) = self.begin(request).await.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        (parts.status.as_u16(), parts.headers, bytes.to_vec())
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(Body::empty()).unwrap())
            .await
    }

    pub(crate) async fn create(&self, name: &str, settings: Value) -> Answer {
        let path = format!("/v1/collections/{name}");
        let request = Request::put(path).header("content-type", "application/json");
        self.send(request.body(Body::from(settings.to_string())).unwrap())
            .await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(Request::delete(path).body(Body::empty()).unwrap())
            .await
    }

    /// Posts to an operation of the collection `pages`.
    pub(crate) async fn ask(&self, operation: &str, body: Value) -> Answer {
        self.post(
            &format!("/v1/collections/pages/{operation}"),
            body.to_string(),
        )
        .await
    }

    pub(crate) async fn post(&self, path: &str, body: String) -> Answer {
        let request = Request::post(path).header("content-type", "application/json");
        self.send(request.body(Body::from(body)).unwrap()).await
    }
}
