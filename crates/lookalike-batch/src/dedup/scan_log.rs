//! The log of a scan, on disk. A job that is killed while it reads resumes after the last complete segment.
//!
//! There is one file, `scanned.bin`; batches are appended as they are collected, in input order. Little-endian:
//!
//! ```text
//! 8 bytes   "LOOKSCN3"
//! u64       XXH3-64 of settings and input
//! u64       length of the description
//! text      description of settings and input, in JSON; empty if another file has it
//! entries   u64 1: XXH3-64 of a batch (u64), the batch, see `ScanBatch::encode`
//!           u64 2: the end of a segment, chunks before it (u64), XXH3-64 of all before but the batches (u64)
//! ```
//!
//! The checksums of batches stand for the batches in the hash of the log. Workers compute them, so that the writing thread only copies.
//!
//! Between segments the pipeline is drained, so that no class is referred to before the batch that defines it. Anything after the last
//! end of a segment is ignored. Writes are not synced: after a power cut, the checksums show what is left.
//!
//! Feature sets that do not fit in memory are read back from the log: it has all of them, so they are written once.
//!
//! In the log, documents are numbered by their position, and classes have 64 bits, so that it can hold any number of both. A key refers to a class by
//! its position in the batch, and the header of a feature set has the lower half of its class number, by which wrong reads are detected.
//!
//! A resumed job reads the chunks before that end again without parsing them: their bytes must be those recorded in the log.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use xxhash_rust::xxh3::Xxh3;

use crate::dedup::hashing_stream::{HashingStream, damaged};
use crate::dedup::scan_batch::{EncodedBatch, ScanBatch, SetColumns};
use crate::document_memory::LongestDocument;
use crate::error::BatchError;
use crate::folder_refusal::FolderRefusal;
use crate::output_dir::JobIdentity;
use crate::pipeline::InputChunk;

const MAGIC: [u8; 8] = *b"LOOKSCN3";
const BATCH: u64 = 1;
const SEGMENT_END: u64 = 2;

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

/// The path of a log, the hash of its job, and the number of bytes of chunks in a segment.
pub(crate) struct ScanLogSettings {
    pub(crate) path: PathBuf,
    pub(crate) job: u64,
    /// Settings and input, for a later job that must say how it differs; empty if they are stored in another file.
    pub(crate) description: String,
    pub(crate) segment_bytes: u64,
}

/// A log that is replayed and then extended; see the module's header.
pub(crate) struct ScanLog {
    /// Batches of complete segments, until all are replayed.
    kept: Option<SavedBatches>,
    writer: LogWriter,
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
    file: HashingStream<BufReader<File>>,
    chunks: u64,
}

/// The writing thread. A full disk ends the log after its last complete segment; it ends the job only if some sets are only in the log.
struct LogWriter {
    sender: Option<mpsc::SyncSender<LogEntry>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

enum LogEntry {
    Batch(EncodedBatch),
    SegmentEnd(u64),
}

/// File of a log, with the hash of its contents.
struct LogFile {
    file: BufWriter<File>,
    hash: Xxh3,
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

/// The head of a log, which identifies its job.
struct ScanLogHeader {
    job: u64,
    description: Vec<u8>,
}

impl ScanLogHeader {
    fn read(file: &mut HashingStream<impl Read>) -> io::Result<Self> {
        if file.word()? != u64::from_le_bytes(MAGIC) {
            return Err(damaged());
        }
        let job = file.word()?;
        let length = file.word()?;
        Ok(Self {
            job,
            description: file.column(length)?,
        })
    }
}

/// Complete segments found in a log.
struct FoundSegments {
    /// Length of the file up to the end of the last segment.
    length: u64,
    chunks: u64,
    hash: Xxh3,
}

impl ScanLogSettings {
    /// Opens the log if there is one of this job and `may_go_on` is true; otherwise begins a new one.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or written.
    pub(crate) fn open(&self, may_go_on: bool) -> io::Result<ScanLog> {
        let resumed = match may_go_on {
            true => LogFile::resume(&self.path, self.job)?,
            false => None,
        };
        let (kept, mut log) = match resumed {
            Some((kept, log)) => (Some(kept), log),
            None => (None, LogFile::begin(self)?),
        };
        let end = log.file.stream_position()?;
        // A handle of its own, because that of the writer cannot read.
        let file = Arc::new(File::open(log.begun.as_ref().unwrap_or(&log.path))?);
        Ok(ScanLog {
            kept,
            writer: LogWriter::new(log),
            segment_bytes: self.segment_bytes,
            chunks: 0,
            end,
            file,
            path: self.path.clone(),
        })
    }

