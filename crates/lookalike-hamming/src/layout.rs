//! Memory layouts of a table's entries, and the number of key bits that are worth using as an address.
//!
//! A table addresses its buckets by `d` bits of its key. The other bits of each entry are stored, in whole bytes except in [`Layout::Dense`]. The
//! best `d` depends on the number of entries, not on the design: a design only says which bits may be used, and how many of them may be wrong.

use super::kernel::{DENSE_GROUP, RankBytes};
use std::fmt;
use std::str::FromStr;

/// Memory layout of the buckets of a table. Index files store its number.
///
/// ```
/// use lookalike_hamming::Layout;
///
/// assert_eq!("buckets".parse(), Ok(Layout::CacheLineBuckets));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layout {
    /// Entries in whole bytes, back to back, after a directory of bucket starts.
    Packed = 0,
    /// A cache line for each bucket and a rare overflow: the fewest memory accesses.
    CacheLineBuckets = 1,
    /// Entries and directory in as few bits as possible: the least memory.
    Dense = 2,
}

impl Layout {
    /// All layouts.
    pub const ALL: [Self; 3] = [Self::Packed, Self::CacheLineBuckets, Self::Dense];

    /// Returns the lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Packed => "packed",
            Self::CacheLineBuckets => "buckets",
            Self::Dense => "dense",
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Error for a text that is not the name of a layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown layout {0:?}: use packed, dense or buckets")]
pub struct ParseLayoutError(String);

impl FromStr for Layout {
    type Err = ParseLayoutError;

    fn from_str(text: &str) -> Result<Self, ParseLayoutError> {
        let named = Self::ALL.into_iter().find(|layout| layout.name() == text);
        named.ok_or_else(|| ParseLayoutError(text.to_owned()))
    }
}

/// Bytes of a cache line, and so of a bucket of [`Layout::CacheLineBuckets`].
pub(super) const LINE_BYTES: usize = 64;
/// Bytes of a line that hold entries; the others hold their number.
pub(super) const LINE_ENTRY_BYTES: usize = 60;
/// Maximum number of address bits of a table.
const MAX_ADDRESS_BITS: u32 = 32;

/// Returns the bytes of an entry of which `address_bits` bits are implied by its bucket.
pub(super) fn entry_bytes(code_bits: u32, address_bits: u32) -> usize {
    (code_bits - address_bits).div_ceil(8) as usize
}

/// Returns the number of entries of this width in a line; an entry without bytes counts as one byte.
#[inline]
pub(super) fn bucket_capacity(width: usize) -> usize {
    LINE_ENTRY_BYTES / width.max(1)
}

/// Addressing of a table of `fingerprints` distinct codes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TableGeometry {
    /// Number of key bits that address a bucket.
    pub(super) address_bits: u32,
    /// Bytes of an entry.
    pub(super) width: usize,
    /// Bits of an entry.
    pub(super) entry_bits: f64,
    /// Average number of entries in a bucket.
    pub(super) load: f64,
    /// Bytes for each fingerprint, including the directory, if fingerprints are evenly spread.
    pub(super) bytes: f64,
}

impl TableGeometry {
    /// Chooses the cheapest geometry for keys of at most `prefix_bits` bits.
    pub(super) fn choose(
        layout: Layout,
        code_bits: u32,
        prefix_bits: u32,
        fingerprints: u64,
    ) -> Self {
        let most = prefix_bits.min(MAX_ADDRESS_BITS).min(code_bits);
        // There are at most 33, so all are tried.
        let all = (0..=most).map(|bits| Self::of(layout, code_bits, bits, fingerprints));
        // Each additional address bit makes buckets and entries shorter, but doubles the directory. The minimum is at about one entry per bucket for
        // dense tables, and at a handful for packed ones.
        let best = all.min_by(|a, b| a.cost(layout).total_cmp(&b.cost(layout)));
        best.unwrap_or_else(|| Self::of(layout, code_bits, 0, fingerprints))
    }

