//! The log of a scan, on disk. A job that is killed while it reads resumes after the last complete segment.
//!
//! There is one file, `scanned.bin`, an [`EntryLog`] with the magic `LOOKSCN4`; batches are appended as they are collected, in input order. Its entries:
//!
//! ```text
//! description of settings and input, in JSON; empty if another file has it
//! batches, see `ScanBatch::encode`; an entry of 8 bytes ends a segment: number of batches before it (u64)
//! ```
//!
//! Workers compute the checksums of batches, so that the writing thread only copies.
//!
//! Between segments the pipeline is drained, so that no class is referred to before the batch that defines it. Anything after the last
//! end of a segment is ignored.
//!
//! Feature sets that do not fit in memory are read back from the log: it has all of them, so they are written once.
//!
//! In the log, documents are numbered by their position, and classes have 64 bits, so that it can hold any number of both. A key refers to a class by
//! its position in the batch, and the header of a feature set has the lower half of its class number, by which wrong reads are detected.
//!
//! A resumed job reads the chunks before that end again without parsing them: their bytes must be those recorded in the log.

use std::fs::{self, File};
use std::io::{self, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use lookalike_corpus::PooledBytes;

use crate::dedup::entry_log::{EntryLog, EntryReader, WORD, sealed};
use crate::dedup::hashing_stream::damaged;
use crate::dedup::job_logs::{JobLogs, unnamed};
use crate::dedup::scan_batch::{EncodedBatch, ScanBatch, SetKinds};
use crate::document_memory::LongestDocument;
use crate::error::BatchError;
use crate::folder_refusal::FolderRefusal;
use crate::output_dir::JobIdentity;
use crate::pipeline::InputChunk;

const MAGIC: [u8; 8] = *b"LOOKSCN4";

/// Maximum number of batches that wait to be written.
const WAITING: usize = 8;

/// A chunk, and whether it begins a segment of the log: then all earlier chunks are collected before a worker gets it.
pub(crate) struct SegmentChunk<C> {
    pub(crate) chunk: C,
    pub(crate) begins_segment: bool,
}

impl<C: InputChunk> InputChunk for SegmentChunk<C> {
    fn held_bytes(&self) -> usize {
        self.chunk.held_bytes()
    }

    fn longest_document(&self) -> LongestDocument {
        self.chunk.longest_document()
    }

    fn start_tags(&self) -> u64 {
        self.chunk.start_tags()
    }

    fn needs_all_earlier(&self) -> bool {
        // A worker may give a class its number before an earlier chunk, which refers to it too, is collected. If no chunk is in work at the end of a
        // segment, each class that the log refers to is defined in it.
        self.begins_segment
    }
}

impl<C: InputChunk> SegmentChunk<C> {
    /// Divides chunks into segments of about `segment_bytes` bytes, or leaves them in one segment if that is `None`.
    pub(crate) fn cut<E>(
        chunks: impl Iterator<Item = Result<C, E>> + Send,
        segment_bytes: Option<u64>,
    ) -> impl Iterator<Item = Result<Self, E>> + Send {
        let mut bytes = 0;
        let mut with_segment = move |chunk: C| {
            // The chunk that reaches the length is the last of its segment.
            let begins_segment = segment_bytes.is_some_and(|most| bytes >= most);
            // Batches of a caller tell their own size.
            let before = if begins_segment { 0 } else { bytes };
            bytes = before.saturating_add(chunk.held_bytes() as u64);
            Self {
                chunk,
                begins_segment,
            }
        };
        chunks.map(move |chunk| chunk.map(&mut with_segment))
    }
}

/// A log that is replayed and then extended; see the module's header.
pub(crate) struct ScanLog {
    /// Batches of complete segments, until all are replayed.
    kept: Option<SavedBatches>,
    writer: LogWriter,
    job: u64,
    segment_bytes: u64,
    /// Number of chunks whose batches are in the log.
    chunks: u64,
    /// Length of the file once everything sent has been written.
    end: u64,
    file: Arc<File>,
    path: PathBuf,
}

/// Batches of complete segments, which are read once.
struct SavedBatches {
    entries: EntryReader,
    chunks: u64,
}

/// The writing thread. A full disk ends the log after its last complete segment; it ends the job only if some sets are only in the log.
struct LogWriter {
    sender: Option<mpsc::SyncSender<LogEntry>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

struct LogEntry {
    bytes: PooledBytes,
    ends_segment: bool,
}

/// File of a log.
struct LogFile {
    log: EntryLog,
    path: PathBuf,
    /// Path of the file until a segment is complete, because before that it cannot be resumed from.
    begun: Option<PathBuf>,
    /// Length of the file up to the end of the last segment.
    whole: u64,
}

/// A log that could not be completed. Its complete segments are on the disk.
#[derive(Debug)]
pub(crate) struct UnfinishedLog {
    path: PathBuf,
    error: io::Error,
}

/// Refuses a job with other settings or another input than the existing log describes. A log that cannot be read refuses nothing.
pub(crate) fn ensure_same(path: &Path, identity: &JobIdentity) -> Result<(), FolderRefusal> {
    let there = found_description(path).ok().flatten();
    let there = there.and_then(|there| serde_json::from_slice::<JobIdentity>(&there).ok());
    there.map_or(Ok(()), |there| identity.ensure_same(there))
}

/// Returns the description in a log of any job.
fn found_description(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let Some(mut entries) = EntryReader::open(path, MAGIC)? else {
        return Ok(None);
    };
    Ok(entries.next()?.map(<[u8]>::to_vec))
}

impl ScanLog {
    /// Opens the log if there is one of this job and `may_go_on` is true; otherwise begins a new one.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or written.
    pub(crate) fn open(logs: &JobLogs, may_go_on: bool) -> io::Result<Self> {
        let resumed = match may_go_on {
            true => LogFile::resume(&logs.scanned, logs.job)?,
            false => None,
        };
        let (kept, mut file) = match resumed {
            Some((kept, file)) => (Some(kept), file),
            None => (None, LogFile::begin(logs)?),
        };
        let end = file.log.out.stream_position()?;
        // A handle of its own, because that of the writer cannot read.
        let readable = File::open(file.begun.as_ref().unwrap_or(&file.path))?;
        Ok(Self {
            kept,
            writer: LogWriter::new(file)?,
            job: logs.job,
            segment_bytes: logs.scanned_bytes,
            chunks: 0,
            end,
            file: Arc::new(readable),
            path: logs.scanned.clone(),
        })
    }

    /// Returns the hash of the job, with which batches are encoded.
    pub(crate) fn job(&self) -> u64 {
        self.job
    }

    /// Returns the number of bytes of chunks in a segment.
    pub(crate) fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// Returns the file, from which sets can be read once they are written.
    pub(crate) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Returns true if the log is on the same file system as `folder`.
    ///
    /// # Errors
    /// Returns an error if the metadata of either cannot be read.
    pub(crate) fn shares_disk(&self, folder: &Path) -> io::Result<bool> {
        Ok(self.file.metadata()?.dev() == fs::metadata(folder)?.dev())
    }

    /// Returns the next batch of a complete segment, with the positions of its sets in the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub(super) fn replay(&mut self) -> io::Result<Option<(ScanBatch, SetKinds<u64>)>> {
        let Some(kept) = &mut self.kept else {
            return Ok(None);
        };
        while self.chunks < kept.chunks {
            let position = kept.entries.position;
            let entry = kept.entries.next()?.ok_or_else(damaged)?;
            if !ends_segment(entry) {
                self.chunks += 1;
                let (batch, sets) = ScanBatch::decode(entry)?;
                return Ok(Some((batch, sets.map(|offset| position + offset))));
            }
        }
        self.kept = None;
        Ok(None)
    }

    /// Appends a batch, encoded by [`ScanBatch::encode`], and returns the future positions of its sets in the file.
    pub(super) fn add(&mut self, batch: EncodedBatch, begins_segment: bool) -> SetKinds<u64> {
        if begins_segment {
            self.end_segment();
        }
        let sets = batch.sets.map(|offset| self.end + offset);
        self.send(batch.bytes, false);
        self.chunks += 1;
        sets
    }

    /// Ends the last segment. A log that is dropped without this ends with the segment before.
    ///
    /// # Errors
    /// Returns an error if the log could not be completely written; it then ends with the last complete segment.
    pub(crate) fn finish(mut self) -> Result<(), UnfinishedLog> {
        self.end_segment();
        let Self {
            path, mut writer, ..
        } = self;
        writer
            .finish()
            .map_err(|error| UnfinishedLog { path, error })
    }

    /// Returns true if the log could not be completely written.
    pub(crate) fn has_failed(&self) -> bool {
        self.writer.has_failed()
    }

    fn end_segment(&mut self) {
        let mut bytes = PooledBytes::default();
        bytes.extend(sealed(self.job, &[&self.chunks.to_le_bytes()]));
        self.send(bytes, true);
    }

    fn send(&mut self, bytes: PooledBytes, ends_segment: bool) {
        self.end += bytes.len() as u64;
        self.writer.send(LogEntry {
            bytes,
            ends_segment,
        });
    }
}

/// Returns true if an entry is the end of a segment. Batches are longer.
fn ends_segment(entry: &[u8]) -> bool {
    entry.len() == WORD
}

impl UnfinishedLog {
    /// Removes the log, when the job continues and needs the space.
    pub(crate) fn discard(self) {
        // The writing thread has removed the file without a segment, if that was all there was.
        let _ = std::fs::remove_file(self.path);
    }
}

impl From<UnfinishedLog> for BatchError {
    fn from(log: UnfinishedLog) -> Self {
        Self::result(&log.path)(log.error)
    }
}

impl LogWriter {
    fn new(mut file: LogFile) -> io::Result<Self> {
        // Bounded, so that batches do not pile up if the disk is slower than the scan.
        let (sender, entries) = mpsc::sync_channel::<LogEntry>(WAITING);
        let thread = std::thread::Builder::new().spawn(move || {
            let written = entries.iter().try_for_each(|entry| file.write(&entry));
            file.end();
            // The channel is dropped with this thread, so senders do not block.
            written
        })?;
        Ok(Self {
            sender: Some(sender),
            thread: Some(thread),
        })
    }

    fn send(&self, entry: LogEntry) {
        let sender = self.sender.as_ref().expect("taken when finished");
        // If the thread has ended, the error is returned when it is joined.
        let _ = sender.send(entry);
    }

    fn has_failed(&self) -> bool {
        // While there is a sender, the thread ends only with an error.
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }

    fn finish(&mut self) -> io::Result<()> {
        // The thread ends when there is no sender any more.
        drop(self.sender.take());
        self.thread.take().map_or(Ok(()), |thread| {
            thread.join().expect("the thread does not panic")
        })
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        // Waits, so that an incomplete segment is cut off before anyone opens the file again.
        let _ = self.finish();
    }
}

impl LogFile {
    fn begin(logs: &JobLogs) -> io::Result<Self> {
        let path = logs.scanned.clone();
        // Before the new log has a segment, an older one under this name would be taken for it.
        if path.exists() {
            fs::remove_file(&path)?;
        }
        let begun = unnamed(&path);
        let mut log = EntryLog::append(&begun, MAGIC, logs.job, 0)?;
        log.add(&sealed(logs.job, &[logs.description.as_bytes()]))?;
        Ok(Self {
            log,
            path,
            begun: Some(begun),
            whole: 0,
        })
    }

    /// Returns the batches of a log of the same job, and the log truncated after them, or `None` if no segment is complete.
    fn resume(path: &Path, job: u64) -> io::Result<Option<(SavedBatches, Self)>> {
        let Some((chunks, whole)) = complete_segments(path, job)? else {
            return Ok(None);
        };
        let log = Self {
            log: EntryLog::append(path, MAGIC, job, whole)?,
            path: path.to_owned(),
            begun: None,
            whole,
        };
        let mut entries = EntryReader::open(path, MAGIC)?.ok_or_else(damaged)?;
        // Past the description, so that the next entry is a batch.
        entries.next()?;
        Ok(Some((SavedBatches { entries, chunks }, log)))
    }

    fn write(&mut self, entry: &LogEntry) -> io::Result<()> {
        self.log.add(&entry.bytes)?;
        if entry.ends_segment {
            // Also flushes the buffer.
            let end = self.log.out.stream_position()?;
            if let Some(begun) = &self.begun {
                // From here on, a killed job can be resumed.
                fs::rename(begun, &self.path)?;
                self.begun = None;
            }
            self.whole = end;
        }
        Ok(())
    }

    /// Keeps only complete segments, because the space of anything else may be needed.
    fn end(self) {
        // Buffered bytes belong to a segment without an end.
        let (file, _) = self.log.out.into_parts();
        // If this fails, a resumed job still finds the complete segments.
        let _ = match &self.begun {
            Some(begun) => fs::remove_file(begun),
            None => file.set_len(self.whole),
        };
    }
}

/// Returns the number of chunks in the complete segments of a log of this job, and their end in the file; `None` if no segment is complete.
fn complete_segments(path: &Path, job: u64) -> io::Result<Option<(u64, u64)>> {
    let entries = EntryReader::open(path, MAGIC)?;
    let Some(mut entries) = entries.filter(|entries| entries.job == job) else {
        return Ok(None);
    };
    // Without its description, the log would refuse no other job.
    if entries.next()?.is_none() {
        return Ok(None);
    }
    let (mut found, mut chunks) = (None, 0_u64);
    while let Some(entry) = entries.next()? {
        if ends_segment(entry) {
            if entry != chunks.to_le_bytes() {
                break;
            }
            found = Some((chunks, entries.position));
        } else if ScanBatch::decode(entry).is_ok() {
            chunks += 1;
        } else {
            break;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::BufWriter;

    use proptest::prelude::*;

    use super::*;
    use crate::dedup::entry_log::HEAD;
    use crate::dedup::scan_batch::{NewClass, ScanRow};

    const JOB: u64 = 7;

    /// Creates a batch of one class with two documents, distinguished by a number.
    fn batch(number: u64) -> ScanBatch {
        let row = |id_end: u32| ScanRow {
            length: number,
            record_hash: number * 3,
            value: number as f64,
            value_rest: -1,
            source: 1,
            id_end,
            class: number + 1,
        };
        ScanBatch {
            ids: "ab".to_owned(),
            rows: vec![row(1), row(2)],
            words: SetKinds {
                texts: vec![1, number],
                pages: Vec::new(),
                tests: vec![vec![number; 3]],
            },
            classes: vec![NewClass {
                hash: u128::from(number) << 70,
                fingerprint: 5,
                text: 7,
                category: 6,
                position: number,
                word: 0,
                size: 1,
                padding: [0; 2],
            }],
            tests: vec![[8, 9]],
            keys: vec![[1, 2, number as u32]],
            content: number,
            ..ScanBatch::default()
        }
    }

    fn place(folder: &Path) -> JobLogs {
        JobLogs {
            description: "seven".to_owned(),
            ..JobLogs::in_folder(folder, JOB, 1)
        }
    }

    fn encoded(batch: &ScanBatch) -> EncodedBatch {
        batch.encode(PooledBytes::default(), JOB).unwrap()
    }

    /// Replays a log and returns the bytes of its batches. Then appends `more`, unless that is empty.
    fn replayed(place: &JobLogs, more: &[u64]) -> Vec<Vec<u8>> {
        let mut log = ScanLog::open(place, true).unwrap();
        let mut batches = Vec::new();
        while let Some((batch, _)) = log.replay().unwrap() {
            batches.push(encoded(&batch).bytes.to_vec());
        }
        if !more.is_empty() {
            add(&mut log, more);
            log.finish().unwrap();
        }
        batches
    }

    fn add(log: &mut ScanLog, numbers: &[u64]) {
        for &number in numbers {
            log.add(encoded(&batch(number)), number % 3 == 0);
        }
    }

    fn expected(numbers: impl IntoIterator<Item = u64>) -> Vec<Vec<u8>> {
        let entry = |number| encoded(&batch(number)).bytes.to_vec();
        numbers.into_iter().map(entry).collect()
    }

    #[test]
    fn whole_segments_come_back_and_more_is_added_behind_them() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        let mut log = ScanLog::open(&place, true).unwrap();
        add(&mut log, &[1, 2, 3, 4, 5, 6, 7]);
        // As after a kill: everything after the start of the segment of 6 is ignored.
        drop(log);
        let found = complete_segments(&place.scanned, JOB).unwrap();
        let length = fs::metadata(&place.scanned).unwrap().len();
        assert_eq!(found, Some((5, length)), "the room is given back");
        assert_eq!(replayed(&place, &[6, 7, 8]), expected(1..6));
        assert_eq!(replayed(&place, &[]), expected(1..9));
        let description = found_description(&place.scanned).unwrap();
        assert_eq!(description.as_deref(), Some(&b"seven"[..]));
        let other = JobLogs {
            job: JOB + 1,
            ..place
        };
        assert_eq!(replayed(&other, &[]), expected([]));
    }

    #[test]
    fn keys_name_their_classes_however_far_these_are_apart() {
        let [a, b, c] = [u32::MAX - 1, 5, 70_000];
        let class = |number| batch(u64::from(number)).classes.remove(0);
        let original = ScanBatch {
            classes: [a, b, c].map(class).into(),
            keys: vec![[1, 2, a], [0, 0, a], [1, 2, c], [9, 9, b], [3, 4, c]],
            ..batch(1)
        };
        let entry = encoded(&original).bytes;
        let (read, _) = ScanBatch::decode(&entry[WORD..]).unwrap();
        assert_eq!(read.keys, original.keys);
        let stranger = ScanBatch {
            keys: vec![[1, 2, 6]],
            ..original
        };
        assert!(stranger.encode(PooledBytes::default(), JOB).is_err());
    }

    #[test]
    fn a_log_gets_its_name_with_its_first_segment() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        let mut log = ScanLog::open(&place, true).unwrap();
        add(&mut log, &[1, 2]);
        drop(log);
        assert!(!place.scanned.exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    /// Returns a log of complete segments that continues on a full disk.
    fn full_disk(place: &JobLogs) -> LogFile {
        let (_, mut log) = LogFile::resume(&place.scanned, JOB).unwrap().unwrap();
        let full = OpenOptions::new().write(true).open("/dev/full");
        log.log.out = BufWriter::new(full.unwrap());
        log
    }

    #[test]
    fn a_full_disk_deleted_the_segments_that_were_whole() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        let mut log = ScanLog::open(&place, true).unwrap();
        add(&mut log, &[1, 2, 3, 4, 5]);
        log.finish().unwrap();
        let mut log = ScanLog::open(&place, true).unwrap();
        while log.replay().unwrap().is_some() {}
        log.writer = LogWriter::new(full_disk(&place)).unwrap();
        add(&mut log, &[6, 7]);
        let unfinished = log.finish().unwrap_err();
        assert_eq!(unfinished.error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(replayed(&place, &[6]), expected(1..6));
        assert_eq!(replayed(&place, &[]), expected(1..7));
        unfinished.discard();
        assert_eq!(replayed(&place, &[]), expected([]));
    }

    #[test]
    fn a_log_with_a_damaged_description_was_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        let mut log = ScanLog::open(&place, true).unwrap();
        add(&mut log, &[1, 2]);
        log.finish().unwrap();
        let mut bytes = fs::read(&place.scanned).unwrap();
        let description = HEAD as usize + WORD;
        assert!(bytes[description..].starts_with(b"seven"));
        bytes[description] ^= 1;
        fs::write(&place.scanned, &bytes).unwrap();
        assert_eq!(replayed(&place, &[9]), expected([]));
        assert_eq!(replayed(&place, &[]), expected([9]));
    }

    proptest! {
        #[test]
        fn a_log_that_is_cut_or_damaged_gives_some_first_segments(
            at in any::<prop::sample::Index>(),
            is_cut in any::<bool>(),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let place = place(folder.path());
            let mut log = ScanLog::open(&place, true).unwrap();
            add(&mut log, &[1, 2, 3, 4, 5, 6, 7]);
            log.finish().unwrap();
            let mut bytes = fs::read(&place.scanned).unwrap();
            let at = at.index(bytes.len());
            match is_cut {
                true => bytes.truncate(at),
                false => bytes[at] ^= 1,
            }
            fs::write(&place.scanned, &bytes).unwrap();
            let found = replayed(&place, &[9]);
            prop_assert!([0, 2, 5].contains(&found.len()));
            prop_assert_eq!(&found, &expected(1..=found.len() as u64));
            // Batches that are appended then are replayed too.
            let whole = expected((1..=found.len() as u64).chain([9]));
            prop_assert_eq!(replayed(&place, &[]), whole);
        }
    }
}
