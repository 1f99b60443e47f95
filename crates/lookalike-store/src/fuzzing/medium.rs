//! A small store on a simulated medium, with files of every kind, whose collection holds sketches of any form.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lookalike::sketch::WideFingerprint;
use lookalike::{Fingerprint, Scheme, Sketch};

use crate::document::{ContentKey, StoredDocument, StoredParagraph, TextHash};
use crate::document_sketch::{DocumentSketch, SketchForm};
use crate::engine::{CollectionEngine, CollectionSecrets, WriteRequest};
use crate::fs::{FileSystem, SimulatedFs, write_all};
use crate::maintenance::list_snapshot;
use crate::operations::WriteOp;
use crate::scheme_part::SchemePart;
use crate::settings::{CollectionSettings, StoreTuning};
use crate::store::{StoreCatalog, collection_folder};
use crate::time::UnixMillis;

pub(super) const STORE: &str = "/store";
pub(super) const SNAPSHOT: &str = "/snapshot";
/// Folder whose contents must never change.
pub(super) const ELSEWHERE: &str = "/elsewhere";
pub(super) const IDENTITY: u64 = 42;
const NAME: &str = "pages";

/// Time used for everything.
pub(super) const NOW: UnixMillis = UnixMillis(1_800_000_000_000);

pub(super) const TUNING: StoreTuning = StoreTuning {
    memory_bytes: 1 << 20,
    memory_documents: 400,
    log_step: 512,
    fan_out: 4,
    // The tables of the first run are built when it is opened; the second run stores them.
    small_run: 16,
    scratch_bytes: 1 << 16,
};

/// Returns the folder of the collection.
pub(super) fn folder() -> PathBuf {
    collection_folder(Path::new(STORE), NAME)
}

/// Sketches of the collections, each of another form.
pub(super) const SKETCHES: [Sketch; 5] = [
    Sketch::Simhash,
    Sketch::Simhash32,
    Sketch::Simhash128,
    Sketch::SuperShingle { groups: 3, rows: 2 },
    Sketch::MinHash { functions: 5 },
];

fn settings(sketch: Sketch) -> CollectionSettings {
    let mut settings = CollectionSettings::new(&Scheme::default().sketch(sketch));
    if settings.sketch_form().places().is_some() {
        settings.radius = 1;
    }
    settings.keep.paragraphs = true;
    settings.keep.signatures = true;
    settings.keep.texts = true;
    settings
}

