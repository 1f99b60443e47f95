//! Slow disks, busy workers, and clients that leave.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use lookalike_server::{ApiKeys, KeyRole, NewKey, ServiceLimits};
use lookalike_store::fs::{InjectedFault, SimulatedFs};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::service::{Service, Started};

/// Creates a service with the collection `pages`, whose first write waits until the sender is dropped.
async fn slow_writes(limits: ServiceLimits) -> (Service, mpsc::Sender<()>) {
    let fs = SimulatedFs::new();
    let service = Service::simulated(&fs);
    let settings = json!({"keep": {"texts": true}});
    service.create("pages", settings).await.is(201);
    // An orderly end leaves the mark that the first write removes.
    service.stop().await;
    let service = Service::simulated_within(&fs, limits);
    let (release, held) = mpsc::channel::<()>();
    fs.before("/data/collections/pages/CLEAN", move || {
        let _ = held.recv();
    });
    (service, release)
}

#[tokio::test]
async fn writes_of_clients_that_left_took_memory_beyond_the_limit() {
    let limits = ServiceLimits::default()
        .request_memory(16 << 20)
        .body_bytes(1 << 20)
        .queue_timeout(Duration::from_millis(250));
    let (service, release) = slow_writes(limits).await;
    let text = "ferry ".repeat(50_000);
    let mut is_refused = false;
    for number in 0..12 {
        let insert = service.ask("insert", json!({"id": format!("{number}"), "text": text}));
        // Most clients leave before they get an answer.
        if let Ok(answer) = timeout(Duration::from_millis(1000), insert).await {
            answer.refuses(503, "memory");
            is_refused = true;
            break;
        }
    }
    assert!(is_refused);
    drop(release);
    // Once they are written, they count no more.
    let mut status = 503;
    for _ in 0..100 {
        let insert = service.ask("insert", json!({"id": "last", "text": text}));
        status = insert.await.status;
        if status != 503 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(status, 200);
}

#[tokio::test]
async fn one_client_that_took_no_answer_had_those_of_all_others_refused() {
    let keys =
        ["a", "b"].map(|name| NewKey::make(KeyRole::Admin, name, &[], [name.as_bytes()[0]; 32]));
    let keys = keys.map(Result::unwrap);
    let lines: String = keys.iter().map(|key| key.line.as_str()).collect();
    let limits = ServiceLimits::default()
        .request_memory(64 << 20)
        .body_bytes(1 << 20)
        .queue_timeout(Duration::from_millis(50));
    let service = Service::with(limits, lines.parse().unwrap());
    let ask = |key: usize, method: &str, path: &str, body: Value| {
        let request = Request::builder()
            .method(method)
            .uri(format!("/v1/collections/pages{path}"));
        let request = request.header("content-type", "application/json");
        let request = request.header("authorization", format!("Bearer {}", keys[key].secret));
        service.begin(request.body(Body::from(body.to_string())).unwrap())
    };
    let made = ask(0, "PUT", "", json!({"keep": {"texts": true}})).await;
    assert_eq!(made.status(), 201);
    let item = json!({"id": "a", "text": "ferry ".repeat(150_000)});
    assert_eq!(ask(0, "POST", "/insert", item).await.status(), 200);
    // Forty MiB are for large requests and their answers.
    let mut answers = Vec::new();
    while answers.len() < 100 {
        let answer = ask(0, "POST", "/get?text=true", json!({"id": "a"})).await;
        if answer.status() != 200 {
            break;
        }
        answers.push(answer);
    }
    assert!((20..30).contains(&answers.len()), "{}", answers.len());
    let other = ask(1, "POST", "/get?text=true", json!({"id": "a"})).await;
    assert_eq!(other.status(), 200);
    drop(answers);
    let again = ask(0, "POST", "/get?text=true", json!({"id": "a"})).await;
    assert_eq!(again.status(), 200);
}

#[tokio::test]
async fn a_scrape_during_a_slow_sync_made_the_service_unready() {
    let (service, release) = slow_writes(ServiceLimits::default()).await;
    let write = service.ask(
        "insert",
        json!({"id": "a", "fingerprint": "00000000000000a1"}),
    );
    let scrape = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        service.get("/metrics").await
    };
    let ready = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let ready = timeout(Duration::from_secs(10), service.get("/readyz")).await;
        drop(release);
        ready
    };
    let (write, scrape, ready) = tokio::join!(write, scrape, ready);
    ready.expect("it waits for no sync").is(200);
    assert_eq!((write.status, scrape.status), (200, 200));
}

#[tokio::test]
async fn a_page_of_common_paragraphs_held_a_worker_as_long_as_it_liked() {
    let limits = ServiceLimits::default().work_timeout(Duration::ZERO);
    let service = Service::with(limits, ApiKeys::default());
    let settings = json!({"keep": {"paragraphs": true}});
    service.create("pages", settings).await.is(201);
    let pages = json!([{"hashes": ["00000000000000a1"]}]);
    let answer = service.ask("paragraphs", pages).await;
    // No page is to blame, so clients send fewer.
    assert!(answer.refuses(413, "too-large")["item"].is_null());
    let answer = service.ask("get", json!([{"id": "a"}, {"id": "b"}])).await;
    assert!(answer.refuses(413, "too-large")["item"].is_null());
}

