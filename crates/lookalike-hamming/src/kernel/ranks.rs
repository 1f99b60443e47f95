//! Ascending ranks, each in as few whole bytes as the largest of them needs, but at least four.

use super::memory::prefetch;

/// Number of bytes after the last rank: each rank is read as eight bytes, and the surplus is masked off.
pub(in super::super) const PADDING: usize = 8;
/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// Number of bytes of a rank, or of the number of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RankBytes(u8);

impl Default for RankBytes {
    fn default() -> Self {
        Self(4)
    }
}

impl RankBytes {
    /// Returns enough bytes for the ranks of `count` entries, including the end.
    pub fn of_count(count: u64) -> Self {
        let bits = u64::BITS - count.leading_zeros();
        Self((bits.div_ceil(8) as u8).max(4))
    }

    /// Takes this number of bytes; `None` if no list has such ranks.
    pub fn new(bytes: u64) -> Option<Self> {
        (4..=8).contains(&bytes).then_some(Self(bytes as u8))
    }

    /// Returns the number of bytes.
    pub fn get(self) -> usize {
        self.0.into()
    }

    /// Returns the bytes of a rank that are stored.
    pub fn cut(self, rank: &[u8; 8]) -> &[u8] {
        &rank[..self.get()]
    }
}

/// Ranks that can be read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ranks<'a> {
    bytes: &'a [u8],
    width: usize,
    /// Mask of the bits of a rank.
    mask: u64,
}

impl<'a> Ranks<'a> {
    /// Reads ranks of `width` bytes, back to back from the first byte on and followed by eight bytes more.
    #[inline(always)]
    pub fn new(bytes: &'a [u8], width: RankBytes) -> Self {
        Self {
            bytes,
            width: width.get(),
            mask: u64::MAX >> (64 - 8 * width.get()),
        }
    }

    /// Returns all ranks if they have four bytes, as they nearly always do: a factor and a mask that are only known at run time would slow down a
    /// search by a tenth and more. Some of the padding is returned as well.
    #[inline(always)]
    pub fn narrow(&self) -> Option<&'a [[u8; 4]]> {
        (self.width == 4).then_some(self.bytes.as_chunks().0)
    }

    /// Returns the rank at an index; zero beyond the end.
    #[inline(always)]
    pub fn get(&self, at: usize) -> usize {
        if let Some(ranks) = self.narrow() {
            let four = ranks.get(at).copied();
            return u32::from_le_bytes(four.unwrap_or_default()) as usize;
        }
        let eight = self.bytes.get(at * self.width..);
        let eight = eight.and_then(<[u8]>::first_chunk).unwrap_or(&[0; 8]);
        (u64::from_le_bytes(*eight) & self.mask) as usize
    }

    /// Returns the rank at an index, and the difference between the next rank and it.
    #[inline(always)]
    pub fn range(&self, at: usize) -> (usize, usize) {
        let first = self.get(at);
        (first, self.get(at + 1).saturating_sub(first))
    }

    /// Prefetches a rank.
    #[inline(always)]
    pub fn prefetch(&self, at: usize) {
        prefetch(self.bytes, at * self.width);
    }

    /// Prefetches the last byte of the next rank, which is in the next cache line now and then.
    #[inline(always)]
    pub fn prefetch_next(&self, at: usize) {
        prefetch(self.bytes, (at + 2) * self.width - 1);
    }

    /// Returns the number of ranks that one request covers: as many as fit a cache line, a power of two.
    #[inline(always)]
    pub fn per_line(&self) -> usize {
        if self.width == 4 {
            LINE_BYTES / 4
        } else {
            LINE_BYTES / 8
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_take_four_bytes_until_they_do_not_fit() {
        let bytes = |count| RankBytes::of_count(count).get();
        for (count, expected) in [
            (0, 4),
            (u64::from(u32::MAX), 4),
            (1 << 32, 5),
            ((1 << 40) - 1, 5),
            (1 << 40, 6),
            (u64::MAX, 8),
        ] {
            assert_eq!(bytes(count), expected, "{count}");
            assert!(RankBytes::new(expected as u64).is_some());
        }
        for wrong in [0, 3, 9, u64::MAX] {
            assert!(RankBytes::new(wrong).is_none(), "{wrong}");
        }
    }
}
