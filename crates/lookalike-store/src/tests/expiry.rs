//! Expiry of documents when only time passes.

use lookalike::{Fingerprint, Scheme};

use super::model_runs::{FOLDER, commit, open};
use super::random_writes::RandomWrites;
use crate::document::StoredDocument;
use crate::engine::CollectionEngine;
use crate::fs::SimulatedFs;
use crate::operations::WriteOp;
use crate::settings::{CollectionSettings, StoreTuning};
use crate::time::UnixMillis;

const END: UnixMillis = UnixMillis(5000);

fn engine(fs: &SimulatedFs) -> CollectionEngine {
    let tuning = StoreTuning::default().log_step(4096);
    let mut random_writes = RandomWrites::new(1, 1);
    random_writes.settings = CollectionSettings::new(&Scheme::default());
    super::model_runs::create(fs, &random_writes, &tuning).expect("a collection");
    open(fs, tuning).expect("it opens")
}

/// Inserts documents with the given expiry.
fn insert(engine: &CollectionEngine, numbers: std::ops::Range<u64>, expires: Option<UnixMillis>) {
    let document = |number| StoredDocument {
        expires,
        ..StoredDocument::new(format!("{number}"), Fingerprint(number))
    };
    let writes = numbers.map(|number| WriteOp::Insert(document(number)));
    for result in commit(engine, vec![writes.collect()], UnixMillis(1000)) {
        result.expect("a write");
    }
}

/// Frees the memory of expired documents. Returns false if there was too little to free.
fn frees_memory(engine: &CollectionEngine) -> bool {
    engine.end_expired_memory().expect("an end");
    engine.flush().expect("a flush")
}

fn bytes(fs: &SimulatedFs) -> usize {
    let files = fs.files();
    let own = files.iter().filter(|(path, _)| path.starts_with(FOLDER));
    own.map(|(_, bytes)| bytes.len()).sum()
}

#[test]
fn expired_documents_kept_their_memory_and_log_until_others_were_written() {
    let fs = SimulatedFs::new();
    let engine = engine(&fs);
    insert(&engine, 0..3000, Some(END));
    let before = bytes(&fs);
    assert_eq!(
        (engine.stats().documents, engine.stats().stored),
        (3000, 3000)
    );
    assert!(!frees_memory(&engine));
    engine.now(END);
    assert_eq!((engine.stats().documents, engine.stats().stored), (0, 3000));
    assert!(frees_memory(&engine));
    let after = engine.stats();
    assert_eq!((after.stored, after.runs.len(), after.logs), (0, 0, 1));
    assert!(bytes(&fs) * 4 < before, "{} of {before}", bytes(&fs));
    assert!(!frees_memory(&engine));
}

#[test]
fn memory_of_which_most_documents_live_is_left_alone() {
    let fs = SimulatedFs::new();
    let engine = engine(&fs);
    insert(&engine, 0..3000, None);
    insert(&engine, 3000..5000, Some(END));
    engine.now(END);
    assert_eq!(
        (engine.stats().documents, engine.stats().stored),
        (3000, 5000)
    );
    assert!(!frees_memory(&engine));
    insert(&engine, 5000..7000, Some(UnixMillis(6000)));
    engine.now(UnixMillis(6000));
    assert!(frees_memory(&engine));
    assert_eq!(
        (engine.stats().documents, engine.stats().stored),
        (3000, 3000)
    );
}

/// A change of expiry was counted as the bytes of its id, although its whole document goes to the log, so all were refused as one batch
/// that is too large.
#[test]
fn new_expiries_of_large_documents_that_come_together_are_written() {
    const LARGE: u64 = 9;
    let fs = SimulatedFs::new();
    let engine = engine(&fs);
    for number in 0..LARGE {
        let document = StoredDocument {
            metadata: vec![b'x'; 30 << 20],
            ..StoredDocument::new(format!("{number}"), Fingerprint(number))
        };
        let [result] = &commit(
            &engine,
            vec![vec![WriteOp::Insert(document)]],
            UnixMillis(1000),
        )[..] else {
            panic!("one result");
        };
        result.as_ref().expect("a write");
    }
    let expire = |number: u64| {
        vec![WriteOp::Expire {
            id: number.to_string(),
            expires: Some(END),
        }]
    };
    // A single request cannot be divided.
    let alone = (0..LARGE).flat_map(expire).collect();
    for result in commit(&engine, vec![alone], UnixMillis(1500)) {
        let error = result.expect_err("too large for a frame");
        assert!(error.to_string().ends_with("split it"), "{error}");
    }
    let together = (0..LARGE).map(expire).collect();
    let results = commit(&engine, together, UnixMillis(2000));
    assert_eq!(results.len() as u64, LARGE);
    for result in results {
        result.expect("a change");
    }
    engine.now(END);
    assert_eq!(engine.stats().documents, 0);
}
