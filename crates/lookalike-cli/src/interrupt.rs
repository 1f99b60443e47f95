//! Cleanup after an interrupted command, which leaves results under their final names and what `--resume` goes on with, no temporary files.
//!
//! Temporary folders vanish with the command that made them, but a signal ends it before. So SIGINT and SIGTERM remove
//! them first, and then end the command with the status that shells give such an end. After SIGKILL the next job in the
//! same output folder does it, or the next command that writes the same file.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lookalike_batch::{
    BatchError, CollectionError, CollectionWriter, JobFolder, JobProgress, can_resume,
};
use lookalike_corpus::{AtomicFile, spawn_detached, stop_new_files};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tempfile::TempDir;

use crate::failure::Failure;
use crate::remedy;

/// Path that is to be removed.
static WATCHED: Mutex<Vec<TemporaryPath>> = Mutex::new(Vec::new());

enum TemporaryPath {
    /// A folder with all that is in it.
    Folder(PathBuf),
    /// A file that is being written.
    File(PathBuf),
    /// Unfinished files in a folder of results.
    Unfinished(PathBuf),
    /// All of a job that cannot be resumed, and the folder of its results, if that is empty then and the job made it.
    Results { folder: PathBuf, is_new: bool },
    /// Nothing, if the folder is what `--resume` goes on with.
    Begun(PathBuf),
    /// Nothing: a checkpoint that `--resume` goes on with.
    Checkpoint(PathBuf),
    /// The unfinished file of a collection that is being built in a folder.
    Build(PathBuf),
}

impl TemporaryPath {
    fn remove(&self) {
        // Whoever still writes there finds out by itself, or is gone in a moment, and begins nothing new.
        let _ = match self {
            Self::Folder(folder) => std::fs::remove_dir_all(folder),
            // By its temporary name: under its own it is finished.
            Self::File(path) => std::fs::remove_file(path),
            Self::Unfinished(folder) => lookalike_batch::remove_unfinished(folder),
            Self::Results { folder, is_new } => {
                let forgotten = lookalike_batch::forget_unfinished(folder);
                match is_new {
                    true => std::fs::remove_dir(folder),
                    false => forgotten,
                }
            }
            Self::Build(folder) => {
                CollectionWriter::remove_unfinished(folder);
                Ok(())
            }
            Self::Checkpoint(_) => Ok(()),
            Self::Begun(folder) if can_resume(folder) => Ok(()),
            // Nothing that a job could go on from, and nothing of anybody else's: the job would not have begun.
            Self::Begun(folder) => std::fs::remove_dir_all(folder),
        };
    }

    /// Note about it for the user.
    fn told(&self) -> Option<String> {
        let anew = || {
            "nothing was finished that --resume could continue from: the same command starts from the beginning"
                .to_owned()
        };
        match self {
            Self::Folder(_) | Self::File(_) | Self::Results { .. } => None,
            Self::Unfinished(folder) => match JobProgress::of(folder).ok()?? {
                JobProgress::Begun => Some(anew()),
                JobProgress::Resumable => Some(continues_from(folder)),
                JobProgress::Finished => {
                    Some(format!("the results in {} are complete", folder.display()))
                }
            },
            Self::Build(folder) => {
                CollectionWriter::is_begun(folder).then(|| continues_from(folder))
            }
            Self::Checkpoint(file) => file.exists().then(|| continues_from(file)),
            Self::Begun(folder) if can_resume(folder) => Some(continues_from(folder)),
            Self::Begun(folder) => folder.exists().then(anew),
        }
    }
}

fn continues_from(path: &Path) -> String {
    format!("--resume continues from {}", path.display())
}

/// A failure of a job in `folder`, with what is left of the job where room on a disk was all that it lacked.
pub(crate) fn told_with_what_is_left(failure: Failure, folder: &Path) -> Failure {
    let is_resumable = || {
        matches!(JobProgress::of(folder), Ok(Some(JobProgress::Resumable)))
            || CollectionWriter::is_begun(folder)
    };
    match failure {
        Failure::Job(
            error @ (BatchError::Temporary { .. }
            | BatchError::Collection(CollectionError::Unwritable { .. })),
        ) if is_resumable() => Failure::Failed(format!(
            "{}; {}",
            remedy::told(&error),
            continues_from(folder)
        )),
        failure => failure,
    }
}

/// Makes a temporary folder, which is removed when the command is interrupted.
pub(crate) fn temporary_folder(make: impl FnOnce() -> io::Result<TempDir>) -> io::Result<TempDir> {
    // A signal that comes meanwhile waits for the list.
    // The folder is made while the list is locked: a signal finds it either listed or not made.
    let mut all = listening();
    let folder = make()?;
    if let Some(all) = &mut all {
        all.push(TemporaryPath::Folder(folder.path().to_owned()));
    }
    Ok(folder)
}

/// Begins a file, which vanishes when the command is interrupted before it has its name.
pub(crate) fn unfinished_file(
    begin: impl FnOnce() -> io::Result<AtomicFile>,
) -> io::Result<AtomicFile> {
    // As above: listed or not begun.
    let mut all = listening();
    let file = begin()?;
    if let Some(all) = &mut all {
        all.push(TemporaryPath::File(file.temporary().to_owned()));
    }
    Ok(file)
}

