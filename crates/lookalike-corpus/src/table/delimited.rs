//! Reading of CSV and TSV, row by row, in the memory of the longest accepted row.

use std::collections::{HashMap, HashSet};

use csv_core::{ReadRecordResult, Reader};
use memchr::memchr;

use super::dialect;
use super::stray_quotes::StrayQuotes;
use crate::charset::{self, TableCharset};
use crate::error::ReadError;
use crate::field_path::{FieldPath, TextFields};
use crate::format::Format;
use crate::input_window::InputWindow;
use crate::limits;
use crate::long_hash::LongHasher;
use crate::options::{Category, InputOptions};
use crate::record::BadRecordKind;
use crate::row::{JsonObject, RowReader, RowSink, RowState, SkipNotes};
use crate::source::{SkipKind, Source};

/// Maximum number of columns in a table.
const MAX_COLUMNS: usize = 1 << 16;

/// The state of reading a table of delimited values.
pub(crate) struct DelimitedTable<'a> {
    input: InputWindow<'a>,
    /// The delimiter, if the user specified it.
    delimiter: Option<u8>,
    has_header: bool,
    reader: Reader,
    /// Tracks the quotes of a row; `None` if quotes are ordinary characters.
    quotes: Option<StrayQuotes>,
    /// True once a line feed was appended to the input.
    is_closed: bool,
    /// Names of the columns, once the first row is read.
    names: Option<Vec<String>>,
    /// Fields that the user named, which may be numbers of columns.
    wanted: Vec<String>,
    limit: usize,
    /// True if no row except the header counts as too long. Rows have the same numbers in both modes.
    is_whole: bool,
    /// The character set of rows that are far from UTF-8, once there was one.
    charset: Option<TableCharset>,
    notes: SkipNotes,
    /// The current row: its fields without quotes, one after the other, and the end of each.
    fields: Vec<u8>,
    ends: Vec<usize>,
}

/// A row that was read.
struct DelimitedRow {
    columns: usize,
    charset: TableCharset,
    /// The hash of a row that is too long, whose fields were dropped.
    long_hash: Option<u128>,
    /// True if the input ends within a quoted field of the row.
    is_quoted: bool,
    /// True if a quoted field is closed on a later line by a quote in the middle of a value.
    is_merged: bool,
}

/// The hash of the fields of an over-long row: of their bytes, and of the end of each.
struct LongRow {
    bytes: LongHasher,
    ends: LongHasher,
}

impl LongRow {
    fn new() -> LongRow {
        LongRow {
            bytes: LongHasher::of_record(),
            ends: LongHasher::of_record(),
        }
    }

    /// Adds the bytes and field ends read since the last call; ends count from the start of the row.
    fn add(&mut self, bytes: &[u8], ends: &[usize]) {
        self.bytes.update(bytes);
        for &end in ends {
            self.ends.update(&(end as u64).to_le_bytes());
        }
    }

    fn finish(mut self) -> u128 {
        self.bytes.update(&self.ends.finish().to_le_bytes());
        self.bytes.finish()
    }
}

