//! Collections, their settings, snapshots, and salvage.

use std::fs::{self as files, OpenOptions as FileOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lookalike::{Fingerprint, Scheme};
use lookalike_store::{
    CollectionSettings, PairRule, RetainedParts, Store, StoreError, StoreOptions, StoreTuning,
    StoredDocument, StoredScheme, UnixMillis, Verdict, WriteOp, restore, salvage, verify,
};

const NOW: UnixMillis = UnixMillis(1000);

fn options() -> StoreOptions {
    StoreOptions::default().create(true)
}

fn settings() -> CollectionSettings {
    CollectionSettings::new(&Scheme::default())
}

fn insert(id: &str, code: u64) -> WriteOp {
    WriteOp::Insert(StoredDocument::new(id, Fingerprint(code)))
}

fn file_of(folder: &Path, kind: &str) -> PathBuf {
    let entries = files::read_dir(folder).expect("a folder");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let found = paths
        .into_iter()
        .rfind(|path| path.extension().is_some_and(|extension| extension == kind));
    found.expect("there is one")
}

fn flip(path: &Path, at: u64) {
    let file = FileOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .expect("a file");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("a byte");
    file.write_all_at(&[byte[0] ^ 4], at).expect("a byte");
}

#[test]
fn settings_are_kept_and_others_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = Store::open(folder.path().join("none"), StoreOptions::default());
    assert!(matches!(refused, Err(StoreError::NoStore { .. })));
    let mut made = settings();
    made.radius = 5;
    made.time_to_live = Some(Duration::from_secs(7));
    made.keep = RetainedParts::default().texts(true);
    {
        let store = Store::open(folder.path(), options()).expect("it opens");
        store
            .create_collection("pages", &made)
            .expect("a collection");
        store.close().expect("an end");
    }
    let store = Store::open(folder.path(), StoreOptions::default()).expect("it opens");
    let pages = store.collection("pages").expect("it is there");
    assert_eq!(*pages.settings(), made);
    assert!(pages.recovery().clean);
    store.create_collection("pages", &made).expect("the same");
    let told = store
        .create_collection("pages", &settings())
        .expect_err("another")
        .to_string();
    assert!(
        told.contains("radius (5 and 3)") && told.contains("time to live"),
        "{told}"
    );
    for name in ["", "../x", "A", "a b", &"x".repeat(65)] {
        assert!(
            matches!(
                store.create_collection(name, &made),
                Err(StoreError::BadName(_))
            ),
            "{name}"
        );
    }
    assert!(matches!(
        store.collection("none"),
        Err(StoreError::NoCollection(_))
    ));
    let other = Scheme::default().shingle("words:3".parse().expect("a shingle"));
    let told = pages
        .ensure_scheme(&StoredScheme::from(&other))
        .expect_err("another scheme")
        .to_string();
    assert!(told.contains("shingle (words:5 and words:3)"), "{told}");
    pages
        .ensure_scheme_id(Scheme::default().id())
        .expect("its own");
    assert!(pages.ensure_scheme_id(other.id()).is_err());
    drop(pages);
    store.drop_collection("pages").expect("it goes");
    assert!(store.collection("pages").is_err());
    store
        .create_collection("pages", &settings())
        .expect("a new one of that name");
}

#[test]
fn the_time_to_live_changes_while_others_read_and_write() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path(), options()).expect("it opens");
    let pages = store
        .create_collection("pages", &settings())
        .expect("a collection");
    pages.write(vec![insert("a", 1)], NOW).expect("a write");
    let life = Some(Duration::from_secs(1));
    pages.set_time_to_live(life).expect("a change");
    pages
        .write(vec![insert("b", 1 << 40)], NOW)
        .expect("whoever holds it goes on");
    let later = NOW.after(Duration::from_secs(2));
    let ends = |pages: &lookalike_store::Collection| {
        ["a", "b"].map(|id| pages.get(id, later).expect("a read").is_some())
    };
    assert_eq!(ends(&pages), [true, false], "only what came after it");
    drop(pages);
    store.close().expect("an end");
    let store = Store::open(folder.path(), StoreOptions::default()).expect("it opens");
    let pages = store.collection("pages").expect("it is there");
    assert_eq!(pages.settings().time_to_live, life);
    pages.set_time_to_live(None).expect("a change");
    assert_eq!(pages.settings().time_to_live, None);
}

