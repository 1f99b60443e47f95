//! Metrics and logs: what operators must see, and what must never appear.

use serde_json::json;

use crate::service::Service;

#[tokio::test]
async fn requests_are_counted_and_ids_and_texts_told_nowhere() {
    let service = Service::with_pages().await;
    let entry = json!({"id": "secret-id", "text": "a secret text of several words that nobody may read", "metadata": "secret-data"});
    service
        .ask("check-and-insert", json!([entry, entry]))
        .await
        .is(200);
    service
        .ask("check", json!({"fingerprint": "00"}))
        .await
        .refuses(422, "invalid");
    service
        .ask("get", json!({"id": "secret-other"}))
        .await
        .refuses(404, "no-document");
    service.get("/secret-path").await.refuses(404, "no-route");
    let page = service.get("/metrics").await;
    assert_eq!(page.status, 200);
    for line in [
        "lookalike_requests_total{operation=\"check-and-insert\",status=\"200\"} 1",
        "lookalike_requests_total{operation=\"check\",status=\"422\"} 1",
        "lookalike_requests_total{operation=\"get\",status=\"404\"} 1",
        "lookalike_requests_total{operation=\"other\",status=\"404\"} 1",
        "lookalike_documents_total{operation=\"check-and-insert\"} 2",
        "lookalike_collection_documents{collection=\"pages\"} 1",
        "lookalike_collection_writable{collection=\"pages\"} 1",
        "lookalike_collection_open{collection=\"pages\"} 1",
    ] {
        assert!(
            page.text.lines().any(|found| found == line),
            "{line} is not in\n{}",
            page.text
        );
    }
    let log = service.log.lock().unwrap();
    assert!(
        log.contains("\"operation\":\"check-and-insert\"") && log.contains("collection-created"),
        "{log}"
    );
    assert!(
        !log.contains("secret") && !page.text.contains("secret"),
        "{log}{}",
        page.text
    );
}

#[tokio::test]
async fn a_service_whose_collections_are_open_is_ready() {
    let service = Service::with_pages().await;
    assert_eq!(
        service.get("/healthz").await.is(200),
        json!({"status": "ok"})
    );
    assert_eq!(
        service.get("/readyz").await.is(200),
        json!({"status": "ready", "collections": [], "clock_held": false})
    );
}
