//! The pages of a Parquet file, checked before they are unpacked, and again before they are decoded.
//!
//! The library allocates the declared size of a page before it unpacks it: eight bytes of a damaged file can request two gigabytes. So the library
//! reads the file through [`CheckedFile`], which checks the head of each page first, and also the packed data if the library would unpack it without
//! limit. The unpacked pages go through [`CheckedPages`], which checks the counts in them. Texts are read as views into their pages, so that a
//! dictionary with one long text and a million references to it takes only the memory of a million references.
//!
//! A head is a struct in Thrift's compact protocol. The library accepts its fields in any order, and the last of repeated ones counts. So a head is
//! walked to its end, and must have the form that every writer produces: kind and sizes first, each field once, in the order of their numbers.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow_schema::DataType;
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use lz4_flex::frame::FrameDecoder;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReader, RowGroups};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};

use super::delta;
use super::parquet_types::{with_inner_types, with_types};
use super::texts::{bytes_schema, bytes_type};
use super::thrift::{CompactWalk, kind, signed};

/// Maximum unpacked size of a page. Writers aim at 1 MiB; those that count rows first reach some hundred MiB with long texts.
const MAX_PAGE_BYTES: i64 = 512 << 20;
/// Unpacked size that any page may have. Larger ones are limited to [`MAX_RATIO`] their packed size.
const ALWAYS_ALLOWED_BYTES: i64 = 64 << 20;
/// Compression ratio that text hardly ever reaches.
const MAX_RATIO: i64 = 1000;
/// Maximum number of bytes of a head: some writers put the minimum and maximum text into it.
const HEAD: u64 = 64 << 20;
/// Maximum nesting of structs; the statistics of a page have depth two.
const DEPTH: u32 = 8;
/// Maximum number of values in a page with packed lengths, all of which the library holds.
const MAX_LENGTHS: u64 = 1 << 25;
/// Maximum number of bytes of fixed-length values that are decoded together.
const FIXED_BYTES: i64 = 64 << 20;

/// Maximum compression ratio of gzip: 258 bytes in two bits.
const MAX_GZIP_RATIO: i64 = 1032;
/// Maximum compression ratio of LZ4.
const MAX_LZ4_RATIO: i64 = 255;

fn refused<T>(reason: String) -> Result<T> {
    Err(ParquetError::General(reason))
}

fn larger_than_said<T>(unpacked: u64) -> Result<T> {
    refused(format!(
        "a page comes to more than the {unpacked} bytes that it says"
    ))
}

/// Returns bytes of a file, or an error if some are beyond its end.
pub(super) fn existing_bytes(file: &File, start: u64, length: usize) -> Result<Bytes> {
    if start
        .checked_add(length as u64)
        .is_none_or(|end| end > file.len())
    {
        return refused(format!("{length} bytes are missing at the end of the file"));
    }
    file.get_bytes(start, length)
}

/// The Arrow types of texts and bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TextTypes {
    /// Views into their pages.
    Views,
    /// The types of the schema.
    AsWritten,
}

/// A part of a table.
pub(super) struct ParquetPart {
    pub(super) groups: Vec<usize>,
    pub(super) columns: ProjectionMask,
    pub(super) texts: TextTypes,
    /// True to read texts as bytes, which need not be UTF-8.
    pub(super) as_bytes: bool,
    pub(super) pages: Arc<BatchPages>,
}

/// Bytes of the pages that are unpacked for a batch, without the first page of each column, which is needed even for a single row.
pub(super) struct BatchPages {
    /// Number of the batch.
    batch: AtomicU64,
    bytes: AtomicU64,
    most: u64,
}

impl BatchPages {
    /// Creates a count that makes a batch fail when it takes more than `most` bytes.
    pub(super) fn new(most: u64) -> Arc<BatchPages> {
        Arc::new(BatchPages {
            batch: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            most,
        })
    }

