//! Opens archives and reads facts, one record or all records.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use lookalike_corpus::open_regular;
use serde::Serialize;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::archive::blocks::decompress;
use crate::archive::error::CollectionArchiveError;
use crate::archive::format::{
    ArchiveDirectory, ArchivePositions, ArchivedKind, ArchivedSource, DIRECTORY_RATIO, END_MAGIC,
    HEADER_BYTES, MAGIC, SMALL_DIRECTORY, TRAILER_BYTES, VERSION, record_hash,
};
use crate::error::BatchError;
use crate::locks::lock;
use crate::observer::{JobObserver, JobStage, SharedProgress, check_cancelled};
use crate::parallel::run_on_threads;
use crate::settings::JobLimits;

// Well below the descriptors that systems allow a process by default, of which 256 is the lowest usual number.
/// Maximum number of files open at once while sources are written.
const OPEN_FILES: usize = 128;

/// An archive on disk. Its directory is in memory; blocks are read when needed.
///
/// Every block is checked against its checksum before it is decompressed, and every record before it is returned. If one differs from what was
/// written, the error names the block or the record.
#[derive(Debug)]
pub struct CollectionArchive {
    path: PathBuf,
    file: File,
    bytes: u64,
    directory_bytes: u64,
    directory: ArchiveDirectory,
    positions: ArchivePositions,
}

/// Facts about an archive.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
#[non_exhaustive]
pub struct CollectionArchiveInfo {
    /// Number of files that can be extracted.
    pub sources: u64,
    /// Number of documents.
    pub documents: u64,
    /// Documents that are copies of another, stored next to it.
    pub copies: u64,
    /// Bytes of all sources.
    pub source_bytes: u64,
    /// Bytes that belong to no document: blank lines, and what could not be read as a document.
    pub other_bytes: u64,
    /// Bytes of the archive file.
    pub archive_bytes: u64,
    /// Compressed bytes of its directory.
    pub directory_bytes: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// Blocks of copies that need the block of their survivor.
    pub dependent_blocks: u64,
    /// Bytes of the sources divided by bytes of the archive.
    pub ratio: f64,
}

/// Prefix of the current blocks, kept because consecutive blocks often need the same one.
#[derive(Default)]
struct PrefixCache {
    record: Option<usize>,
    bytes: Vec<u8>,
}

/// Receiver of parts of records: the record number, the offset of the part in the record, and its bytes.
type PartSink<'s> = &'s (dyn Fn(usize, u64, &[u8]) -> Result<(), CollectionArchiveError> + Sync);

