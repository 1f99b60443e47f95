//! Collections that keep more than fingerprints: verified resemblance, differences, paragraphs.

use lookalike::{Scheme, Sketch};
use serde_json::{Value, json};

use crate::service::{BEGIN, Service};

/// Returns sixty different words.
fn story() -> Vec<String> {
    (0..60).map(|number| format!("word{number}")).collect()
}

async fn keeping(keep: Value) -> Service {
    let service = Service::new();
    let made = service
        .create("pages", json!({"keep": keep, "radius": 16}))
        .await
        .is(201);
    for (part, kept) in made["keep"].as_object().unwrap() {
        let wanted = keep[part] == true || part == "text_hashes";
        assert_eq!(*kept, wanted, "{part}");
    }
    service
}

#[tokio::test]
async fn an_array_was_taken_for_the_parts_to_keep_in_order() {
    let service = Service::new();
    for keep in [json!([false, true]), json!([])] {
        let refused = service.create("pages", json!({"keep": keep})).await;
        let problem = refused.refuses(422, "invalid");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("expected an object"), "{detail}");
    }
    service.create("pages", json!({"keep": null})).await.is(201);
}

#[tokio::test]
async fn a_neighbour_is_verified_by_its_text_and_shown_with_what_differs() {
    let service = keeping(json!({"texts": true})).await;
    let words = story();
    let mut other = words.clone();
    other[30] = "changed".to_owned();
    let entry =
        json!({"id": "a", "html": format!("<article><p>{}.</p></article>", words.join(" "))});
    service.ask("insert", entry).await.is(200);
    let probe = json!({"id": "b", "text": other.join(" ")});
    for operation in [
        "query?verify=true",
        "check-and-insert?diff=true&insert=not-exact",
    ] {
        let mut probe = probe.clone();
        if operation.starts_with("query") {
            probe.as_object_mut().unwrap().remove("id");
        }
        let answer = service.ask(operation, probe).await.is(200);
        // Five words a shingle: 56 shingles each, 51 of which are shared.
        let verified = &answer["neighbours"][0]["verified"];
        assert_eq!(
            (&verified["resemblance"], &verified["by"]),
            (&json!(0.836066), &json!("text")),
            "{answer}"
        );
        assert_eq!(verified["containment"], 0.910714);
        assert_eq!(answer["resemblance"], verified["resemblance"]);
        if operation.contains("diff") {
            let change = json!({"at": 30, "theirs": "word30", "ours": "changed"});
            let last = json!({"at": 59, "theirs": "word59.", "ours": "word59"});
            assert_eq!(
                verified["diff"],
                json!({"changes": [change, last], "more": false})
            );
        }
    }
    let shown = service
        .ask("get?text=true", json!({"id": "a"}))
        .await
        .is(200);
    assert_eq!(shown["text"], format!("{}.", words.join(" ")));
    service
        .ask("get?text=true", json!([{"id": "a"}]))
        .await
        .refuses(422, "invalid");
    let plain = service.ask("get", json!({"id": "a"})).await.is(200);
    assert!(plain.get("text").is_none());
    // If texts are kept, neighbours are verified unless the request says otherwise.
    for (operation, is_verified) in [("query", true), ("query?verify=false", false)] {
        let answer = service
            .ask(operation, json!({"text": words.join(" ")}))
            .await
            .is(200);
        assert_eq!(answer["verdict"], "same-fingerprint", "a full stop more");
        assert_eq!(answer["resemblance"] == 1.0, is_verified, "{answer}");
    }
    // If only a fingerprint is sent, nothing else is known.
    let code = &shown["fingerprint"];
    let answer = service
        .ask("query?verify=true", json!({"fingerprint": code}))
        .await
        .is(200);
    assert_eq!(answer["neighbours"][0]["verified"], Value::Null);
    assert!(answer.get("resemblance").is_none());
}

/// Simhash does not resist crafted texts; verification does.
#[tokio::test]
async fn a_text_that_was_crafted_to_collide_is_near_and_fails_its_verification() {
    use lookalike::{FeatureExtractor, Scheme, Simhash, Sketch};
    let service = keeping(json!({"texts": true})).await;
    let mut features = FeatureExtractor::new(&Scheme::default().sketch(Sketch::Simhash));
    let mut code = |text: &str| Simhash::of(&features.extract(text)).unwrap();
    let victim = "the ferry left the harbour";
    let wanted = code(victim);
    let crafted = (0..)
        .map(|number| format!("buy cheap pills here {number}"))
        .find(|text| (code(text).0 ^ wanted.0).count_ones() <= 16)
        .unwrap();
    service
        .ask("insert", json!({"id": "victim", "text": victim}))
        .await
        .is(200);
    let answer = service
        .ask("query?verify=true", json!({"text": crafted}))
        .await
        .is(200);
    assert_eq!(
        (&answer["verdict"], &answer["resemblance"]),
        (&json!("near"), &json!(0.0))
    );
}

