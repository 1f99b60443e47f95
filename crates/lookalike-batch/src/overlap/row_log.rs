//! Logs rows to disk as they are counted, so that a job that is killed resumes counting where it stopped.
//!
//! Engines emit rows in ascending order of their first unit. Each chunking has one file, `rows-N.bin` (`server-rows-N.bin` for servers), to which
//! frames are appended. Little-endian:
//!
//! ```text
//! u64       bytes of the frame behind these
//! u64       all rows whose first unit is before this one stand in this frame or an earlier one
//! u64       number of rows
//! ...       their first units, their second units, their numbers of shared chunks
//! u64       XXH3-64 of the frame so far, seeded with the frame's position in the file
//! ```
//!
//! Units and numbers of chunks are columns of numbers, which may have any size: see
//! [`number_column`](crate::dedup::number_column).
//!
//! An incomplete frame ends the log, and its rows are counted again. A log belongs to the units of one reading, and is only used together with that.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::SharedCount;
use crate::dedup::hashing_stream::HashingStream;
use crate::dedup::number_column::{ExpectedNumber, read_numbers, write_numbers};

/// Number of rows after which a frame ends, at the next first unit.
const FRAME: usize = 1 << 15;
// A damaged length is refused by this bound; a longer frame would only be counted again.
/// Maximum bytes of a frame. It is large enough for a row with every other unit.
const MAX_FRAME_BYTES: u64 = 1 << 33;

/// Log of counted rows, which replays those of an earlier run.
pub(crate) struct RowLog {
    file: File,
    /// Offset of the next frame.
    end: u64,
    /// All rows whose first unit is before this one are on disk.
    from: u32,
    rows: Vec<SharedCount>,
}

impl RowLog {
    /// Opens the log at `path`. Existing contents are only used if `is_believed`, and truncated otherwise.
    pub(crate) fn open(path: &Path, is_believed: bool) -> io::Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            // If the reading was not reused, units may have other numbers, and old rows would be wrong.
            .truncate(!is_believed)
            .open(path)?;
        Ok(Self {
            file,
            end: 0,
            from: 0,
            rows: Vec::new(),
        })
    }

    /// Visits the rows of all complete frames and truncates what follows them. Returns the first unit whose rows are missing. A frame with rows of
    /// other than `units` units ends the log.
    pub(crate) fn replay<E>(
        &mut self,
        units: u32,
        failed: impl Fn(io::Error) -> E,
        mut visit: impl FnMut(SharedCount) -> Result<(), E>,
    ) -> Result<u32, E> {
        // The clone shares the cursor, which is set again when the frames have been read.
        let file = self.file.try_clone().map_err(&failed)?;
        let mut file = BufReader::with_capacity(1 << 18, file);
        while let Some(frame) = frame(&mut file, self.end).map_err(&failed)? {
            let LogFrame { next, rows, bytes } = frame;
            // Rows index tables of units. The checksum shows that they were written like this, not that they belong to these units.
            let fits = |row: &SharedCount| row.a < row.b && row.b < units && row.a >= self.from;
            if next > units || next < self.from || !rows.iter().all(fits) {
                break;
            }
            (self.from, self.end) = (next, self.end + bytes);
            rows.into_iter().try_for_each(&mut visit)?;
        }
        drop(file);
        // Truncate a torn frame, because a shorter new one would leave its tail.
        (self.file.set_len(self.end))
            .and_then(|()| self.file.seek(SeekFrom::Start(self.end)))
            .map_err(failed)?;
        Ok(self.from)
    }

    /// Adds the next row.
    pub(crate) fn push(&mut self, row: SharedCount) -> io::Result<()> {
        let is_new = self.rows.last().is_some_and(|last| last.a < row.a);
        // A frame contains all rows before its end, so it only ends between first units.
        if is_new && self.rows.len() >= FRAME {
            self.write(row.a)?;
        }
        self.rows.push(row);
        Ok(())
    }

    /// Writes the remaining rows when everything has been counted.
    pub(crate) fn finish(&mut self, units: u32) -> io::Result<()> {
        match self.from < units {
            true => self.write(units),
            false => Ok(()),
        }
    }

    fn write(&mut self, next: u32) -> io::Result<()> {
        let mut frame = vec![0; 8];
        frame.extend_from_slice(&u64::from(next).to_le_bytes());
        frame.extend_from_slice(&(self.rows.len() as u64).to_le_bytes());
        let columns: [fn(&SharedCount) -> u32; 3] = [|row| row.a, |row| row.b, |row| row.shared];
        for column in columns {
            let numbers = self.rows.iter().map(|row| column(row).into());
            write_numbers(&mut frame, numbers, ExpectedNumber::Next)?;
        }
        // Including the checksum, which is appended below.
        let behind = frame.len() as u64;
        frame[..8].copy_from_slice(&behind.to_le_bytes());
        // Seed with the position, so that a frame is only valid where it was written.
        let sum = xxh3_64_with_seed(&frame, self.end);
        frame.extend_from_slice(&sum.to_le_bytes());
        // Not synced: after a power failure the checksum drops what is incomplete, and its rows are counted again.
        self.file.write_all(&frame)?;
        self.end += frame.len() as u64;
        self.from = next;
        self.rows.clear();
        Ok(())
    }
}