impl CollectionArchive {
    /// Opens an archive and reads its directory.
    ///
    /// # Errors
    /// [`CollectionArchiveError`] if the file cannot be read, is not an archive, or is damaged.
    pub fn open(path: &Path) -> Result<Self, CollectionArchiveError> {
        let unreadable = CollectionArchiveError::unreadable(path);
        let file = open_regular(path).map_err(&unreadable)?;
        let bytes = file.metadata().map_err(&unreadable)?.len();
        let damaged = CollectionArchiveError::damaged(path);
        let mut head = vec![0; HEADER_BYTES.min(bytes) as usize];
        file.read_exact_at(&mut head, 0).map_err(&unreadable)?;
        check_header(&head, path)?;
        let end = bytes.checked_sub(TRAILER_BYTES);
        let end = end.filter(|&end| end >= HEADER_BYTES);
        let end = end.ok_or_else(|| damaged("the end of the file", "it is cut off"))?;
        let mut trailer = [0; TRAILER_BYTES as usize];
        file.read_exact_at(&mut trailer, end).map_err(&unreadable)?;
        let place = DirectoryLocation::read(&trailer, end)
            .map_err(|reason| damaged("the end of the file", reason))?;
        // It ends where the trailer starts, so it is no longer than the file.
        let mut packed = vec![0; place.packed as usize];
        file.read_exact_at(&mut packed, place.offset)
            .map_err(&unreadable)?;
        let raw = place.unpack(&packed);
        drop(packed);
        let read = raw.and_then(|raw| ArchiveDirectory::decode(&raw, place.offset));
        let (directory, positions) = read.map_err(|reason| damaged("the directory", reason))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            bytes,
            directory_bytes: place.packed,
            directory,
            positions,
        })
    }

    /// Returns facts about the archive.
    pub fn info(&self) -> CollectionArchiveInfo {
        let records = &self.directory.records;
        let count = |kind| records.iter().filter(|record| record.kind == kind).count() as u64;
        let between = records
            .iter()
            .filter(|record| record.kind == ArchivedKind::Between);
        // The last position is the end of all records.
        let source_bytes = self.positions.records.last().copied().unwrap_or(0);
        let blocks = &self.directory.blocks;
        CollectionArchiveInfo {
            sources: self.directory.sources.len() as u64,
            documents: count(ArchivedKind::Kept) + count(ArchivedKind::Copy),
            copies: count(ArchivedKind::Copy),
            source_bytes,
            other_bytes: between.map(|record| record.length).sum(),
            archive_bytes: self.bytes,
            directory_bytes: self.directory_bytes,
            blocks: blocks.len() as u64,
            dependent_blocks: blocks.iter().filter(|block| block.prefix != 0).count() as u64,
            // Never a division by 0: every archive has a header and a trailer.
            ratio: source_bytes as f64 / self.bytes as f64,
        }
    }

    /// Finds a document by its id and returns its record number.
    ///
    /// # Errors
    /// [`CollectionArchiveError::UnknownId`] if no document has the id.
    pub fn find(&self, id: &str) -> Result<usize, CollectionArchiveError> {
        let records = &self.directory.records;
        let is_it = |&record: &usize| {
            // Bytes between documents have an empty id, which must not be found.
            records[record].kind != ArchivedKind::Between && self.directory.id(record) == id
        };
        // Search all ids linearly: records are ordered by cluster, and only one document is requested at a time.
        let found = (0..records.len()).find(is_it);
        found.ok_or_else(|| CollectionArchiveError::UnknownId {
            path: self.path.clone(),
            id: id.to_owned(),
        })
    }

    /// Returns the number of records, including those of bytes between documents.
    pub fn len(&self) -> usize {
        self.directory.records.len()
    }

    /// Tells whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.directory.records.is_empty()
    }

    /// Returns the id of a record; empty for bytes between documents.
    ///
    /// # Panics
    /// If there is no such record.
    pub fn id(&self, record: usize) -> &str {
        self.directory.id(record)
    }

    /// Reads a record within `memory` bytes. A record too long for that can only be extracted with its source.
    ///
    /// # Errors
    /// [`CollectionArchiveError`] if the record is damaged or does not fit `memory`.
    ///
    /// # Panics
    /// If there is no such record.
    pub fn read(&self, record: usize, memory: u64) -> Result<Vec<u8>, CollectionArchiveError> {
        let entry = self.directory.records[record];
        let (own, each) = (self.own_memory(), self.block_memory());
        // A growing vector may reserve twice its length.
        let needed = (own + each).saturating_add(entry.length.saturating_mul(2));
        self.ensure_fits(memory, needed)?;
        let mut bytes = Vec::new();
        let start = self.positions.records[record];
        let end = start + entry.length;
        let mut cache = PrefixCache::default();
        let mut at = start;
        while at < end {
            let block = self.positions.block_of(at);
            let unpacked = self.block(block, &mut cache)?;
            let (from, to) = (
                self.positions.blocks[block],
                self.positions.blocks[block + 1],
            );
            bytes.extend_from_slice(&unpacked[(at - from) as usize..(end.min(to) - from) as usize]);
            at = to;
        }
        match record_hash(xxh3_64(&bytes)) == entry.hash {
            true => Ok(bytes),
            false => Err(self.damaged_record(record)),
        }
    }

    /// Reads every block and checks every record against its checksum.
    ///
    /// # Errors
    /// [`BatchError`] if something is damaged or cannot be read.
    pub fn verify(&self, limits: &JobLimits, observer: &dyn JobObserver) -> Result<(), BatchError> {
        self.visit(limits, observer, &|_, _, _| Ok(()))
    }

    /// Writes all sources below `folder`, which should be new: existing files with their names are overwritten.
    ///
    /// # Errors
    /// [`BatchError`]; some of the files may then exist, complete or not.
    pub fn extract(
        &self,
        folder: &Path,
        limits: &JobLimits,
        observer: &dyn JobObserver,
    ) -> Result<(), BatchError> {
        let files = SourceFiles::new(folder, &self.directory.sources)?;
        self.visit(limits, observer, &|record, offset, bytes| {
            let record = &self.directory.records[record];
            files.write(record.source as usize, record.offset + offset, bytes)
        })
    }

    /// Passes all records to `sink`, part by part, on all threads.
    fn visit(
        &self,
        limits: &JobLimits,
        observer: &dyn JobObserver,
        sink: PartSink<'_>,
    ) -> Result<(), BatchError> {
        let threads = self.threads(limits)?;
        let runs = self.runs();
        let offsets = &self.positions.offsets;
        observer.stage(JobStage::Scan, self.bytes);
        let (next, done) = (AtomicUsize::new(0), SharedProgress::default());
        let work = || -> Result<(), BatchError> {
            let mut cache = PrefixCache::default();
            // Runs differ in size, so threads take one after another. No other data depends on the counter.
            while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                // The only error here is a cancellation, which `temporary` turns into that of the job.
                check_cancelled(observer).map_err(BatchError::temporary(&self.path))?;
                let result = self.visit_run(run.clone(), &mut cache, sink);
                // This leaves no work for the other threads.
                result.inspect_err(|_| next.store(runs.len(), Ordering::Relaxed))?;
                let bytes = offsets[run.end] - offsets[run.start];
                done.add(bytes, |done| observer.progress(done));
            }
            Ok(())
        };
        run_on_threads(threads, work).map(drop)
    }

    /// Returns the number of threads that fit in memory.
    fn threads(&self, limits: &JobLimits) -> Result<usize, CollectionArchiveError> {
        // Assume that all threads decompress the most expensive block at once.
        let (own, each) = (self.own_memory(), self.block_memory());
        self.ensure_fits(limits.memory, own + each)?;
        Ok(limits
            .workers()
            .min(((limits.memory - own) / each) as usize))
    }

    fn ensure_fits(&self, limit: u64, needed: u64) -> Result<(), CollectionArchiveError> {
        match needed <= limit {
            true => Ok(()),
            false => Err(CollectionArchiveError::ReadMemory {
                path: self.path.clone(),
                needed,
                limit,
            }),
        }
    }

    /// Returns the bytes of the program and the directory.
    fn own_memory(&self) -> u64 {
        const FIXED: u64 = 32 << 20;
        // A record takes 32 bytes in the directory, 8 for its start and 8 for the end of its id; the rest is for sources and blocks.
        FIXED + 64 * self.len() as u64 + self.directory.ids.len() as u64
    }

    /// Returns the bytes needed to decompress the most expensive block.
    fn block_memory(&self) -> u64 {
        let blocks = &self.directory.blocks;
        let cost = |block: usize| blocks[block].length + blocks[block].packed;
        // The block of the prefix is decompressed first, and the prefix copied out of it.
        let with_prefix = |block: usize| {
            let prefix = blocks[block].prefix().map(|record| {
                let place = self.positions.block_of(self.positions.records[record]);
                cost(place) + self.directory.records[record].length
            });
            cost(block) + prefix.unwrap_or(0)
        };
        // Never 0, since `threads` divides by it.
        (0..blocks.len()).map(with_prefix).max().unwrap_or(0).max(1)
    }

    /// Groups blocks into runs so that no record lies in two runs.
    fn runs(&self) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for block in 0..self.directory.blocks.len() {
            let start = self.positions.blocks[block];
            // A block that starts in the middle of a record belongs to the previous run, whose thread hashes the whole record.
            let begins_record = self.positions.records.binary_search(&start).is_ok();
            match runs.last_mut() {
                Some(run) if !begins_record => run.end = block + 1,
                _ => runs.push(block..block + 1),
            }
        }
        runs
    }

    /// Passes the records of a run of blocks to `sink`.
    fn visit_run(
        &self,
        run: Range<usize>,
        cache: &mut PrefixCache,
        sink: PartSink<'_>,
    ) -> Result<(), CollectionArchiveError> {
        let starts = &self.positions.records;
        // A record of several blocks lies in this run only, so one hash covers all its parts.
        let mut hash = Xxh3::new();
        for block in run {
            let bytes = self.block(block, cache)?;
            let start = self.positions.blocks[block];
            let end = start + bytes.len() as u64;
            // Skip empty records: their hashes were checked when the directory was read.
            let mut record = starts.partition_point(|&at| at <= start) - 1;
            while record < self.len() && starts[record] < end {
                let (first, last) = (starts[record], starts[record + 1]);
                let (from, to) = (first.max(start), last.min(end));
                // A part that does not begin the record continues the hash of the previous block.
                if from == first {
                    hash.reset();
                }
                let part = &bytes[(from - start) as usize..(to - start) as usize];
                hash.update(part);
                sink(record, from - first, part)?;
                if to == last && record_hash(hash.digest()) != self.directory.records[record].hash {
                    return Err(self.damaged_record(record));
                }
                record += 1;
            }
        }
        Ok(())
    }

    /// Returns the contents of a block.
    fn block(
        &self,
        number: usize,
        cache: &mut PrefixCache,
    ) -> Result<Vec<u8>, CollectionArchiveError> {
        let Some(record) = self.directory.blocks[number].prefix() else {
            return self.unpack(number, None);
        };
        if cache.record != Some(record) {
            let start = self.positions.records[record];
            let place = self.positions.block_of(start);
            let from = (start - self.positions.blocks[place]) as usize;
            let length = self.directory.records[record].length as usize;
            let bytes = self.unpack(place, None)?;
            // A copy, so that the rest of the survivor's block is freed.
            *cache = PrefixCache {
                record: Some(record),
                bytes: bytes[from..from + length].to_vec(),
            };
        }
        self.unpack(number, Some(&cache.bytes))
    }

    fn unpack(
        &self,
        number: usize,
        prefix: Option<&[u8]>,
    ) -> Result<Vec<u8>, CollectionArchiveError> {
        let block = self.directory.blocks[number];
        let damaged = |reason: &str| {
            let place = format!("block {} of {}", number + 1, self.directory.blocks.len());
            CollectionArchiveError::damaged(&self.path)(place, reason)
        };
        // Blocks end where the directory starts, so their lengths are within the file's.
        let mut packed = vec![0; block.packed as usize];
        let read = self
            .file
            .read_exact_at(&mut packed, self.positions.offsets[number]);
        read.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => damaged("it is cut off"),
            _ => CollectionArchiveError::unreadable(&self.path)(error),
        })?;
        if xxh3_64(&packed) != block.hash {
            return Err(damaged("its bytes do not match their checksum"));
        }
        decompress(&packed, block.length, prefix).map_err(damaged)
    }

    fn damaged_record(&self, record: usize) -> CollectionArchiveError {
        let place = match self.directory.records[record].kind {
            ArchivedKind::Between => format!("part {} of {}", record + 1, self.len()),
            _ => format!("the document {:?}", self.id(record)),
        };
        CollectionArchiveError::damaged(&self.path)(place, "its bytes do not match their checksum")
    }
}

