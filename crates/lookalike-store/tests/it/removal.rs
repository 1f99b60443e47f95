//! Removing and closing collections while they are busy.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lookalike::{Fingerprint, Scheme};
use lookalike_store::fs::{FileHandle, FileLock, FileSystem, LockError, RealFs};
use lookalike_store::{
    CollectionSettings, Store, StoreOptions, StoreTuning, StoredDocument, UnixMillis, WriteOp,
};

const NOW: UnixMillis = UnixMillis(1000);

/// Maximum number of bytes that are written at once.
const PIECE: usize = 1 << 18;

/// The real file system, made slow for writes to runs.
#[derive(Debug, Default)]
struct SlowRuns {
    real: RealFs,
    /// Delay of each write in milliseconds.
    delay: Arc<AtomicU64>,
}

#[derive(Debug)]
struct SlowFile(Box<dyn FileHandle>, Arc<AtomicU64>);

impl FileHandle for SlowFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        std::thread::sleep(Duration::from_millis(self.1.load(Ordering::Relaxed)));
        // Write in pieces, so that a run takes many writes.
        self.0.write_at(&bytes[..bytes.len().min(PIECE)], offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }
}

impl FileSystem for SlowRuns {
    fn create(&self, path: &Path) -> io::Result<Box<dyn FileHandle>> {
        let file = self.real.create(path)?;
        let is_run = path.extension().is_some_and(|kind| kind == "run");
        let slow = |file| Box::new(SlowFile(file, Arc::clone(&self.delay))) as Box<dyn FileHandle>;
        Ok(if is_run { slow(file) } else { file })
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn FileHandle>> {
        self.real.open(path, write)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.real.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.real.remove(path)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.real.link(from, to)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.real.create_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.real.remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.real.sync_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.real.list(path)
    }

    fn lock(&self, path: &Path, holder: &str) -> Result<Box<dyn FileLock>, LockError> {
        self.real.lock(path, holder)
    }

    fn lock_to_read(&self, path: &Path) -> Result<Box<dyn FileLock>, LockError> {
        self.real.lock_to_read(path)
    }
}

fn settings() -> CollectionSettings {
    CollectionSettings::new(&Scheme::default())
}

fn options() -> StoreOptions {
    StoreOptions::default()
        .create(true)
        .tuning(StoreTuning::default().memory_documents(10_000))
}

/// Minimum time that the merge of a busy collection would take.
const MERGE: Duration = Duration::from_secs(8);

/// Creates a store with a collection `big` that is merging for a long time, and a collection `small`.
fn merging(folder: &Path) -> Store {
    let fs = SlowRuns::default();
    let delay = Arc::clone(&fs.delay);
    let store = Store::open_on(Arc::new(fs), folder, options()).expect("it opens");
    let small = store
        .create_collection("small", &settings())
        .expect("a collection");
    small
        .write(
            vec![WriteOp::Insert(StoredDocument::new("a", Fingerprint(1)))],
            NOW,
        )
        .expect("a write");
    let big = store
        .create_collection("big", &settings())
        .expect("a collection");
    for batch in 0..40_u64 {
        let documents = (0..1000).map(|at| {
            let code = (batch * 1000 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            WriteOp::Insert(StoredDocument {
                metadata: vec![7; 1000],
                ..StoredDocument::new(format!("{batch}/{at}"), Fingerprint(code))
            })
        });
        big.write(documents.collect(), NOW).expect("a write");
    }
    big.flush().expect("runs");
    // About 160 pieces.
    delay.store(60, Ordering::Relaxed);
    big.compact_later().expect("it begins");
    std::thread::sleep(Duration::from_millis(300));
    assert!(big.is_compacting());
    store
}

#[test]
fn removing_a_collection_that_merges_waits_for_no_merge_and_holds_nobody_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = merging(folder.path());
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let removing = scope.spawn(|| store.drop_collection("big").expect("it is removed"));
        let mut slowest = Duration::ZERO;
        while !removing.is_finished() {
            let asked = Instant::now();
            store.collection("small").expect("it is there");
            slowest = slowest.max(asked.elapsed());
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    });
    assert!(begun.elapsed() < MERGE / 2, "{:?}", begun.elapsed());
    assert!(!folder.path().join("collections/big").exists());
    store
        .create_collection("big", &settings())
        .expect("a new one");
}

#[test]
fn closing_waits_for_no_merge_and_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = merging(folder.path());
    let begun = Instant::now();
    store.close().expect("an end");
    assert!(begun.elapsed() < MERGE / 2, "{:?}", begun.elapsed());
    let store = Store::open(folder.path(), options()).expect("it opens");
    let big = store.collection("big").expect("it is there");
    assert!(big.recovery().clean);
    assert_eq!(big.stats().documents, 40_000);
}
