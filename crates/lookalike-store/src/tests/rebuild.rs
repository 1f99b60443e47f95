//! Rebuilding a collection while it is used: nothing is lost, and whatever fails leaves either the old or the new collection intact.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use lookalike::{Fingerprint, Scheme, Sketch};

use crate::collection::Collection;
use crate::error::StoreError;
use crate::fs::{FileSystem as _, InjectedFault, SimulatedFs};
use crate::operations::WriteOp;
use crate::rebuild::{RebuildReport, RebuildTarget};
use crate::time::UnixMillis;
use crate::{
    CollectionSettings, DocumentSketch, RetainedParts, SchemePart, Store, StoreOptions,
    StoredDocument, StoredScheme, Verdict, restore_on, salvage_on, verify_on,
};

const NOW: UnixMillis = UnixMillis(1000);
const DOCUMENTS: u64 = 600;

fn settings() -> CollectionSettings {
    CollectionSettings::new(&Scheme::default()).keep(RetainedParts::default().texts(true))
}

fn target() -> RebuildTarget {
    let scheme: Scheme = Scheme::default().seed(7);
    RebuildTarget {
        scheme: StoredScheme::from(&scheme),
        radius: 5,
        parts: vec![SchemePart::new("terms", vec![1, 2, 3])],
    }
}

fn open(fs: &SimulatedFs) -> Store {
    let options = StoreOptions::default().create(true);
    Store::open_on(Arc::new(fs.clone()), Path::new("/s"), options).expect("it opens")
}

fn document(id: u64, text: u64) -> StoredDocument {
    StoredDocument {
        text: Some(text.to_string()),
        metadata: vec![b'1'],
        ..StoredDocument::new(id.to_string(), Fingerprint(text))
    }
}

fn insert(id: u64, text: u64) -> WriteOp {
    WriteOp::Insert(document(id, text))
}

/// Converts a document to the other scheme.
fn converted(mut document: StoredDocument) -> StoredDocument {
    let text: u64 = document
        .text
        .as_ref()
        .and_then(|text| text.parse().ok())
        .expect("a number");
    document.fingerprint = Some(Fingerprint(text << 32));
    document
}

fn all(collection: &Collection) -> Vec<StoredDocument> {
    let mut all = Vec::new();
    let read = collection.for_each(UnixMillis(0), &mut |document| {
        all.push(document);
        Ok::<_, StoreError>(())
    });
    read.expect("all are read");
    all
}

fn by_id(all: &[StoredDocument]) -> BTreeMap<&str, &StoredDocument> {
    let by_id = all.iter().map(|document| (document.id.as_str(), document));
    by_id.collect()
}

fn write(collection: &Collection, writes: Vec<WriteOp>) {
    collection.write(writes, NOW).expect("a write");
}

/// Creates a store with the collection `pages`.
fn medium(documents: u64) -> (SimulatedFs, Store, Arc<Collection>) {
    let fs = SimulatedFs::new();
    let store = open(&fs);
    let pages = store
        .create_collection("pages", &settings())
        .expect("a collection");
    let (first, second) = (documents / 2, documents);
    write(&pages, (0..first).map(|id| insert(id, id)).collect());
    pages.flush().expect("a run");
    write(&pages, (first..second).map(|id| insert(id, id)).collect());
    (fs, store, pages)
}

type Convert<'c> = &'c mut dyn FnMut(StoredDocument) -> Result<StoredDocument, StoreError>;

fn rebuild_to(
    store: &Store,
    target: &RebuildTarget,
    convert: Convert<'_>,
) -> Result<RebuildReport, StoreError> {
    let pages = store.collection("pages")?;
    store.rebuild_collection(&pages, target, convert, || Ok(()))
}

fn rebuild(store: &Store) -> Result<RebuildReport, StoreError> {
    rebuild_to(store, &target(), &mut |document| Ok(converted(document)))
}

/// Restores a snapshot and returns its collection `pages`.
fn restored(fs: &SimulatedFs, snapshot: &str) -> Arc<Collection> {
    restore_on(fs, Path::new(snapshot), Path::new("/r")).expect("a store");
    let options = StoreOptions::default();
    let store = Store::open_on(Arc::new(fs.clone()), Path::new("/r"), options);
    let store = store.expect("it opens");
    store.collection("pages").expect("it is there")
}

