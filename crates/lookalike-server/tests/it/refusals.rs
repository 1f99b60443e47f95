//! Refusals, with their status and code.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use bytes::Bytes;
use http_body_util::StreamBody;
use lookalike_server::{ApiKeys, ServiceLimits};
use serde_json::json;

use crate::service::Service;

#[tokio::test]
async fn wrong_requests_are_told_what_is_wrong() {
    let service = Service::with_pages().await;
    let code = "0123456789abcdef";
    for (operation, body, status, problem) in [
        ("check", "{", 400, "malformed"),
        ("check", "", 400, "malformed"),
        ("check", "{\"text\":\"\\ud800\"}", 400, "malformed"),
        ("check", "\"text\"", 422, "invalid"),
        ("check", "{}", 422, "invalid"),
        ("check", "{\"text\":\"a\",\"html\":\"b\"}", 422, "invalid"),
        ("check", "{\"texts\":\"a\"}", 422, "invalid"),
        ("check", "{\"fingerprint\":\"12\"}", 422, "invalid"),
        ("check", "{\"fingerprint\":12}", 422, "invalid"),
        ("check?radius=4", "{\"text\":\"a\"}", 422, "invalid"),
        ("check?radius=x", "{\"text\":\"a\"}", 400, "malformed"),
        ("check?limit=1", "{\"text\":\"a\"}", 400, "malformed"),
        ("check?scheme=1", "{\"text\":\"a\"}", 400, "malformed"),
        (
            "check?scheme=%2B000000000000001",
            "{\"text\":\"a\"}",
            400,
            "malformed",
        ),
        (
            "check?scheme=0000000000000001",
            "{\"text\":\"a\"}",
            409,
            "other-scheme",
        ),
        ("query?limit=101", "{\"text\":\"a\"}", 422, "invalid"),
        (
            "check-and-insert?insert=never",
            "{\"id\":\"a\",\"text\":\"a\"}",
            400,
            "malformed",
        ),
        ("insert", "{\"text\":\"a\"}", 422, "invalid"),
        (
            "insert",
            "{\"id\":\"a\",\"text\":\"a\",\"ttl_seconds\":0}",
            422,
            "invalid",
        ),
        (
            "insert",
            "{\"id\":\"a\",\"text\":\"a\",\"ttl_seconds\":-1}",
            422,
            "invalid",
        ),
        (
            "insert",
            "{\"id\":\"a\",\"text\":\"a\",\"ttl_seconds\":9223372036854775808}",
            422,
            "invalid",
        ),
        ("delete", "{\"id\":\"\"}", 422, "invalid"),
        ("get", "[{\"id\":7}]", 422, "invalid"),
    ] {
        let answer = service
            .post(
                &format!("/v1/collections/pages/{operation}"),
                body.to_owned(),
            )
            .await;
        assert_eq!(answer.status, status, "{operation} {body}: {}", answer.text);
        answer.refuses(status, problem);
    }
    let long = json!({"id": "x".repeat(2049), "fingerprint": code});
    service.ask("insert", long).await.refuses(422, "invalid");
    let heavy = json!({"id": "x", "fingerprint": code, "metadata": "x".repeat(1024)});
    service.ask("insert", heavy).await.refuses(422, "invalid");
    // Deeply nested arrays are refused by the parser instead of overflowing the stack.
    let nest = "[".repeat(100_000);
    let nested = format!("{{\"id\":\"a\",\"text\":\"a\",\"metadata\":{nest}");
    let insert = "/v1/collections/pages/insert";
    service.post(insert, nested).await.refuses(400, "malformed");
    service
        .post("/v1/collections/pages/check", nest)
        .await
        .refuses(422, "invalid");
}

#[tokio::test]
async fn another_method_was_neither_counted_nor_checked_for_its_framing() {
    let service = Service::with_pages().await;
    let get = |coding: Option<&str>| {
        let request = Request::get("/v1/collections/pages/check");
        let request = match coding {
            Some(coding) => request.header("transfer-encoding", coding),
            None => request,
        };
        service.send(request.body(Body::empty()).unwrap())
    };
    get(None).await.refuses(405, "method");
    get(Some("chunked")).await.refuses(400, "framing");
    let metrics = service.get("/metrics").await.text;
    for status in [400, 405] {
        let line =
            format!("lookalike_requests_total{{operation=\"other\",status=\"{status}\"}} 1\n");
        assert!(metrics.contains(&line), "{line} is not in\n{metrics}");
    }
}

