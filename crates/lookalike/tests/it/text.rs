//! Words: the vector code and the Unicode code, compared with the definition in the documentation.

use lookalike::scheme::Mask;
use lookalike::{Case, Folding, Normalization, Scheme, Segmentation, Segmenter};
use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};
use unicode_segmentation::UnicodeSegmentation;

use crate::scheme::any_plain_scheme;

/// Implements points 1 to 3 of the definition in `lookalike::text` literally.
pub(crate) fn defined_pieces(
    scheme: &Scheme,
    text: &str,
    is_space: fn(char) -> bool,
) -> Vec<String> {
    let normal = |piece: &str| -> String {
        match scheme.normalization {
            _ if !scheme.folding.is_none() => folded(piece, scheme),
            Normalization::None => piece.to_owned(),
            Normalization::Nfc => piece.nfc().collect(),
            Normalization::Nfkc => piece.nfkc().collect(),
        }
    };
    let fold = |piece: String| match scheme.case {
        Case::Keep => piece,
        Case::Lower => piece.to_lowercase(),
    };
    seen(scheme, text)
        .split(is_space)
        .map(normal)
        .map(fold)
        .filter(|piece| !piece.is_empty())
        .collect()
}

/// Returns the text without the characters that normalisation removes.
fn seen(scheme: &Scheme, text: &str) -> String {
    let strips = scheme.normalization != Normalization::None;
    let counts = |&c: &char| !strips || !is_ignorable(c);
    text.chars().filter(counts).collect()
}

/// Derives Default_Ignorable_Code_Point as Unicode defines it, independently of the table.
fn is_ignorable(c: char) -> bool {
    use unicode_properties::GeneralCategory::Format;
    let code = c as u32;
    let others = [
        0x34f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2065, 0x3164, 0xffa0,
    ];
    let prepended = [0x6dd, 0x70f, 0x8e2, 0x110bd, 0x110cd];
    let format = c.general_category() == Format
        && !matches!(code, 0x600..=0x605 | 0x890..=0x891 | 0xfff9..=0xfffb | 0x13430..=0x1345f)
        && !prepended.contains(&code);
    format
        || others.contains(&code)
        || matches!(code, 0x180b..=0x180f | 0xfe00..=0xfe0f | 0xfff0..=0xfff8 | 0xe0000..=0xe0fff)
}

/// Decomposes a piece, removes marks, replaces variants, and composes it again.
fn folded(piece: &str, scheme: &Scheme) -> String {
    let Folding {
        accents,
        punctuation,
        arabic,
        width,
    } = scheme.folding;
    let compatible = scheme.normalization == Normalization::Nfkc;
    let wide = |c: char| width && (c == '\u{3000}' || (0xff01..=0xffee).contains(&(c as u32)));
    let usual = |c: char| -> Vec<char> {
        match wide(c) {
            true => c.to_string().nfkd().collect(),
            false => vec![c],
        }
    };
    let usual: String = piece.chars().flat_map(usual).collect();
    let apart: String = match compatible {
        true => usual.nfkd().collect(),
        false => usual.nfd().collect(),
    };
    let is_mark = |c: char| c.general_category_group() == GeneralCategoryGroup::Mark;
    let blocks = [0x300, 0x1ab0, 0x1dc0, 0x20d0, 0xfe20];
    let ends = [0x36f, 0x1aff, 0x1dff, 0x20ff, 0xfe2f];
    let accent = |c: char| (0..5).any(|at| (blocks[at]..=ends[at]).contains(&(c as u32)));
    // Arabic marks except madda, hamza above and hamza below.
    let sign = |c: char| {
        let code = c as u32;
        let block = matches!(code, 0x610..=0x6ed | 0x8ca..=0x8ff);
        c == '\u{640}' || block && is_mark(c) && !matches!(code, 0x653..=0x655)
    };
    let variant = |c: char| {
        match c {
        _ if !punctuation => c,
        c if "\u{2018}\u{2019}\u{201a}\u{201b}\u{2032}\u{2035}\u{2039}\u{203a}\u{2bb}\u{2bc}\u{55a}\u{5f3}\u{ff07}".contains(c) => '\'',
        c if "\u{201c}\u{201d}\u{201e}\u{201f}\u{2033}\u{2036}\u{ab}\u{bb}\u{5f4}\u{301d}\u{301e}\u{301f}\u{ff02}".contains(c) => '"',
        c if "\u{2010}\u{2011}\u{2012}\u{2013}\u{2014}\u{2015}\u{2212}\u{58a}\u{5be}\u{2e3a}\u{2e3b}\u{fe58}\u{fe63}\u{ff0d}".contains(c) => '-',
        c => c,
    }
    };
    let kept = |c: &char| !(accents && accent(*c) || arabic && sign(*c));
    apart.chars().filter(kept).map(variant).nfc().collect()
}

