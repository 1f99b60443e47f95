//! Flushes and merges: memtables become runs, and runs become larger runs. A new run is written and opened beside the old files, then
//! replaces them in the manifest and after that in the view.

use std::sync::Arc;

use super::{CollectionEngine, WriterState};
use crate::error::{Result, StoreError};
use crate::manifest::{CollectionManifest, RunEntry};
use crate::run::{DocumentSource, StoredRun, write_run};
use crate::time::UnixMillis;
use crate::tombstones;

/// Number of runs beyond which some are merged, whatever their sizes.
const MAX_RUNS: usize = 24;
/// Number of dead documents below which a small run is not rewritten on their account, unless all are dead.
const MIN_TOMBSTONES: usize = 1024;
/// Size in bytes of the documents from which on a run counts as large.
const LARGE_RUN: u64 = 16 << 20;

impl CollectionEngine {
    /// Returns the number of memtables that wait for a flush.
    pub(crate) fn pending_flushes(&self) -> usize {
        self.view().frozen.len()
    }

    /// Rotates the log if most documents in the active memtable have expired, so that the next flush frees their memory.
    pub(crate) fn end_expired_memory(&self) -> Result<()> {
        let now = self.now(UnixMillis(0));
        // The view must not stay locked during the rotation, which takes the writer lock first.
        let is_wasteful = {
            let active = &self.view().active;
            let there = active.len() - active.tombstones.count();
            let expired = there - active.live(now);
            // The same rule by which `choose` rewrites a run half of which is waste.
            expired > 0 && (expired == there || (expired >= MIN_TOMBSTONES && expired * 2 > there))
        };
        if !is_wasteful {
            return Ok(());
        }
        self.record_disk_full(self.rotate_log())
    }

    /// Flushes the oldest memtable whose log is complete to a run. Returns false if there is none.
    pub(crate) fn flush(&self) -> Result<bool> {
        self.ensure_writing()?;
        // Always the oldest first: `manifest.frame` then moves to the log after it, and everything before that frame must be in runs.
        let Some(frozen) = self.view().frozen.first().cloned() else {
            return Ok(false);
        };
        let now = self.now(UnixMillis(0));
        let source = DocumentSource::of_memtable(&frozen.memtable, &self.hasher, now);
        self.rewrite(&[source], |writer, run| {
            let mut manifest = writer.manifest.clone();
            manifest.logs.retain(|&log| log != frozen.log);
            // Replay starts at the log after this one; everything before is in runs.
            manifest.frame = frozen.next;
            let mut runs = self.view().runs.clone();
            runs.extend(run);
            self.install(writer, manifest, runs, Some(frozen.log))
        })?;
        Ok(true)
    }

