//! Parsing of chunks into records. There is one parser per worker; it owns the buffers that records borrow.

use std::borrow::Cow;
use std::ops::Range;
use std::time::Duration;

use lookalike::HtmlMode;

use crate::charset;
use crate::field_path::TextFieldSet;
use crate::field_value_error::FieldValueError;
use crate::fields::parse_document_fields;
use crate::format::Format;
use crate::given::{DocumentBatch, InMemoryDocument};
use crate::homoglyphs::has_homoglyphs;
use crate::html::{Fallback, HtmlText, PageFacts};
use crate::id_text::{id_text, string_text};
use crate::json::{self, FieldSelection, FieldSlot, FoundFields, TextBuffers, TextCapture};
use crate::limits::max_document_bytes;
use crate::lines::TextLines;
use crate::long_hash::{long_record_hash, long_text_hash};
use crate::mojibake::is_mojibake;
use crate::options::{Category, InputOptions};
use crate::order_key::OrderKey;
#[cfg(feature = "pdf")]
use crate::pdf;
use crate::piece::{ChunkPiece, FileState, PieceContent, RecordChunk};
use crate::record::{BadRecord, BadRecordKind, Record, TextState, VisibleText};
use crate::row::{JsonRow, RowState};
use crate::site::host;
use crate::sniff;
use crate::source::{Inputs, Source};
use crate::surrogate;

/// Parses chunks into records. The result depends only on the chunk and the options, not on what was parsed before.
pub struct Parser<'i> {
    inputs: &'i Inputs,
    options: InputOptions,
    selection: FieldSelection,
    max_bytes: usize,
    /// Selections of the fields whose values are joined to a text.
    parts: Vec<FieldSelection>,
    // Buffers and extractors, reused from record to record.
    buffers: TextBuffers,
    joined_text: String,
    html: HtmlText,
    html_text: String,
    visible_text: String,
    /// True if the parser or its caller needs the visible text of pages.
    reads_visible: bool,
    wants_visible: bool,
}

lookalike::opaque_debug! {
    [] Parser ['_];
}

/// The text of a record that counts, its visible text, and the reason why the text is more than the main content.
type ChosenText<'r> = (&'r str, Option<VisibleText<'r>>, Fallback);

/// True if one of several text fields has a value, and the fields that are there; the values are joined in a buffer of the parser.
type JoinedText = Result<(bool, TextFieldSet), FieldValueError>;

/// A visitor of records; see [`Parser::parse`].
type RecordVisitor<'v> = dyn FnMut(Result<Record<'_>, BadRecord>) + 'v;

/// The position of a record.
#[derive(Debug, Clone)]
struct RecordPosition {
    source: u32,
    number: u64,
    line: u64,
    offset: u64,
    raw: Range<usize>,
}

impl RecordPosition {
    fn bad(&self, kind: BadRecordKind, reason: String) -> BadRecord {
        BadRecord {
            source: self.source,
            number: self.number,
            line: self.line,
            offset: self.offset,
            raw: self.raw.clone(),
            reason,
            kind,
        }
    }

    fn record<'a>(&self, raw: &'a [u8], id: Cow<'a, str>, state: TextState) -> Record<'a> {
        Record {
            source: self.source,
            number: self.number,
            offset: self.offset,
            raw,
            id,
            text_state: state,
            ..Record::default()
        }
    }
}

impl<'i> Parser<'i> {
    /// Creates a parser for chunks of these inputs, read with the same options.
    ///
    /// # Panics
    /// Panics if this build lacks the HTML mode of the options, which [`Inputs::discover`] refuses.
    pub fn new(inputs: &'i Inputs, options: &InputOptions) -> Parser<'i> {
        Parser {
            inputs,
            options: options.clone(),
            selection: FieldSelection::new(options),
            parts: FieldSelection::of_parts(options),
            max_bytes: max_document_bytes(options),
            buffers: TextBuffers::default(),
            joined_text: String::new(),
            html: HtmlText::new(options.html).expect("checked by Inputs::discover"),
            html_text: String::new(),
            visible_text: String::new(),
            // The visible text takes the place of a main content that is nothing but boilerplate.
            reads_visible: options.html.mode != HtmlMode::Visible && options.boilerplate.is_some(),
            wants_visible: false,
        }
    }

    /// Makes the parser also return the visible text of documents whose text is only a part of it. The texts stay the same.
    #[must_use]
    pub fn with_visible(mut self) -> Parser<'i> {
        self.wants_visible = true;
        self.reads_visible = self.html.chooses();
        self
    }

