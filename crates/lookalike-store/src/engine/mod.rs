//! A collection without threads: everything happens when it is called for, so that tests decide when that is.
//!
//! Locks, in the order in which they are taken: the writer (log, manifest), then the view. Readers take the view only,
//! for the time of a search in memory; documents of runs are read after it is given back, since runs never change.

mod commit;
mod install;
mod open;
mod payload;
mod query;
mod snapshot;
mod stage;
mod view;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
use std::time::Duration;

use crate::error::{Result, StoreError};
use crate::fs::{Fs, write_all};
use crate::id_hash::IdHasher;
use crate::log::LogWriter;
use crate::manifest::{Manifest, ReplaceError};
use crate::run::RunOptions;
use crate::settings::{CollectionSettings, Keep};
use crate::time::Time;

pub(crate) use commit::Request;
pub use open::Recovery;
pub(crate) use open::{salvage, settings, verify};
pub(crate) use payload::Change;
pub use query::Stats;
pub(crate) use view::Found;
use view::View;

/// How much is kept in memory and how runs are made.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Documents in memory, in bytes, before they go to a run.
    pub memory_bytes: usize,
    /// The same in documents.
    pub memory_documents: usize,
    /// Bytes by which the log grows; a quarter of it is kept for deletes when the disk is full.
    pub log_step: u64,
    /// Runs of like size that are merged into one.
    pub fan_out: usize,
    /// Runs of no more fingerprints than this make their tables when they are opened.
    pub small_run: usize,
    /// Memory for sorting when a run is made, in bytes.
    pub scratch_bytes: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            memory_bytes: 64 << 20,
            memory_documents: 1 << 18,
            log_step: 1 << 20,
            fan_out: 4,
            small_run: 1 << 16,
            scratch_bytes: 256 << 20,
        }
    }
}

/// A file that is written to see whether there is room.
const PROBE: &str = "ROOM.new";

/// A collection.
pub(crate) struct Engine {
    fs: Arc<dyn Fs>,
    folder: PathBuf,
    /// Only the time to live ever changes.
    settings: RwLock<Arc<CollectionSettings>>,
    radius: u32,
    keep: Keep,
    tuning: Tuning,
    hasher: IdHasher,
    view: RwLock<View>,
    writer: Mutex<Writer>,
    /// Why writing stopped.
    stopped: OnceLock<String>,
    /// The server's time in milliseconds: never goes backwards.
    time: AtomicU64,
    /// Whether the mark of an orderly end is still there.
    marked: AtomicBool,
    /// Whether a write or merge found no room, and none was seen since.
    disk_full: AtomicBool,
    /// Whether runs that are being made are given up.
    cancelled: AtomicBool,
}

/// What only one may change at a time.
#[derive(Debug)]
struct Writer {
    log: LogWriter,
    manifest: Manifest,
    /// Of each run the number of dead documents that a file lists.
    listed: HashMap<u64, usize>,
    /// Whether the manifest on the medium may be another one: it is written again before anything is changed.
    unsettled: bool,
    /// The latest time that the log or the mark of an orderly end says.
    noted: Time,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// The path of a numbered file.
pub(crate) fn file_path(folder: &Path, number: u64, kind: &str) -> PathBuf {
    folder.join(format!("{number:08}.{kind}"))
}

impl Engine {
    fn view(&self) -> RwLockReadGuard<'_, View> {
        self.view.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn view_mut(&self) -> RwLockWriteGuard<'_, View> {
        self.view.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Settings of the collection.
    pub(crate) fn settings(&self) -> Arc<CollectionSettings> {
        let settings = self.settings.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&settings)
    }

    /// Changes how long documents live that are inserted from now on without an end.
    pub(crate) fn set_time_to_live(&self, time_to_live: Option<Duration>) -> Result<()> {
        let mut writer = self.writer();
        self.ensure_settled(&mut writer)?;
        let mut manifest = writer.manifest.clone();
        manifest.set_time_to_live(time_to_live);
        self.replace_manifest(&mut writer, manifest)?;
        let changed = Arc::new(writer.manifest.settings());
        *self
            .settings
            .write()
            .unwrap_or_else(PoisonError::into_inner) = changed;
        Ok(())
    }

    /// The server's time, which this moves forward.
    pub(crate) fn now(&self, told: Time) -> Time {
        Time(self.time.fetch_max(told.0, Ordering::Relaxed).max(told.0))
    }

    /// Why writing stopped, if it did.
    pub(crate) fn stopped(&self) -> Option<&str> {
        self.stopped.get().map(String::as_str)
    }

    fn stop(&self, error: &StoreError) -> StoreError {
        let reason = self.stopped.get_or_init(|| error.to_string());
        StoreError::Stopped(reason.clone())
    }

    fn ensure_writing(&self) -> Result<()> {
        match self.stopped.get() {
            Some(reason) => Err(StoreError::Stopped(reason.clone())),
            None => Ok(()),
        }
    }

    fn path(&self, number: u64, kind: &str) -> PathBuf {
        file_path(&self.folder, number, kind)
    }

    fn run_options(&self, writer: &Writer, number: u64) -> RunOptions {
        RunOptions {
            collection: writer.manifest.collection,
            number,
            radius: self.radius,
            small: self.tuning.small_run,
            scratch: self.tuning.scratch_bytes,
        }
    }

    /// Refuses when writing has stopped, and makes sure that the manifest on the medium is the one that is believed in.
    fn ensure_settled(&self, writer: &mut Writer) -> Result<()> {
        self.ensure_writing()?;
        if writer.unsettled {
            let manifest = writer.manifest.clone();
            self.replace_manifest(writer, manifest)?;
        }
        Ok(())
    }

    /// Puts a manifest in the place of the one that stands. When nobody knows which one stands, writing waits until it could
    /// be written again, or stops if the medium failed.
    fn replace_manifest(&self, writer: &mut Writer, manifest: Manifest) -> Result<()> {
        match manifest.write(&*self.fs, &self.folder) {
            Ok(()) => {
                writer.manifest = manifest;
                writer.unsettled = false;
                Ok(())
            }
            Err(ReplaceError::Unknown(error)) if error.passes() => {
                writer.unsettled = true;
                Err(error)
            }
            Err(ReplaceError::Before(error)) => Err(error),
            Err(ReplaceError::Unknown(error)) => Err(self.stop(&error)),
        }
    }

    /// Gives up runs that are being made: nothing is flushed or merged any more.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }

    /// Whether a write or merge found no room, and none was seen since.
    pub(crate) fn is_disk_full(&self) -> bool {
        self.disk_full.load(Ordering::Relaxed)
    }

    /// Remembers that there was no room, if that is what failed.
    fn note_full<T>(&self, result: Result<T>) -> Result<T> {
        if result.as_ref().is_err_and(StoreError::is_disk_full) {
            self.disk_full.store(true, Ordering::Relaxed);
        }
        result
    }

    /// Looks whether a disk that was full has room again.
    pub(crate) fn probe_room(&self) {
        let path = self.folder.join(PROBE);
        let written = self.fs.create(&path).and_then(|file| {
            let zeros = vec![0; self.tuning.log_step as usize];
            write_all(&*file, &zeros, 0)?;
            file.sync()
        });
        // What cannot be removed now is removed at the next start.
        let _ = self.fs.remove(&path);
        if written.is_ok() {
            self.disk_full.store(false, Ordering::Relaxed);
        }
    }
}
