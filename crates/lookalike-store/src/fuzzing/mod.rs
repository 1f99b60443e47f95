//! Fuzz targets for the readers of a store, which replace one of its files by arbitrary bytes.
//!
//! The first byte of an input selects the form of the collection's sketches.
//!
//! [`run`] writes the remaining bytes to one file of a small store and checks what must hold for any bytes: no panic occurs, nothing
//! outside the store changes, and data that is reported as intact can be read, searched, written to and closed. All checksums are zero
//! meanwhile, so that none stops an input: each is treated as if somebody had recomputed them.

mod medium;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lookalike::{Fingerprint, Sketch};

use crate::checksum::disable_checks;
use crate::clean_shutdown::CLEAN_SHUTDOWN;
use crate::document::{ContentKey, StoredDocument, StoredParagraph};
use crate::engine::{CollectionEngine, salvage, verify};
use crate::file_names::MANIFEST;
use crate::fs::SimulatedFs;
use crate::maintenance;
use crate::operations::{InsertWhen, WriteOp};
use crate::store::{CATALOG, Store, StoreOptions};
use medium::{
    ELSEWHERE, IDENTITY, NOW, SKETCHES, SNAPSHOT, STORE, TUNING, commit, folder, medium, open,
    sketch,
};

/// All targets.
pub const TARGETS: &[&str] = &[
    "store-log",
    "store-run",
    "store-run-tables",
    "store-tombstones",
    "store-manifest",
    "store-clean",
    "store-catalogue",
    "store-snapshot",
];

/// Turns checksums off on this thread until it is dropped.
struct DisabledChecksums;

impl DisabledChecksums {
    fn new() -> Self {
        disable_checks(true);
        Self
    }
}

impl Drop for DisabledChecksums {
    fn drop(&mut self) {
        disable_checks(false);
    }
}

thread_local! {
    /// Media by whether the store was closed, and by the sketch of its collection.
    static MEDIA: RefCell<HashMap<(bool, Sketch), SimulatedFs>> = RefCell::default();
}

/// Returns the sketch of the collection for an input, chosen by its first byte.
fn sketch_of(bytes: &[u8]) -> Sketch {
    let first = bytes.first().copied().unwrap_or(0);
    SKETCHES[usize::from(first) % SKETCHES.len()]
}

/// Returns the medium that a target damages.
fn undamaged(target: &str, sketch: Sketch) -> SimulatedFs {
    let is_closed = target == "store-clean";
    let made = || {
        let fs = medium(sketch);
        if is_closed {
            open(&fs).and_then(|engine| engine.close()).expect("an end");
        }
        fs
    };
    MEDIA.with_borrow_mut(|media| media.entry((is_closed, sketch)).or_insert_with(made).copy())
}

/// Returns the file that a target damages.
fn path(target: &str, fs: &SimulatedFs) -> PathBuf {
    let numbered = |kind: &str| -> Vec<PathBuf> {
        let files = fs.files().into_keys();
        let ours = files.filter(|path| path.starts_with(folder()));
        ours.filter(|path| path.extension().is_some_and(|found| found == kind))
            .collect()
    };
    let named = match target {
        "store-log" => numbered("log").pop(),
        "store-run" => numbered("run").first().cloned(),
        "store-run-tables" => numbered("run").get(1).cloned(),
        "store-tombstones" => numbered("tombstones").pop(),
        "store-manifest" => Some(folder().join(MANIFEST)),
        "store-clean" => Some(folder().join(CLEAN_SHUTDOWN)),
        "store-catalogue" => Some(Path::new(STORE).join(CATALOG)),
        _ => Some(Path::new(SNAPSHOT).join("SNAPSHOT")),
    };
    named.expect("a file of every kind")
}

/// Returns the initial inputs of a target.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    let _without = DisabledChecksums::new();
    let seed = |(first, &sketch): (u8, &Sketch)| {
        let fs = undamaged(target, sketch);
        let mut bytes = fs.files().remove(&path(target, &fs)).expect("a file");
        // The zeros at the end of a log mean nothing.
        let end = bytes.iter().rposition(|&byte| byte != 0).unwrap_or(0) + 1;
        bytes.truncate(end.next_multiple_of(512).min(bytes.len()));
        [&[first], bytes.as_slice()].concat()
    };
    (0..).zip(&SKETCHES).map(seed).collect()
}

/// Runs a target on some bytes.
///
/// # Panics
/// Panics if a promise is broken, to report it to the fuzzer.
pub fn run(target: &str, bytes: &[u8]) {
    let _without = DisabledChecksums::new();
    let fs = undamaged(target, sketch_of(bytes));
    let damage = bytes.get(1..).unwrap_or(&[]);
    fs.damage(&path(target, &fs), Some(damage.to_vec()));
    match target {
        "store-catalogue" => catalogue(&fs),
        "store-snapshot" => snapshot(&fs),
        _ => collection(&fs),
    }
}

