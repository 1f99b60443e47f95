//! Opening a collection: manifest, runs, logs and the mark of a clean shutdown are read and strictly checked. After a clean shutdown
//! nothing is written. After a crash a new log is started, unless the disk is full; reads work without it.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use super::payload::{self, LogChange};
use super::{CollectionEngine, CollectionSecrets, PROBE, WriterState};
use crate::clean_shutdown::{CLEAN_SHUTDOWN, CleanShutdown, NEW_CLEAN_SHUTDOWN};
use crate::document::StoredDocument;
use crate::error::{Result, StoreError};
use crate::file_names::{MANIFEST, file_path, is_numbered};
use crate::fs::FileSystem;
use crate::id_hash::IdHasher;
use crate::log::{
    LogContents, LogEnd, LogHeader, LogWriter, read_log, read_log_header, salvage_log,
};
use crate::manifest::{CollectionManifest, NEW_MANIFEST, ReplaceError, RunEntry};
use crate::memtable::MemTable;
use crate::run::{IndexEntry, StoredRun};
use crate::scheme_part::{SchemePart, check_parts};
use crate::settings::{CollectionSettings, StoreTuning};
use crate::time::UnixMillis;
use crate::tombstones;
use crate::view::{CollectionView, find_in_runs};

/// The report on the recovery of a collection when it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// True if the collection had been shut down cleanly.
    pub clean: bool,
    /// Number of groups of writes that were replayed from logs.
    pub groups: u64,
    /// Size in bytes of an interrupted group at the end of the newest log, which was never acknowledged.
    pub torn_bytes: u64,
    /// Leftover files of interrupted writes, which were removed.
    pub removed: Vec<String>,
}

impl CollectionEngine {
    /// Creates the files of an empty collection in an existing folder.
    pub(crate) fn create(
        fs: &dyn FileSystem,
        folder: &Path,
        settings: &CollectionSettings,
        parts: &[SchemePart],
        secrets: CollectionSecrets,
        tuning: &StoreTuning,
    ) -> Result<()> {
        settings.check()?;
        check_parts(parts)?;
        let CollectionSecrets { identity, key } = secrets;
        let manifest = CollectionManifest::new(settings, parts, identity, key);
        for (entry, part) in manifest.parts.iter().zip(parts) {
            entry.write(fs, folder, part)?;
        }
        let header = LogHeader {
            collection: identity,
            file: 1,
            first: 1,
            before: LogEnd::default(),
            recovered: 0,
        };
        LogWriter::create(fs, &file_path(folder, 1, "log"), header, tuning.log_step)?;
        // The manifest comes last: a folder without one is not a collection, whatever else is in it.
        manifest.write(fs, folder).map_err(StoreError::from)
    }

    /// Opens the collection in a folder.
    pub(crate) fn open(
        fs: Arc<dyn FileSystem>,
        folder: &Path,
        identity: u64,
        tuning: StoreTuning,
    ) -> Result<(Self, RecoveryReport)> {
        // Read and check everything first, then sync the folder, remove orphans, and only then start a new log. A failure before the last
        // step leaves the files of the collection unchanged.
        let opened = OpenedFiles::read(&*fs, folder, RecoveryLog::NewLog)?;
        check_identity(folder, &opened.manifest, identity)?;
        // A killed process may have left directory entries that are not durable yet. Until they are, the files that they replaced must not
        // be removed.
        let synced = fs
            .sync_dir(folder)
            .map_err(StoreError::io(folder, "syncing the folder"));
        let full = match synced {
            // In this case the manifest is written again before anything is changed.
            Err(error) if error.is_disk_full() => true,
            synced => synced.map(|()| false)?,
        };
        let removed = if full {
            Vec::new()
        } else {
            remove_orphans(&*fs, folder, &opened.manifest)
        };
        let (mut opened, log, no_room) = opened.into_writing(&*fs, folder, &tuning)?;
        opened.recovery.removed = removed;
        let OpenedFiles {
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
            shape: settings.index_shape(),
            keep: settings.keep,
            pairs: settings.pairs.clone(),
            has_parts: !manifest.parts.is_empty(),
            settings: RwLock::new(Arc::new(settings)),
            tuning,
            hasher,
            view: RwLock::new(view),
            writer: Mutex::new(WriterState {
                log,
                manifest,
                listed,
                manifest_uncertain: full || no_room == Some(NewLogFailure::ManifestUncertain),
                recorded_time: time,
            }),
            stopped: OnceLock::new(),
            replaced: AtomicBool::new(false),
            journal: Mutex::default(),
            time: AtomicU64::new(time.0),
            shutdown_recorded: AtomicBool::new(recovery.clean),
            disk_full: AtomicBool::new(full || no_room.is_some()),
            cancelled: AtomicBool::new(false),
        };
        Ok((engine, recovery))
    }
}

