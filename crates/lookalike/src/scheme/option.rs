//! The closed choices a scheme is made of, each with its one text form.

use std::fmt;
use std::num::NonZeroU8;
use std::str::FromStr;

use thiserror::Error;

/// A word that names no choice of the option it was given for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{found:?} is no {option}: use {expected}")]
pub struct ParseOptionError {
    /// The option in words, such as "shingle".
    pub option: &'static str,
    /// What stood in its place.
    pub found: String,
    /// What may stand there.
    pub expected: &'static str,
}

impl ParseOptionError {
    fn new(option: &'static str, expected: &'static str, found: &str) -> Self {
        Self {
            option,
            found: found.to_owned(),
            expected,
        }
    }
}

/// An enum whose variants are written as fixed words.
macro_rules! word_option {
    ($(#[$meta:meta])* $name:ident, $option:literal, $expected:literal,
     $($(#[$vmeta:meta])* $variant:ident = $word:literal),+ $(,)?) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub enum $name {
            $($(#[$vmeta])* $variant),+
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $(Self::$variant => $word),+ })
            }
        }

        impl FromStr for $name {
            type Err = ParseOptionError;

            fn from_str(text: &str) -> Result<Self, ParseOptionError> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(ParseOptionError::new($option, $expected, text)),
                }
            }
        }
    };
}

word_option! {
    /// The Unicode normalisation form a text is brought to before it is cut into words.
    Normalization, "normalization", "none, nfc or nfkc",
    /// The text as it is: canonically equal texts may differ.
    None = "none",
    /// Canonical composition: changes nothing that a reader could see.
    #[default]
    Nfc = "nfc",
    /// Compatibility composition: also folds ligatures, full-width letters, circled digits.
    Nfkc = "nfkc",
}

word_option! {
    /// Whether case is told apart.
    Case, "case", "keep or lower",
    /// "The" and "the" are two words.
    Keep = "keep",
    /// Full Unicode lower-casing, as `str::to_lowercase` does it, final sigma included.
    #[default]
    Lower = "lower",
}

word_option! {
    /// What a word is.
    Segmentation, "segmentation", "unicode or word-chars",
    /// The words of UAX #29: segments between word boundaries that hold an alphanumeric.
    #[default]
    Unicode = "unicode",
    /// Maximal runs of letters (L*), numbers (N*) and `_`: Python's `\w+`.
    WordChars = "word-chars",
}

word_option! {
    /// How often a feature counts in a simhash.
    Weight, "weight", "set or tf",
    /// Each distinct feature once.
    #[default]
    Set = "set",
    /// As often as it occurs.
    Tf = "tf",
}

/// The size of a shingle: 1 to 64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Width(NonZeroU8);

impl Width {
    /// The largest size.
    pub const MAX: u8 = 64;

    /// `width` as a shingle size, or `None` outside 1 to 64.
    #[must_use]
    pub const fn new(width: u8) -> Option<Self> {
        match NonZeroU8::new(width) {
            Some(value) if width <= Self::MAX => Some(Self(value)),
            _ => None,
        }
    }

    /// The size as a number.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0.get() as usize
    }
}

/// What a feature is made of: V1's contiguous words, or contiguous characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shingle {
    /// So many words in a row.
    Words(Width),
    /// So many code points in a row.
    Chars(Width),
}

impl Shingle {
    /// Shingles of `width` words, or `None` outside 1 to 64.
    #[must_use]
    pub const fn words(width: u8) -> Option<Self> {
        match Width::new(width) {
            Some(width) => Some(Self::Words(width)),
            None => None,
        }
    }

    /// Shingles of `width` code points, or `None` outside 1 to 64.
    #[must_use]
    pub const fn chars(width: u8) -> Option<Self> {
        match Width::new(width) {
            Some(width) => Some(Self::Chars(width)),
            None => None,
        }
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
            Self::Chars(width) => write!(f, "chars:{}", width.get()),
        }
    }
}

impl FromStr for Shingle {
    type Err = ParseOptionError;

    fn from_str(text: &str) -> Result<Self, ParseOptionError> {
        let (kind, width) = text.split_once(':').unwrap_or((text, ""));
        let width = parse_number::<u8>(width).and_then(Width::new);
        match (kind, width) {
            ("words", Some(width)) => Ok(Self::Words(width)),
            ("chars", Some(width)) => Ok(Self::Chars(width)),
            _ => Err(ParseOptionError::new(
                "shingle",
                "words:N or chars:N with N from 1 to 64, such as words:5 or chars:9",
                text,
            )),
        }
    }
}

/// The sketch that is made of the features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Sketch {
    /// None: the feature sets themselves are compared.
    #[default]
    None,
    /// M1: a 64-bit fingerprint.
    Simhash,
    /// V2: a signature of so many minima.
    MinHash {
        /// Number of hash functions, at least 1.
        functions: u16,
    },
    /// V3: minima hashed in groups.
    SuperShingle {
        /// Number of groups, at least 1.
        groups: u8,
        /// Minima in each group, at least 1.
        rows: u8,
    },
}

impl Sketch {
    /// Number of min-hash functions the sketch needs; 0 where it needs none.
    #[must_use]
    pub const fn functions(self) -> usize {
        match self {
            Self::None | Self::Simhash => 0,
            Self::MinHash { functions } => functions as usize,
            Self::SuperShingle { groups, rows } => groups as usize * rows as usize,
        }
    }
}

impl fmt::Display for Sketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Simhash => f.write_str("simhash:64"),
            Self::MinHash { functions } => write!(f, "minhash:{functions}"),
            Self::SuperShingle { groups, rows } => write!(f, "super-shingle:{groups}x{rows}"),
        }
    }
}

impl FromStr for Sketch {
    type Err = ParseOptionError;

    fn from_str(text: &str) -> Result<Self, ParseOptionError> {
        parse_sketch(text).ok_or_else(|| {
            ParseOptionError::new(
                "sketch",
                "none, simhash:64, minhash:N (1 to 65535, such as minhash:128) or \
                 super-shingle:GxR (each 1 to 255, such as super-shingle:6x14)",
                text,
            )
        })
    }
}

fn parse_sketch(text: &str) -> Option<Sketch> {
    match text.split_once(':') {
        None if text == "none" => Some(Sketch::None),
        Some(("simhash", "64")) => Some(Sketch::Simhash),
        Some(("minhash", count)) => parse_number(count)
            .filter(|&n| n > 0)
            .map(|functions| Sketch::MinHash { functions }),
        Some(("super-shingle", shape)) => {
            let (groups, rows) = shape.split_once('x')?;
            let (groups, rows) = (parse_number(groups)?, parse_number(rows)?);
            (groups > 0 && rows > 0).then_some(Sketch::SuperShingle { groups, rows })
        }
        _ => None,
    }
}

/// A decimal number in its one canonical form: no sign, no leading zero.
pub(super) fn parse_number<T: FromStr + fmt::Display>(text: &str) -> Option<T> {
    text.parse()
        .ok()
        .filter(|number: &T| number.to_string() == text)
}
