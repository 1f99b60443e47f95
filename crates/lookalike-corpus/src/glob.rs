//! Globs that the shell did not expand: `data/**/part-*.jsonl.gz`.
//!
//! A pattern is split at `/`. Each component is literal, a wildcard for one name (`*`, `?`, `[a-z]`, `{a,b}`), or `**` for any number of directories.
//! As in a shell, a wildcard matches a name that begins with a dot only if the component does. Likewise, `leave_out` is asked about what Spark or Hive
//! keeps about a table, unless the component begins with an underscore.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use crate::error::OptionError;

/// Returns true if an argument that names no file should be tried as a glob.
pub(crate) fn is_glob(argument: &OsStr) -> bool {
    argument
        .as_encoded_bytes()
        .iter()
        .any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'{'))
}

/// Returns the paths that match a pattern, sorted by name within each directory. `**` does not enter directories for which `leave_out` returns true,
/// and neither they nor such bookkeeping of tables match. Calls `unreadable` with paths that cannot be examined and may have matched.
///
/// # Errors
/// Fails if the pattern is malformed.
pub(crate) fn expand(
    pattern: &OsStr,
    leave_out: &mut dyn FnMut(&Path) -> bool,
    unreadable: &mut dyn FnMut(&Path, io::Error),
) -> Result<Vec<PathBuf>, String> {
    let mut paths = vec![PathBuf::new()];
    // Expanded component by component, rather than by walking everything and matching it: `/data/2024/*.gz` lists one directory.
    let mut was_any_depth = false;
    for component in Path::new(pattern).components() {
        let is_any_depth = component.as_os_str() == "**";
        // `**/**` means the same as `**`.
        if is_any_depth && std::mem::replace(&mut was_any_depth, is_any_depth) {
            continue;
        }
        was_any_depth = is_any_depth;
        paths = match component {
            Component::Normal(name) if name == "**" => all_below(&paths, leave_out, unreadable),
            Component::Normal(name) if is_glob(name) => {
                matching(&paths, name, leave_out, unreadable)?
            }
            other => paths.iter().map(|path| path.join(other)).collect(),
        };
    }
    // A leading `**` starts at the current directory.
    for path in &mut paths {
        if path.as_os_str().is_empty() {
            *path = PathBuf::from(".");
        }
    }
    // Literal components were joined without a check. Not `metadata`: a dangling link is a match, which is then reported as unreadable.
    paths.retain(|path| match path.symlink_metadata() {
        Ok(_) => true,
        Err(error) => {
            if !is_not_found(&error) {
                unreadable(path, error);
            }
            false
        }
    });
    paths.dedup();
    let last = Path::new(pattern).file_name().unwrap_or_default();
    if is_glob(last) && last != "**" {
        let wants_bookkeeping = last.as_encoded_bytes().starts_with(b"_");
        let is_meant =
            |path: &Path| wants_bookkeeping && path.file_name().is_some_and(is_bookkeeping);
        paths.retain(|path| !path.is_dir() || is_meant(path) || !leave_out(path));
    }
    Ok(paths)
}

fn matching(
    paths: &[PathBuf],
    name: &OsStr,
    leave_out: &mut dyn FnMut(&Path) -> bool,
    unreadable: &mut dyn FnMut(&Path, io::Error),
) -> Result<Vec<PathBuf>, String> {
    let pattern = pattern_of_names(name)?;
    let hidden = is_hidden(name);
    let wants_bookkeeping = name.as_encoded_bytes().starts_with(b"_");
    let mut found = Vec::new();
    for path in paths {
        let names = entries(path, unreadable)
            .into_iter()
            .filter(|entry| hidden || !is_hidden(entry))
            .filter(|entry| matches(&pattern, entry.as_encoded_bytes()));
        for entry in names {
            let below = path.join(&entry);
            if wants_bookkeeping || !is_bookkeeping(&entry) || !leave_out(&below) {
                found.push(below);
            }
        }
    }
    Ok(found)
}

/// Returns true if a pattern matches a name, character by character.
pub(crate) fn matches(pattern: &str, name: &[u8]) -> bool {
    // The library matches bytes. Map each distinct non-ASCII character to a single byte, in order, so that ranges keep their meaning.
    if let Ok(text) = str::from_utf8(name)
        && !(text.is_ascii() && pattern.is_ascii())
    {
        let wide = |character: &char| !character.is_ascii();
        let mut wide: Vec<char> = pattern.chars().chain(text.chars()).filter(wide).collect();
        wide.sort_unstable();
        wide.dedup();
        if wide.len() <= 0x80 {
            let byte = |character: char| match wide.binary_search(&character) {
                Ok(number) => 0x80 + number as u8,
                Err(_) => character as u8,
            };
            let [pattern, name] =
                [pattern, text].map(|text| text.chars().map(byte).collect::<Vec<u8>>());
            return fast_glob::glob_match(pattern, name);
        }
    }
    fast_glob::glob_match(pattern, name)
}

