//! Chunkings: their names, and their chunks compared with a slow definition on strings.

use std::collections::BTreeSet;

use lookalike::chunk::{ChunkBits, Chunker, Chunking, order_by_novelty};
use lookalike::{Scheme, Segmenter};
use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

/// The invisible characters that occur in these tests.
const UNSEEN: [char; 2] = ['\u{ad}', '\u{200b}'];

/// Returns the pieces between white space, composed and in lower case.
fn folded(text: &str, is_space: fn(char) -> bool) -> Vec<String> {
    let pieces = text.split(is_space);
    let folded = pieces.map(|piece| piece.nfc().collect::<String>().to_lowercase());
    folded.filter(|piece| !piece.is_empty()).collect()
}

/// Splits a text into sentences, which end at a line end or after exclamation marks and the white space that follows them.
fn sentences(text: &str) -> Vec<String> {
    let (mut found, mut sentence, mut is_behind) = (Vec::new(), String::new(), false);
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        if is_behind && !"! \t\r\n".contains(c) {
            found.push(std::mem::take(&mut sentence));
            is_behind = false;
        }
        sentence.push(c);
        is_behind |= c == '!';
        if c == '\n' || c == '\r' && characters.peek() != Some(&'\n') {
            found.push(std::mem::take(&mut sentence));
            is_behind = false;
        }
    }
    found.push(sentence);
    let trimmed = found.iter().map(|sentence| sentence.trim().to_owned());
    trimmed.filter(|sentence| !sentence.is_empty()).collect()
}

/// Returns the chunks of a text as strings, as the documentation defines them.
fn slow(chunking: &str, text: &str) -> BTreeSet<Vec<String>> {
    let own = |part: &str| part.to_owned();
    let text = &text.replace(UNSEEN, "");
    let trimmed: Vec<String> = text
        .split('\n')
        .map(|line| line.trim().to_owned())
        .collect();
    let mut pieces = chunking.split(':');
    let parts: Vec<String> = match pieces.next().unwrap() {
        "doc" if text.trim().is_empty() => return BTreeSet::new(),
        "doc" => return BTreeSet::from([vec![own(text)]]),
        "sentences" => return sentences(text).into_iter().map(|s| vec![s]).collect(),
        "paragraphs" => {
            let split = trimmed.split(|line| line.is_empty());
            return split
                .filter(|p| !p.is_empty())
                .map(<[String]>::to_vec)
                .collect();
        }
        "lines" => trimmed
            .into_iter()
            .filter(|line| !line.is_empty())
            .collect(),
        "fields" => text
            .split(char::is_whitespace)
            .filter(|field| !field.is_empty())
            .map(own)
            .collect(),
        "words" => folded(text, |c| matches!(c, ' ' | '\t'..='\r'))
            .iter()
            .flat_map(|piece| piece.unicode_words().map(own).collect::<Vec<_>>())
            .collect(),
        _ => folded(text, char::is_whitespace)
            .join(" ")
            .chars()
            .map(String::from)
            .collect(),
    };
    let length: usize = pieces.next().unwrap().parse().unwrap();
    match pieces.next() {
        Some(_) if parts.len() > length => parts.windows(length).map(<[String]>::to_vec).collect(),
        _ => parts.chunks(length).map(<[String]>::to_vec).collect(),
    }
}

/// Returns a chunker with the words and characters of the default scheme.
fn chunker(chunkings: &[Chunking], bits: ChunkBits) -> Chunker {
    Chunker::new(chunkings, bits, &Scheme::default())
}

