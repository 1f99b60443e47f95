//! Authentication and roles.

use axum::body::Body;
use axum::http::Request;
use lookalike_server::{ApiKeys, KeyRole, NewKey, ServiceLimits};
use serde_json::json;

use crate::service::{Answer, Service, Started};

fn keys() -> (Service, Vec<String>) {
    let roles = [KeyRole::Read, KeyRole::Write, KeyRole::Admin];
    let made: Vec<NewKey> = roles
        .into_iter()
        .zip(1..)
        .map(|(role, chance)| NewKey::make(role, "test", &[], [chance; 32]).unwrap())
        .collect();
    let file: String = made.iter().map(|key| key.line.as_str()).collect();
    let keys: ApiKeys = file.parse().unwrap();
    let secrets = made.into_iter().map(|key| key.secret).collect();
    (Service::with(ServiceLimits::default(), keys), secrets)
}

async fn ask(
    service: &Service,
    method: &str,
    path: &str,
    authorization: Option<&str>,
    body: &str,
) -> Answer {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json");
    if let Some(authorization) = authorization {
        request = request.header("authorization", authorization);
    }
    service
        .send(request.body(Body::from(body.to_owned())).unwrap())
        .await
}

#[tokio::test]
async fn each_role_does_what_it_may() {
    let (service, secrets) = keys();
    let bearer: Vec<String> = secrets
        .iter()
        .map(|secret| format!("Bearer {secret}"))
        .collect();
    let pages = "/v1/collections/pages";
    ask(&service, "PUT", pages, Some(&bearer[2]), "{}")
        .await
        .is(201);
    let cases = [
        ("PUT", pages.to_owned(), "{}", 2),
        (
            "POST",
            format!("{pages}/insert"),
            "{\"id\":\"a\",\"text\":\"a\"}",
            1,
        ),
        (
            "POST",
            format!("{pages}/check-and-insert"),
            "{\"id\":\"a\",\"text\":\"a\"}",
            1,
        ),
        ("POST", format!("{pages}/delete"), "{\"id\":\"a\"}", 1),
        ("POST", format!("{pages}/check"), "{\"text\":\"a\"}", 0),
        ("POST", format!("{pages}/query"), "{\"text\":\"a\"}", 0),
        ("POST", format!("{pages}/get"), "[{\"id\":\"a\"}]", 0),
        ("GET", pages.to_owned(), "", 0),
        ("GET", "/v1/collections".to_owned(), "", 0),
        ("GET", "/metrics".to_owned(), "", 0),
        ("GET", format!("{pages}/export"), "", 0),
        ("PATCH", pages.to_owned(), "{\"ttl_seconds\":9}", 2),
        ("POST", "/v1/snapshots".to_owned(), "{\"name\":\"a\"}", 2),
        ("DELETE", pages.to_owned(), "", 2),
    ];
    for (method, path, body, least) in &cases {
        for wrong in [
            None,
            Some("Bearer lk_0"),
            Some("Basic YTpi"),
            Some(&*secrets[2]),
        ] {
            let answer = ask(&service, method, path, wrong, body).await;
            answer.refuses(401, "key");
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
        }
        for (role, authorization) in bearer.iter().enumerate() {
            let mut answer = ask(&service, method, path, Some(authorization), body).await;
            // An export frees its slot a moment after its last byte.
            while answer.status == 503 {
                answer = ask(&service, method, path, Some(authorization), body).await;
            }
            if role < *least {
                answer.refuses(403, "role");
            } else {
                assert!(answer.status < 300, "{method} {path}: {}", answer.text);
            }
        }
    }
    for open in ["/healthz", "/readyz"] {
        ask(&service, "GET", open, None, "").await.is(200);
    }
    assert!(
        !service.log.lock().unwrap().contains(&secrets[0][3..]),
        "keys are never logged"
    );
}

#[tokio::test]
async fn readiness_named_collections_to_callers_without_a_key() {
    let (service, secrets) = keys();
    let admin = format!("Bearer {}", secrets[2]);
    ask(
        &service,
        "PUT",
        "/v1/collections/merger",
        Some(&admin),
        "{}",
    )
    .await
    .is(201);
    let folder = service.stop().await;
    let manifest = folder.path().join("data/collections/merger/MANIFEST");
    std::fs::write(manifest, "damaged").unwrap();
    let service = Service::on(folder, Started::default());
    let named = json!([{"collection": "merger", "state": "damaged"}]);
    let shown = service.get("/readyz").await.is(503);
    assert_eq!(shown["collections"], named);
    // A page whose name resolves to this machine has no key either.
    let request = Request::get("/readyz").header("host", "rebound.example:7280");
    let shown = service.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(shown.is(503)["collections"], json!([{"state": "damaged"}]));
    let started = Started {
        keys: "".parse().unwrap(),
        ..Started::default()
    };
    let service = Service::on(service.stop().await, started);
    let shown = ask(&service, "GET", "/readyz", None, "").await.is(503);
    assert_eq!(shown["collections"], json!([{"state": "damaged"}]));
}

#[tokio::test]
async fn without_keys_only_names_of_this_machine_are_answered() {
    let service = Service::new();
    for (host, status) in [
        ("localhost:7280", 200),
        ("127.0.0.1", 200),
        ("rebound.example:7280", 403),
    ] {
        let request = Request::get("/v1/collections").header("host", host);
        let answer = service.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status, status, "{host}");
    }
}

#[tokio::test]
async fn a_key_for_some_collections_tells_and_changes_nothing_of_others() {
    let all = NewKey::make(KeyRole::Admin, "all", &[], [1; 32]).unwrap();
    let some = NewKey::make(KeyRole::Admin, "some", &["pages", "news"], [2; 32]).unwrap();
    let keys: ApiKeys = format!("{}{}", all.line, some.line).parse().unwrap();
    let service = Service::with(ServiceLimits::default(), keys);
    let (all, some) = (
        format!("Bearer {}", all.secret),
        format!("Bearer {}", some.secret),
    );
    for name in ["pages", "other"] {
        let path = format!("/v1/collections/{name}");
        ask(&service, "PUT", &path, Some(&all), "{}").await.is(201);
    }
    let own = "/v1/collections/pages";
    let entry = "{\"id\":\"a\",\"text\":\"a\"}";
    ask(
        &service,
        "POST",
        &format!("{own}/insert"),
        Some(&some),
        entry,
    )
    .await
    .is(200);
    ask(&service, "PUT", "/v1/collections/news", Some(&some), "{}")
        .await
        .is(201);
    for (method, path, body) in [
        ("POST", "/v1/collections/other/insert", entry),
        ("POST", "/v1/collections/%6fther/insert", entry),
        ("POST", "/v1/collections/other/check", "{\"text\":\"a\"}"),
        ("GET", "/v1/collections/other", ""),
        ("GET", "/v1/collections/other/export", ""),
        ("GET", "/v1/collections/none", ""),
        ("PUT", "/v1/collections/more", "{}"),
        ("DELETE", "/v1/collections/other", ""),
        ("GET", "/metrics", ""),
        ("POST", "/v1/snapshots", "{\"name\":\"a\"}"),
    ] {
        let answer = ask(&service, method, path, Some(&some), body).await;
        answer.refuses(403, "scope");
    }
    let listed = ask(&service, "GET", "/v1/collections", Some(&some), "")
        .await
        .is(200);
    let names: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].clone())
        .collect();
    assert_eq!(names, ["news", "pages"]);
    let shown = ask(&service, "GET", "/v1/collections", Some(&all), "")
        .await
        .is(200);
    assert_eq!(shown.as_array().unwrap().len(), 3);
}
