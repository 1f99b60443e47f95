//! One piece of text that is not ASCII: normalisation, lower-casing, words.
//!
//! This is the slow path beside the kernel of `crate::kernel::tokenise`. Pieces of common characters (see `super::class`) are handled here in one
//! pass, all others by the libraries with the Unicode tables.

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick, is_nfkc_quick};
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};
use unicode_segmentation::UnicodeSegmentation;

use super::TextRules;
use super::class::{self, BoundaryClass};
use super::fold;
use super::ignorable::is_ignorable;
#[cfg(feature = "languages")]
use crate::language::dictionary::{self, RunDictionary};
use crate::scheme::{Case, Normalization, Segmentation};

/// Normalises and cuts pieces, with reused buffers.
#[derive(Debug, Clone)]
pub(super) struct PieceReader {
    rules: TextRules,
    /// A piece without its ignorable characters.
    seen: String,
    normal: String,
    lower: String,
    /// Classes of the characters of a common piece, with their bytes in `lower`. A long piece has one of these for each character.
    steps: Vec<(BoundaryClass, u8)>,
}

impl PieceReader {
    pub(super) fn new(rules: TextRules) -> Self {
        Self {
            rules,
            seen: String::new(),
            normal: String::new(),
            lower: String::new(),
            steps: Vec::new(),
        }
    }

    /// Calls `visit` with the words of `piece`.
    pub(super) fn words(&mut self, piece: &str, mut visit: impl FnMut(&str)) {
        self.cut(piece, |_, word| visit(word));
    }

    /// Calls `visit` with the words of `piece`, each with the dictionary of the run that it begins in.
    #[cfg(feature = "languages")]
    pub(super) fn words_by_run(&mut self, piece: &str, mut visit: impl FnMut(&str, RunDictionary)) {
        let mut runs: Vec<(usize, RunDictionary)> = Vec::new();
        let mut at = 0;
        self.cut(piece, |folded, word| {
            if runs.is_empty() {
                runs.extend(run_ends(folded));
            }
            // The word is a slice of the folded piece.
            let begin = word.as_ptr().addr() - folded.as_ptr().addr();
            // Words come in order, so each run is passed once.
            while runs[at].0 <= begin {
                at += 1;
            }
            visit(word, runs[at].1);
        });
    }

    /// Calls `visit` with the folded piece and each of its words, which is a slice of it.
    fn cut(&mut self, piece: &str, mut visit: impl FnMut(&str, &str)) {
        let segmentation = self.rules.segmentation;
        // One pass handles case and boundaries of nearly all pieces of European, Arabic and East Asian texts. The cost for the others is this one
        // additional pass.
        if !segmentation.is_word_chars() && self.fold_common(piece) {
            #[cfg(feature = "languages")]
            if segmentation == Segmentation::Languages && dictionary::has_runs(&self.lower) {
                return dictionary::words(&self.lower, |word| visit(&self.lower, word));
            }
            return common_words(&self.lower, &self.steps, |word| visit(&self.lower, word));
        }
        let folded = self.fold_any(piece);
        let visit = |word: &str| visit(folded, word);
        match segmentation {
            Segmentation::WordChars => folded
                .split(|c| !is_word_char(c))
                .filter(|word| !word.is_empty())
                .for_each(visit),
            #[cfg(feature = "languages")]
            Segmentation::Languages if dictionary::has_runs(folded) => {
                dictionary::words(folded, visit);
            }
            _ => folded.unicode_words().for_each(visit),
        }
    }

    /// Returns the piece normalised, folded and lower-cased; may be empty.
    pub(super) fn fold<'a>(&'a mut self, piece: &'a str) -> &'a str {
        if self.fold_common(piece) {
            &self.lower
        } else {
            self.fold_any(piece)
        }
    }

    /// Puts the folded piece into `lower` and its classes into `steps`, and returns true, if all of its characters are common.
    fn fold_common(&mut self, piece: &str) -> bool {
        if self.rules.normalization == Normalization::Nfkc || !self.rules.folding.is_none() {
            // Common characters are their own NFC form, but not always their own NFKC form, and some have variants.
            return false;
        }
        let lower = self.rules.case == Case::Lower;
        self.lower.clear();
        self.steps.clear();
        for c in piece.chars() {
            let class = class::class(c);
            if class == BoundaryClass::Other {
                // Skip it here, too, so that a soft hyphen does not send its piece down the slow path.
                if self.rules.strips_ignorable() && is_ignorable(c) {
                    continue;
                }
                return false;
            }
            let c = if lower { class::lower(c) } else { c };
            self.lower.push(c);
            self.steps.push((class, c.len_utf8() as u8));
        }
        true
    }

