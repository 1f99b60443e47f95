//! Logs rows to disk as they are counted, so that a job that is killed resumes counting where it stopped.
//!
//! Engines emit rows in ascending order of their first unit. Each chunking has one file, `rows-N.bin` (`server-rows-N.bin` for servers), an [`EntryLog`]
//! with the magic `LOOKROW1`, and with the number of units as the hash of the job. Each entry:
//!
//! ```text
//! u64       all rows whose first unit is before this one stand in this entry or an earlier one
//! u64       number of rows
//! ...       their first units, their second units, their numbers of shared chunks
//! ```
//!
//! Units and numbers of chunks are columns of numbers, which may have any size: see
//! [`number_column`](crate::dedup::number_column).
//!
//! An incomplete entry ends the log, and its rows are counted again. A log belongs to the units of one reading, and is only used together with that.

use std::fs::File;
use std::io;
use std::path::Path;

use super::SharedCount;
use crate::dedup::entry_log::{EntryLog, WORD, seal};
use crate::dedup::hashing_stream::{HashingStream, write_words};
use crate::dedup::number_column::{ExpectedNumber, read_numbers, write_numbers};

const MAGIC: [u8; 8] = *b"LOOKROW1";

/// Number of rows after which an entry ends, at the next first unit.
const ENTRY_ROWS: usize = 1 << 15;

/// Log of counted rows, open for writing.
pub(crate) struct RowLog {
    log: EntryLog,
    units: u32,
    /// All rows whose first unit is before this one are on disk.
    pub(crate) from: u32,
    rows: Vec<SharedCount>,
}

impl RowLog {
    /// Opens the log at `path` of rows of `units` units. Existing rows are passed to `visit` if `is_believed`, and dropped otherwise.
    pub(crate) fn open(
        path: &Path,
        units: u32,
        is_believed: bool,
        mut visit: impl FnMut(SharedCount) -> io::Result<()>,
    ) -> io::Result<Self> {
        if !is_believed {
            // If the reading was not reused, units may have other numbers, and old rows would be wrong.
            File::create(path)?;
        }
        let mut from = 0;
        let log = EntryLog::open(path, MAGIC, units.into(), |entry| {
            let Ok((next, rows)) = parsed(entry) else {
                return Ok(false);
            };
            // Rows index tables of units. The checksum shows that they were written like this, not that they belong to these units.
            let fits = |row: &SharedCount| row.a < row.b && row.b < units && row.a >= from;
            if next > units || next < from || !rows.iter().all(fits) {
                return Ok(false);
            }
            from = next;
            rows.into_iter().try_for_each(&mut visit)?;
            Ok(true)
        })?;
        Ok(Self {
            log,
            units,
            from,
            rows: Vec::new(),
        })
    }

    /// Adds the next row.
    pub(crate) fn push(&mut self, row: SharedCount) -> io::Result<()> {
        let is_new = self.rows.last().is_some_and(|last| last.a < row.a);
        // An entry contains all rows before its end, so it only ends between first units.
        if is_new && self.rows.len() >= ENTRY_ROWS {
            self.write(row.a)?;
        }
        self.rows.push(row);
        Ok(())
    }

    /// Writes the remaining rows when everything has been counted.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        match self.from < self.units {
            true => self.write(self.units),
            false => Ok(()),
        }
    }

    fn write(&mut self, next: u32) -> io::Result<()> {
        let mut entry = vec![0; WORD];
        write_words(&mut entry, &[next as usize, self.rows.len()])?;
        let columns: [fn(&SharedCount) -> u32; 3] = [|row| row.a, |row| row.b, |row| row.shared];
        for column in columns {
            let numbers = self.rows.iter().map(|row| column(row).into());
            write_numbers(&mut entry, numbers, ExpectedNumber::Next)?;
        }
        // In place, because a unit may have millions of rows.
        seal(&mut entry, self.units.into());
        self.log.add(&entry)?;
        self.log.flush()?;
        self.from = next;
        self.rows.clear();
        Ok(())
    }
}

