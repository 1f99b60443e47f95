//! The folder that a job works in: its contents, its state, and the replacement of older results by new ones.
//!
//! ```text
//! .lookalike/                   while the job runs: what it is, its checkpoints, and in new/ its results
//! run.json                      written last: where it stands, the job is done
//! ```
//!
//! Results are collected in `.lookalike/new/` and replace older ones once they are complete: see [`OutputDir::publish`].

use std::io;
use std::path::{Path, PathBuf};

use lookalike_corpus::{
    AtomicFile, Compression, Inputs, OutputFormat, STATE_FOLDER as STATE, SUMMARY_FILE as LAST,
    Transfer, TransferError, remove_leftovers, results_in, sync_directory, sync_file_system,
    transfer_file, uninterrupted,
};
use serde::{Deserialize, Serialize};

use crate::contents::{self, CONTENTS};
use crate::dedup::result_lines::write_line;
use crate::error::{BatchError, NEW};
use crate::folder_refusal::FolderRefusal;
use crate::observer::{JobObserver, check_cancelled};
use crate::path_lock::PathLock;
use crate::skipped::SKIPPED_FILES;
use crate::spill::remove_abandoned_spools;
use crate::unfinished::{save, write_whole};

/// Rule for a folder that already holds results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfExists {
    /// Refuse such a folder.
    #[default]
    New,
    /// Resume an interrupted job from what it has read or decided; start a new job if there is nothing of that.
    Resume,
    /// Start a new job, and replace the results once the new ones are complete.
    Overwrite,
}

lookalike::settings! {
    /// Options for writing results.
    #[derive(Clone, Debug)]
    pub struct OutputOptions {
        /// Format of the results.
        format: OutputFormat,
        /// Compression of `kept.jsonl` and `removed.jsonl`; `None` for that of the input. Tables use their own compression.
        compression: Option<Compression>,
        /// Writes `annotations`: the decision on each document, in the order of the input.
        annotate: bool,
        /// Method by which input files get into the results.
        transfer: Transfer,
        /// Rule for a folder that already holds results.
        folder: IfExists,
        /// The command line, for the report.
        command: String,
    }
}

/// Progress of the job in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobProgress {
    /// It is running, or ended before it had saved anything: [`IfExists::Resume`] starts from the beginning.
    Begun,
    /// It is running, or ended, and has saved what it read or decided: [`IfExists::Resume`] continues from there.
    Resumable,
    /// All its results are in place.
    Finished,
}

impl JobProgress {
    /// Returns the progress of the job in a folder, or `None` if no job has begun. Needs only a few system calls.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read.
    pub fn of(folder: &Path) -> io::Result<Option<JobProgress>> {
        let state = folder.join(STATE);
        // The results of an earlier job may be in the folder until those of this one are complete. `run.json` leaves `ready/` last, so without it all
        // results are in place.
        let ready = state.join(READY);
        let is_placed = path_exists(&ready)? && !path_exists(&ready.join(LAST))?;
        let finished = path_exists(&folder.join(LAST))?;
        if !path_exists(&state.join(JOB))? || finished && is_placed {
            return Ok(finished.then_some(JobProgress::Finished));
        }
        Ok(Some(match any_path_exists(&state, &STATES)? {
            true => JobProgress::Resumable,
            false => JobProgress::Begun,
        }))
    }
}

/// Returns true if the job in a folder has decided what it adds to a collection. It may have been interrupted before or after the addition;
/// [`IfExists::Resume`] finds out which.
pub fn is_addition_staged(folder: &Path) -> bool {
    folder.join(STATE).join(STAGED).exists()
}

/// Removes the unfinished files of an interrupted job of this process, but keeps what is needed to resume it. Does nothing if no job of
/// this process holds the folder, because its contents may then belong to another process.
///
/// # Errors
/// Returns an error if a folder cannot be listed or a file cannot be removed.
pub fn remove_unfinished(folder: &Path) -> io::Result<()> {
    if !PathLock::is_held(folder) {
        return Ok(());
    }
    // Nowhere else: other unfinished files in the output folder are not ours, and another command may be writing them.
    match folder.join(STATE).join(NEW) {
        new if path_exists(&new)? => remove_leftovers(&new, |_| true).map(drop),
        _ => Ok(()),
    }
}