pub(crate) fn is_word_char(c: char) -> bool {
    use GeneralCategoryGroup::{Letter, Number};
    c == '_' || matches!(c.general_category_group(), Letter | Number)
}

pub(crate) fn defined_words(scheme: &Scheme, text: &str) -> Vec<String> {
    let cut = |piece: &String| -> Vec<String> {
        match scheme.segmentation {
            Segmentation::WordChars => piece
                .split(|c| !is_word_char(c))
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect(),
            _ => piece.unicode_words().map(str::to_owned).collect(),
        }
    };
    let is_space = |c| matches!(c, ' ' | '\t'..='\r');
    defined_pieces(scheme, text, is_space)
        .iter()
        .flat_map(cut)
        .collect()
}

/// Replaces each run of numeric characters, with single separators inside, by one `0`.
fn without_numbers(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let numeric = |at: usize| chars.get(at).is_some_and(|c| c.is_numeric());
    let separates = |at: usize| {
        chars
            .get(at)
            .is_some_and(|c| ".,':\u{a0}\u{202f}".contains(*c))
    };
    let mut out = String::new();
    let mut at = 0;
    while at < chars.len() {
        if !numeric(at) {
            out.push(chars[at]);
            at += 1;
            continue;
        }
        out.push('0');
        while numeric(at) || separates(at) && numeric(at + 1) {
            at += 1;
        }
    }
    out
}

fn words(scheme: &Scheme, text: &str) -> Vec<String> {
    let mut words = Vec::new();
    Segmenter::new(scheme).words(text, |word| words.push(word.to_owned()));
    words
}

/// Generates texts that are mostly ASCII, mixed with cases that are hard to segment and arbitrary characters.
pub(crate) fn any_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        6 => "[a-zA-Z0-9_.,;:' \t\r\n-]{0,40}",
        2 => prop::sample::select(vec![
            "e\u{301}", "\u{c9}", "\u{3a3}", "\u{39f}\u{3a3}", "\u{130}", "\u{df}", "\u{fb01}",
            "\u{6f22}\u{5b57}", "\u{30ab}\u{30bf}", "\u{ac00}", "\u{e01}\u{e33}", "\u{928}\u{93f}",
            "\u{1f468}\u{200d}\u{1f469}", "\u{2019}", "\u{ff21}", "\u{a0}", "\u{3000}", "\0",
            "\u{b7}", "\u{b2}", "\u{60c}", "\u{30fc}", "\u{ff0c}", "\u{ff1a}", "\u{2014}", "\u{43b}\u{416}",
            "\u{301}", "\u{5d0}\u{22}\u{5d1}", "\u{661}\u{66b}\u{662}", "\u{2460}", "\u{200d}",
            "\u{ad}", "\u{200b}", "\u{feff}", "a\u{ad}b", "\u{fe0f}", "\u{640}\u{64e}", "\u{627}\u{654}",
            "\u{ff76}\u{ff9e}", "\u{201c}", "\u{2011}", "\u{3164}", "\u{439}",
        ]).prop_map(str::to_owned),
        1 => "\\PC{0,6}",
        1 => prop::sample::select(vec![" ", "\n", "___", "a", "1"]).prop_map(|s| s.repeat(70)),
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