fn pattern_of_names(name: &OsStr) -> Result<String, String> {
    let text = name
        .to_str()
        .ok_or("wildcards cannot be combined with bytes that are not UTF-8")?;
    fast_glob::validate(text).map_err(|error| error.to_string())?;
    // A leading exclamation mark would negate the pattern.
    let escape = if text.starts_with('!') { r"\" } else { "" };
    Ok(format!("{escape}{text}"))
}

/// A pattern of files and folders to leave out. Without `/` it is matched against their names, else against their paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExcludePattern(String);

impl FromStr for ExcludePattern {
    type Err = OptionError;

    fn from_str(text: &str) -> Result<Self, OptionError> {
        match pattern_of_names(OsStr::new(text)) {
            Ok(pattern) if !text.is_empty() => Ok(Self(pattern)),
            Ok(_) => Err(OptionError("an empty pattern matches nothing".to_owned())),
            Err(reason) => Err(OptionError(format!(
                "{text:?} is not a valid glob: {reason}"
            ))),
        }
    }
}

impl ExcludePattern {
    /// Returns true if the pattern leaves out the file or folder at `path`.
    pub(crate) fn matches(&self, path: &Path) -> bool {
        let subject = match self.0.contains('/') {
            true => Some(path.as_os_str()),
            false => path.file_name(),
        };
        subject.is_some_and(|subject| matches(&self.0, subject.as_encoded_bytes()))
    }
}

/// Returns the directories and all directories below them, without following links.
fn all_below(
    paths: &[PathBuf],
    leave_out: &mut dyn FnMut(&Path) -> bool,
    unreadable: &mut dyn FnMut(&Path, io::Error),
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    // A directory may be below several of the paths; its descendants are found once.
    let mut entered = HashSet::new();
    let mut stack: Vec<PathBuf> = paths.iter().rev().cloned().collect();
    while let Some(path) = stack.pop() {
        if !entered.insert(path.clone()) {
            continue;
        }
        let below = entries(&path, unreadable)
            .into_iter()
            .filter(|name| !is_hidden(name))
            .map(|name| path.join(name))
            // Following a link to a directory above would make the walk endless.
            .filter(|path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir()))
            .filter(|path| !leave_out(path));
        stack.extend(below.collect::<Vec<_>>().into_iter().rev());
        found.push(path);
    }
    found
}

/// Returns the names in a directory, sorted bytewise; empty if it is not a directory or cannot be listed.
fn entries(path: &Path, unreadable: &mut dyn FnMut(&Path, io::Error)) -> Vec<OsString> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    let name = |entry: io::Result<fs::DirEntry>| entry.map(|entry| entry.file_name());
    let listed = fs::read_dir(path).and_then(|list| list.map(name).collect::<io::Result<_>>());
    let mut names: Vec<OsString> = listed.unwrap_or_else(|error| {
        if !is_not_found(&error) {
            unreadable(path, error);
        }
        Vec::new()
    });
    names.sort();
    names
}

/// Returns true if nothing exists at the path: no file, a file in place of a directory, or a link to itself.
fn is_not_found(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
        || error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

pub(crate) fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().first() == Some(&b'.')
}

/// Returns true for a name under which Spark, Hive or Delta Lake keeps something about the table in a folder: not a part of its rows.
pub(crate) fn is_bookkeeping(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let names: [&[u8]; 6] = [
        b"_SUCCESS",
        b"_metadata",
        b"_common_metadata",
        b"_delta_log",
        b"_spark_metadata",
        b"_temporary",
    ];
    // The other two end in the number of a transaction.
    let number = name.strip_prefix(b"_started_").or_else(|| {
        let rest = name.strip_prefix(b"_committed_")?;
        Some(rest.strip_prefix(b"vacuum").unwrap_or(rest))
    });
    names.contains(&name) || number.is_some_and(|number| number.iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_question_mark_stood_for_a_byte_of_a_letter() {
        for (pattern, name, is_match) in [
            ("?.txt", "ä.txt", true),
            ("??.txt", "ä.txt", false),
            ("[äöü]*.txt", "öl.txt", true),
            ("[!ä].txt", "ä.txt", false),
            ("[!ä].txt", "文.txt", true),
            ("[а-я]?.txt", "да.txt", true),
            ("[а-я]?.txt", "Да.txt", false),
            ("{文,書}*", "書.txt", true),
            ("*.txt", "ä.txt", true),
            (r"\ä?", "äa", true),
        ] {
            assert_eq!(
                matches(pattern, name.as_bytes()),
                is_match,
                "{pattern} {name}"
            );
        }
        // Bytes that are not UTF-8.
        assert!(matches("?.txt", b"\xff.txt"));
        // More distinct characters than bytes to map them to.
        let long: String = ('一'..).take(300).collect();
        assert!(matches("*.txt", format!("{long}.txt").as_bytes()));
    }
}
