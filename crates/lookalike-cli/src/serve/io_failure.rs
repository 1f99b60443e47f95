//! I/O errors of the service as failures of the command.

use crate::failure::Failure;

/// The failure for an I/O error of something.
pub(super) fn failed(what: impl std::fmt::Display) -> impl FnOnce(std::io::Error) -> Failure {
    move |error| Failure::Failed(format!("{what}: {error}"))
}
