//! Collections of super-shingles, minima, and fingerprints of 32 and 128 bits.

use lookalike::sketch::WideFingerprint;
use lookalike::{Fingerprint, Scheme, Sketch};
use lookalike_store::{
    CollectionSettings, DocumentSketch, InsertWhen, SketchForm, Store, StoreError, StoreOptions,
    StoredDocument, UnixMillis, Verdict, WriteOp, WriteOutcome, verify,
};

const NOW: UnixMillis = UnixMillis(1000);

fn settings(sketch: Sketch, radius: u32) -> CollectionSettings {
    CollectionSettings::new(&Scheme::default().sketch(sketch)).radius(radius)
}

const SHINGLES: Sketch = Sketch::SuperShingle {
    groups: 6,
    rows: 14,
};

fn document(id: &str, places: [u64; 6]) -> StoredDocument {
    let sketch = DocumentSketch::SuperShingles(places.to_vec());
    StoredDocument {
        id: id.to_owned(),
        ..StoredDocument::of_content(sketch.into())
    }
}

#[test]
fn documents_with_two_of_six_super_shingles_in_common_are_near_in_memory_in_runs_and_after_a_restart()
 {
    let folder = tempfile::tempdir().expect("a folder");
    let options = StoreOptions::default().create(true);
    let store = Store::open(folder.path(), options).expect("it opens");
    let made = settings(SHINGLES, 4);
    let pages = store
        .create_collection("pages", &made)
        .expect("a collection");
    let inserted = [
        document("a", [1, 2, 3, 4, 5, 6]),
        document("b", [1, 2, 0, 0, 0, 0]),
        document("c", [6, 5, 4, 3, 2, 1]),
    ];
    let writes = inserted.map(|document| WriteOp::CheckAndInsert {
        document,
        scope: 4.into(),
        insert: InsertWhen::New,
        limit: 10,
    });
    let outcomes = pages.write(writes.to_vec(), NOW).expect("a write");
    let verdicts: Vec<(Verdict, bool)> = outcomes
        .into_iter()
        .map(|outcome| match outcome {
            WriteOutcome::Checked {
                answer, inserted, ..
            } => (answer.verdict, inserted),
            other => panic!("{other:?}"),
        })
        .collect();
    // Equal values only count if they are in the same place.
    let near = Verdict::Near { distance: 4 };
    assert_eq!(
        verdicts,
        [(Verdict::New, true), (near, false), (Verdict::New, true)]
    );
    let look = |pages: &lookalike_store::Collection| {
        let query = DocumentSketch::SuperShingles(vec![6, 5, 3, 4, 5, 0]);
        let found = pages.query(query, 4, NOW, 10).expect("a query");
        let found = found.neighbours.into_iter();
        found
            .map(|near| (near.id, near.distance))
            .collect::<Vec<_>>()
    };
    let expected = [("a".to_owned(), 3), ("c".to_owned(), 4)];
    assert_eq!(look(&pages), expected);
    pages.flush().expect("a run");
    assert_eq!(look(&pages), expected);
    drop(pages);
    store.close().expect("an end");
    verify(folder.path()).expect("whole");
    let store = Store::open(folder.path(), StoreOptions::default()).expect("it opens");
    let pages = store.collection("pages").expect("it is there");
    assert_eq!(
        (look(&pages), &*pages.settings()),
        (expected.to_vec(), &made)
    );
}

#[test]
fn sketches_of_another_form_and_radiuses_without_a_common_place_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = StoreOptions::default().create(true);
    let store = Store::open(folder.path(), options).expect("it opens");
    for (sketch, radius, words) in [
        (SHINGLES, 6, "0 to 5"),
        (Sketch::Simhash128, 16, "0 to 15"),
        (Sketch::Simhash32, 4, "0 to 3"),
        (Sketch::MinHash { functions: 200 }, 129, "0 to 128"),
        (Sketch::MinHash { functions: 257 }, 3, "257 places"),
    ] {
        let refused = store.create_collection("pages", &settings(sketch, radius));
        let told = refused.expect_err("no such collection").to_string();
        assert!(told.contains(words), "{told}");
    }
    let pages = store
        .create_collection("pages", &settings(SHINGLES, 5))
        .expect("a collection");
    assert_eq!(pages.settings().sketch_form(), SketchForm::SuperShingles(6));
    for sketch in [
        DocumentSketch::from(Fingerprint(1)),
        DocumentSketch::Minima(vec![1; 6]),
        DocumentSketch::Bits(WideFingerprint(1), 128),
        DocumentSketch::SuperShingles(vec![1; 5]),
    ] {
        let refused = pages.check(sketch, 0, NOW);
        assert!(
            matches!(refused, Err(StoreError::OtherForm { document: None, .. })),
            "{refused:?}"
        );
    }
}

#[test]
fn documents_were_stored_that_no_search_could_find() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = StoreOptions::default().create(true);
    let store = Store::open(folder.path(), options).expect("it opens");
    let bits = |code| DocumentSketch::Bits(WideFingerprint(code), 128);
    let cases = [
        (Sketch::Simhash, DocumentSketch::Minima(vec![1, 2])),
        (Sketch::Simhash, bits(7)),
        (SHINGLES, Fingerprint(7).into()),
        (SHINGLES, DocumentSketch::SuperShingles(vec![1, 2])),
        (
            Sketch::MinHash { functions: 4 },
            DocumentSketch::Minima(vec![1; 5]),
        ),
        // The upper bits would be cut off.
        (Sketch::Simhash32, bits(1 << 100 | 1)),
    ];
    for (number, (sketch, other)) in cases.into_iter().enumerate() {
        let pages = store
            .create_collection(&format!("pages-{number}"), &settings(sketch, 1))
            .expect("a collection");
        let document = StoredDocument {
            id: "a".to_owned(),
            ..StoredDocument::of_content(other.clone().into())
        };
        let refused = pages.write(vec![WriteOp::Insert(document)], NOW);
        let wanted = pages.settings().sketch_form();
        assert!(
            matches!(&refused, Err(StoreError::OtherForm { document: Some(id), wanted: told, .. })
                if id == "a" && *told == wanted),
            "{sketch}, {other:?}: {refused:?}"
        );
        // A text without features has no sketch, but can still be known by its hash.
        let empty = StoredDocument {
            id: "b".to_owned(),
            text_hash: Some(lookalike_store::TextHash::from([1; 16])),
            ..StoredDocument::default()
        };
        let taken = pages.write(vec![WriteOp::Insert(empty)], NOW);
        taken.expect("it is found by its text");
    }
}

#[test]
fn a_collection_was_made_for_sketches_of_no_places() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = StoreOptions::default().create(true);
    let store = Store::open(folder.path(), options).expect("it opens");
    let sketch = Sketch::SuperShingle { groups: 3, rows: 0 };
    let refused = store.create_collection("pages", &settings(sketch, 1));
    assert!(
        matches!(refused, Err(StoreError::BadSketch(_))),
        "{refused:?}"
    );
}
