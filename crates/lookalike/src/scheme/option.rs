//! The closed choices that make up a scheme, each with its one text form.

use std::fmt;
use std::num::NonZeroU8;
use std::str::FromStr;

use super::parse_error::{ParseOptionError, option_from_str};

crate::words! {
    /// Unicode normalisation form that a text is brought to before it is cut into words.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum Normalization {
        /// The text as it is, with ignorable characters; canonically equal texts may differ.
        None = "none",
        /// Without ignorable characters, then canonical composition: canonically equal texts become equal.
        #[default]
        Nfc = "nfc",
        /// Without ignorable characters, then compatibility composition, which also folds ligatures, full-width letters, circled digits.
        Nfkc = "nfkc",
    }
}

option_from_str!(Normalization, "normalization", "none, nfc or nfkc");

crate::words! {
    /// Treatment of upper and lower case.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum Case {
        /// Case is kept: "The" and "the" are different words.
        Keep = "keep",
        /// Full Unicode lower-casing, as `str::to_lowercase` does it, including final sigma.
        #[default]
        Lower = "lower",
    }
}

option_from_str!(Case, "case", "keep or lower");

/// Definition of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Segmentation {
    /// The words of UAX #29: segments between word boundaries that contain an alphanumeric character.
    #[default]
    Unicode,
    /// Maximal runs of letters (L*), numbers (N*) and `_`: Python's `\w+`.
    WordChars,
    /// Like `Unicode`, but dictionaries cut Chinese, Japanese, Thai, Lao, Khmer and Burmese.
    #[cfg(feature = "languages")]
    Languages,
}

impl Segmentation {
    /// Returns true if words are maximal runs of word characters, and no other characters count.
    pub(crate) fn is_word_chars(self) -> bool {
        self == Self::WordChars
    }
}

/// Text of the dictionaries with their versions, for a scheme.
#[cfg(feature = "languages")]
const DICTIONARIES: &str = "languages/jieba-0.11.0/icu-2.4.0";

impl fmt::Display for Segmentation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unicode => "unicode",
            Self::WordChars => "word-chars",
            #[cfg(feature = "languages")]
            Self::Languages => DICTIONARIES,
        })
    }
}

impl FromStr for Segmentation {
    type Err = ParseOptionError;

    /// Accepts the text of a scheme, or `languages` for the dictionaries of this build.
    fn from_str(text: &str) -> Result<Self, ParseOptionError> {
        let expected = if cfg!(feature = "languages") {
            "unicode, word-chars or languages"
        } else if text.starts_with("languages") {
            // The value is right, but not for this build.
            super::language::LACKING
        } else {
            "unicode or word-chars"
        };
        match text {
            "unicode" => Ok(Self::Unicode),
            "word-chars" => Ok(Self::WordChars),
            #[cfg(feature = "languages")]
            "languages" | DICTIONARIES => Ok(Self::Languages),
            _ => Err(ParseOptionError::new("segmentation", expected, text)),
        }
    }
}

/// Size of a shingle, from 1 to 64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Width(NonZeroU8);

impl Width {
    /// The largest size.
    pub const MAX: u8 = 64;

    /// Returns `width` as a shingle size, or `None` outside 1 to 64.
    #[must_use]
    pub const fn new(width: u8) -> Option<Self> {
        match NonZeroU8::new(width) {
            Some(value) if width <= Self::MAX => Some(Self(value)),
            _ => None,
        }
    }

    /// Returns the size as a number.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0.get() as usize
    }
}

/// Two or more shingle sizes: bit w - 1 of the mask stands for the size w.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Widths(u64);

impl Widths {
    /// Creates the list of these sizes; `None` if they are fewer than two, repeated or not ascending.
    #[must_use]
    pub fn new(widths: &[Width]) -> Option<Self> {
        let ascending = widths.is_sorted_by(|a, b| a < b) && widths.len() >= 2;
        let mask = widths.iter().map(|width| 1 << (width.get() - 1));
        ascending.then(|| Self(mask.fold(0, |all, bit: u64| all | bit)))
    }

    /// Returns the sizes, ascending.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (1..=usize::from(Width::MAX)).filter(move |width| self.0 >> (width - 1) & 1 == 1)
    }
}

/// Rule for short texts: those with fewer words than a limit have shingles of fewer words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShortTexts {
    below: u16,
    width: Width,
}

impl ShortTexts {
    /// Creates the rule that texts of fewer than `below` words have shingles of `width` words; `None` if `below` is less than two.
    #[must_use]
    pub const fn new(below: u16, width: Width) -> Option<Self> {
        if below < 2 {
            return None;
        }
        Some(Self { below, width })
    }

    /// Returns the words of a shingle in a text of `words` words, where those of longer texts have `longer`.
    pub(crate) fn width_of(self, words: usize, longer: Width) -> usize {
        match words < usize::from(self.below) {
            true => self.width.get(),
            false => longer.get(),
        }
    }
}

impl fmt::Display for ShortTexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.below, self.width.get())
    }
}

option_from_str!(
    ShortTexts,
    "rule for short texts",
    "N:W: texts of fewer than N words (2 to 65535) have runs of W words (1 to 64), such as 49:2",
    parse_short
);

fn parse_short(text: &str) -> Option<ShortTexts> {
    let (below, width) = text.split_once(':')?;
    let width = parse_number::<u8>(width).and_then(Width::new)?;
    ShortTexts::new(parse_number(below)?, width)
}