#[test]
fn a_neighbour_is_read_as_it_was_found_whatever_became_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path(), options()).expect("it opens");
    let mut made = settings();
    made.keep = RetainedParts::default().texts(true);
    let pages = store
        .create_collection("pages", &made)
        .expect("a collection");
    let with_text = |text: &str| {
        WriteOp::Insert(StoredDocument {
            metadata: b"7".to_vec(),
            text: Some(text.to_owned()),
            ..StoredDocument::new("a", Fingerprint(1))
        })
    };
    for flushed in [false, true] {
        pages
            .write(vec![with_text("before")], NOW)
            .expect("a write");
        if flushed {
            pages.compact().expect("a run");
        }
        let found = pages.query(Fingerprint(0), 3, NOW, 5).expect("a query");
        pages.write(vec![with_text("after")], NOW).expect("a write");
        pages.compact().expect("a run without it");
        let near = &found.neighbours[0];
        assert_eq!((near.id.as_str(), &*near.metadata), ("a", &b"7"[..]));
        let document = near.document().expect("a read");
        assert_eq!(document.text.as_deref(), Some("before"));
    }
}

#[test]
fn whoever_opens_a_store_again_is_told_who_has_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let _store = Store::open(folder.path(), options()).expect("it opens");
    let refused = Store::open(folder.path(), options()).expect_err("it is open");
    let own = std::process::id().to_string();
    assert!(
        matches!(&refused, StoreError::Locked { holder, .. } if *holder == own),
        "{refused}"
    );
    // The message must not suggest stopping the process.
    assert!(refused.to_string().contains("this process"), "{refused}");
    assert!(verify(folder.path()).is_err());
}

#[test]
fn requests_that_make_no_sense_are_refused_and_harm_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path(), options()).expect("it opens");
    let pages = store
        .create_collection("pages", &settings())
        .expect("a collection");
    let bad = [insert("", 1), insert(&"x".repeat(5000), 1)];
    for write in bad {
        // The rest of the batch is not done either.
        let refused = pages.write(vec![insert("a", 1), write], NOW);
        assert!(
            matches!(refused, Err(StoreError::Invalid(_))),
            "{refused:?}"
        );
    }
    assert_eq!(pages.get("a", NOW).expect("a read"), None);
    assert!(pages.check(Fingerprint(1), 4, NOW).is_err());
    assert!(pages.paragraph_lookup(3, NOW).is_err());
    pages.write(vec![insert("a", 1)], NOW).expect("a write");
    assert_eq!(
        pages.check(Fingerprint(0), 3, NOW).expect("a check"),
        Verdict::Near { distance: 1 }
    );
    store.close().expect("an end");
    assert!(matches!(
        pages.write(vec![insert("b", 1)], NOW),
        Err(StoreError::Closed)
    ));
}

#[test]
fn damage_in_one_collection_leaves_the_others_alone_and_the_rest_is_saved() {
    let folder = tempfile::tempdir().expect("a folder");
    let tuning = StoreTuning::default().memory_documents(100);
    let store = Store::open(folder.path(), options().tuning(tuning)).expect("it opens");
    for name in ["good", "bad"] {
        let collection = store
            .create_collection(name, &settings())
            .expect("a collection");
        for id in 0..500_u64 {
            collection
                .write(vec![insert(&format!("{id}"), id << 20)], NOW)
                .expect("a write");
        }
        collection.flush().expect("a run");
        collection.compact().expect("a run");
        collection
            .write(vec![insert("last", 3)], NOW)
            .expect("a write");
    }
    store.close().expect("an end");
    // In the first block of documents, which is read on demand.
    let bad = folder.path().join("collections/bad");
    let run = file_of(&bad, "run");
    flip(&run, 100);
    let found = verify(folder.path()).expect("a store");
    assert!(found["good"].is_ok());
    let told = found["bad"].as_ref().expect_err("damaged").to_string();
    assert!(
        told.contains(run.to_str().expect("a name")) && told.contains("byte 32"),
        "{told}"
    );
    // In the log, which is read when the store is opened.
    flip(&file_of(&bad, "log"), 512 + 70);
    let store = Store::open(folder.path(), StoreOptions::default()).expect("it opens");
    assert!(store.collection("bad").is_err());
    let good = store.collection("good").expect("it is whole");
    assert!(good.get("499", NOW).expect("a read").is_some());
    drop(good);
    store.close().expect("an end");

    let target = tempfile::tempdir().expect("a folder");
    let target = target.path().join("saved");
    let saved =
        salvage(folder.path(), &target, StoreOptions::default()).expect("something is left");
    assert_eq!(saved.lost.len(), 2, "{:?}", saved.lost);
    let store = Store::open(&target, StoreOptions::default()).expect("it opens");
    let good = store.collection("good").expect("whole");
    assert_eq!(good.stats().documents, 501);
    let bad = store.collection("bad").expect("what is left");
    let left = bad.stats().documents;
    assert!((100..500).contains(&left), "{left}");
    assert!(bad.get("499", NOW).expect("a read").is_some());
    assert!(bad.get("last", NOW).expect("a read").is_none());
}