    fn of(layout: Layout, code_bits: u32, address_bits: u32, fingerprints: u64) -> Self {
        let width = entry_bytes(code_bits, address_bits);
        let buckets = (1_u64 << address_bits) as f64;
        let count = fingerprints.max(1) as f64;
        let load = count / buckets;
        let rank = RankBytes::of_count(fingerprints).get() as f64;
        let bytes = match layout {
            // A start for each bucket, and the end.
            Layout::Packed => width as f64 + rank * (buckets + 1.0) / count,
            Layout::CacheLineBuckets => {
                let (overflow_entries, overflow_share) = overflow(load, bucket_capacity(width));
                let line =
                    LINE_BYTES as f64 + overflow_entries * width as f64 + overflow_share * 16.0;
                line * buckets / count
            }
            Layout::Dense => {
                // A zero for each entry and a one for each bucket; a rank for each group, and one for all.
                let groups = (buckets / DENSE_GROUP as f64).ceil() + 1.0;
                let directory = (1.0 + buckets / count) / 8.0 + rank * groups / count;
                f64::from(code_bits - address_bits) / 8.0 + directory
            }
        };
        Self {
            address_bits,
            width,
            entry_bits: f64::from(code_bits - address_bits),
            load,
            bytes,
        }
    }

    /// Returns the cost to minimise: memory, plus a penalty for false-positive comparisons.
    fn cost(&self, layout: Layout) -> f64 {
        let entries = match layout {
            // One more entry to compare weighs as much as a sixteenth of a byte for each fingerprint.
            Layout::Packed | Layout::Dense => self.load / 16.0,
            Layout::CacheLineBuckets => {
                // An overflow costs a second access to memory.
                let (_, overflow_share) = overflow(self.load, bucket_capacity(self.width));
                self.load / 16.0 + 16.0 * overflow_share
            }
        };
        self.bytes + entries
    }
}

/// Returns, for buckets with a Poisson number of entries of this mean, the expected number of entries beyond `capacity`, and the share of buckets
/// that have any.
pub(super) fn overflow(mean: f64, capacity: usize) -> (f64, f64) {
    // This far above the capacity all buckets overflow, and the exponential below would vanish.
    if mean > 4.0 * capacity as f64 + 40.0 {
        return (mean - capacity as f64, 1.0);
    }
    let (mut term, mut below, mut held) = ((-mean).exp(), 0.0, 0.0);
    for count in 0..=capacity {
        // Poisson probabilities, each from the one before.
        below += term;
        held += term * count as f64;
        // The recurrence P(n + 1) = P(n) mean / (n + 1), which needs no factorial and cannot overflow.
        term *= mean / (count + 1) as f64;
    }
    let overflow_share = (1.0 - below).max(0.0);
    (
        (mean - held - overflow_share * capacity as f64).max(0.0),
        overflow_share,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poisson_bucket_overflows_as_often_as_it_should() {
        let (overflow_entries, overflow_share) = overflow(8.0, 12);
        assert!((overflow_share - 0.0638).abs() < 1e-3, "{overflow_share}");
        assert!(
            overflow_entries > 0.1 && overflow_entries < 0.2,
            "{overflow_entries}"
        );
        assert_eq!(overflow(1000.0, 12), (988.0, 1.0));
        assert_eq!(overflow(0.0, 12), (0.0, 0.0));
    }

    #[test]
    fn geometry_at_the_sizes_that_are_published() {
        let packed = TableGeometry::choose(Layout::Packed, 64, 32, 1 << 27);
        assert_eq!((packed.address_bits, packed.width), (24, 5));
        assert!((packed.bytes - 5.5).abs() < 0.01, "{packed:?}");
        let buckets = TableGeometry::choose(Layout::CacheLineBuckets, 64, 32, 1 << 27);
        assert_eq!((buckets.address_bits, buckets.width), (24, 5));
        assert!(buckets.bytes < 8.6, "{buckets:?}");
        let dense = TableGeometry::choose(Layout::Dense, 64, 32, 1 << 27);
        assert!(dense.bytes < 5.0, "{dense:?}");
        let short_key = TableGeometry::choose(Layout::Packed, 64, 16, 1 << 27);
        assert_eq!(short_key.address_bits, 16);
        assert_eq!(
            TableGeometry::choose(Layout::Packed, 32, 32, 0).address_bits,
            0
        );
    }
}
