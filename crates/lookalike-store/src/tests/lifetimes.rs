//! The beginnings and ends of stores, collections and snapshots: who may still write, and what a failure leaves.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use lookalike::{Fingerprint, Scheme};

use super::model_runs::{FOLDER, commit, create, open};
use super::random_writes::RandomWrites;
use crate::document::StoredParagraph;
use crate::error::StoreError;
use crate::fs::{FileSystem as _, InjectedFault, SimulatedFs};
use crate::operations::{WriteOp, WriteOutcome};
use crate::settings::StoreTuning;
use crate::time::UnixMillis;
use crate::{CollectionSettings, RetainedParts, Store, StoreOptions, StoredDocument, restore_on};

const NOW: UnixMillis = UnixMillis(1000);

fn settings() -> CollectionSettings {
    CollectionSettings::new(&Scheme::default())
}

fn open_store(fs: &SimulatedFs, folder: &str) -> Result<Store, StoreError> {
    let options = StoreOptions::default().create(true);
    Store::open_on(Arc::new(fs.clone()), Path::new(folder), options)
}

fn insert(id: &str) -> Vec<WriteOp> {
    vec![WriteOp::Insert(StoredDocument::new(id, Fingerprint(1)))]
}

/// Creates a store in `/s` with the collection `pages` that holds one document.
fn medium() -> (SimulatedFs, Store) {
    let fs = SimulatedFs::new();
    let store = open_store(&fs, "/s").expect("it opens");
    let pages = store.create_collection("pages", &settings());
    let pages = pages.expect("a collection");
    pages.write(insert("a"), NOW).expect("a write");
    (fs, store)
}

#[test]
fn a_collection_that_was_removed_wrote_into_the_new_one_of_its_name() {
    let (fs, store) = medium();
    let old = store.collection("pages").expect("it is there");
    store.drop_collection("pages").expect("it goes");
    let new = store.create_collection("pages", &settings());
    let new = new.expect("another of that name");
    new.write(insert("b"), NOW).expect("a write");
    let hour = Some(Duration::from_secs(3600));
    assert!(matches!(
        old.set_time_to_live(hour),
        Err(StoreError::Stopped(_))
    ));
    assert!(old.flush().is_err() && old.compact().is_err() && old.compact_later().is_err());
    store.close().expect("an end");
    let store = open_store(&fs, "/s").expect("it opens");
    let found = store.collection("pages").expect("the manifest is its own");
    assert!(found.get("b", NOW).expect("a read").is_some());
}

/// Regression test: the flush of a closed collection was refused as one of a collection that had stopped for a reason.
#[test]
fn a_flush_after_the_end_says_that_the_collection_is_closed() {
    let (_, store) = medium();
    let pages = store.collection("pages").expect("it is there");
    store.close().expect("an end");
    assert!(matches!(pages.flush(), Err(StoreError::Closed)));
    assert!(matches!(pages.compact(), Err(StoreError::Closed)));
}

/// Regression test: a caller could only end a visit with an error of the store.
#[test]
fn an_error_of_the_caller_ends_a_visit_and_comes_back() {
    #[derive(Debug)]
    enum Ended {
        Caller(String),
        Store(StoreError),
    }
    impl From<StoreError> for Ended {
        fn from(error: StoreError) -> Self {
            Self::Store(error)
        }
    }
    let (_, store) = medium();
    let pages = store.collection("pages").expect("it is there");
    let visited = pages.for_each(NOW, &mut |document| Err(Ended::Caller(document.id)));
    match visited {
        Err(Ended::Caller(id)) => assert_eq!(id, "a"),
        Err(Ended::Store(error)) => panic!("{error}"),
        Ok(()) => panic!("it went on"),
    }
}

#[test]
fn a_collection_whose_end_failed_could_still_be_written() {
    let random_writes = RandomWrites::new(8, 30);
    let (fs, tuning) = (SimulatedFs::new(), StoreTuning::default());
    create(&fs, &random_writes, &tuning).expect("a collection");
    let engine = open(&fs, tuning).expect("it opens");
    let document = WriteOp::Insert(StoredDocument::new("a", Fingerprint(1)));
    commit(&engine, vec![vec![document]], NOW)
        .remove(0)
        .expect("a write");
    fs.fill();
    engine.close().expect_err("no room for the mark");
    fs.heal();
    let told = engine.set_time_to_live(None).expect_err("it has ended");
    assert!(matches!(told, StoreError::Stopped(_)), "{told}");
    assert!(fs.files().keys().all(|path| path.starts_with(FOLDER)));
}

