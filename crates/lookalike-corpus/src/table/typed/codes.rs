//! Parquet tables of fingerprints or longer sketches: a column `fingerprint` or with another name, and optionally a column `id`.
//!
//! Fingerprints are 64-bit or 32-bit numbers (the bits of signed ones count) or texts, such as sixteen hexadecimal digits; ids are texts or whole
//! numbers. Other columns are not read.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{ArrayBuilder, StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::parquet::fewer_rows;
use super::writer::write_batch;
use super::{column, footer, pages};
use crate::guard::catch_panic_as_error;
use crate::regular::open_regular;
use crate::table::code_cell::{CodeCell, CodeColumn, FINGERPRINT_COLUMN};

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
    column: &'static str,
    /// Width in bits of the numbers in the column, or `None` for a column of texts.
    pub number_bits: Option<u32>,
    row: u64,
    /// Number of rows by the footer.
    rows_in_footer: u64,
}

lookalike::opaque_debug! {
    [] CodeTable [];
}

impl CodeTable {
    /// Opens a table whose sketches are in the column with this name.
    ///
    /// # Errors
    /// Fails if it is not a Parquet file or has no such column.
    pub fn open(path: &Path, column: &'static str) -> io::Result<Self> {
        let file = open_regular(path)?;
        let metadata = footer::load(&file).map_err(invalid)?;
        let fields = metadata.schema().fields();
        let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        let Some(at) = names.iter().position(|name| *name == column) else {
            return Err(invalid(format!(
                "there is no column {column}; the columns are {}",
                names.join(", ")
            )));
        };
        let wanted = (0..names.len()).filter(|&other| other == at || names[other] == ID);
        let number_bits = match fields[at].data_type() {
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
            column,
            number_bits,
            row: 0,
            rows_in_footer,
        })
    }

    /// Calls `each` with the next rows and their numbers, counted from 1. Returns false at the end.
    ///
    /// # Errors
    /// Fails if the file is damaged, or a column has another type.
    pub fn read(
        &mut self,
        each: &mut dyn FnMut(u64, Option<&str>, CodeCell<'_>),
    ) -> io::Result<bool> {
        let batch = catch_panic_as_error(|| self.rows.next().transpose());
        let Some(batch) = batch.map_err(invalid)? else {
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
    schema: SchemaRef,
    /// Buffered ids, if the table has any.
    ids: Option<StringBuilder>,
    codes: WrittenCodes,
    /// Number of bytes in buffered ids and texts.
    bytes: usize,
}

lookalike::opaque_debug! {
    [W: Write + Send] CodeTableWriter [W];
}

/// Buffered cells.
enum WrittenCodes {
    Numbers(UInt64Builder),
    ShortNumbers(UInt32Builder),
    Texts(StringBuilder),
}

impl WrittenCodes {
    fn builder(&mut self) -> &mut dyn ArrayBuilder {
        match self {
            Self::Numbers(numbers) => numbers,
            Self::ShortNumbers(numbers) => numbers,
            Self::Texts(texts) => texts,
        }
    }
}

impl<W: Write + Send> CodeTableWriter<W> {
    /// Begins a table, with or without a column of ids.
    ///
    /// # Errors
    /// Returns errors of the output.
    pub fn new(out: W, with_ids: bool, column: CodeColumn) -> io::Result<Self> {
        let (name, kind, codes) = match column {
            CodeColumn::Numbers => {
                let codes = WrittenCodes::Numbers(UInt64Builder::new());
                (FINGERPRINT_COLUMN, DataType::UInt64, codes)
            }
            CodeColumn::ShortNumbers => {
                let codes = WrittenCodes::ShortNumbers(UInt32Builder::new());
                (FINGERPRINT_COLUMN, DataType::UInt32, codes)
            }
            CodeColumn::Texts(name) => {
                let codes = WrittenCodes::Texts(StringBuilder::new());
                (name, DataType::Utf8, codes)
            }
        };
        let mut fields = vec![Field::new(name, kind, true)];
        if with_ids {
            fields.insert(0, Field::new(ID, DataType::Utf8, true));
        }
        let packed = Compression::ZSTD(ZstdLevel::default());
        let properties = WriterProperties::builder().set_compression(packed);
        let properties = properties
            // The writer holds a row group until it is full: 2^20 rows of 8 bytes and an id each.
            .set_max_row_group_row_count(Some(ROW_GROUP))
            .build();
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let out = ArrowWriter::try_new(out, schema.clone(), Some(properties));
        Ok(Self {
            out: out.map_err(io::Error::other)?,
            schema,
            ids: with_ids.then(StringBuilder::new),
            codes,
            bytes: 0,
        })
    }

    /// Adds a row. If the number is too wide for the table, only its low bits are written.
    ///
    /// # Errors
    /// Returns errors of the output, and fails for a number in a table of texts, or a text in one of numbers.
    pub fn push(&mut self, id: Option<&str>, code: CodeCell<'_>) -> io::Result<()> {
        match (&mut self.codes, code) {
            (WrittenCodes::Numbers(numbers), CodeCell::Number(code)) => numbers.append_value(code),
            (WrittenCodes::Numbers(numbers), CodeCell::Null) => numbers.append_null(),
            (WrittenCodes::ShortNumbers(numbers), CodeCell::Number(code)) => {
                numbers.append_value(code as u32);
            }
            (WrittenCodes::ShortNumbers(numbers), CodeCell::Null) => numbers.append_null(),
            (WrittenCodes::Texts(texts), CodeCell::Text(text)) => {
                self.bytes += text.len();
                texts.append_value(text);
            }
            (WrittenCodes::Texts(texts), CodeCell::Null) => texts.append_null(),
            _ => {
                return Err(invalid(
                    "a text in a table of numbers, or a number among texts",
                ));
            }
        }
        if let Some(ids) = &mut self.ids {
            self.bytes += id.map_or(0, str::len);
            ids.append_option(id);
        }
        match self.codes.builder().len() == ROWS || self.bytes >= BATCH_BYTES {
            true => self.write(),
            false => Ok(()),
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let ids = self.ids.as_mut().map(ArrayBuilder::finish);
        let columns = ids.into_iter().chain([self.codes.builder().finish()]);
        let batch = RecordBatch::try_new(self.schema.clone(), columns.collect());
        let batch = batch.map_err(io::Error::other)?;
        self.bytes = 0;
        write_batch(&mut self.out, &batch, GROUP_BYTES).map_err(io::Error::other)
    }

    /// Ends the table and returns the output.
    ///
    /// # Errors
    /// Returns errors of the output.
    pub fn finish(mut self) -> io::Result<W> {
        if !self.codes.builder().is_empty() {
            self.write()?;
        }
        self.out.into_inner().map_err(io::Error::other)
    }
}
