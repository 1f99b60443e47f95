//! Settings as words, which a command line or a call has: printing, parsing, and the errors of texts that mean nothing.

/// Text that is no value of a setting.
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
    /// A word that names no value.
    #[error("unknown {setting} {text:?}: use {values}")]
    Unknown {
        /// Name of the setting.
        setting: &'static str,
        /// The word.
        text: String,
        /// The words that name one.
        values: String,
    },
    /// A text of a wrong form, or with a number out of range.
    #[error("{text:?} {fault}")]
    Malformed {
        /// The text.
        text: String,
        /// Fault and remedy.
        fault: String,
    },
    /// A part of the text that is refused for itself, such as the path of a field.
    #[error("{0}")]
    Part(String),
}

impl ParseSettingError {
    /// No value of that name; `note` explains the words that there are.
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

    /// For `map_err`: a part that is refused for itself.
    pub(crate) fn part(error: impl std::error::Error) -> Self {
        Self::Part(error.to_string())
    }
}

/// Prints and parses the values of a setting by their words. A note may explain them to whoever used another.
macro_rules! setting_words {
    ($kind:ident, $setting:literal, $($variant:ident = $word:literal),+ $(; $note:literal)?) => {
        impl std::fmt::Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $(Self::$variant => $word),+ })
            }
        }

        impl std::str::FromStr for $kind {
            type Err = $crate::setting_words::ParseSettingError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(Self::Err::unknown($setting, text, &[$($word),+], concat!($("; ", $note)?))),
                }
            }
        }
    };
}

pub(crate) use setting_words;
