//! Flushes and merges: memtables become runs, runs become larger runs. Each new run is written and opened beside the old files,
//! then replaces them in one step: manifest first, then view.

use std::sync::Arc;

use super::{CollectionEngine, WriterState};
use crate::bits::{AtomicBits, RankedBits};
use crate::error::{Result, StoreError};
use crate::manifest::{CollectionManifest, RunEntry};
use crate::run::{DocumentSource, MemTableSource, RunSource, StoredRun, write_run};
use crate::time::UnixMillis;
use crate::tombstones;
use crate::view::FrozenMemTable;

/// Runs beyond which some are merged whatever their sizes.
const MAX_RUNS: usize = 24;
/// Runs below this are not made anew for their dead documents alone.
const MIN_TOMBSTONES: usize = 1024;

impl CollectionEngine {
    /// Number of memtables that wait for a flush.
    pub(crate) fn wants_flush(&self) -> usize {
        self.view().frozen.len()
    }

    /// Ends the memory that is written if time alone has put an end to most of it, so that the flush that follows gives back its
    /// room; false when it has not.
    pub(crate) fn end_expired_memory(&self) -> Result<bool> {
        let now = self.now(UnixMillis(0));
        // The lock of the view must not be held over the rotation, which takes the writer lock first.
        let is_wasteful = {
            let active = &self.view().active;
            let there = active.len() - active.tombstones().count();
            let expired = there - active.live(now);
            // The rule by which `choose` rewrites a run that is half waste.
            expired > 0 && (expired == there || (expired >= MIN_TOMBSTONES && expired * 2 > there))
        };
        if is_wasteful {
            self.remember_disk_full(self.rotate_log())?;
        }
        Ok(is_wasteful)
    }

    /// Makes a run of the oldest memory whose log is complete; false when there is none.
    pub(crate) fn flush(&self) -> Result<bool> {
        self.remember_disk_full(self.flush_oldest())
    }

    fn flush_oldest(&self) -> Result<bool> {
        self.ensure_writing()?;
        // The oldest first, always: `manifest.frame` moves to the log behind it, and everything before that
        // frame must stand in runs.
        let Some(frozen) = self.view().frozen.first().cloned() else {
            return Ok(false);
        };
        let source = MemTableSource::new(
            Arc::clone(&frozen.memtable),
            self.now(UnixMillis(0)),
            self.hasher.clone(),
        );
        // Written without the writer lock: commits go on, and may delete documents of this memory meanwhile.
        let run = self.build(&[&source])?;
        let mut writer = self.writer();
        if let Some(run) = &run {
            // The writer lock is held from here until the run is in the view, so no delete falls between the
            // two.
            mark_late_tombstones(run, 0, source.live_bits(), frozen.memtable.tombstones());
        }
        let number = run.as_ref().map(StoredRun::number);
        let installed = self.install_flush(&mut writer, &frozen, run);
        self.discard_unless_installed(&writer, number, installed)?;
        Ok(true)
    }

    /// Removes a new run that could not be installed.
    fn discard_unless_installed(
        &self,
        writer: &WriterState,
        run: Option<u64>,
        installed: Result<()>,
    ) -> Result<()> {
        let stands = !writer.manifest_uncertain && self.stopped().is_none();
        if installed.is_err() && stands {
            self.discard(run.map(|run| (run, "run")).into_iter());
        }
        installed
    }

    /// Writes and opens a run of all that lives; none when nothing does.
    fn build(&self, sources: &[&dyn DocumentSource]) -> Result<Option<StoredRun>> {
        // Documents that died or expired before are left out; those that die while the run is written are
        // marked in it afterwards.
        let live: u64 = sources.iter().map(|source| u64::from(source.live())).sum();
        if live == 0 {
            return Ok(None);
        }
        if live >= u64::from(u32::MAX) {
            let what = format!("{live} documents do not fit into one run");
            return Err(StoreError::Invalid(what));
        }
        let options = {
            let mut writer = self.writer();
            // Before that, a file of this number may be one that counts.
            self.ensure_manifest_certain(&mut writer)?;
            // Reserved in memory only: after a crash the number is given out again, and what is left of the
            // file is replaced.
            let number = writer.manifest.next_file;
            writer.manifest.next_file += 1;
            self.run_options(&writer, number)
        };
        let path = self.path(options.identity.number, "run");
        let built = write_run(&*self.fs, &path, &options, sources, &self.cancelled)
            .and_then(|()| StoredRun::open(&*self.fs, &path, options.identity, options.shape));
        if built.is_err() {
            // What is left of it is removed at the next start at the latest.
            let _ = self.fs.remove(&path);
        }
        built.map(Some)
    }

