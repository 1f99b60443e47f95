//! A collection is compared with the same documents read again.

use std::path::{Path, PathBuf};

use lookalike_corpus::{COLLECTION_FILE, InputOptions, Inputs};
use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use crate::dedup::collection::directory::{CollectionWriter, DocumentCollection};
use crate::dedup::collection::error::CollectionError;
use crate::dedup::decided::DedupDecisions;
use crate::dedup::document_decision::DocumentDecision;
use crate::dedup::job::DedupJob;
use crate::error::BatchError;
use crate::observer::{JobObserver, MeasuredCost};
use crate::output_dir::OutputOptions;
use crate::settings::{JobLimits, JobSettings, Method, PairList, PairScope, RepeatedIds};

/// A record of a file.
#[derive(Clone, Debug)]
struct Row {
    id: String,
    text: Option<String>,
    score: Option<i64>,
    group: Option<String>,
}

fn rows(most: usize) -> impl Strategy<Value = Vec<Row>> {
    let text = prop::collection::vec("[ab]{1,2}", 0..9).prop_map(|words| words.join(" "));
    let row = (
        // Ids that repeat, and ids that look like renamed ones.
        "[a-c](#[23]){0,2}|[a-e]{2}",
        prop::option::weighted(0.9, text),
        prop::option::of(prop_oneof![-2..3_i64, Just(i64::MAX - 1), Just(i64::MAX)]),
        prop::option::of("[xy]"),
    );
    let row = row.prop_map(|(id, text, score, group)| Row {
        id,
        text,
        score,
        group,
    });
    prop::collection::vec(row, 1..most)
}

/// Settings, and the options for reading.
#[derive(Clone, Debug)]
struct Case {
    settings: JobSettings,
    options: InputOptions,
    limits: JobLimits,
}

fn cases() -> impl Strategy<Value = Case> {
    let methods = vec![
        Method::AllPairs,
        Method::MinHash,
        Method::Simhash,
        Method::SuperShingle,
        Method::Henzinger,
        Method::ModP,
        Method::Exact,
    ];
    let scopes = vec![PairScope::Everything, PairScope::Within, PairScope::Across];
    let keeps = vec![
        "longest",
        "shortest",
        "first",
        "max:score,longest",
        "latest:group",
    ];
    let tests = vec![None, Some("containment:chars:2:0.6")];
    let pairs = vec![PairList::All, PairList::Deciding];
    (
        prop::sample::select(pairs),
        prop::sample::select(methods),
        prop::sample::select(scopes),
        prop::sample::select(keeps),
        prop::sample::select(tests),
        0.3..1.0_f64,
        1..4_usize,
    )
        .prop_map(|(pairs, method, scope, keep, test, threshold, threads)| {
            let keep: crate::KeepRules = keep.parse().unwrap();
            let order_field = keep
                .field_rule()
                .map(|rule| rule.to_string().parse().unwrap());
            let test = test.filter(|_| method != Method::Exact);
            let category = (scope != PairScope::Everything).then(|| "group".parse().unwrap());
            Case {
                settings: JobSettings {
                    scope,
                    keep,
                    threshold,
                    tests: test.iter().map(|test| test.parse().unwrap()).collect(),
                    pairs,
                    ..JobSettings::of_method(method)
                },
                options: InputOptions::default()
                    .order_field(order_field)
                    .category(category),
                limits: JobLimits {
                    threads,
                    ..JobLimits::default()
                },
            }
        })
}

/// A row with all fields, without which a job would refuse fields that no record has.
fn complete(id: &str) -> Row {
    Row {
        id: id.to_owned(),
        text: Some("a b".to_owned()),
        score: Some(1),
        group: Some("x".to_owned()),
    }
}

/// Files, a collection and a folder for temporary files.
struct Workspace {
    folder: TempDir,
    case: Case,
    /// Maximum number of records in merged segments.
    most_merged: u64,
}

