//! Cells and columns of fingerprints.

/// Name of the column of fingerprints in a table.
pub const FINGERPRINT_COLUMN: &str = "fingerprint";

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

/// The column of a table to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeColumn {
    /// Fingerprints of 64 bits as numbers.
    Numbers,
    /// Fingerprints of 32 bits as numbers.
    ShortNumbers,
    /// Sketches as texts, in a column with this name.
    Texts(&'static str),
}
