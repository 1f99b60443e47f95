//! The path of a value in a JSON object.

use std::fmt;
use std::str::FromStr;

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
        Ok(TextFields(paths.collect::<Result<_, _>>()?))
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
