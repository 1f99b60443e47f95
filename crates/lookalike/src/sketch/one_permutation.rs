//! Min-hash in one pass: one hash for each feature, one minimum for each bin.
//!
//! Li, Owen and Zhang, "One permutation hashing", NIPS 2012; bins that stay empty are filled as in Shrivastava, "Optimal densification for fast and
//! accurate minwise hashing", ICML 2017.

use crate::hash::{GOLDEN, avalanche, splitmix64};
use crate::kernel::bins::{EMPTY, HIGHEST, MAX_SMALL_BINS};
use crate::kernel::densify::{Donors, fill_from_donors, list_empty};
use crate::kernel::one_permutation;
use crate::sketch::Signature;

/// Min-hash with a number of bins, which costs a few operations per feature, however many bins there are.
///
/// With the odd number `a = splitmix64(seed) | 1`, a feature f goes to bin `floor(m * bins / 2^32)`, where m is the high half and v the low half of
/// `avalanche(a * f)`, and a bin holds the smallest v. An empty bin i takes the value of the first full one among the bins
/// `floor(high half of avalanche(((i + 2^32 * (j + 1)) ^ a) * G) * bins / 2^32)`, j = 0, 1, ..., where G = 0x9E3779B97F4A7C15. Two sets of
/// resemblance J agree in each place with probability J. For long texts the standard error over 128 bins is that of 128
/// functions; for texts of fewer features than bins it is larger, up to that of as many functions as there are features.
///
/// Filling takes about `bins²` tries, divided by the number of full bins. For a text of two features these are 8,000,000 tries with the 4096 bins
/// that a scheme may have, and seconds with 65535.
///
/// ```
/// use lookalike::OnePermutation;
/// use lookalike::hash::avalanche;
///
/// let features: Vec<u64> = (0..1500).map(avalanche).collect();
/// let bins = OnePermutation::new(128, 0);
/// let a = bins.signature(&features[..1000]).expect("there are features");
/// let b = bins.signature(&features[500..]).expect("there are features");
/// // A resemblance of 1/3, as of 128 functions, from one hash a feature.
/// assert!((a.agreement(&b)? - 1.0 / 3.0).abs() < 0.15);
/// # Ok::<(), lookalike::sketch::LengthMismatch>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnePermutation {
    bins: usize,
    factor: u64,
    kept: FirstDonors,
}

/// Donors of all bins in the first tries, kept because short texts need many.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FirstDonors {
    /// The donors in the first [`TRIES`], for as few bins as the kernel handles at once.
    Few(Box<[Donors]>),
    /// The donors in the first [`TRIES_OF_MANY`], one try after another.
    Many(Box<[u16]>),
}

/// Number of tries that are enough for texts of ten features; they are read only while bins are empty.
const TRIES: usize = 64;
const TRIES_OF_MANY: usize = 16;

impl OnePermutation {
    /// Creates `bins` bins, at most 65535, with a function drawn from `seed`. Memory: 8 KiB for up to 128 bins, 32 bytes per bin for more.
    ///
    /// # Panics
    /// Panics if there are more than 65535 bins.
    #[must_use]
    pub fn new(bins: usize, seed: u64) -> Self {
        assert!(bins <= usize::from(u16::MAX), "at most 65535 bins");
        let mut state = seed;
        // An odd factor permutes the numbers modulo 2^64, so different features stay different.
        let factor = splitmix64(&mut state) | 1;
        let row = |round| {
            let mut row = [0; MAX_SMALL_BINS];
            for (bin, place) in row[..bins].iter_mut().enumerate() {
                // Less than 128, so it fits a byte.
                *place = donor(bins, factor, bin, round) as u8;
            }
            row
        };
        let kept = match bins {
            0..=MAX_SMALL_BINS => FirstDonors::Few((0..TRIES as u64).map(row).collect()),
            _ => FirstDonors::Many(
                (0..bins * TRIES_OF_MANY)
                    .map(|at| donor(bins, factor, at % bins, (at / bins) as u64) as u16)
                    .collect(),
            ),
        };
        Self { bins, factor, kept }
    }

    /// Returns the number of bins.
    #[must_use]
    pub fn bins(&self) -> usize {
        self.bins
    }

    /// Computes the signature of a set of features; `None` if the set is empty or there are no bins. Order and repetitions do not matter. Time is
    /// linear in features and bins for sets that leave few bins empty.
    #[must_use]
    pub fn signature(&self, features: &[u64]) -> Option<Signature> {
        let mut places = vec![0; self.bins];
        self.signature_into(features, &mut places)
            .then(|| places.into())
    }

    /// Like [`OnePermutation::signature`], but writes to `out`. Returns false and leaves `out` unchanged if there are no features or no bins.
    ///
    /// # Panics
    /// Panics if the length of `out` is not the number of bins.
    pub fn signature_into(&self, features: &[u64], out: &mut [u32]) -> bool {
        assert_eq!(out.len(), self.bins, "one place a bin");
        if features.is_empty() || self.bins == 0 {
            return false;
        }
        match &self.kept {
            FirstDonors::Few(tries) => {
                let open = one_permutation::small_signature(out, self.factor, features, tries);
                if let Some(mut open) = open {
                    self.fill(out, &open.full, &mut open.places, TRIES);
                }
            }
            FirstDonors::Many(donors) => {
                let (mut full, mut places) = (vec![EMPTY; self.bins], vec![0; self.bins]);
                out.fill(HIGHEST);
                one_permutation::update(out, &mut full, self.factor, features);
                let mut left = list_empty(&mut places, &full);
                for donors in donors.chunks_exact(self.bins) {
                    left =
                        fill_from_donors(out, &full, &mut places[..left], |bin| donors[bin].into());
                }
                self.fill(out, &full, &mut places[..left], TRIES_OF_MANY);
            }
        }
        true
    }

    /// Fills the bins listed in `places`, whose first `tried` donors were empty.
    fn fill(&self, out: &mut [u32], full: &[u8], places: &mut [u16], tried: usize) {
        let (mut left, mut round) = (places.len(), tried as u64);
        if left > 0
            && let Some(only) = single(full)
        {
            // All empty bins would end at this one, after as many tries as there are bins.
            places
                .iter()
                .for_each(|&bin| out[usize::from(bin)] = out[only]);
            return;
        }
        // Terminates, because some bin is full and the donors of the rounds are pseudo-random.
        while left > 0 {
            left = fill_from_donors(out, full, &mut places[..left], |bin| {
                donor(self.bins, self.factor, bin, round)
            });
            round += 1;
        }
    }
}

/// Returns the only full bin, or `None` if there are several.
fn single(full: &[u8]) -> Option<usize> {
    let mut full = (0..full.len()).filter(|&bin| full[bin] != EMPTY);
    full.next().filter(|_| full.next().is_none())
}

/// Returns the donor that bin `bin` tries in `round`, counted from 0.
fn donor(bins: usize, factor: u64, bin: usize, round: u64) -> usize {
    let number = (bin as u64).wrapping_add((round + 1) << 32) ^ factor;
    let hash = avalanche(number.wrapping_mul(GOLDEN));
    (((hash >> 32) * bins as u64) >> 32) as usize
}
