//! Failure of a command: a line on standard error, and the exit status.

use std::fmt;
use std::io;

use lookalike_batch::overlap::OverlapSettingsError;
use lookalike_batch::{BatchError, CollectionArchiveError, CollectionError, SettingsError};
use lookalike_corpus::{InputError, OptionError};

use crate::option_style::OptionStyle;
use crate::remedy;

/// Reason why a command ended without its result.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The options contradict each other: status 2.
    Usage(String),
    /// The command failed: status 1.
    Failed(String),
    /// A job failed: status 1, or 2 if its settings contradict each other.
    Job(BatchError),
    /// The command is done, but some input could not be read: status 3.
    Losses {
        /// Number of lost records and files.
        count: u64,
        /// One of them, with the reason.
        first: String,
    },
    /// The command is done, but something is missing from the results, as the line says: status 3.
    Incomplete(String),
    /// The reader of standard output has closed it, as `head` does: status 0.
    ReaderGone,
}

impl Failure {
    /// Creates the failure for an input that was explicitly named, without the remedy of skipping it.
    pub(crate) fn of_named_file(error: InputError) -> Self {
        match error {
            // Its remedy, `--skip-unreadable`, is for lists of files, not for the one file that a command is about.
            InputError::Unsupported { .. } | InputError::Io { .. } => {
                Self::Failed(remedy::file_error_with_remedy(&error))
            }
            error => error.into(),
        }
    }

    /// Formats the failure for readers who write options in this style, as far as it comes from a job.
    pub fn text_in(&self, style: OptionStyle) -> String {
        match self {
            Self::Job(error) => remedy::with_remedy_in(error, style),
            Self::Losses { count, first } => losses_message(*count, first, style),
            Self::Usage(reason) | Self::Failed(reason) | Self::Incomplete(reason) => reason.clone(),
            Self::ReaderGone => "the reader of standard output has gone".to_owned(),
        }
    }
}

impl std::error::Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text_in(OptionStyle::Command))
    }
}

fn losses_message(count: u64, first: &str, style: OptionStyle) -> String {
    let lost = match count {
        1 => format!("1 record or file could not be read: {first}"),
        _ => format!(
            "{} records or files could not be read, for example {first}",
            crate::console::grouped(count)
        ),
    };
    let see = match style {
        OptionStyle::Command => "status 3, see --max-skipped",
        // A call has no exit status.
        OptionStyle::Keyword => "see --max-skipped",
    };
    format!("done, but {lost}; {}", style.write(see))
}

impl From<BatchError> for Failure {
    fn from(error: BatchError) -> Self {
        match error {
            // `lookalike join … | head` is done when `head` is; with any other status, a shell would report a failure.
            BatchError::File { cause, .. }
            | BatchError::Temporary { cause, .. }
            | BatchError::Result { cause, .. }
                if cause.kind() == io::ErrorKind::BrokenPipe =>
            {
                Self::ReaderGone
            }
            error => Self::Job(error),
        }
    }
}

impl From<CollectionError> for Failure {
    fn from(error: CollectionError) -> Self {
        Self::Job(BatchError::Collection(error))
    }
}

impl From<CollectionArchiveError> for Failure {
    fn from(error: CollectionArchiveError) -> Self {
        Self::Job(BatchError::Archive(error))
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        match error {
            // The command line names it twice; all other errors of inputs are found in files.
            InputError::StandardInputAgain => Self::Usage(error.to_string()),
            error => Self::Job(BatchError::Input(error)),
        }
    }
}

impl From<OptionError> for Failure {
    fn from(error: OptionError) -> Self {
        Self::Usage(error.to_string())
    }
}

/// Converts errors of standard output; errors of files are reported with their names.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::ReaderGone
        } else {
            Self::Failed(format!("standard output: {error}: check where it goes"))
        }
    }
}

/// Prints a failure and converts it to the exit status.
pub(crate) fn exit_status(done: Result<(), Failure>) -> u8 {
    let Err(failure) = done else { return 0 };
    let status = match &failure {
        // Nothing is printed either: with `| head`, the user has got what was wanted.
        Failure::ReaderGone => return 0,
        Failure::Losses { .. } | Failure::Incomplete(_) => {
            crate::console::losses(&failure.to_string());
            return 3;
        }
        // An id that is not in the input is no wrong option.
        Failure::Job(BatchError::Settings(SettingsError::Overlap(
            OverlapSettingsError::UnknownDocument(_),
        ))) => 1,
        // The settings of the job are the options of the command.
        Failure::Usage(_) | Failure::Job(BatchError::Settings(_)) => 2,
        Failure::Failed(_) | Failure::Job(_) => 1,
    };
    crate::console::error(&failure.to_string());
    status
}
