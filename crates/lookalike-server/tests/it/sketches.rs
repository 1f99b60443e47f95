//! Collections of super-shingles and minima.

use lookalike::{FeatureExtractor, Scheme, Sketch, SketchValue, Sketcher};
use lookalike_server::default_scheme;
use serde_json::{Value, json};

use crate::service::{Service, Started};

/// Returns a text of 60 words; texts come in families of five, which differ in some words.
fn text(number: usize) -> String {
    let (family, member) = (number / 5, number % 5);
    let word = |at: usize| match at % 20 < member && at / 20 < member {
        true => format!("x{number}y{at}"),
        false => format!("w{family}v{at}"),
    };
    (0..60).map(word).collect::<Vec<_>>().join(" ")
}

const COUNT: usize = 40;

fn scheme(sketch: &str) -> Scheme {
    default_scheme().sketch(sketch.parse().unwrap())
}

/// Returns the hexadecimal digits of each place of a text's sketch.
fn places(scheme: &Scheme, text: &str) -> Vec<String> {
    let sketcher = Sketcher::new(scheme, None).unwrap();
    let mut features = FeatureExtractor::new(scheme);
    match sketcher.sketch(&features.extract(text)).unwrap() {
        SketchValue::Signature(minima) => minima.iter().map(|one| format!("{one:08x}")).collect(),
        SketchValue::Hashes(shingles) => {
            let shingles = shingles.iter().map(|one| one.unwrap());
            shingles.map(|one| format!("{one:016x}")).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn code(scheme: &Scheme, text: &str) -> u128 {
    let sketcher = Sketcher::new(scheme, None).unwrap();
    let mut features = FeatureExtractor::new(scheme);
    match sketcher.sketch(&features.extract(text)).unwrap() {
        SketchValue::Bits(code, _) => code.0,
        other => panic!("{other:?}"),
    }
}

fn differing(a: &[String], b: &[String]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a != b).count()
}

/// Returns the documents of a collection in the form of an export.
async fn export(service: &Service, name: &str) -> Vec<Value> {
    let answer = service.get(&format!("/v1/collections/{name}/export")).await;
    assert_eq!(answer.status, 200);
    let lines = answer.text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

async fn insert(service: &Service) {
    for number in 0..COUNT {
        let item = json!({"id": number.to_string(), "text": text(number)});
        service.ask("insert", item).await.is(200);
    }
}

/// Finds neighbours by a scan, by the number of places that differ and then by age.
fn expected(sketches: &[Vec<String>], query: &[String], least: usize) -> Vec<(usize, String)> {
    let numbered = sketches.iter().enumerate();
    let mut near: Vec<(usize, usize)> = numbered
        .map(|(number, sketch)| (differing(sketch, query), number))
        .filter(|(apart, _)| query.len() - apart >= least)
        .collect();
    near.sort_unstable();
    near.into_iter()
        .map(|(apart, number)| (apart, number.to_string()))
        .collect()
}

fn shown(answer: &Value) -> Vec<(usize, String)> {
    let near = answer["neighbours"].as_array().unwrap().iter();
    let shown = near.map(|near| {
        let distance = near["distance"].as_u64().unwrap() as usize;
        (distance, near["id"].as_str().unwrap().to_owned())
    });
    shown.collect()
}

async fn compare(service: &Service, scheme: &Scheme, least: usize) -> usize {
    let sketches: Vec<_> = (0..COUNT)
        .map(|number| places(scheme, &text(number)))
        .collect();
    let mut found = 0;
    for (number, sketch) in sketches.iter().enumerate() {
        let item = json!({"text": text(number)});
        let answer = service.ask("query?limit=100", item).await.is(200);
        assert_eq!(
            shown(&answer),
            expected(&sketches, sketch, least),
            "{number}"
        );
        assert_eq!(
            (&answer["verdict"], &answer["score"]),
            (&json!("exact"), &json!(1.0))
        );
        assert!(answer.get("fingerprint").is_none(), "{answer}");
        found += answer["neighbours"].as_array().unwrap().len() - 1;
        let narrow = format!("query?limit=100&equal={}", least + 1);
        let answer = service
            .ask(&narrow, json!({"text": text(number)}))
            .await
            .is(200);
        assert_eq!(shown(&answer), expected(&sketches, sketch, least + 1));
    }
    let none = service
        .ask("check", json!({"text": "a text of quite other words"}))
        .await;
    assert_eq!(none.is(200), json!({"verdict": "new", "score": 0.0}));
    let bare = service.ask("check", json!({"text": ""})).await.is(200);
    assert_eq!(bare["fingerprint"], Value::Null);
    assert!(bare.get("fingerprint").is_some());
    found
}

#[tokio::test]
async fn documents_with_enough_places_in_common_are_neighbours_after_a_restart_too() {
    for (sketch, equal, least, field) in [
        ("super-shingle:6x3", json!(2), 2, "super_shingles"),
        ("minhash:64", json!(0.5), 32, "signature"),
    ] {
        let service = Service::new();
        let scheme = scheme(sketch);
        let settings = json!({"scheme": scheme.to_string(), "equal": equal});
        let made = service.create("pages", settings.clone()).await.is(201);
        assert_eq!(made["equal"], least);
        assert!(made.get("radius").is_none(), "{made}");
        // At resemblance 0.95, a super-shingle of three minima is equal with probability 0.857, and two of six almost always are.
        let recall = &made["recall"]["by_resemblance"][2];
        assert!(recall["recall"].as_f64().unwrap() > 0.999, "{recall}");
        service.create("pages", settings).await.is(200);
        insert(&service).await;
        assert!(compare(&service, &scheme, least).await > COUNT);
        let exported = export(&service, "pages").await;
        for (number, document) in exported.iter().enumerate() {
            assert_eq!(document[field], places(&scheme, &text(number)).concat());
            assert!(document.get("fingerprint").is_none(), "{document}");
        }
        let service = Service::on(service.stop().await, Started::default());
        compare(&service, &scheme, least).await;
        // Documents are deleted and expire just as with fingerprints.
        service.ask("delete", json!({"id": "0"})).await.is(200);
        let end = json!({"id": "1", "ttl_seconds": 5});
        service.ask("expire", end).await.is(200);
        service.pass(6);
        let answer = service
            .ask("query?limit=100", json!({"text": text(0)}))
            .await
            .is(200);
        assert!(
            shown(&answer).iter().all(|(_, id)| id != "0" && id != "1"),
            "{answer}"
        );
        let item = json!({"id": "new", "text": text(0)});
        let answer = service.ask("check-and-insert", item.clone()).await.is(200);
        let sketches: Vec<_> = (2..COUNT)
            .map(|number| places(&scheme, &text(number)))
            .collect();
        let is_near = !expected(&sketches, &places(&scheme, &text(0)), least).is_empty();
        let verdict = if is_near { "near" } else { "new" };
        assert_eq!(
            (&answer["verdict"], &answer["inserted"]),
            (&json!(verdict), &json!(!is_near))
        );
        let always = service
            .ask("check-and-insert?insert=always", item)
            .await
            .is(200);
        assert_eq!(always["inserted"], true);
        let again = service.ask("check", json!({"text": text(0)})).await.is(200);
        assert_eq!(
            (&again["verdict"], &again["distance"]),
            (&json!("exact"), &json!(0))
        );
    }
}

#[tokio::test]
async fn ready_sketches_are_as_good_as_texts_and_an_export_is_loaded_unchanged() {
    let service = Service::new();
    let scheme = scheme("super-shingle:6x3");
    let settings = json!({"scheme": scheme.to_string(), "equal": 3, "within": "site", "lengths": 0.5,
                          "keep": {"texts": true, "signatures": true, "paragraphs": true}});
    for name in ["pages", "copy"] {
        service.create(name, settings.clone()).await.is(201);
    }
    for number in 0..COUNT {
        let (text, length) = (text(number), text(number).len());
        let id = format!("http://{}.example/{number}", number % 2);
        let item = match number % 3 {
            0 => {
                json!({"id": id, "super_shingles": places(&scheme, &text).concat(), "length": length})
            }
            _ => json!({"id": id, "text": text}),
        };
        service.ask("insert", item).await.is(200);
    }
    service
        .ask(
            "insert",
            json!({"id": "bare", "text": "", "category": "none"}),
        )
        .await
        .is(200);
    for number in 0..COUNT {
        let text = text(number);
        let url = format!("http://{}.example/", number % 2);
        let ready = json!({"super_shingles": places(&scheme, &text).concat(), "length": text.len(), "url": url});
        let found = service.ask("query?limit=100", ready).await.is(200);
        let of_text = service
            .ask("query?limit=100", json!({"text": text, "url": url}))
            .await
            .is(200);
        assert_eq!(shown(&found), shown(&of_text));
        let near = shown(&found);
        assert!(near.iter().all(|(_, id)| id.starts_with(&url)), "{found}");
        // Texts are kept, so neighbours are verified by them.
        let verified = of_text["neighbours"].as_array().unwrap().iter();
        let mut by_text = verified.filter(|near| near["verified"]["by"] == "text");
        assert!(by_text.all(|near| near["verified"]["resemblance"].as_f64() > Some(0.0)));
    }
    let exported = service.get("/v1/collections/pages/export").await.text;
    assert!(exported.contains("\"super_shingles\":null"), "{exported}");
    for line in exported.lines() {
        let answer = service
            .post("/v1/collections/copy/load", line.to_owned())
            .await
            .is(200);
        assert_eq!(answer, json!({"replaced": false}));
    }
    assert_eq!(
        service.get("/v1/collections/copy/export").await.text,
        exported
    );
    let paragraphs = service
        .ask("paragraphs", json!({"text": text(1)}))
        .await
        .is(200);
    assert_eq!(paragraphs["exact"], 1, "{paragraphs}");
    service
        .ask("paragraphs?radius=4", json!({"text": text(1)}))
        .await
        .refuses(422, "invalid");
}

#[tokio::test]
async fn fingerprints_of_32_and_128_bits_are_neighbours_within_their_radius() {
    for (sketch, radius, digits) in [("simhash:128", 15, 32), ("simhash:32", 3, 8)] {
        let service = Service::new();
        let scheme = scheme(sketch);
        let settings = json!({"scheme": scheme.to_string(), "radius": radius + 1});
        service
            .create("pages", settings)
            .await
            .refuses(422, "invalid");
        let settings =
            json!({"scheme": scheme.to_string(), "radius": radius, "keep": {"texts": true}});
        let made = service.create("pages", settings.clone()).await.is(201);
        assert_eq!((&made["radius"], made.get("equal")), (&json!(radius), None));
        service.create("copy", settings).await.is(201);
        insert(&service).await;
        let codes: Vec<u128> = (0..COUNT)
            .map(|number| code(&scheme, &text(number)))
            .collect();
        let mut found = 0;
        for (number, &query) in codes.iter().enumerate() {
            let distance = |code: &u128| (code ^ query).count_ones() as usize;
            let all = codes
                .iter()
                .enumerate()
                .map(|(at, code)| (distance(code), at));
            let mut near: Vec<_> = all.filter(|(apart, _)| *apart <= radius).collect();
            near.sort_unstable();
            let near: Vec<_> = near
                .into_iter()
                .map(|(apart, at)| (apart, at.to_string()))
                .collect();
            let answer = service
                .ask("query?limit=100", json!({"text": text(number)}))
                .await
                .is(200);
            assert_eq!(shown(&answer), near, "{sketch} {number}");
            let fingerprint = format!("{query:0digits$x}");
            assert_eq!(answer["fingerprint"], fingerprint);
            let ready = service
                .ask("query?limit=100", json!({"fingerprint": fingerprint}))
                .await
                .is(200);
            assert_eq!(shown(&ready), near);
            found += near.len() - 1;
        }
        assert!(found > 10, "{sketch}: {found}");
        let exported = service.get("/v1/collections/pages/export").await.text;
        for line in exported.lines() {
            service
                .post("/v1/collections/copy/load", line.to_owned())
                .await
                .is(200);
        }
        assert_eq!(
            service.get("/v1/collections/copy/export").await.text,
            exported
        );
        let other = json!({"fingerprint": "0123456789abcdef"});
        service.ask("check", other).await.refuses(422, "invalid");
        let got = service.ask("get", json!({"id": "3"})).await.is(200);
        assert_eq!(got["fingerprint"], format!("{:0digits$x}", codes[3]));
    }
}

#[tokio::test]
async fn signatures_of_a_collection_of_minima_are_its_sketches() {
    let service = Service::new();
    let settings = json!({"scheme": scheme("minhash:64").to_string(), "equal": 0.5, "keep": {"signatures": true}});
    service.create("pages", settings).await.is(201);
    insert(&service).await;
    let answer = service
        .ask("query?limit=5", json!({"text": text(7)}))
        .await
        .is(200);
    for near in answer["neighbours"].as_array().unwrap() {
        assert_eq!(near["verified"]["by"], "signature");
        // With 64 places, shares are exact.
        assert_eq!(near["verified"]["resemblance"], near["score"], "{near}");
    }
}

#[tokio::test]
async fn what_means_nothing_for_a_sketch_is_refused_with_what_does() {
    let service = Service::new();
    let shingles = scheme("super-shingle:6x14").to_string();
    let minima = scheme("minhash:200").to_string();
    for (settings, detail, remedy) in [
        (
            json!({"scheme": shingles}),
            "how many of the 6 super-shingles",
            "`equal`",
        ),
        (
            json!({"scheme": shingles, "radius": 3}),
            "bits of fingerprints",
            "`equal`",
        ),
        (
            json!({"scheme": shingles, "equal": 7}),
            "6 super-shingles",
            "1 to 6",
        ),
        (
            json!({"scheme": shingles, "equal": 0}),
            "6 super-shingles",
            "1 to 6",
        ),
        (
            json!({"scheme": minima, "equal": 0.3}),
            "200 minima",
            "72 to 200",
        ),
        (json!({"equal": 2}), "holds fingerprints", "`radius`"),
        (
            json!({"scheme": scheme("minhash:300").to_string(), "equal": 0.8}),
            "up to 256 places",
            "",
        ),
        (
            json!({"scheme": scheme("minhash:64").weight(lookalike::Weight::Tf).to_string(), "equal": 0.8}),
            "weight=tf does nothing",
            "",
        ),
    ] {
        let refused = service
            .create("pages", settings.clone())
            .await
            .refuses(422, "invalid");
        let said = |field: &str| refused[field].as_str().unwrap().to_owned();
        assert!(said("detail").contains(detail), "{settings}: {refused}");
        assert!(said("remedy").contains(remedy), "{settings}: {refused}");
    }
    service
        .create("pages", json!({"scheme": shingles, "equal": 3}))
        .await
        .is(201);
    let text = json!({"text": text(1)});
    for (operation, item, words) in [
        ("check?radius=3", text.clone(), "bits of fingerprints"),
        ("query?equal=2", text.clone(), "less than 3"),
        ("query?equal=2.5", text.clone(), "out of range for 6"),
        (
            "check",
            json!({"fingerprint": "0123456789abcdef"}),
            "holds 6 super-shingles, and fingerprints",
        ),
        (
            "check",
            json!({"signature": "01234567"}),
            "1 minima were sent",
        ),
        (
            "check",
            json!({"super_shingles": "0123456789abcdef"}),
            "1 super-shingles were sent",
        ),
        (
            "check",
            json!({"super_shingles": "0123456789abcdef", "text": "a"}),
            "exactly one",
        ),
        (
            "load",
            json!({"id": "a", "fingerprint": "0123456789abcdef"}),
            "has none",
        ),
        (
            "load",
            json!({"id": "a", "super_shingles": "0123456789abcdef"}),
            "has 1",
        ),
    ] {
        let refused = service.ask(operation, item).await.refuses(422, "invalid");
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains(words), "{operation}: {refused}");
    }
    service.create("codes", json!({})).await.is(201);
    for (operation, item) in [
        ("check?equal=2", text),
        ("check", json!({"super_shingles": "0123456789abcdef"})),
        (
            "load",
            json!({"id": "a", "super_shingles": "0123456789abcdef"}),
        ),
    ] {
        let path = format!("/v1/collections/codes/{operation}");
        service
            .post(&path, item.to_string())
            .await
            .refuses(422, "invalid");
    }
    let other = service
        .create("pages", json!({"scheme": shingles, "equal": 2}))
        .await;
    let refused = other.refuses(409, "exists");
    assert!(
        refused["detail"]
            .as_str()
            .unwrap()
            .contains("equal (3 and 2)"),
        "{refused}"
    );
}

#[test]
fn forms_of_sketches_are_told_by_their_scheme() {
    let stored = |sketch: &str| lookalike_store::StoredScheme::from(&scheme(sketch)).sketch_form();
    assert_eq!(
        stored("super-shingle:6x14"),
        lookalike_store::SketchForm::SuperShingles(6)
    );
    assert_eq!(
        stored("minhash:128"),
        lookalike_store::SketchForm::Minima(128)
    );
    assert_eq!(stored("simhash:64"), Sketch::Simhash.into());
}
