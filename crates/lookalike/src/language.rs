//! Languages: their codes, the language of a text, and data on the words of some languages.
//!
//! Everything but the codes needs the Cargo feature `languages`. The versions of all data are part of the schemes that use them
//! ([`StopWords`](crate::scheme::StopWords), [`Stemming`](crate::scheme::Stemming), [`Nouns`](crate::scheme::Nouns),
//! [`Segmentation`](crate::scheme::Segmentation)), because new data can change any feature.

#[cfg(feature = "languages")]
mod detection;
#[cfg(feature = "languages")]
pub(crate) mod dictionary;
#[cfg(feature = "languages")]
pub(crate) mod nouns;
#[cfg(feature = "languages")]
pub(crate) mod word_lists;
#[cfg(feature = "languages")]
pub(crate) mod words;

use std::fmt;

use crate::scheme::parse_error::option_from_str;

#[cfg(feature = "languages")]
pub use detection::detect;

/// A language, by its two-letter code of ISO 639-1; `no` is Bokmal, `zh` Mandarin.
///
/// ```
/// use lookalike::Language;
/// let german: Language = "de".parse()?;
/// assert_eq!(german.code(), "de");
/// assert!("deutsch".parse::<Language>().is_err());
/// # Ok::<(), lookalike::scheme::ParseOptionError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Language(u8);

/// Codes of ISO 639-1 and 639-3, ascending by the first. At most 128, because of [`LanguageSet`].
#[rustfmt::skip]
const CODES: &[(&str, &str)] = &[
    ("af", "afr"), ("ak", "aka"), ("am", "amh"), ("ar", "ara"), ("az", "aze"), ("be", "bel"),
    ("bg", "bul"), ("bn", "ben"), ("ca", "cat"), ("cs", "ces"), ("cy", "cym"), ("da", "dan"),
    ("de", "deu"), ("el", "ell"), ("en", "eng"), ("eo", "epo"), ("es", "spa"), ("et", "est"),
    ("eu", "eus"), ("fa", "pes"), ("fi", "fin"), ("fr", "fra"), ("gu", "guj"), ("he", "heb"),
    ("hi", "hin"), ("hr", "hrv"), ("hu", "hun"), ("hy", "hye"), ("id", "ind"), ("it", "ita"),
    ("ja", "jpn"), ("jv", "jav"), ("ka", "kat"), ("kk", "kaz"), ("km", "khm"), ("kn", "kan"),
    ("ko", "kor"), ("la", "lat"), ("lo", "lao"), ("lt", "lit"), ("lv", "lav"), ("mk", "mkd"),
    ("ml", "mal"), ("mr", "mar"), ("my", "mya"), ("ne", "nep"), ("nl", "nld"), ("no", "nob"),
    ("or", "ori"), ("pa", "pan"), ("pl", "pol"), ("pt", "por"), ("ro", "ron"), ("ru", "rus"),
    ("si", "sin"), ("sk", "slk"), ("sl", "slv"), ("sn", "sna"), ("sq", "sqi"), ("sr", "srp"),
    ("sv", "swe"), ("ta", "tam"), ("te", "tel"), ("tg", "tgk"), ("th", "tha"), ("tk", "tuk"),
    ("tl", "tgl"), ("tr", "tur"), ("uk", "ukr"), ("ur", "urd"), ("uz", "uzb"), ("vi", "vie"),
    ("yi", "yid"), ("zh", "cmn"), ("zu", "zul"),
];

impl Language {
    /// Returns all languages that have a code here, ascending by code.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..CODES.len() as u8).map(Self)
    }

    /// Returns the two-letter code of ISO 639-1.
    #[must_use]
    pub fn code(self) -> &'static str {
        CODES[usize::from(self.0)].0
    }

    /// Returns the three-letter code of ISO 639-3.
    #[must_use]
    pub fn code3(self) -> &'static str {
        CODES[usize::from(self.0)].1
    }

    #[cfg(feature = "languages")]
    fn of_code3(code: &str) -> Option<Self> {
        Self::all().find(|language| language.code3() == code)
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.code())
    }
}

option_from_str!(
    Language,
    "language",
    "a code of two letters such as en, de or zh",
    |text: &str| Self::all().find(|language| language.code() == text)
);

/// Set of languages: bit i of the mask stands for the i-th code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LanguageSet(u128);

impl LanguageSet {
    /// Creates the set of these languages, or returns `None` if there are none.
    #[cfg(any(test, feature = "languages"))]
    pub(crate) fn new(languages: impl Iterator<Item = Language>) -> Option<Self> {
        let mask = languages.fold(0, |mask, language| mask | 1_u128 << language.0);
        (mask != 0).then_some(Self(mask))
    }

    /// Returns the members, ascending by code.
    pub(crate) fn iter(self) -> impl Iterator<Item = Language> {
        Language::all().filter(move |language| self.0 >> language.0 & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_ascending_and_fit_a_set() {
        assert!(CODES.is_sorted_by(|a, b| a.0 < b.0) && CODES.len() <= 128);
        let all = LanguageSet::new(Language::all()).unwrap();
        assert!(all.iter().eq(Language::all()));
        assert_eq!(LanguageSet::new(std::iter::empty()), None);
    }
}
