//! Condition for pairs of sketches: the minimum number of equal places.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::fingerprints::files::SketchShape;

// Pairs that wait to be sorted store the distance in one byte, and `PairFile` accepts up to 128.
/// Maximum number of places in which the sketches of a pair differ, since lists of pairs hold no larger distance.
const MAX_DIFFERING: usize = 128;
/// Tolerance for shares such as 0.9 that are slightly too large as binary fractions.
const ROUNDING: f64 = 1e-9;

/// Minimum number of equal places in the sketches of a pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MinEqual {
    /// This many places, at least 1.
    Places(u32),
    /// This share of all places, above 0 and at most 1, rounded up.
    Share(f64),
}

/// Error: a text that is not a number of equal places.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found:?} is not a number of equal places: use a whole number of at least 1, such as 2, or a share with a decimal point, such as 0.8"
)]
pub struct ParseMinEqualError {
    /// The text.
    pub found: String,
}

/// Error: a number of equal places that does not suit the shape of the sketches.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MinEqualError {
    /// The number is larger than the number of places.
    #[error(
        "{least} equal places are more than the {shape} of each sketch: give at most that many"
    )]
    TooMany {
        /// The requested number.
        least: usize,
        /// Shape of the sketches.
        shape: SketchShape,
    },
    /// The number is too small for an exact search.
    #[error(
        "{least} equal places let {apart} of {shape} differ, and pairs are found exactly only if at most {MAX_DIFFERING} do: give {nearest} or \
         more, or make shorter sketches"
    )]
    TooFew {
        /// The requested number.
        least: usize,
        /// Number of places that may differ.
        apart: usize,
        /// Shape of the sketches.
        shape: SketchShape,
        /// The smallest possible number.
        nearest: usize,
    },
}

/// The condition for sketches of a given shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EqualPlaces {
    /// Minimum number of equal places.
    pub least: usize,
    /// Description of the shape, such as `6 super-shingles`.
    pub of: String,
}

impl EqualPlaces {
    /// Returns the condition of at least `least` equal places in sketches of a shape.
    pub fn new(shape: SketchShape, least: usize) -> Self {
        let of = shape.to_string();
        Self { least, of }
    }
}

impl MinEqual {
    /// Returns the minimum number of equal places for sketches of a shape.
    ///
    /// # Errors
    /// [`MinEqualError`] if they have fewer places, or if too many places may differ.
    pub fn places(self, shape: SketchShape) -> Result<usize, MinEqualError> {
        let least = match self {
            Self::Places(places) => places as usize,
            Self::Share(share) => (share * shape.places as f64 - ROUNDING).ceil().max(1.0) as usize,
        };
        let Some(apart) = shape.places.checked_sub(least) else {
            return Err(MinEqualError::TooMany { least, shape });
        };
        match apart <= MAX_DIFFERING {
            true => Ok(least),
            false => Err(MinEqualError::TooFew {
                least,
                apart,
                shape,
                nearest: shape.places - MAX_DIFFERING,
            }),
        }
    }
}

impl fmt::Display for MinEqual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Places(places) => places.fmt(f),
            Self::Share(share) => write!(f, "{share:?}"),
        }
    }
}

impl FromStr for MinEqual {
    type Err = ParseMinEqualError;

    fn from_str(text: &str) -> Result<Self, ParseMinEqualError> {
        // The point tells a share from a number: 1 is one place, 1.0 is all of them.
        let parsed = match text.contains('.') {
            true => {
                let share = text.parse().ok();
                share
                    .filter(|&share| share > 0.0 && share <= 1.0)
                    .map(Self::Share)
            }
            false => {
                let places = text.parse().ok();
                places.filter(|&places| places > 0).map(Self::Places)
            }
        };
        parsed.ok_or_else(|| ParseMinEqualError {
            found: text.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprints::files::PlaceKind;

    fn places(text: &str, places: usize) -> Result<usize, MinEqualError> {
        let kind = PlaceKind::Minima;
        text.parse::<MinEqual>()
            .unwrap()
            .places(SketchShape { kind, places })
    }

    #[test]
    fn numbers_and_shares_are_so_many_places() {
        assert_eq!(places("2", 6), Ok(2));
        assert_eq!(places("0.8", 128), Ok(103));
        // 0.07 times 100 is 7.000000000000001.
        assert_eq!(places("0.07", 100), Ok(7));
        assert_eq!(places("1.0", 100), Ok(100));
        assert_eq!(places("0.0001", 100), Ok(1));
        let told = |text, all| places(text, all).unwrap_err().to_string();
        assert!(told("7", 6).contains("more than the 6 minima"));
        assert!(told("0.5", 300).contains("give 172 or more"));
        for text in ["0", "-1", "0.0", "1.1", "two", "", "2x", "."] {
            assert!(text.parse::<MinEqual>().is_err(), "{text}");
        }
    }
}