    /// Frees the buffers, which grow with the longest document.
    pub fn shrink(&mut self) {
        self.buffers = TextBuffers::default();
        (self.html_text, self.visible_text) = (String::new(), String::new());
        self.joined_text = String::new();
        self.html.shrink();
    }

    /// Visits the records of the chunk in order: exactly [`RecordChunk::records`] of them.
    pub fn parse(&mut self, chunk: &RecordChunk, visit: &mut RecordVisitor<'_>) {
        self.finish_records(visit, |parser, visit| parser.pieces(chunk, visit));
    }

    /// Visits the records of documents passed in memory. The first one gets the number `first` in `source`. Their raw bytes are those of the text.
    pub fn parse_given(
        &mut self,
        batch: &dyn DocumentBatch,
        source: u32,
        first: u64,
        visit: &mut RecordVisitor<'_>,
    ) {
        let mut number = first;
        self.finish_records(visit, |parser, visit| {
            batch.visit(&mut |document| {
                parser.given(document, source, number, visit);
                number = number.saturating_add(1);
            });
        });
    }

    fn given(
        &mut self,
        document: InMemoryDocument<'_>,
        source: u32,
        number: u64,
        visit: &mut RecordVisitor<'_>,
    ) {
        let place = RecordPosition {
            source,
            number,
            line: 0,
            offset: 0,
            raw: 0..0,
        };
        let InMemoryDocument {
            id,
            text,
            is_html,
            order_key,
            category,
            fields,
        } = document;
        let id_named = id.is_some();
        let id = id.unwrap_or_else(|| Cow::Owned(number.to_string()));
        let raw = text.as_deref().unwrap_or_default();
        let mut record = Record {
            id_generated: !id_named,
            id_named,
            order_key,
            category,
            fields,
            ..place.record(raw.as_bytes(), id, TextState::Missing)
        };
        if raw.len() > self.max_bytes {
            record.text_state = TextState::TooLong;
            record.long_hash = Some(long_text_hash(raw.as_bytes()));
        } else if text.is_some() {
            record.text_state = TextState::Present;
            let (text, visible, fallback) = match is_html {
                true => self.extract(source, raw),
                false => (raw, None, Fallback::None),
            };
            record.text = Cow::Borrowed(text);
            (record.visible, record.fallback) = (visible, fallback);
        }
        visit(Ok(record));
    }

    /// Checks the text of every record that `records` produces, and removes boilerplate from it.
    fn finish_records(
        &mut self,
        visit: &mut RecordVisitor<'_>,
        records: impl FnOnce(&mut Self, &mut RecordVisitor<'_>),
    ) {
        // Outermost, so that it checks the text after boilerplate was removed. Both are passes over the text, which run here on as many threads as
        // there are parsers.
        let visit: &mut RecordVisitor<'_> = &mut |record| {
            visit(record.map(|record| Record {
                mojibake: is_mojibake(&record.text),
                homoglyphs: has_homoglyphs(&record.text),
                ..record
            }));
        };
        let Some(lines) = self.options.boilerplate.clone() else {
            return records(self, visit);
        };
        let (inputs, wants_visible) = (self.inputs, self.wants_visible);
        records(self, &mut |record| {
            visit(record.map(|mut record| {
                let format = inputs.sources[record.source as usize].format;
                // Wraps the visitor, so that every kind of record passes through the same code.
                lines.strip(&mut record, format, wants_visible);
                record
            }));
        });
    }

    fn pieces(&mut self, chunk: &RecordChunk, visit: &mut RecordVisitor<'_>) {
        for piece in &chunk.pieces {
            match &piece.span {
                PieceContent::Lines => self.lines(chunk, piece, visit),
                PieceContent::TooLong(hash) => visit(Ok(self.too_long(&line_place(piece), *hash))),
                PieceContent::Long(_) => unreachable!("for the raw reader only"),
                PieceContent::Rows(rows) => self.rows(chunk, piece, rows, visit),
                PieceContent::File(state) => self.file(chunk, piece, state, visit),
            }
        }
    }