impl<'a> DelimitedTable<'a> {
    pub(crate) fn open(
        source: &'a Source,
        options: &InputOptions,
        is_whole: bool,
    ) -> Result<DelimitedTable<'a>, ReadError> {
        let texts = options.text_field.as_ref().map(TextFields::paths);
        let order = options.order_field.as_ref().map(|field| field.path());
        let category = match &options.category {
            Some(Category::Field(path)) => Some(path),
            _ => None,
        };
        let others = options.id_field.as_ref().into_iter();
        let paths = others.chain(texts.unwrap_or_default());
        let paths = paths.chain(order).chain(category);
        Ok(DelimitedTable {
            input: InputWindow::open(source)?,
            delimiter: options.delimiter,
            has_header: !options.no_header,
            reader: dialect::reader(b',', true),
            quotes: (!options.no_quotes).then(StrayQuotes::default),
            is_closed: false,
            names: None,
            wanted: paths.filter_map(only_name).collect(),
            limit: limits::max_document_bytes(options),
            is_whole,
            charset: None,
            notes: SkipNotes::default(),
            // No larger than the limit, which is checked when they are full.
            fields: vec![
                0;
                limits::max_document_bytes(options)
                    .saturating_add(1)
                    .min(4096)
            ],
            ends: vec![0; 64],
        })
    }

    /// Reads the next row into `fields` and `ends`. Returns `None` at the end.
    fn row(&mut self, sink: &mut RowSink<'_>) -> Result<Option<DelimitedRow>, ReadError> {
        let (mut filled, mut columns) = (0, 0);
        let mut long: Option<LongRow> = None;
        let mut is_quoted = false;
        // No buffer is longer than `isize::MAX`, and `limit + 1` below must not overflow.
        let limit = match self.is_whole && (self.names.is_some() || !self.has_header) {
            true => isize::MAX as usize,
            false => self.limit,
        };
        loop {
            if self.input.rest().is_empty() && !self.input.is_at_end {
                self.read(sink)?;
            }
            // Act as if the last byte were a line feed, which is part of a field only within quotes. The reader alone would let the end of the input
            // close quotes, too.
            let is_at_end = self.input.is_at_end && self.input.rest().is_empty();
            if is_at_end && !self.is_closed && !self.input.is_damaged {
                self.input.push(b'\n');
                self.is_closed = true;
            }
            // An empty input signals the end (csv-core), so after the last read the reader gets one, and returns a row without a line feed.
            let (result, read, wrote, ended) = self.reader.read_record(
                self.input.rest(),
                &mut self.fields[filled..],
                &mut self.ends[columns..],
            );
            if let Some(quotes) = &mut self.quotes {
                quotes.read(&self.input.rest()[..read]);
            }
            self.input.advance(read);
            filled += wrote;
            columns += ended;
            // The appended line feed became part of a field, so a quote is still open.
            is_quoted |= self.is_closed && wrote > 0;
            match result {
                ReadRecordResult::InputEmpty => {}
                // A full buffer loses nothing: the reader holds no bytes itself, and continues where it stopped.
                ReadRecordResult::OutputFull if filled <= limit => {
                    // Doubled, up to one byte beyond the limit, which suffices to know that the row is too long.
                    let more = filled.min(limit + 1 - filled).max(1);
                    self.fields.resize(filled + more, 0);
                }
                ReadRecordResult::OutputEndsFull if columns < MAX_COLUMNS => {
                    self.ends.resize(columns * 2, 0);
                }
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {
                    // A row that is too long is read to its end and dropped, except for its hash.
                    let long = long.get_or_insert_with(LongRow::new);
                    long.add(&self.fields[..filled], &self.ends[..columns]);
                    (filled, columns) = (0, 0);
                }
                ReadRecordResult::Record => {
                    let long_hash = long.map(|mut long| {
                        long.add(&self.fields[..filled], &self.ends[..columns]);
                        long.finish()
                    });
                    return Ok(Some(DelimitedRow {
                        columns,
                        charset: self.row_charset(filled),
                        long_hash,
                        is_quoted,
                        is_merged: self.quotes.as_mut().is_some_and(StrayQuotes::end_row),
                    }));
                }
                ReadRecordResult::End => return Ok(None),
            }
        }
    }

    /// Reads more input.
    fn read(&mut self, sink: &mut RowSink<'_>) -> Result<(), ReadError> {
        let is_first = self.input.offset == 0;
        self.input.read(sink.skips)?;
        // The dialect is determined from the first bytes, before the reader gets any.
        if is_first {
            let (head, is_quoted) = (self.input.rest(), self.quotes.is_some());
            let delimiter = self
                .delimiter
                .unwrap_or_else(|| match self.input.source.format {
                    Format::Tsv => b'\t',
                    _ => dialect::delimiter(head, self.input.is_at_end, is_quoted),
                });
            // A new reader for each source, so that unclosed quotes do not extend into the next.
            self.reader = dialect::reader(delimiter, is_quoted);
            self.quotes = self.quotes.take().map(|_| StrayQuotes::new(delimiter));
        }
        Ok(())
    }

    /// Returns the character set of the current row.
    fn row_charset(&mut self, length: usize) -> TableCharset {
        let row = &self.fields[..length];
        if charset::is_like_utf8(row) {
            return TableCharset::UTF_8;
        }
        let of_table = || TableCharset::guess(row, self.input.rest());
        self.charset.get_or_insert_with(of_table).of_row(row)
    }

    /// Returns the fields of the current row as text.
    fn fields(&self, row: &DelimitedRow) -> impl Iterator<Item = std::borrow::Cow<'_, str>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let charset = row.charset;
        starts
            .zip(&self.ends[..row.columns])
            .map(move |(start, end)| charset.decode(&self.fields[start..*end]))
    }

    /// Sets the names of the columns. If the user names a column only by its number, that becomes its name. A name that an earlier column has gets a
    /// number.
    fn name_columns(&mut self, row: &DelimitedRow) {
        let mut names: Vec<String> = self
            .fields(row)
            .map(|name| name.trim().to_owned())
            .collect();
        for wanted in &self.wanted {
            let number = wanted.parse().ok().and_then(|n: usize| n.checked_sub(1));
            // A name counts before a number, and a column that the user also refers to by its name keeps it.
            if !names.contains(wanted)
                && let Some(name) = number.and_then(|number| names.get_mut(number))
                && !self.wanted.contains(name)
            {
                name.clone_from(wanted);
            }
        }
        self.number_repeated(&mut names);
        self.names = Some(names);
    }

    /// Renames columns with the name of an earlier one: `text`, `text_1`, `text_2`.
    fn number_repeated(&mut self, names: &mut [String]) {
        let mut known: HashSet<String> = names.iter().cloned().collect();
        let mut used = HashMap::new();
        for name in names {
            let repeats = used.entry(name.clone()).or_insert(0_usize);
            if *repeats == 0 {
                *repeats = 1;
                continue;
            }
            let new = loop {
                let new = format!("{name}_{repeats}");
                *repeats += 1;
                if known.insert(new.clone()) {
                    break new;
                }
            };
            // Spreadsheets write empty columns after the last one.
            if !name.is_empty() {
                self.notes.add(SkipKind::RepeatedColumn, 0, || {
                    format!("an earlier column is named {name:?}, too: this one is read as {new:?}")
                });
            }
            *name = new;
        }
    }

    /// Notes a row with a value that contains what look like further rows.
    fn note_swallowed(&mut self, columns: usize, offset: u64) {
        let Some(quotes) = self.quotes else { return };
        let mut start = 0;
        for (at, end) in self.ends[..columns].iter().enumerate() {
            let value = &self.fields[start..*end];
            start = *end;
            if memchr(b'\n', value).is_some() && quotes.reads_like_rows(value, at, columns) {
                self.notes.add(SkipKind::SwallowedRows, offset, || {
                    let lines = value.split(|byte| *byte == b'\n').count();
                    format!("a quoted value of {lines} lines, each of which looks like a row: read as one row")
                });
            }
        }
    }

    fn add(&self, names: &[String], row: &DelimitedRow, offset: u64, sink: &mut RowSink<'_>) {
        if row.long_hash.is_some() {
            // The fields were dropped, so an empty object stands for them.
            JsonObject::begin(sink.bytes).end();
            return sink.push(offset, RowState::TooLong(row.long_hash), false);
        }
        if names.is_empty() {
            return sink.bad(offset, BadRecordKind::Fields, LONG_HEADER.to_owned());
        }
        if row.columns != names.len() {
            let ending = if row.columns == 1 { "" } else { "s" };
            let reason = format!(
                "the row has {} field{ending}, the first row {}",
                row.columns,
                names.len()
            );
            return sink.bad(offset, BadRecordKind::Fields, reason);
        }
        let mut replaced = false;
        let mut object = JsonObject::begin(sink.bytes);
        for (name, value) in names.iter().zip(self.fields(row)) {
            replaced |= matches!(value, std::borrow::Cow::Owned(_));
            object.text(name, &value);
        }
        object.end();
        sink.push(offset, RowState::Good, replaced);
    }

    /// Reports the notes, once for the whole source: their number must not depend on chunks. Returns true.
    fn end(&mut self, sink: &mut RowSink<'_>) -> bool {
        sink.skips
            .extend(self.notes.drain(&self.input.source.name()));
        true
    }
}

