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
fn lower_case<'a>(piece: &str, buffer: &'a mut String) -> &'a str {
    buffer.clear();
    if piece.contains('\u{3A3}') {
        // What a capital sigma becomes depends on its neighbours: leave that to the library.
        buffer.push_str(&piece.to_lowercase());
    } else {
        buffer.extend(piece.chars().flat_map(char::to_lowercase));
    }
    buffer
}

/// General category L* or N*, or `_`: Python's `\w`.
pub(crate) fn is_word_char(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || c == '_';
    }
    matches!(
        c.general_category_group(),
        GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number
    )
}