#[test]
fn a_store_was_opened_twice_while_a_collection_of_the_first_lived_on() {
    let (fs, store) = medium();
    let pages = store.collection("pages").expect("it is there");
    drop(store);
    pages.write(insert("b"), NOW).expect("it lives on");
    let refused = open_store(&fs, "/s").expect_err("it is in use");
    assert!(matches!(refused, StoreError::Locked { .. }), "{refused}");
    assert!(refused.to_string().contains("this process"), "{refused}");
    drop(pages);
    let store = open_store(&fs, "/s").expect("nobody has it");
    let pages = store.collection("pages").expect("it is there");
    store.close().expect("an end");
    open_store(&fs, "/s").expect("what is closed keeps nobody out");
    assert!(pages.write(insert("c"), NOW).is_err());
}

#[test]
fn a_panic_in_the_writer_left_later_writes_waiting_for_ever() {
    let (fs, store) = medium();
    store.close().expect("an end");
    let store = open_store(&fs, "/s").expect("it opens");
    let pages = store.collection("pages").expect("it is there");
    // The mark of a clean shutdown, which the first write removes.
    fs.before("/s/collections/pages/CLEAN", || panic!("a medium"));
    pages.submit(insert("b"), NOW, |_| {});
    let (sender, receiver) = mpsc::channel();
    pages.submit(insert("c"), NOW, move |heard| {
        // The test may have timed out.
        let _ = sender.send(heard);
    });
    // The channel is disconnected if both writes were in the same group: then nobody knows whether it was written.
    match receiver.recv_timeout(Duration::from_secs(60)) {
        Ok(heard) => assert!(matches!(heard, Err(StoreError::Stopped(_))), "{heard:?}"),
        Err(ended) => assert_eq!(ended, mpsc::RecvTimeoutError::Disconnected),
    }
    // This goes to the same thread, which has recorded by now why writes have stopped.
    let refused = pages.write(insert("d"), NOW);
    assert!(
        matches!(refused, Err(StoreError::Stopped(_))),
        "{refused:?}"
    );
    let health = pages.health();
    assert!(health.stopped.is_some_and(|told| told.contains("panicked")));
    assert!(pages.get("a", NOW).expect("reads go on").is_some());
}

/// Returns the first result, which must arrive within a minute.
fn heard<T>(receiver: &mpsc::Receiver<T>) -> T {
    let heard = receiver.recv_timeout(Duration::from_secs(60));
    heard.expect("somebody tells")
}

#[test]
fn a_panic_of_a_caller_that_heard_of_its_write_stopped_all_others() {
    let (_fs, store) = medium();
    let pages = store.collection("pages").expect("it is there");
    pages.submit(insert("b"), NOW, |_| panic!("a caller that panics"));
    let (sender, receiver) = mpsc::channel();
    pages.submit(insert("c"), NOW, move |told| {
        let _ = sender.send(told);
    });
    heard(&receiver).expect("a write");
    pages.write(insert("d"), NOW).expect("another");
    assert_eq!(pages.health().stopped, None);
    assert!(pages.get("b", NOW).expect("a read").is_some());
}

#[test]
fn a_caller_that_wrote_when_it_heard_of_its_write_waited_for_ever() {
    let (_fs, store) = medium();
    let pages = store.collection("pages").expect("it is there");
    let (sender, receiver) = mpsc::channel();
    let asked = Arc::clone(&pages);
    pages.submit(insert("b"), NOW, move |told| {
        let told = told.and_then(|_| asked.write(insert("c"), NOW));
        drop(asked);
        let _ = sender.send(told);
    });
    assert!(matches!(heard(&receiver), Err(StoreError::WriterThread)));
    pages.write(insert("d"), NOW).expect("others write on");
}

#[test]
fn a_caller_that_asked_for_statistics_when_it_heard_of_its_write_waited_for_ever() {
    let (_fs, store) = medium();
    let pages = store.collection("pages").expect("it is there");
    let (sender, receiver) = mpsc::channel();
    let asked = Arc::clone(&pages);
    pages.submit(insert("b"), NOW, move |told| {
        let told = told.map(|_| asked.stats().documents);
        // The last holder of a collection waits for this thread, so drop it first.
        drop(asked);
        let _ = sender.send(told);
    });
    assert_eq!(heard(&receiver).expect("a write"), 2);
}