#[tokio::test]
async fn other_paths_methods_types_and_names_are_refused() {
    let service = Service::with_pages().await;
    service.get("/nowhere").await.refuses(404, "no-route");
    service
        .get("/v1/collections/pages/check")
        .await
        .refuses(405, "method");
    service
        .get("/v1/collections/none")
        .await
        .refuses(404, "no-collection");
    service
        .post("/v1/collections/none/check", "{\"text\":\"a\"}".to_owned())
        .await
        .refuses(404, "no-collection");
    for name in ["UPPER", "%2e%2e", "..%2f..%2fetc", "a%00b", &"x".repeat(65)] {
        service
            .create(name, json!({}))
            .await
            .refuses(400, "bad-name");
    }
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonp",
    ] {
        let request = Request::post("/v1/collections/pages/check").header("content-type", kind);
        let answer = service
            .send(request.body(Body::from("{\"text\":\"a\"}")).unwrap())
            .await;
        answer.refuses(415, "media-type");
    }
    let request = Request::post("/v1/collections/pages/check")
        .header("content-type", "application/JSON; charset=utf-8");
    service
        .send(request.body(Body::from("{\"text\":\"a\"}")).unwrap())
        .await
        .is(200);
}

#[tokio::test]
async fn unknown_options_of_paths_without_a_collection_were_ignored() {
    let service = Service::new();
    service
        .get("/v1/collections?limit=1")
        .await
        .refuses(400, "malformed");
    let name = json!({"name": "monday"}).to_string();
    service
        .post("/v1/snapshots?keep=7", name)
        .await
        .refuses(400, "malformed");
}

#[tokio::test]
async fn schemes_whose_sketches_no_collection_holds_are_refused() {
    let service = Service::new();
    let minhash = lookalike::Scheme::default().to_string();
    for scheme in [&*minhash, "lookalike/2", ""] {
        service
            .create("pages", json!({"scheme": scheme}))
            .await
            .refuses(422, "invalid");
    }
    for (sketch, instead) in [
        (
            "minhash:257",
            "`lookalike fingerprint` keeps such sketches in files",
        ),
        ("winnow:4", "`lookalike dedup`"),
    ] {
        let scheme = minhash.replace("sketch=none", &format!("sketch={sketch}"));
        let refused = service
            .create("pages", json!({"scheme": scheme}))
            .await
            .refuses(422, "invalid");
        assert_eq!(refused["field"], "scheme");
        let said = refused["detail"].as_str().unwrap();
        assert!(said.contains(sketch) && said.contains(instead), "{said}");
    }
    service
        .create("pages", json!({"radius": 17}))
        .await
        .refuses(422, "invalid");
    service
        .create("pages", json!({"ttl_seconds": 0}))
        .await
        .refuses(422, "invalid");
    service
        .create("pages", json!({"keep": {"pictures": true}}))
        .await
        .refuses(422, "invalid");
}