#[tokio::test]
async fn a_stored_text_beyond_the_limit_had_written_documents_sent_again() {
    let service = Service::new();
    let scheme = lookalike_server::default_scheme().to_string();
    let scheme = scheme.replace("shingle=words:5", "shingle=chars:9");
    let settings = json!({"scheme": scheme, "keep": {"texts": true}});
    service.create("pages", settings).await.is(201);
    let large = json!({"id": "large", "text": "long ".repeat(50_000)});
    service.ask("insert", large).await.is(200);
    let limits = ServiceLimits::default()
        .request_memory(4 << 20)
        .body_bytes(4 << 20);
    let started = Started {
        limits,
        ..Started::default()
    };
    let service = Service::on(service.stop().await, started);
    let small = json!({"id": "small", "text": "long ".repeat(500)});
    let answer = service
        .ask("check-and-insert?insert=always", small)
        .await
        .is(200);
    let near = &answer["neighbours"][0];
    assert_eq!(near["id"], "large", "{answer}");
    assert_eq!(near.get("verified"), Some(&json!(null)), "{answer}");
}

#[tokio::test]
async fn verdicts_on_written_documents_were_lost_because_comparing_them_took_long() {
    let limits = ServiceLimits::default().work_timeout(Duration::ZERO);
    let service = Service::with(limits, ApiKeys::default());
    let settings = json!({"keep": {"texts": true}});
    service.create("pages", settings).await.is(201);
    let text = "nobody was on board of the ferry when it left the harbour at nine";
    for id in ["a", "b"] {
        let item = json!({"id": id, "text": text});
        let answer = service
            .ask("check-and-insert?insert=always", item)
            .await
            .is(200);
        assert_eq!(answer["inserted"], true);
        let near = answer["neighbours"].as_array().unwrap();
        assert_eq!(near.len(), usize::from(id == "b"));
        assert!(near.iter().all(|near| near.get("verified").is_none()));
    }
}

#[tokio::test]
async fn a_batch_of_writes_read_all_its_neighbours_however_long_it_took() {
    let limits = ServiceLimits::default().work_timeout(Duration::ZERO);
    let service = Service::with(limits, ApiKeys::default());
    service.create("pages", json!({})).await.is(201);
    let item = |id: &str| json!({"id": id, "fingerprint": "00000000000000a1"});
    service.ask("insert", item("a")).await.is(200);
    let batch = json!([item("b"), item("c")]);
    let answers = service.ask("check-and-insert", batch).await.is(200);
    for (at, (shown, more)) in [(1, false), (0, true)].into_iter().enumerate() {
        let answer = &answers[at];
        assert_eq!(answer["verdict"], "same-fingerprint", "{answer}");
        assert_eq!(answer["neighbours"].as_array().unwrap().len(), shown);
        assert_eq!(answer["more"], more, "{answer}");
    }
    // The cursor leads to them.
    let path = format!("query?after={}", answers[1]["next"].as_str().unwrap());
    let service = Service::on(service.stop().await, Started::default());
    let content = json!({"fingerprint": "00000000000000a1"});
    let answer = service.ask(&path, content).await.is(200);
    assert_eq!(answer["neighbours"][0]["id"], "a", "{answer}");
}

#[tokio::test]
async fn two_snapshots_took_all_workers() {
    let (fs, (release, held)) = (SimulatedFs::new(), mpsc::channel::<()>());
    let service = Service::simulated(&fs);
    let mark = service.folder.path().join("snapshots/first/UNFINISHED");
    let begun = Arc::new(Notify::new());
    let begins = Arc::clone(&begun);
    fs.before(mark, move || {
        begins.notify_one();
        let _ = held.recv();
    });
    let snapshot = |name: &str| service.post("/v1/snapshots", json!({"name": name}).to_string());
    let second = async {
        begun.notified().await;
        let answer = timeout(Duration::from_secs(10), snapshot("second")).await;
        drop(release);
        answer
    };
    // The first fails, because the medium does not have the folder of snapshots.
    let (_, second) = tokio::join!(snapshot("first"), second);
    second.expect("it does not wait").refuses(503, "snapshots");
}

#[tokio::test]
async fn the_log_says_why_flushes_fail() {
    let fs = SimulatedFs::new();
    let service = Service::simulated(&fs);
    service.create("pages", json!({})).await.is(201);
    let document = json!({"id": "a", "fingerprint": "00000000000000a1"});
    service.ask("insert", document).await.is(200);
    service.log_failures();
    assert!(!service.log.lock().unwrap().contains("background-failed"));
    fs.refuse_kind("run", InjectedFault::Io);
    until_flushes_fail(&service).await;
    let log = service.log.lock().unwrap();
    let entry = log.lines().find(|line| line.contains("background-failed"));
    let entry = entry.unwrap();
    for said in ["error ", "pages", "flush", "injected"] {
        assert!(entry.contains(said), "{said}: {entry}");
    }
}

async fn until_flushes_fail(service: &Service) {
    service.ask("compact", json!({})).await.is(202);
    for _ in 0..500 {
        service.log_failures();
        if service.log.lock().unwrap().contains("background-failed") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The disk was called full, so load balancers sent nothing more, although there was room for every insert.
#[tokio::test]
async fn a_run_that_did_not_fit_made_the_service_unready() {
    let fs = SimulatedFs::new();
    let service = Service::simulated(&fs);
    service.create("pages", json!({})).await.is(201);
    let document = json!({"id": "a", "fingerprint": "00000000000000a1"});
    service.ask("insert", document.clone()).await.is(200);
    fs.refuse_kind("run", InjectedFault::Full);
    until_flushes_fail(&service).await;
    service.ask("insert", document).await.is(200);
    service.get("/readyz").await.is(200);
    let metrics = service.get("/metrics").await.text;
    for (gauge, value) in [("disk_full", 0), ("failing", 1)] {
        let line = format!("lookalike_collection_{gauge}{{collection=\"pages\"}} {value}");
        assert!(metrics.lines().any(|found| found == line), "{metrics}");
    }
}
