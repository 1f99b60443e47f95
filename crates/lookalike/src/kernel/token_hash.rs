//! XXH3-64 of many short words at once.

use crate::hash::xxh3_64;

/// Appends the hash of each word of `bytes`; `bounds` holds start and end of each.
pub(crate) fn extend(out: &mut Vec<u64>, bytes: &[u8], bounds: &[usize], seed: u64) {
    out.extend(
        bounds
            .chunks_exact(2)
            .map(|bound| xxh3_64(&bytes[bound[0]..bound[1]], seed)),
    );
}