impl Workspace {
    fn new(case: Case) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            case,
            most_merged: u64::MAX,
        }
    }

    fn collection(&self) -> PathBuf {
        self.folder.path().join("collection")
    }

    fn file(&self, name: &str, rows: &[Row]) -> PathBuf {
        let path = self.folder.path().join(name);
        let line = |row: &Row| {
            let fields =
                json!({"id": row.id, "text": row.text, "score": row.score, "group": row.group});
            format!("{fields}\n")
        };
        std::fs::write(&path, rows.iter().map(line).collect::<String>()).unwrap();
        path
    }

    fn inputs(&self, files: &[PathBuf]) -> Inputs {
        let files: Vec<_> = files.iter().map(Into::into).collect();
        Inputs::discover(&files, &self.case.options, self.folder.path()).unwrap()
    }

    fn job<'j>(&'j self, inputs: &'j Inputs) -> DedupJob<'j> {
        DedupJob::new(inputs, self.folder.path())
            .settings(self.case.settings.clone())
            .options(self.case.options.clone())
            .limits(self.case.limits.clone())
    }

    /// Adds a file to the collection, without comparing.
    fn collect(&self, file: &Path) {
        let inputs = self.inputs(&[file.to_owned()]);
        let mut writer = CollectionWriter::lock(&self.collection()).unwrap();
        writer.most_merged = self.most_merged;
        let old = DocumentCollection::open(&self.collection()).ok();
        let job = self.job(&inputs).into_collection(&writer);
        match &old {
            Some(old) => job.against_collection(old).collect().unwrap(),
            None => job.collect().unwrap(),
        };
    }

    /// Checks all segments and returns their number.
    fn segments(&self) -> u64 {
        let collection = DocumentCollection::open(&self.collection()).unwrap();
        collection.verify().unwrap();
        collection.info().unwrap().segments
    }

    fn against_collection(&self, file: &Path) -> Result<DedupDecisions, BatchError> {
        let collection = DocumentCollection::open(&self.collection())?;
        let inputs = self.inputs(&[file.to_owned()]);
        self.job(&inputs).against_collection(&collection).decide()
    }

    /// Returns all pairs as lines, without those within the old documents.
    fn pairs_against_collection(&self, file: &Path) -> Vec<u8> {
        let collection = DocumentCollection::open(&self.collection()).unwrap();
        let inputs = self.inputs(&[file.to_owned()]);
        let mut lines = Vec::new();
        let job = self.job(&inputs).against_collection(&collection);
        job.write_pairs(&mut lines).unwrap();
        lines
    }

    fn pairs_against_files(&self, old: &[PathBuf], new: &Path) -> Vec<u8> {
        let mut files = old.to_vec();
        files.push(new.to_owned());
        let inputs = self.inputs(&files);
        let mut lines = Vec::new();
        let job = self.job(&inputs).against_sources(old.len());
        job.write_pairs(&mut lines).unwrap();
        lines
    }

    fn against_files(&self, old: &[PathBuf], new: &Path) -> DedupDecisions {
        let mut files = old.to_vec();
        files.push(new.to_owned());
        let inputs = self.inputs(&files);
        self.job(&inputs)
            .against_sources(old.len())
            .decide()
            .unwrap()
    }
}

/// Decisions on the new documents in order, with ids, similarities and reasons; all pairs; and counts.
type Told = (
    Vec<(String, Option<(String, f64, &'static str)>)>,
    Vec<(String, String, f64)>,
    String,
);

fn told(decided: &DedupDecisions) -> Told {
    let decision = |document: u32| {
        let decision = decided.decision(document);
        let survivor = decision.survivor().map(|survivor| {
            let id = decided.id(survivor).to_owned();
            (id, decision.similarity(), decision.reason().unwrap())
        });
        (decided.id(document).to_owned(), survivor)
    };
    let mut pairs = Vec::new();
    let visit = |pair: crate::DedupPair| {
        let id = |document| decided.id(document).to_owned();
        pairs.push((id(pair.a), id(pair.b), pair.similarity));
        Ok(())
    };
    decided.pairs(visit).unwrap();
    let new = decided.against() as u32..decided.len() as u32;
    let counts = format!("{:?}", decided.decision_counts());
    (new.map(decision).collect(), pairs, counts)
}

/// Divides rows into parts, each with a complete row; the last part has the new documents.
fn parts(rows: &[Row], cuts: &[prop::sample::Index]) -> Vec<Vec<Row>> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(rows.len())).collect();
    ends.sort_unstable();
    ends.push(rows.len());
    let mut start = 0;
    let part = |(number, end): (usize, usize)| {
        let mut part = vec![complete(&format!("z{number}"))];
        part.extend_from_slice(&rows[start..end]);
        start = end;
        part
    };
    ends.into_iter().enumerate().map(part).collect()
}

