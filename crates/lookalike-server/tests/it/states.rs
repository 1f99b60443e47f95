//! Schemes that need a table of terms or learned lines, or use anchors and links.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use lookalike::hash::xxh3_64;
use lookalike::scheme::BoilerplateScope;
use lookalike::{
    Anchor, DocumentFields, FeatureExtractor, Scheme, Simhash, Sketch, TermCounts, Terms, Weight,
};
use lookalike_corpus::{BoilerplateLines, line_keys};
use serde_json::json;

use crate::service::{Service, Started};

const TEXTS: [&str; 4] = [
    "the ferry left the harbour at nine",
    "the train left the station at ten with forty people",
    "a ferry and a train and the people",
    "nobody was on board of the ship when it came back before noon",
];

fn words() -> Scheme {
    Scheme::default()
        .shingle("words:1".parse().unwrap())
        .sketch(Sketch::None)
}

fn table(texts: &[&str]) -> Terms {
    let mut features = FeatureExtractor::new(&words());
    let mut counts = TermCounts::new(&words());
    texts
        .iter()
        .for_each(|text| counts.add(features.feature_set(text)));
    counts.terms()
}

fn scheme_of(terms: &Terms) -> Scheme {
    words()
        .sketch(Sketch::Simhash)
        .weight(Weight::TfIdf)
        .terms(Some(terms.id()))
}

fn encoded(terms: &Terms) -> String {
    BASE64_STANDARD.encode(terms.to_bytes())
}

#[tokio::test]
async fn texts_are_weighted_by_the_table_of_the_collection_after_a_restart_too() {
    let terms = table(&TEXTS);
    let scheme = scheme_of(&terms);
    let service = Service::new();
    let settings = json!({"scheme": scheme.to_string(), "terms": encoded(&terms), "keep": {"texts": true, "signatures": true}});
    let made = service.create("pages", settings.clone()).await.is(201);
    let told = json!({"id": terms.id().to_string(), "documents": 4, "features": terms.len()});
    assert_eq!(
        (&made["terms"], &made["scheme"]),
        (&told, &json!(scheme.to_string()))
    );
    service.create("pages", settings).await.is(200);
    let mut features = FeatureExtractor::with_terms(&scheme, &std::sync::Arc::new(terms)).unwrap();
    let mut expect = |text: &str| json!(Simhash::of(&features.extract(text)).unwrap().to_string());
    for (at, text) in TEXTS.iter().enumerate() {
        let item = json!({"id": format!("d{at}"), "text": text});
        let answer = service
            .ask("check-and-insert?insert=always", item)
            .await
            .is(200);
        assert_eq!(answer["fingerprint"], expect(text));
    }
    let service = Service::on(service.stop().await, Started::default());
    let shown = service.get("/v1/collections/pages").await.is(200);
    assert_eq!(shown["terms"], told);
    for text in TEXTS {
        let answer = service
            .ask("query?verify=true", json!({"text": text}))
            .await
            .is(200);
        assert_eq!(
            (&answer["verdict"], &answer["resemblance"]),
            (&json!("exact"), &json!(1.0))
        );
        assert_eq!(answer["fingerprint"], expect(text));
    }
}

#[tokio::test]
async fn a_table_that_is_missing_wrong_or_of_no_use_is_refused_with_the_way_to_do_it() {
    let (terms, other) = (table(&TEXTS), table(&TEXTS[..2]));
    let scheme = scheme_of(&terms);
    let unnamed = scheme.terms(None);
    let plain = words().sketch(Sketch::Simhash);
    let fewer = scheme.shingle("words:2".parse().unwrap());
    let mut damaged = terms.to_bytes();
    damaged[40] ^= 1;
    let service = Service::new();
    for (settings, words) in [
        (
            json!({"scheme": scheme.to_string()}),
            ["needs a table", "`terms`"],
        ),
        (
            json!({"scheme": unnamed.to_string(), "terms": encoded(&terms)}),
            ["none", "terms="],
        ),
        (
            json!({"scheme": scheme.to_string(), "terms": encoded(&other)}),
            ["needs the table", "terms="],
        ),
        (
            json!({"scheme": fewer.to_string(), "terms": encoded(&terms)}),
            ["other features", "terms="],
        ),
        (
            json!({"scheme": plain.to_string(), "terms": encoded(&terms)}),
            ["no use", "weight=idf"],
        ),
        (json!({"terms": encoded(&terms)}), ["no use", "weight=idf"]),
        (
            json!({"scheme": scheme.to_string(), "terms": "no base64"}),
            ["not base64", "base64"],
        ),
        (
            json!({"scheme": scheme.to_string(), "terms": ""}),
            ["not a table of terms", "base64"],
        ),
        (
            json!({"scheme": scheme.to_string(), "terms": BASE64_STANDARD.encode(&damaged)}),
            ["checksum", "base64"],
        ),
    ] {
        let refused = service
            .create("pages", settings)
            .await
            .refuses(422, "invalid");
        let said = [&refused["detail"], &refused["remedy"]].map(|said| said.as_str().unwrap());
        for (said, word) in said.iter().zip(words) {
            assert!(said.contains(word), "{word}: {refused}");
        }
        assert_eq!(refused["field"], "terms", "{refused}");
    }
    assert_eq!(service.get("/v1/collections").await.is(200), json!([]));
}

