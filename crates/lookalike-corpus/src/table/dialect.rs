//! Detection of tables and of their delimiters.

use std::borrow::Cow;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use crate::charset;
use crate::field_path::FieldPath;
use crate::options::InputOptions;

/// Delimiters, the most common first.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Maximum number of rows that are examined.
const ROWS: usize = 200;

/// Maximum number of bytes that are examined.
const BYTES: usize = 64 << 10;

/// Creates a reader of values separated by `delimiter`. Without `quotes`, quotes are ordinary characters.
pub(super) fn reader(delimiter: u8, quotes: bool) -> Reader {
    ReaderBuilder::new()
        .delimiter(delimiter)
        .quoting(quotes)
        .build()
}

/// Detects the delimiter of a table: the one with which the first row has several values and most others have as many.
pub(super) fn delimiter(head: &[u8], is_whole: bool, quotes: bool) -> u8 {
    let head = &head[..head.len().min(BYTES)];
    let share = |delimiter: u8| {
        let columns = columns(head, reader(delimiter, quotes), is_whole);
        let first = columns.first().copied().filter(|first| *first > 1)?;
        let alike = columns.iter().filter(|columns| **columns == first).count();
        // In thousandths, so that integers can be compared. `columns` is not empty, since its first element was taken.
        Some((alike * 1000 / columns.len(), first, delimiter))
    };
    // Of equal ones the first counts, but `max_by_key` would return the last, so iterate in reverse.
    let found = DELIMITERS.into_iter().rev().filter_map(share);
    found
        .max_by_key(|(share, columns, _)| (*share, *columns))
        .map_or(b',', |(_, _, delimiter)| delimiter)
}

/// Returns true if a text whose name does not tell is a table: all its rows have the same number of values, and it has a text column, or the options
/// refer to columns.
pub(crate) fn is_table(head: &[u8], options: &InputOptions) -> bool {
    // Such an option says that the input is a table, so its rows may be uneven.
    if options.delimiter.is_some() || options.no_header || options.no_quotes {
        let (_, columns) = first_rows(head, options);
        return columns.first().is_some_and(|columns| *columns > 1);
    }
    has_even_rows(head, options)
}

/// Returns true for rows of equal length of which the first names the text column.
pub(crate) fn has_even_rows(head: &[u8], options: &InputOptions) -> bool {
    let (delimiter, columns) = first_rows(head, options);
    let is_even = columns.len() > 1 && columns[0] > 1 && columns.iter().all(|n| *n == columns[0]);
    is_even && names_a_text(head, delimiter, columns[0], options)
}

/// Returns the delimiter, and the number of values in each of the first rows.
fn first_rows(head: &[u8], options: &InputOptions) -> (u8, Vec<usize>) {
    let quotes = !options.no_quotes;
    let delimiter = options
        .delimiter
        .unwrap_or_else(|| delimiter(head, false, quotes));
    let columns = columns(head, reader(delimiter, quotes), false);
    (delimiter, columns)
}

fn names_a_text(head: &[u8], delimiter: u8, columns: usize, options: &InputOptions) -> bool {
    let (mut fields, mut ends) = (vec![0; head.len()], vec![0; columns]);
    let (_, _, _, count) =
        reader(delimiter, !options.no_quotes).read_record(head, &mut fields, &mut ends);
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let names: Vec<Cow<'_, str>> = starts
        .zip(&ends[..count.min(columns)])
        .map(|(start, end)| charset::decode_line(&fields[start..*end]))
        .collect();
    let wanted = match &options.text_field {
        Some(fields) => fields.paths().iter().map(FieldPath::to_string).collect(),
        None => vec!["text".to_owned(), "html".to_owned()],
    };
    let is_wanted = |name: &Cow<'_, str>| {
        wanted
            .iter()
            // The first name may begin with a byte order mark.
            .any(|wanted| name.trim_start_matches('\u{feff}').trim() == wanted)
    };
    names.iter().any(is_wanted)
}

/// Counts the values in each of the first rows. A row that may continue is left out.
fn columns(head: &[u8], mut reader: Reader, is_whole: bool) -> Vec<usize> {
    // Only the numbers of fields count, so the content is dropped and full buffers are overwritten.
    let (mut fields, mut ends) = (vec![0; 1 << 12], vec![0; 1 << 8]);
    let (mut rows, mut at, mut columns) = (Vec::new(), 0, 0);
    while rows.len() < ROWS {
        let (result, read, _, ended) = reader.read_record(&head[at..], &mut fields, &mut ends);
        at += read;
        columns += ended;
        match result {
            // An empty input tells the reader that the last row has ended. `head[at..]` is empty now, and the next iteration passes it.
            ReadRecordResult::InputEmpty if is_whole => {}
            ReadRecordResult::InputEmpty | ReadRecordResult::End => return rows,
            ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {}
            ReadRecordResult::Record => rows.push(std::mem::take(&mut columns)),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_separates_values_is_seen() {
        for (head, wanted) in [
            ("id,text\n1,\"a; b\"\n2,c\n", b','),
            ("id;text;price\n1;hello, world;1,5\n2;x;2,25\n", b';'),
            ("id|text\n1|a;b;c\n", b'|'),
            ("id\ttext\n1\tso, so\n", b'\t'),
            ("1;a, b\n2;c, d, e\n3;f\n", b';'),
            ("text\nalone\n", b','),
            ("", b','),
            ("a,b\n1\n1,2,3\n", b','),
        ] {
            let found = delimiter(head.as_bytes(), true, true);
            assert_eq!(char::from(found), char::from(wanted), "{head}");
        }
    }
}
