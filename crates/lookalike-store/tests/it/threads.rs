//! Concurrent use by many threads.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lookalike::{Fingerprint, Scheme};
use lookalike_hamming::threads::map_parallel;
use lookalike_store::{
    Collection, CollectionSettings, InsertWhen, Store, StoreOptions, StoreTuning, StoredDocument,
    UnixMillis, Verdict, WriteOp, WriteOutcome,
};

const NOW: UnixMillis = UnixMillis(5000);

fn options() -> StoreOptions {
    let tuning = StoreTuning::default()
        .memory_documents(500)
        .fan_out(3)
        .small_run(1000);
    StoreOptions::default().create(true).tuning(tuning)
}

/// Creates a store with one collection.
fn pages(folder: &Path, options: StoreOptions) -> (Store, Arc<Collection>) {
    let store = Store::open(folder, options).expect("it opens");
    let settings = CollectionSettings::new(&Scheme::default());
    let pages = store.create_collection("pages", &settings);
    (store, pages.expect("a collection"))
}

#[test]
fn of_equal_pages_at_the_same_moment_exactly_one_is_new() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, pages) = pages(folder.path(), options());
    let new = AtomicU64::new(0);
    map_parallel(0..8, |thread| {
        for page in 0..200_u64 {
            let code = Fingerprint(page.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let document = StoredDocument::new(format!("{thread}/{page}"), code);
            let check = WriteOp::CheckAndInsert {
                document,
                scope: 3.into(),
                insert: InsertWhen::New,
                limit: 1,
            };
            let outcomes = pages.write(vec![check], NOW).expect("a write");
            let [
                WriteOutcome::Checked {
                    answer, inserted, ..
                },
            ] = &outcomes[..]
            else {
                panic!("{outcomes:?}");
            };
            assert_eq!(*inserted, answer.verdict == Verdict::New);
            new.fetch_add(u64::from(*inserted), Ordering::Relaxed);
        }
    });
    assert_eq!(new.into_inner(), 200);
    store.close().expect("an end");
}

/// Every lookup would visit all earlier versions: quadratic time, minutes instead of a moment.
#[test]
fn one_page_replaced_many_times_stays_quick() {
    let folder = tempfile::tempdir().expect("a folder");
    let tuning = StoreTuning::default().memory_documents(200_000);
    let (store, pages) = pages(folder.path(), options().tuning(tuning));
    let begun = std::time::Instant::now();
    for _ in 0..10 {
        let writes =
            (0..10_000).map(|_| WriteOp::Insert(StoredDocument::new("same", Fingerprint(7))));
        pages.write(writes.collect(), NOW).expect("a write");
        assert_eq!(
            pages.check(Fingerprint(7), 3, NOW).expect("a check"),
            Verdict::SameFingerprint
        );
    }
    let taken = begun.elapsed();
    assert!(taken.as_secs() < 20, "{taken:?}");
    assert_eq!(pages.stats().documents, 1);
    store.close().expect("an end");
}

#[test]
fn one_run_is_made_behind_the_scenes_while_others_write() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, pages) = pages(folder.path(), options());
    let insert = |from: u64| {
        let document = |n: u64| StoredDocument::new(n.to_string(), Fingerprint(n << 20));
        let batch = (from..from + 100).map(|n| WriteOp::Insert(document(n)));
        pages.write(batch.collect(), NOW).expect("a write");
    };
    (0..4050).step_by(100).for_each(insert);
    pages.compact_later().expect("it is asked for");
    insert(5000);
    let begun = std::time::Instant::now();
    while pages.is_compacting() {
        assert!(begun.elapsed().as_secs() < 60);
        std::thread::yield_now();
    }
    let stats = pages.stats();
    assert_eq!((stats.runs.len(), stats.documents), (1, 4200), "{stats:?}");
    assert!(stats.runs[0] >= 4100, "{stats:?}");
    pages.compact_later().expect("there is little to do");
    store.close().expect("an end");
}

#[test]
fn readers_see_whole_batches_while_others_write_and_merge() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, pages) = pages(folder.path(), options());
    let ended = AtomicBool::new(false);
    let code = |version: u64, at: u64| Fingerprint(version << 32 | 0xffff_0000 | at);
    let write = || {
        for version in 0..3000_u64 {
            // Two pages change at once: a reader that sees one of them in a version also sees the other in it.
            let inserts = (0..2).map(|at| {
                WriteOp::Insert(StoredDocument::new(format!("{at}"), code(version, at * 15)))
            });
            let filler = WriteOp::Insert(StoredDocument::new(
                format!("f{version}"),
                Fingerprint(!version << 40),
            ));
            pages
                .write(inserts.chain([filler]).collect(), NOW)
                .expect("a write");
        }
        ended.store(true, Ordering::Release);
    };
    let read = || {
        let mut version = 0;
        while !ended.load(Ordering::Acquire) {
            let Some(first) = pages.get("0", NOW).expect("a read") else {
                continue;
            };
            let seen = first.fingerprint.expect("a number").0 >> 32;
            assert!(seen >= version, "back from {version} to {seen}");
            version = seen;
            // Either both are found in this version, or neither if it was already replaced.
            let codes = [code(version, 0), code(version, 15)];
            let verdicts = pages.check_many(&codes, 0, NOW).expect("a check");
            assert_eq!(verdicts[0], verdicts[1]);
        }
    };
    map_parallel(0..3, |thread| match thread {
        0 => write(),
        _ => read(),
    });
    assert!(pages.stats().runs.len() > 1, "{:?}", pages.stats());
    pages.compact().expect("one run");
    let stats = pages.stats();
    assert_eq!(
        (stats.runs.len(), stats.documents, stats.tombstones),
        (1, 3002, 0)
    );
    store.close().expect("an end");
}

/// Regression test: the writer could exit between checking for the end and checking the queue, so such a write was never answered.
#[test]
fn a_write_that_meets_the_end_is_answered() {
    for _ in 0..100 {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, pages) = pages(folder.path(), options());
        let (told, heard) = std::sync::mpsc::channel();
        let submitted = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for number in 0..2000_u64 {
                    let told = told.clone();
                    pages.submit(
                        vec![WriteOp::Delete("none".to_owned())],
                        NOW,
                        move |result| {
                            told.send((number, result.is_ok())).expect("they are heard");
                        },
                    );
                }
                2000
            });
            store.close().expect("an end");
            writer.join().expect("all are submitted")
        });
        drop(told);
        let answers: Vec<_> =
            std::iter::from_fn(|| heard.recv_timeout(Duration::from_secs(9)).ok()).collect();
        assert_eq!(answers.len(), submitted);
    }
}

/// Regression test: the merge thread took more runs than there were, and ended.
#[test]
fn a_fan_out_beyond_the_runs_merges_them_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let tuning = StoreTuning::default().fan_out(100);
    let options = StoreOptions::default().create(true).tuning(tuning);
    let (store, pages) = pages(folder.path(), options);
    for number in 0..60_u64 {
        let document = StoredDocument::new(number.to_string(), Fingerprint(number));
        pages
            .write(vec![WriteOp::Insert(document)], NOW)
            .expect("a write");
        pages.flush().expect("a flush");
    }
    let end = Instant::now() + Duration::from_secs(20);
    while pages.stats().runs.len() > 25 {
        assert!(Instant::now() < end, "{} runs", pages.stats().runs.len());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(pages.stats().documents, 60);
    store.close().expect("an end");
}
