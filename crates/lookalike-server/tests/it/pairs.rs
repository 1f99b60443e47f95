//! Collections that compare only within or across categories, or texts of similar lengths.

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use crate::service::Service;

const STORY: &str =
    "the ferry left the harbour at nine with forty people on board and came back before noon";
const CODE: &str = "00000000000000ff";

async fn with(settings: Value) -> Service {
    let service = Service::new();
    service.create("pages", settings).await.is(201);
    service
}

async fn exported(service: &Service, name: &str) -> String {
    let answer = service.get(&format!("/v1/collections/{name}/export")).await;
    assert_eq!(answer.status, 200);
    answer.text
}

async fn verdict(service: &Service, operation: &str, item: Value) -> Value {
    service.ask(operation, item).await.is(200)["verdict"].clone()
}

#[tokio::test]
async fn documents_of_other_sites_do_not_count_unless_they_are_asked_for() {
    let service = with(json!({"within": "site", "keep": {"texts": true}})).await;
    let shown = service.get("/v1/collections/pages").await.is(200);
    assert_eq!(
        (&shown["within"], shown.get("across")),
        (&json!("site"), None)
    );
    let a = json!({"id": "http://a.example/1", "text": STORY});
    service.ask("insert", a).await.is(200);
    // By the URL, by the id, and by the category itself.
    for (own, item) in [
        (
            true,
            json!({"text": STORY, "url": "https://A.example:443/2"}),
        ),
        (false, json!({"text": STORY, "url": "https://b.example/2"})),
        (
            true,
            json!({"text": STORY, "url": "https://b.example/2", "category": "a.example"}),
        ),
        (false, json!({"text": STORY})),
    ] {
        for operation in ["check", "query"] {
            let expected = if own { "exact" } else { "new" };
            assert_eq!(
                verdict(&service, operation, item.clone()).await,
                expected,
                "{item}"
            );
            let others = format!("{operation}?pairs=across");
            let expected = if own { "new" } else { "exact" };
            assert_eq!(
                verdict(&service, &others, item.clone()).await,
                expected,
                "{item}"
            );
            let all = format!("{operation}?pairs=all");
            assert_eq!(
                verdict(&service, &all, item.clone()).await,
                "exact",
                "{item}"
            );
        }
    }
    let b = json!({"id": "http://b.example/1", "text": STORY});
    let first = service.ask("check-and-insert", b.clone()).await.is(200);
    assert_eq!(
        (&first["verdict"], &first["inserted"]),
        (&json!("new"), &json!(true))
    );
    let second = json!({"id": "http://b.example/2", "text": STORY});
    let second = service.ask("check-and-insert", second).await.is(200);
    assert_eq!(
        (&second["verdict"], &second["copy_of"]),
        (&json!("exact"), &b["id"])
    );
}

#[tokio::test]
async fn texts_of_very_different_lengths_do_not_count() {
    let service = with(json!({"lengths": 0.8})).await;
    assert_eq!(
        service.get("/v1/collections/pages").await.is(200)["lengths"],
        0.8
    );
    let entry = json!({"id": "a", "fingerprint": CODE, "length": 100});
    service.ask("insert", entry).await.is(200);
    for (length, expected) in [
        (80, "same-fingerprint"),
        (79, "new"),
        (125, "same-fingerprint"),
        (126, "new"),
    ] {
        let item = json!({"fingerprint": CODE, "length": length});
        assert_eq!(
            verdict(&service, "check", item.clone()).await,
            expected,
            "{length}"
        );
        assert_eq!(
            verdict(&service, "query", item.clone()).await,
            expected,
            "{length}"
        );
        let any = verdict(&service, "check?lengths=0", item.clone()).await;
        assert_eq!(any, "same-fingerprint");
        let equal = verdict(&service, "check?lengths=1", item).await;
        assert_eq!(equal, "new");
    }
    // A text has its own length.
    service
        .ask("insert", json!({"id": "b", "text": STORY}))
        .await
        .is(200);
    let code = service.ask("get", json!({"id": "b"})).await.is(200)["fingerprint"].clone();
    let item = |length: usize| json!({"fingerprint": code, "length": length});
    assert_eq!(
        verdict(&service, "check?lengths=1", item(STORY.len())).await,
        "same-fingerprint"
    );
    assert_eq!(
        verdict(&service, "check?lengths=1", item(STORY.len() + 1)).await,
        "new"
    );
}

