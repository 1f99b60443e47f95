//! Results ordered by how much is new in each, and copies of one document.

use std::collections::BTreeSet;

use lookalike_server::{ApiKeys, ServiceLimits};
use serde_json::{Value, json};

use crate::service::Service;

/// Returns texts made of lines, many of which they share.
fn texts() -> Vec<(String, String)> {
    let line = |number: usize| format!("line {number} of the harbour\n");
    let text = |at: usize| {
        let own = (0..4 + at % 5).map(|i| line((at * 7 + i * (1 + at % 3)) % 23));
        own.collect::<String>()
    };
    (0..30).map(|at| (format!("d{at:02}"), text(at))).collect()
}

fn lines(text: &str) -> BTreeSet<&str> {
    text.lines().collect()
}

async fn filled() -> Service {
    let service = Service::new();
    let keep = json!({"keep": {"texts": true}});
    service.create("pages", keep).await.is(201);
    let documents = texts().into_iter();
    let documents: Vec<Value> = documents
        .map(|(id, text)| json!({"id": id, "text": text}))
        .collect();
    service.ask("insert", documents.into()).await.is(200);
    service
}

/// Finds the copies of a text by the definition. Returns id, number of shared chunks and number of chunks of each.
fn slow_copies(
    asked: &str,
    own: &str,
    min_shared: usize,
    share: f64,
) -> Vec<(String, usize, usize)> {
    let ours = lines(asked);
    let mut found = Vec::new();
    for (id, text) in texts().iter().filter(|(id, _)| id != own) {
        let theirs = lines(text);
        let shared = ours.intersection(&theirs).count();
        let least = ours.len().min(theirs.len());
        if shared >= min_shared && shared as f64 / least as f64 >= share {
            found.push((id.clone(), shared, theirs.len()));
        }
    }
    found.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    found
}

fn shown(answer: &Value) -> Vec<(String, usize, usize)> {
    let number = |copy: &Value, name: &str| copy[name].as_u64().unwrap() as usize;
    let copies = answer["copies"].as_array().unwrap().iter();
    let id = |copy: &Value| copy["id"].as_str().unwrap().to_owned();
    copies
        .map(|copy| (id(copy), number(copy, "shared"), number(copy, "chunks")))
        .collect()
}

#[tokio::test]
async fn copies_are_those_of_the_definition_the_most_containing_first() {
    let service = filled().await;
    for (id, text) in texts() {
        for (options, min_shared, share) in [
            ("limit=100", 1, 0.0),
            ("limit=100&min_shared=3", 3, 0.0),
            ("limit=100&min_containment=0.75", 1, 0.75),
        ] {
            let path = format!("copies-of?chunk=lines:1&{options}");
            let expected = slow_copies(&text, &id, min_shared, share);
            let stored = service.ask(&path, json!({"id": id})).await.is(200);
            assert_eq!(shown(&stored), expected, "{id} {options}");
            let sent = service.ask(&path, json!({"id": id, "text": text})).await;
            assert_eq!(sent.is(200), stored);
            let counts = ["compared", "found", "without_text", "left_out"];
            let counts = counts.map(|name| stored[name].as_u64().unwrap());
            assert_eq!(counts, [29, expected.len() as u64, 0, 0]);
        }
    }
    let nobody = json!({"text": texts()[3].1});
    let answer = service.ask("copies-of?chunk=lines:1&limit=2", nobody).await;
    let (answer, expected) = (answer.is(200), slow_copies(&texts()[3].1, "", 1, 0.0));
    assert_eq!(shown(&answer), expected[..2], "the first of all");
    assert_eq!(answer["found"], expected.len());
    let own = &answer["copies"][0];
    assert_eq!(
        [
            &own["containment"],
            &own["copy_containment"],
            &own["resemblance"]
        ],
        [1.0, 1.0, 1.0]
    );
}

#[tokio::test]
async fn a_list_is_ordered_by_what_is_new_in_each() {
    let service = filled().await;
    let list = json!([{"id": "d03"}, {"text": texts()[3].1}, {"id": "d04"}, {"html": "<p>nothing at all"}, {"id": "x", "text": ""}]);
    let answer = service.ask("rerank?chunk=lines:1", list).await.is(200);
    let mut known = BTreeSet::new();
    let given = texts();
    let content = [
        "",
        &given[3].1,
        &given[3].1,
        &given[4].1,
        "nothing at all",
        "",
    ];
    let ranked = answer.as_array().unwrap();
    assert_eq!(ranked.len(), 5);
    let order: Vec<u64> = ranked
        .iter()
        .map(|one| one["was"].as_u64().unwrap())
        .collect();
    assert_eq!(order[0], 1, "the first stays");
    for (place, one) in ranked.iter().enumerate() {
        let chunks = lines(content[one["was"].as_u64().unwrap() as usize]);
        let new = chunks.difference(&known).count();
        assert_eq!(
            [&one["rank"], &one["chunks"], &one["new_chunks"]],
            [place + 1, chunks.len(), new]
        );
        assert_eq!(one["new"], new as f64 / chunks.len().max(1) as f64);
        known.extend(chunks);
    }
    // Documents with nothing new come last, in the order of the list.
    assert_eq!(order[3..], [2, 5]);
    assert_eq!(
        (&ranked[4]["id"], &ranked[3]["id"]),
        (&json!("x"), &Value::Null)
    );
    let one = service.ask("rerank", json!({"id": "d00"})).await.is(200);
    assert_eq!((&one["rank"], &one["new"]), (&json!(1), &json!(1.0)));
}

