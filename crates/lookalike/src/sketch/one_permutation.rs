//! Min-hash from one pass: one hash a feature, one minimum a bin.
//!
//! Li, Owen and Zhang, "One permutation hashing", NIPS 2012; the bins that stay empty are filled
//! by Shrivastava, "Optimal densification for fast and accurate minwise hashing", ICML 2017.

use crate::hash::{GOLDEN, avalanche, splitmix64};
use crate::kernel::one_permutation::{self, EMPTY};
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
    /// The donors of all bins at the first [`ROUNDS`] tries, one try after another.
    donors: Box<[u16]>,
}

/// Tries whose donors are kept: short texts ask for many.
const ROUNDS: usize = 16;
/// Bins whose minima need no allocation.
const FEW: usize = 256;

impl OnePermutation {
    /// So many bins, at most 65535, with the function drawn from `seed`. Memory: 32 bytes a bin.
    ///
    /// # Panics
    /// When there are more bins.
    #[must_use]
    pub fn new(bins: usize, seed: u64) -> Self {
        assert!(bins <= usize::from(u16::MAX), "at most 65535 bins");
        let mut state = seed;
        let factor = splitmix64(&mut state) | 1;
        let donor = |at: usize| donor(bins, factor, at % bins, (at / bins) as u64) as u16;
        Self {
            bins,
            factor,
            donors: (0..bins * ROUNDS).map(donor).collect(),
        }
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
        let mut places = vec![0; self.bins];
        self.signature_into(features, &mut places)
            .then(|| places.into())
    }

    /// The same into `out`; false, and `out` untouched, when there are no features or no bins.
    ///
    /// # Panics
    /// If `out` is not as long as there are bins.
    pub fn signature_into(&self, features: &[u64], out: &mut [u32]) -> bool {
        assert_eq!(out.len(), self.bins, "one place a bin");
        if features.is_empty() || self.bins == 0 {
            return false;
        }
        let (mut few, mut many) = ([EMPTY; FEW], Vec::new());
        let (mut few_open, mut many_open) = ([0; FEW], Vec::new());
        let (minima, open) = match self.bins {
            0..=FEW => (&mut few[..self.bins], &mut few_open[..self.bins]),
            _ => {
                many.resize(self.bins, EMPTY);
                many_open.resize(self.bins, 0);
                (&mut many[..], &mut many_open[..])
            }
        };
        one_permutation::update(minima, self.factor, features);
        let left = one_permutation::values(out, open, minima);
        self.fill(out, minima, &mut open[..left]);
        true
    }

    /// Gives each of the `open` bins the value of the first full one among its donors, all of them
    /// one try after another.
    fn fill(&self, out: &mut [u32], minima: &[u64], open: &mut [u16]) {
        let mut kept = self.donors.chunks_exact(self.bins);
        let (mut left, mut round) = (open.len(), 0);
        while left > 0 {
            let open = &mut open[..left];
            left = match kept.next() {
                Some(donors) => ask(out, minima, open, |bin| donors[bin].into()),
                None => ask(out, minima, open, |bin| {
                    donor(self.bins, self.factor, bin, round)
                }),
            };
            round += 1;
        }
    }
}

/// Gives each of the `open` bins the value of its donor and lists those first whose donor is empty
/// too; returns how many these are. Whether a donor is empty is as good as random, so the loop
/// has no branch on it.
#[inline(always)]
fn ask(out: &mut [u32], minima: &[u64], open: &mut [u16], donor: impl Fn(usize) -> usize) -> usize {
    let mut still = 0;
    for at in 0..open.len() {
        let bin = usize::from(open[at]);
        let value = minima[donor(bin)];
        out[bin] = value as u32;
        open[still] = bin as u16;
        still += usize::from(value == EMPTY);
    }
    still
}

/// Where bin `bin` looks for a value at its try `round`, from 0.
fn donor(bins: usize, factor: u64, bin: usize, round: u64) -> usize {
    let number = (bin as u64).wrapping_add((round + 1) << 32) ^ factor;
    let hash = avalanche(number.wrapping_mul(GOLDEN));
    (((hash >> 32) * bins as u64) >> 32) as usize
}