/// Contents of a frame.
struct LogFrame {
    /// All rows whose first unit is before this one are in this frame or an earlier one.
    next: u32,
    rows: Vec<SharedCount>,
    /// Bytes of the frame in the file.
    bytes: u64,
}

/// Reads the next frame. Returns `None` if it is not complete.
fn frame(file: &mut impl Read, position: u64) -> io::Result<Option<LogFrame>> {
    let mut bytes = Vec::new();
    if Read::by_ref(file).take(8).read_to_end(&mut bytes)? < 8 {
        return Ok(None);
    }
    let behind = HashingStream::new(&bytes[..]).word()?;
    // Read up to the length instead of allocating it first: a damaged length then takes no more memory than the file has bytes.
    if behind > MAX_FRAME_BYTES
        || Read::by_ref(file).take(behind).read_to_end(&mut bytes)? < behind as usize
    {
        return Ok(None);
    }
    let Some((frame, sum)) = bytes.split_last_chunk::<8>() else {
        return Ok(None);
    };
    if xxh3_64_with_seed(frame, position).to_le_bytes() != *sum {
        return Ok(None);
    }
    Ok(parsed(frame).ok())
}

/// Parses a frame without its checksum. Fails if a number is larger than an in-memory job can have.
fn parsed(frame: &[u8]) -> io::Result<LogFrame> {
    let bytes = frame.len() as u64 + 8;
    let mut frame = HashingStream::new(&frame[8..]);
    let next = u32::try_from(frame.word()?).map_err(io::Error::other)?;
    let count = frame.word()?;
    let mut column = || read_numbers::<u32>(&mut frame, count, ExpectedNumber::Next);
    let (a, b, shared) = (column()?, column()?, column()?);
    let rows = a.into_iter().zip(b).zip(shared);
    let row = |((a, b), shared)| SharedCount { a, b, shared };
    let rows = rows.map(row).collect();
    Ok(LogFrame { next, rows, bytes })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the log of these rows, truncated to the share `keep` of its length.
    fn cut(rows: &[SharedCount], units: u32, keep: f64) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows");
        let mut log = RowLog::open(&path, false).unwrap();
        for (at, &row) in rows.iter().enumerate() {
            log.push(row).unwrap();
            let ends = rows.get(at + 1).is_some_and(|next| next.a > row.a);
            if ends && row.a % 3 == 0 {
                log.write(rows[at + 1].a).unwrap();
            }
        }
        log.finish(units).unwrap();
        let length = (log.end as f64 * keep) as u64;
        log.file.set_len(length).unwrap();
        (folder, path)
    }

    #[test]
    fn a_unit_beyond_32_bits_had_no_place_in_the_file_and_is_no_other_unit() {
        let framed = |a: u64| {
            let mut frame = vec![0; 8];
            frame.extend((1_u64 << 32).wrapping_sub(1).to_le_bytes());
            frame.extend(1_u64.to_le_bytes());
            for number in [a, a + 1, 3] {
                write_numbers(&mut frame, [number].into_iter(), ExpectedNumber::Next).unwrap();
            }
            let behind = frame.len() as u64;
            frame[..8].copy_from_slice(&behind.to_le_bytes());
            frame.extend(xxh3_64_with_seed(&frame, 0).to_le_bytes());
            frame
        };
        let read = |a| super::frame(&mut &framed(a)[..], 0).unwrap();
        let known = read(5).unwrap();
        assert_eq!(
            known.rows,
            [SharedCount {
                a: 5,
                b: 6,
                shared: 3
            }]
        );
        assert_eq!(known.bytes, framed(5).len() as u64);
        assert!(read((1 << 32) + 5).is_none());
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
            let mut log = RowLog::open(&path, true).unwrap();
            let mut seen = Vec::new();
            let from = log.replay(units, |error| error, |row| { seen.push(row); Ok(()) }).unwrap();
            let expected: Vec<SharedCount> = rows.iter().copied().filter(|row| row.a < from).collect();
            prop_assert_eq!(&seen, &expected);
            for &row in rows.iter().filter(|row| row.a >= from) {
                log.push(row).unwrap();
            }
            log.finish(units).unwrap();
            let mut again = RowLog::open(&path, true).unwrap();
            let mut all = Vec::new();
            let end = again.replay(units, |error| error, |row| { all.push(row); Ok(()) }).unwrap();
            prop_assert_eq!((end, all), (units, rows));
            let mut unbelieved = RowLog::open(&path, false).unwrap();
            let from = unbelieved.replay(units, |error| error, |_| Err(io::Error::other("a row"))).unwrap();
            prop_assert_eq!(from, 0);
        }
    }
}
