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
}

/// Implements parsing by the words of the values, or by a function that returns `None` for a text that is not a value of the option.
macro_rules! option_from_str {
    ($name:ty, $option:literal, $expected:expr $(,)?) => {
        $crate::scheme::parse_error::option_from_str!($name, $option, $expected, |text: &str| {
            Self::ALL.into_iter().find(|value| value.name() == text)
        });
    };
    ($name:ty, $option:literal, $expected:expr, $parse:expr $(,)?) => {
        impl std::str::FromStr for $name {
            type Err = $crate::scheme::ParseOptionError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let parsed: Option<Self> = $parse(text);
                parsed.ok_or_else(|| Self::Err::new($option, $expected, text))
            }
        }
    };
}

/// Implements printing and parsing of a number as a fixed count of hexadecimal digits.
macro_rules! hexadecimal {
    ($name:ident($number:ty), $digits:literal, $option:literal) => {
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!("{:0", $digits, "x}"), self.0)
            }
        }

        $crate::scheme::parse_error::option_from_str!(
            $name,
            $option,
            concat!($digits, " hexadecimal digits"),
            |text| $crate::hash::parse_hex(text, $digits).map(|number| Self(number as $number))
        );
    };
}

pub(crate) use {hexadecimal, option_from_str};