/// Checks the start of a file, which is shorter than a header if the file is.
fn check_header(head: &[u8], path: &Path) -> Result<(), CollectionArchiveError> {
    let numbers = head.strip_prefix(&MAGIC).map(<[u8]>::as_chunks);
    let Some((&[version, reserved], _)) = numbers else {
        let path = path.to_owned();
        return Err(CollectionArchiveError::Foreign { path });
    };
    match (u32::from_le_bytes(version), u32::from_le_bytes(reserved)) {
        (VERSION, 0) => Ok(()),
        (VERSION, _) => Err(CollectionArchiveError::damaged(path)(
            "the beginning of the file",
            "reserved bytes are not zero",
        )),
        (found, _) => Err(CollectionArchiveError::Version {
            path: path.to_owned(),
            found,
            known: VERSION,
        }),
    }
}

/// Location of the directory, as the trailer gives it.
struct DirectoryLocation {
    offset: u64,
    packed: u64,
    length: u64,
    hash: u64,
}

impl DirectoryLocation {
    /// Reads the trailer of a file, which begins at `end`.
    fn read(trailer: &[u8; TRAILER_BYTES as usize], end: u64) -> Result<Self, &'static str> {
        if trailer[40..] != END_MAGIC {
            return Err("it is truncated, or data follows it");
        }
        let number = |at: usize| {
            let bytes = trailer[at..at + 8].try_into();
            u64::from_le_bytes(bytes.expect("eight bytes"))
        };
        if xxh3_64(&trailer[..32]) != number(32) {
            return Err("it does not match its checksum");
        }
        let place = Self {
            offset: number(0),
            packed: number(8),
            length: number(16),
            hash: number(24),
        };
        // The checksum shows that the trailer is intact, not that it is honest, and the length decides how much memory is allocated.
        let most = place
            .packed
            .saturating_mul(DIRECTORY_RATIO)
            .saturating_add(SMALL_DIRECTORY);
        let is_there =
            place.offset >= HEADER_BYTES && place.offset.checked_add(place.packed) == Some(end);
        match is_there && place.length <= most {
            true => Ok(place),
            false => Err("the directory is not where it says"),
        }
    }

    fn unpack(&self, packed: &[u8]) -> Result<Vec<u8>, &'static str> {
        match xxh3_64(packed) == self.hash {
            true => decompress(packed, self.length, None),
            false => Err("it does not match its checksum"),
        }
    }
}

