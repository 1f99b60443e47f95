//! A collection without threads: everything happens when it is called, so that tests control the timing.
//!
//! Locks are taken in this order: the writer (log, manifest), then the view. Readers take only the view, and only during a search in
//! memory; documents of runs are read after it is released, since runs never change.

mod commit;
mod install;
mod journal;
mod open;
mod paragraph_lookup;
mod payload;
mod query;
mod snapshot;
mod stage;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use crate::clean_shutdown::CleanShutdown;
use crate::error::{Result, StoreError};
use crate::file_names::file_path;
use crate::fs::{FileSystem, write_file};
use crate::id_hash::IdHasher;
use crate::log::LogWriter;
use crate::manifest::{CollectionManifest, ReplaceError};
use crate::pair_rule::PairRule;
use crate::run::RunOptions;
use crate::scheme_part::{PartEntry, SchemePart};
use crate::settings::{CollectionSettings, IndexShape, RetainedParts, StoreTuning};
use crate::sync::{lock, read_lock, write_lock};
use crate::time::UnixMillis;

use crate::view::CollectionView;
use journal::ChangeJournal;

pub use commit::MAX_BATCH_BYTES;
pub(crate) use commit::WriteRequest;
pub use open::RecoveryReport;
pub(crate) use open::{salvage, settings, verify};
pub use paragraph_lookup::ParagraphLookup;
pub(crate) use payload::LogChange;
pub use query::CollectionStats;

/// Name of the file that is written to test for free space.
const PROBE: &str = "ROOM.new";

/// A collection, as used by its threads and by readers.
pub(crate) struct CollectionEngine {
    fs: Arc<dyn FileSystem>,
    folder: PathBuf,
    /// Settings, of which only the time to live ever changes.
    settings: RwLock<Arc<CollectionSettings>>,
    // Copies of settings that never change, so that they can be read without a lock.
    shape: IndexShape,
    keep: RetainedParts,
    pairs: PairRule,
    pub(crate) has_parts: bool,
    tuning: StoreTuning,
    hasher: IdHasher,
    view: RwLock<CollectionView>,
    writer: Mutex<WriterState>,
    /// Reason why writes have stopped.
    stopped: OnceLock<String>,
    /// True once a rebuilt collection has replaced this one.
    replaced: AtomicBool,
    /// Documents that change while the collection is rebuilt; `None` if it is not.
    journal: Mutex<Option<ChangeJournal>>,
    /// The latest time reported by a caller, in milliseconds.
    time: AtomicU64,
    /// True while the mark of a clean shutdown is on disk.
    shutdown_recorded: AtomicBool,
    /// True from when a write or merge finds the disk full until a probe finds free space.
    disk_full: AtomicBool,
    /// True once flushes and merges in progress should be abandoned.
    cancelled: AtomicBool,
}

/// State that is only changed under the writer lock.
#[derive(Debug)]
struct WriterState {
    log: LogWriter,
    manifest: CollectionManifest,
    /// Number of tombstones on disk for each run.
    listed: HashMap<u64, usize>,
    /// True if a failed replacement left it unknown which manifest is on disk. It is then written again before any other change.
    manifest_uncertain: bool,
    /// Latest time recorded in the log or in the mark of a clean shutdown.
    recorded_time: UnixMillis,
}

impl WriterState {
    /// Returns the record of a shutdown after the last write.
    fn clean_shutdown(&self, time: UnixMillis) -> CleanShutdown {
        CleanShutdown {
            collection: self.manifest.collection,
            log: self.log.file(),
            end: self.log.end(),
            next: self.log.next(),
            time: time.0,
        }
    }
}

impl fmt::Debug for CollectionEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CollectionEngine")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// The identity of a new collection, and the key of its id hashes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CollectionSecrets {
    pub(crate) identity: u64,
    pub(crate) key: u128,
}

