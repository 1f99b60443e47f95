//! Chunkings: their names, and what they cut, against a slow definition by strings.

use std::collections::BTreeSet;

use lookalike::chunk::{ChunkBits, Chunker, Chunking};
use proptest::prelude::*;

/// The chunks of a text as strings, by the words of the documentation.
fn slow(chunking: &str, text: &str) -> BTreeSet<Vec<String>> {
    let own = |part: &str| part.to_owned();
    let trimmed: Vec<String> = text
        .split('\n')
        .map(|line| line.trim_matches([' ', '\t', '\r', '\x0c']).to_owned())
        .collect();
    let lines: Vec<String> = trimmed
        .iter()
        .filter(|line| !line.is_empty())
        .cloned()
        .collect();
    let words: Vec<String> = text
        .split([' ', '\t', '\n', '\r', '\x0c'])
        .filter(|word| !word.is_empty())
        .map(own)
        .collect();
    let mut pieces = chunking.split(':');
    let parts = match pieces.next().unwrap() {
        "doc" if text.is_empty() => return BTreeSet::new(),
        "doc" => return BTreeSet::from([vec![own(text)]]),
        "paragraphs" => {
            let split = trimmed.split(|line| line.is_empty());
            return split
                .filter(|p| !p.is_empty())
                .map(<[String]>::to_vec)
                .collect();
        }
        "lines" => lines,
        _ => words,
    };
    let length: usize = pieces.next().unwrap().parse().unwrap();
    match pieces.next() {
        Some(_) if parts.len() > length => parts.windows(length).map(<[String]>::to_vec).collect(),
        _ => parts.chunks(length).map(<[String]>::to_vec).collect(),
    }
}

/// Sets of this many chunks are sorted in another way.
#[test]
fn chunks_of_a_long_text_are_those_of_its_definition() {
    let text: String = (0..1_100_000)
        .map(|line| format!("{}\n", line % 1_060_000))
        .collect();
    for (name, count) in [
        ("lines:1", 1_060_000),
        ("lines:2:sliding", 1_060_000),
        ("lines:2", 530_000),
    ] {
        let chunking: Chunking = name.parse().unwrap();
        // The second time in buffers that are there already.
        let mut chunker = Chunker::new(&[chunking], ChunkBits::Long);
        for _ in 0..2 {
            chunker.chunk(&text);
            let set = chunker.set(0);
            assert_eq!(set.len(), count, "{name}");
            assert!(set.is_sorted());
        }
        let whole = chunker.set(0).to_vec();
        chunker.shrink();
        assert!(chunker.set(0).is_empty());
        chunker.chunk(&text);
        assert!(chunker.set(0) == whole, "{name}");
    }
}

const NAMES: [&str; 9] = [
    "doc",
    "lines:1",
    "lines:2",
    "lines:4:sliding",
    "paragraphs",
    "words:1",
    "words:3",
    "words:3:sliding",
    "words:8:sliding",
];

proptest! {
    /// Different chunks have different fingerprints and equal ones the same, in every text of two: the number of
    /// common and of all chunks is that of the strings.
    #[test]
    fn sets_are_those_of_the_strings(a in "[ab \n\t]{0,60}", b in "[ab \n\r]{0,60}") {
        let chunkings: Vec<Chunking> = NAMES.iter().map(|name| name.parse().unwrap()).collect();
        let mut chunker = Chunker::new(&chunkings, ChunkBits::Long);
        let mut sets = Vec::new();
        for text in [&a, &b] {
            chunker.chunk(text);
            sets.push((0..NAMES.len()).map(|i| chunker.set(i).to_vec()).collect::<Vec<_>>());
        }
        for (i, name) in NAMES.iter().enumerate() {
            let (x, y) = (slow(name, &a), slow(name, &b));
            prop_assert_eq!(sets[0][i].len(), x.len(), "{} of {:?}", name, a);
            prop_assert_eq!(sets[1][i].len(), y.len(), "{} of {:?}", name, b);
            let common = sets[0][i].iter().filter(|chunk| sets[1][i].contains(chunk)).count();
            prop_assert_eq!(common, x.intersection(&y).count(), "{}: {:?} {:?}", name, a, b);
        }
    }
}

#[test]
fn names_round_trip_and_wrong_ones_say_what_exists() {
    for name in NAMES.into_iter().chain(["sentences", "lines:1000"]) {
        assert_eq!(name.parse::<Chunking>().unwrap().to_string(), name);
    }
    assert_eq!("words".parse::<Chunking>().unwrap().to_string(), "words:1");
    assert_eq!(
        "lines:1:sliding".parse::<Chunking>().unwrap().to_string(),
        "lines:1"
    );
    for wrong in [
        "",
        "line:2",
        "lines:0",
        "lines:1001",
        "lines:2:slide",
        "doc:1",
        "words:-1",
        "words:",
    ] {
        let error = wrong.parse::<Chunking>().unwrap_err().to_string();
        assert!(error.contains("paragraphs"), "{error}");
    }
}

#[test]
fn sentences_are_cut_and_trimmed() {
    let mut chunker = Chunker::new(&[Chunking::Sentences], ChunkBits::Long);
    chunker.chunk("One sentence. Another one?  One sentence. \u{4f60}\u{597d}\u{3002}\u{518d}\u{89c1}\u{3002}");
    assert_eq!(chunker.set(0).len(), 4);
    chunker.chunk(" \n\t ");
    assert!(chunker.set(0).is_empty());
}

#[test]
fn short_fingerprints_are_the_upper_halves_and_their_collisions_are_expected() {
    let chunkings = ["words:1".parse().unwrap()];
    let (mut long, mut short) = (
        Chunker::new(&chunkings, ChunkBits::Long),
        Chunker::new(&chunkings, ChunkBits::Short),
    );
    long.chunk("some words");
    short.chunk("some words");
    let halves: Vec<u64> = long.set(0).iter().map(|chunk| chunk >> 32).collect();
    assert_eq!(halves, short.set(0));
    assert!((ChunkBits::Short.expected_collisions(1 << 20) - 127.999).abs() < 0.01);
    assert_eq!(ChunkBits::Long.expected_collisions(0), 0.0);
}

/// Published values: chunks are stored in results of jobs, so they must not move.
#[test]
fn fingerprints_do_not_change() {
    let chunkings = ["doc", "lines:2", "words:2:sliding"].map(|name| name.parse().unwrap());
    let mut chunker = Chunker::new(&chunkings, ChunkBits::Long);
    chunker.chunk("to be or not\nto be");
    let found: Vec<Vec<String>> = (0..3)
        .map(|i| {
            chunker
                .set(i)
                .iter()
                .map(|chunk| format!("{chunk:016x}"))
                .collect()
        })
        .collect();
    let words = [
        "069f7872df75dab2",
        "35f7e8efbe227187",
        "b8d21ff2a2bbe86c",
        "bd70c31b9cb4cdfe",
    ];
    assert_eq!(
        found,
        [
            vec!["6e99fa30d5b3d6be"],
            vec!["4008741fc0789f6a"],
            words.to_vec()
        ]
    );
}