/// Sets with this many chunks are sorted by a different algorithm.
#[test]
fn chunks_of_a_long_text_are_those_of_its_definition() {
    let text: String = (0..1_100_000)
        .map(|line| format!("{}\n", line % 1_060_000))
        .collect();
    for (name, count) in [
        ("lines:1", 1_060_000),
        ("lines:2:sliding", 1_060_000),
        ("lines:2", 530_000),
        ("fields:2:sliding", 1_060_000),
        ("words:1", 1_060_000),
        ("words:2", 530_000),
    ] {
        let chunking: Chunking = name.parse().unwrap();
        // The second pass reuses the buffers.
        let mut chunker = chunker(&[chunking], ChunkBits::Long);
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

const NAMES: [&str; 16] = [
    "doc",
    "lines:1",
    "lines:2",
    "lines:4:sliding",
    "paragraphs",
    "sentences",
    "fields:1",
    "fields:3",
    "fields:3:sliding",
    "fields:8:sliding",
    "words:1",
    "words:3",
    "words:3:sliding",
    "chars:1",
    "chars:4",
    "chars:5:sliding",
];

proptest! {
    /// Equal chunks have equal fingerprints and different chunks different ones: for any two texts, the numbers of common chunks and of all chunks
    /// equal those of the strings.
    #[test]
    fn sets_are_those_of_the_strings(
        a in "[abA!\u{e9}\u{5b57}\u{8bed}\u{ad} \n\t]{0,60}",
        b in "([ab!\u{c9}\u{5b57}\u{8bed} \n\r]|e\u{301}){0,60}",
    ) {
        let chunkings: Vec<Chunking> = NAMES.iter().map(|name| name.parse().unwrap()).collect();
        let mut chunker = chunker(&chunkings, ChunkBits::Long);
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

/// Orders documents as defined. Returns the number of each and its count of new chunks.
fn slow_order(sets: &[Vec<u64>]) -> Vec<(usize, usize)> {
    let (mut known, mut order) = (BTreeSet::new(), Vec::new());
    let mut waiting: Vec<usize> = (0..sets.len()).collect();
    while !waiting.is_empty() {
        let new = |number: usize| {
            sets[number]
                .iter()
                .filter(|chunk| !known.contains(*chunk))
                .count()
        };
        let share = |number: usize| new(number) as f64 / sets[number].len().max(1) as f64;
        let best = waiting
            .iter()
            .map(|&number| share(number))
            .fold(0.0, f64::max);
        let first = waiting
            .iter()
            .position(|&number| share(number) == best)
            .unwrap();
        let number = waiting.remove(if order.is_empty() { 0 } else { first });
        order.push((number, new(number)));
        known.extend(sets[number].clone());
    }
    order
}

proptest! {
    #[test]
    fn documents_are_ordered_by_what_is_new_in_each(
        sets in prop::collection::vec(prop::collection::btree_set(0_u64..25, 0..9), 0..14),
    ) {
        let sets: Vec<Vec<u64>> = sets.into_iter().map(Vec::from_iter).collect();
        let order = order_by_novelty(&sets).into_iter();
        let order: Vec<_> = order.map(|document| (document.number, document.new_chunks)).collect();
        prop_assert_eq!(order, slow_order(&sets));
    }
}

/// Regression test: runs of no part panicked, and those of more than 1,000 had names that did not parse.
#[test]
fn runs_of_impossible_lengths_are_refused() {
    use lookalike::chunk::RunChunking;
    assert_eq!(RunChunking::new(0, false), None);
    assert_eq!(RunChunking::new(1001, true), None);
    for (length, sliding) in [(1, true), (1, false), (8, true), (1000, false)] {
        let chunking = Chunking::Words(RunChunking::new(length, sliding).unwrap());
        assert_eq!(chunking.to_string().parse(), Ok(chunking));
    }
}

#[test]
fn names_round_trip_and_wrong_ones_say_what_exists() {
    for name in NAMES.into_iter().chain(["chars:1000", "lines:1000"]) {
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
        "characters:5",
    ] {
        let error = wrong.parse::<Chunking>().unwrap_err().to_string();
        let all = ["paragraphs", "fields:N", "words:8:sliding", "chars:N"];
        assert!(all.iter().all(|name| error.contains(name)), "{error}");
    }
}

/// Returns the chunk set of a text under one chunking.
fn set(chunking: &str, scheme: &Scheme, text: &str) -> Vec<u64> {
    let mut chunker = Chunker::new(&[chunking.parse().unwrap()], ChunkBits::Long, scheme);
    chunker.chunk(text);
    chunker.set(0).to_vec()
}

#[test]
fn words_and_characters_are_those_of_the_scheme_and_fields_are_not() {
    let scheme = |rules: &str| {
        let text = Scheme::default().to_string();
        let mut fields: Vec<&str> = text.split(' ').collect();
        for rule in rules.split_whitespace() {
            let name = &rule[..=rule.find('=').unwrap()];
            let at = fields.iter().position(|field| field.starts_with(name));
            fields[at.unwrap()] = rule;
        }
        fields.join(" ").parse::<Scheme>().unwrap()
    };
    for (rules, a, b) in [
        ("case=lower", "One Two", "one two"),
        ("mask=numbers", "page 12 of 345", "page 9 of 1"),
        ("normalize=nfkc", "\u{ff11}\u{ff12} \u{fb01}n", "12 fin"),
        ("normalize=nfc", "co\u{ad}op \u{e9}", "coop e\u{301}"),
        ("fold=accents", "caf\u{e9}", "cafe"),
        ("segment=word-chars", "a-b, (c)", "a.b; c"),
    ] {
        let scheme = scheme(rules);
        for chunking in ["words:2", "words:1", "chars:3:sliding"] {
            let sets = [a, b].map(|text| set(chunking, &scheme, text));
            assert!(!sets[0].is_empty());
            assert_eq!(sets[0], sets[1], "{chunking} {rules}");
        }
        let fields = [a, b].map(|text| set("fields:2", &scheme, text));
        assert!(
            rules == "normalize=nfc" || fields[0] != fields[1],
            "{rules}"
        );
    }
    let kept = scheme("case=keep normalize=none");
    assert_ne!(set("words:1", &kept, "One"), set("words:1", &kept, "one"));
    assert_ne!(
        set("chars:2", &kept, "o\u{ad}n"),
        set("chars:2", &kept, "on")
    );
}

/// There are as many chunks of single words as the segmenter has distinct words, also if the text is one long piece.
#[test]
fn words_are_those_of_the_segmenter() {
    let chinese = "\u{4e2d}\u{534e}\u{4eba}\u{6c11}\u{5171}\u{548c}\u{56fd}\u{ff0c}".repeat(900);
    let mixed: String = (0..3000)
        .map(|at| format!("a{at}-\u{e9}{}", at % 7))
        .collect();
    let schemes = [
        Scheme::default(),
        #[cfg(feature = "languages")]
        Scheme::default().segmentation(lookalike::scheme::Segmentation::Languages),
    ];
    for scheme in schemes {
        for text in [&chinese, &mixed] {
            let mut words = BTreeSet::new();
            Segmenter::new(&scheme).words(text, |word| {
                words.insert(word.to_owned());
            });
            assert_eq!(set("words:1", &scheme, text).len(), words.len());
        }
    }
}

/// A text of white space has no chunks except that of the whole text.
#[test]
fn white_space_has_no_chunks() {
    for chunking in NAMES.into_iter().filter(|name| *name != "doc") {
        for text in [" \n\t \x0b", "\u{a0}\u{3000}\n\u{2009}"] {
            let found = set(chunking, &Scheme::default(), text);
            assert!(found.is_empty(), "{chunking} of {text:?}");
        }
    }
}

/// Web pages are full of no-break spaces, and Japanese texts of ideographic spaces: only ASCII white space was trimmed, so equal lines differed.
#[test]
fn a_no_break_space_does_not_change_lines_paragraphs_or_fields() {
    let plain = "one line here\n\nanother line";
    let ends = "\u{3000}one line here\u{a0}\n\u{a0}\n\u{2003}another line\u{85}";
    let between = "one\u{a0}line\u{3000}here\n\nanother\x0bline";
    for (chunking, spaced) in [
        ("lines:1", ends),
        ("lines:2", ends),
        ("paragraphs", ends),
        ("fields:1", ends),
        ("fields:2", between),
    ] {
        let sets = [plain, spaced].map(|text| set(chunking, &Scheme::default(), text));
        assert_eq!(sets[0], sets[1], "{chunking}");
    }
}

/// Only ASCII white space was one character however long, so a page with no-break spaces between words shared nothing with one without.
#[test]
fn white_space_of_any_kind_and_length_is_one_character() {
    let text = "the quick brown fox jumps over the lazy d\u{f6}g";
    for space in [
        "  ",
        "\u{a0}",
        " \u{a0}",
        "\u{3000}\u{3000}",
        "\u{2028}",
        "\u{85}\n",
    ] {
        let spaced = text.replace(' ', space);
        for scheme in ["nfc", "nfkc", "none"] {
            let scheme = Scheme::default().normalization(scheme.parse().unwrap());
            let sets = [text, &*spaced].map(|text| set("chars:5:sliding", &scheme, text));
            assert_eq!(sets[0], sets[1], "{space:?}");
        }
    }
}

#[test]
fn sentences_are_cut_and_trimmed() {
    let mut chunker = chunker(&[Chunking::Sentences], ChunkBits::Long);
    chunker.chunk("One sentence. Another one?  One sentence. \u{4f60}\u{597d}\u{3002}\u{518d}\u{89c1}\u{3002}");
    assert_eq!(chunker.set(0).len(), 4);
    chunker.chunk(" \n\t ");
    assert!(chunker.set(0).is_empty());
}

#[test]
fn short_fingerprints_are_the_upper_halves_and_their_collisions_are_expected() {
    let chunkings = ["words:1".parse().unwrap()];
    let (mut long, mut short) = (
        chunker(&chunkings, ChunkBits::Long),
        chunker(&chunkings, ChunkBits::Short),
    );
    long.chunk("some words");
    short.chunk("some words");
    let halves: Vec<u64> = long.set(0).iter().map(|chunk| chunk >> 32).collect();
    assert_eq!(halves, short.set(0));
    assert!((ChunkBits::Short.expected_collisions(1 << 20) - 127.999).abs() < 0.01);
    assert_eq!(ChunkBits::Long.expected_collisions(0), 0.0);
}

/// The values are published and were computed by another implementation. Job results store chunks, so they must not change.
#[test]
fn fingerprints_do_not_change() {
    let of = |chunking: &str, text: &str| {
        let chunks = set(chunking, &Scheme::default(), text);
        let shown = chunks.iter().map(|chunk| format!("{chunk:016x}"));
        shown.collect::<Vec<_>>()
    };
    let text = "to be or not\nto be";
    assert_eq!(of("doc", text), ["6e99fa30d5b3d6be"]);
    assert_eq!(of("lines:2", text), ["4008741fc0789f6a"]);
    let fields = [
        "069f7872df75dab2",
        "35f7e8efbe227187",
        "b8d21ff2a2bbe86c",
        "bd70c31b9cb4cdfe",
    ];
    assert_eq!(of("fields:2:sliding", text), fields);
    assert_eq!(of("words:2:sliding", text), fields);
    let mixed = "To BE, 3.14 \u{5b57}\u{8bed}";
    let words = ["53e6de4e2b47e146", "7387b7f4f67d3cd8", "bd70c31b9cb4cdfe"];
    assert_eq!(of("words:2", mixed), words);
    let characters = ["391c7b45aef24992", "7a9c145c5d0f707a", "df245dc633dda440"];
    assert_eq!(of("chars:5", mixed), characters);
}
