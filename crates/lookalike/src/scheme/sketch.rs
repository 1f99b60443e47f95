//! The closed list of sketches, with their text forms; `crate::sketch` defines them.

use std::fmt;
use std::str::FromStr;

use super::option::parse_number;
use super::parse_error::{ParseOptionError, option_from_str};

/// Sketch that is computed from the features.
///
/// ```
/// use lookalike::Sketch;
///
/// let sketch: Sketch = "super-shingle:6x14".parse()?;
/// assert_eq!(sketch, Sketch::SuperShingle { groups: 6, rows: 14 });
/// assert_eq!(sketch.functions(), 84);
/// assert_eq!(Sketch::Simhash.to_string(), "simhash:64");
/// # Ok::<(), lookalike::scheme::ParseOptionError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Sketch {
    /// No sketch: the feature sets themselves are compared.
    #[default]
    None,
    /// A 64-bit fingerprint (Manku et al. 2007, section 2).
    Simhash,
    /// A 32-bit fingerprint: the low half of the 64-bit fingerprint.
    Simhash32,
    /// A 128-bit fingerprint, of which the low half is the 64-bit fingerprint.
    Simhash128,
    /// A signature of one minimum for each function.
    MinHash {
        /// Number of hash functions, at least 1.
        functions: u16,
    },
    /// Min-hash from one function and a number of bins, of which the empty ones are filled by optimal densification.
    OnePermutation {
        /// Number of bins, 1 to 4096.
        bins: u16,
    },
    /// Min-hash that keeps only the lowest bits of each minimum.
    BBit {
        /// Number of hash functions, at least 1.
        functions: u16,
        /// Bits of each minimum, 1 to 16.
        bits: u8,
    },
    /// Minima hashed in groups (Vassilvitskii 2007).
    SuperShingle {
        /// Number of groups, at least 1.
        groups: u8,
        /// Minima in each group, at least 1.
        rows: u8,
    },
    /// Features that are zero modulo p (Manku et al. 2007, section 5.4).
    ModP {
        /// One feature in this many is selected, at least 1.
        modulus: u16,
    },
    /// Winnowing: the smallest feature of every window (Manku et al. 2007, section 5.4).
    Winnowing {
        /// Features in a window, at least 1.
        window: u16,
    },
    /// I-Match (Manku et al. 2007, section 5.4): one hash of the features that are in a pruned lexicon; with more than one lexicon, the randomised
    /// form.
    IMatch {
        /// Number of lexicons, at least 1.
        lexicons: u8,
    },
    /// Pugh and Henzinger's checksums of the features in each bucket (Manku et al. 2007, section 5.4).
    Buckets {
        /// Number of buckets, at least 1.
        buckets: u8,
    },
}

/// Maximum number of bins of [`Sketch::OnePermutation`]: filling the bins of a text of two features takes half the square of their number in tries.
const MAX_BINS: u16 = 4096;

impl Sketch {
    /// Checks the parameters: those that no text of a sketch has, such as a signature of no functions, are refused.
    ///
    /// ```
    /// use lookalike::Sketch;
    ///
    /// assert!(Sketch::BBit { functions: 64, bits: 4 }.check().is_ok());
    /// assert!(Sketch::BBit { functions: 64, bits: 40 }.check().is_err());
    /// ```
    ///
    /// # Errors
    /// Returns the [`ParseOptionError`] that the text gives.
    pub fn check(self) -> Result<(), ParseOptionError> {
        // By printing and parsing, so that the limits are in one place.
        self.to_string().parse::<Self>().map(drop)
    }

    /// Returns the number of min-hash functions that the sketch needs; 0 if it needs none.
    #[must_use]
    pub const fn functions(self) -> usize {
        match self {
            Self::MinHash { functions } | Self::BBit { functions, .. } => functions as usize,
            Self::SuperShingle { groups, rows } => groups as usize * rows as usize,
            _ => 0,
        }
    }

    /// Returns the number of bits of the fingerprint; 0 if the sketch is not a fingerprint.
    #[must_use]
    pub const fn fingerprint_bits(self) -> u32 {
        match self {
            Self::Simhash32 => 32,
            Self::Simhash => 64,
            Self::Simhash128 => 128,
            _ => 0,
        }
    }

    /// Returns true if the sketch depends on a table of terms.
    #[must_use]
    pub const fn needs_terms(self) -> bool {
        matches!(self, Self::IMatch { .. })
    }
}

impl fmt::Display for Sketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Simhash => f.write_str("simhash:64"),
            Self::Simhash32 => f.write_str("simhash:32"),
            Self::Simhash128 => f.write_str("simhash:128"),
            Self::MinHash { functions } => write!(f, "minhash:{functions}"),
            Self::OnePermutation { bins } => write!(f, "oph:{bins}"),
            Self::BBit { functions, bits } => write!(f, "b-bit:{functions}x{bits}"),
            Self::SuperShingle { groups, rows } => write!(f, "super-shingle:{groups}x{rows}"),
            Self::ModP { modulus } => write!(f, "mod-p:{modulus}"),
            Self::Winnowing { window } => write!(f, "winnow:{window}"),
            Self::IMatch { lexicons } => write!(f, "i-match:{lexicons}"),
            Self::Buckets { buckets } => write!(f, "buckets:{buckets}"),
        }
    }
}

option_from_str!(
    Sketch,
    "sketch",
    "none, simhash:64 (or 32 or 128), minhash:N (1 to 65535, such as minhash:128), \
     super-shingle:GxR (each 1 to 255, such as super-shingle:6x14), oph:N (1 to 4096), \
     b-bit:NxB (B from 1 to 16), mod-p:P, winnow:W, i-match:L or buckets:B",
    parse_sketch
);

fn parse_sketch(text: &str) -> Option<Sketch> {
    let Some((kind, size)) = text.split_once(':') else {
        return (text == "none").then_some(Sketch::None);
    };
    let wide = || parse_number::<u16>(size).filter(|&n| n > 0);
    let narrow = || parse_number::<u8>(size).filter(|&n| n > 0);
    Some(match kind {
        "simhash" => match size {
            "64" => Sketch::Simhash,
            "32" => Sketch::Simhash32,
            "128" => Sketch::Simhash128,
            _ => return None,
        },
        "minhash" => Sketch::MinHash { functions: wide()? },
        "oph" => Sketch::OnePermutation {
            bins: wide().filter(|&bins| bins <= MAX_BINS)?,
        },
        "mod-p" => Sketch::ModP { modulus: wide()? },
        "winnow" => Sketch::Winnowing { window: wide()? },
        "i-match" => Sketch::IMatch {
            lexicons: narrow()?,
        },
        "buckets" => Sketch::Buckets { buckets: narrow()? },
        "b-bit" => {
            let (functions, bits) = parse_shape(size)?;
            (bits <= 16).then_some(Sketch::BBit { functions, bits })?
        }
        "super-shingle" => {
            let (groups, rows) = parse_shape(size)?;
            Sketch::SuperShingle { groups, rows }
        }
        _ => return None,
    })
}

/// Parses two numbers above zero with an x between them.
fn parse_shape<T: FromStr + fmt::Display + PartialOrd + From<u8>>(text: &str) -> Option<(T, u8)> {
    let (first, second) = text.split_once('x')?;
    let (first, second) = (parse_number::<T>(first)?, parse_number::<u8>(second)?);
    (first > T::from(0) && second > 0).then_some((first, second))
}
