//! Records that are not lines of their file, written as JSON lines of their fields.
//!
//! Web archives and tables use this: the reader of a format appends each record as one line of JSON to the chunk, so that the parser, the options for
//! fields, survivors and the output treat it like a record of a JSONL file. A [`JsonRow`] holds the position of the line and any problem with it.

use std::collections::BTreeMap;
use std::fmt::Display;

use xxhash_rust::xxh3::Xxh3;

use crate::block::{BLOCK, ByteBlock};
use crate::error::ReadError;
use crate::record::BadRecordKind;
use crate::source::{SkipKind, SkippedPart};

/// Maximum number of rows and skipped parts that one call of a reader adds.
pub(crate) const MAX_ROWS: usize = 1 << 14;

/// One record: a line of JSON, or the reason why there is none.
#[derive(Debug, Default)]
pub(crate) struct JsonRow {
    /// End of its line in the chunk's bytes, after the line feed; the line begins at the end of the previous row.
    pub(crate) end: usize,
    /// Offset of the record in the decompressed source; its number for tables without offsets.
    pub(crate) offset: u64,
    pub(crate) state: RowState,
    /// True if invalid characters, or values that JSON cannot represent, were replaced when the line was written.
    pub(crate) replaced: bool,
    /// The character set from which it was decoded, if any, and whether another one was declared.
    pub(crate) charset: Option<&'static str>,
    pub(crate) charset_wrong: bool,
    /// A PDF that contains the text of the record; the line has none.
    pub(crate) pdf: Option<Vec<u8>>,
    /// True if the archive holds only a part of the PDF, which is noted.
    pub(crate) is_pdf_cut: bool,
}

impl JsonRow {
    /// Adds the parts that are not in the bytes of the chunk to a checksum.
    pub(crate) fn add_to(&self, sum: &mut Xxh3) {
        sum.update(&(self.end as u64).to_le_bytes());
        match &self.state {
            RowState::Good | RowState::TooLong(None) => {}
            RowState::TooLong(Some(hash)) => sum.update(&hash.to_le_bytes()),
            RowState::Bad(kind, reason) => {
                sum.update(kind.name().as_bytes());
                sum.update(reason.as_bytes());
            }
        }
        if let Some(pdf) = &self.pdf {
            sum.update(pdf);
        }
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum RowState {
    /// The line holds the record.
    #[default]
    Good,
    /// The line holds everything except the text, which is longer than the limit. This is its hash, once the text has been read to its end.
    TooLong(Option<u128>),
    /// There is no line.
    Bad(BadRecordKind, String),
}

/// A source whose records become rows.
pub(crate) trait RowReader {
    /// Adds rows until `sink` has enough or the source ends. Returns true if it has ended.
    fn fill(&mut self, sink: &mut RowSink<'_>) -> Result<bool, ReadError>;

    /// Returns the number of bytes of the file that were consumed so far.
    fn disk_bytes(&self) -> u64;
}

/// The receiver of a reader's rows.
pub(crate) struct RowSink<'c> {
    /// The bytes of the chunk, to which lines are appended.
    pub(crate) bytes: &'c mut Vec<u8>,
    pub(crate) rows: Vec<JsonRow>,
    pub(crate) skips: &'c mut Vec<SkippedPart>,
    /// Number of bytes attached to the rows of the chunk.
    pub(crate) attached: &'c mut usize,
    /// Length of `bytes` at which the chunk is full.
    pub(crate) enough: usize,
}

impl RowSink<'_> {
    pub(crate) fn is_full(&self) -> bool {
        // The second limit is for rows without bytes, such as bad rows and damage: each holds its reason in memory.
        self.bytes.len() + *self.attached >= self.enough
            || self.rows.len() + self.skips.len() >= MAX_ROWS
    }

    /// Ends the line that was appended to `bytes`, and adds its row.
    pub(crate) fn push(&mut self, offset: u64, state: RowState, replaced: bool) {
        // A bad row ends where the previous row ends, so it has no bytes.
        if !matches!(state, RowState::Bad(..)) {
            self.bytes.push(b'\n');
        }
        self.rows.push(JsonRow {
            end: self.bytes.len(),
            offset,
            state,
            replaced,
            ..JsonRow::default()
        });
    }

    /// Sets the hash of the over-long text of the last row.
    pub(crate) fn set_long_hash(&mut self, hash: u128) {
        if let Some(row) = self.rows.last_mut() {
            row.state = RowState::TooLong(Some(hash));
        }
    }

    /// Attaches a PDF to the last row.
    pub(crate) fn attach_pdf(&mut self, bytes: Vec<u8>, is_cut: bool) {
        if let Some(row) = self.rows.last_mut() {
            *self.attached += bytes.len();
            (row.pdf, row.is_pdf_cut) = (Some(bytes), is_cut);
        }
    }

    pub(crate) fn bad(&mut self, offset: u64, kind: BadRecordKind, reason: String) {
        self.push(offset, RowState::Bad(kind, reason), false);
    }
}

/// A JSON object that is being written.
pub(crate) struct JsonObject<'b> {
    bytes: &'b mut Vec<u8>,
    is_empty: bool,
}

