//! Ids of tables of terms, for the schemes that use them.

use super::parse_error::hexadecimal;

/// Id of a table of terms: XXH3-64 of its bytes, which changes with every count in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TermsId(pub u64);

hexadecimal!(TermsId(u64), 16, "id of a table of terms");
