//! Features, compared with a second implementation of the published definition.

use lookalike::hash::lookup3::lookup3_64;
use lookalike::hash::{avalanche, xxh3_64};
use lookalike::scheme::Mask;
use lookalike::{FeatureExtractor, Scheme, Segmentation, Shingle, TokenHash};
use proptest::prelude::*;

use crate::scheme::any_plain_scheme;
use crate::text::{any_text, defined_pieces, defined_words, is_word_char};

fn token_hash(scheme: &Scheme, word: &str) -> u64 {
    match scheme.hash {
        TokenHash::Xxh3 => xxh3_64(word.as_bytes(), scheme.seed),
        TokenHash::Lookup3 => lookup3_64(word.as_bytes(), scheme.seed),
        other => panic!("any_plain_scheme has no {other}"),
    }
}

/// Returns the features of every width that fits, or one feature of all words if none fits.
fn sizes_features(scheme: &Scheme, text: &str, widths: &[usize]) -> Vec<u64> {
    let words = defined_words(scheme, text).len();
    let fitting: Vec<usize> = widths
        .iter()
        .copied()
        .filter(|&width| width <= words)
        .collect();
    let sizes = if fitting.is_empty() {
        vec![64]
    } else {
        fitting
    };
    let features = |width: &usize| word_features(scheme, text, *width);
    sizes.iter().flat_map(features).collect()
}

/// Rotates a hash by this many places in windows of at most 16 words. In longer ones, multiplies it by that power of x in the field with 2^64 elements.
fn stepped(hash: u64, steps: usize, window: usize) -> u64 {
    if window <= 16 {
        return hash.rotate_left(steps as u32);
    }
    (0..steps).fold(u128::from(hash), |product, _| {
        let product = product * 2;
        match product >> 64 {
            0 => product,
            _ => product ^ (1 << 64 | 0b11011),
        }
    }) as u64
}

