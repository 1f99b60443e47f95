//! A collection without threads: everything happens when it is called for, so that tests decide when that is.
//!
//! Locks, in the order in which they are taken: the writer (log, manifest), then the view. Readers take the view only,
//! for the time of a search in memory; documents of runs are read after it is given back, since runs never change.

mod commit;
mod install;
mod journal;
mod open;
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

use crate::error::{Result, StoreError};
use crate::file_names::file_path;
use crate::fs::{FileSystem, write_all};
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

pub use commit::LARGEST_BATCH;
pub(crate) use commit::WriteRequest;
pub use open::RecoveryReport;
pub(crate) use open::{salvage, settings, verify};
pub(crate) use payload::LogChange;
pub use query::CollectionStats;

/// Name of the file that probes for free space.
const PROBE: &str = "ROOM.new";

/// A collection.
pub(crate) struct CollectionEngine {
    fs: Arc<dyn FileSystem>,
    folder: PathBuf,
    /// Only the time to live ever changes.
    settings: RwLock<Arc<CollectionSettings>>,
    shape: IndexShape,
    keep: RetainedParts,
    pairs: PairRule,
    has_parts: bool,
    tuning: StoreTuning,
    hasher: IdHasher,
    view: RwLock<CollectionView>,
    writer: Mutex<WriterState>,
    /// Reason why writing stopped.
    stopped: OnceLock<String>,
    /// True once a rebuilt collection stands in the place of this one.
    replaced: AtomicBool,
    /// Documents that change while the collection is rebuilt.
    journal: Mutex<Option<ChangeJournal>>,
    /// The latest time reported by a caller, in milliseconds.
    time: AtomicU64,
    /// True while the record of a clean shutdown is still on disk.
    shutdown_recorded: AtomicBool,
    /// True from a write or merge that found the disk full until a probe finds room.
    disk_full: AtomicBool,
    /// True once unfinished runs are to be abandoned.
    cancelled: AtomicBool,
}

/// State that only the holder of the writer lock changes.
#[derive(Debug)]
struct WriterState {
    log: LogWriter,
    manifest: CollectionManifest,
    /// Number of tombstones on disk, by run.
    listed: HashMap<u64, usize>,
    /// True if a failed replacement left it unknown which manifest is on disk: it is written again before any change.
    manifest_uncertain: bool,
    /// The latest time recorded in the log or at a clean shutdown.
    recorded_time: UnixMillis,
}

impl fmt::Debug for CollectionEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CollectionEngine")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// Identity of a new collection, and the key of its hashes of ids.
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

    /// Settings of the collection.
    pub(crate) fn settings(&self) -> Arc<CollectionSettings> {
        Arc::clone(&read_lock(&self.settings))
    }

    /// Tells whether the scheme has parts.
    pub(crate) fn has_parts(&self) -> bool {
        self.has_parts
    }

    /// The parts of the scheme, read and checked.
    pub(crate) fn parts(&self) -> Result<Vec<SchemePart>> {
        let (parts, collection) = {
            let manifest = &self.writer().manifest;
            (manifest.parts.clone(), manifest.collection)
        };
        let read = |part: &PartEntry| part.read(&*self.fs, &self.folder, collection);
        parts.iter().map(read).collect()
    }

    /// Changes how long documents live that are inserted from now on without an end.
    pub(crate) fn set_time_to_live(&self, time_to_live: Option<Duration>) -> Result<()> {
        let mut writer = self.writer();
        self.ensure_manifest_certain(&mut writer)?;
        let mut manifest = writer.manifest.clone();
        manifest.set_time_to_live(time_to_live);
        self.replace_manifest(&mut writer, manifest)?;
        let changed = Arc::new(writer.manifest.settings());
        // Durable first: no insert takes an end from a setting that the medium refused.
        *write_lock(&self.settings) = changed;
        Ok(())
    }

    /// The server's time, which this moves forward.
    pub(crate) fn now(&self, told: UnixMillis) -> UnixMillis {
        // A caller's clock may be behind: time that goes back would bring expired documents back.
        UnixMillis(self.time.fetch_max(told.0, Ordering::Relaxed).max(told.0))
    }

    /// The reason why writing stopped, if it did.
    pub(crate) fn stopped(&self) -> Option<&str> {
        self.stopped.get().map(String::as_str)
    }

    /// Ends all writing; the caller holds the writer lock.
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

    /// Refuses if writing has stopped, and rewrites the manifest if it is unknown which one is on disk.
    fn ensure_manifest_certain(&self, writer: &mut WriterState) -> Result<()> {
        self.ensure_writing()?;
        if writer.manifest_uncertain {
            let manifest = writer.manifest.clone();
            self.replace_manifest(writer, manifest)?;
        }
        Ok(())
    }

    /// Replaces the manifest. If a failure leaves it unknown which manifest is on disk, the next change rewrites it first;
    /// if the medium itself failed, writing stops.
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
            // The rename may be durable or not, so both manifests may come back after a power cut. Both are
            // valid now. The next change would make them differ in substance, so the known one is written
            // first.
            Err(ReplaceError::Unknown(error)) if error.is_transient() => {
                writer.manifest_uncertain = true;
                Err(error)
            }
            // The old manifest stands for certain: the collection goes on.
            Err(ReplaceError::Before(error)) => Err(error),
            Err(ReplaceError::Unknown(error)) => Err(self.stop(&error)),
        }
    }

    /// Abandons unfinished runs: nothing is flushed or merged any more.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }

    /// True from a write or merge that found the disk full until a probe finds room.
    pub(crate) fn is_disk_full(&self) -> bool {
        self.disk_full.load(Ordering::Relaxed)
    }

    /// Remembers a full disk, if that is the error.
    fn remember_disk_full<T>(&self, result: Result<T>) -> Result<T> {
        if result.as_ref().is_err_and(StoreError::is_disk_full) {
            self.disk_full.store(true, Ordering::Relaxed);
        }
        result
    }

    /// Probes whether a full disk has room again.
    pub(crate) fn probe_room(&self) {
        let path = self.folder.join(PROBE);
        let written = self.fs.create(&path).and_then(|file| {
            let zeros = vec![0; self.tuning.log_step as usize];
            write_all(&*file, &zeros, 0)?;
            // A file system that allocates late reports a full disk only here.
            file.sync()
        });
        // What cannot be removed now is removed at the next start.
        let _ = self.fs.remove(&path);
        if written.is_ok() {
            self.disk_full.store(false, Ordering::Relaxed);
        }
    }
}
