//! A cell of a column of fingerprints.

/// A fingerprint as stored in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeCell<'a> {
    /// No fingerprint, because the text has no features.
    Null,
    /// A number.
    Number(u64),
    /// Its text form.
    Text(&'a str),
}
