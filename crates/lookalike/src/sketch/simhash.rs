//! Charikar's hash of 64 bits (Manku et al. 2007, section 2; Holub).

use std::fmt;

use crate::kernel::simhash;
use crate::scheme::parse_error::hexadecimal;

/// A 64-bit simhash, compared by Hamming distance.
///
/// Its text form is 16 lower-case hexadecimal digits.
///
/// ```
/// use lookalike::Fingerprint;
///
/// let a: Fingerprint = "00000000000000ff".parse()?;
/// assert_eq!(a.distance(Fingerprint(0xf0)), 4);
/// assert_eq!(Fingerprint(0xf0).to_string(), "00000000000000f0");
/// # Ok::<(), lookalike::scheme::ParseOptionError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub u64);

impl Fingerprint {
    /// Returns the number of bits that differ, 0 to 64.
    #[must_use]
    pub const fn distance(self, other: Self) -> u32 {
        (self.0 ^ other.0).count_ones()
    }
}

hexadecimal!(Fingerprint(u64), 16, "fingerprint");

impl fmt::LowerHex for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

/// Simhash (Manku et al. 2007, section 2): for each bit, the weights of the features with a 1 there are added, those of the features with a 0
/// subtracted, and the sign of the sum is kept. A bit of the fingerprint is 1 if and only if its sum is above zero; a tie gives 0.
///
/// ```
/// use lookalike::{FeatureExtractor, Scheme, Simhash};
///
/// let scheme = Scheme::default().shingle("words:1".parse()?);
/// let mut extractor = FeatureExtractor::new(&scheme);
/// let mut fingerprint = |text: &str| Simhash::of(&extractor.extract(text)).expect("a text with words");
/// let line = fingerprint("Once upon a midnight dreary, while I pondered, weak and weary");
/// let near = fingerprint("Once upon a midnight dreary, while I pondered, weak and wary");
/// let far = fingerprint("It was many and many a year ago, in a kingdom by the sea");
/// assert!(line.distance(near) < line.distance(far));
/// # Ok::<(), lookalike::scheme::ParseOptionError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Simhash;

impl Simhash {
    /// Computes the fingerprint of features that each weigh 1; one that is listed twice weighs 2. `None` if there are no features: an empty text has
    /// no fingerprint. Linear time, any order.
    ///
    /// ```
    /// use lookalike::{Fingerprint, Simhash};
    /// assert_eq!(Simhash::fingerprint(&[0b110, 0b011, 0b010]), Some(Fingerprint(0b010)));
    /// assert_eq!(Simhash::fingerprint(&[]), None);
    /// ```
    #[must_use]
    pub fn fingerprint(features: &[u64]) -> Option<Fingerprint> {
        (!features.is_empty()).then(|| Fingerprint(simhash::majority(features)))
    }

    /// Computes the fingerprint of features with weights, which may be negative. `None` if there are no features. Sums are exact for up to 2^32
    /// features.
    #[must_use]
    pub fn weighted(features: &[(u64, i32)]) -> Option<Fingerprint> {
        (!features.is_empty()).then(|| Fingerprint(simhash::weighted(features)))
    }
}