fn folders(fs: &SimulatedFs) -> Vec<String> {
    fs.list(Path::new("/s/collections")).expect("a folder")
}

#[test]
fn what_changes_while_a_collection_is_rebuilt_is_in_the_new_one() {
    let (fs, store, old) = medium(DOCUMENTS);
    let (mut number, hour) = (0_u64, Some(Duration::from_secs(3600)));
    let report = rebuild_to(&store, &target(), &mut |document| {
        number += 1;
        // Change documents that were already copied, that are copied later, and that are new.
        match number {
            1 => write(&old, vec![insert(3, 9003), insert(590, 9590)]),
            2 => write(
                &old,
                vec![
                    WriteOp::Delete("591".to_owned()),
                    WriteOp::Delete("4".to_owned()),
                ],
            ),
            3 => write(&old, vec![insert(7000, 7), insert(3, 9004)]),
            300 => write(&old, vec![WriteOp::Delete("5".to_owned()), insert(4, 9)]),
            301 => {
                let expires = Some(UnixMillis(5000));
                write(
                    &old,
                    vec![WriteOp::Expire {
                        id: "6".to_owned(),
                        expires,
                    }],
                );
                write(
                    &old,
                    vec![WriteOp::Expire {
                        id: "7".to_owned(),
                        expires: Some(UnixMillis(1)),
                    }],
                );
                old.set_time_to_live(hour).expect("a change");
            }
            _ => {}
        }
        Ok(converted(document))
    });
    assert!(report.expect("it is done").written > DOCUMENTS);
    let new = store.collection("pages").expect("it is there");
    let expected: Vec<StoredDocument> = all(&old).into_iter().map(converted).collect();
    assert_eq!(expected.len() as u64, DOCUMENTS - 2);
    // Documents that changed meanwhile are among the others, which keep their order.
    let found = all(&new);
    assert!(by_id(&found) == by_id(&expected));
    let untouched = |all: &[StoredDocument]| -> Vec<String> {
        let ids = all.iter().map(|document| document.id.clone());
        ids.filter(|id| !["3", "4", "6", "590", "7000"].contains(&id.as_str()))
            .collect()
    };
    assert!(untouched(&found) == untouched(&expected));
    let expected = found;
    let settings = new.settings();
    assert_eq!((&settings.scheme, settings.radius), (&target().scheme, 5));
    assert_eq!((settings.time_to_live, settings.keep.texts), (hour, true));
    assert_eq!(new.scheme_parts().expect("parts"), target().parts);
    assert_eq!(
        new.check(Fingerprint(9004 << 32), 0, NOW).expect("a check"),
        Verdict::SameFingerprint
    );
    // Holders of the old collection can still read, but not write.
    assert!(old.get("7000", NOW).expect("a read").is_some());
    let refused = old.write(vec![insert(1, 1)], NOW);
    assert!(matches!(refused, Err(StoreError::Replaced)), "{refused:?}");
    assert!(matches!(
        old.set_time_to_live(None),
        Err(StoreError::Replaced)
    ));
    assert_eq!(folders(&fs), ["pages~"]);
    drop((new, old));
    store.close().expect("an end");
    assert!(verify_on(&fs, Path::new("/s")).expect("a store")["pages"].is_ok());
    let store = open(&fs);
    assert_eq!(
        all(&store.collection("pages").expect("it is there")),
        expected
    );
    // Rebuild it back again.
    rebuild(&store).expect("it is done");
    assert_eq!(folders(&fs), ["pages"]);
    assert_eq!(
        all(&store.collection("pages").expect("it is there")),
        expected
    );
}

