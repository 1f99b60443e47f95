//! Settings as words, for a command line or a call: parsing, and errors for words that mean nothing.

/// Text that is not a value of a setting.
///
/// ```
/// use lookalike_batch::{Method, ParseSettingError};
///
/// let refused = "minhsh".parse::<Method>().unwrap_err();
/// assert!(matches!(refused, ParseSettingError::Unknown { setting: "method", .. }));
/// assert!(refused.to_string().contains("minhash"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseSettingError {
    /// A word that is not one of the values.
    #[error("unknown {setting} {text:?}: use {values}")]
    Unknown {
        /// Name of the setting.
        setting: &'static str,
        /// The word.
        text: String,
        /// The words that are values.
        values: String,
    },
    /// A text of the wrong form, or with a number out of range.
    #[error("{text:?} {fault}")]
    Malformed {
        /// The text.
        text: String,
        /// The fault and its remedy.
        fault: String,
    },
    /// A text with a part that is itself refused, such as the path of a field.
    #[error("{0}")]
    Part(String),
}

impl ParseSettingError {
    /// Returns the error for a word that is none of `words`; `note` explains those.
    pub(crate) fn unknown(setting: &'static str, text: &str, words: &[&str], note: &str) -> Self {
        let values = match words {
            [most @ .., last] if !most.is_empty() => format!("{} or {last}", most.join(", ")),
            words => words.concat(),
        };
        Self::Unknown {
            setting,
            text: text.to_owned(),
            values: values + note,
        }
    }

    pub(crate) fn malformed(text: &str, fault: impl Into<String>) -> Self {
        Self::Malformed {
            text: text.to_owned(),
            fault: fault.into(),
        }
    }

    /// Wraps the error of a part of the text, for `map_err`.
    pub(crate) fn part(error: impl std::error::Error) -> Self {
        Self::Part(error.to_string())
    }
}

/// Implements parsing of a setting by the words of its values, which the error lists. An optional note explains them.
macro_rules! setting_from_str {
    ($kind:ident, $setting:literal $(; $note:literal)?) => {
        impl std::str::FromStr for $kind {
            type Err = $crate::setting_words::ParseSettingError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let found = Self::ALL.into_iter().find(|value| value.name() == text);
                let note = concat!($("; ", $note)?);
                found.ok_or_else(|| Self::Err::unknown($setting, text, &Self::ALL.map(Self::name), note))
            }
        }
    };
}

pub(crate) use setting_from_str;