#[test]
fn a_power_cut_took_the_folder_of_a_new_store_a_snapshot_and_a_restored_store() {
    let (fs, store) = medium();
    let count = |fs: &SimulatedFs, folder: &str| {
        let store = open_store(fs, folder).expect("it opens");
        let pages = store.collection("pages");
        pages.map_or(0, |pages| pages.stats().documents)
    };
    store.snapshot(Path::new("/snapshot")).expect("a snapshot");
    restore_on(&fs, Path::new("/snapshot"), Path::new("/r")).expect("a store");
    for seed in 0..8 {
        let after = fs.cut(seed);
        assert_eq!(count(&after, "/s"), 1, "the store");
        assert_eq!(count(&after, "/r"), 1, "the restored store");
        restore_on(&after, Path::new("/snapshot"), Path::new("/again")).expect("the snapshot");
    }
}

#[test]
fn a_restored_run_that_was_copied_from_elsewhere_was_lost_with_the_power() {
    let (fs, store) = medium();
    let pages = store.collection("pages").expect("it is there");
    pages.flush().expect("a run");
    store.snapshot(Path::new("/snapshot")).expect("a snapshot");
    let run = fs.files().into_iter().find(|(path, _)| {
        path.starts_with("/snapshot") && path.extension() == Some("run".as_ref())
    });
    let (path, bytes) = run.expect("a run");
    // As `cp` leaves the file: with its name and bytes, but not synced.
    let file = crate::fs::FileSystem::create(&fs, &path).expect("a file");
    crate::fs::write_all(&*file, &bytes, 0).expect("its bytes");
    restore_on(&fs, Path::new("/snapshot"), Path::new("/r")).expect("a store");
    for seed in 0..16 {
        let store = open_store(&fs.cut(seed), "/r").expect("it opens");
        let pages = store.collection("pages").expect("its run is whole");
        assert_eq!(pages.stats().documents, 1);
    }
}

#[test]
fn a_snapshot_that_failed_kept_its_name_and_its_links() {
    let target = Path::new("/snapshot");
    let mut failures = 0;
    for call in 0.. {
        let (fs, store) = medium();
        let pages = store.collection("pages").expect("it is there");
        pages.flush().expect("a run");
        fs.fail_at(fs.calls() + call, InjectedFault::Io);
        let made = store.snapshot(target);
        let failed = fs.failed();
        fs.heal();
        if made.is_err() {
            failures += 1;
            let left = fs.files().into_keys();
            let left: Vec<_> = left.filter(|path| path.starts_with(target)).collect();
            assert!(left.is_empty(), "call {call}: {left:?}");
            if pages.health().stopped.is_none() {
                store.snapshot(target).expect("the name is free");
            }
        } else if !failed {
            break;
        }
    }
    assert!(failures > 10, "{failures}");
}

#[test]
fn ends_of_large_documents_were_all_in_memory_before_their_sizes_were_asked() {
    let fs = SimulatedFs::new();
    let store = open_store(&fs, "/s").expect("it opens");
    let keep = RetainedParts::default().texts(true);
    let pages = store.create_collection("pages", &settings().keep(keep));
    let pages = pages.expect("a collection");
    let ids = ["a", "b", "c"];
    for id in ids {
        let document = StoredDocument {
            text: Some("x".repeat(24 << 20)),
            ..StoredDocument::new(id, Fingerprint(1))
        };
        let written = pages.write(vec![WriteOp::Insert(document)], NOW);
        written.expect("a write");
    }
    let end = UnixMillis(5000);
    let expire = |id: &str| WriteOp::Expire {
        id: id.to_owned(),
        expires: Some(end),
    };
    let all: Vec<WriteOp> = ids.into_iter().map(expire).collect();
    let told = pages.write(all, NOW).expect_err("72 MiB at once");
    assert!(told.to_string().contains("split it"), "{told}");
    let later = |by: u64| WriteOp::Expire {
        id: ids[0].to_owned(),
        expires: Some(UnixMillis(5000 + by)),
    };
    let same: Vec<WriteOp> = (1..=1000).map(later).collect();
    assert!(pages.write(same, NOW).is_err(), "24 GiB at once");
    for id in ids {
        let outcome = pages.write(vec![expire(id)], NOW).expect("a write");
        assert_eq!(outcome, [WriteOutcome::Expiring { existed: true }]);
    }
    assert!(pages.get("c", end).expect("a read").is_none());
}

