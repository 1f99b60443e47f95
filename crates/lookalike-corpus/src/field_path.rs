//! The path of a value in a JSON object.

use std::fmt;
use std::ops::AddAssign;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::OptionError;

/// The path of a value in a JSON object: names joined by dots, `meta.source.url`.
///
/// A dot or backslash within a name is escaped by a backslash: `dc\.title`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldPath(Vec<String>);

/// Maximum number of names in a path. Longer ones are refused, so that parsing needs no deep recursion.
const MAX_PATH_NAMES: usize = 32;

impl FieldPath {
    /// Creates a path of one name, taken literally.
    pub fn name(name: &str) -> FieldPath {
        FieldPath(vec![name.to_owned()])
    }

    /// Returns the names from the outermost object inwards; never empty.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    pub(crate) fn ends_with(&self, name: &str) -> bool {
        self.0.last().is_some_and(|last| last == name)
    }
}

/// The fields that hold the text of a record: paths separated by commas.
///
/// The values of several fields are joined by line breaks; those that a record lacks are left out. A comma within a name is escaped by a backslash.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TextFields(Vec<FieldPath>);

impl TextFields {
    /// Returns the paths; never empty.
    #[must_use]
    pub fn paths(&self) -> &[FieldPath] {
        &self.0
    }

    /// Returns the first path that is in no record, given the fields of all records. `None` for a single path, of which no set is kept: a record
    /// without it has no text.
    #[must_use]
    pub fn absent(&self, found: TextFieldSet) -> Option<&FieldPath> {
        let mut several = self.0.iter().enumerate().filter(|_| self.0.len() > 1);
        several
            .find(|(at, _)| found.0 & (1 << at) == 0)
            .map(|(_, path)| path)
    }

    /// Returns true if one of the paths begins with this name.
    #[must_use]
    pub fn begin_with(&self, name: &str) -> bool {
        self.0.iter().any(|path| path.names()[0] == name)
    }
}

impl FromStr for TextFields {
    type Err = OptionError;

    fn from_str(s: &str) -> Result<Self, OptionError> {
        let paths = split_at_commas(s).into_iter().map(str::parse);
        let paths: Vec<_> = paths.collect::<Result<_, _>>()?;
        match paths.len() > MAX_TEXT_FIELDS {
            true => Err(OptionError(format!(
                "{} fields, of {MAX_TEXT_FIELDS} at most",
                paths.len()
            ))),
            false => Ok(TextFields(paths)),
        }
    }
}

impl fmt::Display for TextFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths = self
            .0
            .iter()
            .map(|path| path.to_string().replace(',', "\\,"));
        f.write_str(&paths.collect::<Vec<_>>().join(","))
    }
}

/// Maximum number of text fields: the bits of a [`TextFieldSet`].
const MAX_TEXT_FIELDS: usize = 64;

/// The fields of a [`TextFields`] of several paths that a record has, be they null. The sum of two sets is their union.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TextFieldSet(u64);

impl TextFieldSet {
    /// All fields.
    pub const ALL: TextFieldSet = TextFieldSet(u64::MAX);

    /// Adds the field with this index in [`TextFields::paths`].
    pub(crate) fn insert(&mut self, field: usize) {
        self.0 |= 1 << field;
    }

    fn union(self, other: TextFieldSet) -> TextFieldSet {
        TextFieldSet(self.0 | other.0)
    }
}

impl AddAssign for TextFieldSet {
    fn add_assign(&mut self, other: Self) {
        *self = self.union(other);
    }
}

/// Splits a text at its commas, except those after a backslash.
#[doc(hidden)]
#[must_use]
pub fn split_at_commas(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut is_escaped) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        if c == ',' && !is_escaped {
            parts.push(&text[start..at]);
            start = at + 1;
        }
        // A backslash that is itself escaped escapes nothing.
        is_escaped = c == '\\' && !is_escaped;
    }
    parts.push(&text[start..]);
    parts
}

impl FromStr for FieldPath {
    type Err = OptionError;

    fn from_str(s: &str) -> Result<Self, OptionError> {
        let mut names = vec![String::new()];
        let mut chars = s.chars();
        while let Some(c) = chars.next() {
            let c = match c {
                '.' => {
                    names.push(String::new());
                    continue;
                }
                // A backslash at the end stands for itself; an error would hardly be understood.
                '\\' => chars.next().unwrap_or('\\'),
                c => c,
            };
            names.last_mut().expect("never empty").push(c);
        }
        if names.iter().any(String::is_empty) {
            return Err(OptionError(format!("empty name in field path `{s}`")));
        }
        if names.len() > MAX_PATH_NAMES {
            return Err(OptionError(format!(
                "field path `{s}` has more than {MAX_PATH_NAMES} names"
            )));
        }
        Ok(FieldPath(names))
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(".")?;
            }
            // Replace backslashes first, otherwise those that escape the dots would be doubled. The output parses to the same path.
            f.write_str(&name.replace('\\', "\\\\").replace('.', "\\."))?;
        }
        Ok(())
    }
}