#[tokio::test]
async fn bodies_and_batches_beyond_the_limits_are_refused() {
    let limits = ServiceLimits::default()
        .body_bytes(1000)
        .batch(3)
        .collections(1);
    let service = Service::with(limits, ApiKeys::default());
    service.create("pages", json!({})).await.is(201);
    service
        .create("more", json!({}))
        .await
        .refuses(409, "too-many-collections");
    service
        .ask(
            "check",
            json!([{"text": "a"}, {"text": "b"}, {"text": "c"}]),
        )
        .await
        .is(200);
    service
        .ask(
            "check",
            json!([{"text": "a"}, {"text": "b"}, {"text": "c"}, {"text": "d"}]),
        )
        .await
        .refuses(413, "too-large");
    service
        .ask("check", json!({"text": "x".repeat(1000)}))
        .await
        .refuses(413, "too-large");
    // Without a declared length, the body is refused while it is read.
    let endless = futures_util::stream::repeat_with(|| {
        Ok::<_, std::convert::Infallible>(hyper::body::Frame::data(Bytes::from_static(
            &[b' '; 100],
        )))
    });
    let request =
        Request::post("/v1/collections/pages/check").header("content-type", "application/json");
    let answer = service
        .send(request.body(Body::new(StreamBody::new(endless))).unwrap())
        .await;
    answer.refuses(413, "too-large");
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up() {
    let limits = ServiceLimits::default().body_timeout(Duration::from_millis(30));
    let service = Service::with(limits, ApiKeys::default());
    let never = futures_util::stream::pending::<
        Result<hyper::body::Frame<Bytes>, std::convert::Infallible>,
    >();
    let request =
        Request::post("/v1/collections/pages/check").header("content-type", "application/json");
    let answer = service
        .send(request.body(Body::new(StreamBody::new(never))).unwrap())
        .await;
    answer.refuses(408, "slow-body");
}

#[tokio::test]
async fn when_memory_is_taken_large_bodies_are_told_to_come_again_and_small_ones_are_not() {
    let limits = ServiceLimits::default()
        .request_memory(4 << 20)
        .body_bytes(1 << 20)
        .queue_timeout(Duration::from_millis(30));
    let service = Service::with(limits, ApiKeys::default());
    service.create("pages", json!({})).await.is(201);
    let large = || {
        // A body that begins and never continues.
        let begun = futures_util::stream::once(async {
            let spaces = Bytes::from(vec![b' '; 900 << 10]);
            Ok::<_, std::convert::Infallible>(hyper::body::Frame::data(spaces))
        });
        let body = futures_util::StreamExt::chain(begun, futures_util::stream::pending());
        let request =
            Request::post("/v1/collections/pages/check").header("content-type", "application/json");
        service.send(request.body(Body::new(StreamBody::new(body))).unwrap())
    };
    let next = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let answer = large().await;
        answer.refuses(503, "client-memory");
        assert_eq!(answer.headers["retry-after"], "1");
        service.ask("check", json!({"text": "a"})).await.is(200);
    };
    tokio::select! {
        _ = large() => unreachable!("its body never ends"),
        () = next => {}
    }
    // The interrupted request has returned its memory.
    let whole = " ".repeat(900 << 10) + "{\"text\":\"a\"}";
    let check = "/v1/collections/pages/check";
    service.post(check, whole).await.is(200);
}

#[tokio::test]
async fn a_text_whose_sketch_takes_more_than_there_is_is_refused() {
    let limits = ServiceLimits::default()
        .request_memory(4 << 20)
        .body_bytes(4 << 20);
    let service = Service::with(limits, ApiKeys::default());
    let shown = service.create("pages", json!({})).await.is(201);
    let scheme = shown["scheme"].as_str().unwrap();
    let chars: Vec<&str> = scheme
        .split(' ')
        .map(|part| {
            if part.starts_with("shingle=") {
                "shingle=chars:9"
            } else {
                part
            }
        })
        .collect();
    let settings = json!({"scheme": chars.join(" ")});
    service.create("chars", settings).await.is(201);
    let text = json!([{"text": "a"}, {"text": "long ".repeat(50_000)}]).to_string();
    let check = "/v1/collections/pages/check";
    service.post(check, text.clone()).await.is(200);
    let check = "/v1/collections/chars/check";
    let problem = service.post(check, text).await.refuses(413, "too-large");
    assert_eq!(problem["item"], 1);
}

/// Regression test: the error named a line and column of the body, which the client library had assembled from items.
#[tokio::test]
async fn an_item_of_a_wrong_type_was_not_named() {
    let service = Service::with(ServiceLimits::default(), ApiKeys::default());
    service.create("pages", json!({})).await.is(201);
    let texts = json!([{"text": "a"}, {"text": "b"}, {"text": 5}, {"text": 6}]).to_string();
    let check = "/v1/collections/pages/check";
    let problem = service.post(check, texts).await.refuses(422, "invalid");
    assert_eq!(problem["item"], 2);
    let one = json!({"text": 5}).to_string();
    let problem = service.post(check, one).await.refuses(422, "invalid");
    assert!(problem["item"].is_null());
}