#[tokio::test]
async fn anchors_and_links_are_read_where_the_scheme_looks_at_them() {
    let scheme = words()
        .sketch(Sketch::Simhash)
        .fields("anchors:3~5,in-links:1,out-links:2".parse().unwrap());
    let service = Service::new();
    service
        .create("pages", json!({"scheme": scheme.to_string()}))
        .await
        .is(201);
    let fields = DocumentFields {
        anchors: vec![Anchor {
            text: "ship".to_owned(),
            before: "an old".to_owned(),
            after: String::new(),
        }],
        in_links: vec!["http://a.example/".to_owned()],
        out_links: vec![
            "http://b.example/".to_owned(),
            "http://c.example/".to_owned(),
        ],
    };
    let mut features = FeatureExtractor::new(&scheme);
    let expected = Simhash::of(&features.extract_with(TEXTS[0], &fields)).unwrap();
    let item = json!({
        "text": TEXTS[0], "anchors": [{"text": "ship", "before": "an old"}], "in_links": ["http://a.example/"],
        "out_links": ["http://b.example/", "http://c.example/"],
    });
    for operation in ["check", "query"] {
        let answer = service.ask(operation, item.clone()).await.is(200);
        assert_eq!(answer["fingerprint"], expected.to_string(), "{operation}");
    }
    for wrong in [
        json!({"text": "a", "anchors": ["ship"]}),
        json!({"text": "a", "in_links": "http://a.example/"}),
        json!({"text": "a", "out_links": [7]}),
        json!({"text": "a", "anchors": [{"text": "ship", "behind": ""}]}),
    ] {
        service.ask("check", wrong).await.refuses(422, "invalid");
    }
    // Other collections ignore fields that their schemes do not use.
    let open = Service::with_pages().await;
    let bare = open.ask("check", json!({"text": TEXTS[0]})).await.is(200);
    assert_eq!(open.ask("check", item).await.is(200), bare);
}

/// Returns learned lines of the site `a.example`.
fn learned(lines: &str) -> BoilerplateLines {
    let mut keys = Vec::new();
    line_keys(xxh3_64(b"a.example", 0), lines, &mut keys);
    BoilerplateLines::new(BoilerplateScope::Site, keys)
}

fn without(lines: &BoilerplateLines) -> serde_json::Value {
    let scheme = words().sketch(Sketch::Simhash).boilerplate(lines.scheme());
    json!({"scheme": scheme.to_string(), "boilerplate": BASE64_STANDARD.encode(lines.to_bytes()), "keep": {"texts": true}})
}