#[test]
fn a_snapshot_is_made_while_others_write_and_checked_before_it_is_restored() {
    let folder = tempfile::tempdir().expect("a folder");
    let tuning = StoreTuning::default().memory_documents(50);
    let store =
        Store::open(folder.path().join("store"), options().tuning(tuning)).expect("it opens");
    let pages = store
        .create_collection("pages", &settings())
        .expect("a collection");
    let target = folder.path().join("snapshot");
    let before = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for id in 0..1000_u64 {
                pages
                    .write(vec![insert(&format!("{id}"), id << 16)], NOW)
                    .expect("a write");
            }
        });
        while pages.stats().documents < 300 {
            std::thread::yield_now();
        }
        let before = pages.stats().documents;
        let summary = store.snapshot(&target).expect("a snapshot");
        assert_eq!(summary.collections, 1);
        writer.join().expect("it writes");
        before
    });
    assert!(store.snapshot(&target).is_err(), "there is one");
    let restored = folder.path().join("restored");
    restore(&target, &restored).expect("it is whole");
    let copy = Store::open(&restored, StoreOptions::default()).expect("it opens");
    let old = copy.collection("pages").expect("it is there");
    let count = old.stats().documents;
    assert!((before..1000).contains(&count), "{before} {count}");
    for id in 0..count {
        assert!(
            old.get(&format!("{id}"), NOW).expect("a read").is_some(),
            "{id} of {count}"
        );
    }
    old.write(vec![insert("new", 9)], NOW).expect("a write");
    copy.close().expect("an end");
    // Writes to the restored store changed neither the snapshot nor the original store.
    restore(&target, folder.path().join("again")).expect("it is whole");
    assert_eq!(pages.get("new", NOW).expect("a read"), None);
    let run = file_of(&target.join("collections/pages"), "run");
    let copied = files::read(&run).expect("a run");
    files::remove_file(&run).expect("its own name");
    files::write(&run, copied).expect("its own file");
    flip(&run, 50);
    let told = restore(&target, folder.path().join("third")).expect_err("damaged");
    assert!(
        matches!(&told, StoreError::Damaged { path, .. } if *path == run),
        "{told}"
    );
    assert!(!folder.path().join("third").exists());
}

#[test]
fn time_never_goes_backwards_not_even_over_a_new_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path(), options()).expect("it opens");
    let pages = store
        .create_collection("pages", &settings())
        .expect("a collection");
    let document = StoredDocument {
        expires: Some(UnixMillis(2000)),
        ..StoredDocument::new("a", Fingerprint(1))
    };
    pages
        .write(vec![WriteOp::Insert(document)], NOW)
        .expect("a write");
    let check = |pages: &lookalike_store::Collection, now| {
        pages.check(Fingerprint(1), 0, now).expect("a check")
    };
    assert_eq!(check(&pages, UnixMillis(1999)), Verdict::SameFingerprint);
    assert_eq!(check(&pages, UnixMillis(2000)), Verdict::New);
    assert_eq!(
        check(&pages, UnixMillis(1500)),
        Verdict::New,
        "the clock went back"
    );
    drop(pages);
    store.close().expect("an end");
    let store = Store::open(folder.path(), StoreOptions::default()).expect("it opens");
    let pages = store.collection("pages").expect("it is there");
    assert_eq!(
        check(&pages, NOW),
        Verdict::New,
        "the clock went back while it was closed"
    );
}

#[test]
fn settings_that_differ_are_told_in_the_words_of_requests() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path(), options()).expect("it opens");
    store.create_collection("pages", &settings()).expect("new");
    let other = settings()
        .time_to_live(Duration::from_secs(60))
        .keep(RetainedParts::default().signatures(true))
        .pairs(PairRule::default().within("site"));
    let told = store.create_collection("pages", &other);
    let told = told.expect_err("other settings").to_string();
    for part in [
        "time to live (forever and 60 s)",
        "kept parts (text_hashes and text_hashes+signatures)",
        "pairs that count (all and within site)",
    ] {
        assert!(told.contains(part), "{told}");
    }
}

#[test]
fn a_salvage_lost_the_documents_behind_a_batch_of_large_texts() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    let store = Store::open(&source, options()).expect("it opens");
    let mut made = settings();
    made.keep = RetainedParts::default().texts(true);
    let pages = store.create_collection("pages", &made);
    let pages = pages.expect("a collection");
    // A thousand changes of 68 KB exceed the maximum size of a batch.
    let documents = 1100;
    for id in 0..documents {
        let document = StoredDocument {
            text: Some("x".repeat(68_000)),
            ..StoredDocument::new(format!("{id}"), Fingerprint(id))
        };
        pages
            .write(vec![WriteOp::Insert(document)], NOW)
            .expect("a write");
    }
    drop(pages);
    store.close().expect("an end");
    let saved = salvage(&source, &target, StoreOptions::default()).expect("a store");
    assert!(saved.lost.is_empty(), "{:?}", saved.lost);
    assert_eq!(saved.saved["pages"], documents);
}
