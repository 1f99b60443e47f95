//! Weights of features in a simhash.

use std::fmt;
use std::num::NonZeroU8;

use super::option::parse_number;
use super::parse_error::option_from_str;

/// Weight of a feature in a simhash (Manku et al. 2007, section 2; Yu, Hu and Zhang, word weight); `docs/explanation/algorithms.md` has the formulas.
///
/// ```
/// use lookalike::Weight;
/// use lookalike::scheme::Lambda;
/// let fixed = Weight::TfLengthNoun(Lambda::new(4).unwrap());
/// assert_eq!(fixed.to_string(), "tf-length-noun:4");
/// assert_eq!("tf-length-noun".parse(), Ok(Weight::TfLengthNoun(Lambda::BY_LENGTH)));
/// assert!("tf-length-noun:0".parse::<Weight>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Weight {
    /// Each distinct feature weighs 1.
    #[default]
    Set,
    /// The number of its occurrences.
    Tf,
    /// 1 + the binary logarithm of the number of its occurrences.
    LogTf,
    /// Its rarity in the collection of the scheme's table of terms, once for each distinct feature.
    Idf,
    /// The product of `tf` and `idf`.
    TfIdf,
    /// The product of `log-tf` and `idf`.
    LogTfIdf,
    /// The score of a word by Yu, Hu and Zhang, for `words:1`.
    TfLengthNoun(Lambda),
}

/// Parameter λ of [`Weight::TfLengthNoun`]: the number of additional occurrences that a long word, or a noun, counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Lambda(Option<NonZeroU8>);

impl Lambda {
    /// 1 + floor(log2(1 + words / 64)) for each text, so that it grows with the frequencies of longer texts.
    pub const BY_LENGTH: Self = Self(None);

    /// Uses the same number for all texts; `None` outside 1 to 255.
    #[must_use]
    pub const fn new(lambda: u8) -> Option<Self> {
        match NonZeroU8::new(lambda) {
            Some(lambda) => Some(Self(Some(lambda))),
            None => None,
        }
    }

    /// Returns the number for a text of `words` words.
    #[must_use]
    pub fn of(self, words: usize) -> u64 {
        // The logarithm is of at least 1, so it cannot panic.
        let by_length = || 1 + u64::from((1 + words as u64 / 64).ilog2());
        self.0.map_or_else(by_length, |fixed| fixed.get().into())
    }
}

impl Weight {
    /// Returns true if the weight depends on a table of terms.
    #[must_use]
    pub const fn needs_terms(self) -> bool {
        matches!(self, Self::Idf | Self::TfIdf | Self::LogTfIdf)
    }
}

const TF_LENGTH_NOUN: &str = "tf-length-noun";

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Set => "set",
            Self::Tf => "tf",
            Self::LogTf => "log-tf",
            Self::Idf => "idf",
            Self::TfIdf => "tf-idf",
            Self::LogTfIdf => "log-tf-idf",
            Self::TfLengthNoun(Lambda(None)) => TF_LENGTH_NOUN,
            Self::TfLengthNoun(Lambda(Some(fixed))) => {
                return f.pad(&format!("{TF_LENGTH_NOUN}:{fixed}"));
            }
        })
    }
}

option_from_str!(
    Weight,
    "weight",
    "set, tf, log-tf, idf, tf-idf, log-tf-idf, tf-length-noun, or tf-length-noun:N with λ = N from 1 to 255",
    parse_weight
);

fn parse_weight(text: &str) -> Option<Weight> {
    Some(match text {
        "set" => Weight::Set,
        "tf" => Weight::Tf,
        "log-tf" => Weight::LogTf,
        "idf" => Weight::Idf,
        "tf-idf" => Weight::TfIdf,
        "log-tf-idf" => Weight::LogTfIdf,
        TF_LENGTH_NOUN => Weight::TfLengthNoun(Lambda::BY_LENGTH),
        _ => {
            let lambda = text.strip_prefix(TF_LENGTH_NOUN)?.strip_prefix(':')?;
            Weight::TfLengthNoun(parse_number(lambda).and_then(Lambda::new)?)
        }
    })
}