/// The log in which writes continue after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecoveryLog {
    /// Continue in a new log.
    NewLog,
    /// Continue in the existing log, because the disk is full or nothing will be written.
    ExistingLog,
}

/// State of the manifest if the disk was too full to start a new log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NewLogFailure {
    /// It is the one that was read.
    ManifestUnchanged,
    /// It is either the one that was read or the one that names the new log.
    ManifestUncertain,
}

/// The contents of a collection's files.
struct OpenedFiles {
    manifest: CollectionManifest,
    settings: CollectionSettings,
    hasher: IdHasher,
    view: CollectionView,
    last: LogContents,
    /// True if the previous log ends before its last frame, so that a new log has to start with a copy of that frame.
    begins_log: bool,
    listed: HashMap<u64, usize>,
    recovery: RecoveryReport,
    time: UnixMillis,
}

impl OpenedFiles {
    fn read(fs: &dyn FileSystem, folder: &Path, after_crash: RecoveryLog) -> Result<Self> {
        let manifest = CollectionManifest::read(fs, folder)?;
        let settings = manifest.settings();
        // Verify every byte of the parts without keeping them in memory.
        let mut parts = manifest.parts.iter();
        parts.try_for_each(|part| part.read(fs, folder, manifest.collection).map(drop))?;
        let clean_shutdown = CleanShutdown::read(fs, folder)?;
        let hasher = IdHasher::new(manifest.key);
        let (mut runs, mut listed) = (Vec::new(), HashMap::new());
        // Load runs before logs, because replay marks documents in them that later writes replaced. Keep them in the order of the manifest,
        // by age, because searches show the oldest document first.
        for entry in &manifest.runs {
            let run = open_run(fs, folder, &manifest, entry)?;
            listed.insert(entry.file, run.tombstones.count());
            runs.push(Arc::new(run));
        }
        let view = CollectionView {
            runs,
            frozen: Vec::new(),
            active: MemTable::new(settings.index_shape()),
            // A manifest always names a log, or it is refused as inconsistent.
            log: manifest.logs[0],
            changes: 0,
        };
        let mut replay = LogReplay {
            view,
            hasher: &hasher,
            time: UnixMillis(manifest.time),
            groups: 0,
        };
        let last = replay.logs(fs, folder, &manifest)?;
        let begins_log =
            clean_shutdown.is_none() && after_crash == RecoveryLog::NewLog && last.needs_recovery();
        if begins_log {
            // The last frame goes to the log that `begin_log` creates with this number.
            replay.freeze(&last, manifest.next_file);
        }
        replay.last_frame(folder, &last)?;
        let LogReplay {
            view,
            mut time,
            groups,
            ..
        } = replay;
        if let Some(clean_shutdown) = clean_shutdown {
            check_marker(folder, &clean_shutdown, &manifest, &last)?;
            time = time.max(UnixMillis(clean_shutdown.time));
        }
        let recovery = RecoveryReport {
            clean: clean_shutdown.is_some(),
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

    /// Opens the log for writing, or starts a new one durably. Returns [`NewLogFailure`] if the disk was too full for that.
    fn into_writing(
        mut self,
        fs: &dyn FileSystem,
        folder: &Path,
        tuning: &StoreTuning,
    ) -> Result<(Self, LogWriter, Option<NewLogFailure>)> {
        let mut no_room = None;
        if self.begins_log {
            match self.begin_log(fs, folder, tuning) {
                Ok(log) => return Ok((self, log, None)),
                Err(ReplaceError::Before(error)) if error.is_disk_full() => {
                    // Remove what was written of the new log: nothing names it, and deletes need its space.
                    let begun = file_path(folder, self.manifest.next_file, "log");
                    let _ = fs.remove(&begun);
                    no_room = Some(NewLogFailure::ManifestUnchanged);
                }
                Err(ReplaceError::Unknown(error)) if error.is_disk_full() => {
                    no_room = Some(NewLogFailure::ManifestUncertain);
                }
                Err(error) => return Err(error.into()),
            }
            // The documents were divided between memtables for a log that could not be created. Read everything again, leaving the last
            // frame in its own log.
            self = Self::read(fs, folder, RecoveryLog::ExistingLog)?;
        }
        let path = file_path(folder, self.last.header.file, "log");
        let log = LogWriter::resume(fs, &path, &self.last, tuning.log_step)?;
        Ok((self, log, no_room))
    }

    /// Starts a new log with a copy of the last frame. Writes of a killed process can be read but may not be durable yet, and after a
    /// failed sync the system may wrongly believe that they are. This can only concern the last frame.
    fn begin_log(
        &mut self,
        fs: &dyn FileSystem,
        folder: &Path,
        tuning: &StoreTuning,
    ) -> Result<LogWriter, ReplaceError> {
        let mut manifest = self.manifest.clone();
        let number = manifest.next_file;
        let LogContents { header, last, .. } = &self.last;
        let header = LogHeader {
            collection: manifest.collection,
            file: number,
            first: self.last.next - u64::from(last.is_some()),
            before: LogEnd {
                log: header.file,
                offset: self.last.start_of_last_frame(),
            },
            recovered: 0,
        };
        let path = file_path(folder, number, "log");
        // The copy is synced before the manifest names it. A crash in between leaves an orphan, and recovery starts over.
        let log = LogWriter::recover(fs, &path, header, last.as_ref(), tuning.log_step);
        let log = log.map_err(ReplaceError::Before)?;
        manifest.next_file += 1;
        manifest.logs.push(number);
        manifest.write(fs, folder)?;
        self.manifest = manifest;
        Ok(log)
    }
}

fn open_run(
    fs: &dyn FileSystem,
    folder: &Path,
    manifest: &CollectionManifest,
    entry: &RunEntry,
) -> Result<StoredRun> {
    let path = file_path(folder, entry.file, "run");
    let shape = manifest.settings().index_shape();
    let run = StoredRun::open(fs, &path, manifest.file(entry.file), shape)
        .map_err(|error| error.or_missing(MANIFEST))?;
    if run.len() as u64 != entry.documents {
        let what = "the number of documents differs from the manifest";
        return Err(StoreError::damaged(&path, 0, what));
    }
    if let Some(number) = entry.tombstones {
        let path = file_path(folder, number, "tombstones");
        let identity = manifest.file(number);
        tombstones::read(fs, &path, identity, entry.file, &run.tombstones)
            .map_err(|error| error.or_missing(MANIFEST))?;
    }
    Ok(run)
}

/// The replay of logs into memory.
struct LogReplay<'a> {
    view: CollectionView,
    hasher: &'a IdHasher,
    time: UnixMillis,
    groups: u64,
}

impl LogReplay<'_> {
    /// Replays all logs except the last frame of the newest. Returns the contents of that log.
    fn logs(
        &mut self,
        fs: &dyn FileSystem,
        folder: &Path,
        manifest: &CollectionManifest,
    ) -> Result<LogContents> {
        let (mut before, mut next): (Option<LogContents>, u64) = (None, manifest.frame);
        for (at, &number) in manifest.logs.iter().enumerate() {
            let path = file_path(folder, number, "log");
            if let Some(before) = &before {
                self.freeze(before, number);
            }
            let after = manifest.logs.get(at + 1);
            let after = after.map(|&after| next_header(fs, folder, manifest, after, number));
            let after = after.transpose()?;
            let contents = read_log(
                fs,
                &path,
                manifest.file(number),
                after.as_ref(),
                &mut |at, payload| self.payload(&path, at, payload),
            );
            let contents = contents.map_err(|error| error.or_missing(MANIFEST))?;
            if contents.header.first != next {
                let first = contents.header.first;
                // Frames are numbered across all logs, so a gap reveals a log that is missing or was exchanged.
                let what = format!("the log begins with frame {first}, not {next}");
                return Err(StoreError::damaged(&path, 0, what));
            }
            next = contents.next;
            before = Some(contents);
        }
        before.ok_or_else(|| StoreError::damaged(&folder.join(MANIFEST), 0, "no log is named"))
    }

