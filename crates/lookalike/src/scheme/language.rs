//! Options of a scheme for the words of single languages: stop words, stems, nouns.
//!
//! Each has a short form for people, which the command line also takes; in a scheme, the versions of its data follow. Builds without the Cargo
//! feature `languages` have only the defaults, so no scheme that they accept needs data that they lack.

use std::fmt;

use super::parse_error::option_from_str;
use crate::language::{Language, LanguageSet};

// These versions are part of schemes, because other data may give a text other words.
const DETECTION: &str = "whatlang-0.18.0";
const STOP_WORDS: &str = "stop-words-0.10.1";
const STEMMERS: &str = "frostem-2.20261016.1";
const TAGGERS: &str = "harper-brill-3.0.0/jieba-0.11.0";

/// Expected values that a build without the data reports.
pub(super) const LACKING: &str =
    "a build with the Cargo feature `languages` (or `full`), or leave the option out";

/// Returns the expected values of a build with the data, or [`LACKING`] in one without.
const fn with_data(expected: &'static str) -> &'static str {
    if cfg!(feature = "languages") {
        expected
    } else {
        LACKING
    }
}

/// Language of the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum LanguageSource {
    /// None: nothing is done.
    #[default]
    None,
    /// The language that is detected in the text.
    #[cfg_attr(not(feature = "languages"), expect(dead_code, reason = "has no data"))]
    Detected,
    /// These languages.
    #[cfg_attr(not(feature = "languages"), expect(dead_code, reason = "has no data"))]
    These(LanguageSet),
}

impl LanguageSource {
    fn languages(self) -> impl Iterator<Item = Language> {
        let set = match self {
            Self::These(set) => Some(set),
            Self::None | Self::Detected => None,
        };
        set.into_iter().flat_map(LanguageSet::iter)
    }

    /// Writes the text of a scheme, with the name of the data.
    fn write(self, f: &mut fmt::Formatter<'_>, data: &str) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Detected => write!(f, "auto/{DETECTION}/{data}"),
            Self::These(set) => {
                let codes: Vec<&str> = set.iter().map(Language::code).collect();
                write!(f, "{}/{data}", codes.join(","))
            }
        }
    }

    /// Parses a text that is followed by the versions of this build, or by none.
    #[cfg(feature = "languages")]
    fn parse(text: &str, data: &str, known: impl Fn(Language) -> bool) -> Option<Self> {
        let (short, versions) = text.split_once('/').unwrap_or((text, ""));
        let (of, expected) = match short {
            "none" => (Self::None, String::new()),
            "auto" => (Self::Detected, format!("{DETECTION}/{data}")),
            codes => {
                let languages: Result<Vec<Language>, _> =
                    codes.split(',').map(str::parse).collect();
                let languages = languages.ok()?;
                let set = LanguageSet::new(languages.iter().copied())?;
                if !languages.into_iter().all(known) {
                    return None;
                }
                (Self::These(set), data.to_owned())
            }
        };
        // A short form names no versions; those of another build are refused.
        (versions.is_empty() || versions == expected).then_some(of)
    }

    #[cfg(not(feature = "languages"))]
    fn parse(text: &str, _: &str, _: impl Fn(Language) -> bool) -> Option<Self> {
        (text == "none").then_some(Self::None)
    }
}

/// Words that are left out before shingles are made; none by default.
///
/// Short forms are `none`, `auto` (the list of the language that is detected in the text) and codes of languages such as `en` or `de,en`; a scheme
/// also has the versions of lists and detection.
///
/// ```
/// # #[cfg(feature = "languages")] {
/// use lookalike::{FeatureExtractor, Scheme, StopWords};
///
/// let english: StopWords = "en".parse()?;
/// let scheme = Scheme::default().stop(english).shingle("words:1".parse()?);
/// let mut extractor = FeatureExtractor::new(&scheme);
/// let raven = extractor.features("the raven").to_vec();
/// assert_eq!(extractor.features("Raven"), raven);
/// # }
/// # Ok::<(), lookalike::scheme::ParseOptionError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct StopWords(LanguageSource);

