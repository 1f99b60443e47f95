//! Words: the vector road and the Unicode road against the definition in the documentation.

use lookalike::scheme::Mask;
use lookalike::{Case, Normalization, Scheme, Segmentation, Segmenter};
use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};
use unicode_segmentation::UnicodeSegmentation;

use crate::scheme::any_plain_scheme;

/// Points 1 to 3 of the definition in `lookalike::text`, word by word.
pub(crate) fn defined_pieces(scheme: &Scheme, text: &str) -> Vec<String> {
    let space = [' ', '\t', '\n', '\r', '\x0b', '\x0c'];
    let normal = |piece: &str| match scheme.normalization {
        Normalization::None => piece.to_owned(),
        Normalization::Nfc => piece.nfc().collect(),
        Normalization::Nfkc => piece.nfkc().collect(),
    };
    let fold = |piece: String| match scheme.case {
        Case::Keep => piece,
        Case::Lower => piece.to_lowercase(),
    };
    text.split(space)
        .filter(|piece| !piece.is_empty())
        .map(normal)
        .map(fold)
        .collect()
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
    defined_pieces(scheme, text).iter().flat_map(cut).collect()
}

/// Each run of numeric characters, with single separators inside, as the one character 0.
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

/// Texts that are mostly ASCII, with what makes segmentation hard, and any characters.
pub(crate) fn any_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        6 => "[a-zA-Z0-9_.,;:' \t\r\n-]{0,40}",
        2 => prop::sample::select(vec![
            "e\u{301}", "\u{c9}", "\u{3a3}", "\u{39f}\u{3a3}", "\u{130}", "\u{df}", "\u{fb01}",
            "\u{6f22}\u{5b57}", "\u{30ab}\u{30bf}", "\u{ac00}", "\u{e01}\u{e33}", "\u{928}\u{93f}",
            "\u{1f468}\u{200d}\u{1f469}", "\u{2019}", "\u{ff21}", "\u{a0}", "\u{3000}", "\0",
            "\u{b7}", "\u{b2}", "\u{60c}", "\u{30fc}", "\u{ff0c}", "\u{ff1a}", "\u{2014}", "\u{43b}\u{416}",
            "\u{301}", "\u{5d0}\u{22}\u{5d1}", "\u{661}\u{66b}\u{662}", "\u{2460}", "\u{200d}",
        ]).prop_map(str::to_owned),
        1 => "\\PC{0,6}",
        1 => prop::sample::select(vec![" ", "\n", "___", "a", "1"]).prop_map(|s| s.repeat(70)),
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

/// One or two characters of each class that has a short cut.
const COMMON: &str = "aZ\u{e9}\u{436}09\u{663}\u{ff11}_:\u{b7},;\u{60c}.'\u{2019}\u{30a2}\u{30fc}\u{6f22}\u{3042}\u{b2}-\u{2014}\u{3002}\"";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn words_are_those_of_the_definition(scheme in any_plain_scheme(), text in any_text()) {
        let scheme = Scheme { mask: Mask::default(), ..scheme };
        prop_assert_eq!(words(&scheme, &text), defined_words(&scheme, &text));
    }

    #[test]
    fn masked_numbers_are_those_of_the_definition(scheme in any_plain_scheme(), text in any_text()) {
        let plain = Scheme { mask: Mask::default(), ..scheme };
        let masked = Scheme { mask: Mask { numbers: true, dates: false }, ..scheme };
        prop_assert_eq!(words(&masked, &text), words(&plain, &without_numbers(&text)));
    }

    #[test]
    fn common_characters_are_cut_as_the_unicode_crate_does(
        chars in prop::collection::vec(prop::sample::select(COMMON.chars().collect::<Vec<_>>()), 0..60)
    ) {
        let text = format!("\u{e9}{}", String::from_iter(chars));
        let scheme = Scheme { case: Case::Keep, ..Scheme::default() };
        let expected: Vec<&str> = text.unicode_words().collect();
        prop_assert_eq!(words(&scheme, &text), expected);
    }

    #[test]
    fn ascii_words_are_those_of_the_unicode_crate(text in "[ -~]{0,300}") {
        let scheme = Scheme { case: Case::Keep, ..Scheme::default() };
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
        let scheme = Scheme {
            segmentation,
            ..Scheme::default()
        };
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
        // Other tests may run at the level set here: results are the same at all of them.
        if lookalike::force_level(level) {
            assert!(words(&scheme, &text) == expected, "{level}");
        }
    }
}

#[test]
fn word_chars_are_what_python_calls_word_characters() {
    let scheme = Scheme {
        segmentation: Segmentation::WordChars,
        normalization: Normalization::None,
        ..Scheme::default()
    };
    // A combining mark separates: Python's \w holds letters, numbers and the underscore only.
    assert_eq!(
        words(&scheme, "e\u{301}a it's 3.14 _ a_b \u{661}\u{b2}"),
        ["e", "a", "it", "s", "3", "14", "_", "a_b", "\u{661}\u{b2}"]
    );
}
