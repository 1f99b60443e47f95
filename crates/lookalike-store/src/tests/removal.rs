//! Removing a collection when the power fails in the middle.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lookalike::{Fingerprint, Scheme};

use crate::error::StoreError;
use crate::fs::{FileSystem as _, SimulatedFs};
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
                .write(vec![WriteOp::Insert(document)], NOW, 0)
                .expect("a write");
        }
        // Threads of collections make no calls of their own from now on.
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
