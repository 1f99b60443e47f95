//! Buckets as bits: entries of any number of bits back to back, behind a directory of marks.
//!
//! The directory has, for each bucket in turn, a zero for each of its entries and a one: the one after n zeros ends a
//! bucket before which, and in which, there are n entries in all. The number of entries before every 64th bucket stands
//! beside; with it, a bucket is found by passing over at most 63 ones. That is Elias and Fano's code of the bucket
//! starts, 1 + 1 / load bits an entry and half a bit a bucket (Elias 1974; Fano 1971).

use super::{Flipped, low_ones};

/// Buckets between two counts of entries.
pub(in super::super) const GROUP: usize = 64;
/// Bytes that may be read beyond the last mark or entry.
pub(in super::super) const PADDING: usize = 24;
/// Bits of a word that begins at any bit of eight bytes.
const WORD_BITS: usize = 57;

/// A table as bits.
#[derive(Clone, Copy, Debug)]
pub struct Dense<'a> {
    /// Entries before each 64th bucket, and all.
    pub(in super::super) counts: &'a [[u8; 4]],
    /// A zero for each entry, a one for the end of each bucket.
    pub(in super::super) marks: &'a [u8],
    /// The entries.
    pub(in super::super) entries: &'a [u8],
    /// Bits of an entry.
    pub(in super::super) entry_bits: usize,
}

/// The bits from `bit` on, at least [`WORD_BITS`] of them; all ones beyond the end, which stops every search for one.
#[inline(always)]
fn word(bytes: &[u8], bit: usize) -> u64 {
    match bytes.get(bit / 8..).and_then(<[u8]>::first_chunk) {
        Some(eight) => u64::from_le_bytes(*eight) >> (bit % 8),
        None => u64::MAX,
    }
}

impl<'a> Dense<'a> {
    /// A table out of counts, marks and entries, as [`BitWriter`] wrote them.
    pub(in super::super) fn new(
        (counts, marks, entries): (&'a [[u8; 4]], &'a [u8], &'a [u8]),
        entry_bits: usize,
    ) -> Self {
        Self {
            counts,
            marks,
            entries,
            entry_bits,
        }
    }

    /// Entries before the group of a bucket.
    #[inline(always)]
    fn count(&self, group: usize) -> usize {
        let count = self.counts.get(group).copied().unwrap_or_default();
        u32::from_le_bytes(count) as usize
    }

    /// Rank of the first entry of a bucket, and how many it has. `select` tells where the n-th one of a word is, from
    /// zero on.
    #[inline(always)]
    fn range_with(&self, bucket: usize, select: impl Fn(u64, u32) -> u32) -> (usize, usize) {
        let kept = low_ones(WORD_BITS);
        let mut bit = self.count(bucket / GROUP) + bucket / GROUP * GROUP;
        let mut left = (bucket % GROUP) as u32;
        while left > 0 {
            let word = word(self.marks, bit) & kept;
            let ones = word.count_ones();
            if ones >= left {
                bit += select(word, left - 1) as usize + 1;
                break;
            }
            left -= ones;
            bit += WORD_BITS;
        }
        let first = bit;
        loop {
            let word = word(self.marks, bit) & kept;
            if word != 0 {
                bit += word.trailing_zeros() as usize;
                // Damaged marks may promise more bits than there are.
                return (first.saturating_sub(bucket), bit - first);
            }
            bit += WORD_BITS;
        }
    }

    /// Rank of the first entry of a bucket, and how many it has.
    pub(in super::super) fn range(&self, bucket: usize) -> (usize, usize) {
        self.range_with(bucket, |word, n| {
            super::deposit(1 << n, word).trailing_zeros()
        })
    }

    /// An entry by its rank, zero beyond the end.
    pub(in super::super) fn entry(&self, rank: usize) -> u128 {
        let bit = rank * self.entry_bits;
        let mut bytes = [0; 24];
        if let Some(found) = self.entries.get(bit / 8..).and_then(<[u8]>::first_chunk) {
            bytes = *found;
        }
        let [low, middle, high] = [0, 8, 16].map(|at| {
            let eight = bytes[at..].first_chunk().copied().unwrap_or_default();
            u128::from(u64::from_le_bytes(eight))
        });
        let whole =
            (low | middle << 64) >> (bit % 8) | (high << 64).unbounded_shl(64 - (bit % 8) as u32);
        match self.entry_bits {
            128.. => whole,
            bits => whole & ((1 << bits) - 1),
        }
    }

    /// About where the entries of a bucket are: by the entries of its group, as if they were spread evenly.
    pub(in super::super) fn place(&self, bucket: usize) -> usize {
        let [start, end] = [0, 1].map(|next| self.count(bucket / GROUP + next));
        let rank = start + end.saturating_sub(start) * (bucket % GROUP) / GROUP;
        rank * self.entry_bits / 8
    }

    /// Where the marks of a bucket are, alike.
    pub(in super::super) fn place_of_marks(&self, bucket: usize) -> usize {
        let [start, end] = [0, 1].map(|next| self.count(bucket / GROUP + next));
        (start + end.saturating_sub(start) * (bucket % GROUP) / GROUP + bucket) / 8
    }
}

/// Probes buckets; see [`super::probe_dense`].
#[inline(always)]
pub(super) fn probe_with(
    table: Dense<'_>,
    probes: Flipped<'_>,
    needle: u64,
    select: impl Fn(u64, u32) -> u32 + Copy,
    hit: &mut dyn FnMut(u32, u64),
) -> u64 {
    let kept = low_ones(table.entry_bits);
    let mut compared = 0;
    for (bucket, left) in probes.probes() {
        let (start, count) = table.range_with(bucket as usize, select);
        compared += count as u64;
        for rank in start..start + count {
            let entry = if table.entry_bits <= WORD_BITS {
                word(table.entries, rank * table.entry_bits) & kept
            } else {
                table.entry(rank) as u64
            };
            if (entry ^ needle).count_ones() <= left {
                hit(bucket, entry);
            }
        }
    }
    compared
}

/// Gathers bits in whole bytes.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct BitWriter {
    held: u128,
    bits: u32,
}

impl BitWriter {
    /// Appends the low `bits` bits of `value`, at most 64; it has no others.
    pub(in super::super) fn push(&mut self, value: u64, bits: u32, out: &mut Vec<u8>) {
        self.held |= u128::from(value) << self.bits;
        self.bits += bits;
        if self.bits >= 64 {
            out.extend_from_slice(&(self.held as u64).to_le_bytes());
            self.held >>= 64;
            self.bits -= 64;
        }
    }

    /// Writes what is held, and room to read beyond.
    pub(in super::super) fn finish(&mut self, out: &mut Vec<u8>) {
        let bytes = self.bits.div_ceil(8) as usize;
        out.extend_from_slice(&self.held.to_le_bytes()[..bytes]);
        out.extend_from_slice(&[0; PADDING]);
        *self = Self::default();
    }
}
