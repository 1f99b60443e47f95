//! I/O errors of the service as failures of the command.

use crate::failure::Failure;

/// Creates the failure for an I/O error, which names what it concerns.
pub(super) fn failed(what: impl std::fmt::Display) -> impl FnOnce(std::io::Error) -> Failure {
    move |error| Failure::Failed(format!("{what}: {error}"))
}
