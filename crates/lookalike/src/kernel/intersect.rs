//! Size of the intersection of two ascending lists.
//!
//! Lists of similar length are merged: four values of one side are compared with four of the other in all combinations, and the side with the smaller
//! last value advances. (Eight values with AVX-512 took a third longer: all rotations and comparisons of that width share one port.) If one list is
//! far shorter, its values are looked up in the other with doubling steps (galloping).

use super::{CpuLevel, versions};

/// Ratio of the lengths from which galloping takes fewer steps than merging.
const GALLOP: usize = 32;

/// Returns the number of common values of two ascending lists without duplicates if it is at least `needed`; else any smaller number, as soon as this
/// is certain.
pub(crate) fn count(a: &[u64], b: &[u64], needed: usize) -> usize {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    // A merge reads all of the longer list without a misprediction; galloping reads little of it, but mispredicts at most steps.
    if long.len() / GALLOP > short.len() {
        gallop(short, long)
    } else {
        merge(CpuLevel::current().at_most_avx2(), short, long, needed)
    }
}

/// Returns the number of values of `short` that are in `long`.
fn gallop(short: &[u64], mut long: &[u64]) -> usize {
    let mut shared = 0;
    for value in short {
        let mut step = 1;
        // Doubling steps cost twice the logarithm of the distance, however far it is (Bentley, Yao 1976).
        while long.get(step).is_some_and(|other| other < value) {
            step *= 2;
        }
        // The value is at most as far as the step that reached it.
        let near = &long[..long.len().min(step + 1)];
        let at = near.partition_point(|other| other < value);
        shared += usize::from(near.get(at) == Some(value));
        // Both ascend, so no later value is before this position.
        long = &long[at..];
    }
    shared
}

versions! {
    fn merge(a: &[u64], b: &[u64], needed: usize) -> usize {
        portable: merge_portable, avx2: merge_avx2, avx512: merge_avx2,
    }
}

/// Merges one value of each side at a time, without a branch on their order.
#[inline(always)]
fn merge_portable(a: &[u64], b: &[u64], _needed: usize) -> usize {
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        let (x, y) = (a[i], b[j]);
        // Add up comparisons: equal values advance both sides, others the smaller one.
        shared += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    shared
}

/// Merges `N` values of each side at a time; `common` counts those that two blocks share. Stops when even all remaining values could not bring the
/// shared ones to `needed`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn merge_blocks<const N: usize>(
    a: &[u64],
    b: &[u64],
    needed: usize,
    common: impl Fn(&[u64; N], &[u64; N]) -> usize,
) -> usize {
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a[i..].first_chunk(), b[j..].first_chunk()) {
        // A branch that is taken once: it is predicted, and saves the rest of most pairs that are not similar.
        if shared + (a.len() - i).min(b.len() - j) < needed {
            return shared;
        }
        shared += common(x, y);
        // The block with the smaller last value is done: none of its values can be in a later block of the other side. If both last values are equal,
        // both blocks are done.
        let (last_x, last_y) = (x[N - 1], y[N - 1]);
        // A conditional move: the side that advances is as good as random.
        i += if last_x <= last_y { N } else { 0 };
        j += if last_y <= last_x { N } else { 0 };
    }
    shared + merge_portable(&a[i..], &b[j..], 0)
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[expect(unsafe_code, reason = "vector instructions")]
fn merge_avx2(a: &[u64], b: &[u64], needed: usize) -> usize {
    // SAFETY: this body is only named by the versions for AVX2 and for AVX-512, which includes AVX2.
    merge_blocks(a, b, needed, |x, y| unsafe { x86::common_4(x, y) })
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// Returns the number of values in both of two lists of 4, by comparing every rotation of one.
    #[inline]
    #[target_feature(enable = "avx2,popcnt")]
    #[expect(unsafe_code, reason = "vector loads take pointers")]
    pub(super) fn common_4(x: &[u64; 4], y: &[u64; 4]) -> usize {
        // SAFETY: both lists have the 32 bytes of the vector.
        let (x, y) = unsafe {
            (
                _mm256_loadu_si256(x.as_ptr().cast()),
                _mm256_loadu_si256(y.as_ptr().cast()),
            )
        };
        // Lists have no duplicates, so a lane is equal in at most one rotation, and the mask counts the common values.
        let turned = _mm256_permute4x64_epi64::<0b00_11_10_01>(y);
        let first = _mm256_or_si256(_mm256_cmpeq_epi64(x, y), _mm256_cmpeq_epi64(x, turned));
        let (y, turned) = (
            _mm256_permute4x64_epi64::<0b01_00_11_10>(y),
            _mm256_permute4x64_epi64::<0b10_01_00_11>(y),
        );
        let second = _mm256_or_si256(_mm256_cmpeq_epi64(x, y), _mm256_cmpeq_epi64(x, turned));
        let equal = _mm256_castsi256_pd(_mm256_or_si256(first, second));
        _mm256_movemask_pd(equal).count_ones() as usize
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn check(a: &BTreeSet<u64>, b: &BTreeSet<u64>) {
        let expected = a.intersection(b).count();
        let [a, b]: [Vec<u64>; 2] = [a, b].map(|set| set.iter().copied().collect());
        for level in CpuLevel::available() {
            for needed in [0, expected / 2, expected] {
                assert_eq!(
                    merge(level, &a, &b, needed),
                    expected,
                    "{level:?}: {a:?} {b:?}"
                );
                assert_eq!(
                    merge(level, &b, &a, needed),
                    expected,
                    "{level:?}: {b:?} {a:?}"
                );
            }
            for needed in expected + 1..expected + 9 {
                assert!(
                    merge(level, &a, &b, needed) < needed,
                    "{level:?}: {a:?} {b:?}"
                );
            }
        }
        assert_eq!(gallop(&a, &b), expected, "{a:?} {b:?}");
        assert_eq!(count(&a, &b, 0), expected, "{a:?} {b:?}");
    }

    proptest! {
        #[test]
        fn dense_sets(a in proptest::collection::btree_set(0u64..60, 0..60), b in proptest::collection::btree_set(0u64..60, 0..60)) {
            check(&a, &b);
        }

        #[test]
        fn sets_of_unlike_sizes(a in proptest::collection::btree_set(0u64..400, 0..8), b in proptest::collection::btree_set(0u64..400, 0..390)) {
            check(&a, &b);
        }

        #[test]
        fn extreme_values(a in proptest::collection::btree_set(u64::MAX - 30..=u64::MAX, 0..30), b in proptest::collection::btree_set(u64::MAX - 30..=u64::MAX, 0..30)) {
            check(&a, &b);
        }
    }
}
