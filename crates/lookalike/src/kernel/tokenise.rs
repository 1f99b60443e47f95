//! ASCII text to lower-cased bytes and word bounds.

use crate::text::Room;

/// What a word is, for ASCII.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Lower-case the bytes.
    pub lower: bool,
    /// Join words over `.`, `:`, `'`, `,` and `;` as UAX #29 does.
    pub join: bool,
}

/// How far a scan came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scan {
    /// Position of the first byte that is not ASCII, or the length of the text.
    pub len: usize,
    /// Whether any `_` was met.
    pub underscore: bool,
}

/// Copies the ASCII bytes at the front of `text` to the room, lower-cased if wished, and appends
/// the bounds of the words among them. A word that reaches the first other byte ends there.
pub(crate) fn scan(text: &[u8], rules: Rules, room: Room<'_>) -> Scan {
    let len = text
        .iter()
        .position(|byte| !byte.is_ascii())
        .unwrap_or(text.len());
    let ascii = &text[..len];
    for (to, from) in room.bytes.iter_mut().zip(ascii) {
        *to = if rules.lower {
            from.to_ascii_lowercase()
        } else {
            *from
        };
    }
    let mut inside = false;
    for at in 0..=len {
        let word = at < len && (is_word(ascii[at]) || (rules.join && joins(ascii, at)));
        if word != inside {
            room.bounds.push(room.base + at);
            inside = word;
        }
    }
    Scan {
        len,
        underscore: ascii.contains(&b'_'),
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Rules WB6, WB7, WB11 and WB12 of UAX #29.
fn joins(text: &[u8], at: usize) -> bool {
    let (Some(&before), Some(&after)) = (
        at.checked_sub(1).and_then(|at| text.get(at)),
        text.get(at + 1),
    ) else {
        return false;
    };
    let letters = before.is_ascii_alphabetic() && after.is_ascii_alphabetic();
    let digits = before.is_ascii_digit() && after.is_ascii_digit();
    match text[at] {
        b'.' | b'\'' => letters || digits,
        b':' => letters,
        b',' | b';' => digits,
        _ => false,
    }
}
