//! Cleanup after an interrupted command: final results and the state for `--resume` stay, and temporary files are removed.
//!
//! Temporary folders are removed with the command that created them, but a signal would end it before that. So SIGHUP, SIGINT and SIGTERM first
//! remove them, and then end the command with the status that shells use for that. A signal that the caller ignores, as `nohup` does, stays ignored.
//! After SIGKILL, the next job in the same output folder removes them, or the next
//! command that writes the same file.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lookalike_batch::{
    BatchError, CollectionError, CollectionWriter, JobFolder, JobProgress, can_resume,
};
use lookalike_corpus::{spawn_detached, stop_new_files};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::console::Console;
use crate::failure::Failure;
use crate::{machine, remedy};

/// The paths to remove, with what to do about each.
static WATCHED: Mutex<Vec<TemporaryPath>> = Mutex::new(Vec::new());

/// Temporary files that a command leaves behind if it is interrupted.
pub(crate) enum TemporaryPath {
    /// A folder with all its contents.
    Folder(PathBuf),
    /// A file that is being written.
    File(PathBuf),
    /// Unfinished files in a folder of results, except those that `--resume` needs; and the folder if the job created it and it is then empty. Finished
    /// results stay.
    Results {
        folder: PathBuf,
        is_new: bool,
        /// True if the command has `--resume`.
        can_resume: bool,
    },
    /// A folder that is removed unless `--resume` can continue from it.
    Begun(PathBuf),
    /// A checkpoint from which `--resume` can continue; not removed.
    Checkpoint(PathBuf),
    /// The unfinished file of a collection that is being built in a folder.
    Build(PathBuf),
}

impl TemporaryPath {
    fn remove(&self) {
        // Threads that still write there notice it themselves, or end soon, and cannot create new files.
        let _ = match self {
            Self::Folder(folder) => std::fs::remove_dir_all(folder),
            // This is its temporary name: under its own name it is finished.
            Self::File(path) => std::fs::remove_file(path),
            Self::Results { folder, is_new, .. } => {
                let removed = match JobProgress::of(folder) {
                    Ok(Some(JobProgress::Resumable)) | Err(_) => {
                        lookalike_batch::remove_unfinished(folder)
                    }
                    // Of a job that only began, nothing is of use.
                    _ => lookalike_batch::discard_unfinished(folder),
                };
                match is_new {
                    // `remove_dir` refuses a folder that is not empty, so results, checkpoints and files of others stay.
                    true => std::fs::remove_dir(folder),
                    false => removed,
                }
            }
            Self::Build(folder) => {
                CollectionWriter::remove_unfinished(folder);
                Ok(())
            }
            Self::Checkpoint(_) => Ok(()),
            Self::Begun(folder) if can_resume(folder) => Ok(()),
            // It contains nothing to resume from, and no foreign files, otherwise the job would not have started.
            Self::Begun(folder) => std::fs::remove_dir_all(folder),
        };
    }

