//! Resketched collections: the result equals a collection that had the other scheme from the beginning.

use std::ops::Range;
use std::sync::mpsc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use lookalike::{FeatureExtractor, Scheme, Sketch, TermCounts, Terms, Weight};
use lookalike_server::default_scheme;
use lookalike_store::fs::SimulatedFs;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::service::Service;

fn text(number: usize) -> String {
    let words = (0..40).map(|at| format!("w{}", (number * 31 + at * 7) % 97));
    words.collect::<Vec<_>>().join(" ")
}

fn other_scheme() -> Scheme {
    default_scheme().shingle("words:2".parse().unwrap())
}

fn settings(scheme: &Scheme) -> Value {
    json!({"scheme": scheme.to_string(), "radius": 4, "within": "site", "lengths": 0.5,
           "keep": {"texts": true, "signatures": true, "paragraphs": true}})
}

/// Returns the documents of a collection in the form of an export.
async fn export(service: &Service, name: &str) -> String {
    let answer = service.get(&format!("/v1/collections/{name}/export")).await;
    assert_eq!(answer.status, 200);
    answer.text
}

async fn insert(service: &Service, name: &str) {
    for number in 0..50 {
        let mut item = json!({"id": format!("http://{}.example/{number}", number % 5), "metadata": {"n": number}});
        match number % 3 {
            // The visible text of a page has another hash than its main text.
            0 => item["html"] = format!("<title>t</title><p>{}", text(number)).into(),
            1 => item["text"] = text(number).into(),
            _ => item["text"] = format!("{}\n\n{}", text(number), text(number + 1)).into(),
        }
        if number % 7 == 0 {
            item["ttl_seconds"] = json!(5000);
        }
        let path = format!("/v1/collections/{name}/insert");
        service.post(&path, item.to_string()).await.is(200);
    }
}

