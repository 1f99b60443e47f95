//! The directory of a collection, opened to compare with or locked to add to.

use std::fmt;
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use lookalike_corpus::{COLLECTION_FILE, InputOptions, remove_leftovers};
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use crate::dedup::collection::error::CollectionError;
use crate::dedup::collection::lookup::SegmentFile;
use crate::dedup::collection::manifest::{
    CollectionSetting, DirectoryManifest, OrderEntry, settings_of,
};
use crate::dedup::frequency::FrequencyLevels;
use crate::dedup::job_logs::unnamed;
use crate::settings::JobSettings;
use crate::spill::{SPOOL, remove_abandoned_spools};
use crate::unfinished::write_whole;

/// Name of the file that a process locks while it adds to a collection.
pub const COLLECTION_LOCK: &str = "lookalike.lock";
/// Name of the log of what a build has read so far: see `scan_log`.
const BEGUN: &str = "begun.bin";
const SEGMENT: &str = "segment-";
const ORDER: &str = "order-";

/// A collection on disk, opened to compare with.
///
/// It stays as it was when it was opened, whatever is added meanwhile. Memory: about a byte per ten documents, and
/// the order of features.
///
/// ```
/// use std::ffi::OsString;
///
/// use lookalike_batch::{CollectionWriter, DedupJob, DocumentCollection};
/// use lookalike_corpus::{InputOptions, Inputs};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let [old, new] = ["old.jsonl", "new.jsonl"].map(|name| folder.path().join(name));
/// std::fs::write(&old, "{\"id\":\"a\",\"text\":\"a rose is a rose\"}\n")?;
/// std::fs::write(&new, "{\"id\":\"b\",\"text\":\"A rose is a rose!\"}\n")?;
/// let read = |file: OsString| Inputs::discover(&[file], &InputOptions::default(), folder.path());
///
/// let seen = folder.path().join("seen");
/// let writer = CollectionWriter::lock(&seen)?;
/// let old = read(old.into())?;
/// DedupJob::new(&old, folder.path()).into_collection(&writer).collect()?;
///
/// let collection = DocumentCollection::open(&seen)?;
/// let new = read(new.into())?;
/// let decided = DedupJob::new(&new, folder.path()).against_collection(&collection).decide()?;
/// assert_eq!(decided.decision_counts().removed_near, 1);
/// # Ok(())
/// # }
/// ```
pub struct DocumentCollection {
    pub(crate) folder: PathBuf,
    pub(crate) manifest: DirectoryManifest,
    pub(crate) checksum: u64,
    pub(crate) segments: Vec<SegmentFile>,
    pub(crate) levels: FrequencyLevels,
}

impl fmt::Debug for DocumentCollection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = out.debug_struct("DocumentCollection");
        shown.field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// Facts about a collection on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CollectionInfo {
    /// The directory.
    pub folder: PathBuf,
    /// Number of documents.
    pub documents: u64,
    /// Number of different texts, as a sum over the segments: a text in several segments counts once in each.
    pub texts: u64,
    /// Bytes of the texts.
    pub text_bytes: u64,
    /// Number of additions.
    pub additions: u64,
    /// Number of segment files.
    pub segments: u64,
    /// Bytes of all its files.
    pub bytes: u64,
    /// Settings that every job must have in common with it.
    pub settings: Vec<CollectionSetting>,
}

impl DocumentCollection {
    /// Opens the collection in a directory. Data that is read later is checked then.
    ///
    /// # Errors
    /// [`CollectionError`]: there is no collection, it has another version, or it is damaged.
    pub fn open(folder: &Path) -> Result<Self, CollectionError> {
        loop {
            let found = DirectoryManifest::load(folder)?;
            let (manifest, checksum) = found.ok_or_else(|| CollectionError::Missing {
                folder: folder.to_owned(),
            })?;
            let opened = Self::with_manifest(folder, manifest, checksum);
            // An addition removes the files that it merged, but then the manifest has changed too.
            let is_replaced = || -> Result<bool, CollectionError> {
                let now = DirectoryManifest::load(folder)?;
                Ok(now.is_some_and(|(_, now)| now != checksum))
            };
            if opened.is_ok() || !is_replaced()? {
                return opened;
            }
        }
    }

    fn with_manifest(
        folder: &Path,
        manifest: DirectoryManifest,
        checksum: u64,
    ) -> Result<Self, CollectionError> {
        let levels = load_order(folder, &manifest.order)?;
        let open = |entry| SegmentFile::open(folder, entry);
        let segments = manifest.segments.iter().map(open);
        Ok(Self {
            segments: segments.collect::<Result<_, _>>()?,
            folder: folder.to_owned(),
            manifest,
            checksum,
            levels,
        })
    }

