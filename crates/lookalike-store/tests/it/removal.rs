//! Removing and closing collections while they are busy, and when the power fails in the middle.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lookalike::{Fingerprint, Scheme};
use lookalike_store::fs::{File, Fs, Lock, LockError, RealFs, SimulatedFs};
use lookalike_store::{
    CollectionSettings, Document, OpenOptions, Store, StoreError, Time, Tuning, Write,
};

const NOW: Time = Time(1000);

/// Bytes that are written at once.
const PIECE: usize = 1 << 18;

/// The real file system, where each write to a run takes a while.
#[derive(Debug, Default)]
struct SlowRuns {
    real: RealFs,
    /// Milliseconds for each write.
    delay: Arc<AtomicU64>,
}

#[derive(Debug)]
struct SlowFile(Box<dyn File>, Arc<AtomicU64>);

impl File for SlowFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        std::thread::sleep(Duration::from_millis(self.1.load(Ordering::Relaxed)));
        // In pieces: a run takes many of them.
        self.0.write_at(&bytes[..bytes.len().min(PIECE)], offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }
}

impl Fs for SlowRuns {
    fn create(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let file = self.real.create(path)?;
        let is_run = path.extension().is_some_and(|kind| kind == "run");
        let slow = |file| Box::new(SlowFile(file, Arc::clone(&self.delay))) as Box<dyn File>;
        Ok(if is_run { slow(file) } else { file })
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn File>> {
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

    fn lock(&self, path: &Path, holder: &str) -> Result<Box<dyn Lock>, LockError> {
        self.real.lock(path, holder)
    }

    fn lock_to_read(&self, path: &Path) -> Result<Box<dyn Lock>, LockError> {
        self.real.lock_to_read(path)
    }
}

fn settings() -> CollectionSettings {
    CollectionSettings::new(&Scheme::default())
}

fn options() -> OpenOptions {
    OpenOptions {
        create: true,
        tuning: Tuning {
            memory_documents: 10_000,
            ..Tuning::default()
        },
        ..OpenOptions::default()
    }
}

/// How long the merge of a busy collection would take, at least.
const MERGE: Duration = Duration::from_secs(8);

/// A store whose collection `big` merges for a long time from now on, beside `small`.
fn merging(folder: &Path) -> Store {
    let fs = SlowRuns::default();
    let delay = Arc::clone(&fs.delay);
    let store = Store::open_on(Arc::new(fs), folder, options()).expect("it opens");
    let small = store
        .create_collection("small", &settings())
        .expect("a collection");
    small
        .write(
            vec![Write::Insert(Document::new("a", Fingerprint(1)))],
            NOW,
            0,
        )
        .expect("a write");
    let big = store
        .create_collection("big", &settings())
        .expect("a collection");
    for batch in 0..40_u64 {
        let documents = (0..1000).map(|at| {
            let code = (batch * 1000 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            Write::Insert(Document {
                metadata: vec![7; 1000],
                ..Document::new(format!("{batch}/{at}"), Fingerprint(code))
            })
        });
        big.write(documents.collect(), NOW, 0).expect("a write");
    }
    big.flush().expect("runs");
    // Some 160 pieces.
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
            let document = Document::new("a", Fingerprint(1));
            collection
                .write(vec![Write::Insert(document)], NOW, 0)
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