impl CollectionEngine {
    fn view(&self) -> RwLockReadGuard<'_, CollectionView> {
        read_lock(&self.view)
    }

    fn view_mut(&self) -> RwLockWriteGuard<'_, CollectionView> {
        write_lock(&self.view)
    }

    fn writer(&self) -> MutexGuard<'_, WriterState> {
        lock(&self.writer)
    }

    /// Returns the settings of the collection.
    pub(crate) fn settings(&self) -> Arc<CollectionSettings> {
        Arc::clone(&read_lock(&self.settings))
    }

    /// Reads the parts of the scheme and verifies their checksums.
    pub(crate) fn parts(&self) -> Result<Vec<SchemePart>> {
        let (parts, collection) = {
            let manifest = &self.writer().manifest;
            (manifest.parts.clone(), manifest.collection)
        };
        let read = |part: &PartEntry| part.read(&*self.fs, &self.folder, collection);
        parts.iter().map(read).collect()
    }

    /// Sets how long documents live that are inserted from now on without an expiry.
    pub(crate) fn set_time_to_live(&self, time_to_live: Option<Duration>) -> Result<()> {
        let mut writer = self.writer();
        self.ensure_manifest_certain(&mut writer)?;
        let mut manifest = writer.manifest.clone();
        manifest.set_time_to_live(time_to_live);
        self.replace_manifest(&mut writer, manifest)?;
        let changed = Arc::new(writer.manifest.settings());
        // After the manifest is durable, so that no insert uses a value that the medium refused.
        *write_lock(&self.settings) = changed;
        Ok(())
    }

    /// Advances the collection's time to `told` if that is later, and returns it.
    pub(crate) fn now(&self, told: UnixMillis) -> UnixMillis {
        // A caller's clock may be behind, and if time went back, expired documents would come back.
        UnixMillis(self.time.fetch_max(told.0, Ordering::Relaxed).max(told.0))
    }

    /// Returns the reason why writes have stopped, or `None`.
    pub(crate) fn stopped(&self) -> Option<&str> {
        self.stopped.get().map(String::as_str)
    }

    /// Stops all writes. The caller holds the writer lock.
    pub(crate) fn stop(&self, error: &StoreError) -> StoreError {
        let reason = self.stopped.get_or_init(|| error.to_string());
        StoreError::Stopped(reason.clone())
    }

    fn ensure_writing(&self) -> Result<()> {
        match self.stopped.get() {
            Some(_) if self.is_replaced() => Err(StoreError::Replaced),
            Some(reason) => Err(StoreError::Stopped(reason.clone())),
            None => Ok(()),
        }
    }

    fn path(&self, number: u64, kind: &str) -> PathBuf {
        file_path(&self.folder, number, kind)
    }

    fn run_options(&self, writer: &WriterState, number: u64) -> RunOptions {
        RunOptions {
            identity: writer.manifest.file(number),
            shape: self.shape,
            small: self.tuning.small_run,
            scratch: self.tuning.scratch_bytes,
        }
    }

    /// Returns an error if writes have stopped. Otherwise rewrites the manifest if it is unknown which one is on disk.
    fn ensure_manifest_certain(&self, writer: &mut WriterState) -> Result<()> {
        self.ensure_writing()?;
        if writer.manifest_uncertain {
            let manifest = writer.manifest.clone();
            self.replace_manifest(writer, manifest)?;
        }
        Ok(())
    }

    /// Replaces the manifest. If a failure leaves it unknown which manifest is on disk, the next change first writes it again; if the
    /// medium itself failed, writes stop.
    fn replace_manifest(
        &self,
        writer: &mut WriterState,
        manifest: CollectionManifest,
    ) -> Result<()> {
        match manifest.write(&*self.fs, &self.folder) {
            Ok(()) => {
                writer.manifest = manifest;
                writer.manifest_uncertain = false;
                Ok(())
            }
            // The rename may or may not be durable, so a power failure may bring back either manifest. Both are valid for now, but the next
            // change would invalidate one, so the current manifest is written again first.
            Err(ReplaceError::Unknown(error)) if error.is_transient() => {
                writer.manifest_uncertain = true;
                Err(error)
            }
            // The old manifest is certainly in place, so writes continue.
            Err(ReplaceError::Before(error)) => Err(error),
            Err(ReplaceError::Unknown(error)) => Err(self.stop(&error)),
        }
    }

    /// Abandons flushes and merges in progress, and prevents new ones.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }

    /// Returns true from when a write finds the disk full until a probe finds free space.
    pub(crate) fn is_disk_full(&self) -> bool {
        self.disk_full.load(Ordering::Relaxed)
    }

    /// Records that the disk is full, if that is the error.
    fn record_disk_full<T>(&self, result: Result<T>) -> Result<T> {
        if result.as_ref().is_err_and(StoreError::is_disk_full) {
            self.disk_full.store(true, Ordering::Relaxed);
        }
        result
    }

    /// Tests whether a full disk has free space again.
    pub(crate) fn probe_disk_space(&self) {
        let path = self.folder.join(PROBE);
        let written = write_file(&*self.fs, &path, &vec![0; self.tuning.log_step as usize]);
        // If this fails, the next start removes the file.
        let _ = self.fs.remove(&path);
        if written.is_ok() {
            self.disk_full.store(false, Ordering::Relaxed);
        }
    }
}
