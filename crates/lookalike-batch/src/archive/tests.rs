//! Archives, compared with what was put into them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use lookalike_corpus::{InputOptions, Inputs};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::archive::blocks::{BlockSettings, RecordBlocks};
use crate::archive::build::{ArchiveSummary, write_directory};
use crate::archive::error::CollectionArchiveError;
use crate::archive::format::{ArchiveDirectory, ArchivedBlock, ArchivedKind, ArchivedRecord};
use crate::archive::read::CollectionArchive;
use crate::archive::settings::{ArchiveBlockSize, ArchiveSettings};
use crate::dedup::job::DedupJob;
use crate::error::BatchError;
use crate::observer::NoProgress;
use crate::settings::{JobLimits, JobSettings};

/// Returns settings with blocks of `bytes` bytes.
fn blocks_of(bytes: u64) -> ArchiveSettings {
    ArchiveSettings {
        level: "9".parse().unwrap(),
        block: ArchiveBlockSize::try_from(bytes).unwrap(),
    }
}

const SMALLEST: u64 = 64 << 10;
const LARGEST: u64 = 32 << 20;

fn limits(threads: usize) -> JobLimits {
    JobLimits {
        threads,
        memory: 1 << 30,
    }
}

/// A folder with input files in `in/`.
struct Files {
    folder: TempDir,
}

impl Files {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("in")).unwrap();
        for (name, bytes) in files {
            fs::write(folder.path().join("in").join(name), bytes).unwrap();
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn try_archive(
        &self,
        name: &str,
        block: u64,
        threads: usize,
    ) -> Result<ArchiveSummary, BatchError> {
        let options = InputOptions::default();
        let inputs = [self.path("in").into()];
        let inputs = Inputs::discover(&inputs, &options, self.folder.path()).unwrap();
        let settings = JobSettings {
            threshold: 0.5,
            ..JobSettings::default()
        };
        let job = DedupJob::new(&inputs, self.folder.path())
            .settings(settings)
            .limits(limits(threads))
            .options(options);
        job.archive(&self.path(name), blocks_of(block))
    }

    fn archive(&self, name: &str, block: u64) -> CollectionArchive {
        self.try_archive(name, block, 2).unwrap();
        CollectionArchive::open(&self.path(name)).unwrap()
    }
}

/// Returns all files below a folder, keyed by the ends of their paths.
fn files_below(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                    let before = found.insert(name, fs::read(path).unwrap());
                    assert!(before.is_none());
                }
            }
        }
    }
    found
}

/// Returns everything that an archive restores: its sources, and each document by its id.
fn extracted(
    archive: &CollectionArchive,
) -> (BTreeMap<String, Vec<u8>>, BTreeMap<String, Vec<u8>>) {
    let out = tempfile::tempdir().unwrap();
    archive.verify(&limits(2), &NoProgress).unwrap();
    archive
        .extract(out.path(), &limits(2), &NoProgress)
        .unwrap();
    let ids = (0..archive.len())
        .map(|record| archive.id(record))
        .filter(|id| !id.is_empty());
    let records = ids.map(|id| {
        (
            id.to_owned(),
            archive.read(archive.find(id).unwrap(), u64::MAX).unwrap(),
        )
    });
    (files_below(out.path()), records.collect())
}

fn family_tail(family: u32) -> String {
    String::from_utf8(noise(u64::from(family), 9000)).unwrap()
}

