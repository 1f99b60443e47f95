//! Indexes of sketches: compared with comparing all, built in parts, and damaged.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use lookalike::hash::xxh3_64;
use lookalike_hamming::{FileError, Layout, RankBytes, share};
use proptest::prelude::*;

use super::sketch_build::MIN_POSITION_BYTES;
use super::{IndexBuild, IndexSummary, SketchIndexSummary};
use crate::error::BatchError;
use crate::fingerprints::files::{FingerprintSource, PlaceKind, SketchShape};
use crate::fingerprints::sketches::{MinEqual, SketchIndexFile, SketchReading, open_sketches};
use crate::losses::LossPolicy;
use crate::observer::NoProgress;
use crate::parallel::PARALLEL_MIN;
use crate::settings::JobLimits;

/// A document's id and the places of its sketch.
type PlacedDocument = (String, Vec<u64>);

fn line(kind: PlaceKind, (id, places): &PlacedDocument) -> String {
    let digits: String = match kind {
        PlaceKind::SuperShingles => places.iter().map(|place| format!("{place:016x}")).collect(),
        PlaceKind::Minima => places.iter().map(|place| format!("{place:08x}")).collect(),
    };
    format!("{{\"id\":{id:?},{:?}:\"{digits}\"}}\n", kind.column())
}

fn words(kind: PlaceKind, places: &[u64]) -> Vec<u64> {
    let minima: Vec<u32> = places.iter().map(|&place| place as u32).collect();
    match kind {
        PlaceKind::SuperShingles => places.to_vec(),
        PlaceKind::Minima => minima
            .chunks(2)
            .map(|two| {
                two.iter()
                    .rev()
                    .fold(0, |word, &place| word << 32 | u64::from(place))
            })
            .collect(),
    }
}

fn build(
    inputs: &[PathBuf],
    output: &Path,
    equal: usize,
    with_ids: bool,
) -> Result<SketchIndexSummary, BatchError> {
    let inputs: Vec<FingerprintSource> = inputs.iter().map(|path| path.clone().into()).collect();
    let build = IndexBuild::new(&inputs, output)
        .equal(Some(MinEqual::Places(equal as u32)))
        .with_ids(with_ids)
        .limits(JobLimits::default().threads(2).memory(64 << 20));
    match build.run(&build.enter()?)? {
        IndexSummary::Sketches(summary) => Ok(summary),
        IndexSummary::Fingerprints(summary) => panic!("{summary:?}"),
    }
}

/// Returns the ids and distances that a search must find, by comparing everything.
fn near(all: &[PlacedDocument], query: &[u64], least: usize) -> BTreeSet<(String, u32)> {
    let equal = |places: &[u64]| places.iter().zip(query).filter(|(a, b)| a == b).count();
    all.iter()
        .map(|(id, places)| (id, equal(places)))
        .filter(|(_, equal)| *equal >= least)
        .map(|(id, equal)| (id.clone(), (query.len() - equal) as u32))
        .collect()
}

/// Returns the ids and distances that a search finds. Fails if a sketch is reported twice.
fn found(index: &SketchIndexFile, query: &[u64], least: usize) -> BTreeSet<(String, u32)> {
    let mut shown = Vec::new();
    index.search(query, least, &mut |at, apart| shown.push((at, apart)));
    let distinct: BTreeSet<_> = shown.iter().copied().collect();
    assert_eq!(shown.len(), distinct.len(), "each once");
    let mut all = BTreeSet::new();
    for (at, apart) in shown {
        let mut ids = Vec::new();
        index.ids(at, &mut ids).unwrap();
        assert!(ids.is_sorted() && index.copies(at) == ids.len() as u64);
        all.extend(ids.into_iter().map(|id| (id.to_owned(), apart)));
    }
    all
}