#[test]
fn a_power_cut_leaves_the_old_collection_or_the_new_one_with_every_acknowledged_write() {
    let (fs, store, old) = medium(40);
    // Wait until the threads of the collection make no more calls on their own.
    std::thread::sleep(Duration::from_millis(120));
    fs.record();
    let mut number = 0;
    let rebuilt = rebuild_to(&store, &target(), &mut |document| {
        if number < 10 {
            write(
                &old,
                vec![
                    insert(1000 + number, number),
                    WriteOp::Delete(number.to_string()),
                ],
            );
            number += 1;
            fs.mark(number);
        }
        Ok(converted(document))
    });
    rebuilt.expect("it is done");
    fs.mark(100);
    let crashes = fs.recorded();
    assert!(crashes.len() > 40);
    let (mut of_old, mut of_new) = (0, 0);
    for (at, crash) in crashes.iter().enumerate() {
        for seed in 0..6 {
            let medium = if seed == 0 {
                crash.kill()
            } else {
                crash.cut(seed)
            };
            let store = open(&medium);
            let pages = store
                .collection("pages")
                .unwrap_or_else(|error| panic!("call {at}: {error}"));
            let is_new = pages.settings().scheme == target().scheme;
            let left = folders(&medium);
            assert_eq!(left, [if is_new { "pages~" } else { "pages" }], "call {at}");
            let found = all(&pages);
            // Every acknowledged write must be there, and the one in progress may be.
            let done = crash.mark.min(10);
            let of = |writes: u64| -> Vec<StoredDocument> {
                let before = (writes..40).map(|id| document(id, id));
                let inserted = (0..writes).map(|write| document(1000 + write, write));
                let all = before.chain(inserted);
                if is_new {
                    all.map(converted).collect()
                } else {
                    all.collect()
                }
            };
            let is_whole = found == of(done) || found == of((done + 1).min(10));
            assert!(is_whole, "call {at}, seed {seed}: {found:?}");
            assert!(!is_new || done == 10, "call {at}");
            assert!(
                is_new || crash.mark < 100,
                "call {at}: the new collection is gone"
            );
            if is_new {
                of_new += 1
            } else {
                of_old += 1
            }
            // The job can be started again.
            if seed == 1 && !is_new {
                rebuild(&store).expect("it is done");
                let again = store.collection("pages").expect("it is there");
                assert_eq!(all(&again).len(), found.len());
            }
        }
    }
    assert!(of_old > 10 && of_new > 10, "{of_old} {of_new}");
}

#[test]
fn a_failure_of_any_call_leaves_a_collection_that_keeps_what_it_acknowledges() {
    let calls = {
        let (fs, store, _) = medium(20);
        std::thread::sleep(Duration::from_millis(120));
        let before = fs.calls();
        rebuild(&store).expect("it is done");
        fs.calls() - before
    };
    let faults = [
        InjectedFault::Io,
        InjectedFault::Full,
        InjectedFault::FailedSync,
        InjectedFault::ShortWrite,
    ];
    let (mut failed, mut stopped) = (0, 0);
    for call in 0..calls {
        for fault in faults {
            let (fs, store, old) = medium(20);
            fs.fail_at(fs.calls() + call, fault);
            let rebuilt = rebuild(&store);
            fs.heal();
            let pages = store.collection("pages").expect("it is there");
            if rebuilt.is_err() {
                failed += 1;
                assert!(Arc::ptr_eq(&pages, &old), "call {call}, {fault:?}");
            }
            // If the medium failed, the writer of the collection has stopped; otherwise it accepts writes.
            let acknowledged = match pages.write(vec![insert(5000, 1)], NOW) {
                Ok(_) => true,
                Err(StoreError::Stopped(_)) => {
                    stopped += 1;
                    false
                }
                Err(error) => panic!("call {call}, {fault:?}: {error}"),
            };
            drop((pages, old));
            drop(store);
            let store = open(&fs.cut(call));
            let pages = store
                .collection("pages")
                .unwrap_or_else(|error| panic!("call {call}, {fault:?}: {error}"));
            let count = all(&pages).len();
            assert!(count >= 20, "call {call}, {fault:?}: {count}");
            if acknowledged {
                assert_eq!(
                    count, 21,
                    "call {call}, {fault:?}: an acknowledged write is gone"
                );
            }
        }
    }
    assert!(failed > 10, "{failed} of {calls} calls, {stopped} stopped");
}

