//! Folding of variants of characters, if the scheme asks for it ([`Folding`]).
//!
//! A piece is decomposed, loses the marks that do not count, has its variants replaced, and is composed again. ASCII never changes, so pieces of
//! ASCII need not come here.
//!
//! - *accents*: the combining marks of the blocks for Latin, Greek and Cyrillic (U+0300 to U+036F, U+1AB0 to U+1AFF, U+1DC0 to U+1DFF, U+20D0 to
//!   U+20FF, U+FE20 to U+FE2F) are removed. Vowel signs of other scripts are not accents.
//! - *punctuation*: single quotation marks, apostrophes and primes become `'`, double ones `"`, and dashes and minus signs `-`.
//! - *arabic*: tatweel, vowel signs and Koranic marks are removed. Madda and hamza are parts of letters and stay.
//! - *width*: a character with a `<wide>` or `<narrow>` decomposition becomes the usual one.

use unicode_normalization::UnicodeNormalization;

use crate::scheme::{Folding, Normalization};

/// Writes `piece`, folded and composed, to `out`. `usual` is scratch space.
pub(super) fn fold(
    piece: &str,
    form: Normalization,
    folding: Folding,
    usual: &mut String,
    out: &mut String,
) {
    usual.clear();
    for c in piece.chars() {
        // Only these characters: the compatibility decomposition of all would fold more than width.
        match folding.width && has_width(c) {
            true => usual.extend(std::iter::once(c).nfkd()),
            false => usual.push(c),
        }
    }
    let kept =
        |c: &char| !(folding.accents && is_accent(*c) || folding.arabic && is_arabic_sign(*c));
    let variant = |c| match folding.punctuation {
        true => punctuation(c),
        false => c,
    };
    // Decompose first, so that a composed character shows its base and its marks, and compose again at the end.
    out.clear();
    match form {
        Normalization::Nfkc => out.extend(usual.nfkd().filter(kept).map(variant).nfc()),
        Normalization::None | Normalization::Nfc => {
            out.extend(usual.nfd().filter(kept).map(variant).nfc());
        }
    }
}

/// Returns true for full-width ASCII and signs, half-width katakana and Hangul, and the ideographic space.
fn has_width(c: char) -> bool {
    matches!(c, '\u{3000}' | '\u{ff01}'..='\u{ffee}')
}

fn is_accent(c: char) -> bool {
    matches!(
        c,
        '\u{300}'..='\u{36f}'
            | '\u{1ab0}'..='\u{1aff}'
            | '\u{1dc0}'..='\u{1dff}'
            | '\u{20d0}'..='\u{20ff}'
            | '\u{fe20}'..='\u{fe2f}'
    )
}

fn is_arabic_sign(c: char) -> bool {
    matches!(
        c,
        '\u{640}'
            | '\u{610}'..='\u{61a}'
            | '\u{64b}'..='\u{652}'
            | '\u{656}'..='\u{65f}'
            | '\u{670}'
            | '\u{6d6}'..='\u{6dc}'
            | '\u{6df}'..='\u{6e4}'
            | '\u{6e7}'..='\u{6e8}'
            | '\u{6ea}'..='\u{6ed}'
            | '\u{8ca}'..='\u{8e1}'
            | '\u{8e3}'..='\u{8ff}'
    )
}

fn punctuation(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}'
        | '\u{2032}'
        | '\u{2035}'
        | '\u{2039}'..='\u{203a}'
        | '\u{2bb}'..='\u{2bc}'
        | '\u{55a}'
        | '\u{5f3}'
        | '\u{ff07}' => '\'',
        '\u{201c}'..='\u{201f}'
        | '\u{2033}'
        | '\u{2036}'
        | '\u{ab}'
        | '\u{bb}'
        | '\u{5f4}'
        | '\u{301d}'..='\u{301f}'
        | '\u{ff02}' => '"',
        '\u{2010}'..='\u{2015}'
        | '\u{2212}'
        | '\u{58a}'
        | '\u{5be}'
        | '\u{2e3a}'..='\u{2e3b}'
        | '\u{fe58}'
        | '\u{fe63}'
        | '\u{ff0d}' => '-',
        _ => c,
    }
}