fn documents() -> impl Strategy<Value = (PlaceKind, Vec<PlacedDocument>)> {
    let kinds = prop::sample::select(PlaceKind::ALL.to_vec());
    (kinds, 1..8_usize, 1..5_u64).prop_flat_map(|(kind, places, values)| {
        let sketch = prop::collection::vec(0..values, places);
        // Use few ids, so that some occur twice, with the same sketch and with others.
        let id = prop::sample::select(vec!["a", "b", "zoë", "d e", "\"", "f", "10", "9"]);
        let document = (id, sketch).prop_map(|(id, places)| (id.to_owned(), places));
        (Just(kind), prop::collection::vec(document, 1..60))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn a_search_finds_what_a_scan_finds_however_the_index_came_about(
        (kind, all) in documents(), bytes in 4..=8_u64, least in 1..8_usize, cut in 0..60_usize, absent in prop::collection::vec(0..6_u64, 8),
    ) {
        set_position_bytes(bytes);
        let folder = tempfile::tempdir().unwrap();
        let places = all[0].1.len();
        let least = least.min(places);
        let path = |name: &str| folder.path().join(name);
        let lines: Vec<String> = all.iter().map(|document| line(kind, document)).collect();
        let (first, rest) = lines.split_at(cut.clamp(1, lines.len()));
        fs::write(path("all.jsonl"), lines.concat()).unwrap();
        fs::write(path("first.jsonl"), first.concat()).unwrap();
        let backwards: Vec<&str> = rest.iter().rev().map(String::as_str).collect();
        fs::write(path("rest.jsonl"), backwards.concat()).unwrap();
        let whole = build(&[path("all.jsonl")], &path("whole"), least, true).unwrap();
        prop_assert_eq!(whole.sketches, all.len() as u64);
        let bytes = fs::read(path("whole")).unwrap();
        // Extended in place, and merged from two indexes, in either order.
        build(&[path("first.jsonl")], &path("extended"), least, true).unwrap();
        build(&[path("extended"), path("rest.jsonl")], &path("extended"), least, true).unwrap();
        prop_assert!(fs::read(path("extended")).unwrap() == bytes);
        if !rest.is_empty() {
            build(&[path("first.jsonl")], &path("one"), least, true).unwrap();
            build(&[path("rest.jsonl")], &path("two"), places, true).unwrap();
            build(&[path("two"), path("one")], &path("merged"), least, true).unwrap();
            prop_assert!(fs::read(path("merged")).unwrap() == bytes);
        }
        let index = open_sketches(&path("whole"), true).unwrap();
        build(&[path("all.jsonl")], &path("bare"), least, false).unwrap();
        let bare = open_sketches(&path("bare"), false).unwrap();
        prop_assert!(!bare.has_ids() && bare.len() == index.len());
        let distinct: BTreeSet<&Vec<u64>> = all.iter().map(|(_, places)| places).collect();
        prop_assert_eq!(index.len(), distinct.len());
        let queries = all.iter().map(|(_, places)| places.as_slice()).chain([&absent[..places]]);
        for query in queries {
            for least in least..=places {
                let words = words(kind, query);
                prop_assert_eq!(found(&index, &words, least), near(&all, query, least));
                let mut positions = [Vec::new(), Vec::new()];
                for (index, found) in [&index, &bare].into_iter().zip(&mut positions) {
                    index.search(&words, least, &mut |at, apart| found.push((at, apart)));
                }
                prop_assert_eq!(&positions[0], &positions[1]);
            }
        }
    }
}

/// Makes positions take `bytes` bytes in all indexes that this thread builds, as if there were billions.
fn set_position_bytes(bytes: u64) {
    MIN_POSITION_BYTES.set(RankBytes::new(bytes).unwrap());
}

/// Builds an index of ten documents with six super-shingles, and returns its bytes.
fn small(folder: &Path) -> Vec<u8> {
    let document = |at: u64| (format!("page-{at}"), vec![1, 2, 3, 4 + at % 2, at, at / 3]);
    let all: Vec<PlacedDocument> = (0..10).map(document).collect();
    let lines: String = all
        .iter()
        .map(|document| line(PlaceKind::SuperShingles, document))
        .collect();
    fs::write(folder.join("in.jsonl"), lines).unwrap();
    build(&[folder.join("in.jsonl")], &folder.join("small"), 2, true).unwrap();
    fs::read(folder.join("small")).unwrap()
}

#[test]
fn an_index_of_nothing_finds_nothing_and_takes_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("none.u64x6"), "").unwrap();
    let built = build(&[path("none.u64x6")], &path("none"), 2, true).unwrap();
    assert_eq!((built.sketches, built.distinct, built.ids), (0, 0, false));
    let index = open_sketches(&path("none"), false).unwrap();
    assert!(index.is_empty() && index.bands() == 5);
    let effort = index.search(&[1, 2, 3, 4, 5, 6], 2, &mut |_, _| {
        panic!("nothing is there")
    });
    assert_eq!(effort.candidates, 0);
    let bytes = small(folder.path());
    build(&[path("none"), path("in.jsonl")], &path("none"), 2, true).unwrap();
    assert!(fs::read(path("none")).unwrap() == bytes);
    fs::write(path("blank.jsonl"), "").unwrap();
    let refused = build(&[path("blank.jsonl")], &path("x"), 2, true).unwrap_err();
    assert!(refused.to_string().contains("how many places"), "{refused}");
}