/// Returns true if both paths lead to one file.
fn is_one_file(paths: &[PathBuf; 2]) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &PathBuf| path.metadata().ok().map(|file| (file.dev(), file.ino()));
    let [first, second] = paths.each_ref().map(identity);
    first.is_some() && first == second
}

/// Files of the sources, written in any order.
struct SourceFiles<'a> {
    folder: &'a Path,
    sources: &'a [ArchivedSource],
    open: Mutex<HashMap<usize, Arc<File>>>,
}

impl<'a> SourceFiles<'a> {
    /// Creates the directories, and the files that stay empty.
    fn new(
        folder: &'a Path,
        sources: &'a [ArchivedSource],
    ) -> Result<Self, CollectionArchiveError> {
        let files = Self {
            folder,
            sources,
            open: Mutex::default(),
        };
        files.refuse_merged_names()?;
        let parents = sources.iter().filter_map(|source| source.name.parent());
        let parents: BTreeSet<PathBuf> = parents.map(|parent| folder.join(parent)).collect();
        for parent in &parents {
            fs::create_dir_all(parent).map_err(CollectionArchiveError::unwritable(parent))?;
        }
        for (number, source) in sources.iter().enumerate() {
            // No record part is ever written to them, so nothing else would create them.
            if source.length == 0 {
                files.file(number)?;
            }
        }
        Ok(files)
    }

