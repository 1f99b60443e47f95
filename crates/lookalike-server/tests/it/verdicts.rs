//! What is said of documents.

use lookalike::{FeatureExtractor, Scheme, Simhash, Sketch};
use lookalike_corpus::HtmlText;
use lookalike_server::default_scheme;
use serde_json::json;

use crate::service::{BEGIN, Service};

const STORY: &str =
    "the ferry left the harbour at nine with forty people on board and came back before noon";

#[tokio::test]
async fn a_fingerprint_is_new_then_exact_and_others_are_near() {
    let service = Service::with_pages().await;
    let code = json!({"fingerprint": "00000000000000ff"});
    let first = service.ask("check", code.clone()).await.is(200);
    assert_eq!(
        first,
        json!({"verdict": "new", "score": 0.0, "fingerprint": "00000000000000ff"})
    );
    let entry = json!({"id": "http://a.example/", "fingerprint": "00000000000000ff"});
    let inserted = service.ask("insert", entry.clone()).await.is(200);
    assert_eq!(
        inserted,
        json!({"replaced": false, "fingerprint": "00000000000000ff"})
    );
    assert_eq!(service.ask("insert", entry).await.is(200)["replaced"], true);

    let exact = service.ask("check", code).await.is(200);
    assert_eq!(
        (&exact["verdict"], &exact["distance"], &exact["score"]),
        (&json!("exact"), &json!(0), &json!(1.0))
    );
    let near = service
        .ask("check", json!({"fingerprint": "00000000000000F8"}))
        .await
        .is(200);
    assert_eq!(
        (&near["verdict"], &near["distance"], &near["score"]),
        (&json!("near"), &json!(3), &json!(0.978585))
    );
    let far = service
        .ask("check", json!({"fingerprint": "00000000000000f0"}))
        .await
        .is(200);
    assert_eq!(
        (&far["verdict"], &far["score"]),
        (&json!("new"), &json!(0.0))
    );
    let narrow = service
        .ask("check?radius=2", json!({"fingerprint": "00000000000000f8"}))
        .await
        .is(200);
    assert_eq!(narrow["verdict"], "new");
}

#[tokio::test]
async fn a_query_shows_the_nearest_first_and_says_when_there_are_more() {
    let service = Service::with_pages().await;
    let entries = json!([
        {"id": "three", "fingerprint": "0000000000000007"},
        {"id": "same", "fingerprint": "0000000000000000", "metadata": {"site": "a"}},
        {"id": "one", "fingerprint": "0000000000000001"},
        {"id": "far", "fingerprint": "000000000000ffff"},
    ]);
    service.ask("insert", entries).await.is(200);
    let answer = service
        .ask("query", json!({"fingerprint": "0000000000000000"}))
        .await
        .is(200);
    let ids: Vec<_> = answer["neighbours"]
        .as_array()
        .unwrap()
        .iter()
        .map(|near| near["id"].clone())
        .collect();
    assert_eq!(
        (ids, &answer["more"]),
        (
            vec![json!("same"), json!("one"), json!("three")],
            &json!(false)
        )
    );
    assert_eq!(answer["neighbours"][0]["metadata"], json!({"site": "a"}));
    assert_eq!(answer["neighbours"][2]["score"], 0.978585);
    let short = service
        .ask(
            "query?limit=1",
            json!([{"fingerprint": "0000000000000000"}]),
        )
        .await
        .is(200);
    assert_eq!(short[0]["neighbours"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&short[0]["more"], &short[0]["verdict"]),
        (&json!(true), &json!("exact"))
    );
}

