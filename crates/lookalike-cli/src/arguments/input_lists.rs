//! Lists of inputs, as other programs write them: names in a file or on standard input.

use std::ffi::{OsStr, OsString};
use std::io::{Read as _, stdin};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use lookalike_corpus::path_text;

use crate::failure::Failure;

/// The names in all lists of a command.
#[derive(Debug)]
pub(super) struct InputLists(Vec<InputList>);

#[derive(Debug)]
struct InputList {
    name: String,
    /// Unit that a number counts: lines, or names that end with NUL.
    unit: &'static str,
    /// Each name with its number, from 1.
    names: Vec<(usize, OsString)>,
}

impl InputLists {
    pub(super) fn read(files: &[OsString]) -> Result<Self, Failure> {
        let lists = files.iter().map(|file| InputList::read(file));
        Ok(Self(lists.collect::<Result<_, _>>()?))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &OsString> {
        let names = self.0.iter().flat_map(|list| &list.names);
        names.map(|(_, name)| name)
    }

    /// Returns the place of a name, as errors write it.
    pub(super) fn place(&self, wanted: &str) -> Option<String> {
        self.0.iter().find_map(|list| {
            let mut names = list.names.iter();
            let found = names.find(|(_, name)| path_text(Path::new(name)) == wanted);
            found.map(|(number, _)| format!("{}, {} {number}", list.name, list.unit))
        })
    }
}

impl InputList {
    fn read(file: &OsStr) -> Result<Self, Failure> {
        let is_standard_input = file == "-";
        let name = match is_standard_input {
            true => "standard input".to_owned(),
            false => path_text(Path::new(file)).into_owned(),
        };
        let mut bytes = Vec::new();
        let read = match is_standard_input {
            true => stdin().lock().read_to_end(&mut bytes).map(|_| bytes),
            false => std::fs::read(file),
        };
        let bytes = read.map_err(|error| {
            Failure::Failed(format!("{name}: {error}: give a file with names of inputs"))
        })?;
        let (unit, names) = names_in(&bytes);
        if names.is_empty() {
            return Err(Failure::Failed(format!(
                "{name}: names no input: check the program that wrote the list"
            )));
        }
        if is_standard_input && names.iter().any(|(_, name)| name == "-") {
            return Err(Failure::Usage(
                "the list on standard input names standard input: save the list to a file"
                    .to_owned(),
            ));
        }
        Ok(Self { name, unit, names })
    }
}

/// Returns the names in a list with their numbers, and what the numbers count. Empty names are left out.
fn names_in(list: &[u8]) -> (&'static str, Vec<(usize, OsString)>) {
    // No name of a file contains a NUL, but one may contain a line break.
    let (unit, end) = match list.contains(&0) {
        true => ("name", 0),
        false => ("line", b'\n'),
    };
    let names = list.split(|&byte| byte == end).zip(1..);
    let names = names.map(|(name, number)| match end {
        b'\n' => (number, name.strip_suffix(b"\r").unwrap_or(name)),
        _ => (number, name),
    });
    let names = names.filter(|(_, name)| !name.is_empty());
    let owned = names.map(|(number, name)| (number, OsStr::from_bytes(name).to_owned()));
    (unit, owned.collect())
}