    /// Returns the folded piece, whatever its characters.
    fn fold_any<'a>(&'a mut self, piece: &'a str) -> &'a str {
        let rules = self.rules;
        // In the order of the definition: ignorable characters, normalisation and folding, case.
        let piece = match rules.strips_ignorable() && piece.contains(is_ignorable) {
            true => {
                self.seen.clear();
                let kept = piece.chars().filter(|&c| !is_ignorable(c));
                self.seen.extend(kept);
                &*self.seen
            }
            false => piece,
        };
        let piece = match rules.folding.is_none() {
            true => normalize(piece, rules.normalization, &mut self.normal),
            false => {
                // `lower` is unused until the end, so it serves as scratch space.
                let (lower, normal) = (&mut self.lower, &mut self.normal);
                fold::fold(piece, rules.normalization, rules.folding, lower, normal);
                &*self.normal
            }
        };
        match rules.case {
            Case::Keep => piece,
            Case::Lower => lower_case(piece, &mut self.lower),
        }
    }
}

/// Returns the end of each run of a piece, in bytes, with its dictionary.
#[cfg(feature = "languages")]
fn run_ends(piece: &str) -> impl Iterator<Item = (usize, RunDictionary)> {
    dictionary::runs(piece).scan(0, |end, (run, dictionary)| {
        *end += run.len();
        Some((*end, dictionary))
    })
}

/// Calls `visit` with the words of a piece of common characters.
fn common_words(piece: &str, steps: &[(BoundaryClass, u8)], mut visit: impl FnMut(&str)) {
    let (mut start, mut end, mut is_word) = (0, 0, false);
    let mut before = [BoundaryClass::Break; 2];
    for (at, &(class, bytes)) in steps.iter().enumerate() {
        // Rules WB6 and WB12 of UAX #29 look at the following character.
        let next = steps
            .get(at + 1)
            .map_or(BoundaryClass::Break, |step| step.0);
        if !class::joins(before, class, next) {
            if is_word {
                visit(&piece[start..end]);
            }
            (start, is_word) = (end, false);
        }
        is_word |= class.is_alphanumeric();
        end += usize::from(bytes);
        before = [before[1], class];
    }
    if is_word {
        visit(&piece[start..end]);
    }
}

fn normalize<'a>(piece: &'a str, form: Normalization, buffer: &'a mut String) -> &'a str {
    buffer.clear();
    match form {
        // The quick check (UAX #15, section 9) avoids a copy of nearly every piece.
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

/// Writes `str::to_lowercase` of `piece` to a buffer.
fn lower_case<'a>(piece: &str, buffer: &'a mut String) -> &'a str {
    buffer.clear();
    if piece.contains('\u{3A3}') {
        // Lowercasing a capital sigma depends on its neighbours, so leave it to the standard library.
        buffer.push_str(&piece.to_lowercase());
        return buffer;
    }
    for c in piece.chars() {
        match class::class(c) {
            BoundaryClass::Other => buffer.extend(c.to_lowercase()),
            _ => buffer.push(class::lower(c)),
        }
    }
    buffer
}

/// Returns true for general category L* or N*, or `_`: Python's `\w`.
pub(crate) fn is_word_char(c: char) -> bool {
    match c {
        '\0'..'\u{80}' => c.is_ascii_alphanumeric() || c == '_',
        // CJK ideographs and Hangul syllables are letters, so the table need not be searched.
        '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}' => true,
        _ => {
            use GeneralCategoryGroup::{Letter, Number};
            matches!(c.general_category_group(), Letter | Number)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_characters_are_those_of_the_table() {
        use GeneralCategoryGroup::{Letter, Number};
        for c in '\0'..=char::MAX {
            let word = c == '_' || matches!(c.general_category_group(), Letter | Number);
            assert_eq!(is_word_char(c), word, "{c:?}");
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
