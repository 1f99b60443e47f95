//! The error of every option that is written as text.

use thiserror::Error;

/// A word that names no choice of the option it was given for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{found:?} is not a valid {option}: use {expected}")]
pub struct ParseOptionError {
    /// The option in words, such as "shingle".
    pub option: &'static str,
    /// Value that stood in its place.
    pub found: String,
    /// Values that may stand there.
    pub expected: &'static str,
}

impl ParseOptionError {
    pub(crate) fn new(option: &'static str, expected: &'static str, found: &str) -> Self {
        Self {
            option,
            found: found.to_owned(),
            expected,
        }
    }
}