    fn lines(&mut self, chunk: &RecordChunk, piece: &ChunkPiece, visit: &mut RecordVisitor<'_>) {
        let bytes = &chunk.bytes[piece.range.clone()];
        let mut place = line_place(piece);
        // Checked once for all lines; only after a failure is each line checked by itself.
        let whole = simdutf8::basic::from_utf8(bytes).ok();
        for line in TextLines::new(bytes) {
            let (start, end) = (line.start, line.start + line.content.len());
            place.offset = piece.offset + start as u64;
            place.raw = piece.range.start + start..piece.range.start + end;
            if line.content.len() > self.max_bytes {
                visit(Ok(self.too_long(&place, long_record_hash(line.content))));
            } else if line.is_record(self.max_bytes) {
                let decoded;
                let text = match whole {
                    Some(text) => &text[start..end],
                    None => {
                        decoded = charset::decode_line(line.content);
                        &*decoded
                    }
                };
                self.line(line.content, text, &place, visit);
            }
            // Numbers must agree with those that the cutter gave to the chunks after this one.
            place.number += u64::from(line.is_record(self.max_bytes));
            place.line += 1;
        }
    }

    fn rows(
        &mut self,
        chunk: &RecordChunk,
        piece: &ChunkPiece,
        rows: &[JsonRow],
        visit: &mut RecordVisitor<'_>,
    ) {
        let mut place = line_place(piece);
        // Rows have no lines; with 0, messages say `record`.
        place.line = 0;
        let mut start = piece.range.start;
        for row in rows {
            place.offset = row.offset;
            // Without the line feed; a bad row has no bytes at all.
            place.raw = start..row.end.saturating_sub(1).max(start);
            // Rows follow each other in the chunk, so that only their ends are stored.
            start = row.end;
            let raw = &chunk.bytes[place.raw.clone()];
            match &row.state {
                RowState::Bad(kind, reason) => visit(Err(place.bad(*kind, reason.clone()))),
                // The line is valid UTF-8 if it was generated; elements of an array are as in the source.
                state => {
                    let line = &*charset::decode_line(raw);
                    let (most, time) = (self.max_bytes, self.options.pdf_limit);
                    self.line(raw, line, &place, &mut |record| {
                        visit(record.and_then(|mut record| {
                            record.replaced |= row.replaced;
                            record.charset = row.charset;
                            record.charset_wrong = row.charset_wrong;
                            match (&row.pdf, state) {
                                // A row with a text of its own does not need that of its PDF, and cannot be too long.
                                _ if record.text_state != TextState::Missing => Ok(record),
                                (Some(pdf), _) => {
                                    with_pdf(record, pdf, row.is_pdf_cut, &place, most, time)
                                }
                                (_, &RowState::TooLong(long_hash)) => Ok(Record {
                                    text_state: TextState::TooLong,
                                    long_hash,
                                    ..record
                                }),
                                _ => Ok(record),
                            }
                        }));
                    });
                }
            }
            place.number += 1;
        }
    }

