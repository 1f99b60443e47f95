//! Cutting of JSON objects into chunks, one by one: the elements of an array, or objects that follow each other.
//!
//! Each element becomes a line. White space between its tokens is dropped if it contains a line break; everything else stays byte for byte, so an
//! element that is on one line leaves unchanged. Only strings and brackets are examined here; the parser reads the rest of an element.
//!
//! If strings and brackets do not match, the element is broken. Reading continues at the next line that begins like the first line of the element,
//! with the same white space and a brace. If elements do not start on lines of their own, reading ends.

use super::record_cutter::{CutSource, RecordCutter};
use crate::error::ReadError;
use crate::input_window::InputWindow;
use crate::long_hash::LongHasher;
use crate::piece::{ChunkPiece, PieceContent, ReadMode, RecordChunk};
use crate::record::{BadRecordKind, RecordPart};
use crate::row::{JsonRow, MAX_ROWS, RowState};
use crate::source::SkippedPart;

/// Maximum nesting of brackets. Lines of JSON, which are not examined for brackets, may nest as deep as their length allows.
const MAX_DEPTH: usize = 1 << 20;

/// Maximum length of white space that is kept: between two tokens longer runs are dropped, and before an element they are no margin.
const MAX_SPACE: usize = 1 << 12;

/// The state of reading an array or a sequence of objects.
pub(super) struct ArrayCutter<'a> {
    cut: CutSource<'a>,
    input: InputWindow<'a>,
    state: ArrayState,
    /// True if the objects are not enclosed in brackets.
    is_sequence: bool,
    /// Number of the current element, or of the next one.
    record: u64,
    element: ArrayElement,
    /// White space since the start of the line, as long as the line contains nothing else.
    margin: Option<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ArrayState {
    /// Before the opening bracket.
    Start,
    /// An element or the closing bracket comes next.
    BeforeElement,
    InElement,
    /// A comma or the closing bracket comes next.
    AfterElement,
    /// After a broken element, looking for the next one.
    Seek,
    /// After the closing bracket, or given up.
    Finished,
}

/// The current element.
#[derive(Default)]
struct ArrayElement {
    /// The part of its line that was read and not yet passed on.
    line: Vec<u8>,
    /// Offset of its first byte in the decompressed source.
    offset: u64,
    /// White space before it on its line, if nothing else comes before it.
    margin: Option<Vec<u8>>,
    /// Expected closing brackets, the next one last.
    closing: Vec<u8>,
    in_string: bool,
    is_escaped: bool,
    /// White space after the last token, and whether to drop it.
    space: Vec<u8>,
    is_dropped: bool,
    /// The next part of an element that is too long to be held.
    long: Option<RecordPart>,
    /// Hash of the earlier parts.
    hasher: Option<LongHasher>,
    hidden: HiddenObjects,
}

/// Watch for objects that are lost with a broken element: those within it that cannot be nested, and those behind it on its lines.
#[derive(Default)]
struct HiddenObjects {
    /// The last byte behind the broken element, except for commas.
    last: u8,
    are_likely: bool,
}

impl HiddenObjects {
    /// Passes a byte behind the broken element that is not white space. A brace behind a closing bracket may begin another element, or a nested object.
    fn pass(&mut self, byte: u8) {
        if byte != b',' {
            self.are_likely |= byte == b'{' && matches!(self.last, b'}' | b']');
            self.last = byte;
        }
    }
}

impl ArrayElement {
    /// Returns true if a brace that follows cannot begin a nested object: it has no key, or there is no comma before it.
    fn is_object_misplaced(&self) -> bool {
        let last = self.line.iter().rfind(|byte| !is_space(**byte));
        match (self.closing.last(), last) {
            (None, _) | (_, Some(b':')) => false,
            (Some(b']'), last) => !matches!(last, Some(b'[' | b',')),
            _ => true,
        }
    }

