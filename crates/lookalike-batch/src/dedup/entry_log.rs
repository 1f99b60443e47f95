//! Logs of entries on disk, from which a killed job resumes.
//!
//! Little-endian:
//!
//! ```text
//! 8 bytes   magic of the kind of log
//! u64       hash of the job and of all that its entries depend on
//! entries   u64 bytes of the entry; the entry; XXH3-64 of both (u64), with the word above as its seed
//! ```
//!
//! Writes are not synced: after a power cut, the checksums show which entries are left.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Number of bytes of the magic and the hash after it.
pub(crate) const HEAD: u64 = 16;

/// Number of bytes of the length of an entry, and of its checksum.
pub(crate) const WORD: usize = 8;

/// Time after which entries are passed to the system, so that a killed job does not lose them.
const FLUSH_AFTER: Duration = Duration::from_secs(1);

/// A log that is open for writing.
pub(crate) struct EntryLog {
    pub(super) out: BufWriter<File>,
    flushed: Instant,
}

/// Returns an entry with its length and checksum.
pub(crate) fn sealed(job: u64, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut entry = Vec::with_capacity(length + 2 * WORD);
    entry.extend_from_slice(&(length as u64).to_le_bytes());
    parts.iter().for_each(|part| entry.extend_from_slice(part));
    let sum = xxh3_64_with_seed(&entry, job);
    entry.extend_from_slice(&sum.to_le_bytes());
    entry
}

/// Calls `visit` with the entries of a log of this kind and job, until one is incomplete or `visit` returns false. Returns the end of the last entry before that,
/// or 0 if there is no such log.
pub(crate) fn read_entries(
    path: &Path,
    magic: [u8; 8],
    job: u64,
    mut visit: impl FnMut(&[u8]) -> io::Result<bool>,
) -> io::Result<u64> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        file => file?,
    };
    let length = file.metadata()?.len();
    let mut log = BufReader::with_capacity(1 << 18, file);
    let mut head = [0; HEAD as usize];
    if length < HEAD {
        return Ok(0);
    }
    log.read_exact(&mut head)?;
    if head[..] != [magic, job.to_le_bytes()].concat() {
        return Ok(0);
    }
    let (mut whole, mut entry) = (HEAD, Vec::new());
    // Stop at the first damaged entry: entries after it were written later.
    while read_entry(&mut log, job, length - whole, &mut entry)?
        && visit(&entry[WORD..entry.len() - WORD])?
    {
        whole += entry.len() as u64;
    }
    Ok(whole)
}

/// Reads an entry with its length and checksum. The log has `left` more bytes. Returns false if they hold no whole entry.
fn read_entry(log: &mut impl Read, job: u64, left: u64, entry: &mut Vec<u8>) -> io::Result<bool> {
    if left < WORD as u64 {
        return Ok(false);
    }
    let mut length = [0; WORD];
    log.read_exact(&mut length)?;
    // Before the buffer is allocated, because after a power cut the length may be any number.
    let whole = u64::from_le_bytes(length).saturating_add(2 * WORD as u64);
    if whole > left {
        return Ok(false);
    }
    entry.clear();
    entry.resize(whole as usize, 0);
    let (first, rest) = entry.split_at_mut(WORD);
    first.copy_from_slice(&length);
    log.read_exact(rest)?;
    let (body, sum) = entry.split_at(entry.len() - WORD);
    Ok(sum == xxh3_64_with_seed(body, job).to_le_bytes())
}

impl EntryLog {
    /// Opens a log and passes its entries to `visit`, as [`read_entries`] does; those that it does not take are cut off. Begins a new log if there is none of
    /// this kind and job.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, or `visit` fails.
    pub(crate) fn open(
        path: &Path,
        magic: [u8; 8],
        job: u64,
        visit: impl FnMut(&[u8]) -> io::Result<bool>,
    ) -> io::Result<Self> {
        let whole = read_entries(path, magic, job, visit)?;
        let mut file = OpenOptions::new();
        // Not truncated, because a log of this job is continued.
        let file = file.write(true).create(true).truncate(false);
        let mut file = file.open(path)?;
        file.set_len(whole)?;
        file.seek(SeekFrom::Start(whole))?;
        if whole == 0 {
            file.write_all(&[magic, job.to_le_bytes()].concat())?;
        }
        Ok(Self {
            out: BufWriter::new(file),
            flushed: Instant::now(),
        })
    }

    /// Appends an entry that was [`sealed`].
    pub(crate) fn add(&mut self, entry: &[u8]) -> io::Result<()> {
        self.out.write_all(entry)?;
        match self.flushed.elapsed() < FLUSH_AFTER {
            true => Ok(()),
            false => self.flush(),
        }
    }

    /// Passes all entries to the system.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.flushed = Instant::now();
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_cannot_be_read_was_taken_for_none_and_its_ranks_for_done() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("none");
        let read = |path: &Path| read_entries(path, *b"LOOKPAR2", 7, |_| Ok(true));
        assert_eq!(read(&missing).unwrap(), 0);
        // A folder opens, and every read of it fails.
        assert!(read(folder.path()).is_err());
    }

    #[test]
    fn entries_end_at_the_first_that_is_cut_off_or_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut bytes = [*b"LOOKPAR2", 7_u64.to_le_bytes()].concat();
        let ends: Vec<usize> = [&b"one"[..], b"", b"three"]
            .into_iter()
            .map(|entry| {
                bytes.extend(sealed(7, &[entry]));
                bytes.len()
            })
            .collect();
        let end_of = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read_entries(&path, *b"LOOKPAR2", 7, |_| Ok(true)).unwrap()
        };
        for cut in HEAD as usize..=bytes.len() {
            let whole = ends.iter().rev().find(|end| **end <= cut);
            let whole = whole.map_or(HEAD, |end| *end as u64);
            assert_eq!(end_of(&bytes[..cut]), whole, "cut at {cut}");
        }
        for at in HEAD as usize..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x80;
            let whole = ends.iter().rev().find(|end| **end <= at);
            let whole = whole.map_or(HEAD, |end| *end as u64);
            assert_eq!(end_of(&damaged), whole, "byte {at}");
        }
    }
}
