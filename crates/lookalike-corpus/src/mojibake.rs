//! Detection of text that was wrongly decoded earlier: UTF-8 that was read as windows-1252 and stored like that, `cafÃ©` for `café`. It is reported,
//! never changed: only the owner of the text knows what was meant.

use encoding_rs::WINDOWS_1252;
use memchr::memchr;

/// Minimum number of places; fewer may be chance, or a text about mojibake.
const MIN_MATCHES: usize = 3;

/// Returns true if the text has UTF-8 sequences read as windows-1252 in three places or more, and in more places than it has other accented letters.
/// O(length).
pub(crate) fn is_mojibake(text: &str) -> bool {
    // In UTF-8, all lead bytes of longer sequences, `Â` to `ô` as characters, begin with this byte.
    const LEADS: u8 = 0xc3;
    let bytes = text.as_bytes();
    let (mut wrong, mut other, mut at) = (0, 0, 0);
    // ASCII texts cost one search at the speed of memory; French and Spanish ones a check for each accent.
    while let Some(found) = memchr(LEADS, &bytes[at..]) {
        at += found;
        // In valid UTF-8, this byte always begins a character.
        match sequence(&text[at..]) {
            Some(length) => {
                wrong += 1;
                // Skip the whole sequence: its later characters are not leads themselves.
                at += length;
            }
            None => {
                other += 1;
                at += 2;
            }
        }
    }
    wrong >= MIN_MATCHES && wrong > other
}

/// Returns the length of a UTF-8 sequence whose bytes appear here as characters of windows-1252, if there is one.
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

/// Returns the low six bits of the byte that a character is in windows-1252, if that byte is between 0x80 and 0xbf.
fn continuation(c: char) -> Option<u8> {
    let code = u32::from(c);
    if let 0x80..=0xbf = code {
        return Some(code as u8 & 0x3f);
    }
    // Bytes 0x80 to 0x9F are printable characters in windows-1252, with other numbers in Unicode.
    match *WINDOWS_1252.encode(c.encode_utf8(&mut [0; 4])).0 {
        [byte @ 0x80..=0x9f] => Some(byte & 0x3f),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text as shown by a program that reads its UTF-8 as windows-1252.
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
            // A blank after a capital letter was taken for a byte that windows-1252 does not define.
            "AMANHÃ DE MANHÃ COM A IRMÃ DELA",
            &misread("one é and another é"),
        ] {
            assert!(!is_mojibake(text), "{text}");
        }
    }
}
