//! Invisible characters: those with the property `Default_Ignorable_Code_Point`.
//!
//! They are soft hyphens, zero-width spaces and joiners, bidirectional marks, variation selectors, Hangul fillers and the like. Unicode ignores them
//! wherever texts are matched: they have no weight in collation (UTS #10, section 4.3), and identifiers are compared without them (UAX #31, section
//! 2.3).

use std::borrow::Cow;

/// Returns true if `c` is a default-ignorable code point of Unicode 17; a test compares the whole table.
#[inline]
pub(super) const fn is_ignorable(c: char) -> bool {
    // The first two arms decide nearly all characters of the pieces that come here.
    match c {
        '\0'..='\u{10ff}' => matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}'),
        '\u{3165}'..='\u{fdff}' => false,
        _ => matches!(
            c,
            '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fff8}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        ),
    }
}

/// Returns `text` without invisible characters (default-ignorable code points), which schemes that normalise remove. Copies it only if it has any.
///
/// ```
/// assert_eq!(lookalike::text::without_ignorable("co\u{ad}op\u{200b}"), "coop");
/// ```
pub fn without_ignorable(text: &str) -> Cow<'_, str> {
    // Most texts are ASCII, which is checked at many bytes per cycle.
    match text.is_ascii() || !text.contains(is_ignorable) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(text.chars().filter(|&c| !is_ignorable(c)).collect()),
    }
}

#[cfg(test)]
mod tests {
    use regex_syntax::hir::{Class, HirKind};
    use unicode_normalization::UnicodeNormalization;

    use super::*;

    #[test]
    fn the_table_is_that_of_unicode() {
        let property = regex_syntax::parse(r"\p{Default_Ignorable_Code_Point}").unwrap();
        let HirKind::Class(Class::Unicode(class)) = property.kind() else {
            panic!("a property is a class of characters");
        };
        for c in '\0'..=char::MAX {
            let expected = class.iter().any(|r| r.start() <= c && c <= r.end());
            assert_eq!(is_ignorable(c), expected, "{c:?}");
        }
    }

    #[test]
    fn no_form_makes_an_ignorable_character_of_others() {
        for c in ('\0'..=char::MAX).filter(|&c| !is_ignorable(c)) {
            assert!(!c.nfkc().any(is_ignorable), "{c:?}");
        }
    }

    #[test]
    fn a_text_without_them_is_not_copied() {
        assert!(matches!(without_ignorable("na\u{ef}ve"), Cow::Borrowed(_)));
        assert_eq!(without_ignorable("co\u{ad}op\u{200b}"), "coop");
    }
}
