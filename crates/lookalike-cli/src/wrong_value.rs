//! Errors about values of options, in words that help: clap knows neither where a default came from nor what a number is to users.

use std::error::Error as _;
use std::ffi::OsString;
use std::num::ParseIntError;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Returns the error with the file or environment variable that the value came from, and with a reason instead of Rust's words about numbers. `file` is
/// the configuration file, if there is one. Errors about values of the command line stay as they are if clap gives the reason itself.
pub(crate) fn explained(
    error: clap::Error,
    words: &[OsString],
    file: Option<&Path>,
) -> clap::Error {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let is_value = matches!(
        error.kind(),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation
    );
    let Some(argument) = context(ContextKind::InvalidArg).filter(|_| is_value) else {
        return error;
    };
    // clap leaves out a value that is empty.
    let value = context(ContextKind::InvalidValue).unwrap_or_default();
    let origin = origin(argument, value, words, file);
    let reason = match (error.source(), error.get(ContextKind::ValidValue)) {
        (Some(source), _) if source.is::<ParseIntError>() => {
            "not a whole number such as 7".to_owned()
        }
        (Some(source), _) => source.to_string(),
        (None, _) if origin.is_empty() => return error,
        (None, Some(ContextValue::Strings(valid))) if !valid.is_empty() => {
            format!("use one of {}", valid.join(", "))
        }
        (None, _) => "a value is required".to_owned(),
    };
    clap::Error::raw(
        error.kind(),
        format!("{origin}invalid value '{value}' for '{argument}': {reason}\n"),
    )
}

/// Returns the beginning of a message about a value that is not on the command line.
fn origin(argument: &str, value: &str, words: &[OsString], file: Option<&Path>) -> String {
    let flag = argument.split(' ').next().unwrap_or_default();
    let is_flag = |word: &OsString| {
        let word = word.to_string_lossy();
        let rest = word.strip_prefix(flag);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    if !flag.starts_with("--") || words.iter().any(is_flag) {
        return String::new();
    }
    let variable = format!(
        "LOOKALIKE_{}",
        flag[2..].replace('-', "_").to_ascii_uppercase()
    );
    match (std::env::var(&variable), file) {
        (Ok(set), _) if set == value => format!("environment variable {variable}: "),
        (_, Some(file)) => format!("{}: ", file.display()),
        _ => String::new(),
    }
}