/// Returns a wide fingerprint whose low half is the 64-bit fingerprint.
fn wide(number: u64) -> WideFingerprint {
    let low = (number / 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (number % 2);
    WideFingerprint(u128::from(low) << 64 | u128::from(low))
}

/// Returns a sketch of a form, which is near that of the next number.
pub(super) fn sketch(number: u64, form: SketchForm) -> DocumentSketch {
    let place = |at: usize| {
        if at == 0 {
            number
        } else {
            number / 2 + at as u64
        }
    };
    match form {
        SketchForm::Fingerprint => DocumentSketch::Fingerprint(Fingerprint(wide(number).0 as u64)),
        SketchForm::Bits(bits) => DocumentSketch::low_bits(wide(number), bits),
        SketchForm::SuperShingles(places) => {
            DocumentSketch::SuperShingles((0..places).map(place).collect())
        }
        SketchForm::Minima(places) => {
            DocumentSketch::Minima((0..places).map(|at| place(at) as u32).collect())
        }
    }
}

fn document(number: u64, form: SketchForm) -> StoredDocument {
    let code = wide(number).0 as u64;
    let sketch = (!number.is_multiple_of(7)).then(|| sketch(number, form));
    let has_sketch = sketch.is_some();
    let found_by = StoredDocument::of_content(ContentKey {
        sketch,
        ..ContentKey::default()
    });
    let has_parts = number.is_multiple_of(5);
    StoredDocument {
        id: number.to_string(),
        expires: number
            .is_multiple_of(3)
            .then_some(UnixMillis(NOW.0 + 1 + number)),
        text_hash: (!number.is_multiple_of(4)).then_some(TextHash([number as u8 / 2; 16])),
        // Collections of minima find documents by them; elsewhere they are kept besides the sketch.
        signature: match form {
            SketchForm::Minima(_) => found_by.signature.clone(),
            _ => (has_parts && has_sketch).then(|| vec![number as u32; 2]),
        },
        paragraphs: if has_parts {
            let fingerprint = Some(Fingerprint(code ^ 2));
            let hash = number;
            vec![
                StoredParagraph::from(1),
                StoredParagraph { hash, fingerprint },
            ]
        } else {
            Vec::new()
        },
        metadata: if has_parts {
            b"{}".to_vec()
        } else {
            Vec::new()
        },
        text: has_parts.then(|| "a text".to_owned()),
        ..found_by
    }
}

/// Performs a batch of writes. Returns whether they succeeded.
pub(super) fn commit(engine: &CollectionEngine, writes: Vec<WriteOp>) -> bool {
    let (sender, receiver) = std::sync::mpsc::channel();
    let done = Box::new(move |result: crate::error::Result<_>| {
        let _ = sender.send(result.is_ok());
    });
    engine.commit(vec![WriteRequest {
        writes,
        time: NOW.into(),
        done,
    }]);
    receiver.recv().unwrap_or_default()
}

fn insert(engine: &CollectionEngine, numbers: std::ops::Range<u64>) {
    let form = engine.settings().sketch_form();
    let writes = numbers.map(|number| WriteOp::Insert(document(number, form)));
    assert!(commit(engine, writes.collect()), "a simulated medium");
}

/// Flushes the documents in memory to runs.
fn flush(engine: &CollectionEngine) {
    engine.rotate_log().expect("a new log");
    while engine.flush().expect("a run") {}
}

/// Creates a store as a killed process leaves it, a snapshot of it, and a file that belongs to neither.
pub(super) fn medium(sketch: Sketch) -> SimulatedFs {
    let fs = SimulatedFs::new();
    let parent = Path::new(STORE).join("collections");
    for folder in [Path::new(STORE), Path::new(ELSEWHERE), &parent, &folder()] {
        fs.create_dir(folder).expect("a simulated medium");
    }
    let file = fs.create(&Path::new(ELSEWHERE).join("file"));
    write_all(&*file.expect("a file"), b"precious", 0).expect("a file");
    CollectionEngine::create(
        &fs,
        &folder(),
        &settings(sketch),
        &[SchemePart::new("terms", b"a table of terms".to_vec())],
        CollectionSecrets {
            identity: IDENTITY,
            key: 4711,
        },
        &TUNING,
    )
    .expect("a collection");
    let catalog = catalog();
    catalog.write(&fs, Path::new(STORE)).expect("a catalogue");
    let engine = open(&fs).expect("a collection");
    insert(&engine, 0..12);
    flush(&engine);
    // Some documents of both runs are deleted or replaced, by the next run or the newest log.
    insert(&engine, 10..30);
    flush(&engine);
    insert(&engine, 28..33);
    assert!(commit(&engine, vec![WriteOp::Delete("1".to_owned())]));
    snapshot(&fs, &engine, &catalog);
    fs
}

fn catalog() -> StoreCatalog {
    let mut catalog = StoreCatalog::new("00000000000000aa".parse().expect("an identity"));
    catalog.collections.insert(NAME.to_owned(), IDENTITY);
    catalog
}

fn snapshot(fs: &SimulatedFs, engine: &CollectionEngine, catalog: &StoreCatalog) {
    let target = Path::new(SNAPSHOT);
    let folder = collection_folder(target, NAME);
    for folder in [target, &target.join("collections"), &folder] {
        fs.create_dir(folder).expect("a simulated medium");
    }
    engine.snapshot(&folder).expect("a snapshot");
    list_snapshot(fs, target, catalog).expect("a snapshot");
}

/// Opens the collection.
pub(super) fn open(fs: &SimulatedFs) -> crate::error::Result<CollectionEngine> {
    let fs: Arc<dyn FileSystem> = Arc::new(fs.clone());
    CollectionEngine::open(fs, &folder(), IDENTITY, TUNING).map(|(engine, _)| engine)
}
