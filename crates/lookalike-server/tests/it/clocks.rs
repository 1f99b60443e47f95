//! Services that are started with a wrong clock.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lookalike_server::{
    AppState, EventLog, LogLevel, ServiceConfig, ServiceLimits, ServiceListeners, serve,
};
use lookalike_store::{Store, StoreOptions, UnixMillis};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::service::{BEGIN, Service, Started};

const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;

fn at(at: u64) -> Started {
    Started {
        at,
        ..Started::default()
    }
}

/// Creates a store with a document that lives for an hour and one that lives forever, last open at [`BEGIN`].
async fn store() -> tempfile::TempDir {
    let service = Service::with_pages().await;
    let documents = json!([
        {"id": "hour", "fingerprint": "00000000000000a1", "ttl_seconds": 3600},
        {"id": "ever", "fingerprint": "ffffffffffffffff"},
    ]);
    service.ask("insert", documents).await.is(200);
    service.stop().await
}

async fn lives(service: &Service, id: &str) -> bool {
    service.ask("get", json!({"id": id})).await.status == 200
}

async fn metric(service: &Service, name: &str) -> f64 {
    let metrics = service.get("/metrics").await;
    let mut lines = metrics.text.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap().parse().unwrap()
}

#[tokio::test]
async fn started_with_a_clock_that_is_weeks_ahead_nothing_expires_and_the_store_is_not_taken_along()
{
    let service = Service::on(store().await, at(BEGIN + 20 * DAY));
    assert!(lives(&service, "hour").await && lives(&service, "ever").await);
    let ready = service.get("/readyz").await.json();
    assert_eq!(ready["clock_held"], true);
    assert!(metric(&service, "lookalike_clock_held").await > 0.0);
    assert!(service.log.lock().unwrap().contains("clock-held"));
    service
        .ask(
            "insert",
            json!({"id": "new", "fingerprint": "00000000000000a1", "ttl_seconds": 60}),
        )
        .await
        .is(200);
    // With the right clock everything is as before.
    let service = Service::on(service.stop().await, at(BEGIN + HOUR / 2));
    // Documents inserted meanwhile live by the other clock, which might have been right.
    assert!(lives(&service, "hour").await && lives(&service, "new").await);
    assert!(metric(&service, "lookalike_clock_held").await < 1.0);
    assert!(metric(&service, "lookalike_time_ahead_seconds").await < 1.0);
}

#[tokio::test]
async fn a_clock_that_is_said_to_be_right_is_believed() {
    let started = Started {
        trust_clock: true,
        ..at(BEGIN + 20 * DAY)
    };
    let service = Service::on(store().await, started);
    assert!(!lives(&service, "hour").await && lives(&service, "ever").await);
    assert_eq!(service.get("/readyz").await.json()["clock_held"], false);
}

#[tokio::test]
async fn data_that_are_ahead_of_the_clock_are_told_and_live_that_much_longer() {
    let service = Service::on(store().await, at(BEGIN - 5 * HOUR));
    let ahead = metric(&service, "lookalike_time_ahead_seconds").await;
    assert!((ahead - 5.0 * 3600.0).abs() < 60.0, "{ahead}");
    assert!(service.log.lock().unwrap().contains("clock-behind"));
    // The hour is counted from the time of the data, not of the clock.
    service.pass(5 * 3600 + 1800);
    assert!(lives(&service, "hour").await);
    assert!(metric(&service, "lookalike_time_ahead_seconds").await < 60.0);
    service.pass(1801);
    assert!(!lives(&service, "hour").await && lives(&service, "ever").await);
}

#[tokio::test]
async fn a_service_that_stopped_in_the_minutes_turn_took_it_for_a_request() {
    let folder = store().await;
    let store = Store::open(folder.path().join("data"), StoreOptions::default()).unwrap();
    let (begun, is_started) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let (told, counts) = (Arc::clone(&begun), Arc::clone(&is_started));
    let clock = move || {
        // In the turn, which goes on while the service stops.
        if counts.load(Ordering::Relaxed) {
            told.notify_one();
            std::thread::sleep(Duration::from_millis(100));
        }
        UnixMillis(BEGIN)
    };
    let log = EventLog::new(LogLevel::Error, |_| {});
    let limits = ServiceLimits::default().drain(Duration::ZERO);
    let config = ServiceConfig::new(Arc::new(clock), log).limits(limits);
    let app = Arc::new(AppState::new(store, config).unwrap());
    is_started.store(true, Ordering::Relaxed);
    let listeners = ServiceListeners {
        main: TcpListener::bind("127.0.0.1:0").await.unwrap(),
        health: None,
    };
    serve(listeners, &app, None, begun.notified(), pending()).await;
    assert!(app.close().await.unwrap(), "no request is in progress");
}

#[tokio::test]
async fn a_service_without_requests_did_not_trust_its_clock_after_a_restart() {
    let folder = store().await;
    let store = Store::open(folder.path().join("data"), StoreOptions::default()).unwrap();
    let asked = Arc::new(Notify::new());
    let told = Arc::clone(&asked);
    let clock = move || {
        told.notify_one();
        UnixMillis(BEGIN + HOUR - 1)
    };
    let log = EventLog::new(LogLevel::Error, |_| {});
    let app = AppState::new(store, ServiceConfig::new(Arc::new(clock), log)).unwrap();
    // The clock is also asked at the start.
    asked.notified().await;
    let app = Arc::new(app);
    let listeners = ServiceListeners {
        main: TcpListener::bind("127.0.0.1:0").await.unwrap(),
        health: None,
    };
    let stop = async { drop(timeout(Duration::from_secs(60), asked.notified()).await) };
    serve(listeners, &app, None, stop, pending()).await;
    assert!(app.close().await.unwrap());
    let service = Service::on(folder, at(BEGIN + 2 * HOUR - 2));
    assert_eq!(service.get("/readyz").await.json()["clock_held"], false);
}