/// Begins what `--resume` goes on with, in a folder: an interruption then says whether it does, and removes the folder if not.
pub(crate) fn resumable(
    resume: bool,
    quiet: bool,
    begin: impl FnOnce() -> Result<JobFolder, BatchError>,
) -> Result<JobFolder, Failure> {
    // As above: listed or not made.
    let mut all = listening();
    let folder = begin()?;
    if let Some(all) = &mut all {
        all.push(TemporaryPath::Begun(folder.path().to_owned()));
    }
    drop(all);
    if !quiet {
        tell_of_progress(resume, folder.was_resumable());
    }
    Ok(folder)
}

/// Has unfinished results in `folder` removed when the command is interrupted.
pub(crate) fn remove_unfinished(folder: &Path) {
    watch(TemporaryPath::Unfinished(folder.to_owned()));
}

/// Has the unfinished file of a collection that is built in `folder` removed when the command is interrupted, and told that it can be resumed.
pub(crate) fn remove_unfinished_build(folder: &Path) {
    watch(TemporaryPath::Build(folder.to_owned()));
}

/// Has all that a job which cannot be resumed makes in `folder` removed when the command is interrupted, and the folder if it `is_new`.
pub(crate) fn remove_results(folder: &Path, is_new: bool) {
    let folder = folder.to_owned();
    watch(TemporaryPath::Results { folder, is_new });
}

/// Has it told, when the command is interrupted, that it can be resumed from a checkpoint.
pub(crate) fn keep_checkpoint(path: &Path) {
    watch(TemporaryPath::Checkpoint(path.to_owned()));
}

/// Says before a job that is to be resumed when there is nothing in its folder to go on from.
pub(crate) fn warn_of_nothing_in(folder: &Path) {
    // A folder that cannot be looked at is an error of the job, a moment later.
    let progress = JobProgress::of(folder).ok().flatten();
    let is_there = matches!(
        progress,
        Some(JobProgress::Resumable | JobProgress::Finished)
    );
    tell_of_progress(true, is_there);
}

/// Says before a job when it is to be resumed and there is nothing to go on from, and when there is and it is not to be resumed.
pub(crate) fn tell_of_progress(resume: bool, is_there: bool) {
    let told = match (resume, is_there) {
        (true, false) => "there is nothing to resume: no earlier job got far enough",
        (false, true) => {
            "an interrupted job left its progress here, which --resume would have continued from; this one starts from the beginning"
        }
        (true, true) | (false, false) => return,
    };
    crate::console::warning(told);
}

fn watch(watched: TemporaryPath) {
    if let Some(mut all) = listening() {
        all.push(watched);
    }
}

/// The list of what is watched, once signals are heard; none where they are another program's, which ends the job by its observer.
fn listening() -> Option<MutexGuard<'static, Vec<TemporaryPath>>> {
    if crate::caller::is_program() {
        return None;
    }
    let all = watched_so_far();
    // The thread begins with the first path that is watched: commands that leave nothing behind keep the
    // default of the system.
    if all.is_empty() {
        let (ready, listening) = channel();
        // Without a thread to wait for signals they do what they always did.
        let thread = std::thread::Builder::new().name("signals".to_owned());
        let _ = spawn_detached(thread, move || wait(&ready));
        // Nothing is made that a signal would leave behind before signals are heard; if they cannot be, the channel is closed.
        let _ = listening.recv();
    }
    Some(all)
}

/// True if an interruption would remove what a build or join began in `folder`.
#[cfg(test)]
pub(crate) fn is_to_be_removed(folder: &Path) -> bool {
    let is_begun =
        |path: &TemporaryPath| matches!(path, TemporaryPath::Begun(begun) if begun == folder);
    watched_so_far().iter().any(is_begun)
}

fn watched_so_far() -> MutexGuard<'static, Vec<TemporaryPath>> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns at once, but never in a command that was interrupted: what failed there failed for want of the files that the
/// interruption removed, and the last word is the interruption's.
pub(crate) fn give_way() {
    drop(watched_so_far());
}

/// Says that it is `ready`, waits for a signal, removes what is watched and ends the process with 128 and the number of the signal.
fn wait(ready: &Sender<()>) {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else {
        return;
    };
    if ready.send(()).is_err() {
        return;
    }
    let Some(signal) = signals.forever().next() else {
        return;
    };
    // Taken for good: whoever wants to watch or to end from here on waits, and the process ends meanwhile.
    let watched = watched_so_far();
    crate::console::error(&end(&watched));
    // Held to the end of the process: see `give_way`.
    #[expect(
        clippy::exit,
        reason = "the other threads are at work and would not hear of it"
    )]
    std::process::exit(128 + signal);
}

/// Removes what is watched, and tells what is left.
fn end(watched: &[TemporaryPath]) -> String {
    let told = || watched.iter().find_map(TemporaryPath::told);
    // Looked at before anything is removed, since removal changes what can be told.
    let before = told();
    stop_new_files();
    watched.iter().for_each(TemporaryPath::remove);
    // A job may have got its last file into place meanwhile; or it failed for want of its files, and forgot what it began.
    match told().or(before) {
        Some(told) => format!("interrupted: {told}"),
        None => "interrupted".to_owned(),
    }
}