impl<'b> JsonObject<'b> {
    pub(crate) fn begin(bytes: &'b mut Vec<u8>) -> JsonObject<'b> {
        bytes.push(b'{');
        JsonObject {
            bytes,
            is_empty: true,
        }
    }

    /// Writes a name; the caller writes the value after it.
    pub(crate) fn name(&mut self, name: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.is_empty) {
            self.bytes.push(b',');
        }
        string(self.bytes, name);
        self.bytes.push(b':');
        self.bytes
    }

    pub(crate) fn text(&mut self, name: &str, value: &str) {
        string(self.name(name), value);
    }

    /// Writes a number in its `Display` form.
    pub(crate) fn number(&mut self, name: &str, value: impl Display) {
        let text = value.to_string();
        self.name(name).extend_from_slice(text.as_bytes());
    }

    pub(crate) fn texts(&mut self, name: &str, values: &[String]) {
        serde_json::to_writer(self.name(name), values).expect("a vector takes every byte");
    }

    pub(crate) fn end(self) {
        self.bytes.push(b'}');
    }
}

/// Appends a JSON string.
pub(crate) fn string(bytes: &mut Vec<u8>, text: &str) {
    // Enough for most texts. Escapes are rare enough to let the vector grow.
    bytes.reserve(text.len() + 2);
    bytes.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let (plain, special) = rest.split_at(plain_length(rest));
        bytes.extend_from_slice(plain);
        let Some((&byte, after)) = special.split_first() else {
            break;
        };
        escape(bytes, byte);
        rest = after;
    }
    bytes.push(b'"');
}

/// Returns the number of bytes before the first one that must be escaped in a JSON string.
fn plain_length(bytes: &[u8]) -> usize {
    let mut at = 0;
    // Sixteen bytes per step. Prose has about one escape per line, so a longer stride would not pay off.
    while let Some(block) = bytes[at..].first_chunk() {
        let block = ByteBlock::new(block);
        let special = block.equal(b'"') | block.equal(b'\\') | block.at_most(b' ' - 1);
        if special != 0 {
            return at + special.trailing_zeros() as usize;
        }
        at += BLOCK;
    }
    // Only these must be escaped (RFC 8259, section 7). DEL and non-ASCII characters stay as they are.
    let special = |byte: &u8| matches!(byte, b'"' | b'\\' | ..b' ');
    let rest = &bytes[at..];
    at + rest.iter().position(special).unwrap_or(rest.len())
}

/// Appends the escape of a quote, a backslash or a control character.
fn escape(bytes: &mut Vec<u8>, byte: u8) {
    let letter = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => {
            let digit = |value: u8| b"0123456789abcdef"[usize::from(value)];
            bytes.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)]);
            return;
        }
    };
    bytes.extend_from_slice(&[b'\\', letter]);
}

/// Counts the parts of a source that are not documents, by kind, with the first part of each kind.
#[derive(Debug, Default)]
pub(crate) struct SkipNotes(BTreeMap<SkipKind, (u64, u64, String)>);

impl SkipNotes {
    pub(crate) fn add(&mut self, kind: SkipKind, offset: u64, reason: impl FnOnce() -> String) {
        let note = self.0.entry(kind);
        // Only the reason of the first one, so that the reasons of millions of requests and images are never built.
        note.or_insert_with(|| (0, offset, reason())).0 += 1;
    }

    /// Returns one [`SkippedPart`] for each kind, and clears the counts.
    pub(crate) fn drain(&mut self, name: &str) -> impl Iterator<Item = SkippedPart> {
        let notes = std::mem::take(&mut self.0);
        notes
            .into_iter()
            .map(move |(kind, (count, offset, reason))| SkippedPart {
                offset: Some(offset),
                count,
                ..SkippedPart::new(name, kind, reason)
            })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn strings_are_those_of_serde_json(text in "([a-z \"\\\\/\u{e9}]|\\PC|[\u{0}-\u{20}\u{7f}]){0,90}") {
            let mut bytes = b"before".to_vec();
            string(&mut bytes, &text);
            let expected = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(&bytes[6..], expected.as_bytes());
        }
    }
}