proptest! {
    // Each case runs several jobs.
    #![proptest_config(ProptestConfig::with_cases(50))]

    #[test]
    fn decisions_against_a_collection_are_those_against_its_documents(
        rows in rows(60),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..8),
        // Any history of merges.
        most_merged in prop::collection::vec(prop::sample::select(vec![0, 12, u64::MAX]), 8),
        case in cases(),
    ) {
        let mut place = Workspace::new(case);
        let parts = parts(&rows, &cuts);
        let files: Vec<PathBuf> = parts
            .iter()
            .enumerate()
            .map(|(number, rows)| place.file(&format!("{number}.jsonl"), rows))
            .collect();
        let (new, old) = files.split_last().unwrap();
        for (file, &most_merged) in old.iter().zip(&most_merged) {
            place.most_merged = most_merged;
            place.collect(file);
        }
        let expected = place.against_files(old, new);
        let found = place.against_collection(new).unwrap();
        prop_assert_eq!(told(&found), told(&expected));
        prop_assert_eq!(place.pairs_against_collection(new), place.pairs_against_files(old, new));
        let (found, expected) = (found.counts(), expected.counts());
        let all: usize = parts[..old.len()].iter().map(Vec::len).sum();
        prop_assert_eq!(found.collection.unwrap().documents, all as u64);
        prop_assert_eq!(found.documents, expected.documents - expected.against);
        prop_assert_eq!(found.documents, found.distinct_texts + found.repeated_texts + found.empty + found.too_long);
    }

    #[test]
    fn adding_what_was_kept_is_adding_the_file_of_what_was_kept(
        rows in rows(60),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
        case in cases(),
    ) {
        let place = Workspace::new(case);
        let mut kept_files: Vec<PathBuf> = Vec::new();
        for (number, part) in parts(&rows, &cuts).iter().enumerate() {
            let file = place.file(&format!("{number}.jsonl"), part);
            let expected = place.against_files(&kept_files, &file);

            let writer = CollectionWriter::lock(&place.collection()).unwrap();
            let old = DocumentCollection::open(&place.collection()).ok();
            let inputs = place.inputs(&[file]);
            let job = place.job(&inputs).into_collection(&writer);
            let job = match &old {
                Some(old) => job.against_collection(old),
                None => job,
            };
            let found = job.decide().unwrap();
            job.stage_kept(&found).unwrap().unwrap().commit(&writer).unwrap();
            prop_assert_eq!(told(&found), told(&expected));

            let new = expected.decisions().skip(expected.against());
            let kept = part.iter().zip(new).filter(|(_, decision)| *decision == DocumentDecision::Kept);
            let kept: Vec<Row> = kept.map(|(row, _)| row.clone()).collect();
            kept_files.push(place.file(&format!("kept-{number}.jsonl"), &kept));
        }
    }
}

/// Returns rows with many texts, ids and values.
fn many_rows(count: usize, first: usize) -> Vec<Row> {
    let row = |number: usize| Row {
        id: format!("id-{}", number % 1300),
        text: (!number.is_multiple_of(50)).then(|| {
            let words = (0..12).map(|at| format!("w{}", (number / 3 * 31 + at * at) % 701));
            words.collect::<Vec<_>>().join(" ")
        }),
        score: (!number.is_multiple_of(3)).then_some(number as i64),
        group: Some(format!("g{}", number % 5)),
    };
    (first..first + count).map(row).collect()
}

fn many_case(method: Method) -> Case {
    let keep: crate::KeepRules = "latest:group,longest".parse().unwrap();
    Case {
        settings: JobSettings {
            scope: PairScope::Within,
            threshold: 0.5,
            keep,
            tests: match method {
                Method::Exact => Vec::new(),
                _ => vec!["containment:chars:2:0.6".parse().unwrap()],
            },
            pairs: PairList::All,
            ..JobSettings::of_method(method)
        },
        options: InputOptions::default()
            .order_field(Some("latest:group".parse().unwrap()))
            .category(Some("group".parse().unwrap())),
        limits: JobLimits::default(),
    }
}

#[test]
fn sections_of_many_pages_and_records_of_many_segments_are_found() {
    for method in [Method::AllPairs, Method::MinHash, Method::Henzinger] {
        let mut place = Workspace::new(many_case(method));
        let old = [(1500, 0), (1100, 1400), (3, 2500)];
        let files = old
            .map(|(count, first)| place.file(&format!("{first}.jsonl"), &many_rows(count, first)));
        files.iter().for_each(|file| place.collect(file));
        let new = place.file("new.jsonl", &many_rows(1300, 1200));
        let expected = told(&place.against_files(&files, &new));
        let found = told(&place.against_collection(&new).unwrap());
        // The first two have been merged by now. Repeat without merging.
        assert_eq!(place.segments(), 2);
        std::fs::remove_dir_all(place.collection()).unwrap();
        place.most_merged = 0;
        files.iter().for_each(|file| place.collect(file));
        assert_eq!(place.segments(), 3);
        let apart = told(&place.against_collection(&new).unwrap());
        assert!(apart == expected, "{method}");
        assert!(
            expected.0.iter().any(|(_, survivor)| survivor.is_none()),
            "{method}"
        );
        assert!(
            expected.0.iter().any(|(_, survivor)| survivor.is_some()),
            "{method}"
        );
        assert!(found == expected, "{method}");
    }
}

