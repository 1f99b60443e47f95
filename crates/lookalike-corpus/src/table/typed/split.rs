//! Splitting of the rows of a table into two others, unchanged: types, schema, metadata and order stay.
//!
//! Rows are filtered within the batches of the Parquet and Arrow readers, the same that were read before as records, so they have the same numbers.
//! For Parquet, the schema and the metadata are copied from the file, including Arrow's own; a column that the writer cannot write as in the file
//! (96-bit times) gets the type that the writer assigns. For Arrow, types that Parquet lacks become the nearest that it has (`parquet_types`).

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use arrow_select::filter::filter_record_batch;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter};
use parquet::basic::{
    Compression as PageCompression, LogicalType, Type as PhysicalType, ZstdLevel,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaData};
use parquet::file::properties::WriterProperties;
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, Type, TypePtr};

use super::batch_source::BatchSource;
use super::pages::TextTypes;
use super::writer::write_batch;
use super::{column, parquet_types, typed_table};
use crate::atomic::AtomicFile;
use crate::decode;
use crate::error::ReadError;
use crate::format::Compression;
use crate::guard::{catch_panic, catch_panic_as_error};
use crate::options::InputOptions;
use crate::source::Inputs;
use crate::table::split_table::{SplitTable, TableRowChooser};

/// Numbers of bytes and of rows at which a row group is closed. Two tables are written at a time.
const GROUP_BYTES: usize = 16 << 20;
const GROUP_ROWS: usize = 1 << 20;

/// The schema and metadata of a table.
struct TableShape {
    schema: SchemaRef,
    /// Metadata of the footer, if the table is Parquet.
    parquet: Option<Arc<ParquetMetaData>>,
}

impl TableShape {
    /// Returns the schema and metadata for the writer, or `None` if nothing of the table can be read.
    fn of(table: &dyn BatchSource) -> Option<TableShape> {
        let (schema, parquet) = table.metadata()?;
        let schema = match parquet {
            Some(_) => schema,
            None => parquet_types::schema_of(&schema),
        };
        Some(TableShape { schema, parquet })
    }

    fn writer<W: io::Write + Send>(&self, out: W) -> Result<ArrowWriter<W>, String> {
        let options = self.options()?;
        catch_panic_as_error(|| {
            ArrowWriter::try_new_with_options(out, self.schema.clone(), options)
        })
    }

    /// Begins one of the two tables.
    fn create(&self, path: &Path) -> io::Result<ArrowWriter<AtomicFile>> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let file = AtomicFile::create(path, Compression::None)?;
        self.writer(file).map_err(io::Error::other)
    }

    /// Converts rows of the table to the writer's types.
    fn batch(&self, batch: RecordBatch) -> Result<RecordBatch, String> {
        match self.parquet {
            Some(_) => Ok(batch),
            None => parquet_types::batch_of(&batch, &self.schema),
        }
    }

    fn options(&self) -> Result<ArrowWriterOptions, String> {
        let properties = WriterProperties::builder()
            .set_compression(PageCompression::ZSTD(ZstdLevel::default()))
            .set_created_by(format!("lookalike {}", env!("CARGO_PKG_VERSION")))
            .set_max_row_group_row_count(Some(GROUP_ROWS));
        let options = ArrowWriterOptions::new();
        let Some(parquet) = &self.parquet else {
            let pairs = self.schema.metadata().iter();
            let mut metadata: Vec<KeyValue> = pairs
                .map(|(key, value)| KeyValue::new(key.clone(), value.clone()))
                .collect();
            // A hash map has no order, but the same table must give the same bytes.
            metadata.sort_by(|a, b| a.key.cmp(&b.key));
            let metadata = (!metadata.is_empty()).then_some(metadata);
            let properties = properties.set_key_value_metadata(metadata).build();
            return Ok(options.with_properties(properties));
        };
        let file = parquet.file_metadata();
        let schema = catch_panic_as_error(|| parquet_schema(file.schema_descr(), &self.schema))?;
        let sorting = parquet
            .row_groups()
            .first()
            .and_then(|group| group.sorting_columns());
        let mut groups = parquet.row_groups().iter();
        // Rows keep their order, so sorted columns stay sorted. Sorting columns are given as numbers of leaves.
        let is_sorted = schema.num_columns() == file.schema_descr().num_columns()
            && groups.all(|group| group.sorting_columns() == sorting);
        let sorting = sorting.filter(|_| is_sorted);
        let properties = properties
            .set_key_value_metadata(file.key_value_metadata().cloned())
            .set_sorting_columns(sorting.cloned());
        // Arrow's schema is part of the metadata, if the file has it.
        Ok(options
            .with_properties(properties.build())
            .with_parquet_schema(schema)
            .with_skip_arrow_metadata(true))
    }
}