    /// Replays the last frame of the newest log.
    fn last_frame(&mut self, folder: &Path, log: &LogContents) -> Result<()> {
        let path = file_path(folder, log.header.file, "log");
        log.last.as_ref().map_or(Ok(()), |last| {
            self.payload(&path, last.offset, &last.payload)
        })
    }

    fn freeze(&mut self, before: &LogContents, number: u64) {
        // If the last frame was not replayed yet, it is the first one of the next log.
        let next = before.next - u64::from(before.last.is_some());
        self.view.freeze(number, next);
    }

    fn payload(&mut self, path: &Path, offset: u64, payload: &[u8]) -> Result<()> {
        let (time, changes) = read_group(path, offset, payload)?;
        self.time = self.time.max(time);
        self.groups += u64::from(!changes.is_empty());
        for change in changes {
            let id = match &change {
                LogChange::Insert(document) => &document.id,
                LogChange::Delete(id) => id,
            };
            let hash = self.hasher.hash(id);
            // Replay does the same as `apply`: it marks the predecessor, wherever it is, and then adds the document. Predecessors whose
            // marks are already durable are not found again.
            let held = self
                .view
                .find_in_memtables(id, hash)
                .map(|(location, _)| location);
            let old = match held {
                Some(location) => Some(location),
                None => find_in_runs(&self.view.runs, id, hash)?.map(|(location, _)| location),
            };
            if let Some(location) = old {
                self.view.add_tombstone(location);
            }
            if let LogChange::Insert(document) = change {
                self.view.active.push(Arc::new(document), self.hasher);
            }
        }
        Ok(())
    }
}