#[test]
fn a_collection_had_a_file_for_each_addition() {
    let mut case = many_case(Method::AllPairs);
    // The order of additions decides.
    case.settings.keep = "first".parse().unwrap();
    case.options = case.options.order_field(None);
    let place = Workspace::new(case);
    let files: Vec<PathBuf> = (0..40)
        .map(|day| place.file(&format!("{day}.jsonl"), &many_rows(20, 15 * day)))
        .collect();
    for file in &files {
        place.collect(file);
        assert!(place.segments() <= 5);
    }
    let info = DocumentCollection::open(&place.collection())
        .unwrap()
        .info();
    assert_eq!(info.unwrap().additions, 40);
    // Besides the segments there are the manifest, the order and the lock.
    let left = std::fs::read_dir(place.collection()).unwrap().count();
    assert_eq!(left as u64, place.segments() + 3);
    let new = place.file("new.jsonl", &many_rows(200, 500));
    let expected = told(&place.against_files(&files, &new));
    let found = told(&place.against_collection(&new).unwrap());
    assert!(found == expected);
    assert!(found.0.iter().any(|(_, survivor)| survivor.is_some()));
}

#[test]
fn a_reader_that_opened_a_collection_goes_on_when_its_files_are_merged() {
    let place = Workspace::new(many_case(Method::AllPairs));
    let old = place.file("old.jsonl", &many_rows(60, 0));
    place.collect(&old);
    let new = place.file("new.jsonl", &many_rows(50, 30));
    let expected = told(&place.against_files(&[old], &new));
    let opened = DocumentCollection::open(&place.collection()).unwrap();
    place.collect(&place.file("more.jsonl", &many_rows(60, 50)));
    assert!(!place.collection().join("segment-000001.bin").exists());
    let inputs = place.inputs(&[new]);
    let decided = place.job(&inputs).against_collection(&opened).decide();
    assert!(told(&decided.unwrap()) == expected);
    assert_eq!(opened.info().unwrap().documents, 60);
}

#[test]
fn keys_that_do_not_fit_the_memory_at_once_are_looked_up_in_rounds() {
    for method in [Method::AllPairs, Method::MinHash] {
        let mut place = Workspace::new(many_case(method));
        let old = place.file("old.jsonl", &many_rows(900, 0));
        place.collect(&old);
        let new = place.file("new.jsonl", &many_rows(700, 600));
        let expected = told(&place.against_files(&[old], &new));
        // Almost no memory is left besides the tables.
        place.case.limits.memory = 1;
        while let Err(BatchError::Memory { least, .. }) = place.against_collection(&new) {
            place.case.limits.memory = least.max(place.case.limits.memory + 1);
        }
        let found = told(&place.against_collection(&new).unwrap());
        assert!(found == expected, "{method}");
    }
}

#[test]
fn records_that_share_too_few_keys_are_not_read() {
    let case = Case {
        settings: JobSettings::default(),
        options: InputOptions::default(),
        limits: JobLimits::default(),
    };
    let place = Workspace::new(case);
    let words = |of: usize, from: usize, to: usize| {
        let words = (from..to).map(|at| format!("w{of}x{at}"));
        words.collect::<Vec<_>>().join(" ")
    };
    let row = |id: usize, text: String| Row {
        text: Some(text),
        ..complete(&format!("d{id}"))
    };
    // Each has eight words of the new text, and one has nearly all of it.
    let text = |id: usize| match id {
        0 => format!("{} {}", words(0, 0, 88), words(9, 0, 2)),
        _ => format!("{} {}", words(0, id, id + 8), words(id, 0, 82)),
    };
    let old: Vec<Row> = (0..50).map(|id| row(id, text(id))).collect();
    place.collect(&place.file("old.jsonl", &old));
    let new = place.file("new.jsonl", &[row(100, words(0, 0, 90))]);
    let found = place.against_collection(&new).unwrap();
    assert_eq!(found.decision_counts().removed_near, 1);
    let looked_at = found.counts().collection.unwrap().looked_at;
    assert!((1..10).contains(&looked_at), "{looked_at}");
}

