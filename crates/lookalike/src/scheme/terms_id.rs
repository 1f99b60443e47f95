//! Ids of tables of terms, for the schemes that use them.

use std::fmt;

use super::parse_error::option_from_str;
use crate::hash::parse_hex;

/// Id of a table of terms: XXH3-64 of its bytes, which changes with every count in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TermsId(pub u64);

impl fmt::Display for TermsId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

option_from_str!(
    TermsId,
    "id of a table of terms",
    "16 hexadecimal digits",
    |text| parse_hex(text, 16).map(|id| Self(id as u64))
);
