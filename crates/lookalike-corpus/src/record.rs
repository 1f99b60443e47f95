//! What a worker gets to see: one document, or the reason why a record is none.

use std::borrow::Cow;
use std::ops::Range;

use lookalike::DocumentFields;

use crate::html::{Fallback, PageIdentity};
use crate::rank::RankValue;

/// One document. Borrows from the chunk and from its parser; copy what must outlive the visit.
#[derive(Debug, Clone, PartialEq)]
pub struct Record<'a> {
    /// Index into [`crate::Inputs::sources`].
    pub source: u32,
    /// Number of the record in its source, from 0, counting bad records and no blank lines.
    pub number: u64,
    /// Where it begins in the decompressed source, in bytes.
    pub offset: u64,
    /// The line without its terminator, or the decompressed bytes of the file. Empty when the
    /// document is too long.
    pub raw: &'a [u8],
    /// The user's id, else `url`, else `name:number` with the number counted from 1; for a file
    /// its name. A number is its own text: `1` and `"1"` are the same id.
    pub id: Cow<'a, str>,
    /// Whether the id was made because the JSONL record has none.
    pub id_generated: bool,
    /// The text, decoded; visible text only for HTML. Empty unless the state is `Present`.
    pub text: Cow<'a, str>,
    /// Whether there is a text.
    pub text_state: TextState,
    /// Whether the id stands in the field that [`crate::InputOptions::id_field`] names.
    pub id_named: bool,
    /// The value of the rank field, if the job asks for one.
    pub rank: RankValue<'a>,
    /// The category, if the job asks for one; none when the field is absent, null, or neither text
    /// nor number nor truth value, or there is no URL.
    pub category: Option<Cow<'a, str>>,
    /// Anchors and links, where the job asks for any.
    pub fields: DocumentFields,
    /// Whether broken UTF-8, malformed legacy text or lone surrogates were replaced by U+FFFD.
    pub replaced: bool,
    /// The character set that the file was decoded from; none for JSONL, which is UTF-8.
    pub charset: Option<&'static str>,
    /// Whether a header or the page declares another character set than the bytes are in.
    pub charset_wrong: bool,
    /// Whether the text was decoded wrongly before it came here: `cafÃ©` for `café` in three places or more. It is left so.
    pub mojibake: bool,
    /// Whether a word mixes look-alike letters of Latin, Greek and Cyrillic. It is left so.
    pub homoglyphs: bool,
    /// What was taken out of the text as boilerplate.
    pub removed: Removed,
    /// What a reader sees, where the text is a part of it and the parser was asked for it: see
    /// [`crate::Parser::with_visible`].
    pub visible: Option<VisibleText<'a>>,
    /// Why the text of a page is more than its main content, where it is.
    pub fallback: Fallback,
}

/// What a reader sees of a document whose text is a part of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisibleText<'a> {
    /// All of it.
    pub whole: Cow<'a, str>,
    /// Without lines that were learned as boilerplate, where any were taken out.
    pub own: Option<Cow<'a, str>>,
    /// What the page says that it is about, if the text is what was chosen of an HTML page.
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

    /// What of it is not boilerplate.
    #[must_use]
    pub fn own(&self) -> &str {
        self.own.as_ref().unwrap_or(&self.whole)
    }
}

/// Whether a record has a text.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRecord {
    /// Index into [`crate::Inputs::sources`].
    pub source: u32,
    /// Number of the record in its source, from 0, as in [`Record::number`].
    pub number: u64,
    /// Line in the decompressed source, from 1, blank lines counted; 1 for a file, 0 for a record
    /// of a table or archive.
    pub line: u64,
    /// Where it begins in the decompressed source, in bytes.
    pub offset: u64,
    /// The line without its terminator, as a range of the chunk's bytes.
    pub raw: Range<usize>,
    /// What is wrong, to be read after the source's name and the line.
    pub reason: String,
    /// What is wrong, to be counted.
    pub kind: BadKind,
}

impl BadRecord {
    /// Where it stands in its source, for a person: `line 7`, or `record 7` where there are no
    /// lines.
    pub fn place(&self) -> String {
        match self.line {
            0 => format!("record {}", self.number + 1),
            line => format!("line {line}"),
        }
    }
}

/// The kinds of [`BadRecord`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

/// What was taken out of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removed {
    /// Lines.
    pub lines: u64,
    /// Bytes of these lines, with their ends.
    pub bytes: u64,
    /// Whether the text kept all its lines because next to nothing would have been left.
    pub kept_whole: bool,
    /// Whether the document belongs to no site, so that nothing was known of it.
    pub without_site: bool,
}

/// Which part of a record a [`crate::RawRecord`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
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

impl Part {
    /// Whether a new record begins here.
    pub fn begins(self) -> bool {
        !matches!(self, Part::Middle | Part::Last)
    }
}
