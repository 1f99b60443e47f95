//! The footer of a Parquet file, checked before the library trusts it.
//!
//! Three counts in it make the library allocate memory, or recurse, before it has read the counted elements: row groups, and the children of each
//! element of the schema. One wrong byte would end the process.

use std::fs::File;
use std::io::BufReader;

use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{ChunkReader, Length};

use super::pages;
use super::thrift::{CompactWalk, kind};
use crate::guard::catch_panic_as_error;

/// Maximum nesting of structs and lists; the sizes of levels in a column of a row group have depth eight.
const DEPTH: u32 = 32;
/// Maximum number of row groups, limited by the type of their numbers in the library.
const MAX_ROW_GROUPS: u64 = i16::MAX as u64 + 1;
/// Maximum nesting of groups in a schema: a list of lists takes two or three for each list.
const SCHEMA_DEPTH: usize = 128;
/// Number of rows that a file of any size may have, however they are packed.
const ALWAYS_ALLOWED_ROWS: u64 = 1 << 24;
/// Maximum number of rows per byte of the file, beyond that.
const MAX_ROWS_PER_BYTE: u64 = 8000;
/// Number of values in a repeated column that a row group of any size may have.
const ALWAYS_ALLOWED_VALUES: i64 = 1 << 26;
/// Maximum number of values per unpacked byte, beyond that.
const MAX_VALUES_PER_BYTE: i64 = 64;

/// Reads the footer of a file, or returns the reason why it is invalid.
pub(super) fn load(file: &File) -> std::result::Result<ArrowReaderMetadata, String> {
    let metadata =
        // The checks run while the library reads: it requests the footer by `get_bytes`, and gets it only if it is valid.
        catch_panic_as_error(|| ArrowReaderMetadata::load(&CheckedFooter(file), ArrowReaderOptions::new()))?;
    let file_bytes = file.metadata().map_err(|error| error.to_string())?.len();
    match impossible(&metadata, file_bytes) {
        Some(reason) => Err(reason),
        None => Ok(metadata),
    }
}

/// A file of which only the footer is read, and checked.
struct CheckedFooter<'f>(&'f File);

impl Length for CheckedFooter<'_> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for CheckedFooter<'_> {
    type T = BufReader<File>;

    /// Used only to read the eight bytes after the footer.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        self.0.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = pages::existing_bytes(self.0, start, length)?;
        match check(&bytes) {
            Some(()) => Ok(bytes),
            None => Err(ParquetError::General(
                "the footer is inconsistent".to_owned(),
            )),
        }
    }
}

/// Walks through a footer to its end. Returns `None` if a counted element is missing.
fn check(footer: &[u8]) -> Option<()> {
    // Fields of `FileMetaData` in parquet.thrift.
    const SCHEMA: i64 = 2;
    const ROW_GROUPS: i64 = 4;
    let mut walk = CompactWalk::new(footer.iter().copied());
    walk.for_each_field(|walk, number, kind| match (number, kind) {
        (SCHEMA, kind::LIST) => check_schema(walk),
        (ROW_GROUPS, kind::LIST) => {
            let (count, kind) = walk.list()?;
            if count > MAX_ROW_GROUPS {
                return None;
            }
            // Each element takes at least one byte, so the loop ends with the footer, whatever the count.
            (0..count).try_for_each(|_| walk.skip_element(kind, DEPTH))
        }
        (_, kind) => walk.skip(kind, DEPTH),
    })
}

/// Checks the schema: a tree in preorder, where each element has the number of its children.
fn check_schema(walk: &mut CompactWalk<impl Iterator<Item = u8>>) -> Option<()> {
    let (count, kind) = walk.list()?;
    if kind != kind::STRUCT {
        return None;
    }
    // Number of missing children of each open group.
    let mut open: Vec<u64> = Vec::new();
    for left in (0..count).rev() {
        if let Some(missing) = open.last_mut() {
            // At least one is missing: complete groups were removed below.
            *missing -= 1;
        }
        let children = children(walk)?;
        // More children than remaining elements: the library would reserve memory for all of them.
        if children > left {
            return None;
        }
        open.push(children);
        // The library reads a schema recursively.
        if open.len() > SCHEMA_DEPTH {
            return None;
        }
        // A group ends with its last child, and may itself be the last child of the group around it.
        while open.pop_if(|missing| *missing == 0).is_some() {}
    }
    open.is_empty().then_some(())
}

