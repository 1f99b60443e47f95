//! Fuzz targets of the service: arbitrary bytes as a body or as a connection.

mod connection;
#[cfg(test)]
#[path = "../../../lookalike-corpus/tests/fuzzing/mutate.rs"]
mod mutate;

use lookalike_store::{CollectionSettings, DocumentSketch, PairRule, UnixMillis};

use crate::content::{ContentSource, RequestContent};
use crate::problem::ProblemDetails;
use crate::request::{
    BodyFormat, ChangedCollection, ContentItem, DocumentId, ExpiringDocument, ExportedDocument,
    HASHES, NewCollection, NewDocument, NewSnapshot, PageItem, ParagraphQuery, RequestItem,
    RequestItems, parse_one,
};
use crate::scheme::default_scheme;

/// All targets.
pub const TARGETS: &[&str] = &["body-json", "body-packed", "http"];

/// Maximum number of items in a batch.
const MAX_BATCH_ITEMS: usize = 8;

/// Returns the initial inputs of a target.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    match target {
        "body-json" => [
            r#"{"fingerprint":"00000000000000a1"}"#,
            r#"[{"text":"a \u00e9"},{"html":"<p>b"}]"#,
            r#"{"id":"a","text":"one","ttl_seconds":60,"metadata":{"a":[1.5e3,null]}}"#,
            r#" [{"id":"\ud83d\ude00","fingerprint":"FFFFFFFFFFFFFFFF"}] "#,
            r#"{"id":"a","hashes":["0123456789abcdef","0"]}"#,
            r#"{"scheme":"x","radius":16,"ttl_seconds":1,"keep":{"texts":true,"signatures":false}}"#,
            r#"{"id":"a","super_shingles":"0123456789abcdef","equal":"0.8"}"#,
            r#"{"scheme":"x","equal":0.8}"#,
            r#"{"ttl_seconds":null}"#,
            r#"{"name":"a-1_b"}"#,
        ]
        .map(|text| text.as_bytes().to_vec())
        .to_vec(),
        "body-packed" => {
            let item = b"\xa1\0\0\0\0\0\0\0\x03\0a\xc3\xa9".as_slice();
            vec![item.repeat(3), item[8..].repeat(2), item[..8].repeat(4), Vec::new()]
        }
        _ => connection::seeds(),
    }
}

/// Runs a target on some bytes.
///
/// # Panics
/// Panics if a promise is broken, to report it to the fuzzer.
pub fn run(target: &str, bytes: &[u8]) {
    match target {
        "body-json" => json(bytes),
        "body-packed" => packed(bytes),
        _ => drop(connection::run(bytes)),
    }
}

/// Checks that an error is reported as the client's mistake.
fn checked<T>(read: Result<T, ProblemDetails>) -> Option<T> {
    if let Err(problem) = &read {
        assert!(problem.status.is_client_error(), "{problem:?}");
    }
    read.ok()
}

/// Returns all items of a body, after checking their number.
fn items<T: RequestItem>(bytes: &[u8], format: BodyFormat) -> Vec<T> {
    let (items, _) = checked(RequestItems::<T>::read(bytes, format, MAX_BATCH_ITEMS))
        .map(RequestItems::into_parts)
        .unzip();
    let items: Vec<T> = items.unwrap_or_default();
    assert!(items.len() <= MAX_BATCH_ITEMS);
    items
}

