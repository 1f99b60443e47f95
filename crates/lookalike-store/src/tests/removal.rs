//! Removing a collection while the power fails.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lookalike::{Fingerprint, Scheme};

use crate::error::StoreError;
use crate::fs::{FileSystem as _, InjectedFault, SimulatedFs};
use crate::operations::WriteOp;
use crate::time::UnixMillis;
use crate::{CollectionSettings, Store, StoreOptions, StoredDocument};

const NOW: UnixMillis = UnixMillis(1000);

fn settings() -> CollectionSettings {
    CollectionSettings::new(&Scheme::default())
}

fn options() -> StoreOptions {
    StoreOptions::default().create(true)
}

#[test]
fn a_removal_that_the_power_cuts_is_finished_at_the_next_start_or_was_never_begun() {
    let begin = || {
        let fs = SimulatedFs::new();
        let store = Store::open_on(Arc::new(fs.clone()), Path::new("/s"), options());
        let store = store.expect("it opens");
        for name in ["gone", "kept"] {
            let collection = store
                .create_collection(name, &settings())
                .expect("a collection");
            let document = StoredDocument::new("a", Fingerprint(1));
            collection
                .write(vec![WriteOp::Insert(document)], NOW)
                .expect("a write");
        }
        // Wait until the threads of the collections make no more calls on their own.
        std::thread::sleep(Duration::from_millis(120));
        (fs, store)
    };
    let (fs, store) = begin();
    fs.record();
    store.drop_collection("gone").expect("it is removed");
    let crashes = fs.recorded();
    assert!(crashes.len() > 5);
    let mut finished = 0;
    for (at, crash) in crashes.iter().enumerate() {
        for seed in 0..8 {
            let fs = crash.cut(seed);
            let store = Store::open_on(Arc::new(fs.clone()), Path::new("/s"), options());
            let store = store.unwrap_or_else(|error| panic!("call {at}: {error}"));
            let count = |name| store.collection(name).map(|open| open.stats().documents);
            assert_eq!(count("kept").expect("it is there"), 1);
            let left = fs.list(Path::new("/s/collections")).expect("a folder");
            match count("gone") {
                Ok(documents) => assert_eq!(documents, 1, "call {at}"),
                Err(StoreError::NoCollection(_)) => {
                    assert_eq!(left, ["kept"], "call {at}: its files are left");
                    finished += 1;
                }
                Err(error) => panic!("call {at}: {error}"),
            }
        }
    }
    assert!(finished > 0);
}

/// The sync of the folder fails after the new catalog was renamed, and restoring the old one fails too, so whether the collection is
/// removed is only decided at the next start. Everything that it acknowledges until then must be there afterwards.
#[test]
fn writes_after_a_removal_of_unknown_outcome_were_acknowledged_and_lost() {
    let begin = || {
        let fs = SimulatedFs::new();
        let store = Store::open_on(Arc::new(fs.clone()), Path::new("/s"), options());
        let store = store.expect("it opens");
        store
            .create_collection("pages", &settings())
            .expect("a collection");
        std::thread::sleep(Duration::from_millis(120));
        (fs, store)
    };
    let calls = {
        let (fs, store) = begin();
        let before = fs.calls();
        store.drop_collection("pages").expect("it is removed");
        fs.calls() - before
    };
    let (mut stopped, mut acknowledged) = (0, 0);
    for call in 0..calls {
        let (fs, store) = begin();
        fs.fail_at(fs.calls() + call, InjectedFault::ReadOnly);
        let removed = store.drop_collection("pages");
        fs.heal();
        let Ok(pages) = store.collection("pages") else {
            continue;
        };
        assert!(removed.is_err(), "call {call}");
        let document = StoredDocument::new("a", Fingerprint(1));
        let written = pages.write(vec![WriteOp::Insert(document)], NOW);
        drop(pages);
        drop(store);
        for seed in 0..8 {
            let store = Store::open_on(Arc::new(fs.cut(seed)), Path::new("/s"), options());
            let store = store.unwrap_or_else(|error| panic!("call {call}: {error}"));
            let found = store.collection("pages").map(|open| open.stats().documents);
            match (&written, found) {
                (Ok(_), found) => {
                    assert!(
                        matches!(found, Ok(1)),
                        "call {call}: an acknowledged write is gone"
                    )
                }
                (Err(StoreError::Stopped(_)), _) => {}
                (Err(error), _) => panic!("call {call}: {error}"),
            }
        }
        stopped += u32::from(written.is_err());
        acknowledged += u32::from(written.is_ok());
    }
    assert!(stopped > 0 && acknowledged > 0, "{stopped}, {acknowledged}");
}
