//! Opening a collection: manifest, runs, logs, mark of an orderly end, each by strict rules. Nothing is written, so that
//! a full disk keeps nobody from reading.

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
use crate::log::{LogContents, LogHeader, LogWriter, read_log, salvage_log};
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
        let opened = Opened::read(&*fs, folder)?;
        check_identity(folder, &opened.manifest, identity)?;
        let Opened {
            manifest,
            settings,
            hasher,
            view,
            last,
            mut recovery,
            listed,
            time,
            ..
        } = opened;
        // A killed process may have left names that are not durable yet: none of what they replaced may go before.
        fs.sync_dir(folder)
            .map_err(StoreError::io(folder, "syncing the folder"))?;
        recovery.removed = remove_orphans(&*fs, folder, &manifest);
        let path = file_path(folder, last.header.file, "log");
        let log = LogWriter::resume(&*fs, &path, &last, tuning.log_step)?;
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
            }),
            stopped: OnceLock::new(),
            time: AtomicU64::new(time.0),
            marked: AtomicBool::new(recovery.clean),
        };
        Ok((engine, recovery))
    }
}

/// A collection as it was read.
struct Opened {
    manifest: Manifest,
    settings: CollectionSettings,
    hasher: IdHasher,
    view: View,
    last: LogContents,
    listed: HashMap<u64, usize>,
    recovery: Recovery,
    time: Time,
}

impl Opened {
    fn read(fs: &dyn Fs, folder: &Path) -> Result<Self> {
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
            listed,
            recovery,
            time,
        })
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
    /// All logs; what the newest holds.
    fn logs(&mut self, fs: &dyn Fs, folder: &Path, manifest: &Manifest) -> Result<LogContents> {
        let (mut before, mut next): (Option<LogContents>, u64) = (None, manifest.frame);
        for &number in &manifest.logs {
            let path = file_path(folder, number, "log");
            if let Some(before) = &before {
                self.freeze(before, number);
            }
            let identity = (manifest.collection, number);
            let contents = read_log(fs, &path, identity, &mut |offset, payload| {
                self.payload(&path, offset, payload)
            });
            let contents = contents.map_err(missing(&path))?;
            check_chain(folder, &path, before.as_ref(), &contents, next)?;
            next = contents.next;
            before = Some(contents);
        }
        before.ok_or_else(|| StoreError::damaged(&folder.join(MANIFEST), 0, "no log is named"))
    }

    fn freeze(&mut self, before: &LogContents, number: u64) {
        let memory = std::mem::replace(&mut self.view.active, Memory::new(self.radius));
        let log = std::mem::replace(&mut self.view.log, number);
        let (next, memory) = (before.next, Arc::new(memory));
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
        self.groups += 1;
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

/// Each log begins where the one before ended, and only the newest may end with a group that was torn.
fn check_chain(
    folder: &Path,
    path: &Path,
    before: Option<&LogContents>,
    contents: &LogContents,
    next: u64,
) -> Result<()> {
    let header = contents.header;
    if let Some(before) = before {
        let (number, end) = header.before;
        let path = file_path(folder, before.header.file, "log");
        if (number, end) != (before.header.file, before.end) || before.dirty != before.end {
            let what =
                format!("the log ends here, but the next one says that it ended at byte {end}");
            return Err(StoreError::damaged(&path, before.end, what));
        }
    }
    if header.first != next {
        let what = format!("the log begins with frame {}, not {next}", header.first);
        return Err(StoreError::damaged(path, 0, what));
    }
    Ok(())
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
    let opened = Opened::read(fs, folder)?;
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
    for &number in &manifest.logs {
        let path = file_path(folder, number, "log");
        let mut payloads = Vec::new();
        let read = salvage_log(fs, &path, (manifest.collection, number), &mut |payload| {
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
