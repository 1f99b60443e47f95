//! Collections that keep more than fingerprints: verified resemblance, differences, paragraphs.

use serde_json::{Value, json};

use crate::service::Service;

/// Sixty different words.
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
        // Five words a shingle: 56 of each, of which 51 are shared.
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
    // Where texts are kept neighbours are verified, unless that is not wanted.
    for (operation, is_verified) in [("query", true), ("query?verify=false", false)] {
        let answer = service
            .ask(operation, json!({"text": words.join(" ")}))
            .await
            .is(200);
        assert_eq!(answer["verdict"], "same-fingerprint", "a full stop more");
        assert_eq!(answer["resemblance"] == 1.0, is_verified, "{answer}");
    }
    // Of a ready fingerprint nothing else is known.
    let code = &shown["fingerprint"];
    let answer = service
        .ask("query?verify=true", json!({"fingerprint": code}))
        .await
        .is(200);
    assert_eq!(answer["neighbours"][0]["verified"], Value::Null);
    assert!(answer.get("resemblance").is_none());
}

/// Simhash is not made against people who craft texts: verification is.
#[tokio::test]
async fn a_text_that_was_crafted_to_collide_is_near_and_fails_its_verification() {
    use lookalike::{FeatureExtractor, Scheme, Simhash, Sketch};
    let service = keeping(json!({"texts": true})).await;
    let mut features = FeatureExtractor::new(&Scheme {
        sketch: Sketch::Simhash,
        ..Scheme::default()
    });
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
    // 0.836 with a deviation of 0.033 for 128 minima.
    assert!((0.70..0.95).contains(&estimate), "{estimate}");
    assert!(verified.get("diff").is_none());
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
        .map(|seen| {
            (
                seen["known"].clone(),
                seen["documents"].clone(),
                seen["words"].clone(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            (json!(true), json!(["a"]), json!(3)),
            (json!(false), json!([]), json!(3)),
            (json!(true), json!(["a", "b"]), json!(7)),
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
    // A page is not told of itself, and of many documents only some are shown.
    let own = json!({"id": "a", "text": page["text"]});
    let answer = service
        .ask("paragraphs?limit=1", json!([own, page]))
        .await
        .is(200);
    assert_eq!(answer[0]["paragraphs"][0]["known"], false);
    assert_eq!(answer[0]["paragraphs"][2]["documents"], json!(["b"]));
    assert_eq!(answer[0]["paragraphs"][2]["more"], false);
    assert_eq!(answer[1]["paragraphs"][2]["documents"], json!(["a"]));
    assert_eq!(answer[1]["paragraphs"][2]["more"], true);
    let hash = &answer[1]["paragraphs"][0]["hash"];
    let again = service
        .ask("paragraphs", json!({"hashes": [hash, "0000000000000000"]}))
        .await
        .is(200);
    assert_eq!(
        (
            &again["paragraphs"][0]["known"],
            &again["paragraphs"][1]["known"],
            &again["known"]
        ),
        (&json!(true), &json!(false), &json!(1))
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
async fn a_collection_without_paragraphs_says_so() {
    let service = Service::with_pages().await;
    service
        .ask("paragraphs", json!({"text": "a"}))
        .await
        .refuses(422, "invalid");
    let kept = service.get("/v1/collections/pages").await.is(200);
    let nothing =
        json!({"text_hashes": true, "texts": false, "signatures": false, "paragraphs": false});
    assert_eq!(kept["keep"], nothing);
}