#[tokio::test]
async fn a_signature_estimates_what_a_text_would_tell() {
    let service = keeping(json!({"signatures": true})).await;
    let words = story();
    let mut other = words.clone();
    other[30] = "changed".to_owned();
    service
        .ask("insert", json!({"id": "a", "text": words.join(" ")}))
        .await
        .is(200);
    let answer = service
        .ask("query?diff=true", json!({"text": other.join(" ")}))
        .await
        .is(200);
    let verified = &answer["neighbours"][0]["verified"];
    assert_eq!(verified["by"], "signature");
    let estimate = verified["resemblance"].as_f64().unwrap();
    // The expected value is 0.836, with a standard deviation of 0.033 for 128 minima.
    assert!((0.70..0.95).contains(&estimate), "{estimate}");
    assert!(verified.get("diff").is_none());
}

/// Returns the ids of the documents that have a paragraph.
fn ids(paragraph: &Value) -> Value {
    let documents = paragraph["documents"].as_array().unwrap().iter();
    documents.map(|document| document["id"].clone()).collect()
}

#[tokio::test]
async fn paragraphs_are_known_by_where_they_were_seen() {
    let service = keeping(json!({"paragraphs": true})).await;
    let entries = json!([
        {"id": "a", "text": "First things first.\n\nThe ferry left the harbour at nine."},
        {"id": "b", "html": "<h1>Other</h1><p>the FERRY left\nthe harbour at nine</p>"},
    ]);
    service.ask("insert", entries).await.is(200);
    let page = json!({"text": "First things first!\n\nNobody knew why.\n\nThe ferry left the harbour at nine."});
    let answer = service.ask("paragraphs", page.clone()).await.is(200);
    let shown: Vec<_> = answer["paragraphs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|seen| (seen["verdict"].clone(), ids(seen), seen["words"].clone()))
        .collect();
    assert_eq!(
        shown,
        [
            (json!("exact"), json!(["a"]), json!(3)),
            (json!("new"), json!([]), json!(3)),
            (json!("exact"), json!(["a", "b"]), json!(7)),
        ]
    );
    assert_eq!(
        (
            &answer["known"],
            &answer["words"],
            &answer["known_words"],
            &answer["known_share"]
        ),
        (&json!(2), &json!(13), &json!(10), &json!(0.769231))
    );
    // A page does not match itself, and only some of many documents are shown.
    let own = json!({"id": "a", "text": page["text"]});
    let answer = service
        .ask("paragraphs?limit=1", json!([own, page]))
        .await
        .is(200);
    assert_eq!(answer[0]["paragraphs"][0]["verdict"], "new");
    assert_eq!(ids(&answer[0]["paragraphs"][2]), json!(["b"]));
    assert_eq!(answer[0]["paragraphs"][2]["more"], false);
    assert_eq!(ids(&answer[1]["paragraphs"][2]), json!(["a"]));
    assert_eq!(answer[1]["paragraphs"][2]["more"], true);
    let hash = &answer[1]["paragraphs"][0]["hash"];
    let again = service
        .ask("paragraphs", json!({"hashes": [hash, "0000000000000000"]}))
        .await
        .is(200);
    assert_eq!(
        (
            &again["paragraphs"][0]["verdict"],
            &again["paragraphs"][1]["verdict"],
            &again["known"]
        ),
        (&json!("exact"), &json!("new"), &json!(1))
    );
    service.ask("delete", json!({"id": "a"})).await.is(200);
    let gone = service
        .ask("paragraphs", json!({"hashes": [hash]}))
        .await
        .is(200);
    assert_eq!(gone["known"], 0);
    service
        .ask("paragraphs", json!({"fingerprint": "0000000000000000"}))
        .await
        .refuses(422, "invalid");
    service
        .ask("paragraphs", json!({"text": "a\n\n".repeat(10_001)}))
        .await
        .refuses(422, "invalid");
}

#[tokio::test]
async fn hashes_of_a_request_were_counted_one_item_at_a_time() {
    let service = keeping(json!({"paragraphs": true})).await;
    let hashes = |count: u64| json!({"hashes": (0..count).map(|at| format!("{at:016x}")).collect::<Vec<_>>()});
    service
        .ask("paragraphs", json!([hashes(6000), hashes(4001)]))
        .await
        .refuses(422, "invalid");
    service
        .ask("paragraphs", json!([hashes(60), hashes(40)]))
        .await
        .is(200);
}

#[tokio::test]
async fn a_collection_without_paragraphs_says_so() {
    let service = Service::with_pages().await;
    service
        .ask("paragraphs", json!({"text": "a"}))
        .await
        .refuses(409, "no-paragraphs");
    let kept = service.get("/v1/collections/pages").await.is(200);
    let nothing =
        json!({"text_hashes": true, "texts": false, "signatures": false, "paragraphs": false});
    assert_eq!(kept["keep"], nothing);
}

/// Returns documents with every optional part.
fn documents(number: usize) -> Value {
    let words = |at: usize| {
        (0..30 + at)
            .map(|word| format!("w{at}x{word}"))
            .collect::<Vec<_>>()
    };
    let document = |at: usize| {
        let mut document =
            json!({"id": format!("http://{at}.example/\u{fc}"), "text": words(at % 7).join(" ")});
        match at % 5 {
            0 => document["expires_ms"] = json!(BEGIN + 1000 * at as u64 + 5000),
            1 => document["expires_ms"] = Value::Null,
            2 => document["metadata"] = json!({"site": ["a", at], "\n": null}),
            _ => {}
        }
        match at % 11 {
            0 => document["text"] = " \n".into(),
            1 => document = json!({"id": format!("{at}"), "fingerprint": format!("{at:016x}")}),
            2 => {
                document = json!({"id": format!("{at}"), "html": "<nav>x</nav><article><p>one</p><p>two</p></article>"})
            }
            _ => {}
        }
        document
    };
    (0..number).map(document).collect()
}

async fn exported(service: &Service, name: &str) -> String {
    let answer = service.get(&format!("/v1/collections/{name}/export")).await;
    assert_eq!(answer.status, 200);
    answer.text
}

#[tokio::test]
async fn an_export_was_loaded_into_a_collection_of_another_scheme() {
    let service = Service::new();
    service.create("pages", json!({})).await.is(201);
    let shorter = Scheme::default().sketch(Sketch::Simhash);
    let shorter = shorter.shingle("words:1".parse().unwrap());
    let settings = json!({"scheme": shorter.to_string()});
    service.create("other", settings).await.is(201);
    let document = json!({"id": "a", "text": story().join(" ")});
    service.ask("insert", document).await.is(200);
    let line = exported(&service, "pages").await;
    let load = "/v1/collections/other/load";
    let problem = service.post(load, line.clone()).await;
    let problem = problem.refuses(409, "other-scheme");
    let remedy = problem["remedy"].as_str().unwrap();
    assert!(remedy.contains("insert the texts"), "{problem}");
    // A line that someone else wrote may state no scheme.
    let mut line: Value = serde_json::from_str(&line).unwrap();
    line.as_object_mut().unwrap().remove("scheme_id").unwrap();
    service.post(load, line.to_string()).await.is(200);
}

#[tokio::test]
async fn an_export_lost_expiry_signatures_and_paragraphs_and_could_not_be_loaded() {
    let settings = json!({
        "keep": {"texts": true, "signatures": true, "paragraphs": true}, "ttl_seconds": 3600,
    });
    let service = Service::new();
    for name in ["pages", "copy"] {
        service.create(name, settings.clone()).await.is(201);
    }
    service.ask("insert", documents(100)).await.is(200);
    service.ask("delete", json!({"id": "1"})).await.is(200);
    let pretty =
        "{\"id\":\"pretty\",\"fingerprint\":\"0123456789abcdef\",\"metadata\":{\n  \"a\": 1\r\n}}";
    let inserted = service
        .post("/v1/collections/pages/insert", pretty.to_owned())
        .await;
    inserted.is(200);
    let first = exported(&service, "pages").await;
    assert_eq!(first.lines().count(), 100);
    let loaded: Vec<Value> = {
        let items = format!("[{}]", first.trim_end().replace('\n', ","));
        let answer = service
            .post("/v1/collections/copy/load", items)
            .await
            .is(200);
        answer.as_array().unwrap().clone()
    };
    assert!(
        loaded
            .iter()
            .all(|answer| *answer == json!({"replaced": false}))
    );
    assert_eq!(exported(&service, "copy").await, first);
    // Searches find the same, too.
    let page = "<nav>x</nav><article><p>one</p><p>two</p></article>";
    for (probe, verdict) in [
        (json!({"text": " \n"}), "new"),
        (json!({"html": page}), "exact"),
    ] {
        let found = service.ask("check", probe.clone()).await.is(200);
        assert_eq!(found["verdict"], verdict);
        let path = "/v1/collections/copy/check";
        assert_eq!(service.post(path, probe.to_string()).await.is(200), found);
    }
    // A collection that keeps less reports what it drops, and no text is taken for a fingerprint.
    service.create("less", json!({})).await.is(201);
    let line = first
        .lines()
        .find(|line| line.contains("\"text\":\"w3"))
        .unwrap();
    let answer = service
        .post("/v1/collections/less/load", line.to_owned())
        .await
        .is(200);
    assert_eq!(
        answer["dropped"],
        json!(["text", "signature", "paragraphs"])
    );
    let bare = service
        .ask("load", json!({"id": "a", "text": "some text"}))
        .await;
    bare.refuses(422, "invalid");
}

#[tokio::test]
async fn loads_and_inserts_take_the_lifetime_of_the_request_of_the_document_or_of_the_collection() {
    let service = Service::new();
    service
        .create("pages", json!({"ttl_seconds": 100}))
        .await
        .is(201);
    let code = "0123456789abcdef";
    let items = json!([
        {"id": "own", "fingerprint": code, "expires_ms": BEGIN + 7000},
        {"id": "never", "fingerprint": code, "expires_ms": null},
        {"id": "of request or collection", "fingerprint": code},
    ]);
    for (operation, life) in [
        ("insert?ttl_seconds=10", 10_000),
        ("load?ttl_seconds=20", 20_000),
        ("insert", 100_000),
        ("load", 100_000),
    ] {
        service.ask(operation, items.clone()).await.is(200);
        let ids = json!([{"id": "own"}, {"id": "never"}, {"id": "of request or collection"}]);
        let found = service.ask("get", ids).await.is(200);
        assert_eq!(found[0]["expires_ms"], BEGIN + 7000, "{operation}");
        assert_eq!(found[1]["expires_ms"], Value::Null, "{operation}");
        assert_eq!(found[2]["expires_ms"], BEGIN + life, "{operation}");
    }
    let both = json!({"id": "a", "fingerprint": code, "ttl_seconds": 5, "expires_ms": BEGIN});
    service.ask("insert", both).await.refuses(422, "invalid");
    let operation = "insert?ttl_seconds=0";
    service.ask(operation, items).await.refuses(422, "invalid");
}

#[tokio::test]
async fn the_largest_time_of_expiry_was_taken_and_read_back_as_never() {
    let service = Service::with_pages().await;
    let document =
        |end: u64| json!({"id": "a", "fingerprint": "0123456789abcdef", "expires_ms": end});
    for operation in ["insert", "load", "check-and-insert"] {
        let refused = service.ask(operation, document(u64::MAX)).await;
        refused.refuses(422, "invalid");
    }
    service.ask("insert", document(u64::MAX - 1)).await.is(200);
    let found = service.ask("get", json!({"id": "a"})).await.is(200);
    assert_eq!(found["expires_ms"], u64::MAX - 1);
    let end = json!({"id": "a", "expires_ms": u64::MAX});
    service.ask("expire", end).await.refuses(422, "invalid");
}

#[tokio::test]
async fn documents_get_another_end_and_the_dead_are_not_counted() {
    let service = Service::with_pages().await;
    let entries: Vec<_> = (0..10)
        .map(|at| json!({"id": format!("{at}"), "fingerprint": format!("{at:016x}"), "ttl_seconds": 10}))
        .collect();
    service.ask("insert", json!(entries)).await.is(200);
    let ends = json!([
        {"id": "0", "ttl_seconds": 60},
        {"id": "1", "expires_ms": null},
        {"id": "2", "expires_ms": BEGIN},
        {"id": "none", "ttl_seconds": 60},
    ]);
    let existed = service.ask("expire", ends).await.is(200);
    let wanted = [true, true, true, false].map(|existed| json!({"existed": existed}));
    assert_eq!(existed, json!(wanted));
    let count = async || {
        let shown = service.get("/v1/collections/pages").await.is(200);
        (
            shown["documents"].clone(),
            shown["stored"].as_u64().unwrap() >= 10,
        )
    };
    assert_eq!(count().await, (json!(9), true));
    service.pass(11);
    assert_eq!(count().await.0, 2);
    let metrics = service.get("/metrics").await.text;
    assert!(
        metrics.contains("lookalike_collection_documents{collection=\"pages\"} 2\n"),
        "{metrics}"
    );
    service.pass(60);
    assert_eq!(count().await.0, 1);
    for wrong in [
        json!({"id": "0"}),
        json!({"id": "0", "ttl_seconds": 1, "expires_ms": 1}),
    ] {
        service.ask("expire", wrong).await.refuses(422, "invalid");
    }
}