    /// Refuses names that differ only in case if the file system takes them for one: a file would be written over the other.
    fn refuse_merged_names(&self) -> Result<(), CollectionArchiveError> {
        let mut folded = HashMap::new();
        for (number, source) in self.sources.iter().enumerate() {
            let Some(before) = folded.insert(source.name.to_string_lossy().to_lowercase(), number)
            else {
                continue;
            };
            let paths = [before, number].map(|number| self.folder.join(&self.sources[number].name));
            for path in &paths {
                let parent = path.parent().unwrap_or(self.folder);
                fs::create_dir_all(parent).map_err(CollectionArchiveError::unwritable(parent))?;
            }
            self.file(before)?;
            if is_one_file(&paths) {
                const REASON: &str = "this file system takes it for another file of the archive, whose name differs only in case: choose a \
                                      folder on another, or read single documents";
                let error = io::Error::new(io::ErrorKind::AlreadyExists, REASON);
                return Err(CollectionArchiveError::unwritable(&paths[1])(error));
            }
        }
        Ok(())
    }

    fn write(
        &self,
        source: usize,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), CollectionArchiveError> {
        let file = self.file(source)?;
        let path = || self.folder.join(&self.sources[source].name);
        file.write_all_at(bytes, offset)
            .map_err(|error| CollectionArchiveError::unwritable(&path())(error))
    }

    fn file(&self, source: usize) -> Result<Arc<File>, CollectionArchiveError> {
        let mut open = lock(&self.open);
        if let Some(file) = open.get(&source) {
            return Ok(Arc::clone(file));
        }
        if open.len() == OPEN_FILES {
            // Threads that are writing to one of these files keep it open until they are done.
            open.clear();
        }
        let path = self.folder.join(&self.sources[source].name);
        let file = OpenOptions::new()
            .create(true)
            // Parts come in any order and a closed file may be opened again, so keep its contents.
            .truncate(false)
            .write(true)
            .open(&path);
        let file = file.map_err(CollectionArchiveError::unwritable(&path))?;
        // Cut off the tail of a longer file that existed here before.
        file.set_len(self.sources[source].length)
            .map_err(CollectionArchiveError::unwritable(&path))?;
        let file = Arc::new(file);
        open.insert(source, Arc::clone(&file));
        Ok(file)
    }
}