/// Decodes the payload of the frame at an offset.
fn read_group(
    path: &Path,
    offset: u64,
    payload: &[u8],
) -> Result<(UnixMillis, Vec<LogChange<StoredDocument>>)> {
    let what = "a group of writes in an unknown format: a newer program may have written it";
    payload::read(payload).ok_or_else(|| StoreError::damaged(path, offset, what))
}

/// Reads the header of the log `number`, which follows the log `before` and records where that one ends.
fn next_header(
    fs: &dyn FileSystem,
    folder: &Path,
    manifest: &CollectionManifest,
    number: u64,
    before: u64,
) -> Result<LogHeader> {
    let path = file_path(folder, number, "log");
    let header = read_log_header(fs, &path, manifest.file(number))
        .map_err(|error| error.or_missing(MANIFEST))?;
    if header.before.log == before {
        return Ok(header);
    }
    let what = format!(
        "the log follows log {}, but the manifest says that it follows log {before}",
        header.before.log
    );
    Err(StoreError::damaged(&path, 0, what))
}

fn check_marker(
    folder: &Path,
    clean_shutdown: &CleanShutdown,
    manifest: &CollectionManifest,
    last: &LogContents,
) -> Result<()> {
    if clean_shutdown.collection != manifest.collection {
        let what = "this clean-shutdown record belongs to another collection";
        return Err(StoreError::foreign(folder.join(CLEAN_SHUTDOWN), what));
    }
    let found = (last.header.file, last.end, last.next);
    if found != (clean_shutdown.log, clean_shutdown.end, clean_shutdown.next)
        || last.dirty != last.end
    {
        // After a clean shutdown even the last frame must be intact: it is not excused as an interrupted write.
        let path = file_path(folder, last.header.file, "log");
        let what = format!(
            "the collection was shut down cleanly after frame {} at byte {} of log {}, but the log ends here: \
             acknowledged writes are missing or damaged",
            clean_shutdown.next.saturating_sub(1),
            clean_shutdown.end,
            clean_shutdown.log
        );
        return Err(StoreError::damaged(&path, last.end, what));
    }
    Ok(())
}