/// Waits until no job runs for the collection `pages`, and returns it.
async fn end(service: &Service) -> Value {
    loop {
        let shown = service.get("/v1/collections/pages").await.is(200);
        if shown["resketching"]["state"] != "running" {
            return shown;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_resketched_collection_is_one_that_had_the_scheme_from_the_beginning() {
    let service = Service::new();
    let (old, new) = (default_scheme(), other_scheme());
    for (name, scheme) in [("pages", &old), ("wanted", &new)] {
        service.create(name, settings(scheme)).await.is(201);
        insert(&service, name).await;
    }
    assert_ne!(
        export(&service, "pages").await,
        export(&service, "wanted").await
    );
    let body = json!({"scheme": new.to_string(), "radius": 6});
    let begun = service.ask("resketch", body.clone()).await.is(202);
    // The job may have ended before it is shown.
    assert!(
        begun["resketching"].is_null() || begun["resketching"]["documents"] == 50,
        "{begun}"
    );
    let shown = end(&service).await;
    assert_eq!(
        (&shown["scheme"], &shown["radius"]),
        (&json!(new.to_string()), &json!(6))
    );
    assert!(shown["resketching"].is_null(), "{shown}");
    assert_eq!(
        export(&service, "pages").await,
        export(&service, "wanted").await
    );
    let found = service
        .ask(
            "query?verify=true",
            json!({"text": text(1), "url": "http://1.example/"}),
        )
        .await
        .is(200);
    assert_eq!(
        (&found["verdict"], &found["resemblance"]),
        (&json!("exact"), &json!(1.0))
    );
    let paragraphs = service
        .ask("paragraphs", json!({"text": text(3)}))
        .await
        .is(200);
    assert_eq!(paragraphs["exact_share"], 1.0, "{paragraphs}");
    // Settings that the collection already has start no job.
    service.ask("resketch", body).await.is(200);
    // A client that names another scheme gets an error.
    let code = json!({"id": "x", "fingerprint": "0000000000000001", "length": 9});
    let path = format!("insert?scheme={}", old.id());
    service.ask(&path, code).await.refuses(409, "other-scheme");
}

#[tokio::test]
async fn fingerprints_become_super_shingles_minima_and_fingerprints_again() {
    let service = Service::new();
    let kept = |scheme: &Scheme| {
        let mut settings = settings(scheme);
        settings.as_object_mut().unwrap().remove("radius");
        settings
    };
    let (codes, shingles, minima) = (
        default_scheme(),
        default_scheme().sketch("super-shingle:6x14".parse().unwrap()),
        default_scheme().sketch("minhash:32".parse().unwrap()),
    );
    service.create("pages", kept(&codes)).await.is(201);
    insert(&service, "pages").await;
    let first = export(&service, "pages").await;
    for (at, (scheme, equal)) in [(&shingles, json!(2)), (&minima, json!(0.8))]
        .into_iter()
        .enumerate()
    {
        let wanted = format!("wanted{at}");
        let mut settings = kept(scheme);
        settings["equal"] = equal.clone();
        let made = service.create(&wanted, settings).await.is(201);
        insert(&service, &wanted).await;
        let refused = json!({"scheme": scheme.to_string()});
        service
            .ask("resketch", refused)
            .await
            .refuses(422, "invalid");
        let body = json!({"scheme": scheme.to_string(), "equal": equal});
        service.ask("resketch", body).await.is(202);
        let shown = end(&service).await;
        assert_eq!(
            (&shown["scheme"], &shown["equal"]),
            (&made["scheme"], &made["equal"])
        );
        assert!(
            shown["resketching"].is_null() && shown.get("radius").is_none(),
            "{shown}"
        );
        assert_eq!(
            export(&service, "pages").await,
            export(&service, &wanted).await
        );
    }
    // Fewer places in common need no new sketches and no texts.
    service.ask("resketch", json!({"equal": 20})).await.is(202);
    assert_eq!(end(&service).await["equal"], 20);
    let body = json!({"scheme": codes.to_string()});
    service.ask("resketch", body).await.is(202);
    let shown = end(&service).await;
    assert_eq!((&shown["radius"], shown.get("equal")), (&json!(3), None));
    assert_eq!(export(&service, "pages").await, first);
}

/// Returns the table of terms of some texts.
fn table(texts: Range<usize>) -> Terms {
    let words = single_words();
    let (mut features, mut counts) = (FeatureExtractor::new(&words), TermCounts::new(&words));
    texts.for_each(|number| counts.add(features.feature_set(&text(number))));
    counts.terms()
}

fn single_words() -> Scheme {
    Scheme::default()
        .shingle("words:1".parse().unwrap())
        .sketch(Sketch::None)
}

/// Returns settings with a scheme and its table of terms.
fn weighted(terms: &Terms) -> Value {
    let scheme = single_words()
        .sketch(Sketch::Simhash)
        .weight(Weight::Idf)
        .terms(Some(terms.id()));
    json!({"scheme": scheme.to_string(), "terms": BASE64_STANDARD.encode(terms.to_bytes())})
}

#[tokio::test]
async fn a_table_that_was_sent_again_with_another_radius_made_the_job_fail() {
    let service = Service::new();
    let mut body = weighted(&table(0..9));
    service.create("pages", body.clone()).await.is(201);
    body["radius"] = json!(6);
    service.ask("resketch", body).await.is(202);
    let shown = end(&service).await;
    assert!(shown["resketching"].is_null(), "{shown}");
    assert_eq!(shown["radius"], 6);
    insert(&service, "pages").await;
}

#[tokio::test]
async fn a_newer_table_of_terms_takes_the_place_of_the_old_one_and_stays_when_the_radius_changes() {
    let service = Service::new();
    let (first, second) = (table(0..9), table(0..30));
    for (name, terms) in [("pages", &first), ("wanted", &second)] {
        let mut settings = weighted(terms);
        settings["keep"] = json!({"texts": true});
        service.create(name, settings).await.is(201);
        insert(&service, name).await;
    }
    service.ask("resketch", weighted(&second)).await.is(202);
    let shown = end(&service).await;
    assert_eq!(shown["terms"]["id"], second.id().to_string());
    assert_eq!(
        export(&service, "pages").await,
        export(&service, "wanted").await
    );
    service.ask("resketch", json!({"radius": 9})).await.is(202);
    let shown = end(&service).await;
    assert_eq!(
        (&shown["terms"]["id"], &shown["radius"]),
        (&json!(second.id().to_string()), &json!(9))
    );
    insert(&service, "pages").await;
}

#[tokio::test]
async fn a_collection_that_cannot_be_sketched_anew_is_refused_with_the_way_to_do_it() {
    let service = Service::with_pages().await;
    let scheme = other_scheme();
    let wanted = json!({"scheme": scheme.to_string()});
    let refused = service
        .ask("resketch", wanted.clone())
        .await
        .refuses(409, "no-texts");
    assert!(
        refused["remedy"]
            .as_str()
            .unwrap()
            .contains("create a collection"),
        "{refused}"
    );
    // A change of the radius needs no texts.
    insert(&service, "pages").await;
    service.ask("resketch", json!({"radius": 8})).await.is(202);
    assert_eq!(end(&service).await["radius"], 8);
    let nobody = service
        .post("/v1/collections/nobody/resketch", wanted.to_string())
        .await;
    nobody.refuses(404, "no-collection");
    service.delete("/v1/collections/pages").await;
    service
        .create("pages", json!({"keep": {"texts": true}}))
        .await
        .is(201);
    for (body, words) in [
        (
            json!({"scheme": scheme.fields("in-links:1".parse().unwrap()).to_string()}),
            "links and anchors",
        ),
        (
            json!({"scheme": scheme.html("visible".parse().unwrap()).to_string()}),
            "pages are not kept",
        ),
        (
            json!({"scheme": scheme.sketch(Sketch::None).to_string()}),
            "simhash:64",
        ),
        (json!({"radius": 17}), "larger than 16"),
        (json!({"terms": "AA=="}), "comes with the scheme"),
    ] {
        let refused = service.ask("resketch", body).await.refuses(422, "invalid");
        assert!(
            refused["detail"].as_str().unwrap().contains(words),
            "{words}: {refused}"
        );
    }
    service
        .ask("resketch", json!({"thing": 1}))
        .await
        .refuses(422, "invalid");
}

#[tokio::test]
async fn a_document_without_its_text_ends_the_job_and_leaves_the_collection_as_it_was() {
    let service = Service::new();
    service
        .create("pages", json!({"keep": {"texts": true}}))
        .await
        .is(201);
    insert(&service, "pages").await;
    let code = json!({"id": "a code", "fingerprint": "0000000000000001"});
    service.ask("insert", code).await.is(200);
    let before = export(&service, "pages").await;
    let wanted = json!({"scheme": other_scheme().to_string()});
    service.ask("resketch", wanted.clone()).await.is(202);
    let shown = end(&service).await;
    assert_eq!(shown["resketching"]["state"], "failed", "{shown}");
    let reason = shown["resketching"]["reason"].as_str().unwrap();
    assert!(
        reason.contains("\"a code\"") && reason.contains("insert its text"),
        "{reason}"
    );
    assert_eq!(shown["scheme"], default_scheme().to_string());
    assert_eq!(export(&service, "pages").await, before);
    assert!(service.log.lock().unwrap().contains("resketch-failed"));
    service.ask("delete", json!({"id": "a code"})).await.is(200);
    service.ask("resketch", wanted).await.is(202);
    let shown = end(&service).await;
    assert_eq!(shown["scheme"], other_scheme().to_string());
}

/// Starts a job for the empty collection `pages`, which blocks before the first document until the sender is used or dropped.
async fn standing_job(fs: &SimulatedFs, service: &Service) -> mpsc::Sender<()> {
    service
        .create("pages", json!({"keep": {"texts": true}}))
        .await
        .is(201);
    let (begun, begins) = oneshot::channel();
    let (go, goes) = mpsc::channel();
    fs.before("/data/collections/pages~", move || {
        begun.send(()).unwrap();
        // This also returns when the test has ended.
        let _ = goes.recv();
    });
    service.ask("resketch", json!({"radius": 6})).await.is(202);
    begins.await.unwrap();
    go
}

#[tokio::test]
async fn a_cancel_was_accepted_and_the_collection_changed_all_the_same() {
    let fs = SimulatedFs::new();
    let service = Service::simulated(&fs);
    let job = standing_job(&fs, &service).await;
    service
        .delete("/v1/collections/pages/resketch")
        .await
        .is(202);
    drop(job);
    let shown = end(&service).await;
    assert!(shown["resketching"].is_null(), "{shown}");
    assert_eq!(shown["radius"], 3);
    assert!(service.log.lock().unwrap().contains("resketch-cancelled"));
    service.ask("resketch", json!({"radius": 6})).await.is(202);
    assert_eq!(end(&service).await["radius"], 6);
    service
        .delete("/v1/collections/pages/resketch")
        .await
        .refuses(409, "no-job");
}

#[tokio::test]
async fn a_failed_job_of_a_removed_collection_was_shown_for_a_new_one_of_its_name() {
    let fs = SimulatedFs::new();
    let service = Service::simulated(&fs);
    let job = standing_job(&fs, &service).await;
    let removed = service.delete("/v1/collections/pages").await;
    assert_eq!(removed.status, 204);
    service.create("pages", json!({})).await.is(201);
    drop(job);
    let shown = end(&service).await;
    assert!(shown["resketching"].is_null(), "{shown}");
    assert_eq!(shown["radius"], 3);
    let log = service.log.lock().unwrap();
    assert!(
        log.contains("resketch-cancelled") && !log.contains("resketch-failed"),
        "{log}"
    );
}
