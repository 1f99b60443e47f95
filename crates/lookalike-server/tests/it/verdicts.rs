//! Verdicts on documents.

use lookalike::{FeatureExtractor, Scheme, Simhash, Sketch};
use lookalike_corpus::HtmlText;
use lookalike_server::default_scheme;
use serde_json::json;

use crate::service::{BEGIN, Service};

const STORY: &str =
    "the ferry left the harbour at nine with forty people on board and came back before noon";

#[tokio::test]
async fn a_fingerprint_is_new_then_the_same_and_others_are_near() {
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

    let same = service.ask("check", code).await.is(200);
    assert_eq!(
        (&same["verdict"], &same["distance"], &same["score"]),
        (&json!("same-fingerprint"), &json!(0), &json!(1.0))
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
        (&json!(true), &json!("same-fingerprint"))
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
            "check-and-insert?insert=not-same-fingerprint",
            entry("b", "0000000000000001"),
        )
        .await
        .is(200);
    assert_eq!(kept["inserted"], true);
    for (insert, inserted) in [("not-same-fingerprint", false), ("not-exact", true)] {
        let operation = format!("check-and-insert?insert={insert}");
        let same = service
            .ask(&operation, entry("c", "0000000000000001"))
            .await
            .is(200);
        assert_eq!(
            (&same["verdict"], &same["inserted"]),
            (&json!("same-fingerprint"), &json!(inserted))
        );
    }
    let always = service
        .ask(
            "check-and-insert?insert=always",
            entry("c", "0000000000000001"),
        )
        .await
        .is(200);
    assert_eq!(
        (&always["verdict"], &always["inserted"]),
        (&json!("same-fingerprint"), &json!(true))
    );
    // A document is not its own neighbour.
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
    assert_eq!(answers[1]["copy_of"], "a");
}

#[tokio::test]
async fn texts_of_one_fingerprint_were_called_exact_though_they_differ() {
    let service = Service::with_pages().await;
    let shouted = STORY.to_uppercase();
    service
        .ask("insert", json!({"id": "a", "text": STORY}))
        .await
        .is(200);
    for (content, verdict) in [
        (json!({"text": STORY}), "exact"),
        (json!({"text": shouted}), "same-fingerprint"),
    ] {
        let seen = service.ask("check", content.clone()).await.is(200);
        assert_eq!(
            (&seen["verdict"], &seen["distance"]),
            (&json!(verdict), &json!(0))
        );
        let found = service.ask("query", content).await.is(200);
        assert_eq!(found["verdict"], verdict);
        let is_copy = verdict == "exact";
        assert_eq!(found["copy_of"] == "a", is_copy, "{found}");
        assert_eq!(
            found["neighbours"][0]["same_text"] == true,
            is_copy,
            "{found}"
        );
    }
    // A fingerprint alone does not identify the text, unless the hash is sent with it.
    let code = service.ask("get", json!({"id": "a"})).await.is(200)["fingerprint"].clone();
    let hash = blake3_digits(STORY);
    // The hash of the empty text, from the specification of BLAKE3.
    assert_eq!(blake3_digits(""), "af1349b9f5f9a1a6a0404dea36dcc949");
    for (content, verdict) in [
        (json!({"fingerprint": code}), "same-fingerprint"),
        (json!({"fingerprint": code, "text_hash": hash}), "exact"),
    ] {
        assert_eq!(
            service.ask("check", content).await.is(200)["verdict"],
            verdict
        );
    }
    service
        .ask("check", json!({"fingerprint": code, "text_hash": "12"}))
        .await
        .refuses(422, "invalid");
    let kept = json!({"id": "b", "text": shouted});
    let answer = service.ask("check-and-insert?insert=not-exact", kept).await;
    assert_eq!(answer.is(200)["inserted"], true);
}

