//! Word-break classes of common characters, so that most pieces need no search in Unicode tables.
//!
//! A character is *common* if it has one of the classes below, is its own NFC form in every context, and has a lower case of one character that does
//! not depend on its neighbours. For common characters the rules of UAX #29 shrink to [`joins`]. All others (combining marks, Hebrew, Indic and Thai
//! letters, emoji, the capital sigma, ...) take the general path. A test compares every character with the tables.

use std::sync::LazyLock;

/// Class of a common character at a word boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum BoundaryClass {
    /// Not common.
    Other,
    /// Never part of a word.
    Break,
    /// ALetter.
    Letter,
    /// Numeric.
    Digit,
    /// ExtendNumLet: `_`.
    Underscore,
    /// Katakana.
    Katakana,
    /// A word by itself: ideographs, hiragana, superscript digits.
    Alone,
    /// MidLetter: joins letters.
    MidLetter,
    /// MidNum: joins digits.
    MidNum,
    /// MidNumLet and Single_Quote: joins letters and digits.
    MidNumLet,
}

use BoundaryClass::{
    Alone, Break, Digit, Katakana, Letter, MidLetter, MidNum, MidNumLet, Other, Underscore,
};

impl BoundaryClass {
    /// Returns true if a segment that contains such a character is a word.
    pub(super) const fn is_alphanumeric(self) -> bool {
        matches!(self, Letter | Digit | Katakana | Alone)
    }
}

/// Characters below this are looked up in a table; the others are compared with a few ranges.
const TABLE_LEN: usize = 0x3100;

#[rustfmt::skip]
const RANGES: &[(u16, u16, BoundaryClass)] = &[
    // ASCII, without white space, which no piece contains
    (0x00, 0x08, Break), (0x0E, 0x1F, Break), (0x21, 0x7F, Break), (0x30, 0x39, Digit), (0x41, 0x5A, Letter), (0x61, 0x7A, Letter),
    (0x5F, 0x5F, Underscore), (0x3A, 0x3A, MidLetter), (0x2C, 0x2C, MidNum), (0x3B, 0x3B, MidNum),
    (0x27, 0x27, MidNumLet), (0x2E, 0x2E, MidNumLet),
    // Latin-1
    (0x80, 0xA8, Break), (0xAA, 0xAA, Letter), (0xAB, 0xAC, Break), (0xAF, 0xB1, Break),
    (0xB2, 0xB3, Alone), (0xB4, 0xB4, Break), (0xB5, 0xB5, Letter), (0xB6, 0xB6, Break),
    (0xB7, 0xB7, MidLetter), (0xB9, 0xB9, Alone), (0xBA, 0xBA, Letter), (0xBB, 0xBB, Break),
    (0xBC, 0xBE, Alone), (0xBF, 0xBF, Break), (0xC0, 0xD6, Letter), (0xD7, 0xD7, Break),
    (0xD8, 0xF6, Letter), (0xF7, 0xF7, Break),
    // Latin, without the capital I with dot above, whose lower case has two characters
    (0xF8, 0x12F, Letter), (0x131, 0x2C1, Letter), (0x1E00, 0x1EFF, Letter),
    // Greek, without the capital sigma
    (0x386, 0x386, Letter), (0x388, 0x38A, Letter), (0x38C, 0x38C, Letter),
    (0x38E, 0x3A1, Letter), (0x3A4, 0x3F5, Letter), (0x3F7, 0x3FF, Letter),
    // Cyrillic
    (0x400, 0x481, Letter), (0x48A, 0x52F, Letter),
    // Arabic
    (0x60C, 0x60D, MidNum), (0x61B, 0x61B, Break), (0x61D, 0x61F, Break), (0x620, 0x64A, Letter),
    (0x660, 0x669, Digit), (0x66A, 0x66A, Break), (0x671, 0x6D3, Letter), (0x6D4, 0x6D4, Break),
    (0x6D5, 0x6D5, Letter),
    // Punctuation
    (0x2010, 0x2017, Break), (0x2018, 0x2019, MidNumLet), (0x201A, 0x2023, Break),
    (0x2024, 0x2024, MidNumLet), (0x2025, 0x2026, Break), (0x2027, 0x2027, MidLetter),
    (0x2030, 0x203B, Break), (0x20A0, 0x20C0, Break), (0x2190, 0x2193, Break),
    (0x2500, 0x25A9, Break),
    // Ideographic punctuation, hiragana, katakana
    (0x3001, 0x3004, Break), (0x3008, 0x3020, Break), (0x3041, 0x3096, Alone),
    (0x309D, 0x309F, Alone), (0x30A1, 0x30FA, Katakana), (0x30FB, 0x30FB, Break),
    (0x30FC, 0x30FF, Katakana),
];

static TABLE: [BoundaryClass; TABLE_LEN] = {
    let mut table = [Other; TABLE_LEN];
    let mut range = 0;
    while range < RANGES.len() {
        let (first, last, class) = RANGES[range];
        let mut at = first as usize;
        while at <= last as usize {
            table[at] = class;
            at += 1;
        }
        range += 1;
    }
    table
};