/// Kind of a feature: consecutive words or characters.
///
/// ```
/// use lookalike::{FeatureExtractor, Scheme, Shingle};
///
/// let features = |shingle: &str| {
///     let scheme = Scheme::default().shingle(shingle.parse()?);
///     Ok::<_, lookalike::scheme::ParseOptionError>(
///         FeatureExtractor::new(&scheme).features("nevermore quoth the raven").len(),
///     )
/// };
/// assert_eq!(features("words:3")?, 2);
/// assert_eq!(features("words:2+3")?, 3 + 2);
/// assert_eq!(features("chars:9")?, 25 - 8);
/// assert_eq!(Shingle::default().to_string(), "words:5");
/// # Ok::<(), lookalike::scheme::ParseOptionError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shingle {
    /// This many consecutive words.
    Words(Width),
    /// This many consecutive words, and fewer in short texts: [`Shingle::with_short`].
    WordsByLength {
        /// Words of a shingle in longer texts.
        width: Width,
        /// The rule for short texts, whose shingles have fewer words.
        short: ShortTexts,
    },
    /// Consecutive words of each of these sizes, all in one set of features.
    WordSizes(Widths),
    /// This many consecutive code points.
    Chars(Width),
    /// This many consecutive English function words, with all other words left out: the skeleton of the sentences (E. Stamatatos, JASIST 62, 2011).
    Stops(Width),
    /// Words (Manku et al. 2007, section 5.3), except that two consecutive words that a table of terms knows as a phrase are one feature. The words
    /// of a phrase occur together in at least this many documents.
    Phrases(Width),
}

impl Shingle {
    /// Returns the number of words of each feature, if all have the same.
    #[must_use]
    pub const fn words_each(self) -> Option<u32> {
        match self {
            Self::Words(width) => Some(width.get() as u32),
            _ => None,
        }
    }

    /// Creates shingles of `width` words; `None` outside 1 to 64.
    #[must_use]
    pub const fn words(width: u8) -> Option<Self> {
        match Width::new(width) {
            Some(width) => Some(Self::Words(width)),
            None => None,
        }
    }

    /// Adds a rule for short texts; `None` if these are not runs of words of one size, or the rule's runs are not shorter.
    #[must_use]
    pub fn with_short(self, short: ShortTexts) -> Option<Self> {
        match self {
            Self::Words(width) if short.width < width => Some(Self::WordsByLength { width, short }),
            _ => None,
        }
    }

    /// Creates shingles of `width` code points; `None` outside 1 to 64.
    #[must_use]
    pub const fn chars(width: u8) -> Option<Self> {
        match Width::new(width) {
            Some(width) => Some(Self::Chars(width)),
            None => None,
        }
    }
}

impl Shingle {
    /// Returns true if the features depend on a table of terms.
    #[must_use]
    pub const fn needs_terms(self) -> bool {
        matches!(self, Self::Phrases(_))
    }
}

impl Default for Shingle {
    fn default() -> Self {
        const FIVE: Width = Width::new(5).expect("5 lies between 1 and 64");
        Self::Words(FIVE)
    }
}

impl fmt::Display for Shingle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(width) => write!(f, "words:{}", width.get()),
            Self::WordsByLength { width, short } => write!(f, "words:{}/{short}", width.get()),
            Self::WordSizes(widths) => {
                let sizes: Vec<String> = widths.iter().map(|width| width.to_string()).collect();
                write!(f, "words:{}", sizes.join("+"))
            }
            Self::Chars(width) => write!(f, "chars:{}", width.get()),
            Self::Stops(width) => write!(f, "stops:{}", width.get()),
            Self::Phrases(least) => write!(f, "phrases:{}", least.get()),
        }
    }
}

option_from_str!(
    Shingle,
    "shingle",
    "words:N or chars:N with N from 1 to 64, such as words:5 or chars:9, several sizes in ascending order, such as \
     words:3+5, fewer words for short texts, such as words:5/49:2, stops:N, or phrases:N with N of 2 or more",
    parse_shingle
);

fn parse_shingle(text: &str) -> Option<Shingle> {
    if let Some((longer, short)) = text.split_once('/') {
        // `with_short` refuses all but runs of words of one size, so rules do not nest.
        return parse_shingle(longer)?.with_short(parse_short(short)?);
    }
    let (kind, sizes) = text.split_once(':')?;
    let width = |size: &str| parse_number::<u8>(size).and_then(Width::new);
    match kind {
        "chars" => width(sizes).map(Shingle::Chars),
        "words" if sizes.contains('+') => {
            let sizes: Option<Vec<Width>> = sizes.split('+').map(width).collect();
            Widths::new(&sizes?).map(Shingle::WordSizes)
        }
        "words" => width(sizes).map(Shingle::Words),
        "stops" => width(sizes).map(Shingle::Stops),
        // A feature of a single document is in no table.
        "phrases" => width(sizes)
            .filter(|least| least.get() > 1)
            .map(Shingle::Phrases),
        _ => None,
    }
}

/// Parses a decimal number in its one canonical form: no sign, no leading zero.
pub(super) fn parse_number<T: FromStr + fmt::Display>(text: &str) -> Option<T> {
    text.parse()
        .ok()
        .filter(|number: &T| number.to_string() == text)
}