impl RowReader for DelimitedTable<'_> {
    fn fill(&mut self, sink: &mut RowSink<'_>) -> Result<bool, ReadError> {
        while !sink.is_full() {
            let offset = self.input.offset;
            let Some(row) = self.row(sink)? else {
                return Ok(self.end(sink));
            };
            // For a row at the very end of damaged data, it is unknown whether it ends there or was cut off.
            // The damage is reported, and the row would count the same loss twice.
            if self.input.is_damaged && self.input.rest().is_empty() {
                return Ok(self.end(sink));
            }
            let broken = [(row.is_quoted, OPEN_QUOTE), (row.is_merged, STRAY_QUOTE)];
            if let Some((_, reason)) = broken.iter().find(|(is_so, _)| *is_so) {
                sink.bad(offset, BadRecordKind::BrokenRun, (*reason).to_owned());
                continue;
            }
            match self.names.take() {
                // The fields of an over-long row were dropped.
                None if self.has_header && row.long_hash.is_some() => {
                    sink.bad(offset, BadRecordKind::Fields, LONG_HEADER.to_owned());
                    self.names = Some(Vec::new());
                }
                None if self.has_header => self.name_columns(&row),
                None => {
                    let names: Vec<String> = (1..=row.columns).map(|n| n.to_string()).collect();
                    self.add(&names, &row, offset, sink);
                    // An over-long first row does not count columns; the next row does.
                    self.names = row.long_hash.is_none().then_some(names);
                }
                Some(names) => {
                    self.add(&names, &row, offset, sink);
                    if row.long_hash.is_none() && row.columns == names.len() {
                        self.note_swallowed(row.columns, offset);
                    }
                    self.names = Some(names);
                }
            }
        }
        Ok(false)
    }

    fn disk_bytes(&self) -> u64 {
        self.input.disk_bytes()
    }
}

const LONG_HEADER: &str = "the first row is too long to name the columns";

const OPEN_QUOTE: &str = "a quote that begins a field of this row is never closed, so all rows after it are missing: close the quote, or \
                          double it";

const STRAY_QUOTE: &str = "a quote that begins a field of this row ends in the middle of a value some lines below, so all rows in between are \
                           missing: double the quote, or read quotes as plain characters";

/// Returns the name of a path that consists of one name.
fn only_name(path: &FieldPath) -> Option<String> {
    match path.names() {
        [name] => Some(name.clone()),
        _ => None,
    }
}
