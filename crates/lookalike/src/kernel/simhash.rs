//! Simhash accumulation.

/// For each of the 64 bits whether more than half of `features` have it set.
pub(crate) fn majority(features: &[u64]) -> u64 {
    let mut counts = [0usize; 64];
    for feature in features {
        for (bit, count) in counts.iter_mut().enumerate() {
            *count += (feature >> bit & 1) as usize;
        }
    }
    (0..64)
        .filter(|&bit| 2 * counts[bit] > features.len())
        .fold(0, |mask, bit| mask | 1 << bit)
}

/// For each of the 64 bits whether the features that have it set outweigh the others.
pub(crate) fn weighted(features: &[(u64, i32)]) -> u64 {
    let mut sums = [0i64; 64];
    for &(feature, weight) in features {
        for (bit, sum) in sums.iter_mut().enumerate() {
            let sign = if feature >> bit & 1 == 1 { 1 } else { -1 };
            *sum += sign * i64::from(weight);
        }
    }
    (0..64)
        .filter(|&bit| sums[bit] > 0)
        .fold(0, |mask, bit| mask | 1 << bit)
}
