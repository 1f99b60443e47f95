//! Operations for operators: changing, exporting, snapshots, and the description.

use axum::body::Body;
use axum::http::Request;
use lookalike::{Scheme, Sketch};
use lookalike_store::{Store, StoreOptions, restore};
use serde_json::{Value, json};

use crate::service::{BEGIN, Service};

const PACKED: &str = "application/vnd.lookalike.packed";

async fn patch(service: &Service, body: Value) -> crate::service::Answer {
    let request =
        Request::patch("/v1/collections/pages").header("content-type", "application/json");
    let body = Body::from(body.to_string());
    service.send(request.body(body).unwrap()).await
}

#[tokio::test]
async fn the_time_to_live_changes_for_what_comes_after() {
    let service = Service::with_pages().await;
    let entry = |id: &str, code: &str| json!({"id": id, "fingerprint": code});
    service
        .ask("insert", entry("a", "0000000000000000"))
        .await
        .is(200);
    let changed = patch(&service, json!({"ttl_seconds": 60})).await.is(200);
    assert_eq!(changed["ttl_seconds"], 60);
    service
        .ask("insert", entry("b", "ffffffffffffffff"))
        .await
        .is(200);
    let shown = service
        .ask("get", json!([{"id": "a"}, {"id": "b"}]))
        .await
        .is(200);
    assert_eq!(
        (shown[0].get("expires_ms"), &shown[1]["expires_ms"]),
        (Some(&Value::Null), &json!(BEGIN + 60_000))
    );
    let forever = patch(&service, json!({"ttl_seconds": null})).await.is(200);
    assert_eq!(forever["ttl_seconds"], Value::Null);
    patch(&service, json!({})).await.refuses(422, "invalid");
    patch(&service, json!({"ttl_seconds": 0}))
        .await
        .refuses(422, "invalid");
    patch(&service, json!({"radius": 4}))
        .await
        .refuses(422, "invalid");
}

