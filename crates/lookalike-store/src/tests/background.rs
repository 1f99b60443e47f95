//! Flushes, merges and compactions that fail, and what others notice of that.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lookalike::{Fingerprint, Scheme};

use crate::error::StoreError;
use crate::file_names::{MANIFEST, file_path};
use crate::fs::{FileSystem as _, InjectedFault, SimulatedFs, write_all};
use crate::operations::{InsertWhen, WriteOp, WriteOutcome};
use crate::settings::{RetainedParts, StoreTuning};
use crate::store::collection_folder;
use crate::time::UnixMillis;
use crate::verdict::Verdict;
use crate::{
    Collection, CollectionHealth, CollectionSettings, ParagraphLookup, Store, StoreOptions,
    StoredDocument,
};

const NOW: UnixMillis = UnixMillis(1000);

fn settings() -> CollectionSettings {
    CollectionSettings::new(&Scheme::default())
}

/// Creates a store with the empty collection `pages`.
fn medium(tuning: StoreTuning) -> (SimulatedFs, Store, Arc<Collection>) {
    let fs = SimulatedFs::new();
    let options = StoreOptions::default().create(true).tuning(tuning).seed(1);
    let store = Store::open_on(Arc::new(fs.clone()), Path::new("/s"), options);
    let store = store.expect("it opens");
    let pages = store.create_collection("pages", &settings());
    (fs, store, pages.expect("a collection"))
}

fn folder() -> PathBuf {
    collection_folder(Path::new("/s"), "pages")
}

fn insert(pages: &Collection, id: u64) -> Result<(), StoreError> {
    let document = StoredDocument::new(format!("{id}"), Fingerprint(id));
    pages.write(vec![WriteOp::Insert(document)], NOW).map(drop)
}

/// Inserts a document, which becomes a run.
fn run_of(pages: &Collection, id: u64) {
    insert(pages, id).expect("a write");
    pages.flush().expect("a run");
}

/// Destroys all runs, also for those who have them open.
fn damage_runs(fs: &SimulatedFs) {
    let files = fs.files().into_iter();
    for (path, bytes) in files.filter(|(path, _)| path.extension() == Some("run".as_ref())) {
        let file = fs.open(&path, true).expect("a run");
        write_all(&*file, &vec![0xff; bytes.len()], 0).expect("a write");
    }
}

