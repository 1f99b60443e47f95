//! Opening a collection: manifest, runs, logs, mark of an orderly end, each by strict rules. After an orderly end nothing is
//! written; after a crash a new log is begun, unless the disk is full: that keeps nobody from reading.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use super::payload::{self, Change};
use super::view::{Frozen, View, find_in_runs};
use super::{Engine, Tuning, Writer, file_path};
use crate::dead;
use crate::document::Document;
use crate::error::{Result, StoreError};
use crate::fs::Fs;
use crate::id_hash::IdHasher;
use crate::log::{LogContents, LogHeader, LogWriter, read_log, read_log_header, salvage_log};
use crate::manifest::{MANIFEST, Manifest, ReplaceError, RunEntry};
use crate::marker::{MARKER, Marker};
use crate::memory::Memory;
use crate::run::Run;
use crate::settings::CollectionSettings;
use crate::time::Time;

/// What was found when a collection was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Whether it was closed in order.
    pub clean: bool,
    /// Groups of writes that were read from logs.
    pub groups: u64,
    /// Bytes at the end of the newest log of a group that was never acknowledged.
    pub torn_bytes: u64,
    /// Files that an interrupted write had left, which were removed.
    pub removed: Vec<String>,
}

impl Engine {
    /// Makes the files of an empty collection in a folder that exists.
    pub(crate) fn create(
        fs: &dyn Fs,
        folder: &Path,
        settings: &CollectionSettings,
        (identity, key): (u64, u128),
        tuning: &Tuning,
    ) -> Result<()> {
        settings.check()?;
        let manifest = Manifest::new(settings, identity, key);
        let header = LogHeader {
            collection: identity,
            file: 1,
            first: 1,
            before: (0, 0),
            recovered: 0,
        };
        LogWriter::create(fs, &file_path(folder, 1, "log"), header, tuning.log_step)?;
        manifest.write(fs, folder).map_err(|error| match error {
            ReplaceError::Before(error) | ReplaceError::Unknown(error) => error,
        })
    }

    /// Opens the collection in a folder.
    pub(crate) fn open(
        fs: Arc<dyn Fs>,
        folder: &Path,
        identity: u64,
        tuning: Tuning,
    ) -> Result<(Self, Recovery)> {
        let opened = Opened::read(&*fs, folder, AfterCrash::BeginLog)?;
        check_identity(folder, &opened.manifest, identity)?;
        // A killed process may have left names that are not durable yet: none of what they replaced may go before.
        let synced = fs
            .sync_dir(folder)
            .map_err(StoreError::io(folder, "syncing the folder"));
        let full = match synced {
            // Then the manifest is written again before anything is changed.
            Err(error) if error.is_disk_full() => true,
            synced => synced.map(|()| false)?,
        };
        let removed = if full {
            Vec::new()
        } else {
            remove_orphans(&*fs, folder, &opened.manifest)
        };
        let (mut opened, log, unrecovered) = opened.into_writing(&*fs, folder, &tuning)?;
        opened.recovery.removed = removed;
        let Opened {
            manifest,
            settings,
            hasher,
            view,
            recovery,
            listed,
            time,
            ..
        } = opened;
        let engine = Self {
            fs,
            folder: folder.to_owned(),
            radius: settings.radius,
            keep: settings.keep,
            settings: RwLock::new(Arc::new(settings)),
            tuning,
            hasher,
            view: RwLock::new(view),
            writer: Mutex::new(Writer {
                log,
                manifest,
                listed,
                unsettled: full || unrecovered,
                noted: time,
            }),
            stopped: OnceLock::new(),
            time: AtomicU64::new(time.0),
            marked: AtomicBool::new(recovery.clean),
            disk_full: AtomicBool::new(full || unrecovered),
            cancelled: AtomicBool::new(false),
        };
        Ok((engine, recovery))
    }
}

/// Where writing goes on after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterCrash {
    /// In a new log.
    BeginLog,
    /// In the log that is there: the disk is full, or nothing is to be written.
    KeepLog,
}

/// A collection as it was read.
struct Opened {
    manifest: Manifest,
    settings: CollectionSettings,
    hasher: IdHasher,
    view: View,
    last: LogContents,
    /// The log before ends ahead of its last frame, and a new log has to begin with a copy of that.
    begins_log: bool,
    listed: HashMap<u64, usize>,
    recovery: Recovery,
    time: Time,
}

