//! Conversion of JSON lines to a Parquet file: column types are inferred in one reading, and rows are written in a second.
//!
//! Used by [`AtomicFile::lines`](crate::AtomicFile::lines), so that code that writes JSON lines need not know their final format. The same lines give
//! the same bytes.

use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::column_builders::{StructBuilder, arrow_fields};
use super::schema_inference::InferredFields;
use crate::charset;
use crate::surrogate;
use crate::table::row_error::TableRowError;

/// Numbers of bytes of lines and of rows at which a batch is passed to the writer.
const BATCH_BYTES: usize = 4 << 20;
const BATCH_ROWS: usize = 8192;

/// Numbers of bytes and of rows at which a row group is closed.
const GROUP_BYTES: usize = 32 << 20;
const GROUP_ROWS: usize = 1 << 20;

/// Maximum length of a line. Longer ones are refused, because they would be in memory several times.
const MAX_LINE_BYTES: u64 = 256 << 20;

/// Updates `columns` with the types in `lines`, one JSON object each, compressed by zstd.
///
/// # Errors
/// Fails if reading fails, or with a [`TableRowError`] if the lines do not form a table: not objects, over 1,000 columns, or a line over 256 MiB.
pub(crate) fn learn(columns: &mut InferredFields, lines: &mut impl Read) -> io::Result<()> {
    for_each_line(lines, |row, line| {
        let learned = columns.learn(line);
        learned.map_err(|cause| no_table(TableRowError::Columns { row, cause }))
    })
}

/// Writes `lines` as a table to `out`, with columns that were inferred from them. Takes some 40 MiB, and four times the longest line.
///
/// # Errors
/// Fails if reading or writing fails.
pub(crate) fn write_parquet<W: Write + Send>(
    columns: &InferredFields,
    lines: &mut impl Read,
    out: W,
) -> io::Result<W> {
    let schema: SchemaRef = Arc::new(Schema::new(arrow_fields(columns)));
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(format!("lookalike {}", env!("CARGO_PKG_VERSION")))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .build();
    let writer = ArrowWriter::try_new(out, schema.clone(), Some(properties));
    let mut writer = writer.map_err(failed)?;
    let mut flush = |rows: &mut StructBuilder| {
        let options = RecordBatchOptions::new().with_row_count(Some(rows.rows()));
        let batch = RecordBatch::try_new_with_options(schema.clone(), rows.finish(), &options);
        let batch = batch.map_err(|error| failed(error.into()))?;
        write_batch(&mut writer, &batch, GROUP_BYTES).map_err(failed)
    };
    let (mut rows, mut bytes) = (StructBuilder::new(columns), 0);
    for_each_line(lines, |_, line| {
        rows.add(line)?;
        bytes += line.len();
        // The second limit keeps the offsets of lists within 32 bits: `ends` counts the items of one batch.
        if bytes >= BATCH_BYTES || rows.rows() == BATCH_ROWS {
            bytes = 0;
            flush(&mut rows)?;
        }
        Ok(())
    })?;
    if rows.rows() > 0 {
        flush(&mut rows)?;
    }
    writer.into_inner().map_err(failed)
}

/// Writes a batch, and closes the row group once it takes `most` bytes.
pub(super) fn write_batch<W: Write + Send>(
    writer: &mut ArrowWriter<W>,
    batch: &RecordBatch,
    most: usize,
) -> Result<(), ParquetError> {
    writer.write(batch)?;
    match writer.memory_size() >= most {
        true => writer.flush(),
        false => Ok(()),
    }
}

/// Calls `visit` with the number of every line, from 1, and the line, as valid UTF-8 without lone surrogates.
fn for_each_line(
    lines: &mut impl Read,
    mut visit: impl FnMut(u64, &str) -> io::Result<()>,
) -> io::Result<()> {
    let decoder = zstd::stream::read::Decoder::new(lines)?;
    let mut decoder = io::BufReader::with_capacity(1 << 16, decoder);
    let (mut line, mut number) = (Vec::new(), 0_u64);
    loop {
        line.clear();
        number += 1;
        let length = (&mut decoder)
            .take(MAX_LINE_BYTES + 1)
            .read_until(b'\n', &mut line)?;
        if length == 0 {
            return Ok(());
        }
        if length as u64 > MAX_LINE_BYTES {
            return Err(no_table(TableRowError::TooLong {
                row: number,
                most: MAX_LINE_BYTES >> 20,
            }));
        }
        // Lines that come from the user may contain both, but a table of texts cannot.
        let text = charset::decode_line(&line);
        visit(number, &surrogate::replace_lone(&text))?;
    }
}

fn no_table(error: TableRowError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

fn failed(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}