/// Removes everything that an interrupted job of this process made and that cannot be resumed. Results that are being published
/// stay: the next job in the folder finishes that. Does nothing if no job of this process holds the folder.
///
/// # Errors
/// Returns an error if a folder cannot be listed or a file cannot be removed.
pub fn discard_unfinished(folder: &Path) -> io::Result<()> {
    let state = folder.join(STATE);
    let is_whole =
        any_path_exists(&state, &[READY, OLD])? || path_exists(&state.join(NEW).join(LAST))?;
    match is_whole || !PathLock::is_held(folder) {
        true => remove_unfinished(folder),
        false => remove(&state),
    }
}

/// Copies the results of a finished job from one folder to another, as if the job had written them there. `results` are the names of all results that it
/// may have. The observer may cancel the copy between two files.
///
/// # Errors
/// [`BatchError`], also if a result that the summary names is gone. Older results are then still in place.
pub fn copy_results(
    from: &Path,
    folder: &Path,
    results: &[&'static str],
    if_exists: IfExists,
    observer: &dyn JobObserver,
) -> Result<(), BatchError> {
    let place = OutputDir { folder, results };
    let identity = JobIdentity {
        settings: "copy".to_owned(),
        input: from.display().to_string(),
    };
    let _lock = place.enter(if_exists, &identity)?;
    let copy = || {
        let summary = from.join(LAST);
        let text = std::fs::read(&summary).map_err(uncopied(&summary))?;
        for name in results_in(from) {
            if name != LAST && results.contains(&name.as_str()) {
                copy_all(&from.join(&name), &place.path(&name), observer)?;
            }
        }
        // The summary must not reach the disk before the files that it describes.
        sync_file_system(folder)
            .and_then(|()| write_whole(&place.path(LAST), &text))
            .map_err(BatchError::result(folder))
    };
    copy().inspect_err(|_| place.discard_undecided())?;
    place.publish()
}

/// Copies a file, or a folder with its contents.
fn copy_all(from: &Path, to: &Path, observer: &dyn JobObserver) -> Result<(), BatchError> {
    check_cancelled(observer).map_err(|_| BatchError::Cancelled)?;
    if from.is_dir() {
        std::fs::create_dir(to).map_err(BatchError::result(to))?;
        for entry in std::fs::read_dir(from).map_err(uncopied(from))? {
            let name = entry.map_err(uncopied(from))?.file_name();
            copy_all(&from.join(&name), &to.join(&name), observer)?;
        }
        return Ok(());
    }
    match transfer_file(from, to, Transfer::Copy) {
        Ok(_) => Ok(()),
        Err(TransferError::Source(cause)) => Err(uncopied(from)(cause)),
        Err(TransferError::Output(cause)) => Err(BatchError::result(to)(cause)),
    }
}

/// Makes the error for a result that cannot be read.
fn uncopied(path: &Path) -> impl Fn(io::Error) -> BatchError + '_ {
    |cause| BatchError::File {
        path: path.to_owned(),
        cause,
        remedy: "run the job again",
    }
}

/// Identity of the job in a folder, by which it is recognised.
#[derive(Serialize, Deserialize, PartialEq)]
pub(crate) struct JobIdentity {
    pub(crate) settings: String,
    pub(crate) input: String,
}

impl JobIdentity {
    /// Refuses to resume a job with other settings or another input.
    pub(crate) fn ensure_same(&self, there: Self) -> Result<(), FolderRefusal> {
        if there.input != self.input {
            return Err(FolderRefusal::OtherInput);
        }
        if there.settings != self.settings {
            return Err(FolderRefusal::OtherSettings {
                there: words_only_in(&there.settings, &self.settings),
                now: words_only_in(&self.settings, &there.settings),
            });
        }
        Ok(())
    }
}

/// Identity of a finished job.
#[derive(Serialize, Deserialize)]
struct FinishedIdentity {
    #[serde(flatten)]
    begun: JobIdentity,
    /// Digest of the contents of all inputs.
    contents: Option<String>,
}

