//! The configuration file of the service: its entries are the long flags of `lookalike serve`, and apply unless a flag or the environment overrides
//! them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::Command;

use crate::failure::Failure;

/// Flags that only make sense on a command line.
const COMMAND_LINE_ONLY: [&str; 5] = ["config", "make_key", "print_config", "help", "version"];

/// Returns the command with defaults from the configuration file that a `serve` command line names.
pub(crate) fn with_defaults(command: Command, words: &[OsString]) -> Result<Command, Failure> {
    // Looked for before clap parses the line, because the file changes the definition that clap parses with.
    let Some(path) = named(words) else {
        return Ok(command);
    };
    let wrong = |what: String| Failure::Failed(format!("{}: {what}", path.display()));
    let text = std::fs::read_to_string(&path)
        .map_err(|error| wrong(format!("{error}: name another file with --config")))?;
    let table: toml::Table = text.parse().map_err(|error| wrong(format!("{error}")))?;
    let mut command = command;
    for (name, value) in &table {
        let id = name.replace('-', "_");
        let serve = command.find_subcommand("serve");
        // Checked, because a misspelt name would otherwise leave a limit at its default.
        let known = serve.is_some_and(|serve| {
            serve
                .get_arguments()
                .any(|known| known.get_id() == id.as_str())
        });
        if !known || COMMAND_LINE_ONLY.contains(&id.as_str()) {
            return Err(wrong(format!(
                "{name:?} is not a setting: use the long flags of `lookalike serve --help`, with - or _"
            )));
        }
        if id != *name && table.contains_key(&id) {
            return Err(wrong(format!(
                "{name:?} is set twice, also as {id:?}: keep one"
            )));
        }
        let value = shown(value).ok_or_else(|| {
            wrong(format!(
                "{name:?} must be a string, a number, true or false"
            ))
        })?;
        // Leaking is fine, because the command exists as long as the process.
        let value: &'static str = Box::leak(value.into_boxed_str());
        command = command.mut_subcommand("serve", |serve| {
            // Set as a default, which clap ranks below flags and the environment, and checks with the same parser as a flag.
            serve.mut_arg(&id, |argument| argument.default_value(value))
        });
    }
    Ok(command)
}

fn shown(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(truth) => Some(truth.to_string()),
        _ => None,
    }
}

/// Returns the configuration file named by a `serve` command line or the environment.
pub(crate) fn named(words: &[OsString]) -> Option<PathBuf> {
    let mut words = words.iter().skip(1);
    if words.next()? != "serve" {
        return None;
    }
    while let Some(word) = words.next() {
        if word == "--config" {
            return words.next().map(PathBuf::from);
        }
        if let Some(path) = word.as_bytes().strip_prefix(b"--config=") {
            return Some(Path::new(OsStr::from_bytes(path)).to_owned());
        }
    }
    // clap refuses an empty path.
    let path = std::env::var_os("LOOKALIKE_CONFIG").filter(|path| !path.is_empty());
    path.map(PathBuf::from)
}