#[test]
fn pages_meet_pages_of_a_collection_as_they_meet_those_that_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let page = |title: &str, body: &str, menu: &str| {
        format!(
            "<html><head><title>{title}</title></head><body><nav>{menu}</nav><article><h1>{title}</h1><p>{body}</p></article></body></html>"
        )
    };
    let words = |from: usize| {
        (from..from + 90)
            .map(|at| format!("word{at}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let menu = |from: usize| {
        (from..from + 40)
            .map(|at| format!("<a href=x>link{at}</a>"))
            .collect::<String>()
    };
    let pages = [
        page("One title", &words(0), &menu(0)),
        page("One title", &words(0), &menu(500)),
        page("Another", &words(0), &menu(900)),
        page("Third", &words(300), &menu(0)),
        page("One title", &words(2), &menu(0)),
        page("Third", &words(301), &menu(700)),
        page("One title", &words(0), &menu(0)),
    ];
    let write = |name: &str, range: std::ops::Range<usize>| {
        let path = folder.path().join(name);
        let line = |at: usize| format!("{}\n", json!({"id": format!("p{at}"), "html": pages[at]}));
        std::fs::write(&path, range.map(line).collect::<String>()).unwrap();
        path
    };
    let case = Case {
        settings: JobSettings {
            pairs: PairList::All,
            ..JobSettings::default()
        },
        options: InputOptions::default(),
        limits: JobLimits::default(),
    };
    for cut in 1..pages.len() {
        let place = Workspace::new(case.clone());
        let (old, new) = (
            write("old.jsonl", 0..cut),
            write("new.jsonl", cut..pages.len()),
        );
        place.collect(&old);
        let expected = told(&place.against_files(&[old], &new));
        assert_eq!(
            told(&place.against_collection(&new).unwrap()),
            expected,
            "{cut}"
        );
        // Page by page, so that records of one class are merged.
        std::fs::remove_dir_all(place.collection()).unwrap();
        for page in 0..cut {
            place.collect(&write("page.jsonl", page..page + 1));
        }
        assert!(place.segments() <= 2);
        assert_eq!(
            told(&place.against_collection(&new).unwrap()),
            expected,
            "{cut}"
        );
    }
}

#[test]
fn a_text_that_is_what_a_reader_sees_of_a_page_meets_it_whatever_the_size_of_its_main_text() {
    let words = |from: usize, to: usize| {
        let words = (from..to).map(|at| format!("word{at}"));
        words.collect::<Vec<_>>().join(" ")
    };
    let menu: String = (0..60)
        .map(|at| format!("<a href=x>link number {at}</a>"))
        .collect();
    let html = format!(
        "<html><head><title>One title</title></head><body><nav>{menu}</nav><article><h1>One title</h1><p>{}</p></article></body></html>",
        words(0, 90)
    );
    let (mut main, mut visible) = (String::new(), String::new());
    let mut extractor = lookalike_corpus::HtmlText::new(InputOptions::default().html).unwrap();
    extractor.extract_with_visible(&html, &mut main, &mut visible);
    assert!(visible.len() > 2 * main.len(), "{visible}");
    let case = Case {
        settings: JobSettings::default(),
        options: InputOptions::default(),
        limits: JobLimits::default(),
    };
    let place = Workspace::new(case);
    let write = |name: &str, id: &str, field: &str, text: &str| {
        let path = place.folder.path().join(name);
        std::fs::write(&path, format!("{}\n", json!({"id": id, field: text}))).unwrap();
        path
    };
    let page = write("page.jsonl", "page", "html", &html);
    let text = write("text.jsonl", "text", "text", &visible);
    for (old, new) in [(&page, &text), (&text, &page)] {
        let collection = place.collection();
        std::fs::remove_dir_all(&collection).unwrap_or_default();
        place.collect(old);
        let found = place.against_collection(new).unwrap();
        assert_eq!(found.decision_counts().removed_exact, 1, "{new:?}");
    }
}

/// Returns all files of a collection that are not empty.
fn data_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.metadata().unwrap().len() > 0)
        .collect();
    paths.sort();
    paths
}

#[test]
fn no_changed_byte_of_any_file_changes_a_decision() {
    let place = Workspace::new(many_case(Method::AllPairs));
    place.collect(&place.file("old.jsonl", &many_rows(60, 0)));
    place.collect(&place.file("more.jsonl", &many_rows(20, 50)));
    let new = place.file("new.jsonl", &many_rows(50, 30));
    let expected = told(&place.against_collection(&new).unwrap());
    let files = data_files(&place.collection());
    assert_eq!(
        files.len(),
        4,
        "manifest, order and two segments: {files:?}"
    );
    for path in files {
        let good = std::fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let refused = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let opened = DocumentCollection::open(&place.collection());
            opened.and_then(|collection| collection.verify()).err()
        };
        // Some bytes suffice, because each block has a single checksum.
        let step = good.len().div_ceil(700);
        for at in (0..good.len()).step_by(step) {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            let error = refused(&bad).unwrap_or_else(|| panic!("{name}, byte {at}"));
            let is_told =
                matches!(error, CollectionError::Damaged { path: ref told, .. } if *told == path);
            assert!(is_told, "{name}, byte {at}: {error}");
            assert!(error.to_string().contains("restore"), "{error}");
            if at.is_multiple_of(11 * step) {
                match place.against_collection(&new) {
                    Ok(found) => assert!(told(&found) == expected, "{name}, byte {at}"),
                    Err(BatchError::Collection(CollectionError::Damaged { .. })) => {}
                    Err(error) => panic!("{name}, byte {at}: {error}"),
                }
            }
        }
        for length in (0..good.len()).step_by(good.len().div_ceil(40)) {
            let error = refused(&good[..length]);
            assert!(
                matches!(error, Some(CollectionError::Damaged { .. })),
                "{name}, cut at {length}"
            );
        }
        std::fs::remove_file(&path).unwrap();
        let missing = DocumentCollection::open(&place.collection()).err().unwrap();
        let is_told = match name == COLLECTION_FILE {
            true => matches!(missing, CollectionError::Missing { .. }),
            false => matches!(missing, CollectionError::Damaged { .. }),
        };
        assert!(is_told, "{name}: {missing}");
        std::fs::write(&path, &good).unwrap();
    }
    assert!(told(&place.against_collection(&new).unwrap()) == expected);
}

