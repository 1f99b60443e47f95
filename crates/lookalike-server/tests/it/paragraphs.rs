//! Similar paragraphs (Yu, Hu and Zhang: similarity on full text and paragraphs).

use serde_json::{Value, json};

use crate::service::{Service, Started};

/// Texts from which the paragraphs take their words.
const TEXTS: [&str; 4] = [
    include_str!("../../../../examples/pages/en/harbour-clock-plain.txt"),
    include_str!("../../../../examples/pages/de/moorweg.txt"),
    include_str!("../../../../examples/pages/ru/sad.txt"),
    CHINESE,
];
/// A text in which every character is a word.
const CHINESE: &str = include_str!("../../../../examples/pages/zh/yuwang.txt");
/// Number of words in a paragraph.
const WORDS: usize = 60;
/// Number of paragraphs in a document.
const DOCUMENT_TTL_REMEDY: usize = 10;

/// A generator of random paragraphs from the words of one language.
struct Writer {
    words: Vec<String>,
    between: &'static str,
    state: u64,
}

impl Writer {
    fn all() -> Vec<Self> {
        let of = |text: &&'static str| {
            let is_chinese = *text == CHINESE;
            let letters = |word: &str| word.chars().all(char::is_alphabetic) && !word.is_empty();
            let mut words: Vec<String> = match is_chinese {
                true => text.chars().map(String::from).collect(),
                false => text.split_whitespace().map(str::to_lowercase).collect(),
            };
            words.retain(|word| letters(word));
            words.sort_unstable();
            words.dedup();
            assert!(words.len() > 60, "{} words", words.len());
            Self {
                words,
                between: if is_chinese { "" } else { " " },
                state: 0x9e37_79b9,
            }
        };
        TEXTS.iter().map(of).collect()
    }

    fn below(&mut self, end: usize) -> usize {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % end as u64) as usize
    }

    fn paragraph(&mut self) -> Vec<usize> {
        let words = self.words.len();
        (0..WORDS).map(|_| self.below(words)).collect()
    }

    /// Returns the paragraph with one word changed.
    fn edited(&mut self, paragraph: &[usize]) -> Vec<usize> {
        let (mut edited, words) = (paragraph.to_vec(), self.words.len());
        let (place, by) = (self.below(WORDS), self.below(words - 1));
        edited[place] = (edited[place] + 1 + by) % words;
        edited
    }

    fn text(&self, paragraph: &[usize]) -> String {
        let words: Vec<&str> = paragraph.iter().map(|&at| &*self.words[at]).collect();
        words.join(self.between)
    }
}

/// Creates a service with a collection whose scheme suits paragraphs (pairs of words), with a radius that finds documents of their length.
async fn service(name: &str, settings: Value) -> Service {
    let service = Service::new();
    create(&service, name, settings).await;
    service
}

async fn create(service: &Service, name: &str, mut settings: Value) {
    let scheme = lookalike_server::default_scheme().to_string();
    settings["scheme"] = json!(scheme.replace("shingle=words:5", "shingle=words:2"));
    settings["radius"] = json!(10);
    service.create(name, settings).await.is(201);
}

/// Returns the verdict, document and position of the nearest for each paragraph of a page.
fn nearest(page: &Value) -> Vec<(String, Value, Value)> {
    let paragraphs = page["paragraphs"].as_array().unwrap();
    let all = paragraphs.iter().map(|paragraph| {
        let verdict = paragraph["verdict"].as_str().unwrap().to_owned();
        let first = &paragraph["documents"][0];
        (verdict, first["id"].clone(), first["position"].clone())
    });
    all.collect()
}