/// Reduction of words to their stems by the Snowball algorithm of a language; none by default.
///
/// Short forms are `none`, `auto` and the code of one language, as for [`StopWords`].
///
/// ```
/// # #[cfg(feature = "languages")] {
/// use lookalike::{FeatureExtractor, Scheme, Stemming};
///
/// let english: Stemming = "en".parse()?;
/// let scheme = Scheme::default().stem(english).shingle("words:1".parse()?);
/// let mut extractor = FeatureExtractor::new(&scheme);
/// let ravens = extractor.features("ravens").to_vec();
/// assert_eq!(extractor.features("raven"), ravens);
/// # }
/// # Ok::<(), lookalike::scheme::ParseOptionError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Stemming(LanguageSource);

/// Additional weight of nouns with [`Weight::TfLengthNoun`](super::Weight::TfLengthNoun): Pos of Yu, Hu and Zhang. Words in Latin letters are tagged
/// as English, words in Han as Chinese. Off by default: Pos is then 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Nouns(bool);

impl StopWords {
    /// No word is left out.
    pub const NONE: Self = Self(LanguageSource::None);

    /// Returns the languages whose lists are used for every text, ascending by code.
    pub fn languages(self) -> impl Iterator<Item = Language> {
        self.0.languages()
    }

    /// Returns true if the list is chosen by the text's language.
    #[must_use]
    pub const fn is_auto(self) -> bool {
        matches!(self.0, LanguageSource::Detected)
    }
}

impl Stemming {
    /// Words stay as they are.
    pub const NONE: Self = Self(LanguageSource::None);

    /// Returns the language whose stemmer is used for every text.
    #[must_use]
    pub fn language(self) -> Option<Language> {
        // The parser admits at most one.
        self.0.languages().next()
    }

    /// Returns true if the stemmer is chosen by the text's language.
    #[must_use]
    pub const fn is_auto(self) -> bool {
        matches!(self.0, LanguageSource::Detected)
    }
}

impl Nouns {
    /// Pos is 0 for all words.
    pub const NONE: Self = Self(false);

    /// Nouns are distinguished from other words.
    #[cfg(feature = "languages")]
    pub const TAGGED: Self = Self(true);

    /// Returns true if nouns are distinguished from other words.
    #[must_use]
    pub const fn are_tagged(self) -> bool {
        self.0
    }
}

impl fmt::Display for StopWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f, STOP_WORDS)
    }
}

impl fmt::Display for Stemming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f, STEMMERS)
    }
}

impl fmt::Display for Nouns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            true => f.write_str(TAGGERS),
            false => f.write_str("none"),
        }
    }
}

#[cfg(feature = "languages")]
fn has_stop_words(language: Language) -> bool {
    crate::language::word_lists::stop_words(language).is_some()
}

#[cfg(feature = "languages")]
fn has_stemmer(language: Language) -> bool {
    crate::language::word_lists::stemmer(language).is_some()
}

#[cfg(not(feature = "languages"))]
fn has_stop_words(_: Language) -> bool {
    false
}

#[cfg(not(feature = "languages"))]
fn has_stemmer(_: Language) -> bool {
    false
}

option_from_str!(
    StopWords,
    "list of stop words",
    with_data(
        "none, auto, or codes of languages with a list: ar, az, be, bn, ca, da, de, el, en, es, \
         eu, fi, fr, he, hu, id, it, kk, ne, nl, no, pt, ro, ru, sl, sq, sv, ta, tg, tr, uz, zh"
    ),
    |text| LanguageSource::parse(text, STOP_WORDS, has_stop_words).map(Self)
);

option_from_str!(
    Stemming,
    "stemmer",
    with_data(
        "none, auto, or one of ar, ca, da, de, el, en, es, fi, fr, hu, id, it, nl, no, pl, pt, \
         ro, ru, sv, tr"
    ),
    |text| {
        let parsed = LanguageSource::parse(text, STEMMERS, has_stemmer)?;
        // A word does not tell which of several stemmers it needs.
        (parsed.languages().count() <= 1).then_some(Self(parsed))
    }
);

option_from_str!(
    Nouns,
    "way to find nouns",
    with_data("none or tagged, or in a scheme harper-brill-3.0.0/jieba-0.11.0"),
    |text| match text {
        "none" => Some(Self::NONE),
        #[cfg(feature = "languages")]
        "tagged" | TAGGERS => Some(Self::TAGGED),
        _ => None,
    }
);