#[test]
fn a_manifest_that_was_replaced_and_not_synced_was_said_to_be_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(COLLECTION_FILE);
    std::fs::write(&path, "new").unwrap();
    for (contents, told) in [("new", "were added"), ("other", "is unchanged")] {
        let cause = std::io::Error::other("the disk failed");
        let error = CollectionError::unsaved(path.clone(), cause, contents.as_bytes());
        assert!(error.to_string().contains(told), "{error}");
    }
}

#[test]
fn a_segment_of_another_collection_is_refused() {
    let [one, other] = [0, 7].map(|first| {
        let place = Workspace::new(many_case(Method::AllPairs));
        place.collect(&place.file("old.jsonl", &many_rows(60, first)));
        place
    });
    let segment = |place: &Workspace| place.collection().join("segment-000001.bin");
    std::fs::copy(segment(&other), segment(&one)).unwrap();
    let opened = DocumentCollection::open(&one.collection());
    let error = opened
        .and_then(|collection| collection.verify())
        .unwrap_err();
    assert!(matches!(error, CollectionError::Damaged { .. }), "{error}");
}

#[test]
fn every_setting_that_differs_is_named_with_both_values() {
    let place = Workspace::new(many_case(Method::AllPairs));
    place.collect(&place.file("old.jsonl", &many_rows(10, 0)));
    let collection = DocumentCollection::open(&place.collection()).unwrap();
    let refused = |settings: JobSettings, options: InputOptions| {
        let error = collection.ensure_fits(&settings, &options).unwrap_err();
        error.to_string()
    };
    let Case {
        settings, options, ..
    } = place.case.clone();
    let with = |change: &dyn Fn(&mut JobSettings)| {
        let mut settings = settings.clone();
        change(&mut settings);
        refused(settings, options.clone())
    };
    let said = with(&|settings| settings.threshold = 0.75);
    assert!(
        said.contains("threshold of the collection: 0.5, of the job: 0.75"),
        "{said}"
    );
    let said = with(&|settings| *settings = JobSettings::of_method(Method::MinHash));
    for part in [
        "method of the collection: allpairs, of the job: minhash",
        "recall",
        "ranking field",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    let said = with(&|settings| settings.scheme.seed = 3);
    assert!(
        said.contains("scheme of the collection") && said.contains("seed"),
        "{said}"
    );
    assert!(
        said.contains("scheme of the collection: seed=0, of the job: seed=3"),
        "{said}"
    );
    let said = with(&|settings| settings.scope = PairScope::Across);
    assert!(
        said.contains("scope of the collection: within, of the job: across"),
        "{said}"
    );
    let said = with(&|settings| settings.tests.clear());
    assert!(said.contains("further tests"), "{said}");
    let longer = options.clone().max_document_bytes(5);
    assert!(refused(settings.clone(), longer).contains("longest document"));
    // Settings that change neither keys nor facts may differ.
    let other = JobSettings {
        lengths: Some(0.5),
        keep: "latest:group,shortest".parse().unwrap(),
        repeated_ids: RepeatedIds::Refuse,
        ..settings
    };
    collection.ensure_fits(&other, &options).unwrap();
}

#[test]
fn ids_that_repeat_in_the_collection_do_not_refuse_new_documents() {
    let mut case = many_case(Method::AllPairs);
    case.settings.repeated_ids = RepeatedIds::Refuse;
    let place = Workspace::new(case);
    let old = vec![complete("a"), complete("a"), complete("b")];
    place.collect(&place.file("old.jsonl", &old));
    let new = place.file("new.jsonl", &[complete("c"), complete("a")]);
    assert_eq!(
        place
            .against_collection(&new)
            .unwrap()
            .decision_counts()
            .kept,
        0
    );
    let twice = place.file("twice.jsonl", &[complete("c"), complete("c")]);
    let refused = place.against_collection(&twice).err().unwrap();
    assert!(
        matches!(refused, BatchError::RepeatedId { count: 1, .. }),
        "{refused}"
    );
}

#[test]
fn one_writer_at_a_time_has_the_collection_and_readers_do_not_mind() {
    let place = Workspace::new(many_case(Method::AllPairs));
    place.collect(&place.file("old.jsonl", &many_rows(10, 0)));
    let writer = CollectionWriter::lock(&place.collection()).unwrap();
    let second = CollectionWriter::lock(&place.collection()).unwrap_err();
    assert!(matches!(second, CollectionError::Locked { .. }), "{second}");
    assert_eq!(
        DocumentCollection::open(&place.collection())
            .unwrap()
            .documents(),
        10
    );
    drop(writer);
    CollectionWriter::lock(&place.collection()).unwrap();
}

#[test]
fn a_directory_with_other_files_is_not_taken_for_a_collection() {
    let place = Workspace::new(many_case(Method::AllPairs));
    place.file("mine.txt", &[]);
    let refused = CollectionWriter::lock(place.folder.path()).unwrap_err();
    let is_told = matches!(&refused, CollectionError::Foreign { name, .. } if name == "mine.txt");
    assert!(is_told, "{refused}");
    let missing = DocumentCollection::open(place.folder.path()).err().unwrap();
    assert!(
        matches!(missing, CollectionError::Missing { .. }),
        "{missing}"
    );
}

#[test]
fn a_staged_addition_is_committed_once_and_never_to_another_state() {
    let place = Workspace::new(many_case(Method::AllPairs));
    place.collect(&place.file("old.jsonl", &many_rows(10, 0)));
    let staged = |first| {
        let writer = CollectionWriter::lock(&place.collection()).unwrap();
        let old = DocumentCollection::open(&place.collection()).unwrap();
        let inputs = place.inputs(&[place.file("new.jsonl", &many_rows(10, first))]);
        let job = place
            .job(&inputs)
            .into_collection(&writer)
            .against_collection(&old);
        let decided = job.decide().unwrap();
        job.stage_kept(&decided).unwrap().unwrap()
    };
    let documents = || {
        DocumentCollection::open(&place.collection())
            .unwrap()
            .documents()
    };
    let first = staged(100);
    assert_eq!(documents(), 10);
    {
        let writer = CollectionWriter::lock(&place.collection()).unwrap();
        let added = first.added(&writer).unwrap();
        for _ in 0..2 {
            first.commit(&writer).unwrap();
            assert_eq!(documents(), added.documents);
            assert_eq!(first.added(&writer).unwrap(), added);
        }
        assert!(added.added > 0);
    }
    let late = staged(200);
    place.collect(&place.file("more.jsonl", &many_rows(2, 301)));
    let writer = CollectionWriter::lock(&place.collection()).unwrap();
    let refused = late.commit(&writer).unwrap_err();
    assert!(
        matches!(refused, CollectionError::Changed { .. }),
        "{refused}"
    );
    // The first addition remains, whatever was added later, and whichever segment it was merged into.
    first.commit(&writer).unwrap();
}

#[test]
fn a_job_added_again_what_another_had_added_since_the_collection_was_opened() {
    let place = Workspace::new(many_case(Method::AllPairs));
    place.collect(&place.file("old.jsonl", &many_rows(10, 0)));
    let old = DocumentCollection::open(&place.collection()).unwrap();
    let more = place.file("more.jsonl", &many_rows(2, 101));
    place.collect(&more);
    let inputs = place.inputs(&[more]);
    let writer = CollectionWriter::lock(&place.collection()).unwrap();
    let job = place.job(&inputs).into_collection(&writer);
    let out = place.folder.path().join("out");
    let refused = job
        .against_collection(&old)
        .dedup(&out, &OutputOptions::default());
    let refused = refused.unwrap_err();
    let is_told = matches!(
        &refused,
        BatchError::Collection(CollectionError::Outdated { .. })
    );
    assert!(is_told, "{refused}");
    let now = DocumentCollection::open(&place.collection()).unwrap();
    let job = place.job(&inputs).into_collection(&writer);
    let job = job.against_collection(&now);
    let summary = job.dedup(&out, &OutputOptions::default()).unwrap();
    assert_eq!(summary.decisions.kept, 0);
}

/// The addition of a resumed job named a file that another job, which was not completed either, had written since.
#[test]
fn a_staged_addition_was_committed_without_its_segment() {
    let place = Workspace::new(many_case(Method::AllPairs));
    place.collect(&place.file("old.jsonl", &many_rows(10, 0)));
    let writer = CollectionWriter::lock(&place.collection()).unwrap();
    let old = DocumentCollection::open(&place.collection()).unwrap();
    let staged = |first| {
        let inputs = place.inputs(&[place.file("new.jsonl", &many_rows(10, first))]);
        let job = place.job(&inputs).into_collection(&writer);
        let job = job.against_collection(&old);
        job.stage_kept(&job.decide().unwrap()).unwrap().unwrap()
    };
    let (first, second) = (staged(100), staged(200));
    let refused = first.commit(&writer).unwrap_err();
    assert!(
        matches!(refused, CollectionError::Changed { .. }),
        "{refused}"
    );
    second.commit(&writer).unwrap();
    place.segments();
}

#[test]
fn another_version_of_the_format_is_named() {
    let place = Workspace::new(many_case(Method::AllPairs));
    place.collect(&place.file("old.jsonl", &many_rows(10, 0)));
    let path = place.collection().join(COLLECTION_FILE);
    let text = std::fs::read_to_string(&path).unwrap();
    let json = text
        .lines()
        .next()
        .unwrap()
        .replace("\"format\":5,", "\"format\":99,");
    let sum = xxhash_rust::xxh3::xxh3_64(json.as_bytes());
    std::fs::write(&path, format!("{json}\n{sum:016x}\n")).unwrap();
    let refused = DocumentCollection::open(&place.collection()).err().unwrap();
    assert!(
        matches!(
            refused,
            CollectionError::Version {
                found: 99,
                known: 5,
                ..
            }
        ),
        "{refused}"
    );
}

/// Removes a folder when the cost of a job is requested, just before the job ends.
struct RemoveAtEnd(PathBuf);

impl JobObserver for RemoveAtEnd {
    fn measured(&self) -> MeasuredCost {
        std::fs::remove_dir_all(&self.0).unwrap();
        MeasuredCost::default()
    }
}

#[test]
fn results_told_of_an_addition_that_was_never_made() {
    let place = Workspace::new(many_case(Method::AllPairs));
    let file = place.file("new.jsonl", &many_rows(30, 0));
    let inputs = place.inputs(&[file]);
    let writer = CollectionWriter::lock(&place.collection()).unwrap();
    let observer = RemoveAtEnd(place.collection());
    let job = place.job(&inputs).into_collection(&writer);
    let job = job.observer(&observer);
    let out = place.folder.path().join("out");
    job.dedup(&out, &OutputOptions::default()).unwrap_err();
    // With the summary, the next command would publish the results.
    assert!(!out.join(".lookalike/new/run.json").exists());
    let again = place.job(&inputs).into_collection(&writer);
    again.dedup(&out, &OutputOptions::default()).unwrap_err();
    assert!(!out.join("run.json").exists());
}

/// Their keys were in the order of features of another scan, so that later documents with the same text and a few more words did not meet
/// them.
#[test]
fn documents_added_without_comparing_with_their_collection_were_missed_later() {
    let words = |of: usize| (0..45).map(move |at| format!("w{of}x{at}"));
    let row = |id: &str, lead: usize, blocks: [usize; 2]| {
        // The last words of block 1 come first.
        let lead = words(1).skip(45 - lead);
        let text: Vec<String> = lead.chain(blocks.into_iter().flat_map(words)).collect();
        Row {
            text: Some(text.join(" ")),
            ..complete(id)
        }
    };
    let group = |name: &str, lead: usize, block: usize, first: usize| -> Vec<Row> {
        let id = |at: usize| format!("{name}{at}");
        (0..3)
            .map(|at| row(&id(at), lead, [block, first + at]))
            .collect()
    };
    // Common are the words of block 1 in the collection, and those of block 2 in what is added and in the other collection, where also what
    // joins both blocks is common. So the prefixes of `original` in the two orders have nothing in common.
    let mut added = group("added", 10, 2, 20);
    added.push(row("original", 0, [1, 2]));
    let mut copy = row("copy", 0, [1, 2]);
    copy.text = copy.text.map(|text| format!("{text} more"));
    let case = Case {
        settings: JobSettings {
            threshold: 0.8,
            ..JobSettings::of_method(Method::AllPairs)
        },
        options: InputOptions::default(),
        limits: JobLimits::default(),
    };
    let other_place = Workspace::new(case.clone());
    other_place.collect(&other_place.file("other.jsonl", &group("other", 10, 2, 30)));
    let other = DocumentCollection::open(&other_place.collection()).unwrap();
    for way in ["collected", "decided", "compared with another collection"] {
        let place = Workspace::new(case.clone());
        place.collect(&place.file("old.jsonl", &group("old", 0, 1, 10)));
        let inputs = place.inputs(&[place.file("added.jsonl", &added)]);
        {
            let writer = CollectionWriter::lock(&place.collection()).unwrap();
            let job = place.job(&inputs).into_collection(&writer);
            if way == "collected" {
                job.collect().unwrap();
            } else {
                let job = match way {
                    "decided" => job,
                    _ => job.against_collection(&other),
                };
                let staged = job.stage_kept(&job.decide().unwrap()).unwrap().unwrap();
                staged.commit(&writer).unwrap();
            }
        }
        let copies = place.file("copy.jsonl", std::slice::from_ref(&copy));
        let found = place.against_collection(&copies).unwrap();
        assert_eq!(found.decision_counts().removed_near, 1, "{way}");
    }
}

#[test]
fn an_id_that_a_text_has_twice_was_stored_twice() {
    let place = Workspace::new(many_case(Method::AllPairs));
    place.collect(&place.file("old.jsonl", &[complete("a"), complete("a"), complete("b")]));
    let collection = DocumentCollection::open(&place.collection()).unwrap();
    let [segment] = &collection.manifest.segments[..] else {
        panic!("one addition makes one segment");
    };
    assert_eq!((segment.documents, segment.ids), (3, 2));
}
