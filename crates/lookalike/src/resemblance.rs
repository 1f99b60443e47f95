//! Exact resemblance and containment of feature sets (Broder's measures), and the threshold arithmetic that exact joins need.
//!
//! Sets are ascending lists of distinct features, as returned by `FeatureExtractor::feature_set`; other lists give meaningless numbers. Every bound
//! here agrees to the last bit with the floating-point comparison `resemblance(a, b) >= threshold`, so that no join loses or invents a pair by
//! rounding.

mod measure;

pub use measure::SetMeasure;

use crate::kernel::intersect;

/// Returns true if the shorter of two lengths is at least the share `least` of the longer (Manku et al. 2007, section 6). Equal lengths always are.
///
/// ```
/// use lookalike::resemblance::close_lengths;
/// assert!(close_lengths(55, 100, 0.55) && !close_lengths(54, 100, 0.55));
/// ```
#[must_use]
pub fn close_lengths(a: u64, b: u64, least: f64) -> bool {
    // Divide: the product 0.55 * 100 would round up past 55.
    a == b || a.min(b) as f64 / a.max(b) as f64 >= least
}

/// Returns the number of features that two sets share. Both must be ascending without duplicates. Time is linear in both or, if one is more than 32
/// times as large as the other, the size of the smaller times the logarithm of the larger.
#[must_use]
pub fn intersection_size(a: &[u64], b: &[u64]) -> usize {
    intersect::count(a, b, 0)
}

/// Like [`intersection_size`], but returns `None` as soon as it is certain to be less than `needed`.
#[must_use]
pub fn intersection_at_least(a: &[u64], b: &[u64], needed: usize) -> Option<usize> {
    // The sizes alone tell this, before any feature is read.
    if needed > a.len().min(b.len()) {
        return None;
    }
    Some(intersect::count(a, b, needed)).filter(|&shared| shared >= needed)
}

/// Computes Broder's resemblance, the Jaccard coefficient: shared features over all features, in [0, 1]; 0 if either set is empty. Both must be
/// ascending without duplicates.
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

/// Computes Broder's containment: the share of `a` that is in `b`, in [0, 1]; 0 if either set is empty. Both must be ascending without duplicates.
#[must_use]
pub fn containment(a: &[u64], b: &[u64]) -> f64 {
    if a.is_empty() {
        0.0
    } else {
        intersection_size(a, b) as f64 / a.len() as f64
    }
}

/// Maximum number of features in a set: no list in memory has more bytes than half of all addresses.
const MAX_FEATURES: usize = usize::MAX / 2 / size_of::<u64>();

/// Computes the resemblance of two sets of these sizes that share `shared` features, at most as many as the smaller has; 0 if either is empty.
#[must_use]
pub fn resemblance_of(shared: usize, len_a: usize, len_b: usize) -> f64 {
    if len_a == 0 || len_b == 0 {
        return 0.0;
    }
    let shared = shared.min(len_a).min(len_b);
    shared as f64 / (len_a - shared).saturating_add(len_b) as f64
}

/// Returns the smallest number of shared features with which sets of these sizes reach the threshold, that is
/// `resemblance_of(shared, len_a, len_b) >= threshold`; one more than the smaller size if none does.
#[must_use]
pub fn shared_needed(len_a: usize, len_b: usize, threshold: f64) -> usize {
    let (len_a, len_b) = (len_a.min(MAX_FEATURES), len_b.min(MAX_FEATURES));
    // o / (a + b - o) = t, solved for o.
    let guess = threshold / (1.0 + threshold) * (len_a + len_b) as f64;
    smallest_reaching(guess, len_a.min(len_b), |shared| {
        resemblance_of(shared, len_a, len_b) >= threshold
    })
}

/// Returns how many of a set's `len` features, in any order that is common to all sets, must be looked at so that two sets at the threshold are sure
/// to share one of them: len - o + 1, where o is the smallest number with o / len >= threshold. Returns 0 if no set of this size can reach the
/// threshold, and `len` for a threshold of zero or less, where pairs without shared features also count and no prefix finds them.
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
    let len = len.min(MAX_FEATURES);
    let shares = |shared: usize| len > 0 && shared as f64 / len as f64 >= threshold;
    let shared_least = smallest_reaching(threshold * len as f64, len, shares);
    // A set at the threshold shares o of its `len` features, so any len - o + 1 of them include a shared one.
    // The limit is for thresholds of zero or less, which need no shared feature.
    (len + 1 - shared_least).min(len)
}

/// Returns the smallest number up to `max` for which the monotone `reaches` holds, or `max + 1` if there is none. The guess is off by at most one
/// from rounding, so the loops take at most one step.
fn smallest_reaching(guess: f64, max: usize, reaches: impl Fn(usize) -> bool) -> usize {
    // A guess of NaN becomes 0, and one that is too large becomes `max`. The comparison decides, not the formula: the guess may be off by one in
    // either direction, and a join by prefixes would lose that pair.
    let mut number = (guess.ceil() as usize).min(max);
    while number > 0 && reaches(number - 1) {
        number -= 1;
    }
    while number <= max && !reaches(number) {
        number += 1;
    }
    number
}
