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
    entry.resize(WORD, 0);
    parts.iter().for_each(|part| entry.extend_from_slice(part));
    seal(&mut entry, job);
    entry
}

/// Completes an entry that begins with room for its length.
pub(crate) fn seal(entry: &mut Vec<u8>, job: u64) {
    let length = (entry.len() - WORD) as u64;
    entry[..WORD].copy_from_slice(&length.to_le_bytes());
    let sum = xxh3_64_with_seed(entry, job);
    entry.extend_from_slice(&sum.to_le_bytes());
}

/// Reads the entries of a log until one is incomplete.
pub(crate) struct EntryReader {
    log: BufReader<File>,
    pub(crate) job: u64,
    length: u64,
    /// Position of the next entry.
    pub(crate) position: u64,
    entry: Vec<u8>,
}

impl EntryReader {
    /// Opens the log of any job. Returns `None` if there is no log of this kind.
    pub(crate) fn open(path: &Path, magic: [u8; 8]) -> io::Result<Option<Self>> {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let length = file.metadata()?.len();
        if length < HEAD {
            return Ok(None);
        }
        let mut log = BufReader::with_capacity(1 << 18, file);
        let (mut found, mut job) = ([0; WORD], [0; WORD]);
        log.read_exact(&mut found)?;
        log.read_exact(&mut job)?;
        Ok((found == magic).then_some(Self {
            log,
            job: u64::from_le_bytes(job),
            length,
            position: HEAD,
            entry: Vec::new(),
        }))
    }

    /// Returns the next entry, or `None` if there is no whole one. Entries after a damaged one were written later.
    pub(crate) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let left = self.length - self.position;
        if left < WORD as u64 {
            return Ok(None);
        }
        let mut length = [0; WORD];
        self.log.read_exact(&mut length)?;
        // Before the buffer is allocated, because after a power cut the length may be any number.
        let whole = u64::from_le_bytes(length).saturating_add(2 * WORD as u64);
        if whole > left {
            return Ok(None);
        }
        self.entry.clear();
        self.entry.resize(whole as usize, 0);
        let (first, rest) = self.entry.split_at_mut(WORD);
        first.copy_from_slice(&length);
        self.log.read_exact(rest)?;
        let (body, sum) = self.entry.split_at(self.entry.len() - WORD);
        let is_right = sum == xxh3_64_with_seed(body, self.job).to_le_bytes();
        self.position += whole;
        Ok(is_right.then_some(&body[WORD..]))
    }
}

/// Calls `visit` with the entries of a log of this kind and job, until one is incomplete or `visit` returns false. Returns the end of the last entry before that,
/// or 0 if there is no such log.
pub(crate) fn read_entries(
    path: &Path,
    magic: [u8; 8],
    job: u64,
    mut visit: impl FnMut(&[u8]) -> io::Result<bool>,
) -> io::Result<u64> {
    let reader = EntryReader::open(path, magic)?;
    let Some(mut reader) = reader.filter(|reader| reader.job == job) else {
        return Ok(0);
    };
    let mut whole = HEAD;
    while let Some(entry) = reader.next()?
        && visit(entry)?
    {
        whole = reader.position;
    }
    Ok(whole)
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
        Self::append(path, magic, job, whole)
    }

    /// Opens a log to append entries to its first `whole` bytes; 0 begins a new log.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub(crate) fn append(path: &Path, magic: [u8; 8], job: u64, whole: u64) -> io::Result<Self> {
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