#[test]
fn paragraphs_without_a_limit_overflowed_the_room_that_is_left() {
    let (_fs, store) = medium();
    let keep = RetainedParts::default().paragraphs(true);
    let kept = store.create_collection("kept", &settings().keep(keep));
    let kept = kept.expect("a collection");
    let paragraph = |hash, code| StoredParagraph {
        hash,
        fingerprint: Some(Fingerprint(code)),
    };
    for (id, hash, code) in [("a", 1, 0b01), ("b", 2, 0b10)] {
        let document = StoredDocument {
            paragraphs: vec![paragraph(hash, code)],
            ..StoredDocument::new(id, Fingerprint(1))
        };
        let written = kept.write(vec![WriteOp::Insert(document)], NOW);
        written.expect("a write");
    }
    let mut lookup = kept.paragraph_lookup(1, NOW).expect("a lookup");
    let found = lookup.find(paragraph(3, 0), usize::MAX);
    assert_eq!(found.expect("an answer").documents.len(), 2);
}

#[test]
fn a_snapshot_that_a_killed_process_was_writing_stayed_for_ever() {
    for is_copied in [false, true] {
        killed_snapshots_go(is_copied);
    }
}

fn killed_snapshots_go(is_copied: bool) {
    let (fs, store) = medium();
    if is_copied {
        fs.refuse_links();
    }
    let (folder, target) = (Path::new("/snapshots"), Path::new("/snapshots/monday"));
    fs.create_dir(folder).expect("a folder");
    // Wait until the threads of the collection make no more calls on their own.
    std::thread::sleep(Duration::from_millis(120));
    fs.record();
    store.snapshot(target).expect("a snapshot");
    let (mut whole, mut removed) = (0, 0);
    for (at, crash) in fs.recorded().iter().enumerate() {
        let fs = crash.kill();
        let options = StoreOptions::default();
        let store = Store::open_on(Arc::new(fs.clone()), Path::new("/s"), options);
        let store = store.expect("it opens");
        let names = store.remove_unfinished_snapshots(folder);
        if restore_on(&fs, target, Path::new("/r")).is_ok() {
            assert!(names.is_empty(), "call {at}: it was whole");
            whole += 1;
            continue;
        }
        removed += names.len();
        // Its name can be used again.
        store.snapshot(target).expect("a snapshot");
        assert!(store.remove_unfinished_snapshots(folder).is_empty());
        restore_on(&fs, target, Path::new("/r")).expect("a store");
    }
    assert!(whole > 0 && removed > 3, "{whole} {removed}");
}

#[test]
fn a_snapshot_failed_because_a_collection_was_removed_meanwhile() {
    let (fs, store) = medium();
    let store = Arc::new(store);
    for name in ["gone", "went"] {
        let made = store.create_collection(name, &settings());
        made.expect("a collection");
    }
    let removing = Arc::clone(&store);
    // Remove the collection whose turn it is, and one whose turn is yet to come.
    fs.before("/snapshot/collections/gone", move || {
        for name in ["gone", "went"] {
            removing.drop_collection(name).expect("it goes");
        }
    });
    let made = store.snapshot(Path::new("/snapshot")).expect("a snapshot");
    assert_eq!(made.collections, 1);
    let folders = fs.list(Path::new("/snapshot/collections"));
    assert_eq!(folders.expect("a folder"), ["pages"]);
    restore_on(&fs, Path::new("/snapshot"), Path::new("/r")).expect("a store");
    let restored = open_store(&fs, "/r").expect("it opens").collections();
    let names: Vec<_> = restored.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["pages"]);
}

#[test]
fn a_flush_that_the_end_of_its_collection_cut_short_was_told_as_done() {
    let (_fs, store) = medium();
    let pages = store.collection("pages").expect("it is there");
    // This is how `close` begins.
    pages.begin_end();
    for told in [pages.flush(), pages.compact()] {
        assert!(matches!(told, Err(StoreError::Closed)), "{told:?}");
    }
    assert!(pages.stats().runs.is_empty());
}

#[test]
fn a_start_removed_a_file_of_somebody_else_because_of_its_ending() {
    let (fs, store) = medium();
    store.close().expect("an end");
    let path = |name: &str| Path::new("/s/collections/pages").join(name);
    for name in ["backup.new", "ROOM.new"] {
        fs.create(&path(name)).expect("a file");
    }
    let store = open_store(&fs, "/s").expect("it opens");
    let pages = store.collection("pages").expect("it is there");
    assert_eq!(pages.recovery().removed, ["ROOM.new"]);
    assert!(fs.files().contains_key(&path("backup.new")));
}

#[test]
fn a_failed_restore_removed_the_empty_folder_that_it_was_given() {
    let (fs, store) = medium();
    store.snapshot(Path::new("/snapshot")).expect("a snapshot");
    let target = Path::new("/r");
    fs.create_dir(target).expect("a folder");
    fs.fill();
    restore_on(&fs, Path::new("/snapshot"), target).expect_err("no room");
    assert!(fs.list(target).expect("it is still there").is_empty());
}
