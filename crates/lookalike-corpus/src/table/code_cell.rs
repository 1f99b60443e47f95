//! A cell of a column of fingerprints.

/// A fingerprint as a table has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeCell<'a> {
    /// None: a text without features.
    Null,
    /// A number.
    Number(u64),
    /// A text that spells it.
    Text(&'a str),
}