/// The part of `run.json` by which a finished job is recognised.
#[derive(Deserialize)]
struct FinishedJob {
    job: FinishedIdentity,
}

/// A summary with the identity of its job.
#[derive(Serialize)]
struct IdentifiedSummary<'a, S> {
    #[serde(flatten)]
    summary: &'a S,
    job: Option<FinishedIdentity>,
}

/// Returns an input without the state of the collection to which the job adds, which is another one once the job has added to it.
fn without_base(input: &str) -> String {
    match (input.find(" against="), input.find(" into=Some(")) {
        (Some(state), Some(into)) if state < into => [&input[..state], &input[into..]].concat(),
        _ => input.to_owned(),
    }
}

/// Returns the words of `settings` that `others` does not have; both are long and nearly equal.
fn words_only_in(settings: &str, others: &str) -> String {
    let others: Vec<&str> = others.split(' ').collect();
    let own = settings.split(' ').filter(|word| !others.contains(word));
    match own.collect::<Vec<_>>() {
        own if own.is_empty() => "nothing more".to_owned(),
        own => own.join(" "),
    }
}

/// File in [`STATE`] with the identity of the job.
const JOB: &str = "job.json";

/// File in [`STATE`] with the addition to a collection that is made when the results are written.
pub(crate) const STAGED: &str = "staged.json";

/// Name of [`NEW`] once the older results have been moved away.
const READY: &str = "ready";

/// Folder in [`STATE`] for the older results.
const OLD: &str = "old";

/// Files from which an interrupted job can be resumed: the log of what it read, and what it computed from that.
const STATES: [&str; 4] = ["scanned.bin", "compared.bin", "decided.bin", "read.bin"];

/// Files without which a job has not begun to write results.
const DECISIONS: [&str; 2] = ["decided.bin", "read.bin"];

/// The folder that a job works in.
pub(crate) struct OutputDir<'a> {
    pub(crate) folder: &'a Path,
    /// Names of all results that a job may write.
    pub(crate) results: &'a [&'static str],
}