    /// Refuses a job with other settings or another input than the existing log describes. A log that cannot be read refuses nothing.
    pub(crate) fn ensure_same(&self, identity: &JobIdentity) -> Result<(), FolderRefusal> {
        let there = self.found_description();
        let there = there.and_then(|there| serde_json::from_slice::<JobIdentity>(&there).ok());
        there.map_or(Ok(()), |there| identity.ensure_same(there))
    }

    /// Returns the description in the existing log, or `None` if it cannot be read.
    fn found_description(&self) -> Option<Vec<u8>> {
        let mut file = HashingStream::new(BufReader::new(File::open(&self.path).ok()?));
        let head = ScanLogHeader::read(&mut file).ok()?;
        Some(head.description)
    }

    /// Removes the log, when its results have been saved or cannot be resumed.
    pub(crate) fn discard(&self) {
        for path in [&self.path, &unnamed(&self.path)] {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Returns the path of a log that has no complete segment yet.
pub(crate) fn unnamed(path: &Path) -> PathBuf {
    path.with_extension("part")
}

impl ScanLog {
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
        Ok(self.file.metadata()?.dev() == std::fs::metadata(folder)?.dev())
    }

    /// Returns the next batch of a complete segment, with the positions of its sets in the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub(super) fn replay(&mut self) -> io::Result<Option<(ScanBatch, SetColumns)>> {
        let Some(kept) = &mut self.kept else {
            return Ok(None);
        };
        while self.chunks < kept.chunks {
            if kept.file.word()? == BATCH {
                self.chunks += 1;
                return kept.file.summed(ScanBatch::decode).map(Some);
            }
            // The end of a segment, with the number of chunks and a checksum.
            kept.file.column::<u64>(2)?;
        }
        self.kept = None;
        Ok(None)
    }

    /// Appends a batch, encoded by [`ScanBatch::encode`], and returns the future positions of its sets in the file.
    pub(super) fn add(&mut self, batch: EncodedBatch, begins_segment: bool) -> SetColumns {
        if begins_segment {
            self.send(LogEntry::SegmentEnd(self.chunks));
        }
        // Its kind and its checksum precede it.
        let sets = batch.sets.clone().shifted_by(self.end + 16);
        self.send(LogEntry::Batch(batch));
        self.chunks += 1;
        sets
    }

    /// Ends the last segment. A log that is dropped without this ends with the segment before.
    ///
    /// # Errors
    /// Returns an error if the log could not be completely written; it then ends with the last complete segment.
    pub(crate) fn finish(mut self) -> Result<(), UnfinishedLog> {
        self.send(LogEntry::SegmentEnd(self.chunks));
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

    fn send(&mut self, entry: LogEntry) {
        self.end += entry.bytes();
        self.writer.send(entry);
    }
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

impl LogEntry {
    /// Returns the number of bytes that it takes in the file.
    fn bytes(&self) -> u64 {
        match self {
            // Kind and checksum are before a batch; an end has its kind, the number of chunks, and a checksum.
            Self::Batch(batch) => 16 + batch.bytes.len() as u64,
            Self::SegmentEnd(_) => 24,
        }
    }
}

impl LogWriter {
    fn new(mut file: LogFile) -> Self {
        // Bounded, so that batches do not pile up if the disk is slower than the scan.
        let (sender, entries) = mpsc::sync_channel::<LogEntry>(WAITING);
        let thread = std::thread::spawn(move || {
            let written = entries.iter().try_for_each(|entry| file.write(entry));
            file.end();
            // The channel is dropped with this thread, so senders do not block.
            written
        });
        Self {
            sender: Some(sender),
            thread: Some(thread),
        }
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
    fn begin(place: &ScanLogSettings) -> io::Result<Self> {
        let path = &place.path;
        // Before the new log has a segment, an older one under this name would be taken for it.
        if path.exists() {
            std::fs::remove_file(path)?;
        }
        let begun = unnamed(path);
        let file = File::create(&begun)?;
        let mut log = Self {
            file: BufWriter::new(file),
            hash: Xxh3::new(),
            path: path.to_owned(),
            begun: Some(begun),
            whole: 0,
        };
        log.put(&MAGIC)?;
        log.put(&place.job.to_le_bytes())?;
        log.put(&(place.description.len() as u64).to_le_bytes())?;
        log.put(place.description.as_bytes())?;
        Ok(log)
    }

    /// Returns the batches of a log of the same job, and the log truncated after them, or `None` if no segment is complete.
    fn resume(path: &Path, job: u64) -> io::Result<Option<(SavedBatches, Self)>> {
        let Some(found) = FoundSegments::read(path, job) else {
            return Ok(None);
        };
        let mut file = OpenOptions::new().write(true).open(path)?;
        file.set_len(found.length)?;
        file.seek(SeekFrom::End(0))?;
        let mut kept = SavedBatches {
            file: HashingStream::new(BufReader::new(File::open(path)?)),
            chunks: found.chunks,
        };
        // Past the head, so that the next read begins with an entry.
        ScanLogHeader::read(&mut kept.file)?;
        let log = Self {
            file: BufWriter::new(file),
            hash: found.hash,
            path: path.to_owned(),
            begun: None,
            whole: found.length,
        };
        Ok(Some((kept, log)))
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.file.write_all(bytes)
    }

    fn write(&mut self, entry: LogEntry) -> io::Result<()> {
        match entry {
            LogEntry::Batch(batch) => {
                self.put(&BATCH.to_le_bytes())?;
                self.put(&batch.sum.to_le_bytes())?;
                // Not hashed here: its worker has computed the sum that stands for it.
                self.file.write_all(&batch.bytes)
            }
            LogEntry::SegmentEnd(chunks) => {
                self.put(&SEGMENT_END.to_le_bytes())?;
                self.put(&chunks.to_le_bytes())?;
                let sum = self.hash.digest();
                self.put(&sum.to_le_bytes())?;
                // Also flushes the buffer.
                let end = self.file.stream_position()?;
                if let Some(begun) = &self.begun {
                    // From here on, a killed job can be resumed.
                    std::fs::rename(begun, &self.path)?;
                    self.begun = None;
                }
                self.whole = end;
                Ok(())
            }
        }
    }

    /// Keeps only complete segments, because the space of anything else may be needed.
    fn end(self) {
        // Buffered bytes belong to a segment without an end.
        let (file, _) = self.file.into_parts();
        // If this fails, a resumed job still finds the complete segments.
        let _ = match &self.begun {
            Some(begun) => std::fs::remove_file(begun),
            None => file.set_len(self.whole),
        };
    }
}

impl FoundSegments {
    /// Reads a log up to the last end of a segment with a correct checksum. Returns `None` if it is of another job or has no such end.
    fn read(path: &Path, job: u64) -> Option<Self> {
        let mut file = HashingStream::new(BufReader::new(File::open(path).ok()?));
        if ScanLogHeader::read(&mut file).ok()?.job != job {
            return None;
        }
        let (mut found, mut chunks) = (None, 0);
        loop {
            match file.word() {
                // A batch has no length; only decoding it shows where it ends.
                Ok(BATCH) if file.summed(ScanBatch::decode).is_ok() => chunks += 1,
                Ok(SEGMENT_END) => {
                    let told = file.word();
                    if !told.is_ok_and(|told| told == chunks) || file.end().is_err() {
                        return found;
                    }
                    found = Some(Self {
                        length: file.passed(),
                        chunks,
                        hash: file.hasher(),
                    });
                }
                _ => return found,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lookalike_corpus::PooledBytes;
    use proptest::prelude::*;

    use super::*;
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
            words: vec![1, number],
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
            test_words: vec![vec![number; 3]],
            keys: vec![[1, 2, number as u32]],
            content: number,
            ..ScanBatch::default()
        }
    }

    fn place(folder: &Path) -> ScanLogSettings {
        ScanLogSettings {
            path: folder.join("scanned.bin"),
            job: JOB,
            description: "seven".to_owned(),
            segment_bytes: 1,
        }
    }

    /// Replays a log and returns the bytes of its batches. Then appends `more`, unless that is empty.
    fn replayed(place: &ScanLogSettings, more: &[u64]) -> Vec<Vec<u8>> {
        let mut log = place.open(true).unwrap();
        let mut batches = Vec::new();
        while let Some((batch, _)) = log.replay().unwrap() {
            batches.push(batch.encode(PooledBytes::default()).unwrap().bytes.to_vec());
        }
        if !more.is_empty() {
            add(&mut log, more);
            log.finish().unwrap();
        }
        batches
    }

    fn add(log: &mut ScanLog, numbers: &[u64]) {
        for &number in numbers {
            let encoded = batch(number).encode(PooledBytes::default());
            log.add(encoded.unwrap(), number % 3 == 0);
        }
    }

    fn expected(numbers: impl IntoIterator<Item = u64>) -> Vec<Vec<u8>> {
        let encoded = |number| batch(number).encode(PooledBytes::default());
        let batches = numbers.into_iter().map(encoded);
        batches.map(|batch| batch.unwrap().bytes.to_vec()).collect()
    }

    #[test]
    fn whole_segments_come_back_and_more_is_added_behind_them() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        let mut log = place.open(true).unwrap();
        add(&mut log, &[1, 2, 3, 4, 5, 6, 7]);
        // As after a kill: everything after the start of the segment of 6 is ignored.
        drop(log);
        let found = FoundSegments::read(&place.path, JOB).unwrap();
        assert_eq!(
            std::fs::metadata(&place.path).unwrap().len(),
            found.length,
            "the room is given back"
        );
        assert_eq!(replayed(&place, &[6, 7, 8]), expected(1..6));
        assert_eq!(replayed(&place, &[]), expected(1..9));
        let other = ScanLogSettings {
            job: JOB + 1,
            path: place.path.clone(),
            description: String::new(),
            ..place
        };
        assert_eq!(other.found_description().as_deref(), Some(&b"seven"[..]));
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
        let bytes = original.encode(PooledBytes::default()).unwrap().bytes;
        let (read, _) = ScanBatch::decode(&mut HashingStream::new(&bytes[..])).unwrap();
        assert_eq!(read.keys, original.keys);
        let stranger = ScanBatch {
            keys: vec![[1, 2, 6]],
            ..original
        };
        assert!(stranger.encode(PooledBytes::default()).is_err());
    }

    #[test]
    fn a_log_gets_its_name_with_its_first_segment() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        let mut log = place.open(true).unwrap();
        add(&mut log, &[1, 2]);
        drop(log);
        assert!(!place.path.exists());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    /// Returns a log of complete segments that continues on a full disk.
    fn full_disk(place: &ScanLogSettings) -> LogFile {
        let (_, mut log) = LogFile::resume(&place.path, JOB).unwrap().unwrap();
        let full = OpenOptions::new().write(true).open("/dev/full");
        log.file = BufWriter::new(full.unwrap());
        log
    }

    #[test]
    fn a_full_disk_deleted_the_segments_that_were_whole() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        let mut log = place.open(true).unwrap();
        add(&mut log, &[1, 2, 3, 4, 5]);
        log.finish().unwrap();
        let mut log = place.open(true).unwrap();
        while log.replay().unwrap().is_some() {}
        log.writer = LogWriter::new(full_disk(&place));
        add(&mut log, &[6, 7]);
        let unfinished = log.finish().unwrap_err();
        assert_eq!(unfinished.error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(replayed(&place, &[6]), expected(1..6));
        assert_eq!(replayed(&place, &[]), expected(1..7));
        unfinished.discard();
        assert_eq!(replayed(&place, &[]), expected([]));
    }

    proptest! {
        #[test]
        fn a_log_that_is_cut_or_damaged_gives_some_first_segments(
            at in any::<prop::sample::Index>(),
            is_cut in any::<bool>(),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let place = place(folder.path());
            let mut log = place.open(true).unwrap();
            add(&mut log, &[1, 2, 3, 4, 5, 6, 7]);
            log.finish().unwrap();
            let mut bytes = std::fs::read(&place.path).unwrap();
            let at = at.index(bytes.len());
            match is_cut {
                true => bytes.truncate(at),
                false => bytes[at] ^= 1,
            }
            std::fs::write(&place.path, &bytes).unwrap();
            let found = replayed(&place, &[9]);
            prop_assert!([0, 2, 5].contains(&found.len()));
            prop_assert_eq!(&found, &expected(1..=found.len() as u64));
            // Batches that are appended then are replayed too.
            let whole = expected((1..=found.len() as u64).chain([9]));
            prop_assert_eq!(replayed(&place, &[]), whole);
        }
    }
}