    /// Returns true if a directory has a collection, damaged or not.
    pub fn exists_in(folder: &Path) -> bool {
        folder.join(COLLECTION_FILE).is_file()
    }

    /// Returns the number of documents.
    pub fn documents(&self) -> u64 {
        self.manifest.documents()
    }

    /// Returns facts about the collection.
    ///
    /// # Errors
    /// [`CollectionError`] if the metadata of a file cannot be read.
    pub fn info(&self) -> Result<CollectionInfo, CollectionError> {
        let entries = &self.manifest.segments;
        // From the files that were opened, because they may have been merged since.
        let mut bytes: u64 = self.segments.iter().map(SegmentFile::bytes).sum();
        for name in [COLLECTION_FILE, &*self.manifest.order.file] {
            let path = self.folder.join(name);
            let data = path
                .metadata()
                .map_err(CollectionError::unreadable(&path))?;
            bytes += data.len();
        }
        Ok(CollectionInfo {
            folder: self.folder.clone(),
            documents: self.documents(),
            texts: entries.iter().map(|entry| entry.classes).sum(),
            text_bytes: entries.iter().map(|entry| entry.text_bytes).sum(),
            additions: self.manifest.additions.len() as u64,
            segments: entries.len() as u64,
            bytes,
            settings: self.manifest.settings.clone(),
        })
    }

    /// Reads all files and checks their checksums.
    ///
    /// # Errors
    /// [`CollectionError::Damaged`] with the first file that is damaged.
    pub fn verify(&self) -> Result<(), CollectionError> {
        self.segments
            .iter()
            .try_for_each(|segment| segment.verify().map(drop))
    }

    /// Returns an error if a job has other settings.
    pub(crate) fn ensure_fits(
        &self,
        job: &JobSettings,
        read: &InputOptions,
    ) -> Result<(), CollectionError> {
        let wanted = settings_of(job, read);
        self.manifest.ensure_same(&self.folder, &wanted)
    }
}

/// Reads the order of features of a collection.
pub(crate) fn load_order(
    folder: &Path,
    entry: &OrderEntry,
) -> Result<FrequencyLevels, CollectionError> {
    let path = folder.join(&entry.file);
    let bytes = std::fs::read(&path).map_err(CollectionError::unopened(&path))?;
    if xxh3_64(&bytes) != entry.checksum {
        return Err(CollectionError::damaged(
            &path,
            "its checksum is not that of the manifest",
        ));
    }
    FrequencyLevels::from_bytes(&bytes)
        .map_err(|error| CollectionError::damaged(&path, error.to_string()))
}

/// Write access to a collection, or to the build of one, which only one process has at a time. It ends when dropped.
#[derive(Debug)]
pub struct CollectionWriter {
    pub(crate) folder: PathBuf,
    /// Maximum number of records in a merged segment, limited by the numbers available.
    pub(crate) most_merged: u64,
    /// Holds the lock.
    lock: File,
}

impl Drop for CollectionWriter {
    fn drop(&mut self) {
        // A lock belongs to the open file. A child process that another thread is just starting has a copy of the handle until its program
        // begins, and closing ours alone would leave the lock with it. If this fails, the lock ends with the last handle.
        let _ended = self.lock.unlock();
    }
}

/// Returns true if an open file is still the one at `path`.
fn has_name(file: &File, path: &Path) -> bool {
    let identity = |metadata: Metadata| (metadata.dev(), metadata.ino());
    let named = std::fs::metadata(path).map(identity);
    matches!((file.metadata().map(identity), named), (Ok(open), Ok(named)) if open == named)
}

impl CollectionWriter {
    /// Locks the collection in a directory, creating the directory if needed. Files that a killed job left there, and that no manifest names, may be
    /// replaced.
    ///
    /// # Errors
    /// [`CollectionError::Locked`] if another job holds the lock, [`CollectionError::Foreign`] if the directory has other contents.
    pub fn lock(folder: &Path) -> Result<Self, CollectionError> {
        if folder.exists() && !folder.is_dir() {
            return Err(CollectionError::NotADirectory {
                path: folder.to_owned(),
            });
        }
        std::fs::create_dir_all(folder).map_err(CollectionError::unwritable(folder))?;
        refuse_foreign(folder)?;
        let path = folder.join(COLLECTION_LOCK);
        let mut options = OpenOptions::new();
        // Not truncated, because another process may hold the lock of this file.
        let lock = options.write(true).create(true).truncate(false).open(&path);
        let unwritable = CollectionError::unwritable(&path);
        let lock = lock.map_err(&unwritable)?;
        match lock.try_lock() {
            // The previous holder removed the file, and with it the lock's name: the next process would create another file and lock that
            // one too. So try again.
            Ok(()) if !has_name(&lock, &path) => Self::lock(folder),
            Ok(()) => {
                remove_abandoned_spools(folder);
                let writer = Self {
                    folder: folder.to_owned(),
                    // Record numbers have 32 bits, and `u32::MAX` stands for no record.
                    most_merged: u64::from(u32::MAX - 1),
                    lock,
                };
                if DocumentCollection::exists_in(folder) {
                    // Its build has ended, or another job has created the collection.
                    let _ = std::fs::remove_file(writer.begun());
                }
                Ok(writer)
            }
            Err(TryLockError::WouldBlock) => Err(CollectionError::Locked {
                folder: folder.to_owned(),
            }),
            Err(TryLockError::Error(error)) => Err(unwritable(error)),
        }
    }

