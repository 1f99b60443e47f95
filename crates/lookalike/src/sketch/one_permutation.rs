//! Min-hash from one pass: one hash a feature, one minimum a bin.
//!
//! Li, Owen and Zhang, "One permutation hashing", NIPS 2012; the bins that stay empty are filled
//! by Shrivastava, "Optimal densification for fast and accurate minwise hashing", ICML 2017.

use crate::hash::{GOLDEN, avalanche, splitmix64};
use crate::kernel::bins::{EMPTY, FEW, HIGHEST};
use crate::kernel::densify::{Donors, ask, list_empty};
use crate::kernel::one_permutation;
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
///
/// Filling takes some `bins²` tries, divided by the number of full bins: a text of two features takes 8,000,000 with the 4096 bins that
/// a scheme may have, and seconds with 65535.
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

/// The donors of all bins at the first tries: short texts ask for many.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FirstDonors {
    /// At the first [`TRIES`], for as few bins as the kernel handles at once.
    Few(Box<[Donors]>),
    /// At the first [`TRIES_OF_MANY`], one try after another.
    Many(Box<[u16]>),
}

/// Enough for texts of ten features; looked at only as far as bins are empty.
const TRIES: usize = 64;
const TRIES_OF_MANY: usize = 16;

impl OnePermutation {
    /// So many bins, at most 65535, with the function drawn from `seed`. Memory: 8 KiB for up to 128 bins, 32 bytes a bin for more.
    ///
    /// # Panics
    /// When there are more bins.
    #[must_use]
    pub fn new(bins: usize, seed: u64) -> Self {
        assert!(bins <= usize::from(u16::MAX), "at most 65535 bins");
        let mut state = seed;
        let factor = splitmix64(&mut state) | 1;
        let row = |round| {
            let mut row = [0; FEW];
            for (bin, place) in row[..bins].iter_mut().enumerate() {
                // Below 128, so it fits a byte.
                *place = donor(bins, factor, bin, round) as u8;
            }
            row
        };
        let kept = match bins {
            0..=FEW => FirstDonors::Few((0..TRIES as u64).map(row).collect()),
            _ => FirstDonors::Many(
                (0..bins * TRIES_OF_MANY)
                    .map(|at| donor(bins, factor, at % bins, (at / bins) as u64) as u16)
                    .collect(),
            ),
        };
        Self { bins, factor, kept }
    }

    /// Number of bins.
    #[must_use]
    pub fn bins(&self) -> usize {
        self.bins
    }

    /// The signature of a set of features, or `None` when it is empty or there are no bins. Order
    /// and repetitions change nothing. Time is features and bins, for sets that leave few bins empty.
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
        match &self.kept {
            FirstDonors::Few(tries) => {
                let open = one_permutation::few(out, self.factor, features, tries);
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
                    left = ask(out, &full, &mut places[..left], |bin| donors[bin].into());
                }
                self.fill(out, &full, &mut places[..left], TRIES_OF_MANY);
            }
        }
        true
    }

    /// Fills the bins at `places`, whose first `tried` donors were empty.
    fn fill(&self, out: &mut [u32], full: &[u8], places: &mut [u16], tried: usize) {
        let (mut left, mut round) = (places.len(), tried as u64);
        if left > 0
            && let Some(only) = single(full)
        {
            // Whoever is asked, this one will be the first to answer: after as many tries as there are bins.
            places
                .iter()
                .for_each(|&bin| out[usize::from(bin)] = out[only]);
            return;
        }
        // Ends: some bin is full, and the donors of all rounds are pseudo-random.
        while left > 0 {
            left = ask(out, full, &mut places[..left], |bin| {
                donor(self.bins, self.factor, bin, round)
            });
            round += 1;
        }
    }
}

/// The one full bin, if there is only one.
fn single(full: &[u8]) -> Option<usize> {
    let mut full = (0..full.len()).filter(|&bin| full[bin] != EMPTY);
    full.next().filter(|_| full.next().is_none())
}

/// Donor that bin `bin` tries in `round`, from 0.
fn donor(bins: usize, factor: u64, bin: usize, round: u64) -> usize {
    let number = (bin as u64).wrapping_add((round + 1) << 32) ^ factor;
    let hash = avalanche(number.wrapping_mul(GOLDEN));
    (((hash >> 32) * bins as u64) >> 32) as usize
}