fn collection(fs: &SimulatedFs) {
    let whole = verify(fs, &folder(), IDENTITY).is_ok();
    let _ = salvage(fs, &folder(), &mut |_, _| Ok(()));
    let opened = open(fs);
    assert!(!whole || opened.is_ok(), "what is whole opens");
    let Ok(engine) = opened else {
        return;
    };
    let documents = read(&engine, whole);
    let changed = change(&engine, documents.first());
    drop(engine);
    assert!(!whole || changed, "what is whole can be written");
    if whole {
        verify(fs, &folder(), IDENTITY).expect("what is whole stays whole");
    }
}

/// Calls everything that reads, and returns the live documents.
fn read(engine: &CollectionEngine, whole: bool) -> Vec<StoredDocument> {
    let mut documents = Vec::new();
    let read = engine.for_each::<crate::StoreError>(NOW, &mut |document| {
        documents.push(document);
        Ok(())
    });
    assert!(!whole || read.is_ok());
    for document in documents.iter().step_by(7) {
        let found = engine.get(&document.id, NOW);
        assert!(!whole || found.is_ok_and(|found| found.as_deref() == Some(document)));
    }
    let codes = [1, 2, 0x9e37_79b9_7f4a_7c15].map(Fingerprint);
    let radius = engine.settings().radius;
    let form = engine.settings().sketch_form();
    let contents = [2, 3, 60].map(|number| ContentKey::from(sketch(number, form)));
    let checked = engine.check_many(&contents, radius.into(), NOW);
    assert!(!whole || checked.is_ok());
    let texts = documents.iter().step_by(5);
    let texts = texts.map(|document| document.content(form));
    for content in contents.into_iter().chain(texts) {
        let found = engine.query(&content, radius.into(), NOW, 3.into());
        assert!(!whole || found.is_ok());
    }
    let short = [StoredParagraph::from(1), StoredParagraph::from(5)];
    let long = codes.map(|code| StoredParagraph {
        hash: 0,
        fingerprint: Some(code),
    });
    for paragraphs in [&short[..], &long] {
        let lookup = engine.paragraph_lookup(engine.settings().paragraph_radius(), NOW);
        let found = lookup.and_then(|mut lookup| {
            paragraphs
                .iter()
                .try_for_each(|&one| lookup.find(one, 3).map(drop))
        });
        assert!(!whole || found.is_ok());
    }
    let _ = engine.stats();
    documents
}

/// Writes, flushes, merges and closes. Returns whether all of it succeeded.
fn change(engine: &CollectionEngine, known: Option<&StoredDocument>) -> bool {
    let form = engine.settings().sketch_form();
    let document = StoredDocument {
        id: "new".to_owned(),
        ..StoredDocument::of_content(sketch(3, form).into())
    };
    let mut writes = vec![
        WriteOp::CheckAndInsert {
            document,
            scope: 0.into(),
            insert: InsertWhen::Always,
            limit: 2,
        },
        WriteOp::Delete("2".to_owned()),
    ];
    // A damaged document may have sketches of any form.
    let known = known.filter(|known| known.ensure_form(form).is_ok());
    writes.extend(known.map(|known| WriteOp::Insert(known.clone())));
    let written = commit(engine, writes);
    let made = || -> crate::error::Result<()> {
        engine.rotate_log()?;
        while engine.flush()? {}
        engine.compact()?;
        engine.close()
    };
    made().is_ok() && written
}

/// Returns the files outside a folder.
fn files_outside(fs: &SimulatedFs, folder: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = fs.files();
    files.retain(|path, _| !path.starts_with(folder));
    files
}

fn catalogue(fs: &SimulatedFs) {
    let before = files_outside(fs, STORE);
    if maintenance::verify_on(fs, Path::new(STORE)).is_err() {
        return;
    }
    let options = StoreOptions {
        tuning: TUNING,
        ..StoreOptions::default()
    };
    let store = Store::open_on(Arc::new(fs.clone()), Path::new(STORE), options);
    let _ = store.expect("a catalogue that was read").close();
    assert_eq!(
        files_outside(fs, STORE),
        before,
        "nothing outside of it changes"
    );
}

fn snapshot(fs: &SimulatedFs) {
    const TARGET: &str = "/restored";
    let before = files_outside(fs, TARGET);
    assert!(before.contains_key(&Path::new(ELSEWHERE).join("file")));
    let restored = maintenance::restore_on(fs, Path::new(SNAPSHOT), Path::new(TARGET));
    assert_eq!(
        files_outside(fs, TARGET),
        before,
        "nothing outside of it changes"
    );
    if restored.is_ok() {
        maintenance::verify_on(fs, Path::new(TARGET)).expect("a store");
    }
}