/// Returns the class of `c`.
#[inline]
pub(super) fn class(c: char) -> BoundaryClass {
    match c as u32 {
        code @ 0..0x3100 => TABLE[code as usize],
        0x4E00..=0x9FFF | 0x3400..=0x4DBF => Alone,
        0xAC00..=0xD7A3 => Letter,
        0xFF10..=0xFF19 => Digit,
        0xFF21..=0xFF3A | 0xFF41..=0xFF5A => Letter,
        0xFF0C | 0xFF1B => MidNum,
        0xFF0E => MidNumLet,
        0xFF1A => MidLetter,
        0xFF01..=0xFF06 | 0xFF08..=0xFF0F | 0xFF1C..=0xFF20 | 0xFF3B..=0xFF3E => Break,
        0xFF40 | 0xFF5B..=0xFF65 => Break,
        _ => Other,
    }
}

static LOWER: LazyLock<Box<[u16]>> = LazyLock::new(|| {
    let lower = |code: u32| {
        let c = char::from_u32(code).filter(|&c| class(c) != Other);
        // Only common characters are looked up, and their lower case is one character.
        c.and_then(|c| c.to_lowercase().next())
            .map_or(0, |c| c as u16)
    };
    (0..0x1F00).map(lower).collect()
});

/// Returns the lower case of a common character.
#[inline]
pub(super) fn lower(c: char) -> char {
    let code = c as u32;
    match code {
        0..0x80 => c.to_ascii_lowercase(),
        0x80..0x1F00 => char::from_u32(LOWER[code as usize].into()).unwrap_or(c),
        0xFF21..=0xFF3A => char::from_u32(code + 0x20).unwrap_or(c),
        _ => c,
    }
}

/// Returns true if there is no word boundary before a character of class `at`: rules WB5 to WB13b for common characters. `before` has the classes of
/// the two preceding characters, the nearer last; `next` is the class of the following one.
#[inline]
pub(super) fn joins(before: [BoundaryClass; 2], at: BoundaryClass, next: BoundaryClass) -> bool {
    let middle = |class: BoundaryClass, of: BoundaryClass| match of {
        Letter => matches!(class, MidLetter | MidNumLet),
        Digit => matches!(class, MidNum | MidNumLet),
        _ => false,
    };
    let [far, near] = before;
    match (near, at) {
        // WB5, WB8 to WB10, WB13, WB13a and WB13b.
        (Letter | Digit | Underscore, Letter | Digit | Underscore)
        | (Katakana | Underscore, Katakana | Underscore) => true,
        // UAX #29 skips combining and format characters (WB4). They are not common, so none can be in between.
        (Letter | Digit, _) => middle(at, near) && next == near,
        // WB7 and WB11, seen from the second letter or digit.
        (_, Letter | Digit) => middle(near, at) && far == at,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use unicode_normalization::char::canonical_combining_class;
    use unicode_normalization::{IsNormalized, is_nfc_quick};
    use unicode_segmentation::UnicodeSegmentation;

    use super::*;

    /// Contexts in which characters of different word-break properties behave differently; `*` stands for the character.
    const PROBES: &[&str] = &[
        "a*",
        "*a",
        "1*",
        "*1",
        "_*",
        "*_",
        "**",
        "a*a",
        "1*1",
        "a:*",
        "*:a",
        "1,*",
        "*,1",
        ".*",
        "*'",
        "*\"*",
        "\u{5d0}*",
        "*\u{5d0}",
        "\u{5d0}'*",
        "\u{30a2}*",
        "*\u{30a2}",
        "\u{1f1e6}*",
        "*\u{1f1e6}",
        "*\u{301}*",
    ];

    fn bounds(c: char) -> Vec<usize> {
        let text = |probe: &&str| probe.replace('*', &c.to_string());
        PROBES
            .iter()
            .map(|probe| text(probe).split_word_bounds().count())
            .collect()
    }

    #[test]
    fn common_characters_act_as_their_class() {
        let example = |class: BoundaryClass| match class {
            Letter => '\u{e9}',
            Digit => '\u{663}',
            Underscore => '_',
            Katakana => '\u{30a2}',
            Alone => '\u{6f22}',
            Break => '\u{2014}',
            MidLetter => '\u{b7}',
            MidNum => '\u{60c}',
            MidNumLet => '\u{2024}',
            Other => '\u{301}',
        };
        let acts = [
            Letter, Digit, Underscore, Katakana, Alone, Break, MidLetter, MidNum, MidNumLet,
        ]
        .map(|class| (class, bounds(example(class))));
        let is_quote = |c| matches!(c, '\'' | '"' | '\u{85}');
        for c in ('\0'..=char::MAX).filter(|&c| class(c) != Other) {
            let found = class(c);
            assert_eq!(c.is_alphanumeric(), found.is_alphanumeric(), "{c:?}");
            assert_eq!(is_nfc_quick([c].into_iter()), IsNormalized::Yes, "{c:?}");
            assert_eq!(canonical_combining_class(c), 0, "{c:?}");
            assert!(c.to_lowercase().eq([lower(c)]), "{c:?}");
            // Quotes behave differently next to Hebrew letters, the line end next to marks; neither is common.
            let act = acts.iter().find(|act| act.0 == found).map(|act| &act.1);
            assert!(
                is_quote(c) || act == Some(&bounds(c)),
                "{c:?} is no {found:?}"
            );
        }
    }
}
