//! The error of all options that are written as text.

use thiserror::Error;

/// Error for a text that is not a value of its option.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{found:?} is not a valid {option}: use {expected}")]
pub struct ParseOptionError {
    /// The option in words, such as "shingle".
    pub option: &'static str,
    /// The text that was given.
    pub found: String,
    /// The values that are accepted.
    pub expected: &'static str,
}

impl ParseOptionError {
    pub(crate) fn new(option: &'static str, expected: &'static str, found: &str) -> Self {
        Self {
            option,
            found: found.to_owned(),
            expected,
        }
    }

    /// Parses a number of exactly `digits` hexadecimal digits.
    pub(crate) fn parse_hex(
        option: &'static str,
        expected: &'static str,
        text: &str,
        digits: usize,
    ) -> Result<u128, Self> {
        // `from_str_radix` also accepts a sign.
        let is_hex = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16).ok().filter(|_| is_hex);
        number.ok_or_else(|| Self::new(option, expected, text))
    }
}
