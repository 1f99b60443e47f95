//! Reasons why a job refuses to work in a folder.

use std::ffi::OsString;

use lookalike_corpus::SUMMARY_FILE;

/// Reason why a folder cannot be used for a job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FolderRefusal {
    /// Another job is working in it.
    #[error(
        "another job is using this directory: wait until it has finished, or choose another directory"
    )]
    InUse,
    /// It holds results that must not be replaced.
    #[error("already holds results ({name})")]
    HoldsResults {
        /// Name of one result.
        name: String,
        /// True if the job that wrote them could be resumed, had it not finished.
        is_resumable: bool,
    },
    /// The collection has what an interrupted job kept, added by that job or by an equal one, and the results of the interrupted job are not in place.
    #[error(
        "an interrupted job in this directory, or an equal one elsewhere, has added the documents that it kept to the collection, and their list is not in place here"
    )]
    UnlistedAddition,
    /// A file has the name of a result, but no job wrote it.
    #[error(
        "{0} exists, but no {SUMMARY_FILE} names it as a result, so it may be yours: move it away, or choose another directory"
    )]
    NoResults(String),
    /// A result is there that this command does not write and so would not replace.
    #[error(
        "{0} is a result of another command, which this one does not replace: remove it, or choose another directory"
    )]
    OtherCommand(String),
    /// The job to resume is this one, and is finished: nothing is left to do.
    #[error("the job in this directory is finished ({SUMMARY_FILE} exists): nothing to resume")]
    Finished,
    /// The job to resume read other files, or they have changed.
    #[error("the job to resume read other files, or they have changed since")]
    OtherInput,
    /// An input has changed since the job to resume read it.
    #[error("{name} has changed since the job to resume read it")]
    ChangedInput {
        /// The input.
        name: String,
    },
    /// The job to resume has other settings.
    #[error("the job to resume has other settings: {there} there, {now} now")]
    OtherSettings {
        /// Settings that only the job to resume has.
        there: String,
        /// Settings that only this job has.
        now: String,
    },
    /// Another job is writing the output beside the folder.
    #[error(
        "another {job} is writing this output: wait until it has finished, or choose another output"
    )]
    OutputInUse {
        /// Kind of job, such as `build`.
        job: &'static str,
    },
    /// A file there does not belong to an interrupted job.
    #[error(
        "{} is not a file of an interrupted {job} and may be yours: move it away, or choose another output",
        name.display()
    )]
    OtherFile {
        /// Kind of job, such as `build`.
        job: &'static str,
        /// The file.
        name: OsString,
    },
}