    fn install_flush(
        &self,
        writer: &mut WriterState,
        frozen: &FrozenMemTable,
        run: Option<StoredRun>,
    ) -> Result<()> {
        let mut manifest = writer.manifest.clone();
        manifest.logs.retain(|&log| log != frozen.log);
        // Replay begins at the log behind this one; all before stands in runs.
        manifest.frame = frozen.next;
        let run = run.map(Arc::new);
        let mut runs = self.view().runs.clone();
        runs.extend(run.clone());
        let obsolete = self.install(writer, manifest, &runs)?;
        let mut view = self.view_mut();
        view.frozen.retain(|other| other.log != frozen.log);
        view.runs = runs;
        drop(view);
        // The log last: until the manifest without it is durable, it alone has these documents.
        self.discard(obsolete.into_iter().chain([(frozen.log, "log")]));
        Ok(())
    }

    /// Merges some runs into one; false when none need it.
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
        let untouched =
            runs.len() == 1 && runs[0].tombstones().count() == 0 && !any_expired(&runs[0], now);
        if runs.is_empty() || untouched {
            return Ok(());
        }
        self.merge_runs(&runs, now)
    }

    fn merge_runs(&self, old: &[Arc<StoredRun>], now: UnixMillis) -> Result<()> {
        self.remember_disk_full(self.merge_into_one(old, now))
    }

    fn merge_into_one(&self, old: &[Arc<StoredRun>], now: UnixMillis) -> Result<()> {
        let sources: Vec<RunSource> = old
            .iter()
            .map(|run| RunSource::new(Arc::clone(run), now))
            .collect();
        let all: Vec<&dyn DocumentSource> = sources
            .iter()
            .map(|source| source as &dyn DocumentSource)
            .collect();
        let run = self.build(&all)?;
        let mut writer = self.writer();
        if let Some(run) = &run {
            let mut base = 0;
            for (source, old) in sources.iter().zip(old) {
                mark_late_tombstones(run, base, source.live_bits(), old.tombstones());
                base += source.live();
            }
        }
        let number = run.as_ref().map(StoredRun::number);
        let installed = self.install_merge(&mut writer, old, run);
        self.discard_unless_installed(&writer, number, installed)
    }

    fn install_merge(
        &self,
        writer: &mut WriterState,
        old: &[Arc<StoredRun>],
        run: Option<StoredRun>,
    ) -> Result<()> {
        let (manifest, run) = (writer.manifest.clone(), run.map(Arc::new));
        let mut runs = self.view().runs.clone();
        // By number, not by place: flushes have added runs since the merge began, and a merge of others may
        // have finished.
        let is_old = |run: &Arc<StoredRun>| old.iter().any(|old| old.number() == run.number());
        // The old runs are neighbours, so the new one in their place keeps the order by age. Flushes may have
        // added runs behind.
        let at = runs.iter().position(is_old).unwrap_or(runs.len());
        runs.retain(|run| !is_old(run));
        runs.splice(at..at, run);
        let obsolete = self.install(writer, manifest, &runs)?;
        self.view_mut().runs = runs;
        self.discard(obsolete.into_iter());
        Ok(())
    }

    /// Makes the manifest name these runs and what is dead in them; the files that it no longer names.
    fn install(
        &self,
        writer: &mut WriterState,
        mut manifest: CollectionManifest,
        runs: &[Arc<StoredRun>],
    ) -> Result<Vec<(u64, &'static str)>> {
        self.ensure_manifest_certain(writer)?;
        // The list is made anew from the runs that count from now on; entries of before only tell which
        // tombstone files exist already.
        let before = std::mem::take(&mut manifest.runs);
        let mut listed = writer.listed.clone();
        for run in runs {
            let known = before.iter().find(|entry| entry.file == run.number());
            let mut tombstone_file = known.and_then(|entry| entry.tombstones);
            let count = run.tombstones().count();
            // The log that has these deletes may go with this manifest, so they have to be on the medium before
            // it. Deletes of newer logs among them do no harm: replay finds no document that is marked already.
            if count > listed.get(&run.number()).copied().unwrap_or(0) {
                let number = manifest.next_file;
                manifest.next_file += 1;
                let path = self.path(number, "tombstones");
                tombstones::write(
                    &*self.fs,
                    &path,
                    manifest.file(number),
                    run.number(),
                    run.tombstones(),
                )?;
                listed.insert(run.number(), count);
                tombstone_file = Some(number);
            }
            manifest.runs.push(RunEntry {
                file: run.number(),
                documents: run.len() as u64,
                tombstones: tombstone_file,
            });
        }
        // Documents that have expired are left out of new runs: the clock must not start before this time
        // again.
        manifest.time = self.now(UnixMillis(0)).0;
        let kept = manifest.runs.clone();
        self.replace_manifest(writer, manifest)?;
        // Only now, since a failed replacement leaves the old tombstone files in charge.
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
        Ok(obsolete)
    }

    /// Removes files that nothing names; those that cannot be are removed at the next start.
    fn discard(&self, files: impl Iterator<Item = (u64, &'static str)>) {
        for (number, kind) in files {
            let _ = self.fs.remove(&self.path(number, kind));
        }
    }
}