    /// Writes the documents of the sources to a new run, which `install` puts in their place; there is none if no document is left.
    fn rewrite(
        &self,
        sources: &[DocumentSource<'_>],
        install: impl FnOnce(&mut WriterState, Option<Arc<StoredRun>>) -> Result<()>,
    ) -> Result<()> {
        // Written without the writer lock: commits continue, and may delete documents of the sources meanwhile.
        // That there is no room for a run does not make the disk full for writes, which go to the log.
        let run = self.build(sources)?;
        let mut writer = self.writer();
        if let Some(run) = &run {
            // The writer lock is held from here until the run is in the view, so no delete is missed in between.
            let mut base = 0;
            for source in sources {
                source.mark_late_tombstones(run, base);
                base += source.live();
            }
        }
        let number = run.as_ref().map(|run| run.number);
        let installed = self.record_disk_full(install(&mut writer, run.map(Arc::new)));
        let stands = !writer.manifest_uncertain && self.stopped().is_none();
        if installed.is_err() && stands {
            self.discard(number.map(|run| (run, "run")));
        }
        installed
    }

    /// Writes a run of all live documents and opens it. Returns `None` if there are none.
    fn build(&self, sources: &[DocumentSource<'_>]) -> Result<Option<StoredRun>> {
        // Documents that are already dead or expired are left out; those that die while the run is written are marked in it afterwards.
        let live: u64 = sources.iter().map(|source| u64::from(source.live())).sum();
        if live == 0 {
            return Ok(None);
        }
        if live >= u64::from(u32::MAX) {
            let reason = format!("it cannot hold {live} documents");
            return Err(StoreError::run_build(&self.folder, reason));
        }
        let options = {
            let mut writer = self.writer();
            // If the manifest on disk is uncertain, it may name a file with this number.
            self.ensure_manifest_certain(&mut writer)?;
            // The number is reserved in memory only: after a crash it is given out again, and a leftover file is overwritten.
            let number = writer.manifest.next_file;
            writer.manifest.next_file += 1;
            self.run_options(&writer, number)
        };
        let path = self.path(options.identity.number, "run");
        let built = write_run(&*self.fs, &path, &options, sources, &self.cancelled)
            .and_then(|()| StoredRun::open(&*self.fs, &path, options.identity, options.shape));
        if built.is_err() {
            // If this fails, the next start removes the file.
            let _ = self.fs.remove(&path);
        }
        built.map(Some)
    }

    /// Merges some runs into one. Returns false if none need merging.
    pub(crate) fn merge(&self) -> Result<bool> {
        self.ensure_writing()?;
        let now = self.now(UnixMillis(0));
        let runs = self.view().runs.clone();
        let Some(chosen) = choose(&runs, self.tuning.fan_out, now) else {
            return Ok(false);
        };
        self.merge_runs(&runs[chosen], now)?;
        Ok(true)
    }

    /// Merges all runs into one.
    pub(crate) fn compact(&self) -> Result<()> {
        self.ensure_writing()?;
        let (now, runs) = (self.now(UnixMillis(0)), self.view().runs.clone());
        let is_untouched = |run: &StoredRun| run.live(now) == run.len();
        if runs.is_empty() || runs.len() == 1 && is_untouched(&runs[0]) {
            return Ok(());
        }
        self.merge_runs(&runs, now)
    }

    fn merge_runs(&self, old: &[Arc<StoredRun>], now: UnixMillis) -> Result<()> {
        let sources = old.iter().map(|run| DocumentSource::of_run(run, now));
        self.rewrite(&sources.collect::<Vec<_>>(), |writer, run| {
            let mut runs = self.view().runs.clone();
            // Identify runs by number, not by position: flushes may have added runs since this merge began, and other merges may have finished.
            let is_old = |run: &Arc<StoredRun>| old.iter().any(|old| old.number == run.number);
            // The old runs are adjacent, so putting the new one in their place keeps the order by age.
            let at = runs.iter().position(is_old).unwrap_or(runs.len());
            runs.retain(|run| !is_old(run));
            runs.splice(at..at, run);
            self.install(writer, writer.manifest.clone(), runs, None)
        })
    }

    /// Writes a manifest with these runs and their tombstones, shows the runs to readers, and removes files that the manifest no longer
    /// names. `flushed` is the log of a memtable whose documents are in the runs now.
    fn install(
        &self,
        writer: &mut WriterState,
        mut manifest: CollectionManifest,
        runs: Vec<Arc<StoredRun>>,
        flushed: Option<u64>,
    ) -> Result<()> {
        self.ensure_manifest_certain(writer)?;
        // The list is rebuilt from the current runs; old entries only tell which tombstone files already exist.
        let before = std::mem::take(&mut manifest.runs);
        let mut listed = writer.listed.clone();
        for run in &runs {
            let known = before.iter().find(|entry| entry.file == run.number);
            let mut tombstone_file = known.and_then(|entry| entry.tombstones);
            let count = run.tombstones.count();
            // The log that records these deletes may be removed after this manifest, so they must be on the medium before it. Including
            // deletes from newer logs does no harm: replay does not find documents that are already marked.
            if count > listed.get(&run.number).copied().unwrap_or(0) {
                let number = manifest.next_file;
                manifest.next_file += 1;
                let path = self.path(number, "tombstones");
                let identity = manifest.file(number);
                tombstones::write(&*self.fs, &path, identity, run.number, &run.tombstones)?;
                listed.insert(run.number, count);
                tombstone_file = Some(number);
            }
            manifest.runs.push(RunEntry {
                file: run.number,
                documents: run.len() as u64,
                tombstones: tombstone_file,
            });
        }
        // Expired documents are left out of new runs, so after a restart the clock must not be before this time.
        manifest.time = self.now(UnixMillis(0)).0;
        let kept = manifest.runs.clone();
        self.replace_manifest(writer, manifest)?;
        // Only now: if replacing the manifest fails, the old tombstone files stay in use.
        listed.retain(|run, _| kept.iter().any(|entry| entry.file == *run));
        writer.listed = listed;
        let mut obsolete = Vec::new();
        for old in before {
            let new = kept.iter().find(|entry| entry.file == old.file);
            obsolete.extend(new.is_none().then_some((old.file, "run")));
            let replaced = old
                .tombstones
                .filter(|_| new.and_then(|new| new.tombstones) != old.tombstones);
            obsolete.extend(replaced.map(|file| (file, "tombstones")));
        }
        let mut view = self.view_mut();
        view.frozen.retain(|other| Some(other.log) != flushed);
        view.runs = runs;
        drop(view);
        // The log last: until the manifest without it is durable, its documents are nowhere else.
        obsolete.extend(flushed.map(|log| (log, "log")));
        self.discard(obsolete);
        Ok(())
    }

    /// Removes files that the manifest no longer names. If that fails, the next start removes them.
    fn discard(&self, files: impl IntoIterator<Item = (u64, &'static str)>) {
        for (number, kind) in files {
            let _ = self.fs.remove(&self.path(number, kind));
        }
    }
}

/// Returns the level of a run: its size in powers of the fan-out.
fn level(documents: usize, fan_out: usize) -> u32 {
    documents.max(1).ilog(fan_out.max(2))
}

/// Chooses the adjacent runs to merge next: as many runs of one level as the fan-out, the lowest level first; if there are too many runs,
/// the adjacent runs with the fewest documents; or a single run half of which is waste.
fn choose(
    runs: &[Arc<StoredRun>],
    fan_out: usize,
    now: UnixMillis,
) -> Option<std::ops::Range<usize>> {
    let fan_out = fan_out.max(2);
    let levels: Vec<u32> = runs.iter().map(|run| level(run.len(), fan_out)).collect();
    let mut best: Option<(u32, std::ops::Range<usize>)> = None;
    for start in 0..runs.len() {
        // A range of runs no larger than the level of the first, including smaller ones between them. Levels by size as in log-structured
        // merge trees (O'Neil et al. 1996), with tiering: a document is rewritten once for each level, so about log(n) times to the base of
        // the fan-out.
        let top = levels[start];
        let end = start
            + levels[start..]
                .iter()
                .take_while(|&&other| other <= top)
                .count();
        let of_top = levels[start..end]
            .iter()
            .filter(|&&other| other == top)
            .count();
        if of_top >= fan_out && best.as_ref().is_none_or(|(level, _)| top < *level) {
            best = Some((top, start..end));
        }
    }
    if let Some((_, range)) = best {
        return Some(range);
    }
    if runs.len() > MAX_RUNS {
        let fan_out = fan_out.min(runs.len());
        // No range has a level in common, but every lookup searches each run: take the range with the fewest documents.
        let cost = |start: &usize| {
            runs[*start..*start + fan_out]
                .iter()
                .map(|run| run.len())
                .sum::<usize>()
        };
        let start = (0..=runs.len() - fan_out).min_by_key(cost)?;
        return Some(start..start + fan_out);
    }
    let wasteful = |run: &Arc<StoredRun>| {
        // Rewriting pays off if half is waste, because the new run is at most half as long as the old one. Below `MIN_TOMBSTONES`, every
        // delete in a tiny run would trigger a rewrite; but a few dead documents may take gigabytes.
        let waste = run.waste(now);
        let is_much = waste >= MIN_TOMBSTONES || run.document_bytes() >= LARGE_RUN;
        waste == run.len() || (is_much && waste * 2 > run.len())
    };
    let at = runs.iter().position(wasteful)?;
    Some(at..at + 1)
}