    /// Returns true if the string that ends the line ends with the border of two objects: one that lacks its end quote swallowed it.
    fn has_string_across_objects(&self) -> bool {
        let string = self.line.strip_suffix(b"\"").map(<[u8]>::trim_ascii_end);
        let before = string.and_then(|string| string.strip_suffix(b"{"));
        before.map(<[u8]>::trim_ascii_end).is_some_and(|before| {
            let before = before.strip_suffix(b",").unwrap_or(before);
            before.ends_with(b"}")
        })
    }
}

/// The state of the element at the end of the buffered bytes.
enum ElementEnd {
    /// The element continues.
    Incomplete,
    /// The element is complete.
    Complete,
    Broken(String),
}

impl<'a> ArrayCutter<'a> {
    pub(super) fn new(cut: CutSource<'a>) -> Result<ArrayCutter<'a>, ReadError> {
        Ok(ArrayCutter {
            cut,
            input: InputWindow::open(cut.source)?,
            state: ArrayState::Start,
            is_sequence: false,
            record: 0,
            element: ArrayElement::default(),
            margin: Some(Vec::new()),
        })
    }

    /// Consumes one byte between elements.
    fn between(&mut self, chunk: &mut RecordChunk) {
        let byte = self.input.rest()[0];
        let margin = self.margin.take();
        if !is_space(byte) {
            return self.token(byte, margin, chunk);
        }
        self.margin = match (byte, margin) {
            (b'\n', _) => Some(Vec::new()),
            // Longer white space is no margin, so a file of blanks does not end up in memory.
            (_, Some(mut margin)) if margin.len() < MAX_SPACE => {
                margin.push(byte);
                Some(margin)
            }
            _ => None,
        };
        self.input.advance(1);
    }

    /// Handles a byte between elements that is not white space. `margin` is the white space before it.
    fn token(&mut self, byte: u8, margin: Option<Vec<u8>>, chunk: &mut RecordChunk) {
        let next = match (self.state, byte) {
            (ArrayState::Start, b'[') | (ArrayState::AfterElement, b',') => {
                ArrayState::BeforeElement
            }
            (ArrayState::Start, b'{') => {
                self.is_sequence = true;
                return self.begin(margin);
            }
            (ArrayState::BeforeElement | ArrayState::AfterElement, b']') if !self.is_sequence => {
                ArrayState::Finished
            }
            // Pretty printers indent all elements alike, and the contents of elements deeper. A brace at the same indentation as that of the broken
            // element starts the next element, even if quotes are still open.
            (ArrayState::Seek, b'{') if margin == self.element.margin => {
                if self.element.hidden.are_likely && !self.input.is_damaged {
                    self.tell(chunk, self.hidden_reason());
                }
                return self.begin(margin);
            }
            (ArrayState::Seek, _) => {
                let element = &mut self.element;
                // What begins a deeper line is nested.
                match margin.map(|margin| margin.len()) > element.margin.as_ref().map(Vec::len) {
                    true => element.hidden.last = byte,
                    false => element.hidden.pass(byte),
                }
                ArrayState::Seek
            }
            // Elements need no comma between them.
            (ArrayState::BeforeElement, _) | (ArrayState::AfterElement, b'{') => {
                return self.begin(margin);
            }
            (ArrayState::Start, _) => {
                return self.abandon(chunk, "it begins with neither [ nor {".to_owned());
            }
            (ArrayState::AfterElement, _) => {
                let missing = match self.is_sequence {
                    true => "no object",
                    false => "no comma",
                };
                let reason = format!("there is {missing} after element {}", self.record);
                return self.abandon(chunk, reason);
            }
            (ArrayState::Finished, _) => {
                self.abandon(chunk, "data follows the array".to_owned());
                return;
            }
            (ArrayState::InElement, _) => unreachable!("not between elements"),
        };
        self.state = next;
        self.input.advance(1);
    }

    /// Begins an element at the current byte.
    fn begin(&mut self, margin: Option<Vec<u8>>) {
        self.element = ArrayElement {
            offset: self.input.offset,
            margin,
            ..ArrayElement::default()
        };
        self.state = ArrayState::InElement;
    }

    /// Reports that the rest is not read, and skips it.
    fn abandon(&mut self, chunk: &mut RecordChunk, reason: String) {
        self.tell(chunk, format!("{reason}: the rest is not read"));
        self.state = ArrayState::Finished;
        // The rest is not even decompressed, because it cannot contain records.
        self.input.is_at_end = true;
        self.input.advance(self.input.rest().len());
    }

    fn tell(&self, chunk: &mut RecordChunk, reason: String) {
        chunk.skips.push(SkippedPart::unreadable(
            self.cut.source,
            self.input.offset,
            reason,
        ));
    }

    fn hidden_reason(&self) -> String {
        let record = self.record;
        format!("element {record} is broken: other objects on its lines are not read")
    }

    /// Consumes bytes of the current element.
    fn within(&mut self) -> ElementEnd {
        while let Some(&byte) = self.input.rest().first() {
            if self.element.in_string {
                if let Some(reason) = self.string() {
                    return ElementEnd::Broken(reason);
                }
                // The element is just a string, which the parser refuses. Here it only has to end.
                if self.element.closing.is_empty() && !self.element.in_string {
                    return ElementEnd::Complete;
                }
                continue;
            }
            let element = &mut self.element;
            if is_space(byte) {
                // Records become lines, so line breaks between tokens must go. Other white space stays, to keep the output byte-exact.
                element.is_dropped |= byte == b'\n' || byte == b'\r';
                if element.space.len() < MAX_SPACE {
                    element.space.push(byte);
                } else {
                    element.is_dropped = true;
                }
                self.input.advance(1);
                if self.element.closing.is_empty() {
                    return ElementEnd::Complete;
                }
                continue;
            }
            // A scalar ends before the byte that follows the element.
            if element.closing.is_empty() && matches!(byte, b',' | b']') {
                return ElementEnd::Complete;
            }
            let space = std::mem::take(&mut element.space);
            if !std::mem::take(&mut element.is_dropped) {
                element.line.extend_from_slice(&space);
            }
            if let Some(reason) = self.bracket(byte) {
                return ElementEnd::Broken(reason);
            }
            self.element.line.push(byte);
            self.input.advance(1);
            if self.element.closing.is_empty() && matches!(byte, b'}' | b']') {
                return ElementEnd::Complete;
            }
        }
        ElementEnd::Incomplete
    }

    /// Consumes bytes of a string up to its end. Returns a reason if the string is invalid.
    fn string(&mut self) -> Option<String> {
        let rest = self.input.rest();
        let element = &mut self.element;
        let special = |byte: &u8| matches!(byte, b'"' | b'\\' | b'\n');
        // The end of a step may cut an escape: then its second byte is the first of the next step, and not a closing quote.
        let plain = match element.is_escaped {
            true => 0,
            false => rest.iter().position(special).unwrap_or(rest.len()),
        };
        element.line.extend_from_slice(&rest[..plain]);
        let byte = rest.get(plain).copied();
        self.input.advance(plain);
        let byte = byte?;
        // JSON strings contain no bare line feeds (RFC 8259, section 7), so an open quote does not swallow the following elements.
        if byte == b'\n' {
            return Some("a string does not end on its line".to_owned());
        }
        let element = &mut self.element;
        // In `\u0041` only the `u` counts as escaped; the digits are ordinary bytes.
        let was_escaped = std::mem::take(&mut element.is_escaped);
        element.is_escaped = byte == b'\\' && !was_escaped;
        element.in_string = byte != b'"' || was_escaped;
        element.line.push(byte);
        element.hidden.are_likely |= !element.in_string && element.has_string_across_objects();
        self.input.advance(1);
        None
    }

    /// Tracks brackets. Returns a reason if one does not match.
    fn bracket(&mut self, byte: u8) -> Option<String> {
        let element = &mut self.element;
        match byte {
            b'"' => element.in_string = true,
            // Limits the memory for brackets, one byte each.
            b'{' | b'[' if element.closing.len() == MAX_DEPTH => {
                return Some(format!("more than {MAX_DEPTH} brackets are open"));
            }
            b'{' => {
                element.hidden.are_likely |= element.is_object_misplaced();
                element.closing.push(b'}');
            }
            b'[' => element.closing.push(b']'),
            b'}' | b']' => {
                let wanted = element.closing.pop();
                if wanted != Some(byte) {
                    let wanted =
                        wanted.map_or("none".to_owned(), |byte| char::from(byte).to_string());
                    let found = char::from(byte);
                    return Some(format!("{found} where {wanted} is to come"));
                }
            }
            _ => {}
        }
        None
    }

    /// Adds the element as a row if it has ended.
    fn add(&mut self, chunk: &mut RecordChunk, rows: &mut Vec<JsonRow>, end: ElementEnd) {
        let (state, next) = match end {
            ElementEnd::Incomplete => return,
            ElementEnd::Complete => (RowState::Good, ArrayState::AfterElement),
            ElementEnd::Broken(reason) => {
                let reason = format!("invalid JSON: {reason}");
                (
                    RowState::Bad(BadRecordKind::InvalidJson, reason),
                    self.after_broken(chunk),
                )
            }
        };
        if state == RowState::Good {
            chunk.bytes.extend_from_slice(&self.element.line);
            chunk.bytes.push(b'\n');
        }
        self.element.line.clear();
        // A broken element is a row without bytes: it keeps its number, and so do the elements after it.
        rows.push(JsonRow {
            end: chunk.bytes.len(),
            offset: self.element.offset,
            state,
            ..JsonRow::default()
        });
        self.record += 1;
        self.state = next;
    }

    /// Returns the state after a broken element.
    fn after_broken(&mut self, chunk: &mut RecordChunk) -> ArrayState {
        // The rest of the broken line is no margin.
        self.margin = None;
        if self.element.margin.is_some() {
            // A long element that is broken is no loss of its own.
            self.element.hidden.are_likely |= self.element.long.is_some();
            return ArrayState::Seek;
        }
        let reason = format!("element {} is broken", self.record + 1);
        self.abandon(chunk, reason);
        ArrayState::Finished
    }

    /// Adds the rows to the chunk as a piece.
    fn take_rows(&self, chunk: &mut RecordChunk, start: usize, rows: Vec<JsonRow>) {
        let first = self.record - rows.len() as u64;
        chunk.push_rows(self.cut.number, first, start, rows);
    }

    /// Passes on the buffered part of an element that is too long to be held, or hashes and drops it.
    fn add_long(&mut self, chunk: &mut RecordChunk, end: ElementEnd) {
        // An element may exceed the limit and end in one step. It still gets a first and a last part, because readers of parts wait for both.
        let is_first = self.element.long.replace(RecordPart::Middle).is_none();
        if is_first {
            self.push_long(chunk, RecordPart::First);
        }
        let next = match end {
            ElementEnd::Incomplete if is_first => return,
            ElementEnd::Incomplete => return self.push_long(chunk, RecordPart::Middle),
            ElementEnd::Complete => ArrayState::AfterElement,
            ElementEnd::Broken(_) => self.after_broken(chunk),
        };
        self.push_long(chunk, RecordPart::Last);
        chunk.records += 1;
        self.record += 1;
        self.state = next;
    }

    fn push_long(&mut self, chunk: &mut RecordChunk, part: RecordPart) {
        let start = chunk.bytes.len();
        let element = &mut self.element;
        let span = match self.cut.mode {
            ReadMode::Parse => {
                let hasher = element.hasher.get_or_insert_with(LongHasher::of_record);
                hasher.update(&element.line);
                element.line.clear();
                if part != RecordPart::Last {
                    return;
                }
                PieceContent::TooLong(hasher.finish())
            }
            ReadMode::Copy | ReadMode::CopyExceptTables => {
                chunk.bytes.append(&mut element.line);
                if part == RecordPart::Last {
                    chunk.bytes.push(b'\n');
                }
                PieceContent::Long(part)
            }
        };
        chunk.pieces.push(ChunkPiece {
            source: self.cut.number,
            first_record: self.record,
            first_line: 0,
            offset: self.element.offset,
            range: start..chunk.bytes.len(),
            span,
        });
    }

    /// Handles the end of the input. Reports an unclosed array, unless another reason was reported. A sequence has no end of its own, but may have
    /// hidden objects.
    fn finish(&mut self, chunk: &mut RecordChunk, rows: &mut Vec<JsonRow>) {
        match self.state {
            // A file without any token is an empty sequence.
            ArrayState::Finished | ArrayState::Start => {}
            ArrayState::InElement if self.element.long.is_some() => {
                // Its text was given up already, and the hash covers the available bytes; the skip reports the unclosed array. In a sequence, the
                // objects behind it are most likely part of it.
                if self.is_sequence && !self.input.is_damaged {
                    let reason = format!(
                        "object {} is never closed: what follows was taken for a part of it",
                        self.record + 1
                    );
                    let offset = self.element.offset;
                    chunk
                        .skips
                        .push(SkippedPart::unreadable(self.cut.source, offset, reason));
                }
                self.add_long(chunk, ElementEnd::Complete);
                // What it hides was told.
                self.element.hidden.are_likely = false;
                self.end_unclosed(chunk);
            }
            // The damage is reported, and a bad record would count the same loss twice.
            ArrayState::InElement if self.input.is_damaged => {}
            ArrayState::InElement => {
                // The start of a next element does not matter any more.
                self.element.margin = Some(Vec::new());
                self.add(
                    chunk,
                    rows,
                    ElementEnd::Broken("the data ends within it".to_owned()),
                );
                self.end_unclosed(chunk);
            }
            ArrayState::BeforeElement | ArrayState::AfterElement | ArrayState::Seek => {
                self.end_unclosed(chunk);
            }
        }
    }

    fn end_unclosed(&mut self, chunk: &mut RecordChunk) {
        self.state = ArrayState::Finished;
        if self.input.is_damaged {
            return;
        }
        if !self.is_sequence {
            let reason = format!("the array is not closed after element {}", self.record);
            self.tell(chunk, reason);
        } else if self.element.hidden.are_likely {
            self.tell(chunk, self.hidden_reason());
        }
    }
}

impl RecordCutter for ArrayCutter<'_> {
    /// Adds whole elements, or a part of one that is too long.
    fn fill(&mut self, chunk: &mut RecordChunk) -> Result<bool, ReadError> {
        let limits = self.cut.limits;
        let mut rows = Vec::new();
        let start = chunk.bytes.len();
        let mut is_done = false;
        // Each iteration does one of three things: it reads a step, consumes the buffered part of an element, or consumes one byte between elements.
        // The input is empty again before the next step is read, so it never grows.
        while !is_done && chunk.held() < limits.chunk_bytes && rows.len() < MAX_ROWS {
            if self.input.rest().is_empty() {
                if self.input.is_at_end {
                    self.finish(chunk, &mut rows);
                    is_done = true;
                } else if let Err(error) = self.input.read(&mut chunk.skips) {
                    // The earlier elements are complete.
                    self.take_rows(chunk, start, rows);
                    return Err(error);
                }
            } else if self.state == ArrayState::InElement {
                let end = self.within();
                let is_long = self.element.line.len() > limits.document_bytes;
                if is_long || self.element.long.is_some() {
                    // The rows made so far are a piece of their own: the parts of the long element follow them in the same buffer.
                    self.take_rows(chunk, start, rows);
                    self.add_long(chunk, end);
                    return Ok(false);
                }
                self.add(chunk, &mut rows, end);
            } else {
                self.between(chunk);
            }
        }
        self.take_rows(chunk, start, rows);
        Ok(is_done)
    }

    fn records(&self) -> u64 {
        self.record
    }

    fn disk_bytes(&self) -> u64 {
        self.input.disk_bytes()
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}