/// Waits until something is true of the health.
fn wait_for(pages: &Collection, is_there: impl Fn(&CollectionHealth) -> bool) {
    let begun = Instant::now();
    while !is_there(&pages.health()) {
        assert!(begun.elapsed().as_secs() < 60, "{:?}", pages.health());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn wait_for_compactions(pages: &Collection) {
    let begun = Instant::now();
    while pages.is_compacting() {
        assert!(begun.elapsed().as_secs() < 60);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_merge_of_a_damaged_run_was_begun_again_every_second() {
    let (fs, _store, pages) = medium(StoreTuning::default().fan_out(2));
    run_of(&pages, 1);
    damage_runs(&fs);
    let begun = Instant::now();
    run_of(&pages, 2);
    wait_for(&pages, |health| health.merge_error.is_some());
    std::thread::sleep(Duration::from_millis(3500));
    assert!(pages.health().merge_error.is_some());
    insert(&pages, 3).expect("a write");
    let _ = pages.flush();
    // Before the attempts: three logs and two runs.
    assert_doubling_delays(newest_log(&fs) - 6, begun);
}

/// Returns the number of the newest log. Every attempt to write a run before it took a number.
fn newest_log(fs: &SimulatedFs) -> u32 {
    let files = fs.files().into_keys();
    let logs = files.filter(|path| path.extension() == Some("log".as_ref()));
    let newest = logs.max().expect("a log");
    let number = newest
        .file_stem()
        .and_then(|stem| stem.to_str()?.parse().ok());
    number.expect("a number")
}

/// Asserts that there were no more attempts than after 0, 1, 3, 7 seconds and so on.
fn assert_doubling_delays(attempts: u32, begun: Instant) {
    let most = 1 + (begun.elapsed().as_secs() + 1).ilog2();
    assert!((1..=most).contains(&attempts), "{attempts} of {most}");
}

#[test]
fn a_flush_that_failed_was_begun_again_every_second() {
    let (fs, _store, pages) = medium(StoreTuning::default());
    insert(&pages, 1).expect("a write");
    fs.refuse_kind("run", InjectedFault::Io);
    let begun = Instant::now();
    // Logs 1 and 2, then the attempts.
    assert!(pages.flush().is_err());
    std::thread::sleep(Duration::from_millis(3500));
    assert!(pages.health().flush_error.is_some());
    fs.heal();
    insert(&pages, 2).expect("a write");
    // The first of the two runs gets its number after the log.
    let _ = pages.flush();
    assert_doubling_delays(newest_log(&fs) - 3, begun);
    // A flush on request does not wait for its turn.
    pages.flush().expect("a run");
    assert_eq!(pages.stats().in_memory, 0);
}

#[test]
fn a_compaction_requested_during_another_was_forgotten() {
    let (fs, _store, pages) = medium(StoreTuning::default());
    run_of(&pages, 1);
    run_of(&pages, 2);
    // Files 1, 2 and 4 are logs, and 3 and 5 the runs.
    let (compacted, asked) = (file_path(&folder(), 6, "run"), Arc::clone(&pages));
    fs.before(compacted, move || {
        insert(&asked, 3).expect("a write");
        asked.compact_later().expect("a request");
    });
    pages.compact_later().expect("a request");
    wait_for_compactions(&pages);
    let stats = pages.stats();
    assert_eq!((stats.runs, stats.in_memory), (vec![3], 0));
}

#[test]
fn a_compaction_that_failed_told_nobody() {
    let (fs, _store, pages) = medium(StoreTuning::default());
    run_of(&pages, 1);
    run_of(&pages, 2);
    damage_runs(&fs);
    pages.compact_later().expect("a request");
    wait_for_compactions(&pages);
    // Merges go on, and find nothing to do.
    std::thread::sleep(Duration::from_millis(1500));
    let error = pages.health().merge_error;
    assert!(
        matches!(error, Some(StoreError::Damaged { .. })),
        "{error:?}"
    );
}

#[test]
fn inserts_were_taken_without_limit_while_flushes_failed() {
    let (fs, _store, pages) = medium(StoreTuning::default().memory_documents(4));
    insert(&pages, 1).expect("a write");
    fs.refuse_kind("run", InjectedFault::Full);
    assert!(pages.flush().expect_err("no room").is_disk_full());
    assert!(!pages.health().disk_full, "inserts go on");
    let refused = (2..200).find_map(|id| Some((id, insert(&pages, id).err()?)));
    let (id, error) = refused.expect("memory has an end");
    assert!(id > 12 && error.is_disk_full(), "{error}");
    assert!(pages.health().disk_full);
    // Deletes may free space.
    let delete = vec![WriteOp::Delete("1".to_owned())];
    pages.write(delete, NOW).expect("a delete");
    assert!(pages.get("1", NOW).expect("a read").is_none());
    fs.heal();
    wait_for(&pages, |health| health.flush_error.is_none());
    assert!(!pages.health().disk_full);
    insert(&pages, id).expect("a write");
}

#[test]
fn a_run_of_long_dead_documents_was_never_rewritten() {
    let (_fs, store, _) = medium(StoreTuning::default());
    let keep = RetainedParts::default().texts(true);
    let texts = store.create_collection("texts", &settings().keep(keep));
    let texts = texts.expect("a collection");
    for id in ["a", "b", "c"] {
        let document = StoredDocument {
            text: Some("x".repeat(8 << 20)),
            ..StoredDocument::new(id, Fingerprint(1))
        };
        let written = texts.write(vec![WriteOp::Insert(document)], NOW);
        written.expect("a write");
    }
    texts.flush().expect("a run");
    let deletes = ["a", "b"].map(|id| WriteOp::Delete(id.to_owned()));
    texts.write(deletes.into(), NOW).expect("a write");
    let begun = Instant::now();
    while texts.stats().runs != [1] {
        assert!(begun.elapsed().as_secs() < 60, "{:?}", texts.stats());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the number of calls of the medium during a lookup of a paragraph.
fn calls_of(fs: &SimulatedFs, lookup: &mut ParagraphLookup<'_>, paragraph: u64) -> u64 {
    let before = fs.calls();
    let found = lookup.find(paragraph, 10).expect("a read");
    assert_eq!(found.documents[0].position as u64, paragraph);
    fs.calls() - before
}

/// A page of as many paragraphs took quadratic time.
#[test]
fn a_document_was_read_once_for_each_of_its_paragraphs() {
    let (fs, store, _) = medium(StoreTuning::default());
    let keep = RetainedParts::default().paragraphs(true);
    let pages = store.create_collection("kept", &settings().keep(keep));
    let pages = pages.expect("a collection");
    let document = StoredDocument {
        paragraphs: (0..100_u64).map(Into::into).collect(),
        ..StoredDocument::new("a", Fingerprint(1))
    };
    pages
        .write(vec![WriteOp::Insert(document)], NOW)
        .expect("a write");
    pages.flush().expect("a run");
    // The mark of the shutdown is the last call of the threads.
    store.close().expect("an end");
    let mut lookup = pages.paragraph_lookup(0, NOW).expect("a lookup");
    let first = calls_of(&fs, &mut lookup, 7);
    let second = calls_of(&fs, &mut lookup, 8);
    assert!(second < first, "{second} {first}");
}

/// Their blocks were read under the lock of the writer, each with the whole texts of its documents.
#[test]
fn writes_waited_for_the_neighbours_of_others_to_be_read() {
    let (fs, _store, pages) = medium(StoreTuning::default());
    run_of(&pages, 0b1011);
    let check = WriteOp::CheckAndInsert {
        document: StoredDocument::new("near", Fingerprint(0b1001)),
        scope: 3.into(),
        insert: InsertWhen::Always,
        limit: 10,
    };
    let (sender, receiver) = std::sync::mpsc::channel();
    pages.submit(vec![check.clone()], NOW, move |written| {
        sender.send(written).expect("the test listens");
    });
    let written = receiver.recv().expect("an answer").expect("a write");
    assert!(written.shows_neighbours());
    // A read fails from here on.
    damage_runs(&fs);
    let error = written.outcomes().expect_err("a damaged neighbour");
    assert!(matches!(error, StoreError::WrittenUnread(_)), "{error}");
    assert!(pages.get("near", NOW).expect("in memory").is_some());
    let again = pages.write(vec![check], NOW).expect_err("the same");
    assert!(matches!(again, StoreError::WrittenUnread(_)), "{again}");
}

#[test]
fn the_neighbours_of_a_whole_batch_were_read_however_long_it_took() {
    let (_fs, _store, pages) = medium(StoreTuning::default());
    run_of(&pages, 0b1011);
    let check = |id: &str, code| WriteOp::CheckAndInsert {
        document: StoredDocument::new(id, Fingerprint(code)),
        scope: 3.into(),
        insert: InsertWhen::New,
        limit: 10,
    };
    let batch = vec![
        check("near", 0b1001),
        check("far", u64::MAX >> 1),
        check("next", 0b1111),
    ];
    let (sender, receiver) = std::sync::mpsc::channel();
    pages.submit(batch, NOW, move |written| {
        sender.send(written).expect("the test listens");
    });
    let written = receiver.recv().expect("an answer").expect("a write");
    let outcomes = written.outcomes_while(|| false).expect("the verdicts");
    let shown = outcomes.iter().map(|outcome| match outcome {
        WriteOutcome::Checked { answer, .. } => {
            let neighbours = answer.neighbours.len();
            (answer.verdict, neighbours, answer.more)
        }
        other => panic!("{other:?}"),
    });
    let near = Verdict::Near { distance: 1 };
    let expected = [(near, 1, false), (Verdict::New, 0, false), (near, 0, true)];
    assert_eq!(shown.collect::<Vec<_>>(), expected);
}

/// Each waited until the logs of those before it had been replayed.
#[test]
fn collections_were_opened_one_after_another() {
    let (fs, store, _) = medium(StoreTuning::default());
    store
        .create_collection("second", &settings())
        .expect("a collection");
    store.close().expect("an end");
    let (begins, begun) = std::sync::mpsc::channel();
    let (met, have_met) = std::sync::mpsc::channel();
    fs.before(folder().join(MANIFEST), move || {
        let is_met = begun.recv_timeout(Duration::from_secs(10)).is_ok();
        met.send(is_met).expect("the test listens");
    });
    let second = collection_folder(Path::new("/s"), "second");
    fs.before(second.join(MANIFEST), move || {
        // The first may have given up.
        let _ = begins.send(());
    });
    let store = Store::open_on(Arc::new(fs), Path::new("/s"), StoreOptions::default());
    assert_eq!(have_met.recv(), Ok(true));
    let collections = store.expect("it opens").collections();
    assert!(collections.iter().all(|(_, opened)| opened.is_ok()));
}

/// The remedy was to split the batch, of one document.
#[test]
fn a_document_over_the_limit_was_called_a_batch() {
    let (_fs, _store, pages) = medium(StoreTuning::default());
    for mebibytes in [33, 65] {
        let document = StoredDocument {
            metadata: vec![b'x'; mebibytes << 20],
            ..StoredDocument::new("large", Fingerprint(1))
        };
        let refused = pages.write(vec![WriteOp::Insert(document)], NOW);
        let error = refused.expect_err("too large");
        assert!(
            matches!(error, StoreError::DocumentTooLarge { .. }),
            "{error}"
        );
    }
}