/// Words are those of the collection's scheme: case and marks do not count, and Chinese is segmented into words.
#[tokio::test]
async fn words_are_those_of_the_scheme() {
    let service = Service::new();
    let keep = json!({"keep": {"texts": true}});
    service.create("pages", keep).await.is(201);
    let document = json!({"id": "a", "text": "\u{4e3a}\u{4e86}\u{7ef4}\u{62a4} The FERRY, left"});
    service.ask("insert", document).await.is(200);
    let asked = json!({"text": "\u{ff08}\u{4e86}\u{7ef4}\u{62a4}\u{ff09}\nthe ferry left!"});
    for (chunk, shared) in [
        ("words:2:sliding", 5),
        ("fields:1", 0),
        ("chars:2:sliding", 15),
    ] {
        let path = format!("copies-of?chunk={chunk}");
        let answer = service.ask(&path, asked.clone()).await.is(200);
        let found = answer["copies"][0]["shared"].as_u64().unwrap_or_default();
        assert_eq!(found, shared, "{chunk}: {answer}");
    }
}

#[tokio::test]
async fn documents_without_a_text_are_counted_and_named() {
    let service = filled().await;
    let code = json!({"id": "code", "fingerprint": "0000000000000001"});
    service.ask("insert", code).await.is(200);
    let answer = service.ask("copies-of", json!({"id": "d00"})).await.is(200);
    assert_eq!(
        (&answer["without_text"], &answer["compared"]),
        (&json!(1), &json!(29))
    );
    for path in ["copies-of", "rerank"] {
        let refused = service.ask(path, json!({"id": "code"})).await;
        refused.refuses(409, "no-text");
        let refused = service.ask(path, json!({"id": "nobody"})).await;
        refused.refuses(404, "no-document");
    }
    let listed = service
        .ask("rerank", json!([{"id": "d00"}, {"id": "code"}]))
        .await;
    assert_eq!(listed.refuses(409, "no-text")["item"], 1);
}

#[tokio::test]
async fn what_means_nothing_is_refused() {
    let service = filled().await;
    let one = json!({"id": "d00"});
    for path in [
        "copies-of?chunk=pages:2",
        "rerank?chunk=lines:0",
        "copies-of?min_shared=0",
    ] {
        service.ask(path, one.clone()).await.refuses(422, "invalid");
    }
    for option in ["limit=1001", "min_containment=1.5", "min_containment=NaN"] {
        let path = format!("copies-of?{option}");
        service
            .ask(&path, one.clone())
            .await
            .refuses(422, "invalid");
    }
    service
        .ask("rerank?limit=3", one)
        .await
        .refuses(400, "malformed");
    for body in [
        json!({}),
        json!({"text": "a", "html": "b"}),
        json!({"id": ""}),
        json!({"id": null}),
    ] {
        service
            .ask("copies-of", body.clone())
            .await
            .refuses(422, "invalid");
        service
            .ask("rerank", json!([body]))
            .await
            .refuses(422, "invalid");
    }
    let list: Vec<Value> = (0..1001).map(|_| json!({"id": "d00"})).collect();
    service
        .ask("rerank", list.into())
        .await
        .refuses(413, "too-large");
    // Two texts of 300,000 characters each have more chunks than a list may have.
    let long = |start: usize| {
        (start..start + 60_000)
            .map(|i| format!("{i:05}"))
            .collect::<String>()
    };
    let list = json!([{"text": long(0)}, {"text": long(100_000)}, {"text": long(200_000)}]);
    let refused = service.ask("rerank?chunk=chars:12:sliding", list).await;
    assert_eq!(refused.refuses(422, "invalid")["item"], 1);
}

/// A text that needs more memory than a request may have is left out and reported.
#[tokio::test]
async fn a_text_too_long_to_be_compared_is_told() {
    let limits = ServiceLimits::default().body_bytes(4 << 10);
    let service = Service::with(limits, ApiKeys::default());
    service
        .create("pages", json!({"keep": {"texts": true}}))
        .await
        .is(201);
    for (id, bytes) in [("long", 3000), ("short", 600)] {
        let text = "a line\n".repeat(bytes / 7);
        service
            .ask("insert", json!({"id": id, "text": text}))
            .await
            .is(200);
    }
    let asked = json!({"text": "a line"});
    let answer = service.ask("copies-of?chunk=lines:1", asked).await.is(200);
    assert_eq!(
        (&answer["left_out"], &answer["compared"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(answer["copies"][0]["id"], "short");
}

/// Regression test: the reason given was "invalid type: map, expected a string".
#[tokio::test]
async fn an_array_where_one_object_is_taken_was_told_of_a_map_in_place_of_a_string() {
    let service = Service::with_pages().await;
    let asked = service.ask("copies-of", json!([{"id": "d00"}])).await;
    let problem = asked.refuses(422, "invalid");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("takes one object"), "{detail}");
}
