//! Lone surrogates in JSON text: `\ud800` without its other half is not a character.

use std::borrow::Cow;

/// Replaces every lone surrogate escape in JSON text by `\ufffd`. Borrows the text if there is none.
pub fn replace_lone(json: &str) -> Cow<'_, str> {
    let mut fixed = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &json.as_bytes()[at..]) {
        let escape = at + found;
        // Escapes are skipped one by one: in `\\ud800` the second backslash is escaped, and begins no escape.
        let (length, lone) = escape_at(&json.as_bytes()[escape..]);
        if lone {
            fixed.push_str(&json[copied..escape]);
            fixed.push_str("\\ufffd");
            copied = escape + length;
        }
        // A backslash at the very end has no character after it.
        at = (escape + length).min(json.len());
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    fixed.push_str(&json[copied..]);
    Cow::Owned(fixed)
}

/// Returns the length of the escape at the start of the bytes, and whether it is a lone surrogate.
fn escape_at(bytes: &[u8]) -> (usize, bool) {
    match unit(bytes) {
        // Any other escape; the parser decides whether it is valid.
        None => (2, false),
        Some(0xd800..=0xdbff) => match unit(&bytes[6..]) {
            Some(0xdc00..=0xdfff) => (12, false),
            _ => (6, true),
        },
        Some(0xdc00..=0xdfff) => (6, true),
        Some(_) => (6, false),
    }
}

/// Returns the UTF-16 unit of the `\uXXXX` at the start of the bytes.
pub(crate) fn unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |value: u16, digit| {
        let digit = (*digit as char).to_digit(16)?;
        Some(value << 4 | digit as u16)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lone_halves_are_replaced() {
        let cases = [
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""a\ud800b""#, r#""a\ufffdb""#),
            (r#""\udc00\ud800""#, r#""\ufffd\ufffd""#),
            (r#""\ud800\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\ud800""#, r#""\\ud800""#),
            (r#""\ud8""#, r#""\ud8""#),
            ("\\", "\\"),
            ("\\\u{fc}", "\\\u{fc}"),
        ];
        for (json, expected) in cases {
            assert_eq!(replace_lone(json), expected);
        }
    }
}