#[test]
fn a_job_that_fails_or_panics_leaves_no_files_and_no_writer_that_waits() {
    let (fs, store, old) = medium(DOCUMENTS);
    let before = all(&old);
    let fails = rebuild_to(
        &store,
        &target(),
        &mut |document| match document.id.as_str() {
            "300" => Err(StoreError::Invalid("no text".to_owned())),
            _ => Ok(converted(document)),
        },
    );
    assert!(matches!(fails, Err(StoreError::Invalid(_))));
    let panics = catch_unwind(AssertUnwindSafe(|| {
        rebuild_to(&store, &target(), &mut |_| panic!("on purpose"))
    }));
    assert!(panics.is_err());
    assert_eq!(folders(&fs), ["pages"]);
    let pages = store.collection("pages").expect("it is there");
    assert!(Arc::ptr_eq(&pages, &old) && all(&pages) == before);
    // More changes than could be written if the journal were never emptied.
    for batch in 0..20 {
        write(
            &pages,
            (0..1000)
                .map(|at| insert(10_000 + batch * 1000 + at, at))
                .collect(),
        );
    }
    rebuild(&store).expect("it is done");
}

#[test]
fn writers_wait_for_a_job_that_falls_behind_and_lose_nothing() {
    let (_fs, store, old) = medium(2);
    let writers = std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            // Some of these arrive after the collection was replaced: they are refused and sent again.
            for batch in 0..40_u64 {
                let writes = || (0..1000).map(|at| insert(batch * 1000 + at, at)).collect();
                while let Err(error) = store
                    .collection("pages")
                    .and_then(|pages| pages.write(writes(), NOW))
                {
                    assert!(matches!(error, StoreError::Replaced), "{error}");
                }
            }
        });
        let rebuilt = rebuild(&store);
        (writing.join(), rebuilt)
    });
    writers.0.expect("no panic");
    writers.1.expect("it is done");
    let pages = store.collection("pages").expect("it is there");
    assert_eq!(pages.stats().documents, 40_000);
    assert!(!Arc::ptr_eq(&pages, &old));
}

#[test]
fn one_collection_is_rebuilt_at_a_time_and_one_that_is_removed_meanwhile_stays_removed() {
    let (fs, store, _) = medium(10);
    let mut refused = None;
    let ended = rebuild_to(&store, &target(), &mut |document| {
        if refused.is_none() {
            refused = Some(rebuild(&store));
            store.drop_collection("pages").expect("it goes");
            let again = store
                .create_collection("pages", &settings())
                .expect("another");
            write(&again, vec![insert(1, 1)]);
        }
        Ok(converted(document))
    });
    assert!(matches!(refused, Some(Err(StoreError::Rebuilding(name))) if name == "pages"));
    assert!(
        matches!(ended, Err(StoreError::NoCollection(_) | StoreError::Closed)),
        "{ended:?}"
    );
    assert_eq!(folders(&fs), ["pages"]);
    assert_eq!(
        all(&store.collection("pages").expect("it is there")).len(),
        1
    );
    let wrong = RebuildTarget {
        radius: 99,
        ..target()
    };
    let refused = rebuild_to(&store, &wrong, &mut Ok);
    assert!(matches!(refused, Err(StoreError::Invalid(_))));
}

#[test]
fn a_rebuilt_collection_goes_into_snapshots_and_is_salvaged_without_its_catalog() {
    let (fs, store, _) = medium(10);
    rebuild(&store).expect("it is done");
    store.snapshot(Path::new("/snapshot")).expect("a snapshot");
    let wanted = all(&store.collection("pages").expect("it is there"));
    store.close().expect("an end");
    assert_eq!(all(&restored(&fs, "/snapshot")), wanted);
    // Without a catalog, the names are taken from the folders.
    fs.damage(Path::new("/s/CATALOG"), None);
    let shared: Arc<dyn crate::fs::FileSystem> = Arc::new(fs.clone());
    let (from, to) = (Path::new("/s"), Path::new("/saved"));
    let saved = salvage_on(&shared, from, to, StoreOptions::default()).expect("a store");
    assert_eq!(saved.saved["pages"], 10);
}

#[test]
fn of_two_folders_of_one_name_a_salvage_without_catalog_keeps_both() {
    let (fs, store, old) = medium(10);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let mut left = 10;
        rebuild_to(&store, &target(), &mut |document| {
            left -= 1;
            if left == 0 {
                // Cut the power, which leaves the files as a kill would.
                fs.fail_at(fs.calls(), InjectedFault::PowerCut);
            }
            Ok(converted(document))
        })
    }));
    assert!(caught.expect("no panic").is_err());
    drop((store, old));
    let fs = fs.copy();
    assert_eq!(folders(&fs), ["pages", "pages~"]);
    fs.damage(Path::new("/s/CATALOG"), None);
    let shared: Arc<dyn crate::fs::FileSystem> = Arc::new(fs);
    let (from, to) = (Path::new("/s"), Path::new("/saved"));
    let saved = salvage_on(&shared, from, to, StoreOptions::default()).expect("a store");
    assert_eq!(saved.saved["pages"], 10);
    assert!(saved.saved.contains_key("pages-rebuilt"), "{saved:?}");
}

