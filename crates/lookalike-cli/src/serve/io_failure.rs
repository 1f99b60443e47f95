//! I/O errors of the service as failures of the command.

use crate::failure::Failure;
use crate::remedy::MORE_THREADS;

/// Creates the failure for an I/O error, which names what it concerns.
pub(super) fn failed(what: impl std::fmt::Display) -> impl FnOnce(std::io::Error) -> Failure {
    move |error| Failure::Failed(format!("{what}: {error}"))
}

/// Creates the failure for a thread that the system refuses.
pub(super) fn refused_thread(error: std::io::Error) -> Failure {
    Failure::Failed(format!(
        "a thread cannot be started: {error}: {MORE_THREADS}"
    ))
}