#[tokio::test]
async fn a_collection_is_compacted_behind_the_scenes() {
    let service = Service::with_pages().await;
    let entry = json!({"id": "a", "fingerprint": "0000000000000000"});
    service.ask("insert", entry).await.is(200);
    service
        .ask("compact", json!({"now": true}))
        .await
        .refuses(422, "invalid");
    let begun = service.ask("compact", json!({})).await.is(202);
    assert_eq!(begun["name"], "pages");
    let begun = std::time::Instant::now();
    loop {
        let shown = service.get("/v1/collections/pages").await.is(200);
        if shown["compacting"] == false {
            assert_eq!(
                (&shown["runs"], &shown["documents"]),
                (&json!(1), &json!(1))
            );
            break;
        }
        assert!(begun.elapsed().as_secs() < 60, "{shown}");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let none = service.post("/v1/collections/none/compact", String::new());
    none.await.refuses(404, "no-collection");
}

#[tokio::test]
async fn an_export_has_every_document_that_lives() {
    let service = Service::with_pages().await;
    let batch: Vec<Value> = (0..900)
        .map(|n| json!({"id": format!("page {n}"), "fingerprint": format!("{n:016x}"), "metadata": n}))
        .collect();
    service.ask("insert", json!(batch)).await.is(200);
    service.ask("delete", json!({"id": "page 7"})).await.is(200);
    service
        .ask(
            "insert",
            json!({"id": "short", "text": "", "ttl_seconds": 1}),
        )
        .await
        .is(200);
    service.pass(2);
    let exported = service.get("/v1/collections/pages/export").await;
    assert_eq!(
        (exported.status, &exported.headers["content-type"]),
        (200, &"application/jsonl".parse().unwrap())
    );
    let lines: Vec<Value> = exported
        .text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut wanted: Vec<Value> = batch;
    wanted.remove(7);
    let scheme = service.get("/v1/collections/pages").await.is(200)["scheme_id"].clone();
    for line in &mut wanted {
        line["expires_ms"] = Value::Null;
        line["scheme_id"] = scheme.clone();
    }
    assert_eq!(lines, wanted);
    service
        .get("/v1/collections/none/export")
        .await
        .refuses(404, "no-collection");
}

#[tokio::test]
async fn a_snapshot_of_an_open_service_is_a_store_when_it_is_restored() {
    let service = Service::with_pages().await;
    service
        .ask(
            "insert",
            json!({"id": "a", "fingerprint": "0000000000000001"}),
        )
        .await
        .is(200);
    let snapshot = |name: &str| service.post("/v1/snapshots", json!({"name": name}).to_string());
    let made = snapshot("monday").await.is(201);
    assert_eq!(made["collections"], 1);
    snapshot("monday").await.refuses(422, "invalid");
    for name in ["../x", "", "A", "a/b"] {
        snapshot(name).await.refuses(400, "bad-name");
    }
    let folder = service.folder.path();
    let restored = folder.join("restored");
    restore(folder.join("snapshots/monday"), &restored).unwrap();
    let store = Store::open(&restored, StoreOptions::default()).unwrap();
    assert_eq!(store.collection("pages").unwrap().stats().documents, 1);
}

async fn packed(service: &Service, operation: &str, body: Vec<u8>) -> (u16, Vec<u8>, String) {
    let path = format!("/v1/collections/pages/{operation}");
    let request = Request::post(path).header("content-type", PACKED);
    let answer = service
        .send_for_bytes(request.body(Body::from(body)).unwrap())
        .await;
    (
        answer.0,
        answer.2,
        answer.1["content-type"].to_str().unwrap().to_owned(),
    )
}

#[tokio::test]
async fn a_compact_batch_for_fingerprints_of_another_width_was_told_it_was_cut_short() {
    let service = Service::new();
    let scheme = Scheme::default().sketch(Sketch::Simhash32).to_string();
    service
        .create("pages", json!({"scheme": scheme}))
        .await
        .is(201);
    for (operation, bytes) in [("check", 4), ("check", 8), ("insert", 7)] {
        let (status, answer, _) = packed(&service, operation, vec![0; bytes]).await;
        let told = String::from_utf8(answer).unwrap();
        assert_eq!(status, 415, "{told}");
        assert!(told.contains("fingerprints of 32 bits"), "{told}");
    }
}

#[tokio::test]
async fn a_compact_batch_does_what_a_batch_of_json_does() {
    let service = Service::with_pages().await;
    let entry = |code: u64, id: &str| {
        let mut bytes = code.to_le_bytes().to_vec();
        bytes.extend((id.len() as u16).to_le_bytes());
        bytes.extend(id.as_bytes());
        bytes
    };
    let codes = |codes: &[u64]| {
        codes
            .iter()
            .flat_map(|code| code.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let entries = [entry(0xff, "a"), entry(0xfe, "b"), entry(1 << 60, "c")].concat();
    let (status, answer, kind) = packed(&service, "check-and-insert", entries).await;
    assert_eq!((status, kind.as_str()), (200, PACKED));
    assert_eq!(
        answer,
        [0xff, 1, 0xff],
        "new and inserted, near, new and inserted"
    );
    let (_, answer, _) = packed(&service, "check", codes(&[0xff, 0xf8, 0xffff])).await;
    assert_eq!(answer, [0, 3, 0x7f]);
    let (_, answer, _) = packed(&service, "insert", [entry(7, "a"), entry(9, "d")].concat()).await;
    assert_eq!(answer, [0xff, 0x7f], "one is replaced, the other not");
    let ids = [&[1, 0, b'a', 1, 0, b'z'][..]].concat();
    let (_, answer, _) = packed(&service, "delete", ids).await;
    assert_eq!(answer, [0xff, 0x7f], "one existed, the other not");
    let (status, _, _) = packed(&service, "check", vec![0; 9]).await;
    assert_eq!(status, 400);
    let (status, _, _) = packed(&service, "check", vec![0; 8 * 1001]).await;
    assert_eq!(status, 413);
    let (_, answer, _) = packed(&service, "check", Vec::new()).await;
    assert!(answer.is_empty());
    let answer = service
        .ask("check", json!({"fingerprint": "0000000000000009"}))
        .await
        .is(200);
    assert_eq!(answer["verdict"], "same-fingerprint");
}

#[tokio::test]
async fn the_description_and_the_page_are_served_to_everybody() {
    let service = Service::new();
    let described = service.get("/openapi.json").await.is(200);
    assert_eq!(described["openapi"], "3.1.0");
    let page = service.get("/").await;
    assert_eq!(page.status, 200);
    assert!(
        page.headers["content-security-policy"]
            .to_str()
            .unwrap()
            .contains("default-src 'none'")
    );
    for elsewhere in ["http://", "https://", "//cdn"] {
        assert!(
            !page.text.contains(elsewhere),
            "it needs nothing from {elsewhere}"
        );
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn each_snapshot_left_the_folders_open_that_it_had_made() {
    let service = Service::with_pages().await;
    service.create("others", json!({})).await.is(201);
    for name in ["monday", "tuesday"] {
        let body = json!({"name": name}).to_string();
        service.post("/v1/snapshots", body).await.is(201);
    }
    let snapshots = service.folder.path().join("snapshots");
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let open = open.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
    let below: Vec<_> = open
        .filter(|path| path.starts_with(&snapshots) && *path != snapshots)
        .collect();
    assert!(below.is_empty(), "{below:?}");
}
