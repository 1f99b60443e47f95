//! Parquet tables of fingerprints or longer sketches: a column `fingerprint` or with another name, and optionally a column `id`.
//!
//! Fingerprints are 64-bit or 32-bit numbers (the bits of signed ones count) or texts, such as sixteen hexadecimal digits; ids are texts or whole
//! numbers. Other columns are not read.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::code_cell::CodeCell;
use super::parquet::fewer_rows;
use super::{column, footer, pages};
use crate::guard::catch_panic_as_error;
use crate::regular::open_regular;

const FINGERPRINT: &str = "fingerprint";
const ID: &str = "id";
/// Number of rows that are decoded or written together.
const ROWS: usize = 1 << 13;
const ROW_GROUP: usize = 1 << 20;
/// Maximum number of bytes of texts that are written together, and in a row group: a sketch of many places takes kilobytes.
const BATCH_BYTES: usize = 1 << 20;
const GROUP_BYTES: usize = 16 << 20;

fn invalid(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

/// Reads a table of fingerprints.
pub struct CodeTable {
    rows: ParquetRecordBatchReader,
    /// A batch that was decoded to examine it, and not yet returned.
    ahead: Option<RecordBatch>,
    column: &'static str,
    number_bits: Option<u32>,
    row: u64,
    /// Number of rows by the footer.
    rows_in_footer: u64,
}

lookalike::opaque_debug! {
    [] CodeTable [];
}

impl CodeTable {
    /// Opens a table of fingerprints.
    ///
    /// # Errors
    /// Fails if it is not a Parquet file or has no column `fingerprint`.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_column(path, FINGERPRINT)
    }

    /// Opens a table whose sketches are in the column with this name.
    ///
    /// # Errors
    /// Fails if it is not a Parquet file or has no such column.
    pub fn open_column(path: &Path, column: &'static str) -> io::Result<Self> {
        let file = open_regular(path)?;
        let metadata = footer::load(&file).map_err(invalid)?;
        let names = metadata
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().as_str());
        let wanted = names
            .enumerate()
            .filter(|(_, name)| [ID, column].contains(name));
        let wanted: Vec<usize> = wanted.map(|(at, _)| at).collect();
        let Some((_, field)) = metadata.schema().column_with_name(column) else {
            let names: Vec<_> = metadata
                .schema()
                .fields()
                .iter()
                .map(|field| field.name().clone())
                .collect();
            let names = names.join(", ");
            return Err(invalid(format!(
                "there is no column {column}; the columns are {names}"
            )));
        };
        let number_bits = match field.data_type() {
            DataType::UInt64 | DataType::Int64 => Some(64),
            DataType::UInt32 | DataType::Int32 => Some(32),
            _ => None,
        };
        // Columns that are not needed are not even read from disk.
        let mask = ProjectionMask::roots(metadata.parquet_schema(), wanted);
        let part = pages::ParquetPart {
            groups: (0..metadata.metadata().num_row_groups()).collect(),
            columns: mask,
            texts: pages::TextTypes::Views,
            as_bytes: false,
            pages: pages::BatchPages::new(u64::MAX),
        };
        let groups = metadata.metadata().row_groups().iter();
        let rows_in_footer = groups.map(|group| group.num_rows().max(0) as u64).sum();
        let rows = catch_panic_as_error(|| pages::record_batches(file, &metadata, part, ROWS));
        let rows = rows.map_err(invalid)?;
        Ok(Self {
            rows,
            ahead: None,
            column,
            number_bits,
            row: 0,
            rows_in_footer,
        })
    }

    /// Returns the width in bits of the numbers in the column, or `None` for a column of texts.
    pub fn number_bits(&self) -> Option<u32> {
        self.number_bits
    }

    /// Returns the first text in the column, if one of the first rows has one. Call this before reading any rows.
    ///
    /// # Errors
    /// Fails if the file is damaged, or the column has another type.
    pub fn first_text(&mut self) -> io::Result<Option<String>> {
        self.ahead = self.next_batch()?;
        let Some(codes) = self
            .ahead
            .as_ref()
            .and_then(|rows| rows.column_by_name(self.column))
        else {
            return Ok(None);
        };
        for row in 0..codes.len() {
            if let CodeCell::Text(text) = cell(codes, row, self.column)? {
                return Ok(Some(text.to_owned()));
            }
        }
        Ok(None)
    }

    fn next_batch(&mut self) -> io::Result<Option<RecordBatch>> {
        match self.ahead.take() {
            Some(batch) => Ok(Some(batch)),
            None => catch_panic_as_error(|| self.rows.next().transpose()).map_err(invalid),
        }
    }

    /// Calls `each` with the next rows and their numbers, counted from 1. Returns false at the end.
    ///
    /// # Errors
    /// Fails if the file is damaged, or a column has another type.
    pub fn read(
        &mut self,
        each: &mut dyn FnMut(u64, Option<&str>, CodeCell<'_>),
    ) -> io::Result<bool> {
        let Some(batch) = self.next_batch()? else {
            return match self.rows_in_footer.saturating_sub(self.row) {
                0 => Ok(false),
                missing => Err(invalid(fewer_rows(missing))),
            };
        };
        let codes = batch
            .column_by_name(self.column)
            .ok_or_else(|| invalid("a column is missing"))?;
        let ids = batch.column_by_name(ID);
        // Holds the id if it is a number; texts are borrowed from the batch.
        let mut text = String::new();
        for row in 0..batch.num_rows() {
            let id = ids.filter(|ids| ids.is_valid(row));
            let id = id.map(|ids| id_text(ids, row, &mut text)).transpose()?;
            self.row += 1;
            each(self.row, id, cell(codes, row, self.column)?);
        }
        Ok(true)
    }
}

