//! Min-hash from one pass: one hash a feature, one minimum a bin.
//!
//! Li, Owen and Zhang, "One permutation hashing", NIPS 2012; the bins that stay empty are filled
//! by Shrivastava, "Optimal densification for fast and accurate minwise hashing", ICML 2017.

use crate::hash::{GOLDEN, avalanche, splitmix64};
use crate::sketch::Signature;

/// Min-hash with so many bins, whose cost is a few operations a feature whatever their number.
///
/// With the odd number `a = splitmix64(seed) | 1`, a feature f goes to bin
/// `floor(m * bins / 2^32)`, m the high and v the low half of `avalanche(a * f)`, and a bin holds
/// the least v. An empty bin i takes the value of the first full one among the bins
/// `floor(high half of avalanche(((i + 2^32 * (j + 1)) ^ a) * G) * bins / 2^32)`, j = 0, 1, ...,
/// G = 0x9E3779B97F4A7C15.
/// Two sets of resemblance J agree in each place with probability J. The standard error over 128
/// bins is that of 128 functions for long texts; for texts of fewer features than bins it is
/// larger, up to that of as many functions as there are features.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnePermutation {
    bins: usize,
    factor: u64,
}

/// No feature has been here: larger than every value.
const EMPTY: u64 = u64::MAX;

impl OnePermutation {
    /// So many bins, with the function drawn from `seed`.
    #[must_use]
    pub fn new(bins: usize, seed: u64) -> Self {
        let mut state = seed;
        let factor = splitmix64(&mut state) | 1;
        Self { bins, factor }
    }

    /// Number of bins.
    #[must_use]
    pub fn bins(&self) -> usize {
        self.bins
    }

    /// The signature of a set of features, or `None` when it is empty or there are no bins. Order
    /// and repetitions change nothing. Time is features and bins.
    #[must_use]
    pub fn signature(&self, features: &[u64]) -> Option<Signature> {
        if features.is_empty() || self.bins == 0 {
            return None;
        }
        let mut minima = vec![EMPTY; self.bins];
        for &feature in features {
            let hash = avalanche(feature.wrapping_mul(self.factor));
            let bin = &mut minima[self.bin(hash)];
            *bin = (*bin).min(hash & 0xFFFF_FFFF);
        }
        let filled = |bin: usize| {
            let tries = (0..)
                .map(|round| self.donor(bin, round))
                .map(|donor| minima[donor]);
            let own = std::iter::once(minima[bin]);
            let value = own.chain(tries).find(|&value| value != EMPTY);
            value.expect("a feature is in some bin, and the tries reach all") as u32
        };
        Some((0..self.bins).map(filled).collect::<Vec<u32>>().into())
    }

    /// The place of a hash: its high half scaled to the bins.
    fn bin(&self, hash: u64) -> usize {
        (((hash >> 32) * self.bins as u64) >> 32) as usize
    }

    fn donor(&self, bin: usize, round: u64) -> usize {
        let number = (bin as u64).wrapping_add((round + 1) << 32) ^ self.factor;
        self.bin(avalanche(number.wrapping_mul(GOLDEN)))
    }
}