#[test]
fn fingerprints_become_super_shingles_and_fingerprints_again() {
    let (fs, store, old) = medium(40);
    let scheme = Scheme::default().sketch(Sketch::SuperShingle { groups: 4, rows: 2 });
    let target = RebuildTarget::new(StoredScheme::from(&scheme), 2);
    let places = |text: u64| vec![text, 7, text % 5, 1000 + text];
    let mut inserted = false;
    let rebuilt = rebuild_to(&store, &target, &mut |document| {
        if !std::mem::replace(&mut inserted, true) {
            write(&old, vec![insert(1000, 41)]);
        }
        let text = document.text.as_ref().and_then(|text| text.parse().ok());
        Ok(StoredDocument {
            fingerprint: None,
            super_shingles: text.map(places),
            ..document
        })
    });
    rebuilt.expect("it is done");
    drop((store, old));
    let store = open(&fs);
    let new = store.collection("pages").expect("it is there");
    let check = |values: Vec<u64>| {
        let found = new.check(DocumentSketch::SuperShingles(values), 2, NOW);
        found.expect("a check")
    };
    assert_eq!(check(places(41)), Verdict::SameFingerprint);
    // 41 agrees with it in the second and the third place.
    assert_eq!(check(vec![0, 7, 1, 0]), Verdict::Near { distance: 2 });
    assert_eq!(check(vec![5000, 7, 9, 0]), Verdict::New);
    let refused = new.check(Fingerprint(41), 2, NOW);
    assert!(
        matches!(refused, Err(StoreError::OtherForm { .. })),
        "{refused:?}"
    );
    let before = all(&new);
    drop(new);
    rebuild(&store).expect("it is done");
    let new = store.collection("pages").expect("it is there");
    let found = new.check(Fingerprint(41 << 32), 0, NOW).expect("a check");
    assert_eq!(
        (found, all(&new).len()),
        (Verdict::SameFingerprint, before.len())
    );
    assert!(
        all(&new)
            .iter()
            .all(|document| document.super_shingles.is_none())
    );
}

#[test]
fn a_job_that_was_refused_at_its_last_step_changed_the_collection() {
    let (fs, store, old) = medium(20);
    let (mut copied, mut asked) = (0, 0);
    let mut convert = |document| {
        copied += 1;
        Ok(converted(document))
    };
    let refused = store.rebuild_collection(&old, &target(), &mut convert, || {
        asked += 1;
        Err(StoreError::Invalid("not wanted any more".to_owned()))
    });
    assert!(
        matches!(refused, Err(StoreError::Invalid(_))),
        "{refused:?}"
    );
    assert_eq!((copied, asked), (20, 1));
    assert!(store.is_current(&old));
    assert_eq!(folders(&fs), ["pages"]);
    write(&old, vec![insert(20, 20)]);
    assert_eq!(all(&old).len(), 21);
    rebuild(&store).expect("it is done");
    assert!(!store.is_current(&old));
}

#[test]
fn a_new_collection_was_rebuilt_for_one_of_its_name_that_was_removed() {
    let (_fs, store, old) = medium(10);
    store.drop_collection("pages").expect("it goes");
    let again = store.create_collection("pages", &CollectionSettings::new(&Scheme::default()));
    let again = again.expect("another");
    let code = StoredDocument::new("a code", Fingerprint(1));
    write(&again, vec![WriteOp::Insert(code)]);
    let refused = store.rebuild_collection::<StoreError>(&old, &target(), &mut Ok, || Ok(()));
    assert!(
        matches!(refused, Err(StoreError::NoCollection(_))),
        "{refused:?}"
    );
    assert!(store.is_current(&again));
    assert_eq!(all(&again).len(), 1);
}