    fn too_long(&self, place: &RecordPosition, hash: u128) -> Record<'static> {
        let mut record = place.record(b"", Cow::Borrowed(""), TextState::TooLong);
        record.long_hash = Some(hash);
        record.id = Cow::Owned(self.generated_id(place));
        record.id_generated = true;
        record
    }

    /// Parses one line. In `text`, invalid UTF-8 is already replaced.
    fn line(
        &mut self,
        raw: &[u8],
        text: &str,
        place: &RecordPosition,
        visit: &mut RecordVisitor<'_>,
    ) {
        // Taken out of `self`, because the record borrows them while the extractor in `self` is used.
        let mut buffers = std::mem::take(&mut self.buffers);
        self.object(raw, text, place, &mut buffers, visit);
        self.buffers = buffers;
    }

    fn object(
        &mut self,
        raw: &[u8],
        text: &str,
        place: &RecordPosition,
        buffers: &mut TextBuffers,
        visit: &mut RecordVisitor<'_>,
    ) {
        // Replacing invalid UTF-8 makes a new string; unchanged text is the line itself.
        let replaced = !std::ptr::eq(text.as_ptr(), raw.as_ptr());
        // Files with byte order marks may have been joined.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        // Checked first, because the fast walk accepts only objects, and the message should say what was found instead.
        if !text.trim_start_matches(JSON_BLANKS).starts_with('{') {
            return visit(Err(not_an_object(text, place)));
        }
        let picked = match self.joined(text, buffers) {
            Ok(joined) => json::pick(text, &self.selection, buffers).map(|found| (found, joined)),
            Err(error) => Err(error),
        };
        let error = match picked {
            Ok((mut found, joined)) => {
                return visit(self.record(raw, place, &mut found, joined, replaced));
            }
            Err(error) => error,
        };
        // A lone surrogate in a wanted string is the only error that is repaired.
        if let Cow::Owned(mended) = surrogate::replace_lone(text)
            && let Ok(joined) = self.joined(&mended, buffers)
            && let Ok(mut found) = json::pick(&mended, &self.selection, buffers)
        {
            return visit(self.record(raw, place, &mut found, joined, true));
        }
        visit(Err(
            place.bad(BadRecordKind::InvalidJson, json_reason(&error))
        ));
    }

    /// Joins the values of several text fields, and leaves out those that are absent or null. Returns `None` if there is only one such field.
    fn joined(
        &mut self,
        line: &str,
        buffers: &mut TextBuffers,
    ) -> Result<Option<JoinedText>, serde_json::Error> {
        self.joined_text.clear();
        let mut is_present = false;
        let mut fields = TextFieldSet::default();
        for (at, part) in self.parts.iter().enumerate() {
            let found = json::pick(line, part, buffers)?;
            if !found.is_absent(FieldSlot::Text) {
                fields.insert(at);
            }
            match captured(&found, FieldSlot::Text) {
                Ok(None) => {}
                Ok(Some(text)) => {
                    if is_present {
                        self.joined_text.push('\n');
                    }
                    self.joined_text.push_str(text);
                    is_present = true;
                }
                Err(error) => return Ok(Some(Err(error))),
            }
        }
        Ok((!self.parts.is_empty()).then_some(Ok((is_present, fields))))
    }

    fn record<'r>(
        &'r mut self,
        raw: &'r [u8],
        place: &RecordPosition,
        found: &'r mut FoundFields<'_, '_>,
        joined: Option<JoinedText>,
        replaced: bool,
    ) -> Result<Record<'r>, BadRecord> {
        // Check the id before the text: a record with an invalid id is bad whatever its text.
        let wrong = |error: FieldValueError| place.bad(BadRecordKind::WrongType, error.to_string());
        let id = id_of(found).map_err(wrong)?;
        let id_generated = id.is_none();
        let id_named = self.options.id_field.is_some() && !id_generated;
        let (id, id_mended) = id.unwrap_or_else(|| (Cow::Owned(self.generated_id(place)), false));
        let order_key = match (&self.options.order_field, found.raw(FieldSlot::OrderKey)) {
            (Some(field), Some(json)) => OrderKey::parse(field, json),
            _ => OrderKey::Missing,
        };
        let category = match &self.options.category {
            Some(category) => category.value(found.raw(FieldSlot::Category), &id),
            None => None,
        };
        // Slots of fields that the job does not use are empty.
        let fields = parse_document_fields(
            found.raw(FieldSlot::Anchors),
            found.raw(FieldSlot::InLinks),
            found.raw(FieldSlot::OutLinks),
        )
        .map_err(wrong)?;
        let (text, text_fields) = match joined {
            None => (
                self.text_of(place.source, found).map_err(wrong)?,
                TextFieldSet::default(),
            ),
            Some(joined) => {
                let (is_present, fields) = joined.map_err(wrong)?;
                (
                    is_present.then_some((&*self.joined_text, None, Fallback::None)),
                    fields,
                )
            }
        };
        let state = match text {
            Some(_) => TextState::Present,
            None => TextState::Missing,
        };
        let (text, visible, fallback) = text.unwrap_or_default();
        Ok(Record {
            id_generated,
            id_named,
            text: Cow::Borrowed(text),
            visible,
            fallback,
            order_key,
            category,
            fields,
            text_fields,
            replaced: replaced || id_mended,
            ..place.record(raw, id, state)
        })
    }

    /// Returns the text, or else that of the HTML, or `None` if both are absent or null.
    fn text_of<'r>(
        &'r mut self,
        source: u32,
        found: &'r mut FoundFields<'_, '_>,
    ) -> Result<Option<ChosenText<'r>>, FieldValueError> {
        if !found.is_missing(FieldSlot::Text) {
            let text = captured(found, FieldSlot::Text)?;
            return Ok(text.map(|text| (text, None, Fallback::None)));
        }
        found.settle(FieldSlot::Html);
        // The value may be absent, null, or a string of HTML; other types are errors of the record, as for `text`.
        let Some(html) = captured(found, FieldSlot::Html)? else {
            return Ok(None);
        };
        Ok(Some(self.extract(source, html)))
    }

    /// Extracts the text of a page, and its visible text if requested.
    fn extract(&mut self, source: u32, html: &str) -> ChosenText<'_> {
        // For a warning if HTML options were given and no page was found.
        self.inputs.sources[source as usize].learned.note_html();
        self.html_text.clear();
        if !self.reads_visible {
            self.html.extract(html, &mut self.html_text);
            return (&self.html_text, None, Fallback::None);
        }
        self.visible_text.clear();
        let (text, visible) = (&mut self.html_text, &mut self.visible_text);
        let PageFacts { identity, fallback } = self.html.extract_with_visible(html, text, visible);
        let visible = VisibleText {
            whole: Cow::Borrowed(&*self.visible_text),
            own: None,
            page: Some(identity),
        };
        (&self.html_text, Some(visible), fallback)
    }

    fn generated_id(&self, place: &RecordPosition) -> String {
        let source = &self.inputs.sources[place.source as usize];
        // The offset of a row of Parquet is its number in the file, which lost row groups do not change.
        let number = match source.format {
            Format::Parquet => place.offset,
            _ => place.number,
        };
        format!("{}:{}", source.name(), number + 1)
    }

    /// Visits the record of a source that is one document.
    fn file(
        &mut self,
        chunk: &RecordChunk,
        piece: &ChunkPiece,
        state: &FileState,
        visit: &mut RecordVisitor<'_>,
    ) {
        let source = &self.inputs.sources[piece.source as usize];
        let mut place = line_place(piece);
        // A file that is one document has no lines.
        place.line = 0;
        place.raw = piece.range.clone();
        let raw = &chunk.bytes[piece.range.clone()];
        match state {
            FileState::Bad(kind, reason) => visit(Err(place.bad(*kind, reason.clone()))),
            FileState::TooLong(long_hash) => visit(Ok(Record {
                long_hash: *long_hash,
                ..place.record(b"", source.name(), TextState::TooLong)
            })),
            FileState::Unread => unreachable!("for the raw reader only"),
            FileState::Whole if source.format == Format::Converted => {
                // Too long until there is a text: the code that sets the text also sets the state.
                let record = place.record(raw, source.name(), TextState::TooLong);
                match self.convert(source, raw) {
                    Ok(Some(bytes)) => {
                        self.decoded(&bytes, sniff::is_html(&bytes), record, visit);
                    }
                    Ok(None) => visit(Ok(Record {
                        raw: b"",
                        long_hash: Some(long_text_hash(raw)),
                        ..record
                    })),
                    Err(reason) => visit(Err(place.bad(BadRecordKind::Conversion, reason))),
                }
            }
            FileState::Whole if source.format == Format::Pdf => {
                let record = place.record(raw, source.name(), TextState::TooLong);
                let (most, time) = (self.max_bytes, self.options.pdf_limit);
                let record = with_pdf(record, raw, false, &place, most, time);
                visit(record.map(|record| match record.text_state {
                    TextState::TooLong => Record { raw: b"", ..record },
                    _ => record,
                }));
            }
            FileState::Whole => {
                let record = place.record(raw, source.name(), TextState::Present);
                self.decoded(raw, source.format == Format::Html, record, visit);
            }
        }
    }

    /// Converts a file with the user's command.
    fn convert(&self, source: &Source, raw: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let converter = sniff::converter(source.file_name(), &self.options.converters);
        // Sources are discovered and parsed with the same options.
        let converter = converter.ok_or("no converter for it")?;
        converter.convert(raw, self.max_bytes, self.options.convert_limit)
    }

    /// Visits a record whose text is `bytes`, decoded from any character set.
    fn decoded(
        &mut self,
        bytes: &[u8],
        html: bool,
        record: Record<'_>,
        visit: &mut RecordVisitor<'_>,
    ) {
        let decoded = charset::decode(bytes, html);
        let (text, visible, fallback) = match html {
            true => self.extract(record.source, &decoded.text),
            false => (&*decoded.text, None, Fallback::None),
        };
        visit(Ok(Record {
            text: Cow::Borrowed(text),
            visible,
            fallback,
            text_state: TextState::Present,
            replaced: decoded.replaced,
            charset: Some(decoded.charset),
            charset_wrong: decoded.wrong_declaration,
            ..record
        }));
    }
}