/// Skips an element of a schema. Returns its number of children.
fn children(walk: &mut CompactWalk<impl Iterator<Item = u8>>) -> Option<u64> {
    // A field of `SchemaElement` in parquet.thrift.
    const NUM_CHILDREN: i64 = 5;
    let mut children = 0;
    walk.for_each_field(|walk, number, kind| {
        if (number, kind) != (NUM_CHILDREN, kind::I32) {
            return walk.skip(kind, DEPTH);
        }
        // Of repeated fields the last counts, as in the library, which truncates to 32 bits.
        children = u64::try_from(walk.signed()?).ok()?;
        (children <= i32::MAX as u64).then_some(())
    })?;
    Some(children)
}

/// Finds a value in the footer that is impossible for a file of this size.
fn impossible(metadata: &ArrowReaderMetadata, file_bytes: u64) -> Option<String> {
    // Negative numbers do not fit either.
    let fits = |value: i64| u64::try_from(value).is_ok_and(|value| value <= file_bytes);
    let mut rows = 0_u64;
    for (number, group) in metadata.metadata().row_groups().iter().enumerate() {
        let number = number + 1;
        let Ok(rows_of_group) = u64::try_from(group.num_rows()) else {
            return Some(format!("row group {number} has {} rows", group.num_rows()));
        };
        rows = rows.saturating_add(rows_of_group);
        for column in group.columns() {
            let (start, bytes) = (column.data_page_offset(), column.compressed_size());
            if !fits(start) || !fits(bytes) {
                return Some(format!(
                    "column {} of row group {number} lies beyond the end of the file",
                    column.column_path()
                ));
            }
        }
        if let Some(reason) = too_many_values(group) {
            return Some(format!("row group {number}: {reason}"));
        }
    }
    // Runs of one value take a few bytes, whatever their length; real tables of constants stay far below 8,000 rows per byte of file.
    (rows > ALWAYS_ALLOWED_ROWS && rows > file_bytes.saturating_mul(MAX_ROWS_PER_BYTE))
        .then(|| format!("a file of {file_bytes} bytes says that it has {rows} rows: not read"))
}

/// Checks the number of values: one row of a repeated column can have any number of them, without any bytes.
fn too_many_values(group: &RowGroupMetaData) -> Option<String> {
    group.columns().iter().find_map(|column| {
        let (values, bytes) = (column.num_values(), column.uncompressed_size().max(0));
        let repeated = column.column_descr().max_rep_level() > 0;
        let allowed = ALWAYS_ALLOWED_VALUES.max(bytes.saturating_mul(MAX_VALUES_PER_BYTE));
        (repeated && values > allowed).then(|| {
            format!(
                "column {} says that {bytes} bytes hold {values} values: not read",
                column.column_path()
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a footer of three fields: the schema, whose elements have these numbers of children, and the count of row groups.
    fn footer(children: &[u64], row_groups: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x15, 2, 0x19, 0xfc, children.len() as u8];
        for &count in children {
            bytes.push(0x55);
            let mut left = count << 1;
            while left >= 0x80 {
                bytes.push(left as u8 | 0x80);
                left >>= 7;
            }
            bytes.extend([left as u8, 0]);
        }
        bytes.extend([0x16, 6, 0x19]);
        bytes.extend(row_groups);
        bytes.push(0);
        bytes
    }

    #[test]
    fn a_footer_is_walked_through_to_its_end() {
        let whole = footer(&[2, 0, 1, 0], &[0x1c, 0]);
        assert_eq!(check(&whole), Some(()));
        for end in 0..whole.len() {
            assert_eq!(check(&whole[..end]), None, "cut at {end}");
        }
    }

    #[test]
    fn row_groups_that_are_not_there_are_not_counted() {
        // Two billion of them, for which the library would allocate 300 GB.
        let many = [0xfc, 0xff, 0xff, 0xff, 0xff, 0x07];
        assert_eq!(check(&footer(&[1, 0], &many)), None);
    }

    #[test]
    fn a_schema_is_one_tree() {
        let tree = |children: &[u64]| check(&footer(children, &[0x0c]));
        assert_eq!(tree(&[0]), Some(()));
        assert_eq!(tree(&[1, 2, 0, 0]), Some(()));
        for wrong in [&[2, 0][..], &[1, i32::MAX as u64], &[1, 1]] {
            assert_eq!(tree(wrong), None, "{wrong:?}");
        }
        let deep = |levels: usize| {
            let mut children = vec![1; levels];
            children.push(0);
            tree(&children)
        };
        assert_eq!(deep(100), Some(()));
        assert_eq!(
            deep(SCHEMA_DEPTH),
            None,
            "the library calls itself for each"
        );
    }
}