impl OutputDir<'_> {
    /// Returns the path at which the result `name` is written.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.state(NEW).join(name)
    }

    pub(crate) fn state(&self, name: &str) -> PathBuf {
        self.folder.join(STATE).join(name)
    }

    /// Writes lines of JSON to the result `name`, in the given format; `example` has all fields. See [`AtomicFile::lines`].
    pub(crate) fn write_lines(
        &self,
        name: &str,
        format: OutputFormat,
        example: &str,
        write: &mut dyn FnMut(&mut AtomicFile) -> io::Result<()>,
    ) -> Result<(), BatchError> {
        let path = self.path(format!("{name}{}", format.suffix()));
        let failed = BatchError::result(&path);
        let mut file = AtomicFile::lines(&path, format, example).map_err(&failed)?;
        write(&mut file)
            .and_then(|()| file.commit())
            .map_err(&failed)
    }

    /// Returns the names of all results that were written, and `run.json`, which is written last. Other jobs replace nothing else here.
    pub(crate) fn written(&self) -> Result<Vec<String>, BatchError> {
        let new = self.state(NEW);
        let failed = BatchError::result(&new);
        let mut names = vec![LAST.to_owned()];
        for entry in std::fs::read_dir(&new).map_err(&failed)? {
            let name = entry.map_err(&failed)?.file_name();
            names.push(name.to_string_lossy().into_owned());
        }
        // Directories have no order, and equal jobs must write equal summaries.
        names.sort_unstable();
        Ok(names)
    }

    /// Writes `run.json`, whose presence means that everything else is complete.
    pub(crate) fn write_summary(&self, summary: &impl Serialize) -> Result<(), BatchError> {
        let path = self.path(LAST);
        let job = self.identity().map(|begun| FinishedIdentity {
            begun,
            contents: contents::digest(&self.state(CONTENTS)),
        });
        let summary = IdentifiedSummary { summary, job };
        let json = serde_json::to_vec_pretty(&summary).map_err(io::Error::from);
        let mut json = json.map_err(BatchError::result(&path))?;
        json.push(b'\n');
        save(&path, &json)
    }

    fn refuse(&self, reason: FolderRefusal) -> BatchError {
        BatchError::Folder {
            path: self.folder.to_owned(),
            reason,
        }
    }

    /// Prepares the folder for the job `identity`, which owns it as long as the lock is held.
    pub(crate) fn enter(
        &self,
        mode: IfExists,
        identity: &JobIdentity,
    ) -> Result<PathLock, BatchError> {
        let failed = BatchError::result(self.folder);
        std::fs::create_dir_all(self.folder).map_err(&failed)?;
        // Before everything else: two jobs would remove each other's state and publish a mixture of their results.
        let Some(lock) = PathLock::take(self.folder).map_err(&failed)? else {
            return Err(self.refuse(FolderRefusal::InUse));
        };
        match mode {
            IfExists::Resume => self.roll_back().map_err(&failed)?,
            // A job that was killed while it published had complete results, which count as results of the folder.
            IfExists::New | IfExists::Overwrite => self.finish_publishing().map_err(&failed)?,
        }
        let state = self.folder.join(STATE);
        let resumable = any_path_exists(&state, &STATES).map_err(&failed)?;
        let decided = any_path_exists(&state, &DECISIONS).map_err(&failed)?;
        // The state of a job that failed before it had saved anything may be overwritten.
        let counts = |name: &&str| *name != STATE || resumable || mode != IfExists::New;
        let present = first_there(self.folder, self.results.iter().copied().filter(counts));
        let present = present.map_err(&failed)?;
        match (mode, present) {
            (IfExists::New, Some(name)) => {
                return Err(self.refuse(FolderRefusal::HoldsResults {
                    name: name.to_owned(),
                    is_resumable: resumable,
                }));
            }
            (IfExists::Resume, Some(_)) => self.recognise(identity)?,
            (IfExists::Overwrite, Some(_)) => self.allow_overwriting()?,
            (_, None) => {}
        }
        if mode != IfExists::Resume {
            remove(&self.folder.join(STATE)).map_err(&failed)?;
        } else if !decided {
            remove(&self.state(NEW)).map_err(&failed)?;
        }
        std::fs::create_dir_all(self.state(NEW)).map_err(&failed)?;
        // Each attempt writes partial results from the beginning, but the copies of unreadable files were complete
        // before.
        remove_folders_but(&self.state(NEW), SKIPPED_FILES).map_err(&failed)?;
        remove_unfinished(self.folder).map_err(&failed)?;
        remove_abandoned_spools(self.folder);
        let mut file = AtomicFile::create(&self.state(JOB), Compression::None).map_err(&failed)?;
        write_line(&mut file, identity)
            .and_then(|()| file.commit())
            .map_err(&failed)?;
        Ok(lock)
    }

    /// Refuses to replace files that no job of ours wrote, and to leave results of another command next to those of this one.
    fn allow_overwriting(&self) -> Result<(), BatchError> {
        let failed = BatchError::result(self.folder);
        let written = results_in(self.folder);
        let replaced = self.results.iter().filter(|name| **name != STATE);
        // A file with the name of a result may be the user's own, unless a summary lists it.
        let strange = replaced.filter(|name| !written.iter().any(|one| one == **name));
        let strange = first_there(self.folder, strange.copied()).map_err(&failed)?;
        if let Some(name) = strange {
            return Err(self.refuse(FolderRefusal::NoResults(name.to_owned())));
        }
        // Results of another command would stay, and seem to belong to this one.
        let names = written.iter().map(String::as_str);
        let others = names.filter(|name| !self.results.contains(name));
        match first_there(self.folder, others).map_err(&failed)? {
            None => Ok(()),
            Some(name) => Err(self.refuse(FolderRefusal::OtherCommand(name.to_owned()))),
        }
    }

    /// Refuses to resume a job with other settings or another input.
    fn recognise(&self, identity: &JobIdentity) -> Result<(), BatchError> {
        let progress = JobProgress::of(self.folder).map_err(BatchError::result(self.folder))?;
        if progress == Some(JobProgress::Finished) {
            return Err(self.refuse(self.finished(identity)));
        }
        // Without this file nothing was kept that could be another job's.
        match self.identity() {
            None => Ok(()),
            Some(found) => identity
                .ensure_same(found)
                .map_err(|reason| self.refuse(reason)),
        }
    }

    /// Returns the identity of the job that has its state here.
    fn identity(&self) -> Option<JobIdentity> {
        let text = std::fs::read(self.state(JOB)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Returns the identity of the finished job whose results are here.
    fn finished_identity(&self) -> Option<FinishedIdentity> {
        let text = std::fs::read(self.folder.join(LAST)).ok()?;
        let found: Option<FinishedJob> = serde_json::from_slice(&text).ok();
        found.map(|found| found.job)
    }

    /// Returns the reason why a finished job cannot be resumed: it is this one, or another.
    fn finished(&self, identity: &JobIdentity) -> FolderRefusal {
        let Some(mut there) = self.finished_identity().map(|found| found.begun) else {
            return FolderRefusal::HoldsResults {
                name: LAST.to_owned(),
                is_resumable: false,
            };
        };
        if without_base(&there.input) == without_base(&identity.input) {
            there.input.clone_from(&identity.input);
        }
        let same = identity.ensure_same(there);
        same.err().unwrap_or(FolderRefusal::Finished)
    }

    /// Prepares the folder as [`OutputDir::enter`] does, and refuses to resume if the contents of an input have changed, even if its name, size and time
    /// have not.
    pub(crate) fn enter_with_inputs(
        &self,
        mode: IfExists,
        identity: &JobIdentity,
        inputs: &Inputs,
    ) -> Result<PathLock, BatchError> {
        let entered = self.enter(mode, identity);
        if let Err(BatchError::Folder {
            reason: FolderRefusal::Finished,
            ..
        }) = &entered
        {
            let there = self.finished_identity().and_then(|found| found.contents);
            // Times would not do: another file may have been moved there, or a link directed elsewhere.
            if there != Some(contents::digest_now(inputs)?) {
                return Err(self.refuse(FolderRefusal::OtherInput));
            }
        }
        let lock = entered?;
        match contents::changed(&self.state(CONTENTS), inputs)? {
            None => Ok(lock),
            Some(name) => Err(BatchError::ResumedInput { name }),
        }
    }

    /// Removes the state of a failed job that saved nothing to resume from.
    pub(crate) fn discard_undecided(&self) {
        // In doubt the state is kept.
        if !any_path_exists(&self.folder.join(STATE), &STATES).unwrap_or(true) {
            // Ignored, because the user should see the original failure.
            let _ = std::fs::remove_dir_all(self.folder.join(STATE));
        }
    }

    /// Moves the new results, of which [`LAST`] was written last, into place, and removes the older ones. This completes the job.
    ///
    /// If the command is killed meanwhile, the next one finishes the work: as long as `new/run.json` exists, the results in the folder are old;
    /// as long as `ready/` exists, they are new.
    pub(crate) fn publish(&self) -> Result<(), BatchError> {
        let state = self.folder.join(STATE);
        let publish = || {
            self.finish_publishing()?;
            for entry in std::fs::read_dir(&state)? {
                let entry = entry?;
                // It marks the results as placed until the end.
                if entry.file_name() != READY {
                    remove(&entry.path())?;
                }
            }
            remove(&state)
        };
        // A signal in between would leave some results old and others new until the next command.
        uninterrupted(publish).map_err(BatchError::result(self.folder))
    }

    fn finish_publishing(&self) -> io::Result<()> {
        if path_exists(&self.state(NEW).join(LAST))? {
            self.move_old_results()?;
            // From here on, the older results are gone from the folder and the new ones can only be moved into it.
            std::fs::rename(self.state(NEW), self.state(READY))?;
        }
        if path_exists(&self.state(READY).join(LAST))? {
            self.place()?;
            // Sync before the state is removed: after a power cut, the next command has nothing else to continue from.
            sync_directory(self.folder)?;
        }
        remove(&self.state(OLD))
    }

    /// Undoes what a killed command had done of [`OutputDir::publish`], unless that was everything, because the last results have to be
    /// written again.
    fn roll_back(&self) -> io::Result<()> {
        match JobProgress::of(self.folder)? {
            Some(JobProgress::Begun | JobProgress::Resumable) => {}
            // All results are in place, and the killed command had only to remove the rest.
            Some(JobProgress::Finished) => return remove(&self.folder.join(STATE)),
            None => return Ok(()),
        }
        let (new, ready, old) = (self.state(NEW), self.state(READY), self.state(OLD));
        if path_exists(&ready)? {
            self.move_results(self.folder, &ready)?;
            std::fs::rename(&ready, &new)?;
        }
        if path_exists(&old)? {
            self.move_results(&old, self.folder)?;
        }
        remove(&old)?;
        // It marks the new results as complete, and one of them will be written again. Last: without the mark, the next command would remove older
        // results that are not back yet.
        remove(&new.join(LAST))
    }

    /// Moves the results that exist in `from` to `to`.
    fn move_results(&self, from: &Path, to: &Path) -> io::Result<()> {
        for name in self.results.iter().filter(|name| **name != STATE) {
            if path_exists(&from.join(name))? {
                std::fs::rename(from.join(name), to.join(name))?;
            }
        }
        Ok(())
    }

    /// Moves the older results away, [`LAST`] first. If one of them cannot be moved, all of them stay.
    fn move_old_results(&self) -> io::Result<()> {
        // Older results stay there until the new ones are in place, so that `roll_back` can bring them back.
        std::fs::create_dir_all(self.state(OLD))?;
        // Once `run.json` is gone, nothing takes the rest for finished results.
        let others = self.results.iter().filter(|name| **name != LAST);
        let mut moved = Vec::new();
        for name in std::iter::once(&LAST).chain(others) {
            if **name == *STATE {
                continue;
            }
            let (from, to) = (self.folder.join(name), self.state(OLD).join(name));
            let move_away = || match path_exists(&from)? {
                // An attempt that was killed may have left a folder there, over which none can be renamed.
                true => remove(&to).and_then(|()| std::fs::rename(&from, &to)),
                false => Ok(()),
            };
            if let Err(error) = move_away() {
                for (from, to) in moved.iter().rev() {
                    // Ignored, because the user should see the first failure.
                    let _ = std::fs::rename(to, from);
                }
                return Err(error);
            }
            moved.push((from, to));
        }
        Ok(())
    }

    /// Moves the new results into place, [`LAST`] last.
    fn place(&self) -> io::Result<()> {
        let ready = self.state(READY);
        for name in self.results.iter().filter(|name| **name != LAST) {
            if path_exists(&ready.join(name))? {
                std::fs::rename(ready.join(name), self.folder.join(name))?;
            }
        }
        // Last, so that its presence means that all others are in place.
        std::fs::rename(ready.join(LAST), self.folder.join(LAST))
    }
}

/// Removes all subfolders except `whole`, which was complete before anything was decided.
fn remove_folders_but(folder: &Path, whole: &str) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && entry.file_name() != whole {
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Returns true if something has this path. `Path::exists` would return false when a disk fails for a moment, and callers remove or
/// replace what is missing.
fn path_exists(path: &Path) -> io::Result<bool> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the first of the names that exists in the folder.
fn first_there<'n>(
    folder: &Path,
    names: impl IntoIterator<Item = &'n str>,
) -> io::Result<Option<&'n str>> {
    for name in names {
        if path_exists(&folder.join(name))? {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

fn any_path_exists(folder: &Path, names: &[&str]) -> io::Result<bool> {
    first_there(folder, names.iter().copied()).map(|found| found.is_some())
}

/// Removes a file, or a folder with its contents, if it exists.
fn remove(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(data) if data.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn what_a_failing_disk_did_not_show_was_taken_for_gone() {
        // A name too long for any file system gives an error, as a failing disk would.
        let unseen = PathBuf::from("x".repeat(5000));
        assert!(path_exists(&unseen).is_err() && remove(&unseen).is_err());
        assert!(JobProgress::of(&unseen).is_err() && discard_unfinished(&unseen).is_err());
        let folder = tempfile::tempdir().unwrap();
        let place = OutputDir {
            folder: folder.path(),
            results: &[STATE, LAST],
        };
        let new = place.path(LAST);
        std::fs::create_dir_all(new.parent().unwrap()).unwrap();
        std::fs::write(&new, "{}").unwrap();
        // The results cannot be moved away, and must not be removed together with the state.
        std::fs::write(place.state(OLD), "in the way").unwrap();
        assert!(place.publish().is_err());
        assert!(new.exists());
    }

    #[test]
    fn a_job_that_was_killed_while_it_brought_older_results_back_lost_them() {
        let folder = tempfile::tempdir().unwrap();
        let place = OutputDir {
            folder: folder.path(),
            results: &["kept.jsonl", LAST, STATE],
        };
        let identity = JobIdentity {
            settings: String::new(),
            input: String::new(),
        };
        let summary = r#"{"program":"lookalike","results":["kept.jsonl","run.json"]}"#;
        for name in ["kept.jsonl", LAST] {
            std::fs::create_dir_all(place.state(OLD)).unwrap();
            std::fs::create_dir_all(place.state(NEW)).unwrap();
            std::fs::write(place.state(OLD).join(name), summary).unwrap();
            std::fs::write(place.path(name), summary).unwrap();
        }
        std::fs::write(place.state(JOB), "{}").unwrap();
        // The older results cannot be brought back, as if the job were killed there.
        let in_the_way = folder.path().join("kept.jsonl");
        std::fs::create_dir(&in_the_way).unwrap();
        std::fs::write(in_the_way.join("file"), "").unwrap();
        let enter = |mode| place.enter(mode, &identity);
        assert!(enter(IfExists::Resume).is_err());
        std::fs::remove_dir_all(&in_the_way).unwrap();
        // The results of one of the two jobs are there: a new job does not replace them.
        assert!(enter(IfExists::New).is_err());
        assert!(in_the_way.exists());
        enter(IfExists::Overwrite).unwrap();
        assert!(in_the_way.exists());
    }

    #[test]
    fn a_copy_lacked_results_that_were_gone_and_could_not_be_cancelled() {
        let folder = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
        std::fs::create_dir_all(from.join("kept")).unwrap();
        let summary = r#"{"program":"lookalike","results":["kept","pairs.jsonl","run.json"]}"#;
        for name in ["kept/a", "pairs.jsonl", LAST] {
            std::fs::write(from.join(name), summary).unwrap();
        }
        let results = ["kept", "pairs.jsonl", "removed.jsonl", LAST, STATE];
        let copy = |cancelled: bool| {
            copy_results(
                &from,
                &to,
                &results,
                IfExists::New,
                &AtomicBool::new(cancelled),
            )
        };
        assert!(matches!(copy(true), Err(BatchError::Cancelled)));
        assert_eq!(std::fs::read_dir(&to).unwrap().count(), 0);
        for gone in ["pairs.jsonl", LAST] {
            std::fs::rename(from.join(gone), from.join("away")).unwrap();
            let told = copy(false).unwrap_err().to_string();
            assert!(
                told.contains(from.join(gone).to_str().unwrap()) && told.contains("again"),
                "{told}"
            );
            assert_eq!(std::fs::read_dir(&to).unwrap().count(), 0);
            std::fs::rename(from.join("away"), from.join(gone)).unwrap();
        }
        copy(false).unwrap();
        for name in ["kept/a", "pairs.jsonl", LAST] {
            assert_eq!(std::fs::read_to_string(to.join(name)).unwrap(), summary);
        }
    }

    #[test]
    fn two_jobs_in_one_folder_removed_the_state_of_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let place = OutputDir {
            folder: folder.path(),
            results: &[STATE],
        };
        let identity = JobIdentity {
            settings: String::new(),
            input: String::new(),
        };
        let enter = |mode| place.enter(mode, &identity);
        let first = enter(IfExists::New).unwrap();
        let result = place.path("kept.jsonl");
        std::fs::write(&result, "a result").unwrap();
        for mode in [IfExists::New, IfExists::Resume, IfExists::Overwrite] {
            let told = enter(mode).unwrap_err().to_string();
            assert!(told.contains("another job"), "{told}");
        }
        assert!(result.exists());
        drop(first);
        enter(IfExists::Overwrite).unwrap();
        assert!(!result.exists());
    }
}
