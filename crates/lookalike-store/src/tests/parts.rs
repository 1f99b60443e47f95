//! Parts of a scheme: they exist with their collection or not at all, are included in snapshots, and are reported when damaged.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lookalike::{Fingerprint, Scheme};

use crate::error::StoreError;
use crate::fs::{FileSystem, SimulatedFs};
use crate::operations::WriteOp;
use crate::time::UnixMillis;
use crate::{
    CollectionSettings, SchemePart, Store, StoreOptions, StoredDocument, restore_on, salvage_on,
    verify_on,
};

const NOW: UnixMillis = UnixMillis(1000);

fn settings() -> CollectionSettings {
    CollectionSettings::new(&Scheme::default())
}

fn parts() -> [SchemePart; 2] {
    [
        SchemePart::new("terms", (0..=255).collect()),
        SchemePart::new("lines", Vec::new()),
    ]
}

fn open(fs: &SimulatedFs, folder: &str) -> Store {
    let options = StoreOptions::default().create(true);
    Store::open_on(Arc::new(fs.clone()), Path::new(folder), options).expect("it opens")
}

/// Creates a closed store with a collection that has two parts and a document.
fn medium() -> SimulatedFs {
    let fs = SimulatedFs::new();
    let store = open(&fs, "/s");
    let collection = store.create_collection_with("pages", &settings(), &parts());
    let collection = collection.expect("a collection");
    let write = WriteOp::Insert(StoredDocument::new("a", Fingerprint(1)));
    collection.write(vec![write], NOW).expect("a write");
    store.close().expect("an end");
    fs
}

fn part_file(fs: &SimulatedFs) -> (PathBuf, Vec<u8>) {
    let files = fs.files().into_iter();
    let mut parts = files.filter(|(path, bytes)| {
        path.starts_with("/s")
            && path.extension().is_some_and(|kind| kind == "part")
            && !bytes.is_empty()
    });
    parts.next().expect("a part")
}

#[test]
fn a_creation_that_the_power_cuts_leaves_no_collection_without_its_parts() {
    let fs = SimulatedFs::new();
    let store = open(&fs, "/s");
    fs.record();
    let created = store.create_collection_with("pages", &settings(), &parts());
    created.expect("a collection");
    let crashes = fs.recorded();
    let (mut made, mut none) = (0, 0);
    for (at, crash) in crashes.iter().enumerate() {
        for seed in 0..4 {
            let store = open(&crash.cut(seed), "/s");
            match store.collection("pages") {
                Ok(collection) => {
                    assert_eq!(collection.scheme_parts().expect("parts"), parts(), "{at}");
                    made += 1;
                }
                Err(StoreError::NoCollection(_)) => none += 1,
                Err(error) => panic!("call {at}: {error}"),
            }
        }
    }
    assert!(made > 0 && none > 0, "{made} {none}");
}

#[test]
fn parts_go_into_snapshots_and_come_back_from_them() {
    let fs = medium();
    let store = open(&fs, "/s");
    store.snapshot(Path::new("/snapshot")).expect("a snapshot");
    drop(store);
    restore_on(&fs, Path::new("/snapshot"), Path::new("/r")).expect("a store");
    let found = verify_on(&fs, Path::new("/r")).expect("a store");
    assert!(found["pages"].is_ok());
    let store = open(&fs, "/r");
    let collection = store.collection("pages").expect("a collection");
    assert!(collection.has_scheme_parts());
    assert_eq!(collection.scheme_parts().expect("parts"), parts());
}

#[test]
fn a_damaged_or_missing_part_is_told_and_the_documents_are_saved() {
    let (path, bytes) = part_file(&medium());
    let mut cases = vec![None, Some(Vec::new()), Some([&bytes[..], &[0]].concat())];
    cases.extend((0..bytes.len()).step_by(17).map(|at| {
        let mut flipped = bytes.clone();
        flipped[at] ^= 4;
        Some(flipped)
    }));
    for case in cases {
        let fs = medium();
        fs.damage(&path, case);
        let found = verify_on(&fs, Path::new("/s"))
            .expect("a store")
            .remove("pages");
        let told = found
            .expect("a collection")
            .expect_err("it is damaged")
            .to_string();
        assert!(told.contains(path.to_str().expect("ours")), "{told}");
        let store = open(&fs, "/s");
        assert!(store.collection("pages").is_err());
        drop(store);
        let shared: Arc<dyn FileSystem> = Arc::new(fs.clone());
        let (from, to) = (Path::new("/s"), Path::new("/saved"));
        let saved = salvage_on(&shared, from, to, StoreOptions::default()).expect("a store");
        assert_eq!((saved.saved["pages"], saved.lost.len()), (1, 1));
    }
}

#[test]
fn parts_of_odd_or_equal_names_are_refused() {
    let store = open(&SimulatedFs::new(), "/s");
    for names in [&["Terms"][..], &[""], &["../a"], &["terms", "terms"]] {
        let parts: Vec<SchemePart> = names
            .iter()
            .map(|name| SchemePart::new(*name, vec![1]))
            .collect();
        let made = store.create_collection_with("pages", &settings(), &parts);
        assert!(matches!(made, Err(StoreError::Invalid(_))), "{names:?}");
    }
    assert_eq!(store.collections().len(), 0);
}