impl Opened {
    fn read(fs: &dyn Fs, folder: &Path, after_crash: AfterCrash) -> Result<Self> {
        let manifest = Manifest::read(fs, folder)?;
        let settings = manifest.settings();
        let marker = Marker::read(fs, folder)?;
        let hasher = IdHasher::new(manifest.key());
        let (mut runs, mut listed) = (Vec::new(), HashMap::new());
        for entry in &manifest.runs {
            let run = open_run(fs, folder, &manifest, entry)?;
            listed.insert(entry.file, run.dead().count());
            runs.push(Arc::new(run));
        }
        let view = View {
            runs,
            frozen: Vec::new(),
            active: Memory::new(settings.radius),
            log: manifest.logs[0],
            changes: 0,
        };
        let mut replay = Replay {
            view,
            hasher: &hasher,
            time: Time(manifest.time),
            groups: 0,
            radius: settings.radius,
        };
        let last = replay.logs(fs, folder, &manifest)?;
        let begins_log =
            marker.is_none() && after_crash == AfterCrash::BeginLog && last.needs_recovery();
        if begins_log {
            replay.freeze(&last, manifest.next_file);
        }
        replay.last_frame(folder, &last)?;
        let Replay {
            view,
            mut time,
            groups,
            ..
        } = replay;
        if let Some(marker) = marker {
            check_marker(folder, &marker, &manifest, &last)?;
            time = time.max(Time(marker.time));
        }
        let recovery = Recovery {
            clean: marker.is_some(),
            groups,
            torn_bytes: last.dirty - last.end,
            removed: Vec::new(),
        };
        Ok(Self {
            manifest,
            settings,
            hasher,
            view,
            last,
            begins_log,
            listed,
            recovery,
            time,
        })
    }

    /// Opens the log for writing, or begins a new one, durably; whether the disk was too full for that.
    fn into_writing(
        mut self,
        fs: &dyn Fs,
        folder: &Path,
        tuning: &Tuning,
    ) -> Result<(Self, LogWriter, bool)> {
        let mut full = false;
        if self.begins_log {
            match self.begin_log(fs, folder, tuning) {
                Ok(log) => return Ok((self, log, false)),
                Err(StoreError::DiskFull { .. }) => {
                    self = Self::read(fs, folder, AfterCrash::KeepLog)?;
                    full = true;
                }
                Err(error) => return Err(error),
            }
        }
        let path = file_path(folder, self.last.header.file, "log");
        let log = LogWriter::resume(fs, &path, &self.last, tuning.log_step)?;
        Ok((self, log, full))
    }

    /// What a killed process had written is read, but may not be durable yet, and after a sync that failed the system may
    /// believe that it is. That can be true of the last frame only, so a new log begins with a copy of it.
    fn begin_log(&mut self, fs: &dyn Fs, folder: &Path, tuning: &Tuning) -> Result<LogWriter> {
        let mut manifest = self.manifest.clone();
        let number = manifest.next_file;
        let LogContents { header, last, .. } = &self.last;
        let header = LogHeader {
            collection: manifest.collection,
            file: number,
            first: self.last.next - u64::from(last.is_some()),
            before: (header.file, self.last.end_before_last()),
            recovered: 0,
        };
        let path = file_path(folder, number, "log");
        let log = LogWriter::recover(fs, &path, header, last.as_ref(), tuning.log_step)?;
        manifest.next_file += 1;
        manifest.logs.push(number);
        manifest.write(fs, folder).map_err(|error| match error {
            ReplaceError::Before(error) | ReplaceError::Unknown(error) => error,
        })?;
        self.manifest = manifest;
        Ok(log)
    }
}

fn missing(path: &Path) -> impl FnOnce(StoreError) -> StoreError {
    move |error| match &error {
        StoreError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            StoreError::Missing {
                path: path.to_owned(),
                named_by: MANIFEST,
            }
        }
        _ => error,
    }
}

fn open_run(fs: &dyn Fs, folder: &Path, manifest: &Manifest, entry: &RunEntry) -> Result<Run> {
    let path = file_path(folder, entry.file, "run");
    let identity = (manifest.collection, entry.file);
    let run = Run::open(fs, &path, identity, manifest.radius).map_err(missing(&path))?;
    if run.len() as u64 != entry.documents {
        return Err(StoreError::damaged(
            &path,
            0,
            "the run has another number of documents than the manifest says",
        ));
    }
    if let Some(number) = entry.dead {
        let path = file_path(folder, number, "dead");
        let identity = (manifest.collection, number);
        dead::read(fs, &path, identity, entry.file, run.dead()).map_err(missing(&path))?;
    }
    Ok(run)
}

/// Reading logs into memory.
struct Replay<'a> {
    view: View,
    hasher: &'a IdHasher,
    time: Time,
    groups: u64,
    radius: u32,
}

