//! Answers on standard output.

use std::io::Write as _;

use serde_json::Value;

use crate::failure::Failure;

/// Prints an answer on a line.
pub(super) fn print(value: &Value) -> Result<(), Failure> {
    Ok(writeln!(std::io::stdout(), "{value}")?)
}
