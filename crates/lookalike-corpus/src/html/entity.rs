//! Character references: `&eacute;`, `&#233;`, `&#xe9;` and the legacy ones without a semicolon.

use htmlize::ENTITIES;

/// The value of a character reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntityValue {
    Char(char),
    /// One or two characters.
    Text(&'static str),
}

/// Maximum length of a reference name, including `&` and `;`.
const MAX_NAME: usize = 33;

/// Maximum length of a name that may lack a semicolon, including `&`.
const MAX_LEGACY_NAME: usize = 7;

/// Resolves the character reference at the start of `text`, which begins with `&`. Returns its value and length.
pub(super) fn decode(text: &str) -> Option<(EntityValue, usize)> {
    let bytes = text.as_bytes();
    match bytes.get(1)? {
        b'#' => numeric(bytes),
        b'a'..=b'z' | b'A'..=b'Z' => named(bytes),
        _ => None,
    }
}

fn named(bytes: &[u8]) -> Option<(EntityValue, usize)> {
    // Without the limit, a text with one long word after each `&` would take quadratic time.
    let window = &bytes[1..bytes.len().min(MAX_NAME)];
    let letters = window
        .iter()
        .position(|byte| !byte.is_ascii_alphanumeric())
        .unwrap_or(window.len());
    let end = 1 + letters;
    if bytes.get(end) == Some(&b';')
        && let Some(value) = lookup(&bytes[..=end])
    {
        return Some((value, end + 1));
    }
    // The longest known prefix counts: `&notit` is the sign for "not", then `it`.
    (2..=end.min(MAX_LEGACY_NAME))
        .rev()
        .find_map(|length| Some((lookup(&bytes[..length])?, length)))
}

fn lookup(name: &[u8]) -> Option<EntityValue> {
    let value = match name {
        // Nearly all references on pages are among these; the table costs a hash.
        b"&amp;" => "&",
        b"&lt;" => "<",
        b"&gt;" => ">",
        b"&quot;" => "\"",
        b"&nbsp;" => "\u{a0}",
        _ => std::str::from_utf8(ENTITIES.get(name)?).ok()?,
    };
    Some(EntityValue::Text(value))
}

fn numeric(bytes: &[u8]) -> Option<(EntityValue, usize)> {
    let (radix, start) = match bytes.get(2)? {
        b'x' | b'X' => (16, 3),
        _ => (10, 2),
    };
    let mut code: u32 = 0;
    let mut end = start;
    while let Some(digit) = bytes
        .get(end)
        .and_then(|byte| (*byte as char).to_digit(radix))
    {
        // Any number of digits: values beyond Unicode become U+FFFD. Saturation is safe, because the maximum of u32 is not a character, whatever
        // digits follow.
        code = code.saturating_mul(radix).saturating_add(digit);
        end += 1;
    }
    if end == start {
        return None;
    }
    let end = end + usize::from(bytes.get(end) == Some(&b';'));
    Some((EntityValue::Char(character(code)), end))
}

/// Returns the character with this number. Numbers for which the standard has controls mean characters of windows-1252.
fn character(code: u32) -> char {
    const WINDOWS_1252: [char; 32] = [
        '\u{20ac}', '\u{81}', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}',
        '\u{2021}', '\u{2c6}', '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\u{8d}', '\u{17d}',
        '\u{8f}', '\u{90}', '\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}', '\u{2022}', '\u{2013}',
        '\u{2014}', '\u{2dc}', '\u{2122}', '\u{161}', '\u{203a}', '\u{153}', '\u{9d}', '\u{17e}',
        '\u{178}',
    ];
    match code {
        // HTML, numeric character reference end state. Surrogates and values beyond U+10FFFF fail in `from_u32`, with the same result.
        0 => char::REPLACEMENT_CHARACTER,
        0x80..=0x9f => WINDOWS_1252[code as usize - 0x80],
        _ => char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(reference: &str) -> Option<(String, usize)> {
        decode(reference).map(|(value, length)| match value {
            EntityValue::Char(c) => (c.to_string(), length),
            EntityValue::Text(text) => (text.to_owned(), length),
        })
    }

    #[test]
    fn references_as_the_standard_has_them() {
        let cases = [
            ("&amp;x", Some(("&", 5))),
            ("&eacute;", Some(("\u{e9}", 8))),
            ("&eacute!", Some(("\u{e9}", 7))),
            ("&notit;", Some(("\u{ac}", 4))),
            ("&notin;", Some(("\u{2209}", 7))),
            ("&CounterClockwiseContourIntegral;", Some(("\u{2233}", 33))),
            ("&NotEqualTilde;", Some(("\u{2242}\u{338}", 15))),
            ("&hellip", None),
            ("&#233;", Some(("\u{e9}", 6))),
            ("&#xE9 ", Some(("\u{e9}", 5))),
            ("&#150;", Some(("\u{2013}", 6))),
            ("&#0;", Some(("\u{fffd}", 4))),
            ("&#xd800;", Some(("\u{fffd}", 8))),
            ("&#99999999999;", Some(("\u{fffd}", 14))),
            ("&#;", None),
            ("&#x;", None),
            ("&", None),
            ("& x", None),
            ("&nosuch;", None),
        ];
        for (reference, expected) in cases {
            let expected = expected.map(|(value, length)| (value.to_owned(), length));
            assert_eq!(text(reference), expected, "{reference}");
        }
    }

    #[test]
    fn every_name_fits_the_bounds() {
        for (name, _) in &ENTITIES {
            assert!(name.len() <= MAX_NAME, "{name:?}");
            if !name.ends_with(b";") {
                assert!(name.len() <= MAX_LEGACY_NAME, "{name:?}");
            }
            assert!(lookup(name).is_some());
        }
    }
}
