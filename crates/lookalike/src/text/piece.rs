//! One piece of text that is not ASCII: normalise, lower-case, cut by the Unicode tables.
//!
//! The slow road beside the kernel of `crate::kernel::tokenise`.

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick, is_nfkc_quick};
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};
use unicode_segmentation::UnicodeSegmentation;

use super::TextRules;
use crate::scheme::{Case, Normalization, Segmentation};

/// Normalises and cuts pieces, with buffers that are used again.
#[derive(Debug)]
pub(super) struct PieceReader {
    rules: TextRules,
    normal: String,
    lower: String,
}

impl PieceReader {
    pub(super) fn new(rules: TextRules) -> Self {
        Self {
            rules,
            normal: String::new(),
            lower: String::new(),
        }
    }

    /// Shows `visit` the words of `piece`.
    pub(super) fn words(&mut self, piece: &str, mut visit: impl FnMut(&str)) {
        let segmentation = self.rules.segmentation;
        let piece = self.fold(piece);
        match segmentation {
            Segmentation::Unicode => piece.unicode_words().for_each(&mut visit),
            Segmentation::WordChars => piece
                .split(|c| !is_word_char(c))
                .filter(|word| !word.is_empty())
                .for_each(&mut visit),
        }
    }

    /// The piece normalised and lower-cased.
    pub(super) fn fold<'a>(&'a mut self, piece: &'a str) -> &'a str {
        let Self {
            rules,
            normal,
            lower,
        } = self;
        let piece = normalize(piece, rules.normalization, normal);
        match rules.case {
            Case::Keep => piece,
            Case::Lower => lower_case(piece, lower),
        }
    }
}

fn normalize<'a>(piece: &'a str, form: Normalization, buffer: &'a mut String) -> &'a str {
    buffer.clear();
    match form {
        Normalization::Nfc if is_nfc_quick(piece.chars()) != IsNormalized::Yes => {
            buffer.extend(piece.nfc());
            buffer
        }
        Normalization::Nfkc if is_nfkc_quick(piece.chars()) != IsNormalized::Yes => {
            buffer.extend(piece.nfkc());
            buffer
        }
        _ => piece,
    }
}

/// `str::to_lowercase` into a buffer.
fn lower_case<'a>(piece: &'a str, buffer: &'a mut String) -> &'a str {
    if piece.chars().all(is_caseless) {
        return piece;
    }
    buffer.clear();
    if piece.contains('\u{3A3}') {
        // What a capital sigma becomes depends on its neighbours: leave that to the library.
        buffer.push_str(&piece.to_lowercase());
    } else {
        for c in piece.chars() {
            lower_char(c, buffer);
        }
    }
    buffer
}

fn lower_char(c: char, buffer: &mut String) {
    if c.is_ascii() {
        buffer.push(c.to_ascii_lowercase());
    } else if is_caseless(c) {
        buffer.push(c);
    } else {
        buffer.extend(c.to_lowercase());
    }
}

/// Blocks of which no character has a lower case, found without a table: general punctuation,
/// symbols from U+2E80 on, kana, bopomofo, CJK ideographs, Hangul syllables, full-width
/// punctuation. True only of characters that lower-casing leaves alone.
fn is_caseless(c: char) -> bool {
    matches!(c, '\u{2000}'..'\u{2100}' | '\u{2E80}'..'\u{A640}' | '\u{AC00}'..'\u{FB00}'
        | '\u{FF00}'..'\u{FF21}')
}

/// General category L* or N*, or `_`: Python's `\w`.
pub(crate) fn is_word_char(c: char) -> bool {
    match c {
        '\0'..'\u{80}' => c.is_ascii_alphanumeric() || c == '_',
        // CJK ideographs and Hangul syllables are letters; no need to search the table.
        '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}' => true,
        _ => matches!(
            c.general_category_group(),
            GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_cuts_agree_with_the_tables_for_every_character() {
        for c in '\0'..=char::MAX {
            if is_caseless(c) {
                assert!(c.to_lowercase().eq([c]), "{c:?} has a lower case");
            }
            use GeneralCategoryGroup::{Letter, Number};
            let word = c == '_' || matches!(c.general_category_group(), Letter | Number);
            assert_eq!(is_word_char(c), word, "{c:?}");
            if c < '\u{300}' {
                assert_eq!(is_nfc_quick([c].into_iter()), IsNormalized::Yes, "{c:?}");
            }
        }
    }

    #[test]
    fn lower_case_is_that_of_the_library() {
        let mut buffer = String::new();
        for text in [
            "",
            "ΟΔΟΣ ΣΑΣ Σ",
            "İstanbul ǅ",
            "ÀÉß straße",
            "漢字Ａ１",
            "\u{10400}K",
        ] {
            assert_eq!(lower_case(text, &mut buffer), text.to_lowercase(), "{text}");
        }
        for c in '\0'..=char::MAX {
            let text = String::from_iter(['x', c]);
            assert_eq!(lower_case(&text, &mut buffer), text.to_lowercase(), "{c:?}");
        }
    }
}
