//! Exact resemblance and containment of feature sets (Broder's measures), and the arithmetic of
//! thresholds that an exact join rests on.
//!
//! Sets are ascending lists of distinct features, as `FeatureExtractor::feature_set` gives them; other lists give meaningless numbers.
//! Every bound here agrees to the last bit with the floating-point comparison
//! `resemblance(a, b) >= threshold`, so that no join loses or invents a pair by rounding.

mod measure;

pub use measure::SetMeasure;

use crate::kernel::intersect;

/// Tells whether the shorter of two lengths is at least this share of the longer (Manku et al. 2007, section 6). Equal ones are.
///
/// ```
/// use lookalike::resemblance::close_lengths;
/// assert!(close_lengths(55, 100, 0.55) && !close_lengths(54, 100, 0.55));
/// ```
#[must_use]
pub fn close_lengths(a: u64, b: u64, least: f64) -> bool {
    // A quotient: a product would round .55 of 100 up, past 55.
    a == b || a.min(b) as f64 / a.max(b) as f64 >= least
}

/// Number of features the two sets share, which ascend and repeat nothing. Time is linear in both, or in the smaller times the
/// logarithm of the larger where one is more than 32 times the other.
#[must_use]
pub fn intersection_size(a: &[u64], b: &[u64]) -> usize {
    intersect::count(a, b, 0)
}

/// The same if it is at least `needed`; `None` as soon as it cannot be.
#[must_use]
pub fn intersection_at_least(a: &[u64], b: &[u64], needed: usize) -> Option<usize> {
    // Told by the sizes alone, before any feature is read.
    if needed > a.len().min(b.len()) {
        return None;
    }
    Some(intersect::count(a, b, needed)).filter(|&shared| shared >= needed)
}

/// Broder's resemblance, the Jaccard coefficient: shared features over all features, in [0, 1];
/// 0 if either set is empty. Both ascend and repeat nothing.
///
/// ```
/// use lookalike::{containment, resemblance};
///
/// let (page, quote) = ([1, 2, 3, 4, 5, 6, 7, 8], [2, 3, 9]);
/// assert_eq!(resemblance(&page, &quote), 2.0 / 9.0);
/// assert_eq!(containment(&quote, &page), 2.0 / 3.0);
/// ```
#[must_use]
pub fn resemblance(a: &[u64], b: &[u64]) -> f64 {
    resemblance_of(intersection_size(a, b), a.len(), b.len())
}

/// Broder's containment: the share of `a` that is in `b`, in [0, 1]; 0 if either set is empty. Both ascend and repeat nothing.
#[must_use]
pub fn containment(a: &[u64], b: &[u64]) -> f64 {
    if a.is_empty() {
        0.0
    } else {
        intersection_size(a, b) as f64 / a.len() as f64
    }
}

/// The resemblance of two sets of these sizes that share so many features; 0 if either is empty.
#[must_use]
pub fn resemblance_of(shared: usize, len_a: usize, len_b: usize) -> f64 {
    if len_a == 0 || len_b == 0 {
        return 0.0;
    }
    shared as f64 / (len_a + len_b - shared) as f64
}

/// The least number of shared features with which sets of these sizes reach the threshold, that is
/// `resemblance_of(shared, len_a, len_b) >= threshold`; more than either size when none does.
#[must_use]
pub fn shared_needed(len_a: usize, len_b: usize, threshold: f64) -> usize {
    // o / (a + b - o) = t, solved for o.
    let guess = threshold / (1.0 + threshold) * (len_a + len_b) as f64;
    least(guess, len_a.min(len_b), |shared| {
        resemblance_of(shared, len_a, len_b) >= threshold
    })
}

/// Number of a set's `len` features, in any one order that is common to all sets, that must be looked
/// at so that two sets at the threshold are sure to share one of them:
/// len - o + 1, where o is the least number with o / len >= threshold.
/// 0 when no set of this size can reach the threshold; `len` for a threshold of zero or less,
/// where pairs that share nothing also count and no prefix finds them.
///
/// ```
/// use lookalike::{intersection_at_least, prefix_len, shared_needed};
///
/// let (a, b): (Vec<u64>, Vec<u64>) = ((0..10).collect(), (1..11).collect());
/// // Of sets of ten features those that reach 0.8 share nine, and the first three of each hold a common one.
/// assert_eq!((shared_needed(a.len(), b.len(), 0.8), prefix_len(a.len(), 0.8)), (9, 3));
/// assert!(a[..3].iter().any(|feature| b[..3].contains(feature)));
/// assert_eq!(intersection_at_least(&a, &b, 9), Some(9));
/// ```
#[must_use]
pub fn prefix_len(len: usize, threshold: f64) -> usize {
    let shares = |shared: usize| len > 0 && shared as f64 / len as f64 >= threshold;
    let shared_least = least(threshold * len as f64, len, shares);
    // A set at the threshold shares o of its `len` features: any len - o + 1 of them hold one.
    (len + 1 - shared_least).min(len)
}

/// The least number up to `max` that `reaches`, which is monotone; `max + 1` if none does. The
/// guess is off by a rounding at most, so that the loops take one step.
fn least(guess: f64, max: usize, reaches: impl Fn(usize) -> bool) -> usize {
    // A guess that is not a number becomes 0, one that is too large becomes max.
    // The comparison decides, not the formula: rounding of the guess may be off by one in either direction, and
    // a join by prefixes would lose that pair.
    let mut number = (guess.ceil() as usize).min(max);
    while number > 0 && reaches(number - 1) {
        number -= 1;
    }
    while number <= max && !reaches(number) {
        number += 1;
    }
    number
}
