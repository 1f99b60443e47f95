//! Values of options, and the command line as text.

use std::any::TypeId;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Arg, Command};
use lookalike_corpus::OutputFormat;

use crate::caller;
use crate::failure::Failure;

/// Parses a share, such as `0.8` or `80%`. Its range is checked where its meaning is known.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse().map(|percent: f64| percent / 100.0),
        None => text.parse(),
    };
    share.map_err(|_| format!("{text:?} is not a share: use a value such as 0.8 or 80%"))
}

/// Parses a share above 0 and at most 1.
pub(crate) fn positive_share(text: &str) -> Result<f64, String> {
    let share = share(text).ok();
    share
        .filter(|share| *share > 0.0 && *share <= 1.0)
        .ok_or_else(|| format!("{text:?} is not a share above 0 and at most 1"))
}

/// Parses a number of threads: 1 to 1024.
pub(crate) fn threads(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|n| (1..=1024).contains(n))
        .ok_or_else(|| format!("{text:?} is not a number of threads from 1 to 1024"))
}

/// Refuses a threshold that is no resemblance of a pair.
pub(crate) fn ensure_resemblance(threshold: f64) -> Result<(), Failure> {
    match threshold > 0.0 && threshold <= 1.0 {
        true => Ok(()),
        false => Err(Failure::Usage(format!(
            "--threshold {threshold} is not a resemblance: give one above 0 and at most 1"
        ))),
    }
}

/// Quotes a word for a shell.
pub(crate) fn quoted(word: OsString) -> String {
    let text = match word.into_string() {
        Ok(text) => text,
        // Most shells read such bytes in this form: bash, zsh, ksh.
        Err(word) => return format!("$'{}'", word.as_encoded_bytes().escape_ascii()),
    };
    // Without `~`, `*` or `!`: only characters that every shell leaves alone.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        // Within single quotes only the quote itself is special: close the quotes, write it escaped, and open them again.
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// Returns the command line as given, quoted as a shell needs it.
pub(crate) fn command_line() -> String {
    let words = caller::words().into_iter().map(quoted);
    std::iter::once("lookalike".to_owned())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Parses the format of results.
pub(crate) fn output_format(text: &str) -> Result<OutputFormat, String> {
    match text {
        "jsonl" => Ok(OutputFormat::JsonLines),
        "parquet" if cfg!(feature = "parquet") => Ok(OutputFormat::Parquet),
        "parquet" => {
            Err("this build has no Parquet, which needs the Cargo feature `parquet`: install lookalike with `--features full`".to_owned())
        }
        _ => Err(format!("unknown format {text:?}: use jsonl or parquet")),
    }
}

/// Parses the path of an output that cannot go to standard output: a file in a format of its own, or a directory.
pub(crate) fn output_path() -> impl TypedValueParser<Value = PathBuf> {
    path_without_stream("this cannot go to standard output: name a file (./- for one called -)")
}

fn path_without_stream(why: &'static str) -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(move |path| match is_standard_output(&path) {
        // The file would have a name that other commands take for standard input.
        true => Err(why),
        false => Ok(path),
    })
}

/// Makes all arguments with a path refuse `-`, except those for which it stands for a standard stream, and those of [`output_path`].
pub(crate) fn refuse_standard_streams(command: Command) -> Command {
    let why = "this cannot be standard input or output: name a file (./- for one called -)";
    let refusing = |argument: Arg| {
        let is_path = argument.get_value_parser().type_id() == TypeId::of::<PathBuf>();
        match is_path && !["output", "files"].contains(&argument.get_id().as_str()) {
            true => argument.value_parser(path_without_stream(why)),
            false => argument,
        }
    };
    command
        .mut_args(refusing)
        .mut_subcommands(refuse_standard_streams)
}

/// Returns true if `-o` with this path stands for standard output.
pub(crate) fn is_standard_output(path: &Path) -> bool {
    let streams = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
    path.to_str().is_some_and(|path| streams.contains(&path))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn words_that_are_not_utf8_were_quoted_without_their_bytes() {
        for (word, expected) in [
            (&b"caf\xe9's \\ page"[..], r"$'caf\xe9\'s \\ page'"),
            (b"it's caf\xc3\xa9", "'it'\\''s caf\u{e9}'"),
            (b"a/b-c.jsonl", "a/b-c.jsonl"),
        ] {
            assert_eq!(quoted(OsString::from_vec(word.to_vec())), expected);
        }
    }
}