#[test]
fn an_index_that_several_threads_sort_is_that_of_one_thread() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    // More than one thread sorts alone, in no order, and each twice with different ids.
    let lines: String = (0..3 * PARALLEL_MIN as u64)
        .map(|at| {
            let place = xxh3_64(&(at / 2).to_le_bytes(), 0);
            line(PlaceKind::SuperShingles, &(format!("{at}"), vec![place]))
        })
        .collect();
    fs::write(path("in.jsonl"), lines).unwrap();
    let inputs = [path("in.jsonl").into()];
    let bytes = [1, 4].map(|threads| {
        let output = path(&format!("of-{threads}"));
        let build = IndexBuild::new(&inputs, &output)
            .equal(Some(MinEqual::Places(1)))
            .limits(JobLimits::default().threads(threads).memory(64 << 20));
        build.run(&build.enter().unwrap()).unwrap();
        fs::read(output).unwrap()
    });
    assert!(bytes[0] == bytes[1]);
}

#[test]
fn a_build_that_was_interrupted_after_reading_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = small(folder.path());
    let (input, output) = (folder.path().join("in.jsonl"), folder.path().join("again"));
    // A folder with the final name stops the build at its last step.
    fs::create_dir_all(output.join("occupied")).unwrap();
    build(std::slice::from_ref(&input), &output, 2, true).unwrap_err();
    fs::remove_dir_all(&output).unwrap();
    let job = folder.path().join("again.building/job.json");
    let before = fs::metadata(&job).unwrap().modified().unwrap();
    let inputs = [input.as_path().into()];
    let build = IndexBuild::new(&inputs, &output).resume(true);
    let resumed = |places| build.clone().equal(Some(MinEqual::Places(places)));
    let of_others = resumed(3);
    let refused = of_others.run(&of_others.enter().unwrap()).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("other inputs or settings, or of another version")
    );
    // A build of sketches ignores these.
    let resumed = resumed(2).distance(5).tables(Some(4));
    let resumed = resumed.layout(Layout::Dense);
    let entered = resumed.enter().unwrap();
    assert_eq!(fs::metadata(&job).unwrap().modified().unwrap(), before);
    resumed.run(&entered).unwrap();
    assert!(fs::read(&output).unwrap() == bytes);
    assert!(!resumed.folder().exists());
}

fn opened(bytes: Vec<u8>) -> Result<SketchIndexFile, FileError> {
    SketchIndexFile::open(share(bytes))
}

#[test]
fn every_cut_and_every_changed_byte_is_told() {
    for bytes in [4, 5, 8] {
        set_position_bytes(bytes);
        let folder = tempfile::tempdir().unwrap();
        cuts_and_changes_are_told(&small(folder.path()));
    }
}

fn cuts_and_changes_are_told(bytes: &[u8]) {
    let bytes = bytes.to_vec();
    let index = opened(bytes.clone()).unwrap();
    index.verify().unwrap();
    assert_eq!(index.shape().to_string(), "6 super-shingles");
    for length in (0..bytes.len()).filter(|at| at % 977 == 0 || at + 20 > bytes.len()) {
        let cut = opened(bytes[..length].to_vec());
        assert!(matches!(cut, Err(FileError::Truncated { .. })), "{length}");
    }
    let longer = [bytes.as_slice(), &[0]].concat();
    assert!(matches!(opened(longer), Err(FileError::Damaged { .. })));
    // All bytes of the header and the sections, some of the zeros after these, and all at the end.
    let changed =
        (0..bytes.len()).filter(|&at| at < 1600 || at % 491 == 0 || at + 40 > bytes.len());
    for at in changed {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x10;
        let told = opened(bytes).and_then(|index| index.verify());
        assert!(told.is_err(), "byte {at}");
    }
    let mut newer = bytes.clone();
    newer[4] = 3;
    let told = opened(newer).unwrap_err().to_string();
    assert!(told.contains("version 3"), "{told}");
    let foreign = opened(b"LKIX".repeat(100)).unwrap_err().to_string();
    assert!(foreign.contains("not a"), "{foreign}");
}

/// Makes all checksums valid again.
fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let check = xxh3_64(&bytes[..88], 0).to_le_bytes();
    bytes[88..96].copy_from_slice(&check);
    let pages = (bytes.len() - 16) / ((1 << 16) + 8);
    let end = pages << 16;
    for page in 0..pages {
        let check = xxh3_64(&bytes[page << 16..(page + 1) << 16], page as u64);
        bytes[end + 8 * page..][..8].copy_from_slice(&check.to_le_bytes());
    }
    let last = bytes.len() - 8;
    let check = xxh3_64(&bytes[end..last], 0).to_le_bytes();
    bytes[last..].copy_from_slice(&check);
    bytes
}