/// One or two characters of each class that has a fast path.
const COMMON: &str = "aZ\u{e9}\u{436}09\u{663}\u{ff11}_:\u{b7},;\u{60c}.'\u{2019}\u{30a2}\u{30fc}\u{6f22}\u{3042}\u{b2}-\u{2014}\u{3002}\"";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn words_are_those_of_the_definition(scheme in any_plain_scheme(), text in any_text()) {
        let scheme = scheme.mask(Mask::default());
        prop_assert_eq!(words(&scheme, &text), defined_words(&scheme, &text));
    }

    #[test]
    fn masked_numbers_are_those_of_the_definition(scheme in any_plain_scheme(), text in any_text()) {
        let plain = scheme.mask(Mask::default());
        let masked = scheme.mask(Mask { numbers: true, dates: false });
        prop_assert_eq!(words(&masked, &text), words(&plain, &without_numbers(&seen(&plain, &text))));
    }

    #[test]
    fn common_characters_are_cut_as_the_unicode_crate_does(
        chars in prop::collection::vec(prop::sample::select(COMMON.chars().collect::<Vec<_>>()), 0..60)
    ) {
        let text = format!("\u{e9}{}", String::from_iter(chars));
        let scheme = Scheme::default().case(Case::Keep);
        let expected: Vec<&str> = text.unicode_words().collect();
        prop_assert_eq!(words(&scheme, &text), expected);
    }

    #[test]
    fn ascii_words_are_those_of_the_unicode_crate(text in "[ -~]{0,300}") {
        let scheme = Scheme::default().case(Case::Keep);
        let expected: Vec<&str> = text.unicode_words().collect();
        prop_assert_eq!(words(&scheme, &text), expected);
    }

    #[test]
    fn a_segmenter_forgets_the_text_before(first in any_text(), second in any_text()) {
        let scheme = Scheme::default();
        let mut segmenter = Segmenter::new(&scheme);
        segmenter.words(&first, |_| ());
        let mut found = Vec::new();
        segmenter.words(&second, |word| found.push(word.to_owned()));
        prop_assert_eq!(found, defined_words(&scheme, &second));
    }
}

#[test]
fn long_texts_and_long_pieces_are_cut_alike() {
    let long_word = "abc".repeat(10_000);
    let no_space = "a.b,1,2;c ".replace(' ', "-").repeat(5_000);
    let mixed = "plain words here \u{fc}ber caf\u{e9} and then some ".repeat(3_000);
    let chinese = "\u{6f22}\u{5b57}\u{4eec}\u{3002}".repeat(9_000);
    let edge = |len: usize| {
        format!(
            "{} \u{e9}t\u{e9} {}",
            "x ".repeat(len / 2),
            "it's ".repeat(50)
        )
    };
    let mut texts = vec![long_word, no_space, mixed, chinese];
    texts.extend((8180..8200).map(edge));
    for segmentation in [Segmentation::Unicode, Segmentation::WordChars] {
        let scheme = Scheme::default().segmentation(segmentation);
        for text in &texts {
            assert!(
                words(&scheme, text) == defined_words(&scheme, text),
                "{:.40}",
                text
            );
        }
    }
}

#[test]
fn the_levels_of_instructions_agree_on_any_text() {
    let text = "The quick (\"brown\") fox can't jump 32.3 feet, right? _x_ a:b 1,5 \u{e9}t\u{e9} "
        .repeat(300);
    let scheme = Scheme::default();
    let expected = defined_words(&scheme, &text);
    for level in ["portable", "neon", "avx2", "avx512"] {
        // Tests that run at the same time may use the level set here, which does not change their results.
        if lookalike::force_level(level) {
            assert!(words(&scheme, &text) == expected, "{level}");
        }
    }
}