#[test]
fn the_last_step_waited_until_a_snapshot_had_read_all_its_files() {
    let (fs, store, old) = medium(10);
    let store = Arc::new(store);
    let rebuilt = Arc::clone(&store);
    // All files are linked by then, and the checksums are computed next.
    fs.before("/snapshot/CATALOG", move || {
        let (sender, receiver) = mpsc::channel();
        let rebuilding = std::thread::spawn(move || sender.send(rebuild(&rebuilt).map(drop)));
        let heard = receiver.recv_timeout(Duration::from_secs(60));
        heard.expect("it waits for nobody").expect("it is done");
        rebuilding.join().expect("no panic").expect("it was heard");
    });
    store.snapshot(Path::new("/snapshot")).expect("a snapshot");
    assert!(!store.is_current(&old));
    let restored = restored(&fs, "/snapshot");
    assert_eq!(restored.settings().scheme, settings().scheme);
    assert_eq!(all(&restored), all(&old));
}

/// Writers had to wait while gigabytes of runs were copied to the other file system.
#[test]
fn writes_waited_while_a_snapshot_was_copied_to_another_file_system() {
    let (fs, store, pages) = medium(10);
    fs.refuse_links();
    let before = all(&pages);
    let names = fs.list(Path::new("/s/collections/pages")).expect("files");
    let run = names.iter().find(|name| name.ends_with(".run"));
    let copy = format!("/snapshot/collections/pages/{}", run.expect("a run"));
    let writer = Arc::clone(&pages);
    // The first call with this path is the link, which fails and is made under the lock.
    fs.before(&copy, || {});
    fs.before(&copy, move || {
        let (sender, receiver) = mpsc::channel();
        let writing = std::thread::spawn(move || {
            write(
                &writer,
                (5..15).map(|id| insert(id, 1 << 20 | id)).collect(),
            );
            // This removes the run that is being copied.
            writer.compact().expect("one run");
            sender.send(())
        });
        let heard = receiver.recv_timeout(Duration::from_secs(60));
        heard.expect("it waits for nobody");
        writing.join().expect("no panic").expect("it was heard");
    });
    store.snapshot(Path::new("/snapshot")).expect("a snapshot");
    let now = fs.list(Path::new("/s/collections/pages")).expect("files");
    assert!(now.iter().all(|name| Some(name) != run), "{now:?}");
    assert_eq!(all(&pages).len(), 15);
    assert_eq!(all(&restored(&fs, "/snapshot")), before);
}

#[test]
fn a_collection_that_is_rebuilt_during_a_snapshot_is_in_it() {
    let (fs, store, old) = medium(10);
    let store = Arc::new(store);
    let rebuilt = Arc::clone(&store);
    fs.before("/snapshot/collections/pages", move || {
        rebuild(&rebuilt).expect("it is done");
    });
    store.snapshot(Path::new("/snapshot")).expect("a snapshot");
    assert!(!store.is_current(&old));
    let restored = restored(&fs, "/snapshot");
    assert_eq!(restored.settings().scheme, target().scheme);
    let new = store.collection("pages").expect("it is there");
    assert_eq!(all(&restored), all(&new));
}

#[test]
fn a_salvage_onto_a_full_disk_told_of_a_damaged_store_and_left_a_part() {
    let (fs, store, _) = medium(10);
    store.close().expect("an end");
    let (from, to) = (Path::new("/s"), Path::new("/saved"));
    let salvaged = |fs: &SimulatedFs| {
        let shared: Arc<dyn crate::fs::FileSystem> = Arc::new(fs.clone());
        salvage_on(&shared, from, to, StoreOptions::default())
    };
    let whole = fs.copy();
    let before = whole.calls();
    salvaged(&whole).expect("there is room");
    let calls = whole.calls() - before;
    let mut refused = 0;
    for call in 0..calls {
        let fs = fs.copy();
        fs.fail_at(fs.calls() + call, InjectedFault::Full);
        match salvaged(&fs) {
            Ok(saved) => assert_eq!((saved.saved["pages"], saved.lost.len()), (10, 0), "{call}"),
            Err(error) => {
                assert!(error.is_disk_full(), "call {call}: {error}");
                let mut files = fs.files().into_keys();
                assert_eq!(files.find(|path| path.starts_with(to)), None, "call {call}");
                refused += 1;
            }
        }
    }
    assert!(refused > 5, "{refused} of {calls}");
}