impl Replay<'_> {
    /// All logs but for the last frame of the newest; what that log holds.
    fn logs(&mut self, fs: &dyn Fs, folder: &Path, manifest: &Manifest) -> Result<LogContents> {
        let (mut before, mut next): (Option<LogContents>, u64) = (None, manifest.frame);
        for (at, &number) in manifest.logs.iter().enumerate() {
            let path = file_path(folder, number, "log");
            if let Some(before) = &before {
                self.freeze(before, number);
            }
            let after = manifest.logs.get(at + 1);
            let after = after.map(|&after| next_header(fs, folder, manifest, (number, after)));
            let after = after.transpose()?;
            let identity = (manifest.collection, number);
            let contents = read_log(fs, &path, identity, after.as_ref(), &mut |at, payload| {
                self.payload(&path, at, payload)
            });
            let contents = contents.map_err(missing(&path))?;
            if contents.header.first != next {
                let first = contents.header.first;
                let what = format!("the log begins with frame {first}, not {next}");
                return Err(StoreError::damaged(&path, 0, what));
            }
            next = contents.next;
            before = Some(contents);
        }
        before.ok_or_else(|| StoreError::damaged(&folder.join(MANIFEST), 0, "no log is named"))
    }

    /// The last frame of the newest log.
    fn last_frame(&mut self, folder: &Path, log: &LogContents) -> Result<()> {
        let path = file_path(folder, log.header.file, "log");
        log.last.as_ref().map_or(Ok(()), |last| {
            self.payload(&path, last.offset, &last.payload)
        })
    }

    fn freeze(&mut self, before: &LogContents, number: u64) {
        let memory = std::mem::replace(&mut self.view.active, Memory::new(self.radius));
        let log = std::mem::replace(&mut self.view.log, number);
        // A last frame that was not read yet is the first of the next log.
        let next = before.next - u64::from(before.last.is_some());
        let memory = Arc::new(memory);
        self.view.frozen.push(Frozen { log, next, memory });
    }

    fn payload(&mut self, path: &Path, offset: u64, payload: &[u8]) -> Result<()> {
        let read = payload::read(payload);
        let (time, changes) = read.ok_or_else(|| {
            StoreError::damaged(
                path,
                offset,
                "a group of an unknown form: was it written by a newer program?",
            )
        })?;
        self.time = self.time.max(time);
        self.groups += u64::from(!changes.is_empty());
        for change in changes {
            let id = match &change {
                Change::Insert(document) => &document.id,
                Change::Delete(id) => id,
            };
            let hash = self.hasher.hash(id);
            let held = self
                .view
                .find_in_memory(id, hash)
                .map(|(location, _)| location);
            let old = match held {
                Some(location) => Some(location),
                None => find_in_runs(&self.view.runs, id, hash)?.map(|(location, _)| location),
            };
            if let Some(location) = old {
                self.view.kill(location);
            }
            if let Change::Insert(document) = change {
                self.view.active.push(Arc::new(document), self.hasher);
            }
        }
        Ok(())
    }
}

/// The header of the log that follows another one, which says where that one ends.
fn next_header(
    fs: &dyn Fs,
    folder: &Path,
    manifest: &Manifest,
    (number, after): (u64, u64),
) -> Result<LogHeader> {
    let path = file_path(folder, after, "log");
    let header =
        read_log_header(fs, &path, (manifest.collection, after)).map_err(missing(&path))?;
    if header.before.0 == number {
        return Ok(header);
    }
    let what = format!(
        "the log follows log {}, but the manifest says that it follows log {number}",
        header.before.0
    );
    Err(StoreError::damaged(&path, 0, what))
}

fn check_marker(
    folder: &Path,
    marker: &Marker,
    manifest: &Manifest,
    last: &LogContents,
) -> Result<()> {
    if marker.collection != manifest.collection {
        let (path, what) = (
            folder.join(MARKER),
            "the mark of an orderly end of another collection",
        );
        return Err(StoreError::Foreign { path, what });
    }
    let found = (last.header.file, last.end, last.next);
    if found != (marker.log, marker.end, marker.next) || last.dirty != last.end {
        let path = file_path(folder, last.header.file, "log");
        let what = format!(
            "the collection was closed in order after frame {} at byte {} of log {}, but the log ends here: \
             acknowledged writes are missing or damaged",
            marker.next.saturating_sub(1),
            marker.end,
            marker.log
        );
        return Err(StoreError::damaged(&path, last.end, what));
    }
    Ok(())
}