#[test]
fn word_chars_are_what_python_calls_word_characters() {
    let scheme = Scheme::default()
        .segmentation(Segmentation::WordChars)
        .normalization(Normalization::None);
    // A combining mark separates words, because Python's \w covers only letters, numbers and the underscore.
    assert_eq!(
        words(&scheme, "e\u{301}a it's 3.14 _ a_b \u{661}\u{b2}"),
        ["e", "a", "it", "s", "3", "14", "_", "a_b", "\u{661}\u{b2}"]
    );
}

#[test]
fn invisible_characters_change_no_word() {
    let text = "Extraordinary co-operation of 1,234 libraries, \u{e9}t\u{e9}.";
    let hidden = |mark: char| -> String {
        let each = text.chars().flat_map(|c| [c, mark]);
        each.collect()
    };
    for mask in ["none", "numbers", "numbers,dates"] {
        let scheme = Scheme::default().mask(mask.parse().unwrap());
        let chars = scheme.shingle("chars:5".parse().unwrap());
        let features = |scheme, text: &str| {
            let mut extractor = lookalike::FeatureExtractor::new(scheme);
            extractor.features(text).to_vec()
        };
        for mark in "\u{ad}\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}\u{fe0f}\u{e0041}".chars() {
            assert_eq!(
                words(&scheme, &hidden(mark)),
                words(&scheme, text),
                "{mark:?}"
            );
            assert_eq!(
                features(&chars, &hidden(mark)),
                features(&chars, text),
                "{mark:?}"
            );
        }
    }
    let plain = Scheme::default().normalization(Normalization::None);
    assert_eq!(words(&plain, "co\u{ad}op"), ["co\u{ad}op"]);
}

#[test]
fn a_piece_of_invisible_characters_alone_is_none() {
    let chars = Scheme::default().shingle("chars:64".parse().unwrap());
    let mut extractor = lookalike::FeatureExtractor::new(&chars);
    let apart = extractor.features("a \u{ad} \u{200b}\u{200d} b").to_vec();
    assert_eq!(apart, extractor.features("a b"));
    assert!(extractor.features("\u{ad} \u{feff}").is_empty());
}

#[test]
fn variants_fold_where_they_are_asked_for() {
    for (folding, text, alike) in [
        (
            "accents",
            "Caf\u{e9} \u{1f04} cafe\u{301}",
            "cafe \u{3b1} cafe",
        ),
        (
            "punctuation",
            "don\u{2019}t \u{5e6}\u{5d4}\u{5f4}\u{5dc}",
            "don't \u{5e6}\u{5d4}\"\u{5dc}",
        ),
        (
            "arabic",
            "\u{645}\u{64f}\u{62d}\u{640}\u{640}\u{645}\u{62f}",
            "\u{645}\u{62d}\u{645}\u{62f}",
        ),
        (
            "width",
            "\u{ff26}\u{ff55}\u{ff4c}\u{ff4c} \u{ff76}\u{ff9e}",
            "full \u{30ac}",
        ),
    ] {
        let plain = Scheme::default();
        let folds = plain.folding(folding.parse().unwrap());
        assert_eq!(words(&folds, text), words(&plain, alike), "{folding}");
        assert_ne!(words(&plain, text), words(&plain, alike), "{folding}");
    }
}

#[test]
fn letters_that_are_no_variants_stay() {
    let all = Scheme::default().folding("accents,punctuation,arabic,width".parse().unwrap());
    // Hindi vowel signs, Arabic alef with hamza, German sharp s, Danish o with stroke.
    for text in [
        "\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940}",
        "\u{623}\u{62d}\u{645}\u{62f}",
        "stra\u{df}e",
        "\u{f8}l",
    ] {
        assert_eq!(words(&all, text), words(&Scheme::default(), text), "{text}");
    }
}
