//! Files whose checksums are right, but whose contents no store of this version writes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lookalike::{Fingerprint, Scheme};

use super::model_runs::{FOLDER, IDENTITY, create};
use super::random_writes::RandomWrites;
use crate::document::StoredDocument;
use crate::engine::{LogChange, salvage, verify};
use crate::error::StoreError;
use crate::file_names::file_path;
use crate::fs::SimulatedFs;
use crate::id_hash::IdHasher;
use crate::log::{AppendResult, FRAME_HEADER, LogEnd, LogHeader, LogWriter};
use crate::manifest::{CollectionManifest, RunEntry};
use crate::memtable::MemTable;
use crate::run::{DocumentSource, RunOptions, write_run};
use crate::settings::{CollectionSettings, StoreTuning};
use crate::time::UnixMillis;

/// Creates an empty collection.
fn empty() -> SimulatedFs {
    let fs = SimulatedFs::new();
    let mut random_writes = RandomWrites::new(1, 1);
    random_writes.settings = CollectionSettings::new(&Scheme::default());
    create(&fs, &random_writes, &StoreTuning::default()).expect("a collection");
    fs
}

fn folder() -> &'static Path {
    Path::new(FOLDER)
}

/// Returns path and offset of some damage.
fn place(error: &StoreError) -> (PathBuf, u64) {
    match error {
        StoreError::Damaged { path, offset, .. } => (path.clone(), *offset),
        other => panic!("{other}"),
    }
}

/// Groups that could not be decoded were left out of the list of losses.
#[test]
fn a_salvage_lost_a_group_in_an_unknown_format_in_silence() {
    let fs = empty();
    let path = file_path(folder(), 1, "log");
    let header = LogHeader {
        collection: IDENTITY,
        file: 1,
        first: 1,
        before: LogEnd::default(),
        recovered: 0,
    };
    let mut log = LogWriter::create(&fs, &path, header, 4096).expect("a log");
    // One change each: of a kind that does not exist, and the deletion of "a".
    for change in [&[3, 0][..], &[2, 1, b'a']] {
        let mut frame = vec![0; FRAME_HEADER];
        frame.extend(1000_u64.to_le_bytes());
        frame.push(1);
        frame.extend(change);
        assert!(matches!(
            log.append(&mut frame, false),
            AppendResult::Durable
        ));
    }
    let mut saved = Vec::new();
    let lost = salvage(&fs, folder(), &mut |_, changes| {
        saved.extend(changes);
        Ok(())
    });
    let lost: Vec<_> = lost.expect("a salvage").iter().map(place).collect();
    // The first frame begins after the header.
    assert_eq!(lost, [(path, 512)]);
    assert_eq!(saved, [LogChange::Delete("a".to_owned())]);
}

/// Adds a run with documents of these ids to an empty collection. Returns its path.
fn add_run(fs: &SimulatedFs, ids: &[&str]) -> PathBuf {
    let mut manifest = CollectionManifest::read(fs, folder()).expect("a manifest");
    let shape = manifest.settings().index_shape();
    let (mut memtable, hasher) = (MemTable::new(shape), IdHasher::new(manifest.key));
    for (&id, code) in ids.iter().zip(0..) {
        let document = StoredDocument::new(id, Fingerprint(code));
        memtable.push(Arc::new(document), &hasher);
    }
    let source = DocumentSource::of_memtable(&memtable, &hasher, UnixMillis(0));
    let number = manifest.next_file;
    let options = RunOptions {
        identity: manifest.file(number),
        shape,
        small: 100,
        scratch: 1 << 16,
    };
    let path = file_path(folder(), number, "run");
    let written = write_run(fs, &path, &options, &[source], &AtomicBool::new(false));
    written.expect("a run");
    manifest.next_file += 1;
    manifest.runs.push(RunEntry {
        file: number,
        documents: ids.len() as u64,
        tombstones: None,
    });
    assert!(manifest.write(fs, folder()).is_ok());
    path
}

/// Only documents of different files were compared.
#[test]
fn an_id_that_a_run_has_twice_was_not_found_by_the_verification() {
    let fs = empty();
    add_run(&fs, &["a", "b", "c"]);
    verify(&fs, folder(), IDENTITY).expect("three ids");
    let fs = empty();
    let path = add_run(&fs, &["a", "b", "c", "b"]);
    let error = verify(&fs, folder(), IDENTITY).expect_err("two documents of one id");
    assert_eq!(place(&error).0, path);
    assert!(error.to_string().contains("document 3"), "{error}");
}