/// Removes numbered files that the manifest does not name: an interrupted write left them.
fn remove_orphans(fs: &dyn Fs, folder: &Path, manifest: &Manifest) -> Vec<String> {
    let mut named: BTreeSet<PathBuf> = manifest
        .logs
        .iter()
        .map(|&log| file_path(folder, log, "log"))
        .collect();
    for run in &manifest.runs {
        named.insert(file_path(folder, run.file, "run"));
        named.extend(run.dead.map(|dead| file_path(folder, dead, "dead")));
    }
    let ours = |name: &String| {
        let (number, kind) = name.split_once('.').unwrap_or((name, ""));
        let numbered = number.len() >= 8 && number.bytes().all(|byte| byte.is_ascii_digit());
        (numbered && ["log", "run", "dead"].contains(&kind)) || kind == "new"
    };
    let names = fs.list(folder).unwrap_or_default().into_iter();
    let orphans = names.filter(|name| ours(name) && !named.contains(&folder.join(name)));
    orphans
        .filter(|name| fs.remove(&folder.join(name)).is_ok())
        .collect()
}

/// Refuses a folder of another collection than the catalog names.
fn check_identity(folder: &Path, manifest: &Manifest, identity: u64) -> Result<()> {
    if manifest.collection == identity {
        return Ok(());
    }
    let what = "the manifest of another collection than the catalog names";
    Err(StoreError::Foreign {
        path: folder.join(MANIFEST),
        what,
    })
}

/// Reads every byte of a collection and checks that its parts fit.
pub(crate) fn verify(fs: &dyn Fs, folder: &Path, identity: u64) -> Result<Recovery> {
    let opened = Opened::read(fs, folder, AfterCrash::KeepLog)?;
    check_identity(folder, &opened.manifest, identity)?;
    for run in &opened.view.runs {
        run.verify(&|id| opened.hasher.hash(id))?;
    }
    check_ids(&opened)?;
    Ok(opened.recovery)
}

/// No id may live twice.
fn check_ids(opened: &Opened) -> Result<()> {
    let runs = &opened.view.runs;
    for (at, run) in runs.iter().enumerate() {
        run.for_each(&mut |place, bytes| {
            let outline = crate::document::Outline::read(crate::codec::Decoder::new(bytes));
            let Some(outline) = outline.filter(|_| !run.dead().get(place as usize)) else {
                return Ok(());
            };
            let hash = opened.hasher.hash(outline.id);
            let twice = opened.view.find_in_memory(outline.id, hash).is_some()
                || find_in_runs(&runs[at + 1..], outline.id, hash)?.is_some();
            if twice {
                let what = format!(
                    "the document in place {place} is there a second time, in a newer part"
                );
                return Err(StoreError::damaged(run.path(), 0, what));
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// The settings of a collection that may be damaged otherwise.
pub(crate) fn settings(fs: &dyn Fs, folder: &Path) -> Result<CollectionSettings> {
    Manifest::read(fs, folder).map(|manifest| manifest.settings())
}

/// Hands on everything that can be read, as changes in order and the time of them: first the documents of runs,
/// then what logs say. What cannot be read is returned.
pub(crate) fn salvage(
    fs: &dyn Fs,
    folder: &Path,
    each: &mut dyn FnMut(Time, Vec<Change<Document>>) -> Result<()>,
) -> Result<Vec<StoreError>> {
    let manifest = Manifest::read(fs, folder)?;
    let mut lost = Vec::new();
    for entry in &manifest.runs {
        let path = file_path(folder, entry.file, "run");
        let run = match Run::open(
            fs,
            &path,
            (manifest.collection, entry.file),
            manifest.radius,
        ) {
            Ok(run) => run,
            Err(error) => {
                lost.push(missing(&path)(error));
                continue;
            }
        };
        if let Some(number) = entry.dead {
            let path = file_path(folder, number, "dead");
            let identity = (manifest.collection, number);
            // Without the list some deleted documents come back: that is told, too.
            lost.extend(dead::read(fs, &path, identity, entry.file, run.dead()).err());
        }
        let mut failed = None;
        let damaged = run.salvage(&mut |place, document| {
            if failed.is_none() && !run.dead().get(place as usize) {
                failed = each(Time(manifest.time), vec![Change::Insert(document)]).err();
            }
        });
        lost.extend(damaged);
        failed.map_or(Ok(()), Err)?;
    }
    for (at, &number) in manifest.logs.iter().enumerate() {
        let path = file_path(folder, number, "log");
        let mut payloads = Vec::new();
        let after = manifest.logs.get(at + 1);
        let after =
            after.and_then(|&after| next_header(fs, folder, &manifest, (number, after)).ok());
        let identity = (manifest.collection, number);
        let read = salvage_log(fs, &path, identity, after.as_ref(), &mut |payload| {
            payloads.push(payload::read(payload));
        });
        match read {
            Ok(gaps) => lost.extend(gaps.into_iter().map(|(from, to)| {
                StoreError::damaged(&path, from, format!("the {} bytes from here on", to - from))
            })),
            Err(error) => lost.push(missing(&path)(error)),
        }
        for (time, changes) in payloads.into_iter().flatten() {
            each(time, changes)?;
        }
    }
    Ok(lost)
}