/// Parses an entry: the first unit whose rows are not in it or before it, and its rows. Fails if a number is larger than an in-memory job can have.
fn parsed(entry: &[u8]) -> io::Result<(u32, Vec<SharedCount>)> {
    let mut entry = HashingStream::new(entry);
    let [next, count] = entry.words()?;
    let next = u32::try_from(next).map_err(io::Error::other)?;
    let mut column = || read_numbers::<u32>(&mut entry, count, ExpectedNumber::Next);
    let (a, b, shared) = (column()?, column()?, column()?);
    let rows = a.into_iter().zip(b).zip(shared);
    let row = |((a, b), shared)| SharedCount { a, b, shared };
    Ok((next, rows.map(row).collect()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the log of these rows, truncated to the share `keep` of its length.
    fn cut(rows: &[SharedCount], units: u32, keep: f64) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows");
        let mut log = RowLog::open(&path, units, false, |_| Ok(())).unwrap();
        for (at, &row) in rows.iter().enumerate() {
            log.push(row).unwrap();
            let ends = rows.get(at + 1).is_some_and(|next| next.a > row.a);
            if ends && row.a % 3 == 0 {
                log.write(rows[at + 1].a).unwrap();
            }
        }
        log.finish().unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        let length = file.metadata().unwrap().len();
        file.set_len((length as f64 * keep) as u64).unwrap();
        (folder, path)
    }

    #[test]
    fn a_unit_beyond_32_bits_had_no_place_in_the_file_and_is_no_other_unit() {
        let read = |a: u64| {
            let mut entry = Vec::new();
            write_words(&mut entry, &[u32::MAX as usize, 1]).unwrap();
            for number in [a, a + 1, 3] {
                write_numbers(&mut entry, [number].into_iter(), ExpectedNumber::Next).unwrap();
            }
            parsed(&entry)
        };
        let row = SharedCount {
            a: 5,
            b: 6,
            shared: 3,
        };
        assert_eq!(read(5).unwrap(), (u32::MAX, vec![row]));
        assert!(read((1 << 32) + 5).is_err());
    }

    fn rows() -> impl Strategy<Value = Vec<SharedCount>> {
        prop::collection::btree_map((0_u32..40, 0_u32..40), 1_u32..9, 0..120).prop_map(|pairs| {
            let ordered = pairs.into_iter().filter(|((a, b), _)| a < b);
            ordered
                .map(|((a, b), shared)| SharedCount { a, b, shared })
                .collect()
        })
    }

    proptest! {
        /// However a log is truncated or damaged, the replayed rows are a prefix that is complete up to a unit, and resuming from there gives all
        /// rows.
        #[test]
        fn a_torn_log_goes_on_where_it_was(rows in rows(), keep in 0.0..=1.0_f64, flip in any::<Option<u16>>()) {
            let units = 40;
            let (_folder, path) = cut(&rows, units, keep);
            if let Some(flip) = flip {
                let mut bytes = std::fs::read(&path).unwrap();
                let length = bytes.len();
                if length > 0 {
                    bytes[usize::from(flip) % length] ^= 1 << (flip % 8);
                    std::fs::write(&path, bytes).unwrap();
                }
            }
            let mut seen = Vec::new();
            let mut log = RowLog::open(&path, units, true, |row| { seen.push(row); Ok(()) }).unwrap();
            let from = log.from;
            let expected: Vec<SharedCount> = rows.iter().copied().filter(|row| row.a < from).collect();
            prop_assert_eq!(&seen, &expected);
            for &row in rows.iter().filter(|row| row.a >= from) {
                log.push(row).unwrap();
            }
            log.finish().unwrap();
            let mut all = Vec::new();
            let again = RowLog::open(&path, units, true, |row| { all.push(row); Ok(()) }).unwrap();
            prop_assert_eq!((again.from, all), (units, rows));
            let refuse = |_| Err(io::Error::other("a row"));
            prop_assert_eq!(RowLog::open(&path, units, false, refuse).unwrap().from, 0);
        }
    }
}