#[tokio::test]
async fn paragraphs_with_one_changed_word_in_four_languages_are_found_as_whole_documents_are() {
    let service = service("pages", json!({"keep": {"paragraphs": true}})).await;
    create(&service, "whole", json!({})).await;
    let (mut documents, mut whole, mut pages, mut expected) = (vec![], vec![], vec![], vec![]);
    let mut writers = Writer::all();
    for (language, writer) in writers.iter_mut().enumerate() {
        for number in 0..50 / DOCUMENT_TTL_REMEDY {
            let id = format!("{language}-{number}");
            let paragraphs: Vec<_> = (0..DOCUMENT_TTL_REMEDY)
                .map(|_| writer.paragraph())
                .collect();
            let edited = paragraphs.iter().map(|paragraph| writer.edited(paragraph));
            let edited: Vec<_> = edited.collect::<Vec<_>>();
            let texts = |all: &[Vec<usize>]| -> Vec<String> {
                all.iter().map(|paragraph| writer.text(paragraph)).collect()
            };
            let (texts, edited) = (texts(&paragraphs), texts(&edited));
            // In some documents each line is a paragraph, as in laws; in others paragraphs are separated by blank lines.
            let between = if number % 2 == 0 { "\n" } else { "\n\n" };
            documents.push(json!({"id": id, "text": texts.join(between)}));
            pages.push(json!({"text": edited.join(between)}));
            for (position, (text, edited)) in texts.into_iter().zip(edited).enumerate() {
                whole.push(json!({"id": format!("{id}-{position}"), "text": text}));
                expected.push((json!(id), json!(position), edited));
            }
        }
    }
    service.ask("insert", documents.into()).await.is(200);
    let [insert, check] = ["insert", "check"].map(|name| format!("/v1/collections/whole/{name}"));
    let inserted = service.post(&insert, Value::from(whole).to_string());
    inserted.await.is(200);
    let answers = service.ask("paragraphs", pages.into()).await.is(200);
    let found: Vec<_> = answers
        .as_array()
        .unwrap()
        .iter()
        .flat_map(nearest)
        .collect();
    let contents: Vec<Value> = expected
        .iter()
        .map(|(.., text)| json!({"text": text}))
        .collect();
    let checks = service.post(&check, Value::from(contents).to_string());
    let checks = checks.await.is(200);
    let mut right = 0;
    assert_eq!(found.len(), 200);
    for (at, ((verdict, id, position), (document, place, _))) in
        found.iter().zip(&expected).enumerate()
    {
        assert_eq!(checks[at]["verdict"], **verdict, "as a whole document");
        assert_ne!(verdict, "exact");
        right += usize::from(verdict != "new" && id == document && position == place);
    }
    assert!(right >= 190, "{right} of 200 paragraphs");
    // None of 10,000 unrelated paragraphs is found.
    let mut others = Vec::new();
    for writer in &mut writers {
        let page = |_| {
            let all: Vec<_> = (0..100).map(|_| writer.paragraph()).collect();
            let all: Vec<_> = all.iter().map(|paragraph| writer.text(paragraph)).collect();
            json!({"text": all.join("\n")})
        };
        let pages: Vec<Value> = (0..25).map(page).collect();
        let answers = service.ask("paragraphs", pages.into()).await.is(200);
        others.extend(answers.as_array().unwrap().iter().flat_map(nearest));
    }
    assert_eq!(others.len(), 10_000);
    assert!(others.iter().all(|(verdict, ..)| verdict == "new"));
}

#[tokio::test]
async fn similar_paragraphs_tell_distance_document_and_position_and_count_in_the_shares() {
    let service = service("pages", json!({"keep": {"paragraphs": true}})).await;
    let writer = &mut Writer::all()[0];
    let [first, second, third] = std::array::from_fn(|_| writer.paragraph());
    let changed = writer.edited(&second);
    let [first, second, third, changed] =
        [first, second, third, changed].map(|words| writer.text(&words));
    let both = format!("A title\n\n{first}\n\n{second}");
    let documents = json!([
        {"id": "both", "text": both},
        {"id": "lines", "text": format!("{third}\n{changed}\n{second}")},
    ]);
    service.ask("insert", documents).await.is(200);
    let page = json!({"text": format!("A  title!\n\n{third}\n\n{changed}\n\nA tale")});
    let answer = service.ask("paragraphs", page.clone()).await.is(200);
    let paragraphs = answer["paragraphs"].as_array().unwrap();
    let title = json!({"id": "both", "position": 0, "verdict": "exact", "distance": 0});
    assert_eq!(paragraphs[0]["documents"], json!([title]));
    assert!(paragraphs[0].get("fingerprint").is_none(), "too short");
    let changed = &paragraphs[2];
    assert_eq!(
        (&changed["verdict"], &changed["distance"]),
        (&json!("exact"), &json!(0))
    );
    let near = &changed["documents"][1];
    assert_eq!(
        (&near["id"], &near["position"]),
        (&json!("both"), &json!(2))
    );
    assert_eq!(near["verdict"], "near");
    let distance = near["distance"].as_u64().unwrap();
    assert!((1..=10).contains(&distance), "{near}");
    assert_eq!(
        paragraphs[3]["verdict"], "new",
        "one word of two is another"
    );
    assert_eq!((&answer["known"], &answer["exact"]), (&json!(3), &json!(3)));
    // Without the document itself, its paragraphs are only similar.
    let own = json!({"id": "lines", "text": page["text"]});
    let answer = service.ask("paragraphs", own.clone()).await.is(200);
    let verdicts = nearest(&answer).into_iter().map(|(verdict, ..)| verdict);
    assert_eq!(
        verdicts.collect::<Vec<_>>(),
        ["exact", "new", "near", "new"]
    );
    let shares = ["words", "known_words", "exact_words"].map(|name| answer[name].as_u64().unwrap());
    assert_eq!(shares, [124, 62, 2]);
    assert_eq!(
        (&answer["known_share"], &answer["exact_share"]),
        (&json!(0.5), &json!(0.016129))
    );
    assert_eq!((&answer["known"], &answer["exact"]), (&json!(2), &json!(1)));
    // Nothing is found beyond the radius of the request, nor beyond that of the collection.
    let operation = format!("paragraphs?radius={}", distance - 1);
    let answer = service.ask(&operation, own.clone()).await.is(200);
    assert_eq!(answer["paragraphs"][2]["verdict"], "new");
    service
        .ask("paragraphs?radius=11", own)
        .await
        .refuses(422, "invalid");
    let metrics = service.get("/metrics").await.text;
    assert!(
        metrics.contains("lookalike_paragraphs_total{verdict=\"near\"} 1"),
        "{metrics}"
    );
}