/// Generates documents of a few families with some words exchanged. A whole family is longer than the smallest block.
fn documents() -> impl Strategy<Value = Vec<String>> {
    let word = |number: u32| format!("w{}", number % 40);
    let document = (
        0..5_u32,
        prop::collection::vec((0..30_usize, any::<u32>()), 0..4),
    );
    let text = document.prop_map(move |(family, changes)| {
        let mut words: Vec<String> = (0..30)
            .map(|at| word(family * 7 + at * (family + 1)))
            .collect();
        for (at, other) in changes {
            words[at] = word(other);
        }
        format!("{}\n{}", words.join(" "), family_tail(family))
    });
    prop::collection::vec(text, 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn what_goes_in_comes_out(
        lines in documents(),
        files in documents(),
        noise in prop::collection::vec(prop::sample::select(vec!["\n", "{broken\n", " \r\n", "[]\n"]), 0..6),
        ends in any::<bool>(),
        block in prop::sample::select(vec![SMALLEST, LARGEST]),
    ) {
        let mut jsonl = String::from("\u{feff}");
        let mut records = BTreeMap::new();
        for (number, text) in lines.iter().enumerate() {
            let end = if number % 3 == 0 { "\r\n" } else { "\n" };
            let line = format!("{}{end}", serde_json::json!({ "id": format!("r{number}"), "text": text }));
            jsonl.push_str(noise.get(number).unwrap_or(&""));
            jsonl.push_str(&line);
            records.insert(format!("r{number}"), line);
        }
        if !ends && let Some(last) = lines.len().checked_sub(1) {
            let line = records.get_mut(&format!("r{last}")).unwrap();
            line.truncate(line.trim_end().len());
            jsonl.truncate(jsonl.trim_end().len());
        }
        let names: Vec<String> = (0..files.len()).map(|number| format!("{number}.txt")).collect();
        let mut inputs: Vec<(&str, &[u8])> = vec![("records.jsonl", jsonl.as_bytes()), ("empty.txt", b"")];
        inputs.extend(names.iter().zip(&files).map(|(name, text)| (&**name, text.as_bytes())));
        let folder = Files::new(&inputs);
        let archive = folder.archive("archive", block);
        let (sources, found) = extracted(&archive);
        let expected: BTreeMap<String, Vec<u8>> = inputs.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
        prop_assert_eq!(sources, expected);
        for (id, line) in &records {
            prop_assert_eq!(found.get(id).map(Vec::as_slice), Some(line.as_bytes()), "{}", id);
        }
        prop_assert_eq!(found.len(), lines.len() + files.len() + 1);
        for threads in [1, 5] {
            folder.try_archive("again", block, threads).unwrap();
            prop_assert!(fs::read(folder.path("again")).unwrap() == fs::read(folder.path("archive")).unwrap());
        }
    }
}

/// Returns bytes that look random but are the same every time.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        b"abcdefghijklmnopqrstuvwxyz \n"[(state >> 33) as usize % 28]
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

#[test]
fn copies_of_a_survivor_further_back_take_next_to_nothing() {
    let base = noise(1, 3 << 20);
    let versions: Vec<Vec<u8>> = (0..9)
        .map(|number| [&base[..], format!("\nversion {number}").as_bytes()].concat())
        .collect();
    let names: Vec<String> = (0..9).map(|number| format!("v{number}.txt")).collect();
    let other = noise(2, 1 << 20);
    let mut inputs: Vec<(&str, &[u8])> = names
        .iter()
        .map(|name| &**name)
        .zip(versions.iter().map(Vec::as_slice))
        .collect();
    inputs.push(("z.txt", &other));
    let folder = Files::new(&inputs);
    let one = zstd::bulk::compress(&base, 9).unwrap().len() as u64;
    let rest = zstd::bulk::compress(&other, 9).unwrap().len() as u64;
    // Two documents of 3 MiB fit a block of 8 MiB; all of them, 28 MiB, fit the largest block.
    for (block, blocks) in [(8 << 20, (6, 4)), (LARGEST, (1, 0))] {
        let archive = folder.archive("archive", block);
        let info = archive.info();
        assert_eq!((info.documents, info.copies, info.sources), (10, 8, 10));
        assert_eq!((info.blocks, info.dependent_blocks), blocks);
        assert!(info.archive_bytes < (one + rest) * 11 / 10, "{info:?}");
        let (sources, _) = extracted(&archive);
        assert!(inputs.iter().all(|(name, bytes)| sources[*name] == *bytes));
    }
}

fn planted_record(kind: ArchivedKind, length: u64) -> ArchivedRecord {
    ArchivedRecord {
        length,
        hash: 0,
        ..ArchivedRecord::empty(kind, 0, 0)
    }
}

/// Splits these records into blocks of the smallest size.
fn cut(records: &[ArchivedRecord]) -> Vec<ArchivedBlock> {
    let settings = BlockSettings {
        archive: blocks_of(SMALLEST),
        threads: 2,
        observer: &NoProgress,
    };
    let mut writer = RecordBlocks::new(records, settings, Vec::new());
    let total: u64 = records.iter().map(|record| record.length).sum();
    writer.write_all(&noise(5, total as usize)).unwrap();
    writer.finish().unwrap()
}

/// Generates clusters of records of random lengths, each starting with its survivor. Some need several of the smallest blocks.
fn clusters() -> impl Strategy<Value = Vec<Vec<u64>>> {
    let length = prop_oneof![4 => 1..30_000_u64, 1 => 60_000..90_000_u64];
    prop::collection::vec(prop::collection::vec(length, 1..8), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_cluster_that_fits_a_block_lies_in_one(clusters in clusters()) {
        let records = clusters.iter().flat_map(|cluster| {
            let copies = cluster[1..].iter().map(|&length| planted_record(ArchivedKind::Copy, length));
            std::iter::once(planted_record(ArchivedKind::Kept, cluster[0])).chain(copies)
        });
        let records: Vec<ArchivedRecord> = records.collect();
        let blocks = cut(&records);

        // Recompute the records of each block one by one: none may lie in two.
        let mut rest = records.iter().map(|record| record.length);
        let block_of: Vec<usize> = blocks.iter().enumerate().flat_map(|(number, block)| {
            let mut left = block.length;
            let mut within = 0;
            while left > 0 {
                left = left.checked_sub(rest.next().unwrap()).unwrap();
                within += 1;
            }
            assert!(block.length <= SMALLEST || within == 1);
            vec![number; within]
        }).collect();
        prop_assert_eq!(block_of.len(), records.len());

        let mut first = 0;
        for cluster in &clusters {
            let places = &block_of[first..first + cluster.len()];
            if cluster.iter().sum::<u64>() <= SMALLEST {
                prop_assert!(places.iter().all(|&place| place == places[0]), "{:?}", places);
            }
            prop_assert_eq!(blocks[places[0]].prefix(), None);
            for &place in places.iter().filter(|&&place| place != places[0]) {
                prop_assert_eq!(blocks[place].prefix(), Some(first));
                prop_assert!(block_of.iter().zip(0..).all(|(&at, record)| at != place || (first..first + cluster.len()).contains(&record)));
            }
            first += cluster.len();
        }
    }
}

#[test]
fn a_cluster_that_no_block_holds_begins_where_it_takes_the_fewest() {
    // 44 KiB of a 64 KiB block are used. Of a cluster of 80 KiB, 20 fit it and 60 fit the next one; 100 KiB need two more blocks either way.
    for (copies, first, count) in [(3, 64, 2), (4, 44, 3)] {
        let mut records = vec![
            planted_record(ArchivedKind::Kept, 44 << 10),
            planted_record(ArchivedKind::Kept, 20 << 10),
        ];
        records.extend(vec![planted_record(ArchivedKind::Copy, 20 << 10); copies]);
        let blocks = cut(&records);
        assert_eq!((blocks[0].length, blocks.len()), (first << 10, count));
    }
}

#[test]
fn a_record_longer_than_any_block_goes_over_several() {
    let long = noise(3, (33 << 20) + 5);
    let folder = Files::new(&[("a.txt", b"before"), ("b.txt", &long), ("c.txt", b"behind")]);
    for (block, blocks) in [(8 << 20, 7), (LARGEST, 4)] {
        let archive = folder.archive("archive", block);
        assert_eq!(archive.info().blocks, blocks);
        let (sources, records) = extracted(&archive);
        assert!(sources["b.txt"] == long);
        assert_eq!(sources["c.txt"], b"behind");
        assert!(records.values().any(|bytes| *bytes == long));
    }
}

/// Makes a small archive with everything in it: copies in a separate block, bytes between documents, an empty file.
fn small() -> (Files, CollectionArchive) {
    let base = String::from_utf8(noise(4, 2000)).unwrap();
    let copy = format!("{base} and more");
    let jsonl = format!(
        "{}\n\n{{broken\n{}\n",
        serde_json::json!({ "id": "a", "text": base }),
        serde_json::json!({ "id": "b", "text": copy })
    );
    let folder = Files::new(&[
        ("r.jsonl", jsonl.as_bytes()),
        ("empty.txt", b""),
        ("c.txt", b"something else"),
    ]);
    let archive = folder.archive("archive", SMALLEST);
    (folder, archive)
}

/// Tells whether an archive with these bytes is refused. Panics on errors that do not name damage.
fn is_refused(path: &Path, bytes: &[u8]) -> bool {
    fs::write(path, bytes).unwrap();
    let read = CollectionArchive::open(path)
        .map_err(BatchError::Archive)
        .and_then(|archive| archive.verify(&limits(1), &NoProgress));
    match read {
        Ok(()) => false,
        Err(BatchError::Archive(
            CollectionArchiveError::Damaged { .. }
            | CollectionArchiveError::Foreign { .. }
            | CollectionArchiveError::Version { .. },
        )) => true,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn every_flipped_byte_and_every_cut_is_an_error() {
    let (folder, _) = small();
    let bytes = fs::read(folder.path("archive")).unwrap();
    let path = folder.path("damaged");
    assert!(!is_refused(&path, &bytes));
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        assert!(is_refused(&path, &damaged), "byte {at}");
    }
    for length in 0..bytes.len() {
        assert!(is_refused(&path, &bytes[..length]), "{length} bytes");
    }
    assert!(is_refused(&path, &[&bytes[..], b"x"].concat()));
}

/// Returns the raw directory of an archive and its offset.
fn directory_of(bytes: &[u8]) -> (Vec<u8>, usize) {
    let trailer = &bytes[bytes.len() - 48..];
    let number = |at: usize| u64::from_le_bytes(trailer[at..at + 8].try_into().unwrap()) as usize;
    let (offset, packed, length) = (number(0), number(8), number(16));
    let raw = zstd::bulk::decompress(&bytes[offset..offset + packed], length).unwrap();
    (raw, offset)
}

/// Returns the archive with another directory and valid checksums.
fn with_directory(bytes: &[u8], raw: &[u8], offset: usize) -> Vec<u8> {
    let mut changed = bytes[..offset].to_vec();
    let level = "1".parse().unwrap();
    write_directory(raw, offset as u64, level, &mut changed).unwrap();
    changed
}

/// Opens arbitrary bytes: must not panic or write any file outside the folder.
fn is_harmless(folder: &Path, bytes: &[u8]) {
    let (path, out) = (folder.join("file"), folder.join("a/b/c"));
    fs::write(&path, bytes).unwrap();
    fs::create_dir_all(&out).unwrap();
    if let Ok(archive) = CollectionArchive::open(&path) {
        let _ = archive.extract(&out, &limits(1), &NoProgress);
        for record in 0..archive.len() {
            let _ = archive.read(record, u64::MAX);
        }
    }
    for (folder, names) in [
        (folder, vec!["a", "file"]),
        (&folder.join("a"), vec!["b"]),
        (&folder.join("a/b"), vec!["c"]),
    ] {
        let mut found: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        found.sort();
        assert_eq!(found, names);
    }
    fs::remove_dir_all(folder.join("a")).unwrap();
}

#[test]
fn mutations_of_directories_whose_checks_fit_break_no_promise() {
    let (folder, _) = small();
    let bytes = fs::read(folder.path("archive")).unwrap();
    let (raw, offset) = directory_of(&bytes);
    let scratch = tempfile::tempdir().unwrap();
    for at in 0..raw.len() {
        for changed in [raw[at] ^ 1, 0xff, b'/'] {
            let mut raw = raw.clone();
            raw[at] = changed;
            is_harmless(scratch.path(), &with_directory(&bytes, &raw, offset));
        }
    }
    for at in (0..raw.len() - 8).step_by(4) {
        for number in [1 << 32, u64::MAX] {
            let mut raw = raw.clone();
            raw[at..at + 8].copy_from_slice(&u64::to_le_bytes(number));
            is_harmless(scratch.path(), &with_directory(&bytes, &raw, offset));
        }
    }
}

#[test]
fn names_that_lead_out_of_the_folder_are_refused() {
    let (folder, archive) = small();
    let bytes = fs::read(folder.path("archive")).unwrap();
    let (raw, offset) = directory_of(&bytes);
    let (directory, _) = ArchiveDirectory::decode(&raw, offset as u64).unwrap();
    assert_eq!(directory.encode(), raw);
    assert_eq!(archive.len(), directory.records.len());
    for name in [
        "../x",
        "/x",
        "a/../../x",
        "..",
        ".",
        "",
        "a//b",
        "a/",
        "./a",
        "a\0b",
    ] {
        let mut changed = directory.clone();
        changed.sources[0].name = name.into();
        let changed = with_directory(&bytes, &changed.encode(), offset);
        let error = CollectionArchive::open(&write(&folder.path("changed"), &changed)).unwrap_err();
        assert!(
            error.to_string().contains("is not a relative path"),
            "{name:?}: {error}"
        );
    }
    let mut changed = directory.clone();
    changed.sources[0].name = changed.sources[1].name.join("below");
    let changed = with_directory(&bytes, &changed.encode(), offset);
    assert!(CollectionArchive::open(&write(&folder.path("changed"), &changed)).is_err());
}

fn write(path: &Path, bytes: &[u8]) -> PathBuf {
    fs::write(path, bytes).unwrap();
    path.to_owned()
}

#[test]
fn an_error_names_the_block_and_the_other_blocks_are_unharmed() {
    let versions: Vec<Vec<u8>> = (0..3).map(|seed| noise(10 + seed, 6 << 20)).collect();
    let inputs: Vec<(&str, &[u8])> = ["a.txt", "b.txt", "c.txt"]
        .into_iter()
        .zip(versions.iter().map(Vec::as_slice))
        .collect();
    let folder = Files::new(&inputs);
    let archive = folder.archive("archive", 8 << 20);
    assert_eq!(archive.info().blocks, 3);
    let mut bytes = fs::read(folder.path("archive")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(folder.path("archive"), &bytes).unwrap();
    let archive = CollectionArchive::open(&folder.path("archive")).unwrap();
    assert!(archive.read(0, u64::MAX).unwrap() == versions[0]);
    assert!(archive.read(2, u64::MAX).unwrap() == versions[2]);
    let error = archive.read(1, u64::MAX).unwrap_err().to_string();
    assert!(error.contains("block 2 of 3 is damaged"), "{error}");
}

#[test]
fn one_record_took_whatever_memory_it_needed() {
    let text = noise(10, 6 << 20);
    let folder = Files::new(&[("a.txt", &text)]);
    let archive = folder.archive("archive", 1 << 20);
    let refused = archive.read(0, 40 << 20).unwrap_err();
    assert!(
        matches!(refused, CollectionArchiveError::ReadMemory { needed, .. } if needed > 44 << 20),
        "{refused}"
    );
    assert!(archive.read(0, 64 << 20).unwrap() == text);
}

#[test]
fn sources_that_would_not_come_back_are_refused_before_anything_is_read() {
    let folder = Files::new(&[("a.csv", b"id,text\n1,one\n")]);
    let error = folder.try_archive("archive", LARGEST, 1).unwrap_err();
    assert!(
        matches!(
            error,
            BatchError::Archive(CollectionArchiveError::Inexact { .. })
        ),
        "{error}"
    );
    assert!(!folder.path("archive").exists());
}

#[test]
fn ids_that_nobody_has_are_told() {
    let (_folder, archive) = small();
    let error = archive.find("nobody").unwrap_err().to_string();
    assert!(error.contains("\"nobody\""), "{error}");
}