fn word_features(scheme: &Scheme, text: &str, width: usize) -> Vec<u64> {
    let hash = |word: &String| token_hash(scheme, word);
    let tokens: Vec<u64> = defined_words(scheme, text).iter().map(hash).collect();
    if width == 1 || tokens.is_empty() {
        return tokens;
    }
    let feature = |window: &[u64]| {
        let m = window.len();
        let mix = (0..m).fold(0, |mix, j| mix ^ stepped(window[j], m - 1 - j, m));
        avalanche(mix ^ (m as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    };
    tokens
        .windows(width.min(tokens.len()))
        .map(feature)
        .collect()
}

/// Applies the rule for short texts as the text of the shingle states it: `words:w/n:v`.
fn short_features(scheme: &Scheme, text: &str) -> Vec<u64> {
    let shingle = scheme.shingle.to_string();
    let numbers = shingle.split([':', '/']).skip(1);
    let numbers: Vec<usize> = numbers.map(|number| number.parse().unwrap()).collect();
    let words = defined_words(scheme, text).len();
    let width = if words < numbers[1] {
        numbers[2]
    } else {
        numbers[0]
    };
    word_features(scheme, text, width)
}

fn char_features(scheme: &Scheme, text: &str, width: usize) -> Vec<u64> {
    let pieces = defined_pieces(scheme, text, char::is_whitespace);
    let chars: Vec<char> = match scheme.segmentation {
        Segmentation::WordChars => pieces
            .concat()
            .chars()
            .filter(|&c| is_word_char(c))
            .collect(),
        _ => pieces.join(" ").chars().collect(),
    };
    if chars.iter().all(|c| c.is_whitespace()) {
        return Vec::new();
    }
    let feature = |window: &[char]| token_hash(scheme, &String::from_iter(window));
    chars.windows(width.min(chars.len())).map(feature).collect()
}

fn defined(scheme: &Scheme, text: &str) -> Vec<u64> {
    match scheme.shingle {
        Shingle::Words(width) => word_features(scheme, text, width.get()),
        Shingle::WordsByLength { .. } => short_features(scheme, text),
        Shingle::WordSizes(widths) => {
            sizes_features(scheme, text, &widths.iter().collect::<Vec<_>>())
        }
        Shingle::Chars(width) => char_features(scheme, text, width.get()),
        Shingle::Stops(width) => stop_features(scheme, text, width.get()),
        // Without a table of terms there are no phrases.
        Shingle::Phrases(_) => word_features(scheme, text, 1),
    }
}

fn set(mut features: Vec<u64>) -> Vec<u64> {
    features.sort_unstable();
    features.dedup();
    features
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn features_are_those_of_the_definition(scheme in any_plain_scheme(), text in any_text()) {
        // Masks have their own test.
        let scheme = scheme.mask(Mask::default());
        let mut extractor = FeatureExtractor::new(&scheme);
        let expected = defined(&scheme, &text);
        prop_assert_eq!(extractor.features(&text), &expected);
        prop_assert_eq!(extractor.feature_set(&text), set(expected.clone()));
        let read = extractor.extract(&text);
        prop_assert_eq!(read.in_order, &expected);
        prop_assert_eq!(read.set, set(expected.clone()));
        let words = scheme.shingle("words:1".parse().unwrap());
        let tokens = FeatureExtractor::new(&words).features(&text).to_vec();
        if let Some(read) = extractor.extract_tokens(&tokens) {
            prop_assert_eq!(read.in_order, &expected);
        }
    }

    #[test]
    fn white_space_around_and_between_changes_nothing(text in "[a-z ]{0,80}", extra in " {0,3}") {
        for shingle in ["words:3", "chars:4"] {
            let scheme = Scheme::default().shingle(shingle.parse().unwrap());
            let mut extractor = FeatureExtractor::new(&scheme);
            let expected = extractor.features(&text).to_vec();
            let spread = format!("{extra}{}\r\n{extra}", text.replace(' ', " \t\n"));
            prop_assert_eq!(extractor.features(&spread), expected);
        }
    }
}

#[test]
fn long_texts_have_the_features_of_the_definition() {
    let words = |n: u32| {
        (0..n)
            .map(|i| format!("w{} ", i * i % 7919))
            .collect::<String>()
    };
    let chinese: String = (0..30_000u32)
        .filter_map(|i| char::from_u32(0x4E00 + i * 37 % 20_000))
        .collect();
    let texts = [
        words(20_000),
        "x".repeat(40_000),
        chinese,
        "\u{e9} ".repeat(20_000),
    ];
    for shingle in [
        "words:1", "words:2", "words:64", "chars:1", "chars:5", "chars:64",
    ] {
        for segmentation in [Segmentation::Unicode, Segmentation::WordChars] {
            let shingle = shingle.parse().unwrap();
            let scheme = Scheme::default()
                .shingle(shingle)
                .segmentation(segmentation);
            let mut extractor = FeatureExtractor::new(&scheme);
            for text in &texts {
                assert!(
                    extractor.features(text) == defined(&scheme, text),
                    "{shingle} {:.20}",
                    text
                );
            }
        }
    }
}

#[test]
fn short_texts_have_a_feature_of_their_own_kind() {
    let features = |shingle: &str, text: &str| {
        let scheme = Scheme::default().shingle(shingle.parse().unwrap());
        FeatureExtractor::new(&scheme).features(text).to_vec()
    };
    for text in ["", " ", "\r\n\t", "!?", "\u{3000}"] {
        assert!(features("words:5", text).is_empty(), "{text:?}");
    }
    for text in ["", " ", "\r\n\t", "\u{3000}", "\u{a0}"] {
        assert!(features("chars:5", text).is_empty(), "{text:?}");
    }
    assert_eq!(features("words:5", "one two").len(), 1);
    assert_ne!(features("words:5", "cat"), features("words:5", "dog"));
    assert_ne!(features("words:5", "a b"), features("words:5", "b a"));
    // Two words differ from a shingle of two words, and a word differs from its hash.
    assert_ne!(features("words:5", "one"), features("words:1", "one"));
    assert_eq!(
        features("words:5", "one two"),
        features("words:2", "one two")
    );
    assert_eq!(features("chars:5", "ab"), features("chars:2", "ab"));
}

/// Under `words:1` and `chars:n` a feature is the hash of its name. A window of words is the feature of the words in its name.
#[test]
fn names_spell_their_features() {
    let texts = [
        "Can't stop,  3.14! ferries",
        "one two three four five six seven",
        "Grüße aus  Köln\nam Rhein",
        "short",
        " \n",
        "",
    ];
    for shingle in ["words:1", "words:3", "words:2+3", "chars:4", "stops:2"] {
        let scheme = Scheme::default().shingle(shingle.parse().unwrap());
        let mut extractor = FeatureExtractor::new(&scheme);
        for text in texts {
            let features = extractor.features(text).to_vec();
            let spelling = extractor.spelling(text);
            for (place, &feature) in features.iter().enumerate() {
                let name = spelling.name(place);
                let words = name.split(' ').count();
                let alone = match shingle {
                    "words:2+3" if words > 1 => {
                        scheme.shingle(format!("words:{words}").parse().unwrap())
                    }
                    _ => scheme,
                };
                if shingle == "chars:4" {
                    let hash = lookalike::hash::xxh3_64(name.as_bytes(), 0);
                    assert_eq!(hash, feature, "{text:?} {name:?}");
                } else {
                    let own = FeatureExtractor::new(&alone).features(name).to_vec();
                    assert_eq!(own, [feature], "{text:?} {name:?}");
                }
            }
            assert_eq!(spelling.name(features.len()), "", "{text:?}");
        }
    }
}

#[test]
fn the_cosine_by_hand() {
    let scheme = Scheme::default()
        .shingle("words:1".parse().unwrap())
        .weight(lookalike::Weight::Tf);
    let (mut a, mut b) = (
        FeatureExtractor::new(&scheme),
        FeatureExtractor::new(&scheme),
    );
    // (2, 1, 0) and (1, 0, 2): 2 / 5.
    let (x, y) = (a.extract("x x y"), b.extract("z x z"));
    assert!((x.cosine(&y) - 0.4).abs() < 1e-12);
    assert!((x.cosine(&x) - 1.0).abs() < 1e-12);
    assert_eq!(x.cosine(&b.extract("")), 0.0);
}

/// A second copy of the list that `docs/explanation/algorithms.md` prints.
const STOPS: &str = "the of and a in to is was it for with he be on i that by at you are not his \
                     this from but had which she they or an were we their been has have will \
                     would her there can all as if who what said";

fn stop_features(scheme: &Scheme, text: &str, width: usize) -> Vec<u64> {
    let stops: Vec<&str> = STOPS.split(' ').collect();
    let mut words = defined_words(scheme, text);
    words.retain(|word| stops.contains(&&**word));
    let plain = scheme
        .segmentation(Segmentation::Unicode)
        .mask(Mask::default());
    word_features(&plain, &words.join(" "), width)
}

#[test]
fn stops_leave_the_skeleton() {
    let of = |text: &str| {
        let scheme = Scheme::default().shingle("stops:3".parse().unwrap());
        FeatureExtractor::new(&scheme).features(text).to_vec()
    };
    let a = of("The ferry was in the harbour of Wendle, and it had to wait.");
    assert_eq!(a.len(), 7, "the was in the of and it had to");
    assert_eq!(
        a,
        of("The bread was in the oven of Ada and, it had to cool")
    );
    assert!(of("ferries harbours").is_empty());
    assert_eq!(of("the ferry of"), of("the bread of"));
}

#[test]
fn phrases_are_learned_from_a_collection() {
    let scheme = Scheme::default().shingle("phrases:3".parse().unwrap());
    let counted = scheme.counted();
    assert_eq!(counted.shingle.to_string(), "words:1+2");
    let mut counts = lookalike::TermCounts::new(&scheme);
    let mut extractor = FeatureExtractor::new(&counted);
    for at in 0..60 {
        // "new york" is in 4 of 60 texts and its words are rare elsewhere; "of the" is in all texts, "rare pair" in 2.
        let text = match at {
            0..4 => format!("of the new york {at}"),
            4 => "of the new house".to_owned(),
            5 | 6 => format!("of the rare pair {at}"),
            _ => format!("of the place {at}"),
        };
        counts.add(extractor.feature_set(&text));
    }
    let terms = std::sync::Arc::new(counts.terms());
    let named = scheme.terms(Some(terms.id()));
    let mut extractor = FeatureExtractor::with_terms(&named, &terms).unwrap();
    let text = "New York of the rare pair, new";
    let features = extractor.features(text).to_vec();
    let names: Vec<String> = {
        let spelling = extractor.spelling(text);
        (0..features.len())
            .map(|place| spelling.name(place).to_owned())
            .collect()
    };
    assert_eq!(names, ["new york", "of", "the", "rare", "pair", "new"]);
    let one = |text: &str, shingle: &str| {
        let scheme = Scheme::default().shingle(shingle.parse().unwrap());
        FeatureExtractor::new(&scheme).features(text)[0]
    };
    assert_eq!(features[0], one("new york", "words:2"));
    assert_eq!(features[5], one("new", "words:1"));
    // Tokens that are hashed already give the same features.
    let words = Scheme::default().shingle("words:1".parse().unwrap());
    let tokens = FeatureExtractor::new(&words).features(text).to_vec();
    assert_eq!(
        extractor.extract_tokens(&tokens).unwrap().in_order,
        features
    );
    // A table of other features is refused.
    let other = std::sync::Arc::new(lookalike::TermCounts::new(&words).terms());
    assert!(FeatureExtractor::with_terms(&named, &other).is_err());
}

/// Checks the weights of anchors, their windows and links, computed by hand in 256ths.
#[test]
fn fields_weigh_what_they_should() {
    use lookalike::{Anchor, DocumentFields};
    let scheme = |fields: &str| {
        Scheme::default()
            .shingle("words:1".parse().unwrap())
            .fields(fields.parse().unwrap())
    };
    let golden = 0x9E37_79B9_7F4A_7C15_u64;
    let word = |word: &str| xxh3_64(word.as_bytes(), 0);
    let anchor = |name: &str| avalanche(word(name) ^ golden);
    let fields = DocumentFields {
        anchors: vec![
            Anchor {
                text: "The ferry".to_owned(),
                before: "far away old".to_owned(),
                after: "leaves now".to_owned(),
            },
            Anchor {
                text: "ferry".to_owned(),
                ..Anchor::default()
            },
        ],
        in_links: vec![
            "http://b/".to_owned(),
            "http://a/".to_owned(),
            "http://b/".to_owned(),
        ],
        out_links: vec!["http://a/".to_owned()],
    };
    let both = scheme("anchors:3~2,in-links:1,out-links:2");
    let mut extractor = FeatureExtractor::new(&both);
    let names: Vec<String> = {
        let spelling = extractor.spelling_with("harbour", &fields);
        (0..12)
            .map(|place| spelling.name(place).to_owned())
            .collect()
    };
    let mut expected = vec![
        (word("harbour"), 256),
        (anchor("the"), 768),
        (anchor("ferry"), 2 * 768),
        (anchor("old"), 512),
        (anchor("away"), 256),
        (anchor("leaves"), 512),
        (anchor("now"), 256),
        (avalanche(word("http://a/") ^ golden.wrapping_mul(2)), 256),
        (avalanche(word("http://b/") ^ golden.wrapping_mul(2)), 256),
        (avalanche(word("http://a/") ^ golden.wrapping_mul(3)), 512),
    ];
    expected.sort_unstable();
    let features = extractor.extract_with("harbour", &fields);
    assert_eq!(features.weights, expected);
    let set: Vec<u64> = expected.iter().map(|entry| entry.0).collect();
    assert_eq!(features.set, set);
    let told = [
        "harbour",
        "anchor: the",
        "anchor: ferry",
        "anchor: old",
        "anchor: away",
        "anchor: leaves",
    ];
    assert_eq!(names[..6], told);
    assert_eq!(
        names[9..],
        ["link from http://b/", "link to http://a/", ""].map(str::to_owned)
    );
    // Try anchors without a window, then a scheme that uses no fields.
    let mut narrow = FeatureExtractor::new(&scheme("anchors:3"));
    assert_eq!(narrow.extract_with("harbour", &fields).weights.len(), 3);
    let mut none = FeatureExtractor::new(&scheme("none"));
    let plain = none.extract_with("harbour", &fields).set.to_vec();
    assert_eq!(plain, [word("harbour")]);
    // The weights of a text without fields are proportional in both units, so the fingerprint is that of the text alone.
    for weight in ["set", "tf", "log-tf"] {
        let base = scheme("none").weight(weight.parse().unwrap());
        let wide = base.fields(both.fields);
        let text = "one two two three three three four";
        let (mut a, mut b) = (FeatureExtractor::new(&base), FeatureExtractor::new(&wide));
        let nothing = DocumentFields::default();
        assert_eq!(
            lookalike::Simhash::of(&a.extract(text)),
            lookalike::Simhash::of(&b.extract_with(text, &nothing)),
            "{weight}"
        );
    }
}

#[test]
fn lists_of_fields_are_canonical() {
    for good in [
        "none",
        "anchors:1",
        "anchors:255~64",
        "in-links:2",
        "anchors:3~5,out-links:1",
    ] {
        let fields: lookalike::FieldWeights = good.parse().unwrap();
        assert_eq!(fields.to_string(), good);
    }
    for bad in [
        "",
        "anchors",
        "anchors:0",
        "anchors:0~5",
        "anchors:1~0",
        "anchors:1~65",
        "out-links:1,in-links:1",
        "in-links:256",
        "none,anchors:1",
    ] {
        assert!(bad.parse::<lookalike::FieldWeights>().is_err(), "{bad}");
    }
}

#[test]
fn texts_of_repeated_words_were_alike_in_shingles_of_64_words() {
    let words = [
        "apple", "pear", "plum", "cherry", "zero", "one", "two", "three",
    ];
    // Shorter ones are all of the words that take turns, or a part of them.
    for size in (9..=64u8).filter_map(Shingle::words) {
        let scheme = Scheme::default().shingle(size);
        let mut extractor = FeatureExtractor::new(&scheme);
        let mut seen = std::collections::HashSet::new();
        // Of one word, and of two to eight that take turns.
        for period in 1..=words.len() {
            for first in 0..words.len() {
                let turn: Vec<&str> = (0..period)
                    .map(|at| words[(first + at) % words.len()])
                    .collect();
                let text = turn.join(" ") + " ";
                let features = extractor.extract(&text.repeat(130 / period + 1));
                let least = features.set[0];
                // The eight texts of all words differ only in where they begin.
                assert!(
                    seen.insert(least) || period == words.len(),
                    "{size} {period} {first}"
                );
            }
        }
    }
}
