//! Values of options, and the command line as text.

use std::ffi::OsString;

use lookalike_corpus::OutputFormat;

use crate::caller;

/// A share as `0.8` or `80%`; what it may be is checked where its meaning is known.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse().map(|percent: f64| percent / 100.0),
        None => text.parse(),
    };
    share.map_err(|_| format!("{text:?} is not a share: use a value such as 0.8 or 80%"))
}

/// A share above 0 and at most 1.
pub(crate) fn positive_share(text: &str) -> Result<f64, String> {
    let share = share(text).ok();
    share
        .filter(|share| *share > 0.0 && *share <= 1.0)
        .ok_or_else(|| format!("{text:?} is not a share above 0 and at most 1"))
}

/// 1 to 1024 threads.
pub(crate) fn threads(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|n| (1..=1024).contains(n))
        .ok_or_else(|| format!("{text:?} is not a number of threads from 1 to 1024"))
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: OsString) -> String {
    let text = word.to_string_lossy().into_owned();
    // No `~`, `*` or `!`: only what every shell leaves alone.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        // Within single quotes nothing is special but the quote itself: it ends them, stands escaped, and
        // begins them again.
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// The command line as it was given, quoted where a shell would need it.
pub(crate) fn command_line() -> String {
    let words = caller::words().into_iter().map(quoted);
    std::iter::once("lookalike".to_owned())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The format of results.
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