/// Returns the schema of the file, except for columns that the writer writes differently: these get the types that it derives from Arrow's.
fn parquet_schema(
    file: &SchemaDescriptor,
    schema: &SchemaRef,
) -> Result<SchemaDescriptor, ParquetError> {
    let made = ArrowSchemaConverter::new().convert(schema)?;
    let (own, new) = (
        file.root_schema().get_fields(),
        made.root_schema().get_fields(),
    );
    if own.len() != new.len() {
        return Ok(made);
    }
    let fields = own.iter().zip(new).map(|(own, new)| {
        let (a, b) = (leaves(own), leaves(new));
        let is_kept = a.num_columns() == b.num_columns()
            && a.columns()
                .iter()
                .zip(b.columns())
                .all(|(a, b)| is_writable_as(a, b));
        if is_kept { own } else { new }.clone()
    });
    let root = Type::group_type_builder(file.root_schema().name())
        .with_fields(fields.collect())
        .build()?;
    Ok(SchemaDescriptor::new(Arc::new(root)))
}

/// Returns the leaves of one column.
fn leaves(column: &TypePtr) -> SchemaDescriptor {
    let root = Type::group_type_builder("root").with_fields(vec![column.clone()]);
    let root = root.build().expect("a group of one field is a type");
    SchemaDescriptor::new(Arc::new(root))
}

/// Returns true if the writer, which would make a leaf like `made`, can write it like that of the file. This depends on physical types and levels.
fn is_writable_as(file: &ColumnDescriptor, made: &ColumnDescriptor) -> bool {
    let has_same_levels = file.max_def_level() == made.max_def_level()
        && file.max_rep_level() == made.max_rep_level();
    let is_same_type =
        file.physical_type() == made.physical_type() && file.type_length() == made.type_length();
    let has_other_way = match (file.physical_type(), file.logical_type_ref()) {
        // Decimals of any precision as bytes.
        (PhysicalType::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Decimal(decimal))) => {
            file.type_length() == decimal_bytes(decimal.precision)
        }
        // Arrow's 64-bit dates as days.
        (PhysicalType::INT32, Some(LogicalType::Date)) => {
            made.physical_type() == PhysicalType::INT64
        }
        _ => false,
    };
    has_same_levels && (is_same_type || has_other_way)
}

/// Returns the number of bytes that the writer uses for a decimal of this precision: the minimum for its digits and a sign.
fn decimal_bytes(precision: i32) -> i32 {
    (((10_f64.powi(precision) + 1.0).log2() + 1.0) / 8.0).ceil() as i32
}

/// Adds the marked rows of a batch to one of the two tables.
fn add(writer: &mut ArrowWriter<AtomicFile>, batch: &RecordBatch, rows: &[bool]) -> io::Result<()> {
    // Writing an empty batch would be harmless, but filtering a large one in vain is slow.
    if !rows.contains(&true) {
        return Ok(());
    }
    let filtered = match rows.contains(&false) {
        true => {
            catch_panic_as_error(|| filter_record_batch(batch, &BooleanArray::from(rows.to_vec())))
        }
        false => Ok(batch.clone()),
    };
    let filtered = filtered.map_err(io::Error::other)?;
    match catch_panic(|| write_batch(writer, &filtered, GROUP_BYTES)) {
        Ok(Ok(())) => Ok(()),
        // Of the data, not of the disk.
        Ok(Err(ParquetError::NYI(told))) => Err(io::Error::new(io::ErrorKind::InvalidData, told)),
        Ok(Err(error)) => Err(io::Error::other(error.to_string())),
        Err(_) => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the data is inconsistent",
        )),
    }
}