/// Returns the record with the text of a PDF, or the reason why there is none.
#[cfg(feature = "pdf")]
fn with_pdf<'r>(
    record: Record<'r>,
    bytes: &[u8],
    is_cut: bool,
    place: &RecordPosition,
    most: usize,
    time: Option<Duration>,
) -> Result<Record<'r>, BadRecord> {
    match pdf::text(bytes, is_cut, most, time) {
        Ok(Some(text)) => Ok(Record {
            text: Cow::Owned(text),
            text_state: TextState::Present,
            ..record
        }),
        Ok(None) => Ok(Record {
            text_state: TextState::TooLong,
            long_hash: Some(long_text_hash(bytes)),
            ..record
        }),
        Err(error) => Err(place.bad(error.kind, error.reason)),
    }
}

#[cfg(not(feature = "pdf"))]
fn with_pdf<'r>(
    _: Record<'r>,
    _: &[u8],
    _: bool,
    place: &RecordPosition,
    _: usize,
    _: Option<Duration>,
) -> Result<Record<'r>, BadRecord> {
    Err(place.bad(
        BadRecordKind::Conversion,
        "a PDF needs a build with the Cargo feature `pdf`".to_owned(),
    ))
}

const JSON_BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

fn line_place(piece: &ChunkPiece) -> RecordPosition {
    RecordPosition {
        source: piece.source,
        number: piece.first_record,
        line: piece.first_line + 1,
        offset: piece.offset,
        raw: piece.range.start..piece.range.start,
    }
}

