//! How a command fails: one line on standard error, and the exit status.

use std::io;
use std::process::ExitCode;

use lookalike_batch::BatchError;
use lookalike_corpus::{InputError, OptionError};

/// Why a command ended without its result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The words on the command line contradict each other: status 2.
    Usage(String),
    /// Something went wrong: status 1.
    Failed(String),
    /// Whoever read standard output has gone, as `head` does: status 0.
    ReaderGone,
}

impl From<BatchError> for Failure {
    fn from(error: BatchError) -> Self {
        match error {
            BatchError::File { source, .. } if source.kind() == io::ErrorKind::BrokenPipe => {
                Self::ReaderGone
            }
            BatchError::Settings(reason) => Self::Usage(reason),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<OptionError> for Failure {
    fn from(error: OptionError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::ReaderGone
        } else {
            Self::Failed(error.to_string())
        }
    }
}

/// Tells of a failure and turns it into the exit status.
pub(crate) fn exit_code(done: Result<(), Failure>) -> ExitCode {
    match done {
        Ok(()) | Err(Failure::ReaderGone) => ExitCode::SUCCESS,
        Err(Failure::Failed(reason)) => {
            crate::console::error(&reason);
            ExitCode::from(1)
        }
        Err(Failure::Usage(reason)) => {
            crate::console::error(&reason);
            ExitCode::from(2)
        }
    }
}