#[tokio::test]
async fn check_and_insert_inserts_what_is_new_unless_told_otherwise() {
    let service = Service::with_pages().await;
    let entry = |id: &str, code: &str| json!({"id": id, "fingerprint": code});
    let first = service
        .ask("check-and-insert", entry("a", "0000000000000000"))
        .await
        .is(200);
    assert_eq!(
        (&first["verdict"], &first["inserted"], &first["known"]),
        (&json!("new"), &json!(true), &json!(false))
    );
    let near = service
        .ask("check-and-insert", entry("b", "0000000000000001"))
        .await
        .is(200);
    assert_eq!(
        (
            &near["verdict"],
            &near["inserted"],
            &near["neighbours"][0]["id"]
        ),
        (&json!("near"), &json!(false), &json!("a"))
    );
    let kept = service
        .ask(
            "check-and-insert?insert=not-exact",
            entry("b", "0000000000000001"),
        )
        .await
        .is(200);
    assert_eq!(kept["inserted"], true);
    let exact = service
        .ask(
            "check-and-insert?insert=not-exact",
            entry("c", "0000000000000001"),
        )
        .await
        .is(200);
    assert_eq!(
        (&exact["verdict"], &exact["inserted"]),
        (&json!("exact"), &json!(false))
    );
    let always = service
        .ask(
            "check-and-insert?insert=always",
            entry("c", "0000000000000001"),
        )
        .await
        .is(200);
    assert_eq!(
        (&always["verdict"], &always["inserted"]),
        (&json!("exact"), &json!(true))
    );
    // A document is no neighbour of itself.
    let again = service
        .ask("check-and-insert?radius=0", entry("a", "0000000000000000"))
        .await
        .is(200);
    assert_eq!(
        (&again["verdict"], &again["known"]),
        (&json!("new"), &json!(true))
    );
}

#[tokio::test]
async fn the_second_of_two_equal_items_of_a_batch_is_exact() {
    let service = Service::with_pages().await;
    let batch = json!([{"id": "a", "text": STORY}, {"id": "b", "text": STORY}]);
    let answers = service.ask("check-and-insert", batch).await.is(200);
    assert_eq!(
        (&answers[0]["verdict"], &answers[1]["verdict"]),
        (&json!("new"), &json!("exact"))
    );
    assert_eq!(answers[1]["neighbours"][0]["id"], "a");
}

#[tokio::test]
async fn texts_and_pages_have_the_fingerprints_of_the_library() {
    let service = Service::with_pages().await;
    let scheme = default_scheme();
    let page =
        format!("<title>x</title><nav>home</nav><article><p>{STORY}.</p><p>{STORY}!</p></article>");
    let mut extracted = String::new();
    HtmlText::new(scheme.html)
        .unwrap()
        .extract(&page, &mut extracted);
    let mut features = FeatureExtractor::new(&scheme);
    for (field, content, text) in [("text", STORY, STORY), ("html", &page, &extracted)] {
        let wanted = Simhash::of(&features.extract(text)).unwrap().to_string();
        let answer = service.ask("check", json!({field: content})).await.is(200);
        assert_eq!(answer["fingerprint"], wanted, "{field}");
    }
    let shown = service.get("/v1/collections/pages").await.is(200);
    assert_eq!(
        (&shown["scheme"], &shown["scheme_id"]),
        (&json!(scheme.to_string()), &json!(scheme.id().to_string()))
    );
}

#[tokio::test]
async fn texts_without_features_are_new_every_time() {
    let service = Service::with_pages().await;
    for id in ["a", "b"] {
        let answer = service
            .ask("check-and-insert", json!({"id": id, "text": " \n"}))
            .await
            .is(200);
        assert_eq!(
            (
                &answer["verdict"],
                &answer["fingerprint"],
                &answer["inserted"]
            ),
            (&json!("new"), &json!(null), &json!(true))
        );
    }
    let answers = service
        .ask(
            "check",
            json!([{"text": ""}, {"fingerprint": "0000000000000000"}, {"html": "<p>"}]),
        )
        .await
        .is(200);
    assert!(
        answers
            .as_array()
            .unwrap()
            .iter()
            .all(|answer| answer["verdict"] == "new"),
        "{answers}"
    );
    let query = service.ask("query", json!({"text": ""})).await.is(200);
    assert_eq!(query["neighbours"], json!([]));
}