/// Marks in a new run what died in its source while it was made.
fn mark_late_tombstones(run: &StoredRun, base: u32, went_in: &RankedBits, tombstones: &AtomicBits) {
    for (at, (&live, tombstones)) in went_in.words().iter().zip(tombstones.words()).enumerate() {
        let mut late = live & tombstones;
        while late != 0 {
            // The new run numbers documents by their rank among those that went in.
            let place = at * 64 + late.trailing_zeros() as usize;
            run.tombstones().set((base + went_in.rank(place)) as usize);
            late &= late - 1;
        }
    }
}

fn any_expired(run: &StoredRun, now: UnixMillis) -> bool {
    run.any_expires() && (0..run.len() as u32).any(|place| run.expires(place) <= now.0)
}

/// The size of a run in powers of the fan-out.
fn level(documents: usize, fan_out: usize) -> u32 {
    documents.max(1).ilog(fan_out.max(2))
}

/// Chooses the neighbouring runs to merge next: as many of one level as the fan-out, lowest level first; the cheapest stretch if
/// there are too many runs; or a single run that is half waste.
fn choose(
    runs: &[Arc<StoredRun>],
    fan_out: usize,
    now: UnixMillis,
) -> Option<std::ops::Range<usize>> {
    let fan_out = fan_out.max(2);
    let levels: Vec<u32> = runs.iter().map(|run| level(run.len(), fan_out)).collect();
    let mut best: Option<(u32, std::ops::Range<usize>)> = None;
    for start in 0..runs.len() {
        // A stretch of runs no larger than its first level: small ones between go along.
        // Levels by size, as in log-structured merge trees (O'Neil et al. 1996), tiered: a document is
        // rewritten once a level, that is log(n) to the base of the fan-out times in all.
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
        // A stretch that has no level in common: take the one with the fewest documents, since every lookup
        // pays for each run.
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
        // Half waste pays for itself: the run that is written is at most half as long as the one that is read.
        // Below `MIN_TOMBSTONES` each delete in a tiny run would trigger a rewrite.
        let waste = run.waste(now);
        waste == run.len() || (waste >= MIN_TOMBSTONES && waste * 2 > run.len())
    };
    let at = runs.iter().position(wasteful)?;
    Some(at..at + 1)
}