    /// Returns a note about the path for the user.
    fn note(&self) -> Option<String> {
        let anew = || {
            "nothing was finished that --resume could continue from: the same command starts from the beginning"
                .to_owned()
        };
        match self {
            Self::Folder(_) | Self::File(_) => None,
            Self::Results {
                can_resume: false, ..
            } => None,
            Self::Results { folder, .. } => match JobProgress::of(folder).ok()?? {
                JobProgress::Begun => Some(anew()),
                JobProgress::Resumable => Some(continues_from(folder)),
                JobProgress::Finished => {
                    Some(format!("the results in {} are complete", folder.display()))
                }
            },
            Self::Build(folder) => {
                CollectionWriter::has_unfinished_build(folder).then(|| continues_from(folder))
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

/// Adds what remains of the job in `folder` to its failure, if the job failed only because a disk was full.
pub(crate) fn with_remaining_files(failure: Failure, folder: &Path) -> Failure {
    let is_resumable = || {
        matches!(JobProgress::of(folder), Ok(Some(JobProgress::Resumable)))
            || CollectionWriter::has_unfinished_build(folder)
    };
    match failure {
        Failure::Job(
            error @ (BatchError::Temporary { .. }
            | BatchError::Collection(
                CollectionError::Unwritable { .. } | CollectionError::Unsynced { .. },
            )),
        ) if is_resumable() => Failure::Failed(format!(
            "{}; {}",
            remedy::with_remedy(&error),
            continues_from(folder)
        )),
        failure => failure,
    }
}

/// Creates something that is removed if the command is interrupted.
pub(crate) fn listed<T, E>(
    make: impl FnOnce() -> Result<T, E>,
    path: impl FnOnce(&T) -> TemporaryPath,
) -> Result<T, E> {
    // Created while the list is locked, and signals wait for the list: a signal finds it either listed or not created.
    let mut all = listening();
    let made = make()?;
    if let Some(all) = &mut all {
        all.push(path(&made));
    }
    Ok(made)
}

/// Begins the state for `--resume` in a folder. After an interruption, the user is told whether it can be resumed; if not, the folder is removed.
pub(crate) fn resumable(
    resume: bool,
    console: &Console,
    begin: impl FnOnce() -> Result<JobFolder, BatchError>,
) -> Result<JobFolder, Failure> {
    let folder = listed(begin, |folder| {
        TemporaryPath::Begun(folder.path().to_owned())
    })?;
    warn_about_resume(resume, folder.was_resumable(), console);
    Ok(folder)
}

/// Warns before a job with `--resume` if its folder has nothing to resume from.
pub(crate) fn warn_of_nothing_in(folder: &Path, console: &Console) {
    // A folder that cannot be read is an error of the job, which soon follows.
    let progress = JobProgress::of(folder).ok().flatten();
    let is_there = matches!(
        progress,
        Some(JobProgress::Resumable | JobProgress::Finished)
    );
    warn_about_resume(true, is_there, console);
}

/// Warns before a job if it should be resumed but there is nothing to resume from, or if there is but it is not resumed.
pub(crate) fn warn_about_resume(resume: bool, is_there: bool, console: &Console) {
    let told = match (resume, is_there) {
        (true, false) => "there is nothing to resume: no earlier job got far enough",
        (false, true) => {
            "an interrupted job left its progress here, which --resume would have continued from; this one starts from the beginning"
        }
        (true, true) | (false, false) => return,
    };
    console.warn(told);
}

/// Removes the path if the command is interrupted, or tells the user what can be resumed from it.
pub(crate) fn watch(watched: TemporaryPath) {
    if let Some(mut all) = listening() {
        all.push(watched);
    }
}

/// Returns the list of watched paths, after starting to handle signals. Returns `None` if signals belong to another program, which ends the job
/// through its observer.
fn listening() -> Option<MutexGuard<'static, Vec<TemporaryPath>>> {
    if crate::caller::is_program() {
        return None;
    }
    let all = lock_watched();
    // The thread starts with the first watched path, so commands that leave nothing behind keep the system's default handling.
    if all.is_empty() {
        let (ready, listening) = channel();
        // If the thread cannot be started, signals keep their default effect.
        let thread = std::thread::Builder::new().name("signals".to_owned());
        let _ = spawn_detached(thread, move || wait(&ready));
        // Wait until signals are handled before anything is created that a signal would leave behind. If handling fails, the channel is closed.
        let _ = listening.recv();
    }
    Some(all)
}

/// Returns true if an interruption would remove what a build or join began in `folder`.
#[cfg(test)]
pub(crate) fn removed_on_interrupt(folder: &Path) -> bool {
    let is_begun =
        |path: &TemporaryPath| matches!(path, TemporaryPath::Begun(begun) if begun == folder);
    lock_watched().iter().any(is_begun)
}

fn lock_watched() -> MutexGuard<'static, Vec<TemporaryPath>> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns at once, except in an interrupted command, where it never returns: a failure there is only caused by the removal of files, and the message
/// about the interruption is the last one.
pub(crate) fn park_if_interrupted() {
    drop(lock_watched());
}

/// Signals that it is `ready`, waits for a signal, removes the watched paths, and ends the process with status 128 plus the number of the signal.
fn wait(ready: &Sender<()>) {
    // Returning drops `ready`, which tells the waiting thread that signals keep their default effect.
    let handled = [SIGHUP, SIGINT, SIGTERM].into_iter();
    let handled = handled.filter(|signal| !machine::is_ignored(*signal));
    let Ok(mut signals) = Signals::new(handled) else {
        return;
    };
    if ready.send(()).is_err() {
        return;
    }
    let Some(signal) = signals.forever().next() else {
        return;
    };
    // Never released: threads that want to watch a path or end wait here, and the process ends meanwhile.
    let watched = lock_watched();
    crate::console::error(&end(&watched));
    // Held until the process ends: see `park_if_interrupted`.
    #[expect(
        clippy::exit,
        reason = "the other threads are at work and would not hear of it"
    )]
    std::process::exit(128 + signal);
}

/// Removes the watched paths, and returns a message about what remains.
fn end(watched: &[TemporaryPath]) -> String {
    let told = || watched.iter().find_map(TemporaryPath::note);
    // Determined before anything is removed, because removal changes the answer.
    let before = told();
    stop_new_files();
    watched.iter().for_each(TemporaryPath::remove);
    // A job may have finished its last file meanwhile; or it failed because its files were removed, and forgot what it began.
    match told().or(before) {
        Some(told) => format!("interrupted: {told}"),
        None => "interrupted".to_owned(),
    }
}
