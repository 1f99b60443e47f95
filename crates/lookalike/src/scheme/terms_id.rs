//! Ids of tables of terms, for the schemes that use them.

use std::fmt;
use std::str::FromStr;

use super::parse_error::ParseOptionError;

/// Id of a table of terms: XXH3-64 of its bytes, which changes with every count in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TermsId(pub u64);

impl fmt::Display for TermsId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for TermsId {
    type Err = ParseOptionError;

    fn from_str(text: &str) -> Result<Self, ParseOptionError> {
        let expected = "16 hexadecimal digits";
        let id = ParseOptionError::parse_hex("id of a table of terms", expected, text, 16)?;
        Ok(Self(id as u64))
    }
}
