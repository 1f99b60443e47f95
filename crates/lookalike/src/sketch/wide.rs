//! Charikar's hash of 32 and 128 bits, and the simhash of features with any weights.

use crate::feature::Features;
use crate::hash::{GOLDEN, avalanche};
use crate::scheme::parse_error::hexadecimal;
use crate::sketch::{Fingerprint, Simhash};

/// A simhash of up to 128 bits in the low bits of a number. Its text form is 32 lower-case hexadecimal digits.
///
/// ```
/// use lookalike::{FeatureExtractor, Scheme, Simhash};
///
/// let mut extractor = FeatureExtractor::new(&Scheme::default());
/// let features = extractor.extract("Once upon a midnight dreary, while I pondered");
/// let wide = Simhash::wide(&features, 128).expect("a text with words");
/// let narrow = Simhash::of(&features).expect("a text with words");
/// assert_eq!(wide.0 as u64, narrow.0);
/// assert!(wide.to_string().ends_with(&narrow.to_string()));
/// assert_eq!(wide.to_string().parse(), Ok(wide));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WideFingerprint(pub u128);

impl WideFingerprint {
    /// Returns the number of bits that differ.
    #[must_use]
    pub const fn distance(self, other: Self) -> u32 {
        (self.0 ^ other.0).count_ones()
    }
}

hexadecimal!(WideFingerprint(u128), 32, "wide fingerprint");

/// Returns the second 64 bits that a feature votes with in a simhash of 128.
fn second(feature: u64) -> u64 {
    avalanche(feature ^ GOLDEN)
}

impl Simhash {
    /// Computes the 64-bit fingerprint of features with the weights of their scheme; `None` if there are none.
    #[must_use]
    pub fn of(features: &Features<'_>) -> Option<Fingerprint> {
        if features.weights.is_empty() {
            Self::fingerprint(features.equal_weights())
        } else {
            Self::weighted(features.weights)
        }
    }

    /// Computes the fingerprint of 32, 64 or 128 bits. The low 64 bits are those of [`Simhash::of`], the high ones are the fingerprint of the
    /// features `avalanche(f ^ 0x9E3779B97F4A7C15)`. A narrower fingerprint is the low part of a wider one.
    ///
    /// # Panics
    /// Panics if `bits` is not 32, 64 or 128.
    #[must_use]
    pub fn wide(features: &Features<'_>, bits: u32) -> Option<WideFingerprint> {
        let low = u128::from(Self::of(features)?.0);
        Some(WideFingerprint(match bits {
            // Each bit is a vote of its own, so any part of a fingerprint is a fingerprint.
            32 => low & 0xFFFF_FFFF,
            64 => low,
            128 => {
                let equal: Vec<u64> = features
                    .equal_weights()
                    .iter()
                    .map(|&f| second(f))
                    .collect();
                let weights: Vec<(u64, i32)> = features
                    .weights
                    .iter()
                    .map(|&(f, w)| (second(f), w))
                    .collect();
                let high = Self::of(&Features::of_weights(&equal, &weights))?;
                low | u128::from(high.0) << 64
            }
            other => panic!("a simhash has 32, 64 or 128 bits, not {other}"),
        }))
    }
}