#[tokio::test]
async fn learned_lines_are_left_out_of_texts_of_their_site_after_a_restart_and_a_resketch_too() {
    let lines = learned("Home\nAll rights reserved");
    let service = Service::new();
    let made = service.create("pages", without(&lines)).await.is(201);
    let told = json!({"id": lines.scheme().to_string(), "lines": 2});
    assert_eq!(made["boilerplate"], told);
    service.create("pages", without(&lines)).await.is(200);
    let own = format!("{} {} {}", TEXTS[0], TEXTS[1], TEXTS[3]);
    let page = format!("Home\n{own}\nAll rights reserved");
    let mut features = FeatureExtractor::new(&words());
    let mut of = |text: &str| json!(Simhash::of(&features.extract(text)).unwrap().to_string());
    let (of_own, of_page) = (of(&own), of(&page));
    let item = json!({"id": "http://a.example/1", "text": page});
    let answer = service.ask("check-and-insert", item).await.is(200);
    assert_eq!(
        (&answer["fingerprint"], &answer["verdict"]),
        (&of_own, &json!("new"))
    );
    let kept = service
        .ask("get?text=true", json!({"id": "http://a.example/1"}))
        .await
        .is(200);
    assert_eq!(kept["text"], own);
    let html = format!("<title>t</title><body><p>Home<p>{own}<p>All rights reserved</body>");
    let check = async |service: &Service, wanted: &str| {
        let near = json!({"text": page, "url": "http://a.example/2"});
        let answer = service.ask("check", near).await.is(200);
        assert_eq!(
            (&answer["fingerprint"], &answer["verdict"]),
            (&json!(wanted), &json!("exact"))
        );
        let answer = service
            .ask("check", json!({"html": html, "url": "http://a.example/3"}))
            .await
            .is(200);
        assert_eq!(answer["fingerprint"], wanted, "of a page");
    };
    check(&service, of_own.as_str().unwrap()).await;
    // Another site has other lines, and a text without a site has none.
    for other in [
        json!({"text": page, "url": "http://b.example/"}),
        json!({"text": page}),
    ] {
        let answer = service.ask("check", other).await.is(200);
        assert_eq!(answer["fingerprint"], of_page);
    }
    let service = Service::on(service.stop().await, Started::default());
    check(&service, of_own.as_str().unwrap()).await;
    let pairs = words().shingle("words:2".parse().unwrap());
    let wanted = pairs.sketch(Sketch::Simhash).boilerplate(lines.scheme());
    let body = json!({"scheme": wanted.to_string()});
    service.ask("resketch", body).await.is(202);
    let shown = loop {
        let shown = service.get("/v1/collections/pages").await.is(200);
        if shown["resketching"]["state"] != "running" {
            break shown;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    };
    assert_eq!(
        (&shown["scheme"], &shown["boilerplate"]),
        (&json!(wanted.to_string()), &told)
    );
    let mut features = FeatureExtractor::new(&pairs);
    let of_pairs = Simhash::of(&features.extract(&own)).unwrap().to_string();
    check(&service, &of_pairs).await;
    // Other lines would need the original pages.
    let other = learned("Home").scheme();
    let body = json!({"scheme": wanted.boilerplate(other).to_string()});
    let refused = service.ask("resketch", body).await.refuses(422, "invalid");
    assert!(
        refused["detail"]
            .as_str()
            .unwrap()
            .contains("learned lines"),
        "{refused}"
    );
}

#[tokio::test]
async fn lines_that_are_missing_wrong_or_of_no_use_are_refused_with_the_way_to_do_it() {
    let (lines, other) = (learned("Home"), learned("Imprint"));
    let service = Service::new();
    let cases: [(&str, serde_json::Value, [&str; 2]); 4] = [
        (
            "boilerplate",
            json!(null),
            ["needs the lines", "send `boilerplate`"],
        ),
        (
            "boilerplate",
            json!("no base64"),
            ["not base64", "learned lines"],
        ),
        (
            "boilerplate",
            json!(BASE64_STANDARD.encode(other.to_bytes())),
            ["and these are", "name these"],
        ),
        (
            "boilerplate",
            json!(BASE64_STANDARD.encode([7; 40])),
            ["not a file of learned lines", "base64"],
        ),
    ];
    for (name, value, words) in cases {
        let mut settings = without(&lines);
        settings[name] = value;
        let refused = service
            .create("pages", settings)
            .await
            .refuses(422, "invalid");
        let said = [&refused["detail"], &refused["remedy"]].map(|said| said.as_str().unwrap());
        for (said, word) in said.iter().zip(words) {
            assert!(said.contains(word), "{word}: {refused}");
        }
        assert_eq!(refused["field"], name, "{refused}");
    }
    let mut kept = without(&lines);
    kept["scheme"] = words().sketch(Sketch::Simhash).to_string().into();
    let refused = service.create("pages", kept).await.refuses(422, "invalid");
    assert!(
        refused["detail"]
            .as_str()
            .unwrap()
            .contains("keeps all lines"),
        "{refused}"
    );
    assert_eq!(refused["field"], "boilerplate");
    assert_eq!(service.get("/v1/collections").await.is(200), json!([]));
}
