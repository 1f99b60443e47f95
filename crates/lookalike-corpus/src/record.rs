//! Records: one document each, or the reason why a record is none.

use std::borrow::Cow;
use std::ops::Range;

use lookalike::DocumentFields;
use serde::{Deserialize, Serialize};

use crate::html::{Fallback, PageIdentity};
use crate::order_key::OrderKey;

/// One document. Borrows from the chunk and from its parser; copy what must outlive the visit.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Record<'a> {
    /// Index into [`crate::Inputs::sources`].
    pub source: u32,
    /// Number of the record in its source, from 0, counting bad records and no blank lines.
    pub number: u64,
    /// Offset of its first byte in the decompressed source.
    pub offset: u64,
    /// The line without its terminator, or the decompressed bytes of the file. Empty when the
    /// document is too long.
    pub raw: &'a [u8],
    /// The user's id, else `url`, else `name:number` with the number counted from 1; for a file
    /// its name. A number is its own text: `1` and `"1"` are the same id.
    pub id: Cow<'a, str>,
    /// True if the id was made because the JSONL record has none.
    pub id_generated: bool,
    /// The text, decoded; visible text only for HTML. Empty unless the state is `Present`.
    pub text: Cow<'a, str>,
    /// The presence of a text.
    pub text_state: TextState,
    /// Of a document that is too long: a hash of its bytes, 128 bits of BLAKE3. Of records of one line those of the line; of a file
    /// only where [`crate::InputOptions::read_long`] asks for it, and it does not grow beyond all reason.
    pub long_hash: Option<u128>,
    /// True if the id stands in the field that [`crate::InputOptions::id_field`] names.
    pub id_named: bool,
    /// The value of the order field, if the job asks for one.
    pub order_key: OrderKey<'a>,
    /// The category, if the job asks for one; none when the field is absent, null, or neither text
    /// nor number nor truth value, or there is no URL.
    pub category: Option<Cow<'a, str>>,
    /// Anchors and links, where the job asks for any.
    pub fields: DocumentFields,
    /// True if something was no UTF-8, malformed legacy text or a lone surrogate: read in another character set, or replaced by U+FFFD.
    pub replaced: bool,
    /// The character set that the file was decoded from; none for JSONL, which is UTF-8.
    pub charset: Option<&'static str>,
    /// True if a header or the page declares another character set than the bytes are in.
    pub charset_wrong: bool,
    /// True if the text was decoded wrongly before it came here: `cafÃ©` for `café` in three places or more. It is left so.
    pub mojibake: bool,
    /// True if a word mixes look-alike letters of Latin, Greek and Cyrillic. It is left so.
    pub homoglyphs: bool,
    /// Counts of boilerplate that was removed from the text.
    pub removed: RemovedBoilerplate,
    /// The visible text, where the text is a part of it and the parser was asked for it: see
    /// [`crate::Parser::with_visible`].
    pub visible: Option<VisibleText<'a>>,
    /// Reason why the text of a page is more than its main content, where it is.
    pub fallback: Fallback,
}

/// The visible text of a document whose text is a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VisibleText<'a> {
    /// All of it.
    pub whole: Cow<'a, str>,
    /// Without lines that were learned as boilerplate, where any were taken out.
    pub own: Option<Cow<'a, str>>,
    /// The subject of the page, if the text was chosen from an HTML page.
    pub page: Option<PageIdentity>,
}

impl VisibleText<'_> {
    /// A copy that borrows nothing.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextState {
    /// It has one, possibly empty.
    Present,
    /// The field is absent or null.
    Missing,
    /// The document is larger than [`crate::InputOptions::max_document_bytes`].
    TooLong,
}

/// A record that cannot be read as a document. It keeps its number, and its bytes are still there
/// for output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BadRecord {
    /// Index into [`crate::Inputs::sources`].
    pub source: u32,
    /// Number of the record in its source, from 0, as in [`Record::number`].
    pub number: u64,
    /// Line in the decompressed source, from 1, blank lines counted; 1 for a file, 0 for a record
    /// of a table or archive.
    pub line: u64,
    /// Offset of its first byte in the decompressed source.
    pub offset: u64,
    /// The line without its terminator, as a range of the chunk's bytes.
    pub raw: Range<usize>,
    /// The reason, to be read after the source's name and the line.
    pub reason: String,
    /// The kind of error, to count by.
    pub kind: BadKind,
}

impl BadRecord {
    /// Its place in its source, for a person: `line 7`, or `record 7` where there are no
    /// lines.
    pub fn place(&self) -> String {
        match self.line {
            0 => format!("record {}", self.number + 1),
            line => format!("line {line}"),
        }
    }
}

/// The kinds of [`BadRecord`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum BadKind {
    /// The line is not JSON.
    InvalidJson,
    /// The line is JSON, but no object.
    NotAnObject,
    /// The id or text field holds something else than expected.
    WrongType,
    /// The file's compressed data ends early or is corrupt.
    Damaged,
    /// The file grows beyond all reason when decompressed.
    Bomb,
    /// A record of an archive that ends early, or whose length is wrong.
    Broken,
    /// A file that could not be turned into text.
    Conversion,
    /// A row with another number of fields than the table has columns.
    Fields,
    /// A file that cannot be opened or read, or that changed since the job began.
    Unreadable,
}

impl BadKind {
    /// A short name for counters: `invalid-json`, `not-an-object`, ...
    pub fn as_str(self) -> &'static str {
        match self {
            BadKind::InvalidJson => "invalid-json",
            BadKind::NotAnObject => "not-an-object",
            BadKind::WrongType => "wrong-type",
            BadKind::Damaged => "damaged",
            BadKind::Bomb => "bomb",
            BadKind::Broken => "broken",
            BadKind::Conversion => "conversion",
            BadKind::Fields => "fields",
            BadKind::Unreadable => "unreadable",
        }
    }
}

/// Counts of boilerplate that was removed from a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RemovedBoilerplate {
    /// Lines.
    pub lines: u64,
    /// Bytes of these lines, with their ends.
    pub bytes: u64,
    /// True if the text kept all its lines because next to nothing would have been left.
    pub kept_whole: bool,
    /// True if the document belongs to no site, so that no lines were known for it.
    pub without_site: bool,
}

/// Part of a record that a [`crate::RawRecord`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordPart {
    /// All of it.
    Whole,
    /// The beginning of an over-long line; more parts of the same record follow at once.
    First,
    /// Neither beginning nor end of one.
    Middle,
    /// The end of one.
    Last,
    /// A source that is one document: not opened, to be copied with [`crate::FileTree::copy`]. Or a table, see
    /// [`crate::raw_records_beside_tables`].
    File,
}

impl RecordPart {
    /// Returns true if a new record begins here.
    pub fn begins(self) -> bool {
        !matches!(self, RecordPart::Middle | RecordPart::Last)
    }
}
