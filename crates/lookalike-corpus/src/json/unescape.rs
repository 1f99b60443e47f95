//! JSON strings: finds their ends and unescapes them.
//!
//! Escapes are frequent in JSON with HTML or prose with line breaks, so strings are first processed in blocks that are copied and searched at once,
//! before calling a longer search pays off.

use memchr::memchr2;

use crate::block::{BLOCK, ByteBlock};
use crate::surrogate::unit;

/// A buffer for one unescaped string. It only grows.
#[derive(Debug, Default)]
pub(crate) struct UnescapeBuffer {
    bytes: Vec<u8>,
    length: usize,
}

impl UnescapeBuffer {
    /// Returns the last string.
    pub(crate) fn text(&self) -> &str {
        // Checked again instead of trusted: that is cheap compared with the rest, and avoids unsafe code.
        let text = simdutf8::basic::from_utf8(&self.bytes[..self.length]);
        text.expect("a string without its escapes is still UTF-8")
    }

    pub(crate) fn set(&mut self, text: &str) {
        self.bytes.clear();
        self.bytes.extend_from_slice(text.as_bytes());
        self.length = text.len();
    }

    /// Unescapes the string whose content begins at `at`. Returns the position of its closing quote, or `None` if it has none or contains an invalid
    /// escape.
    pub(super) fn unescape(&mut self, bytes: &[u8], mut at: usize) -> Option<usize> {
        // An escape is never shorter than its character; the last block may overhang.
        let most = bytes.len() - at + BLOCK;
        // Never cleared, so that zeros are written once, not for each string.
        if self.bytes.len() < most {
            self.bytes.resize(most, 0);
        }
        self.length = 0;
        loop {
            at = self.copy_plain(bytes, at)?;
            if bytes[at] == b'"' {
                return Some(at);
            }
            let (c, length) = escape(&bytes[at..])?;
            self.push(c);
            at += length;
        }
    }

    /// Copies up to the next quote or backslash, and returns its position.
    fn copy_plain(&mut self, bytes: &[u8], mut at: usize) -> Option<usize> {
        while let Some(block) = bytes[at..].first_chunk::<BLOCK>() {
            // Copies the whole block, without a branch on its length; the excess is overwritten next.
            self.bytes[self.length..self.length + BLOCK].copy_from_slice(block);
            let plain = plain_bytes(block);
            at += plain;
            self.length += plain;
            if plain < BLOCK {
                return Some(at);
            }
        }
        let rest = bytes[at..].iter().position(|byte| is_special(*byte))?;
        // Fewer than 16 bytes remain in the line, so this is its last field.
        self.bytes[self.length..self.length + rest].copy_from_slice(&bytes[at..at + rest]);
        self.length += rest;
        Some(at + rest)
    }

    fn push(&mut self, c: char) {
        let end = self.length + c.len_utf8();
        c.encode_utf8(&mut self.bytes[self.length..end]);
        self.length = end;
    }
}

/// Returns the position of the closing quote of the string whose content begins at `at`, or `None` as above.
pub(super) fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at = next_special(bytes, at)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += escape(&bytes[at..])?.1;
    }
}

/// Returns the position of the next quote or backslash.
pub(super) fn next_special(bytes: &[u8], mut at: usize) -> Option<usize> {
    for _ in 0..BLOCKS_FIRST {
        let Some(block) = bytes[at..].first_chunk::<BLOCK>() else {
            break;
        };
        let plain = plain_bytes(block);
        at += plain;
        if plain < BLOCK {
            return Some(at);
        }
    }
    Some(at + memchr2(b'"', b'\\', &bytes[at..])?)
}

/// Number of blocks to check before calling memchr, which takes longer strides.
const BLOCKS_FIRST: usize = 4;

fn is_special(byte: u8) -> bool {
    byte == b'"' || byte == b'\\'
}

/// Returns the number of bytes before the first quote or backslash.
fn plain_bytes(block: &[u8; BLOCK]) -> usize {
    let block = ByteBlock::new(block);
    let special = block.equal(b'"') | block.equal(b'\\');
    // The bit after the last byte means that there is none.
    (special | 1 << BLOCK).trailing_zeros() as usize
}

/// Decodes the escape at the start of the bytes. Returns its character and its length.
fn escape(bytes: &[u8]) -> Option<(char, usize)> {
    let c = match bytes.get(1)? {
        b'n' => '\n',
        c @ (b'"' | b'\\' | b'/') => *c as char,
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'u' => return unicode_escape(bytes),
        _ => return None,
    };
    Some((c, 2))
}

fn unicode_escape(bytes: &[u8]) -> Option<(char, usize)> {
    let first = unit(bytes)?;
    if let Some(c) = char::from_u32(u32::from(first)) {
        return Some((c, 6));
    }
    // A high surrogate must be followed directly by its low one (RFC 8259, section 7). With a lone one, the slow walk takes over the line, and its
    // error is then repaired or reported.
    let second = unit(&bytes[6..])?;
    let c = char::decode_utf16([first, second]).next()?.ok()?;
    Some((c, 12))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Unescapes with serde_json, for comparison. Also returns `None` if the string is not closed.
    fn oracle(content: &str) -> Option<String> {
        let quoted = format!("\"{content}");
        let mut values = serde_json::Deserializer::from_str(&quoted).into_iter::<String>();
        values.next()?.ok()
    }

    fn check(content: &str) {
        let mut buffer = UnescapeBuffer::default();
        let end = buffer.unescape(content.as_bytes(), 0);
        let expected = oracle(content);
        assert_eq!(end.is_some(), expected.is_some(), "{content}");
        if let Some(expected) = expected {
            assert_eq!(buffer.text(), expected);
        }
        assert_eq!(string_end(content.as_bytes(), 0), end, "{content}");
    }

    #[test]
    fn strings_end_and_say_what_serde_says() {
        for content in [
            "\"",
            "",
            "abc\"",
            "abc",
            "1234567\"",
            "12345678\"9",
            "12345678\\n\"",
            "\\",
            "\\u",
            "\\u00e\"",
            "\\u00e9\"",
            "\\ud83d\\ude00\"",
            "\\ud83d\"",
            "\\ud83dx\\ude00\"",
            "\\ude00\"",
            "\\x\"",
            "\u{e9}\\\"\u{4e2d}\\\\\" x",
            "!#[]\u{a2}\u{dc}\"",
        ] {
            check(content);
        }
    }

    proptest! {
        #[test]
        fn any_string_says_what_serde_says(
            pieces in proptest::collection::vec(prop_oneof![
                "[ !#-~]{0,40}", "\\\\[\"/bfnrtux\\\\]", "\\\\u[0-9a-fA-F]{4}",
                "\\\\ud8[0-9]{2}\\\\udc[0-9]{2}", "[\u{80}-\u{10ffff}]{0,3}",
            ], 0..10),
            closed: bool,
        ) {
            check(&format!("{}{}", pieces.concat(), if closed { "\" tail" } else { "" }));
        }
    }
}
