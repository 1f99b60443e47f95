//! Scored pairs of every kind of sketch, compared with comparing all pairs.

use lookalike::{Scheme, Sketch};
use lookalike_eval::{
    DocumentSet, DocumentSetError, ScoredPair, SketchedDocument, SketchedSet, scored_pairs,
    sweep::sketches_of,
};

use crate::families;

#[test]
fn every_kind_finds_what_comparing_each_with_each_finds() {
    // Each document occurs twice, since equal sketches are pairs too.
    let once = families(6, 4);
    let twice = once.documents().iter().flat_map(|one| {
        let copy = |name: &str| (format!("{}-{name}", one.id), one.text.clone());
        [copy("a"), copy("b")]
    });
    let collection = DocumentSet::new(twice).unwrap();
    for (sketch, least) in [
        ("none", 0.3),
        ("none", 0.5),
        ("simhash:32", 22.0),
        ("simhash:64", 44.0),
        ("simhash:128", 88.0),
        ("minhash:64", 0.4),
        ("oph:64", 0.4),
        ("b-bit:64x2", 0.5),
        ("super-shingle:6x3", 1.0),
        ("mod-p:3", 0.2),
        ("winnow:4", 0.3),
        ("buckets:8", 1.0),
        ("i-match:4", 1.0),
    ] {
        let scheme = Scheme::default()
            .shingle("words:2".parse().unwrap())
            .sketch(sketch.parse::<Sketch>().unwrap());
        let sketches = sketches_of(&collection, &scheme);
        let mut expected = Vec::new();
        for a in 0..collection.len() as u32 {
            for b in a + 1..collection.len() as u32 {
                let sides = (&sketches[a as usize], &sketches[b as usize]);
                let (Some(x), Some(y)) = sides else { continue };
                let score = x.score(y);
                if score >= least {
                    expected.push(ScoredPair { a, b, score });
                }
            }
        }
        assert!(
            !expected.is_empty() || sketch == "i-match:4",
            "{sketch} finds nothing"
        );
        assert_eq!(scored_pairs(&sketches, least), expected, "{sketch} {least}");
    }
}

#[test]
fn of_equal_texts_the_one_of_the_least_id_stays() {
    let row = |id: &str, text| SketchedDocument {
        id: id.to_owned(),
        text,
        sketch: None,
    };
    let rows = vec![
        row("d", Some(1)),
        row("a", Some(2)),
        row("c", Some(1)),
        row("b", Some(2)),
        row("e", None),
        row("f", None),
    ];
    let set = SketchedSet::of(rows).unwrap();
    assert_eq!(
        (set.ids().join(" "), set.copies()),
        ("a c e f".to_owned(), 2)
    );
    let same = vec![row("a", Some(1)), row("b", Some(1))];
    assert_eq!(
        SketchedSet::of(same),
        Err(DocumentSetError::TooFew { found: 1 })
    );
    let repeated = vec![row("a", Some(1)), row("a", Some(2))];
    assert!(matches!(
        SketchedSet::of(repeated),
        Err(DocumentSetError::RepeatedId { .. })
    ));
}