fn cell<'c>(codes: &'c ArrayRef, row: usize, column: &str) -> io::Result<CodeCell<'c>> {
    if codes.is_null(row) {
        return Ok(CodeCell::Null);
    }
    Ok(match codes.data_type() {
        DataType::UInt64 => CodeCell::Number(codes.as_primitive::<UInt64Type>().value(row)),
        // Spark and BigQuery have no unsigned type: the bits are the fingerprint.
        DataType::Int64 => CodeCell::Number(codes.as_primitive::<Int64Type>().value(row) as u64),
        DataType::UInt32 => CodeCell::Number(codes.as_primitive::<UInt32Type>().value(row).into()),
        DataType::Int32 => {
            CodeCell::Number((codes.as_primitive::<Int32Type>().value(row) as u32).into())
        }
        DataType::Utf8 => CodeCell::Text(codes.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => CodeCell::Text(codes.as_string::<i64>().value(row)),
        DataType::Utf8View => CodeCell::Text(codes.as_string_view().value(row)),
        other => {
            return Err(invalid(format!(
                "the column {column} has the type {other}: it must hold numbers of 64 or 32 bits, or texts"
            )));
        }
    })
}

fn id_text<'a>(ids: &'a ArrayRef, row: usize, text: &'a mut String) -> io::Result<&'a str> {
    match ids.data_type() {
        DataType::Utf8 => Ok(ids.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Ok(ids.as_string::<i64>().value(row)),
        DataType::Utf8View => Ok(ids.as_string_view().value(row)),
        kind if kind.is_integer() => {
            *text = column::number_text(ids, row);
            Ok(text)
        }
        other => Err(invalid(format!(
            "the column {ID} has the type {other}: it must hold texts or whole numbers"
        ))),
    }
}

/// Writes a table of fingerprints.
pub struct CodeTableWriter<W: Write + Send> {
    out: ArrowWriter<W>,
    with_ids: bool,
    column: &'static str,
    ids: Vec<Option<String>>,
    codes: WrittenCodes,
    /// Number of bytes in buffered ids and texts.
    bytes: usize,
}

lookalike::opaque_debug! {
    [W: Write + Send] CodeTableWriter [W];
}

/// Buffered cells.
enum WrittenCodes {
    Numbers(Vec<Option<u64>>),
    ShortNumbers(Vec<Option<u32>>),
    Texts(Vec<Option<String>>),
}

impl WrittenCodes {
    fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::ShortNumbers(numbers) => numbers.len(),
            Self::Texts(texts) => texts.len(),
        }
    }

    fn take(&mut self) -> ArrayRef {
        match self {
            Self::Numbers(numbers) => Arc::new(UInt64Array::from(std::mem::take(numbers))),
            Self::ShortNumbers(numbers) => Arc::new(UInt32Array::from(std::mem::take(numbers))),
            Self::Texts(texts) => Arc::new(StringArray::from(std::mem::take(texts))),
        }
    }
}

impl<W: Write + Send> CodeTableWriter<W> {
    /// Begins a table of 64-bit fingerprints, with or without a column of ids.
    ///
    /// # Errors
    /// Returns errors of the output.
    pub fn new(out: W, with_ids: bool) -> io::Result<Self> {
        Self::begin(
            out,
            with_ids,
            FINGERPRINT,
            WrittenCodes::Numbers(Vec::new()),
        )
    }

