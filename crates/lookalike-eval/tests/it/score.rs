//! Scored pairs of every kind of sketch against comparing each with each.

use lookalike::{Scheme, Sketch};
use lookalike_eval::{ScoredPair, scored_pairs, sweep::sketches_of};

use crate::families;

#[test]
fn every_kind_finds_what_comparing_each_with_each_finds() {
    let collection = families(6, 4);
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
        let scheme = Scheme {
            shingle: "words:2".parse().unwrap(),
            sketch: sketch.parse::<Sketch>().unwrap(),
            ..Scheme::default()
        };
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