    /// Returns the directory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of the log of a build.
    pub(crate) fn begun(&self) -> PathBuf {
        self.folder.join(BEGUN)
    }

    /// Returns true if an interrupted build left checkpoints in a directory, from which [`DedupJob::build_collection`] can resume.
    ///
    /// [`DedupJob::build_collection`]: crate::DedupJob::build_collection
    pub fn has_unfinished_build(folder: &Path) -> bool {
        folder.join(BEGUN).is_file()
    }

    /// Removes a file that an interrupted build of this process does not need to resume.
    pub fn remove_unfinished(folder: &Path) {
        let _ = std::fs::remove_file(unnamed(&folder.join(BEGUN)));
    }

    /// Returns the current manifest and its checksum.
    pub(crate) fn manifest(&self) -> Result<Option<(DirectoryManifest, u64)>, CollectionError> {
        DirectoryManifest::load(&self.folder)
    }

    /// Returns the name of the next segment, which differs from those of all segments in the manifest.
    pub(crate) fn next_segment(manifest: Option<&DirectoryManifest>) -> String {
        let number = |name: &str| -> Option<u64> {
            name.strip_prefix(SEGMENT)?
                .strip_suffix(".bin")?
                .parse()
                .ok()
        };
        let entries = manifest.map_or(&[][..], |manifest| &manifest.segments);
        let last = entries.iter().filter_map(|entry| number(&entry.file)).max();
        // A killed job may have left a segment with this number that the manifest does not name: it is replaced.
        format!("{SEGMENT}{:06}.bin", last.unwrap_or(0) + 1)
    }

    /// Writes the order of features of a new collection.
    pub(crate) fn save_order(
        &self,
        levels: &FrequencyLevels,
    ) -> Result<OrderEntry, CollectionError> {
        let bytes = levels.to_bytes();
        let checksum = xxh3_64(&bytes);
        // Named by its contents, so that another attempt with another order does not overwrite this file before there is a
        // manifest.
        let file = format!("{ORDER}{checksum:016x}.bin");
        let path = self.folder.join(&file);
        write_whole(&path, &bytes).map_err(CollectionError::unwritable(&path))?;
        Ok(OrderEntry { file, checksum })
    }

    /// Removes data files that `manifest` does not name.
    pub(crate) fn remove_unnamed(
        &self,
        manifest: &DirectoryManifest,
    ) -> Result<(), CollectionError> {
        let remove = || -> std::io::Result<()> {
            // Temporary files of atomic writes that a kill interrupted.
            remove_leftovers(&self.folder, |name| {
                name == COLLECTION_FILE || is_data(&name.to_string_lossy())
            })?;
            for entry in std::fs::read_dir(&self.folder)? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if is_data(&name) && manifest.files().all(|file| file != name) {
                    std::fs::remove_file(entry.path())?;
                }
            }
            Ok(())
        };
        remove().map_err(CollectionError::unwritable(&self.folder))
    }
}

/// Returns true for the name of a segment, an order or the log of a build.
fn is_data(name: &str) -> bool {
    let is_part = name.starts_with(SEGMENT) || name.starts_with(ORDER);
    is_part && name.ends_with(".bin")
        || name == BEGUN
        || Path::new(name) == unnamed(Path::new(BEGUN))
}

/// Returns an error if a directory contains anything other than a collection or the start of one.
fn refuse_foreign(folder: &Path) -> Result<(), CollectionError> {
    if DocumentCollection::exists_in(folder) {
        return Ok(());
    }
    let unreadable = CollectionError::unreadable(folder);
    for entry in std::fs::read_dir(folder).map_err(&unreadable)? {
        let name = entry.map_err(&unreadable)?.file_name();
        let name = name.to_string_lossy().into_owned();
        // What a killed job may have left is not foreign.
        let begun = [SEGMENT, ORDER, COLLECTION_FILE];
        let is_temporary = name.starts_with(SPOOL)
            || name.contains(".tmp-") && begun.iter().any(|begun| name.starts_with(begun));
        if name != COLLECTION_LOCK && !is_data(&name) && !is_temporary {
            return Err(CollectionError::Foreign {
                folder: folder.to_owned(),
                name,
            });
        }
    }
    Ok(())
}
