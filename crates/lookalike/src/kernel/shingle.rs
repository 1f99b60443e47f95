//! Token hashes to shingle features.

use crate::hash::{GOLDEN, avalanche};

/// Appends the feature of each window of `width` tokens.
pub(crate) fn extend(out: &mut Vec<u64>, tokens: &[u64], width: usize) {
    if width == 1 {
        return out.extend(tokens);
    }
    let kind = (width as u64).wrapping_mul(GOLDEN);
    out.extend(tokens.windows(width).map(|window| {
        avalanche(
            window
                .iter()
                .fold(0u64, |mix, token| mix.rotate_left(1) ^ token)
                ^ kind,
        )
    }));
}