/// Removes files that interrupted writes left: numbered ones that the manifest does not name, and unfinished ones. Returns their names.
fn remove_orphans(
    fs: &dyn FileSystem,
    folder: &Path,
    manifest: &CollectionManifest,
) -> Vec<String> {
    let named = manifest.files();
    let named: BTreeSet<PathBuf> = named
        .map(|(number, kind)| file_path(folder, number, kind))
        .collect();
    // Only names that the store itself assigns match, so that other files in the folder, such as somebody's backup, survive.
    let ours = |name: &String| {
        is_numbered(name) || [NEW_MANIFEST, NEW_CLEAN_SHUTDOWN, PROBE].contains(&name.as_str())
    };
    let names = fs.list(folder).unwrap_or_default().into_iter();
    let orphans = names.filter(|name| ours(name) && !named.contains(&folder.join(name)));
    orphans
        .filter(|name| fs.remove(&folder.join(name)).is_ok())
        .collect()
}

/// Returns an error if the folder holds another collection than the catalog says.
fn check_identity(folder: &Path, manifest: &CollectionManifest, identity: u64) -> Result<()> {
    if manifest.collection == identity {
        return Ok(());
    }
    let what = "this manifest belongs to another collection than the catalog says";
    Err(StoreError::foreign(folder.join(MANIFEST), what))
}

/// Reads every byte of a collection and checks that its parts are consistent.
pub(crate) fn verify(fs: &dyn FileSystem, folder: &Path, identity: u64) -> Result<RecoveryReport> {
    let opened = OpenedFiles::read(fs, folder, RecoveryLog::ExistingLog)?;
    check_identity(folder, &opened.manifest, identity)?;
    for run in &opened.view.runs {
        run.verify(&|id| opened.hasher.hash(id))?;
    }
    check_ids(&opened)?;
    Ok(opened.recovery)
}

/// Checks that no id has two live documents, of which at least one is in a run. The replay of the logs leaves at most one in memory.
fn check_ids(opened: &OpenedFiles) -> Result<()> {
    let runs = &opened.view.runs;
    for (at, run) in runs.iter().enumerate() {
        let mut entries: Vec<IndexEntry> = Vec::new();
        run.for_each(&mut |place, bytes| {
            let outline =
                crate::document::DocumentOutline::read(crate::codec::ByteDecoder::new(bytes));
            let Some(outline) = outline.filter(|_| !run.tombstones.get(place as usize)) else {
                return Ok(());
            };
            let hash = opened.hasher.hash(outline.id);
            entries.push((hash, place));
            // Compare with newer parts only, so that each pair of parts is checked once.
            let twice = opened.view.find_in_memtables(outline.id, hash).is_some()
                || find_in_runs(&runs[at + 1..], outline.id, hash)?.is_some();
            if twice {
                let what = format!("the id of document {place} occurs again in newer files");
                return Err(StoreError::damaged(run.path(), 0, what));
            }
            Ok(())
        })?;
        entries.sort_unstable();
        check_ids_of_run(run, &entries)?;
    }
    Ok(())
}