#[test]
fn positions_of_an_impossible_width_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = small(folder.path());
    for width in 0..=u8::MAX {
        let mut head = bytes.clone();
        head[80] = width;
        let told = opened(resealed(head));
        // With other widths, sections are in other places but take as many pages.
        assert_eq!(told.is_ok(), (4..=8).contains(&width), "{width}");
    }
    // The upper halves of the numbers of documents, of distinct sketches, and of ids.
    let mut head = bytes;
    for at in [44, 52, 68] {
        head[at] = 1;
    }
    let told = opened(resealed(head)).unwrap_err().to_string();
    assert!(told.contains("numbers of the header"), "{told}");
}

#[test]
fn whoever_recomputes_the_checks_gets_wrong_answers_and_nothing_else() {
    for bytes in [4, 8] {
        set_position_bytes(bytes);
        let folder = tempfile::tempdir().unwrap();
        recomputed_checks_do_no_harm(small(folder.path()));
    }
}

fn recomputed_checks_do_no_harm(bytes: Vec<u8>) {
    assert!(
        resealed(bytes.clone()) == bytes,
        "the checks are those of the description"
    );
    let mut opened_count = 0;
    const BYTES: [u8; 4] = [0, 1, 0x7f, 0xff];
    for at in 8..1600 {
        // All four values within the header and the tables after it, and one value further on.
        let few = at % 4..at % 4 + 1;
        for &byte in &BYTES[if at < 300 { 0..4 } else { few }] {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            let Ok(index) = opened(resealed(bytes)) else {
                continue;
            };
            opened_count += 1;
            index.verify().unwrap();
            let _ = index.loads();
            let words = vec![3; index.shape().words()];
            let stored = (0..index.len().min(20)).map(|at| index.sketch(at));
            for query in stored.chain([words]) {
                let mut shown = Vec::new();
                index.search(&query, index.min_equal(), &mut |at, _| shown.push(at));
                for at in shown {
                    let mut ids = Vec::new();
                    let _ = (index.ids(at, &mut ids), index.copies(at));
                }
            }
        }
    }
    assert!(opened_count > 1000, "{opened_count}");
}

#[test]
fn shapes_and_numbers_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    small(folder.path());
    let (index, input) = (folder.path().join("small"), folder.path().join("in.jsonl"));
    let minima = line(PlaceKind::Minima, &("m".to_owned(), vec![1, 2]));
    let other = folder.path().join("m.jsonl");
    fs::write(&other, minima).unwrap();
    let output = folder.path().join("x");
    for (inputs, equal, words) in [
        (vec![index.clone(), other], 2, "they cannot be compared"),
        (vec![input], 7, "more than the 6 super-shingles"),
    ] {
        let told = build(&inputs, &output, equal, true).unwrap_err();
        assert!(told.to_string().contains(words), "{told}");
        assert!(!output.exists());
    }
    let shape = SketchShape {
        kind: PlaceKind::SuperShingles,
        places: 6,
    };
    assert_eq!(open_sketches(&index, false).unwrap().shape(), shape);
}

#[test]
fn all_ids_of_one_sketch_were_read_back_at_once() {
    const IDS: usize = 1200;
    const AT_ONCE: u64 = 4 << 20;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let long = "x".repeat(AT_ONCE as usize / IDS * 3);
    let document = |number: usize| (format!("{number:04}{long}"), vec![1, 2]);
    let kind = PlaceKind::SuperShingles;
    let lines = (0..IDS).map(|number| line(kind, &document(number)));
    fs::write(path("in.jsonl"), lines.collect::<String>()).unwrap();
    build(&[path("in.jsonl")], &path("out.lksi"), 2, true).unwrap();
    let (mut most, mut ids) = (0, Vec::<usize>::new());
    SketchReading::new(&NoProgress, LossPolicy::default())
        .for_each(&[path("out.lksi").into()], &mut |reading, _, rows| {
            most = most.max(rows.bytes());
            let shape = reading.shape().unwrap();
            ids.extend(
                rows.for_each(shape)
                    .map(|(id, _)| id[..4].parse::<usize>().unwrap()),
            );
            Ok(())
        })
        .unwrap();
    assert!(most < AT_ONCE * 5 / 4, "{most} bytes at once");
    assert!((0..IDS).eq(ids));
}
