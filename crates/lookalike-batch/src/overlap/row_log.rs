//! The rows that were counted, on disk as they come, so that a job that was killed goes on counting where it was.
//!
//! Engines hand over rows by their first unit, ascending. One file for each chunking, `rows-N.bin` (of servers
//! `server-rows-N.bin`), appended to frame by frame. Little-endian:
//!
//! ```text
//! u32       all rows whose first unit is before this one stand in this frame or an earlier one
//! u32       number of rows
//! u32 x 3   of each: the two units, the number of shared chunks
//! u64       XXH3-64 of the frame so far, seeded with the frame's position in the file
//! ```
//!
//! A frame that is not whole ends the log: what was counted for it is counted again. A log belongs to the units of what
//! was read, and is believed only together with that.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::SharedCount;

/// Rows after which a frame ends, at the next first unit.
const FRAME: usize = 1 << 15;
/// No frame is larger: a row each for all units beside those before it.
const MOST: u64 = 1 << 33;

/// Takes rows and gives back those of an earlier run; see the module's header.
pub(crate) struct RowLog {
    file: File,
    /// Start of the next frame.
    end: u64,
    /// Rows whose first unit is before this one are on disk.
    from: u32,
    rows: Vec<[u32; 3]>,
}

impl RowLog {
    /// The log at `path`; what is there counts only if `is_believed`.
    pub(crate) fn open(path: &Path, is_believed: bool) -> io::Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(!is_believed)
            .open(path)?;
        Ok(Self {
            file,
            end: 0,
            from: 0,
            rows: Vec::new(),
        })
    }

    /// Visits the rows of the frames that are whole and forgets what is behind them; the first unit whose rows are not
    /// there. Rows of `units` units are expected; frames with others end the log.
    pub(crate) fn replay<E: From<io::Error>>(
        &mut self,
        units: u32,
        mut visit: impl FnMut(SharedCount) -> Result<(), E>,
    ) -> Result<u32, E> {
        let file = self.file.try_clone()?;
        let mut file = BufReader::with_capacity(1 << 18, file);
        while let Some((next, rows, length)) = frame(&mut file, self.end)? {
            // Rows index tables of units. The checksum says that they were written so, not that they belong to
            // these units.
            let fits = |row: &[u32; 3]| row[0] < row[1] && row[1] < units && row[0] >= self.from;
            if next > units || next < self.from || !rows.iter().all(fits) {
                break;
            }
            (self.from, self.end) = (next, self.end + length);
            for [a, b, shared] in rows {
                visit(SharedCount { a, b, shared })?;
            }
        }
        drop(file);
        // Cut a torn frame off: new ones may end within it.
        self.file.set_len(self.end)?;
        self.file.seek(SeekFrom::Start(self.end))?;
        Ok(self.from)
    }

    /// Takes the next row.
    pub(crate) fn push(&mut self, row: SharedCount) -> io::Result<()> {
        let is_new = self.rows.last().is_some_and(|last| last[0] < row.a);
        // A frame promises all rows before its end, so it ends only where a first unit does.
        if is_new && self.rows.len() >= FRAME {
            self.write(row.a)?;
        }
        self.rows.push([row.a, row.b, row.shared]);
        Ok(())
    }

    /// Everything was counted.
    pub(crate) fn finish(&mut self, units: u32) -> io::Result<()> {
        match self.from < units {
            true => self.write(units),
            false => Ok(()),
        }
    }

    fn write(&mut self, next: u32) -> io::Result<()> {
        let mut frame = Vec::with_capacity(self.rows.len() * 12 + 16);
        frame.extend_from_slice(&next.to_le_bytes());
        frame.extend_from_slice(&(self.rows.len() as u32).to_le_bytes());
        for word in self.rows.iter().flatten() {
            frame.extend_from_slice(&word.to_le_bytes());
        }
        // The position as a seed: a frame that stands elsewhere than it was written is none.
        let sum = xxh3_64_with_seed(&frame, self.end);
        frame.extend_from_slice(&sum.to_le_bytes());
        self.file.write_all(&frame)?;
        self.end += frame.len() as u64;
        self.from = next;
        self.rows.clear();
        Ok(())
    }
}

/// Content of a frame: its end, its rows, and its bytes.
type LogFrame = (u32, Vec<[u32; 3]>, u64);

/// The frame at hand, `None` where none is whole.
fn frame(file: &mut impl Read, position: u64) -> io::Result<Option<LogFrame>> {
    let mut bytes = Vec::new();
    if Read::by_ref(file).take(8).read_to_end(&mut bytes)? < 8 {
        return Ok(None);
    }
    let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let (next, count) = (word(&bytes), u64::from(word(&bytes[4..])));
    let rest = count * 12 + 8;
    // Read up to the length instead of into a buffer of it: a damaged count takes no more memory than the file
    // has bytes.
    if rest > MOST || Read::by_ref(file).take(rest).read_to_end(&mut bytes)? < rest as usize {
        return Ok(None);
    }
    let (frame, sum) = bytes.split_at(bytes.len() - 8);
    if xxh3_64_with_seed(frame, position).to_le_bytes() != *sum {
        return Ok(None);
    }
    let rows = frame[8..].chunks_exact(12);
    let rows = rows.map(|row| [word(row), word(&row[4..]), word(&row[8..])]);
    Ok(Some((next, rows.collect(), bytes.len() as u64)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The log of these rows, cut off after so many bytes.
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

    fn rows() -> impl Strategy<Value = Vec<SharedCount>> {
        prop::collection::btree_map((0_u32..40, 0_u32..40), 1_u32..9, 0..120).prop_map(|pairs| {
            let ordered = pairs.into_iter().filter(|((a, b), _)| a < b);
            ordered
                .map(|((a, b), shared)| SharedCount { a, b, shared })
                .collect()
        })
    }

    proptest! {
        /// Whatever is left of a log: its rows are the first ones, all of them up to a unit, and going on from there ends
        /// with the whole.
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
            let from = log.replay(units, |row| { seen.push(row); io::Result::Ok(()) }).unwrap();
            let expected: Vec<SharedCount> = rows.iter().copied().filter(|row| row.a < from).collect();
            prop_assert_eq!(&seen, &expected);
            for &row in rows.iter().filter(|row| row.a >= from) {
                log.push(row).unwrap();
            }
            log.finish(units).unwrap();
            let mut again = RowLog::open(&path, true).unwrap();
            let mut all = Vec::new();
            let end = again.replay(units, |row| { all.push(row); io::Result::Ok(()) }).unwrap();
            prop_assert_eq!((end, all), (units, rows));
            let mut unbelieved = RowLog::open(&path, false).unwrap();
            let from = unbelieved.replay(units, |_| Err(io::Error::other("a row"))).unwrap();
            prop_assert_eq!(from, 0);
        }
    }
}
