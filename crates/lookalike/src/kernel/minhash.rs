//! Min-hash: minima of many linear functions over many values.

/// `minima[i] = min(minima[i], factors[i] * x + offsets[i])` over the folds x of `features`.
pub(crate) fn update(minima: &mut [u32], factors: &[u32], offsets: &[u32], features: &[u64]) {
    for &feature in features {
        let x = fold(feature);
        for ((minimum, factor), offset) in minima.iter_mut().zip(factors).zip(offsets) {
            *minimum = (*minimum).min(factor.wrapping_mul(x).wrapping_add(*offset));
        }
    }
}

/// The 32 bits of a feature that the functions see: both halves, xored.
pub(crate) const fn fold(feature: u64) -> u32 {
    (feature >> 32) as u32 ^ feature as u32
}