#[tokio::test]
async fn documents_are_shown_deleted_and_unknown() {
    let service = Service::with_pages().await;
    let entry = json!({"id": "a/b?c=\u{fc}", "fingerprint": "0123456789abcdef", "ttl_seconds": 60, "metadata": [1, "x"]});
    service.ask("insert", entry).await.is(200);
    let shown = service
        .ask("get", json!({"id": "a/b?c=\u{fc}"}))
        .await
        .is(200);
    let wanted = json!({
        "id": "a/b?c=\u{fc}", "fingerprint": "0123456789abcdef", "expires_ms": BEGIN + 60_000, "metadata": [1, "x"],
    });
    assert_eq!(shown, wanted);
    let several = service
        .ask("get", json!([{"id": "z"}, {"id": "a/b?c=\u{fc}"}]))
        .await
        .is(200);
    assert_eq!(several, json!([null, wanted]));
    for existed in [true, false] {
        let deleted = service
            .ask("delete", json!({"id": "a/b?c=\u{fc}"}))
            .await
            .is(200);
        assert_eq!(deleted, json!({"existed": existed}));
    }
    service
        .ask("get", json!({"id": "a/b?c=\u{fc}"}))
        .await
        .refuses(404, "no-document");
    assert_eq!(service.ask("delete", json!([])).await.is(200), json!([]));
}

#[tokio::test]
async fn documents_expire_by_their_own_time_or_the_collections() {
    let service = Service::new();
    service
        .create("pages", json!({"ttl_seconds": 100}))
        .await
        .is(201);
    let batch = json!([
        {"id": "own", "fingerprint": "0000000000000000", "ttl_seconds": 10},
        {"id": "common", "fingerprint": "ffffffffffffffff"},
    ]);
    service.ask("insert", batch).await.is(200);
    let probes = json!([{"fingerprint": "0000000000000000"}, {"fingerprint": "ffffffffffffffff"}]);
    for (pass, wanted) in [
        (9, ["exact", "exact"]),
        (2, ["new", "exact"]),
        (90, ["new", "new"]),
    ] {
        service.pass(pass);
        let answers = service.ask("check", probes.clone()).await.is(200);
        assert_eq!(
            [&answers[0]["verdict"], &answers[1]["verdict"]],
            wanted.map(|word| json!(word)).each_ref()
        );
    }
    service
        .ask("get", json!({"id": "common"}))
        .await
        .refuses(404, "no-document");
}

#[tokio::test]
async fn a_batch_with_one_wrong_item_changes_nothing() {
    let service = Service::with_pages().await;
    let batch = json!([{"id": "a", "fingerprint": "0000000000000000"}, {"id": "", "fingerprint": "0000000000000001"}]);
    let problem = service.ask("insert", batch).await.refuses(422, "invalid");
    assert_eq!(problem["item"], 1);
    service
        .ask("get", json!({"id": "a"}))
        .await
        .refuses(404, "no-document");
}

#[tokio::test]
async fn collections_are_made_listed_and_removed() {
    let service = Service::new();
    let settings = json!({"radius": 6, "ttl_seconds": 3600, "scheme": Scheme { sketch: Sketch::Simhash, shingle: "words:3".parse().unwrap(), ..Scheme::default() }.to_string()});
    let made = service.create("a-1_b", settings.clone()).await.is(201);
    assert_eq!(
        (&made["radius"], &made["ttl_seconds"], &made["documents"]),
        (&json!(6), &json!(3600), &json!(0))
    );
    assert_eq!(service.create("a-1_b", settings).await.is(200), made);
    service
        .create("a-1_b", json!({}))
        .await
        .refuses(409, "exists");
    service.create("other", json!({})).await.is(201);
    let listed = service.get("/v1/collections").await.is(200);
    assert_eq!((&listed[0], &listed[1]["name"]), (&made, &json!("other")));
    let gone = axum::http::Request::delete("/v1/collections/a-1_b")
        .body(axum::body::Body::empty())
        .unwrap();
    assert_eq!(service.send(gone).await.status, 204);
    service
        .get("/v1/collections/a-1_b")
        .await
        .refuses(404, "no-collection");
}
