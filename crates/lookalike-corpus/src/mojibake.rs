//! Text that was decoded wrongly before it came here: UTF-8 read as windows-1252 and written down so, `cafÃ©` for
//! `café`. Told, never mended: what is meant is for the owner of the text to say.

use memchr::memchr;

/// Fewer places than this may be chance, or somebody who writes about it.
const LEAST: usize = 3;

/// Returns true if the text holds characters of UTF-8 read as windows-1252 in three places or more, and in more places than
/// it has other accented letters. O(length).
pub(crate) fn is_mojibake(text: &str) -> bool {
    // All first bytes of longer sequences, `Â` to `ô`, begin with this byte in UTF-8.
    const LEADS: u8 = 0xc3;
    let bytes = text.as_bytes();
    let (mut wrong, mut other, mut at) = (0, 0, 0);
    // Texts in ASCII cost one search at the speed of memory; those in French and Spanish a look at each accent.
    while let Some(found) = memchr(LEADS, &bytes[at..]) {
        at += found;
        // The byte begins a character wherever it stands in valid UTF-8.
        match sequence(&text[at..]) {
            Some(length) => {
                wrong += 1;
                // Past the whole sequence: its later characters are no leads of their own.
                at += length;
            }
            None => {
                other += 1;
                at += 2;
            }
        }
    }
    wrong >= LEAST && wrong > other
}

/// The length of a character of UTF-8 whose bytes stand here as characters of windows-1252, if there is one.
fn sequence(text: &str) -> Option<usize> {
    let mut chars = text.chars();
    let lead = u32::from(chars.next()?);
    let (more, mut code) = match lead {
        0xc2..=0xdf => (1, lead & 0x1f),
        0xe0..=0xef => (2, lead & 0x0f),
        0xf0..=0xf4 => (3, lead & 0x07),
        _ => return None,
    };
    for _ in 0..more {
        code = code << 6 | u32::from(continuation(chars.next()?)?);
    }
    // Overlong forms were never valid UTF-8 (RFC 3629, section 3), so no encoder wrote them.
    let shortest = [0x80, 0x800, 0x1_0000][more - 1];
    (code >= shortest && char::from_u32(code).is_some()).then(|| text.len() - chars.as_str().len())
}

/// The low six bits of the byte from 0x80 to 0xbf that a character is in windows-1252.
fn continuation(c: char) -> Option<u8> {
    let code = u32::from(c);
    if let 0x80..=0xbf = code {
        return Some(code as u8 & 0x3f);
    }
    // Bytes 0x80 to 0x9F are printable characters in windows-1252, elsewhere in Unicode than their numbers say.
    let place = WINDOWS_1252.iter().position(|known| *known == c)?;
    Some(place as u8)
}

/// Characters of windows-1252 from 0x80 to 0x9f; a space where it has none.
const WINDOWS_1252: [char; 32] = [
    '\u{20ac}', ' ', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}', '\u{2021}',
    '\u{2c6}', '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', ' ', '\u{17d}', ' ', ' ', '\u{2018}',
    '\u{2019}', '\u{201c}', '\u{201d}', '\u{2022}', '\u{2013}', '\u{2014}', '\u{2dc}', '\u{2122}',
    '\u{161}', '\u{203a}', '\u{153}', ' ', '\u{17e}', '\u{178}',
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The text as a program shows it that takes its UTF-8 for windows-1252.
    fn misread(text: &str) -> String {
        encoding_rs::WINDOWS_1252
            .decode_without_bom_handling(text.as_bytes())
            .0
            .into_owned()
    }

    #[test]
    fn misread_text_is_told_and_text_is_not() {
        for text in [
            "Größe, Maß und Übermut",
            "élève, déjà, garçon",
            "“quoted” – and more…",
            "你好，世界",
            "Паром ушёл",
            "three 😀 faces 😀 here 😀",
        ] {
            assert!(is_mojibake(&misread(text)), "{}", misread(text));
            assert!(!is_mojibake(text), "{text}");
        }
        for text in [
            "",
            "plain",
            "À la gare, « à » Noël, ça va, œuvre, où, ô, â, Â, É",
            "São João, ações, coração, à noite, É",
            "ÃÃÃ ÂÂÂ",
            &misread("one é and another é"),
        ] {
            assert!(!is_mojibake(text), "{text}");
        }
    }
}
