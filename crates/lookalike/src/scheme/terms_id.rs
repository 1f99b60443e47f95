//! Ids of tables of terms, for the schemes that use them.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Id of a table of terms: XXH3-64 of its bytes, which changes with every count in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TermsId(pub u64);

impl fmt::Display for TermsId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Error for a text that is not a [`TermsId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("use 16 lower-case hexadecimal digits")]
pub struct ParseTermsIdError;

impl FromStr for TermsId {
    type Err = ParseTermsIdError;

    fn from_str(text: &str) -> Result<Self, ParseTermsIdError> {
        u64::from_str_radix(text, 16)
            .map(Self)
            .ok()
            // One text for each id: no sign, no upper-case digits.
            .filter(|id| id.to_string() == text)
            .ok_or(ParseTermsIdError)
    }
}