/// Checks that no id has two live documents in a run, given their hashes of ids and numbers in ascending order.
fn check_ids_of_run(run: &StoredRun, entries: &[IndexEntry]) -> Result<()> {
    for pair in entries.windows(2) {
        let [(before, _), (hash, document)] = [pair[0], pair[1]];
        // Different ids may have the same hash. A lookup returns the first document with an id.
        if hash == before && run.find(&run.header(document)?.id, hash)? != Some(document) {
            let what = format!("the id of document {document} occurs earlier in this file");
            return Err(StoreError::damaged(run.path(), 0, what));
        }
    }
    Ok(())
}

/// Reads the settings of a collection that may otherwise be damaged, and the parts of its scheme, or the error of each that cannot be read.
pub(crate) fn settings(
    fs: &dyn FileSystem,
    folder: &Path,
) -> Result<(CollectionSettings, Vec<Result<SchemePart>>)> {
    let manifest = CollectionManifest::read(fs, folder)?;
    let parts = manifest.parts.iter();
    let parts = parts.map(|part| part.read(fs, folder, manifest.collection));
    Ok((manifest.settings(), parts.collect()))
}

/// Passes everything that can be read to `each`, as changes in order, with their time: first the documents of runs, then the changes in
/// logs. Returns the errors of what cannot be read.
pub(crate) fn salvage(
    fs: &dyn FileSystem,
    folder: &Path,
    each: &mut dyn FnMut(UnixMillis, Vec<LogChange<StoredDocument>>) -> Result<()>,
) -> Result<Vec<StoreError>> {
    let manifest = CollectionManifest::read(fs, folder)?;
    let shape = manifest.settings().index_shape();
    let mut lost = Vec::new();
    for entry in &manifest.runs {
        let path = file_path(folder, entry.file, "run");
        let run = match StoredRun::open(fs, &path, manifest.file(entry.file), shape) {
            Ok(run) => run,
            Err(error) => {
                lost.push(error.or_missing(MANIFEST));
                continue;
            }
        };
        if let Some(number) = entry.tombstones {
            let path = file_path(folder, number, "tombstones");
            let identity = manifest.file(number);
            // Without its tombstones, deleted documents come back, so this is reported as a loss.
            lost.extend(tombstones::read(fs, &path, identity, entry.file, &run.tombstones).err());
        }
        let mut failed = None;
        let damaged = run.salvage(&mut |place, document| {
            if failed.is_none() && !run.tombstones.get(place as usize) {
                failed = each(UnixMillis(manifest.time), vec![LogChange::Insert(document)]).err();
            }
        });
        lost.extend(damaged);
        failed.map_or(Ok(()), Err)?;
    }
    for (at, &number) in manifest.logs.iter().enumerate() {
        let path = file_path(folder, number, "log");
        let mut groups = Vec::new();
        let after = manifest.logs.get(at + 1);
        let after = after.and_then(|&after| next_header(fs, folder, &manifest, after, number).ok());
        let read = salvage_log(
            fs,
            &path,
            manifest.file(number),
            after.as_ref(),
            &mut |at, payload| groups.push(read_group(&path, at, payload)),
        );
        match read {
            Ok(gaps) => lost.extend(gaps.into_iter().map(|(from, to)| {
                StoreError::damaged(&path, from, format!("the {} bytes from here on", to - from))
            })),
            Err(error) => lost.push(error.or_missing(MANIFEST)),
        }
        for group in groups {
            match group {
                Ok((time, changes)) => each(time, changes)?,
                Err(error) => lost.push(error),
            }
        }
    }
    Ok(lost)
}