/// Returns the first 32 hexadecimal digits of the BLAKE3 hash of a text.
fn blake3_digits(text: &str) -> String {
    let hash = lookalike_corpus::text_hash(text).to_le_bytes();
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn pages_of_one_article_are_copies_only_if_all_that_a_reader_sees_is_equal() {
    let service = Service::with_pages().await;
    let page = |menu: &str| {
        let story = format!("<p>{STORY}.</p>").repeat(20);
        json!({"html": format!("<nav><a href=/>{menu}</a></nav><article><h1>Ferry</h1>{story}</article>")})
    };
    let mut first = page("home");
    first["id"] = "a".into();
    let stored = service.ask("insert", first).await.is(200);
    let same = service.ask("check", page("home")).await.is(200);
    let other = service.ask("check", page("start")).await.is(200);
    assert_eq!(
        stored["fingerprint"], other["fingerprint"],
        "the article is the same"
    );
    assert_eq!(
        (&same["verdict"], &other["verdict"]),
        (&json!("exact"), &json!("same-fingerprint"))
    );
}

#[tokio::test]
async fn a_collection_without_hashes_of_texts_knows_no_copies() {
    let service = Service::new();
    let keep = json!({"keep": {"text_hashes": false}});
    let made = service.create("pages", keep).await.is(201);
    assert_eq!(made["keep"]["text_hashes"], false);
    for verdict in ["new", "same-fingerprint"] {
        let entry = json!({"id": verdict, "text": STORY});
        let answer = service.ask("check-and-insert", entry).await.is(200);
        assert_eq!(answer["verdict"], verdict);
    }
}

#[tokio::test]
async fn neighbours_beyond_a_hundred_are_shown_page_by_page() {
    let service = Service::with_pages().await;
    let code = |distance: usize| format!("{:016x}", (1_u64 << distance) - 1);
    let entries: Vec<_> = (0..250)
        .map(|at| json!({"id": format!("{at}"), "fingerprint": code(at % 4)}))
        .collect();
    service.ask("insert", json!(entries)).await.is(200);
    let mut wanted: Vec<usize> = (0..250).collect();
    wanted.sort_by_key(|at| at % 4);
    let (mut shown, mut after) = (Vec::new(), String::new());
    loop {
        let operation = format!("query?limit=60{after}");
        let answer = service
            .ask(&operation, json!({"fingerprint": code(0)}))
            .await
            .is(200);
        assert_eq!(answer["verdict"], "same-fingerprint");
        for near in answer["neighbours"].as_array().unwrap() {
            shown.push(near["id"].as_str().unwrap().parse::<usize>().unwrap());
        }
        let Some(next) = answer["next"].as_str() else {
            assert_eq!(answer["more"], false);
            break;
        };
        after = format!("&after={next}");
        // Deleting documents that were already shown, or inserting new ones, does not move the others.
        let gone = shown[shown.len() - 5].to_string();
        service.ask("delete", json!({"id": gone})).await.is(200);
        let newer = json!({"id": format!("x{}", shown.len()), "fingerprint": "ffffffffffffffff"});
        service.ask("insert", newer).await.is(200);
    }
    assert_eq!(shown, wanted);
    let first = service
        .ask("query?limit=60", json!({"fingerprint": code(0)}))
        .await
        .is(200);
    let last = &first["neighbours"][59]["id"];
    service.ask("delete", json!({"id": last})).await.is(200);
    let next = first["next"].as_str().unwrap();
    let stale = format!("query?after={next}");
    service
        .ask(&stale, json!({"fingerprint": code(0)}))
        .await
        .refuses(409, "cursor");
    for wrong in ["", "x", "1-2", "129-1-0", "1-2-g"] {
        let operation = format!("query?after={wrong}");
        let answer = service
            .ask(&operation, json!({"fingerprint": code(0)}))
            .await;
        answer.refuses(422, "invalid");
    }
}

/// An expiry that changed nothing made the document the newest.
#[tokio::test]
async fn an_original_whose_expiry_stayed_the_same_became_the_copy_of_its_copy() {
    let service = Service::with_pages().await;
    let entry = |id| json!({"id": id, "text": STORY, "expires_ms": BEGIN + 60_000});
    let both = json!([entry("original"), entry("copy")]);
    service.ask("insert", both).await.is(200);
    let text = json!({"text": STORY});
    let mut next = String::new();
    for (end, first) in [(60_000, "original"), (90_000, "copy")] {
        let change = json!({"id": "original", "expires_ms": BEGIN + end});
        let answer = service.ask("expire", change).await.is(200);
        assert_eq!(answer, json!({"existed": true}));
        let answer = service.ask("query?limit=1", text.clone()).await.is(200);
        assert_eq!(answer["copy_of"], first);
        assert_eq!(answer["neighbours"][0]["id"], first);
        if next.is_empty() {
            next = answer["next"].as_str().unwrap().to_owned();
        }
    }
    // The first page ended with the document that is now the newest.
    let stale = service.ask(&format!("query?after={next}"), text).await;
    let detail = "the document that the cursor names was deleted, replaced or given another expiry";
    assert_eq!(stale.refuses(409, "cursor")["detail"], detail);
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
async fn texts_without_features_are_copies_of_equal_texts_and_near_nothing() {
    let service = Service::with_pages().await;
    for (id, verdict) in [("a", "new"), ("b", "exact")] {
        let answer = service
            .ask("check-and-insert", json!({"id": id, "text": "!!!"}))
            .await
            .is(200);
        assert_eq!(
            (
                &answer["verdict"],
                &answer["fingerprint"],
                &answer["inserted"]
            ),
            (&json!(verdict), &json!(null), &json!(verdict == "new"))
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
        (9, ["same-fingerprint", "same-fingerprint"]),
        (2, ["new", "same-fingerprint"]),
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
    let settings = json!({"radius": 6, "ttl_seconds": 3600, "scheme": Scheme::default().sketch(Sketch::Simhash).shingle("words:3".parse().unwrap()).to_string()});
    let made = service.create("a-1_b", settings.clone()).await.is(201);
    assert_eq!(
        (&made["radius"], &made["ttl_seconds"], &made["documents"]),
        (&json!(6), &json!(3600), &json!(0))
    );
    assert_eq!(service.create("a-1_b", settings).await.is(200), made);
    // At resemblance 0.98, a bit differs with probability 0.0453, so 0.975 of the pairs differ in at most six bits.
    let recall = &made["recall"]["by_resemblance"][3];
    assert_eq!(recall, &json!({"resemblance": 0.98, "recall": 0.975}));
    assert_eq!(made["recall"]["one_changed_word"][0]["words"], 100);
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

/// Regression test: pages that contain only pictures, or are rendered by a script, counted as copies of one another.
#[tokio::test]
async fn every_page_without_text_was_a_copy_of_every_other() {
    let service = Service::with_pages().await;
    let hash = "af1349b9f5f9a1a6a0404dea36dcc949";
    let contents = [
        json!({"html": "<body><img src='a.png'>"}),
        json!({"html": "<body><img src='b.png'><script>draw()</script></body>"}),
        json!({"text": ""}),
        json!({"text": " \n\u{3000}\t"}),
        // In the form in which `lookalike client` sends it.
        json!({"text": "", "text_hash": hash}),
        json!({"text": "", "text_hash": hash}),
    ];
    for (id, mut content) in contents.into_iter().enumerate() {
        let verdict = service.ask("check", content.clone()).await.is(200);
        assert_eq!(verdict["verdict"], "new", "{content}");
        content["id"] = id.to_string().into();
        let answer = service.ask("check-and-insert", content).await.is(200);
        assert_eq!(
            (&answer["verdict"], &answer["inserted"], &answer["copy_of"]),
            (&json!("new"), &json!(true), &json!(null)),
            "{answer}"
        );
    }
}

/// Regression test: `copy_of` named a document that was not among the neighbours.
#[tokio::test]
async fn a_text_without_words_was_a_copy_of_something_and_had_no_neighbours() {
    let service = Service::new();
    service
        .create("pages", json!({"keep": {"texts": true}}))
        .await
        .is(201);
    for (id, text, copy_of) in [
        ("a", "!!!", None),
        ("b", "!!!", Some("a")),
        ("c", "???", None),
    ] {
        let question = "check-and-insert?insert=always&diff=true";
        let document = json!({"id": id, "text": text, "metadata": id});
        let answer = service.ask(question, document).await.is(200);
        let ids: Vec<&str> = answer["neighbours"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|near| near["id"].as_str())
            .collect();
        assert_eq!(answer["copy_of"].as_str(), copy_of, "{answer}");
        assert_eq!(ids, Vec::from_iter(copy_of), "{answer}");
        assert_eq!(answer["more"], false);
    }
    let asked = json!({"text": "!!!"});
    let answer = service.ask("query", asked.clone()).await.is(200);
    let near = &answer["neighbours"][0];
    assert_eq!(
        (&near["distance"], &near["same_text"], &near["metadata"]),
        (&json!(0), &json!(true), &json!("a"))
    );
    assert_eq!(
        (&near["verified"], &near["score"]),
        (&json!(null), &json!(1.0))
    );
    // The single neighbour is the whole list, also when read page by page.
    let none = service.ask("query?limit=0", asked.clone()).await.is(200);
    let after = format!("query?after={}", none["next"].as_str().unwrap());
    let page = service.ask(&after, asked).await.is(200);
    assert_eq!(
        (&page["neighbours"][0]["id"], &page["more"]),
        (&json!("a"), &json!(false))
    );
}

#[tokio::test]
async fn a_query_for_no_neighbours_said_that_there_were_more_without_a_cursor() {
    let service = Service::with_pages().await;
    let entries: Vec<_> = (0..5)
        .map(|at| json!({"id": at.to_string(), "fingerprint": format!("{:016x}", at % 2)}))
        .collect();
    service.ask("insert", json!(entries)).await.is(200);
    let asked = json!({"fingerprint": "0000000000000000"});
    let (mut after, mut shown) = (String::new(), Vec::new());
    // An empty page in between does not move the cursor.
    for limit in [0, 2, 0, 1, 0, 9] {
        let question = format!("query?limit={limit}{after}");
        let answer = service.ask(&question, asked.clone()).await.is(200);
        let page = answer["neighbours"].as_array().unwrap().clone();
        assert_eq!(answer["more"], limit != 9, "{answer}");
        assert_eq!(answer["verdict"], "same-fingerprint");
        shown.extend(
            page.iter()
                .map(|near| near["id"].as_str().unwrap().to_owned()),
        );
        if limit != 9 {
            after = format!("&after={}", answer["next"].as_str().expect("a cursor"));
        }
    }
    assert_eq!(shown, ["0", "2", "4", "1", "3"]);
}