#[tokio::test]
async fn what_is_needed_and_missing_is_said() {
    let service = with(json!({"lengths": 0.5, "across": "lang"})).await;
    let plain = json!({"fingerprint": CODE});
    for operation in ["check", "query"] {
        let refused = service
            .ask(operation, plain.clone())
            .await
            .refuses(422, "invalid");
        assert!(
            refused["remedy"].as_str().unwrap().contains("`length`"),
            "{refused}"
        );
    }
    let packed = Request::post("/v1/collections/pages/check")
        .header("content-type", "application/vnd.lookalike.packed");
    let answer = service
        .send(packed.body(Body::from(vec![0; 8])).unwrap())
        .await;
    answer.refuses(415, "media-type");
    let export = json!({"id": "a", "fingerprint": CODE, "expires_ms": null, "length": 3});
    let refused = service.ask("load", export).await.refuses(422, "invalid");
    assert!(
        refused["detail"].as_str().unwrap().contains("categories"),
        "{refused}"
    );
    for (operation, word) in [
        ("check?lengths=2", "lengths"),
        ("query?lengths=-0.1", "lengths"),
    ] {
        let refused = service
            .ask(operation, plain.clone())
            .await
            .refuses(422, "invalid");
        assert!(
            refused["detail"].as_str().unwrap().contains(word),
            "{refused}"
        );
    }
    let open = Service::with_pages().await;
    for operation in [
        "check?pairs=within",
        "query?pairs=across",
        "check-and-insert?lengths=0.5",
    ] {
        let item = json!({"id": "a", "fingerprint": CODE});
        let item = if operation.starts_with("check-and") {
            item
        } else {
            plain.clone()
        };
        let refused = open.ask(operation, item).await.refuses(422, "invalid");
        assert!(
            // An export has neither, so loading one was refused, too.
            refused["remedy"]
                .as_str()
                .unwrap()
                .contains("insert the texts there"),
            "{refused}"
        );
    }
    assert_eq!(
        verdict(&open, "check?pairs=all&lengths=0", plain).await,
        "new"
    );
    for wrong in [
        json!({"within": "site", "across": "lang"}),
        json!({"lengths": 0}),
        json!({"lengths": 1.5}),
        json!({"within": ""}),
    ] {
        open.create("other", wrong.clone())
            .await
            .refuses(422, "invalid");
    }
}

#[tokio::test]
async fn an_export_has_categories_and_lengths_and_is_loaded_with_them() {
    let settings = json!({"within": "lang", "lengths": 0.5});
    let service = with(settings.clone()).await;
    let entries = json!([
        {"id": "a", "fingerprint": CODE, "length": 10, "category": "en"},
        {"id": "b", "fingerprint": CODE, "length": 30},
    ]);
    service.ask("insert", entries).await.is(200);
    let lines = exported(&service, "pages").await;
    assert!(
        lines.contains("\"category_hash\":null") && lines.contains("\"length\":30"),
        "{lines}"
    );
    service.create("copy", settings).await.is(201);
    service.create("plain", json!({})).await.is(201);
    // The second document has no category that could be dropped.
    let lost = [json!(["category", "length"]), json!(["length"])];
    for (line, lost) in lines.lines().zip(lost) {
        let path = |name: &str| format!("/v1/collections/{name}/load");
        service.post(&path("copy"), line.to_owned()).await.is(200);
        let dropped = service.post(&path("plain"), line.to_owned()).await.is(200);
        assert_eq!(dropped["dropped"], lost);
    }
    assert_eq!(exported(&service, "copy").await, lines);
}