/// Completes one of the two tables, and returns its size in bytes.
fn finish(writer: ArrowWriter<AtomicFile>, path: &Path) -> io::Result<u64> {
    let file = catch_panic_as_error(|| writer.into_inner()).map_err(io::Error::other)?;
    file.commit()?;
    fs::metadata(path).map(|meta| meta.len())
}

impl Inputs {
    /// Returns the reason why the rows of a table cannot be written as Parquet with their types, or `None` if they can.
    ///
    /// # Errors
    /// Fails if the source cannot be opened.
    pub fn unwritable_table(
        &self,
        source: u32,
        options: &InputOptions,
    ) -> Result<Option<String>, ReadError> {
        let source = &self.sources[source as usize];
        let table = typed_table::open(source, options, TextTypes::AsWritten)?;
        let Some(shape) = TableShape::of(&*table) else {
            return Ok(None);
        };
        let lacking = parquet_types::lacking(&shape.schema);
        // Tried with an output that drops everything.
        Ok(lacking.or_else(|| shape.writer(io::sink()).err()))
    }

    /// Writes the rows of a table, in order and with their types, schema and metadata, to two Parquet tables: each to the one whose index `choose`
    /// returns, if any. Returns `None` if nothing of the table can be read.
    ///
    /// Holds a batch, of 4 MiB if all rows are about equally long and some 16 MiB otherwise, and two row groups of some 16 MiB in memory.
    ///
    /// # Errors
    /// Fails if reading or writing fails, and with [`io::ErrorKind::InvalidData`] if Parquet cannot represent a value.
    pub fn split_table(
        &self,
        source: u32,
        options: &InputOptions,
        paths: [&Path; 2],
        choose: &mut TableRowChooser<'_>,
    ) -> io::Result<Option<SplitTable>> {
        let source = &self.sources[source as usize];
        let table = typed_table::open(source, options, TextTypes::AsWritten);
        let mut table = table.map_err(io::Error::other)?;
        let Some(shape) = TableShape::of(&*table) else {
            return Ok(None);
        };
        let mut writers = [shape.create(paths[0])?, shape.create(paths[1])?];
        let invalid = |told: String| io::Error::new(io::ErrorKind::InvalidData, told);
        let mut number = 0;
        // Damage was already reported when the records were read.
        let (mut row, mut told) = (0, Vec::new());
        while let Some(batch) = table.next_batch(&mut row, &mut told) {
            let batch = catch_panic_as_error(|| batch.restored()).map_err(invalid)?;
            let mut rows = [Vec::new(), Vec::new()];
            for row in 0..batch.num_rows() {
                // The reading of the same row, on which the decision is based, counts values that became null.
                let choice = choose(number, &|| column::row_line(&batch, row).0);
                number += 1;
                for (part, rows) in rows.iter_mut().enumerate() {
                    rows.push(choice == Some(part));
                }
            }
            let batch = catch_panic_as_error(|| shape.batch(batch)).map_err(invalid)?;
            for (writer, rows) in writers.iter_mut().zip(&rows) {
                add(writer, &batch, rows)?;
            }
        }
        // Checked before any file gets its name: row numbers are valid only for the file that was parsed.
        decode::check_metadata(source, fs::metadata(source.file())).map_err(io::Error::other)?;
        let [first, second] = writers;
        Ok(Some(SplitTable {
            rows: number,
            // Both were written at the same time and are renamed one after the other; a job that ends in between writes both anew.
            bytes: [finish(first, paths[0])?, finish(second, paths[1])?],
        }))
    }
}
