//! Records: one document each, or the reason why a record is not a document.

use std::borrow::Cow;
use std::ops::Range;

use lookalike::DocumentFields;
use serde::{Deserialize, Serialize};

use crate::field_path::TextFieldSet;
use crate::html::{Fallback, PageIdentity};
use crate::order_key::OrderKey;

/// One document. Borrows from the chunk and from its parser; copy the parts that must outlive the visit.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Record<'a> {
    /// Index into [`crate::Inputs::sources`].
    pub source: u32,
    /// Number of the record in its source, from 0. Bad records count, but blank lines do not.
    pub number: u64,
    /// Offset of its first byte in the decompressed source.
    pub offset: u64,
    /// The line without its terminator, or the decompressed bytes of the file. Empty if the document is too long.
    pub raw: &'a [u8],
    /// The user's id, otherwise `url`, otherwise `name:number` with the number counted from 1, where lost rows of Parquet count; for a file its name. A
    /// numeric id is its digits: `1` and `"1"` are the same id.
    pub id: Cow<'a, str>,
    /// True if the id was generated because the JSONL record has none.
    pub id_generated: bool,
    /// The text, decoded; for HTML, the extracted text. Empty unless the state is `Present`.
    pub text: Cow<'a, str>,
    /// The presence of a text.
    pub text_state: TextState,
    /// The text fields that the record has, if [`crate::InputOptions::text_field`] names several.
    pub text_fields: TextFieldSet,
    /// For a document that is too long, a hash of its bytes: 128 bits of BLAKE3. For a record of one line it covers the line; a file has one only
    /// with [`crate::InputOptions::read_long`], and only if it does not exceed the decompression limit.
    pub long_hash: Option<u128>,
    /// True if the id comes from the field that [`crate::InputOptions::id_field`] names.
    pub id_named: bool,
    /// The value of the order field, if the job uses one.
    pub order_key: OrderKey<'a>,
    /// The category, if the job uses one. `None` if the field is absent, null, or not a string, number or boolean, or if there is no URL.
    pub category: Option<Cow<'a, str>>,
    /// Anchors and links, if the job uses any.
    pub fields: DocumentFields,
    /// True if the record had invalid UTF-8, malformed legacy text or a lone surrogate, which was read in another character set or replaced by
    /// U+FFFD, or if a value of a table that JSON cannot represent became null: a list that is too long, a value that is nested too deeply, a time
    /// out of range, or one that is not in its dictionary.
    pub replaced: bool,
    /// The character set from which the file was decoded; `None` for JSONL, which is UTF-8.
    pub charset: Option<&'static str>,
    /// True if a header or the page declares a character set that the bytes contradict.
    pub charset_wrong: bool,
    /// True if the text was wrongly decoded earlier: `cafÃ©` for `café` in three places or more. It is left unchanged.
    pub mojibake: bool,
    /// True if a word mixes look-alike letters of Latin, Greek and Cyrillic. It is left unchanged.
    pub homoglyphs: bool,
    /// Counts of boilerplate that was removed from the text.
    pub removed: RemovedBoilerplate,
    /// The visible text, if the text is only a part of it and the parser was asked for it: see [`crate::Parser::with_visible`].
    pub visible: Option<VisibleText<'a>>,
    /// Reason why the text of a page is more than its main content, if it is.
    pub fallback: Fallback,
}

/// The visible text of a document whose text is only a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VisibleText<'a> {
    /// All of the visible text.
    pub whole: Cow<'a, str>,
    /// The visible text without lines that were learned as boilerplate, if it contained any.
    pub own: Option<Cow<'a, str>>,
    /// The subject of the page, if the text was chosen from an HTML page.
    pub page: Option<PageIdentity>,
}

impl VisibleText<'_> {
    /// Copies the texts, so that nothing is borrowed.
    #[must_use]
    pub fn to_static(&self) -> VisibleText<'static> {
        let owned = |text: &Cow<'_, str>| Cow::Owned(text.clone().into_owned());
        VisibleText {
            whole: owned(&self.whole),
            own: self.own.as_ref().map(owned),
            page: self.page,
        }
    }

    /// Returns the part that is not boilerplate.
    #[must_use]
    pub fn own(&self) -> &str {
        self.own.as_ref().unwrap_or(&self.whole)
    }
}

/// The presence of a text in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TextState {
    /// It has a text, possibly empty.
    Present,
    /// The field is absent or null.
    #[default]
    Missing,
    /// The document is larger than [`crate::InputOptions::max_document_bytes`].
    TooLong,
}

/// A record that cannot be read as a document. It keeps its number, and its bytes are still available for output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BadRecord {
    /// Index into [`crate::Inputs::sources`].
    pub source: u32,
    /// Number of the record in its source, from 0, as in [`Record::number`].
    pub number: u64,
    /// Line in the decompressed source, from 1, counting blank lines; 0 for a file, or a record of a table or archive.
    pub line: u64,
    /// Offset of its first byte in the decompressed source.
    pub offset: u64,
    /// The line without its terminator, as a range of the chunk's bytes.
    pub raw: Range<usize>,
    /// The reason, to be read after the name of the source and the line.
    pub reason: String,
    /// The kind of error, for counters.
    pub kind: BadRecordKind,
}

impl BadRecord {
    /// Returns its position in its source, for messages: `line 7`, or `record 7` if the source has no lines.
    pub fn place(&self) -> String {
        match self.line {
            0 => format!("record {}", self.number + 1),
            line => format!("line {line}"),
        }
    }
}

lookalike::words! {
    /// The kinds of [`BadRecord`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[non_exhaustive]
    pub enum BadRecordKind {
        /// The line is not JSON.
        InvalidJson = "invalid-json",
        /// The line is JSON, but not an object.
        NotAnObject = "not-an-object",
        /// The id or text field holds a value of the wrong type.
        WrongType = "wrong-type",
        /// The file's compressed data ends early or is corrupt.
        Damaged = "damaged",
        /// The file exceeds the decompression limit.
        Bomb = "bomb",
        /// A record of an archive that ends early, or whose length is wrong; a row of Parquet or Arrow with text that is not UTF-8.
        Broken = "broken",
        /// A broken record or row that takes an unknown number of those after it along.
        BrokenRun = "broken",
        /// A file that could not be converted to text.
        Conversion = "conversion",
        /// A row whose number of fields differs from the number of columns.
        Fields = "fields",
        /// A file that cannot be opened or read, or that changed since the job began.
        Unreadable = "unreadable",
    }
}

/// Counts of boilerplate that was removed from a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RemovedBoilerplate {
    /// Number of lines.
    pub lines: u64,
    /// Number of bytes in these lines, including line ends.
    pub bytes: u64,
    /// True if the text kept all its lines because next to nothing would have been left.
    pub kept_whole: bool,
    /// True if the document belongs to no site, so no lines were learned for it.
    pub without_site: bool,
}

/// The part of a record that a [`crate::RawRecord`] holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordPart {
    /// The whole record.
    Whole,
    /// The start of an over-long line; the other parts of the record follow directly.
    First,
    /// A middle part of an over-long line.
    Middle,
    /// The end of an over-long line.
    Last,
    /// A source that is one document: not opened, to be copied with [`crate::FileTree::copy`]. Also a table, see
    /// [`crate::raw_chunks`].
    File,
}

impl RecordPart {
    /// Returns true if a new record begins here.
    pub fn begins(self) -> bool {
        !matches!(self, RecordPart::Middle | RecordPart::Last)
    }
}