/// Returns the text in a slot, or `None` if it is absent or null.
fn captured<'r>(
    found: &'r FoundFields<'_, '_>,
    slot: FieldSlot,
) -> Result<Option<&'r str>, FieldValueError> {
    match found.text(slot) {
        TextCapture::Absent | TextCapture::Null => Ok(None),
        TextCapture::Borrowed(text) => Ok(Some(text)),
        TextCapture::Escaped(_) | TextCapture::Buffered => Ok(Some(found.buffered(slot))),
        TextCapture::WrongType(kind) => Err(FieldValueError::Text(kind)),
    }
}

/// Returns the user's id, otherwise the URL, and whether lone surrogates were replaced in it.
fn id_of<'r>(found: &FoundFields<'r, '_>) -> Result<Option<(Cow<'r, str>, bool)>, FieldValueError> {
    match found.raw(FieldSlot::Id) {
        None | Some("null") => {}
        Some(json) => return id_text(json).map(Some),
    }
    let url = found
        .raw(FieldSlot::Url)
        .filter(|json| json.starts_with('"'));
    Ok(url.map(string_text))
}

impl Category {
    /// Returns the category: the value of the field, given as JSON, or the host of the URL in the field or the id.
    pub fn value<'r>(&self, json: Option<&'r str>, id: &str) -> Option<Cow<'r, str>> {
        // Of JSON values, only `null` begins with this letter.
        let json = json.filter(|json| !json.starts_with('n'));
        let value = json.map(|json| match json.as_bytes().first() {
            Some(b'"') => string_text(json).0,
            // Lists and objects count as written; without a category, all such documents would be in the same one.
            Some(b'{' | b'[' | b't' | b'f') | None => Cow::Borrowed(json),
            Some(_) => json::plain_number(json),
        });
        match self {
            Category::Field(_) => value,
            Category::Site => {
                let value = value.filter(|value| !value.starts_with(['{', '[']));
                let of = |url: &str| host(url).map(|host| Cow::Owned(host.into_owned()));
                value.and_then(|url| of(&url)).or_else(|| of(id))
            }
        }
    }
}

fn not_an_object(line: &str, place: &RecordPosition) -> BadRecord {
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(line) {
        return place.bad(BadRecordKind::InvalidJson, json_reason(&error));
    }
    let kind = json::kind_of(line.trim_start_matches(JSON_BLANKS));
    place.bad(
        BadRecordKind::NotAnObject,
        match place.line {
            0 => format!("it holds {kind}, not an object"),
            _ => format!("the line holds {kind}, not an object"),
        },
    )
}

/// Returns the message of the JSON parser without its line number, which is always 1 here.
fn json_reason(error: &serde_json::Error) -> String {
    let words = error.to_string();
    // serde_json returns no message without the position.
    let words = words.split(" at line ").next().unwrap_or(&words);
    format!("invalid JSON at column {}: {words}", error.column())
}