#[tokio::test]
async fn positions_did_not_count_paragraphs_without_words() {
    let service = service("pages", json!({"keep": {"paragraphs": true}})).await;
    let ferry = "The ferry left the harbour at nine with forty people on board today";
    let document = json!({"id": "a", "text": format!("* * *\n\n{ferry}")});
    service.ask("insert", document).await.is(200);
    let page = json!({"text": format!("{ferry}\n\n* * *\n\n---")});
    let answer = service.ask("paragraphs", page).await.is(200);
    let none = ("new".to_owned(), Value::Null, Value::Null);
    let exact = ("exact".to_owned(), json!("a"), json!(1));
    assert_eq!(nearest(&answer), [exact, none.clone(), none], "{answer}");
    let separator = json!({"hashes": [answer["paragraphs"][1]["hash"]]});
    let answer = service.ask("paragraphs", separator).await.is(200);
    assert_eq!(answer["known"], 0, "{answer}");
}

#[tokio::test]
async fn similar_paragraphs_are_found_after_a_restart_and_in_runs() {
    let settings = json!({"keep": {"paragraphs": true, "texts": true}, "paragraphs": "lines"});
    let mut service = service("pages", settings.clone()).await;
    create(&service, "copy", settings.clone()).await;
    let writer = &mut Writer::all()[1];
    let paragraphs: Vec<_> = (0..200).map(|_| writer.paragraph()).collect();
    let documents = paragraphs.chunks(5).enumerate().map(|(id, five)| {
        let five: Vec<String> = five.iter().map(|words| writer.text(words)).collect();
        json!({"id": id.to_string(), "text": five.join("\n")})
    });
    let documents: Vec<Value> = documents.collect();
    service.ask("insert", documents.into()).await.is(200);
    let gone = json!([{"id": "3"}, {"id": "17"}]);
    service.ask("delete", gone).await.is(200);
    let edited = paragraphs.iter().map(|words| writer.edited(words));
    let edited: Vec<_> = edited.collect();
    let edited: Vec<String> = edited.iter().map(|words| writer.text(words)).collect();
    let page = json!({"text": edited.join("\n")});
    let expected = service.ask("paragraphs", page.clone()).await.is(200);
    assert!(expected["known"].as_u64().unwrap() > 170);
    assert_eq!(
        expected["paragraphs"][15]["verdict"], "new",
        "it was deleted"
    );
    // An export contains the fingerprints, and loading it gives the same documents.
    let exported = service.get("/v1/collections/pages/export").await.text;
    let items = format!("[{}]", exported.trim_end().replace('\n', ","));
    service
        .post("/v1/collections/copy/load", items)
        .await
        .is(200);
    let copied = service
        .post("/v1/collections/copy/paragraphs", page.to_string())
        .await;
    assert_eq!(copied.is(200), expected);
    assert_eq!(
        service.get("/v1/collections/copy/export").await.text,
        exported
    );
    for compacts in [false, true] {
        if compacts {
            service.ask("compact", json!({})).await.is(202);
        }
        let folder = service.stop().await;
        service = Service::on(folder, Started::default());
        let shown = service.get("/v1/collections/pages").await.is(200);
        assert_eq!(shown["paragraphs"], "lines");
        assert_eq!(
            service.ask("paragraphs", page.clone()).await.is(200),
            expected
        );
    }
    // The paragraph rule is part of the settings.
    let mut other = settings;
    other["paragraphs"] = json!("auto");
    other["radius"] = json!(10);
    other["scheme"] = service.get("/v1/collections/pages").await.is(200)["scheme"].clone();
    service
        .create("pages", other.clone())
        .await
        .refuses(409, "exists");
    other["paragraphs"] = json!("lines");
    service.create("pages", other).await.is(200);
}

#[tokio::test]
async fn a_rule_for_paragraphs_that_are_not_kept_is_refused() {
    let service = Service::new();
    service
        .create("a", json!({"paragraphs": "lines"}))
        .await
        .refuses(422, "invalid");
    let unknown = json!({"keep": {"paragraphs": true}, "paragraphs": "sentences"});
    service.create("a", unknown).await.refuses(422, "invalid");
    let kept = service
        .create("a", json!({"keep": {"paragraphs": true}}))
        .await
        .is(201);
    assert_eq!(kept["paragraphs"], "auto");
    let none = service.create("b", json!({})).await.is(201);
    assert!(none.get("paragraphs").is_none());
}