    /// Begins the next batch.
    pub(super) fn begin(&self) {
        self.batch.fetch_add(1, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Returns true if the batch failed because of its size.
    pub(super) fn exceeded(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > self.most
    }

    fn add(&self, bytes: u64) -> Result<()> {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        match self.exceeded() {
            true => refused("too many bytes in a batch of rows".to_owned()),
            false => Ok(()),
        }
    }
}

/// Creates a reader for a part of a file, in batches of at most `rows` rows.
pub(super) fn record_batches(
    file: File,
    metadata: &ArrowReaderMetadata,
    part: ParquetPart,
    rows: usize,
) -> Result<ParquetRecordBatchReader> {
    let schema = metadata.parquet_schema();
    let longest = schema
        .columns()
        .iter()
        .map(|column| match column.physical_type() {
            Type::FIXED_LEN_BYTE_ARRAY => i64::from(column.type_length()),
            _ => 1,
        });
    let longest = longest.max().unwrap_or(1).max(1);
    // The library allocates rows × length before it reads: a type of 2 GiB per value, which a schema may declare, would exhaust memory with one row.
    let rows = rows.min((FIXED_BYTES / longest).max(1) as usize);
    let fields = metadata.schema().fields();
    let hint = match part.texts {
        TextTypes::Views => fields
            .iter()
            .map(|field| with_types(field, &view_type))
            .collect(),
        TextTypes::AsWritten => fields.clone(),
    };
    let levels = match part.as_bytes {
        true => {
            let hint = hint.iter().map(|field| with_types(field, &bytes_type));
            let hint = hint.collect();
            parquet_to_arrow_field_levels(&bytes_schema(schema)?, part.columns, Some(&hint))?
        }
        false => parquet_to_arrow_field_levels(schema, part.columns, Some(&hint))?,
    };
    let groups = CheckedGroups {
        file: Arc::new(file),
        metadata: metadata.metadata().clone(),
        groups: part.groups,
        pages: part.pages,
    };
    ParquetRecordBatchReader::try_new_with_row_groups(&levels, &groups, rows, None)
}

/// Returns the type with views in place of texts and bytes, if it is one of these.
fn view_type(kind: &DataType) -> Option<DataType> {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 => Some(DataType::Utf8View),
        DataType::Binary | DataType::LargeBinary => Some(DataType::BinaryView),
        // A dictionary of texts written by Arrow: with views, each row is a reference anyway.
        DataType::Dictionary(_, value) => {
            Some(with_inner_types(value, &view_type)).filter(|views| *views != **value)
        }
        // Not read with views.
        DataType::ListView(_) | DataType::LargeListView(_) | DataType::RunEndEncoded(..) => {
            Some(kind.clone())
        }
        _ => None,
    }
}

/// Row groups whose pages are checked.
#[derive(Clone)]
struct CheckedGroups {
    file: Arc<File>,
    metadata: Arc<ParquetMetaData>,
    groups: Vec<usize>,
    pages: Arc<BatchPages>,
}

impl RowGroups for CheckedGroups {
    fn num_rows(&self) -> usize {
        self.row_groups()
            .map(|group| group.num_rows() as usize)
            .sum()
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>> {
        let groups = self.clone();
        let at = 0;
        Ok(Box::new(CheckedChunks { groups, at, column }))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        let groups = self.groups.iter();
        Box::new(groups.map(|&group| self.metadata.row_group(group)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// A column of some row groups.
struct CheckedChunks {
    groups: CheckedGroups,
    /// Number of row groups that were passed.
    at: usize,
    column: usize,
}

impl Iterator for CheckedChunks {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        let CheckedGroups {
            file,
            metadata,
            groups,
            pages,
        } = &self.groups;
        let group = metadata.row_group(*groups.get(self.at)?);
        self.at += 1;
        let pages = CheckedPages::new(file, group, self.column, pages.clone());
        Some(pages.map(|pages| Box::new(pages) as Box<dyn PageReader>))
    }
}

impl PageIterator for CheckedChunks {}

/// The pages of a column of a row group, checked before they are decoded.
struct CheckedPages {
    file: Arc<CheckedFile>,
    pages: SerializedPageReader<CheckedFile>,
    /// True if the pages are compressed with Brotli and unpacked here.
    brotli: bool,
    column: ColumnDescPtr,
    /// Maximum number of values in the remaining pages.
    left: i64,
    in_batch: Arc<BatchPages>,
    /// Number of the last batch that needed a page.
    last_batch: u64,
}

impl CheckedPages {
    fn new(
        file: &File,
        group: &RowGroupMetaData,
        column: usize,
        in_batch: Arc<BatchPages>,
    ) -> Result<CheckedPages> {
        let mut chunk: &ColumnChunkMetaData = group.column(column);
        if chunk.compression() == Compression::LZO {
            return refused(
                "pages compressed with LZO are not read: write the table with zstd".to_owned(),
            );
        }
        let file = Arc::new(CheckedFile {
            file: file.try_clone()?,
            compression: chunk.compression(),
            head_is_known: AtomicBool::new(false),
            unpacked: AtomicU64::new(0),
        });
        let rows = group.num_rows() as usize;
        let brotli = matches!(chunk.compression(), Compression::BROTLI(_));
        let as_packed: ColumnChunkMetaData;
        if brotli {
            let builder = chunk.clone().into_builder();
            as_packed = builder.set_compression(Compression::UNCOMPRESSED).build()?;
            chunk = &as_packed;
        }
        Ok(CheckedPages {
            pages: SerializedPageReader::new(file.clone(), chunk, rows, None)?,
            file,
            brotli,
            column: chunk.column_descr_ptr(),
            left: chunk.num_values(),
            in_batch,
            last_batch: u64::MAX,
        })
    }

    fn check(&mut self, page: &Page) -> Result<()> {
        let (bytes, values) = (page.buffer().len() as u64, u64::from(page.num_values()));
        if page.is_dictionary_page() {
            // Plain values: a text has four bytes of length, and any other value takes at least one byte.
            let least = if self.column.physical_type() == Type::BYTE_ARRAY {
                4
            } else {
                1
            };
            return match values > bytes / least {
                true => refused(format!(
                    "a dictionary of {bytes} bytes says that it has {values} entries: not read"
                )),
                false => Ok(()),
            };
        }
        // The number in the footer limits all pages together, because thousands of small pages with large counts add up, too.
        self.left -= values as i64;
        if self.left < 0 {
            return refused("its pages have more values than its footer says".to_owned());
        }
        let unpacked = match page.encoding() {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => {
                let lengths = values_of(page, &self.column)
                    .and_then(|values| delta::lengths(values, MAX_LENGTHS));
                // Texts in this encoding are stored in full, so only their lengths can be inconsistent.
                lengths.map(|_| 0)
            }
            Encoding::DELTA_BYTE_ARRAY => {
                values_of(page, &self.column).and_then(bytes_after_prefixes)
            }
            _ => Some(0),
        };
        match unpacked {
            None => refused("the lengths in a page are inconsistent".to_owned()),
            Some(sum) if sum > MAX_PAGE_BYTES as u64 => {
                refused(format!("a page of {bytes} bytes comes to {sum}: not read"))
            }
            Some(sum) => self.count(bytes.max(sum)),
        }
    }

    /// Adds a page to the batch, unless it is the first one of its column.
    fn count(&mut self, bytes: u64) -> Result<()> {
        let batch = self.in_batch.batch.load(Ordering::Relaxed);
        match std::mem::replace(&mut self.last_batch, batch) == batch {
            true => self.in_batch.add(bytes),
            false => Ok(()),
        }
    }
}

/// Computes the unpacked size of values that share prefixes with their predecessors.
fn bytes_after_prefixes(values: &[u8]) -> Option<u64> {
    let prefixes = delta::lengths(values, MAX_LENGTHS)?;
    let suffixes = delta::lengths(&values[prefixes.bytes..], MAX_LENGTHS)?;
    (prefixes.count == suffixes.count).then_some(prefixes.sum + suffixes.sum)
}

/// Returns the values of a data page, which follow its levels.
fn values_of<'p>(page: &'p Page, column: &ColumnDescriptor) -> Option<&'p [u8]> {
    match page {
        Page::DataPageV2 {
            buf,
            def_levels_byte_len,
            rep_levels_byte_len,
            ..
        } => buf.get(*def_levels_byte_len as usize + *rep_levels_byte_len as usize..),
        Page::DataPage {
            buf,
            num_values,
            def_level_encoding,
            rep_level_encoding,
            ..
        } => {
            let (repetition, definition) = (column.max_rep_level(), column.max_def_level());
            let rest = after_levels(buf, *num_values, *rep_level_encoding, repetition)?;
            after_levels(rest, *num_values, *def_level_encoding, definition)
        }
        Page::DictionaryPage { .. } => None,
    }
}

#[expect(deprecated, reason = "old files have it")]
fn after_levels(bytes: &[u8], values: u32, encoding: Encoding, highest: i16) -> Option<&[u8]> {
    if highest == 0 {
        return Some(bytes);
    }
    let length = match encoding {
        // In pages of the first version, the length of the levels comes before them. The sum cannot overflow on 64 bits; `get` refuses ranges outside
        // of the page.
        Encoding::RLE => 4 + u32::from_le_bytes(*bytes.first_chunk()?) as usize,
        Encoding::BIT_PACKED => {
            let bits = u64::from(16 - highest.unsigned_abs().leading_zeros());
            (u64::from(values) * bits).div_ceil(8) as usize
        }
        _ => return None,
    };
    bytes.get(length..)
}

/// Unpacks a page of Brotli to the size that its head states. The library can do it only with an encoder, whose tables and code take a megabyte of
/// the program; and without a limit, so that each page would have to be unpacked once more, to measure it.
fn unpack_brotli(page: &mut Page, unpacked: u64) -> Result<()> {
    let (bytes, levels) = match page {
        Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. } => (buf, 0),
        Page::DataPageV2 {
            is_compressed: false,
            ..
        } => return Ok(()),
        Page::DataPageV2 {
            buf,
            def_levels_byte_len,
            rep_levels_byte_len,
            ..
        } => {
            let levels = *def_levels_byte_len as usize + *rep_levels_byte_len as usize;
            (buf, levels)
        }
    };
    let Some((levels, packed)) = bytes.split_at_checked(levels) else {
        return refused("a page is shorter than its levels".to_owned());
    };
    let mut whole = Vec::with_capacity(unpacked as usize);
    whole.extend_from_slice(levels);
    // A page without values may have no packed bytes at all.
    if let Some(left @ 1..) = unpacked.checked_sub(levels.len() as u64) {
        let unpacker = brotli_decompressor::Decompressor::new(packed, 4096);
        unpacker.take(left + 1).read_to_end(&mut whole)?;
    }
    match (whole.len() as u64).cmp(&unpacked) {
        std::cmp::Ordering::Equal => *bytes = whole.into(),
        std::cmp::Ordering::Greater => return larger_than_said(unpacked),
        std::cmp::Ordering::Less => {
            return refused(format!(
                "a page comes to {} of the {unpacked} bytes that it says",
                whole.len()
            ));
        }
    }
    Ok(())
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        // The page is already unpacked, which `CheckedFile` allowed, but it is decoded only after this check.
        let mut page = self.pages.get_next_page()?;
        if let Some(page) = &mut page {
            if self.brotli {
                unpack_brotli(page, self.file.unpacked.load(Ordering::Relaxed))?;
            }
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        let next = self.pages.peek_next_page()?;
        // The library keeps this head. When it reads the page, it requests the bytes behind the head, but does not use them.
        let known = &self.file.head_is_known;
        known.store(next.is_some(), Ordering::Relaxed);
        Ok(next)
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.file.head_is_known.store(false, Ordering::Relaxed);
        // A skipped page is not decoded, so its counts do not matter.
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        // In columns of lists, this is asked after each page, and the library looks at the next head.
        self.peek_next_page()?;
        self.pages.at_record_boundary()
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

/// A file whose pages are checked before they are unpacked.
struct CheckedFile {
    file: File,
    /// The compression of the pages.
    compression: Compression,
    /// True if the head of the next page was read, and the page itself was not.
    head_is_known: AtomicBool,
    /// Unpacked size of the page whose head was read last.
    unpacked: AtomicU64,
}

impl Length for CheckedFile {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for CheckedFile {
    type T = BufReader<File>;

    /// Used only to read the heads of pages.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        if self.head_is_known.swap(false, Ordering::Relaxed) {
            return self.file.get_read(start);
        }
        // Byte by byte from a buffer of 8 KiB: a head takes some fifty bytes, once for each page of about a mebibyte.
        let bytes = self.file.get_read(start)?.take(HEAD).bytes();
        let head = match parse_page_header(bytes.map_while(std::io::Result::ok)) {
            Ok(head) => head,
            Err(reason) => return refused(reason),
        };
        self.check_packed(start, &head)?;
        let unpacked = u64::try_from(head.unpacked).unwrap_or(0);
        self.unpacked.store(unpacked, Ordering::Relaxed);
        self.file.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        existing_bytes(&self.file, start, length)
    }
}

/// Creates a reader of unpacked bytes.
type Unpacker = fn(std::io::Take<File>) -> Box<dyn Read>;

impl CheckedFile {
    /// Unpacks data that the library would unpack without limit, to measure it, without keeping the output.
    fn check_packed(&self, start: u64, head: &DataPageHeader) -> Result<()> {
        let (times, unpack): (_, Unpacker) = match self.compression {
            Compression::GZIP(_) => (MAX_GZIP_RATIO, |packed| {
                Box::new(MultiGzDecoder::new(packed))
            }),
            Compression::LZ4 => (MAX_LZ4_RATIO, |packed| Box::new(FrameDecoder::new(packed))),
            _ => return Ok(()),
        };
        // Small pages cannot exceed the limit, so hardly any page is unpacked twice.
        if head.packed.saturating_mul(times) <= MAX_PAGE_BYTES {
            return Ok(());
        }
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(start + head.bytes + head.levels))?;
        let packed = (head.packed as u64).saturating_sub(head.levels);
        let unpacked = (head.unpacked as u64).saturating_sub(head.levels);
        let mut reader = unpack(file.take(packed)).take(unpacked + 1);
        // Ignore damage: the library finds it and stops there, too.
        let grown = std::io::copy(&mut reader, &mut std::io::sink());
        if grown.is_ok_and(|bytes| bytes > unpacked) {
            return larger_than_said(head.unpacked as u64);
        }
        Ok(())
    }
}

/// The head of a page.
#[derive(Debug, PartialEq, Eq)]
struct DataPageHeader {
    /// Number of bytes of the head itself.
    bytes: u64,
    unpacked: i64,
    packed: i64,
    /// Number of bytes of levels, which are not packed.
    levels: u64,
}

/// Parses the head of a page, or returns the reason why the page is not read.
fn parse_page_header(
    bytes: impl Iterator<Item = u8>,
) -> std::result::Result<DataPageHeader, String> {
    let Some(head) = DataPageHeader::read(&mut CompactWalk::new(bytes)) else {
        return Err("a page header is invalid".to_owned());
    };
    let DataPageHeader {
        packed, unpacked, ..
    } = head;
    let allowed = MAX_PAGE_BYTES.min(ALWAYS_ALLOWED_BYTES.max(packed.saturating_mul(MAX_RATIO)));
    match unpacked > allowed {
        true => Err(format!(
            "a page of {packed} bytes says that it comes to {unpacked}: not read"
        )),
        false => Ok(head),
    }
}

impl DataPageHeader {
    fn read(walk: &mut CompactWalk<impl Iterator<Item = u8>>) -> Option<DataPageHeader> {
        /// Number of the last field. The fields are the kind of the page, both sizes, a checksum, and a struct for each kind.
        const FIELDS: u8 = 8;
        let mut first = [0_i64; 3];
        for value in &mut first {
            // Each field follows its predecessor: step 1 and kind i32 in one byte, for `type`, `uncompressed_page_size` and `compressed_page_size`
            // (parquet.thrift, PageHeader).
            walk.byte().filter(|&field| field == 0x10 | kind::I32)?;
            *value = small(walk)?;
        }
        let (mut last, mut levels) = (3, 0);
        loop {
            let (step, kind) = walk.field()?;
            if kind == 0 {
                return Some(DataPageHeader {
                    bytes: walk.passed(),
                    unpacked: first[1],
                    packed: first[2],
                    levels,
                });
            }
            // Cannot overflow: the last number is at most 8, and a step has four bits.
            last += step;
            // Step 0 would introduce a full field number, which can go backwards and repeat a field.
            if step == 0 || last > FIELDS {
                return None;
            }
            match (last, kind) {
                // `data_page_header_v2` of `PageHeader` in parquet.thrift.
                (FIELDS, kind::STRUCT) => levels = level_bytes(walk)?,
                _ => walk.skip(kind, DEPTH)?,
            }
        }
    }
}

/// Reads a signed number, refusing those that the library would truncate to 32 bits.
fn small(walk: &mut CompactWalk<impl Iterator<Item = u8>>) -> Option<i64> {
    let number = u32::try_from(walk.number()?).ok()?;
    Some(signed(number.into()))
}

/// Returns the number of bytes of both kinds of levels, from the header of a page of the second version.
fn level_bytes(walk: &mut CompactWalk<impl Iterator<Item = u8>>) -> Option<u64> {
    // `definition_levels_byte_length` and `repetition_levels_byte_length`.
    const LENGTHS: std::ops::RangeInclusive<u8> = 5..=6;
    let (mut last, mut sum) = (0_u8, 0);
    loop {
        let (step, kind) = walk.field()?;
        if kind == 0 {
            return Some(sum);
        }
        last = last.checked_add(step)?;
        match kind {
            _ if step == 0 => return None,
            kind::I32 if LENGTHS.contains(&last) => sum += u64::try_from(small(walk)?).ok()?,
            _ => walk.skip(kind, DEPTH)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a head as writers do.
    fn head(kind: i64, unpacked: i64, packed: i64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for value in [kind, unpacked, packed] {
            bytes.push(0x15);
            let mut left = ((value << 1) ^ (value >> 63)) as u64;
            while left >= 0x80 {
                bytes.push(left as u8 | 0x80);
                left >>= 7;
            }
            bytes.push(left as u8);
        }
        bytes.extend([0x2c, 0, 0]);
        bytes
    }

    fn sizes(head: &[u8]) -> Option<(i64, i64)> {
        let head = DataPageHeader::read(&mut CompactWalk::new(head.iter().copied()))?;
        Some((head.unpacked, head.packed))
    }

    fn refused(head: &[u8]) -> Option<String> {
        parse_page_header(head.iter().copied()).err()
    }

    #[test]
    fn sizes_are_read_as_they_were_written() {
        for size in [0, 1, 63, 64, 8191, 1 << 20, i64::from(i32::MAX), -1, -77] {
            for packed in [0, 5, 300_000_000] {
                assert_eq!(sizes(&head(3, size, packed)), Some((size, packed)));
            }
        }
        let whole = head(0, 1 << 20, 1 << 19);
        for end in 0..whole.len() {
            assert_eq!(sizes(&whole[..end]), None, "cut at {end}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let (mebibyte, most) = (1 << 20, i64::from(i32::MAX));
        for (unpacked, packed) in [
            (ALWAYS_ALLOWED_BYTES, 10),
            (MAX_PAGE_BYTES, mebibyte),
            (100 * mebibyte, mebibyte),
        ] {
            assert_eq!(refused(&head(0, unpacked, packed)), None);
        }
        for (unpacked, packed) in [
            (most, 8),
            (most, mebibyte),
            (ALWAYS_ALLOWED_BYTES + 1, 10),
            (MAX_PAGE_BYTES + 1, most),
        ] {
            let reason = refused(&head(0, unpacked, packed)).unwrap_or_default();
            assert!(reason.contains(&unpacked.to_string()), "{reason}");
        }
        assert!(refused(&head(0, -(1 << 33) + most, 10)).is_some());
        assert!(refused(b"PAR1").is_some());
        assert!(refused(b"").is_some());
    }

    /// Found by fuzzing: of repeated fields, the library takes the last.
    #[test]
    fn a_head_that_says_its_size_twice_is_refused() {
        let mut twice = head(0, 100, 50);
        twice.truncate(twice.len() - 3);
        // Field number 2 again, in the long form.
        twice.extend([0x05, 0x04, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0]);
        assert!(refused(&twice).is_some());
        // Everything else that a head can contain: a checksum, and a struct that contains a list, a text, a number and a boolean.
        let mut full = head(0, 100, 50);
        full.truncate(full.len() - 3);
        full.extend([
            0x15, 9, 0x1c, 0x19, 0x23, 1, 2, 0x18, 3, b'a', b'b', b'c', 0x15, 7, 0x11, 0, 0,
        ]);
        assert_eq!(refused(&full), None);
        full.truncate(full.len() - 4);
        assert!(refused(&full).is_some());
    }
}