    /// Begins a table of 32-bit fingerprints, with or without a column of ids.
    ///
    /// # Errors
    /// Returns errors of the output.
    pub fn of_short_numbers(out: W, with_ids: bool) -> io::Result<Self> {
        let codes = WrittenCodes::ShortNumbers(Vec::new());
        Self::begin(out, with_ids, FINGERPRINT, codes)
    }

    /// Begins a table of sketches as texts, in a column with this name.
    ///
    /// # Errors
    /// Returns errors of the output.
    pub fn of_texts(out: W, with_ids: bool, column: &'static str) -> io::Result<Self> {
        Self::begin(out, with_ids, column, WrittenCodes::Texts(Vec::new()))
    }

    fn begin(
        out: W,
        with_ids: bool,
        column: &'static str,
        codes: WrittenCodes,
    ) -> io::Result<Self> {
        let kind = match codes {
            WrittenCodes::Numbers(_) => DataType::UInt64,
            WrittenCodes::ShortNumbers(_) => DataType::UInt32,
            WrittenCodes::Texts(_) => DataType::Utf8,
        };
        let mut fields = vec![Field::new(column, kind, true)];
        if with_ids {
            fields.insert(0, Field::new(ID, DataType::Utf8, true));
        }
        let packed = Compression::ZSTD(ZstdLevel::default());
        let properties = WriterProperties::builder().set_compression(packed);
        let properties = properties
            // The writer holds a row group until it is full: 2^20 rows of 8 bytes and an id each.
            .set_max_row_group_row_count(Some(ROW_GROUP))
            .build();
        let schema = Arc::new(Schema::new(fields));
        let out = ArrowWriter::try_new(out, schema, Some(properties)).map_err(io::Error::other)?;
        Ok(Self {
            out,
            with_ids,
            column,
            ids: Vec::new(),
            codes,
            bytes: 0,
        })
    }

    /// Adds a row. If the number is too wide for the table, only its low bits are written.
    ///
    /// # Errors
    /// Returns errors of the output.
    pub fn push(&mut self, id: Option<&str>, code: Option<u64>) -> io::Result<()> {
        match &mut self.codes {
            WrittenCodes::Numbers(numbers) => numbers.push(code),
            WrittenCodes::ShortNumbers(numbers) => numbers.push(code.map(|code| code as u32)),
            WrittenCodes::Texts(texts) => texts.push(code.map(|code| format!("{code:016x}"))),
        }
        self.end_row(id)
    }

    /// Adds a row of a table of texts.
    ///
    /// # Errors
    /// Returns errors of the output, and fails if the table is one of numbers.
    pub fn push_text(&mut self, id: Option<&str>, text: Option<String>) -> io::Result<()> {
        match &mut self.codes {
            WrittenCodes::Numbers(_) | WrittenCodes::ShortNumbers(_) => {
                return Err(invalid("a text in a table of numbers"));
            }
            WrittenCodes::Texts(texts) => {
                self.bytes += text.as_ref().map_or(0, String::len);
                texts.push(text);
            }
        }
        self.end_row(id)
    }

    fn end_row(&mut self, id: Option<&str>) -> io::Result<()> {
        if self.with_ids {
            self.bytes += id.map_or(0, str::len);
            self.ids.push(id.map(str::to_owned));
        }
        if self.codes.len() == ROWS || self.bytes >= BATCH_BYTES {
            self.write()
        } else {
            Ok(())
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let codes = self.codes.take();
        let ids = self.with_ids.then(|| {
            let ids: ArrayRef = Arc::new(StringArray::from(std::mem::take(&mut self.ids)));
            (ID, ids, true)
        });
        let columns = ids.into_iter().chain([(self.column, codes, true)]);
        let batch = RecordBatch::try_from_iter_with_nullable(columns).map_err(io::Error::other)?;
        self.bytes = 0;
        self.out.write(&batch).map_err(io::Error::other)?;
        match self.out.memory_size() >= GROUP_BYTES {
            true => self.out.flush().map_err(io::Error::other),
            false => Ok(()),
        }
    }

    /// Ends the table and returns the output.
    ///
    /// # Errors
    /// Returns errors of the output.
    pub fn finish(mut self) -> io::Result<W> {
        if self.codes.len() > 0 {
            self.write()?;
        }
        self.out.into_inner().map_err(io::Error::other)
    }
}