fn json(bytes: &[u8]) {
    for probe in items::<ContentItem>(bytes, BodyFormat::Json) {
        bounded(checked(probe.content()), bytes);
    }
    for entry in items::<NewDocument>(bytes, BodyFormat::Json) {
        let Some((content, kept)) = checked(entry.parts(UnixMillis(1), None)) else {
            continue;
        };
        assert!((1..=2048).contains(&kept.id.len()) && kept.metadata.len() <= 1024);
        bounded(Some(content), bytes);
    }
    // With categories and lengths, and without.
    let rules = [
        PairRule::default(),
        PairRule::default().within("lang").length_share(0.5),
    ];
    let settings = rules.map(|pairs| CollectionSettings::new(&default_scheme()).pairs(pairs));
    let of_rules = settings.iter().flat_map(|settings| {
        let documents = items::<ExportedDocument>(bytes, BodyFormat::Json);
        documents
            .into_iter()
            .map(move |document| (settings, document))
    });
    for (settings, document) in of_rules {
        let Some(document) = checked(document.document(UnixMillis(1), None, settings)) else {
            continue;
        };
        // Loading an export gives the same document.
        let line = serde_json::to_string(&ExportedDocument::new(&document, settings))
            .expect("strings as keys");
        let again: ExportedDocument = serde_json::from_str(&line).expect("an export");
        let mut again = checked(again.document(UnixMillis(1), None, settings)).expect("an export");
        // An export says `null` for a document without an expiry, which loading turns into `UnixMillis::NEVER`.
        again.expires = again.expires.filter(|_| document.expires.is_some());
        assert_eq!(again, document);
    }
    for item in items::<ExpiringDocument>(bytes, BodyFormat::Json) {
        let _ = checked(item.checked(UnixMillis(1)));
    }
    for mut page in items::<PageItem>(bytes, BodyFormat::Json) {
        if let Some(ParagraphQuery::Hashes(hashes)) = checked(page.paragraphs()) {
            assert!(hashes.len() <= HASHES.min(bytes.len()));
        }
    }
    for id in items::<DocumentId>(bytes, BodyFormat::Json) {
        let id = checked(id.checked());
        assert!(id.is_none_or(|id| (1..=2048).contains(&id.len())));
    }
    if let Some(made) = checked(parse_one::<NewCollection>(bytes)) {
        let _ = checked(made.settings());
    }
    if let Some(changed) = checked(parse_one::<ChangedCollection>(bytes)) {
        let _ = checked(changed.time_to_live());
    }
    let _ = checked(parse_one::<NewSnapshot>(bytes));
}

/// Checks that no content is longer than the body that contained it.
fn bounded(content: Option<RequestContent>, bytes: &[u8]) {
    assert!(content.is_none_or(|content| content.len() <= bytes.len()));
}

/// Checks that the items read account for the whole body.
fn packed(bytes: &[u8]) {
    let probes = items::<ContentItem>(bytes, BodyFormat::Packed);
    assert!(probes.is_empty() || probes.len() * 8 == bytes.len());
    let mut entries = Vec::new();
    for entry in items::<NewDocument>(bytes, BodyFormat::Packed) {
        if let Some((content, kept)) = checked(entry.parts(UnixMillis(1), None))
            && let ContentSource::Sketch(DocumentSketch::Fingerprint(code)) = content.source
        {
            entries.extend_from_slice(&code.0.to_le_bytes());
            entries.extend_from_slice(&(kept.id.len() as u16).to_le_bytes());
            entries.extend_from_slice(kept.id.as_bytes());
        }
    }
    assert!(entries.len() <= bytes.len());
    // If all items are valid, writing them again gives the body itself.
    assert!(entries.len() < bytes.len() || entries == bytes);
    let ids = items::<DocumentId>(bytes, BodyFormat::Packed).into_iter();
    let lengths = ids.map(|id| checked(id.checked()).map_or(0, |id| id.len() + 2));
    assert!(lengths.sum::<usize>() <= bytes.len());
    assert!(items::<PageItem>(bytes, BodyFormat::Packed).is_empty());
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::mutate::{Trying, draws, mutated};
    use super::*;

    /// Number of mutations for each target.
    const EXECUTIONS: u64 = 1000;

    fn run(target: &str, bytes: &[u8]) {
        let _trying = Trying { target, bytes };
        super::run(target, bytes);
    }

    #[test]
    fn mutations_of_requests_break_no_promise() {
        for target in TARGETS {
            let seeds = seeds(target);
            seeds.iter().for_each(|seed| run(target, seed));
            for mut numbers in draws(EXECUTIONS) {
                run(target, &mutated(&seeds, &mut numbers));
            }
        }
    }

    /// Replays inputs that once broke something.
    #[test]
    fn what_fuzzing_found_stays_mended() {
        let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/found");
        for target in TARGETS {
            let Ok(entries) = fs::read_dir(found.join(target)) else {
                continue;
            };
            for entry in entries {
                let path = entry.expect("a folder").path();
                run(target, &fs::read(path).expect("a file"));
            }
        }
    }

    #[test]
    fn a_connection_is_answered() {
        let answers = connection::seeds()
            .iter()
            .map(|seed| connection::run(seed))
            .collect::<Vec<_>>();
        let status = |number: usize| String::from_utf8_lossy(&answers[number][..12]);
        assert_eq!(status(0), "HTTP/1.1 200");
        assert_eq!(status(1), "HTTP/1.1 409", "another scheme");
        assert_eq!(status(6), "HTTP/1.1 200");
        assert!(answers.iter().all(|answer| !answer.is_empty()));
    }
}
