//! Codes: the bit strings whose Hamming distance is asked for.
//!
//! First step of the way of a fingerprint through the engine: a [`Code`] is what callers hold (a
//! [`Fingerprint`] of 64 bits, or a bare `u32` or `u128` of a scheme with another width), a
//! [`Word`] the machine integer that tables pack and compare.

use super::kernel::{
    self, Dense, Flipped, Found, Line, LineTable, LineVisitor, Located, OnceTable, PackedTable,
    Steps,
};
use crate::sketch::Fingerprint;
use std::fmt::Debug;
use std::hash::Hash;
use std::ops::{BitAnd, BitOr, BitXor, Not};

pub(crate) mod sealed {
    /// Closes the traits of this engine, so that their contracts can grow.
    pub trait Sealed {}
}

/// A machine integer of 32, 64 or 128 bits; sealed.
pub trait Word:
    sealed::Sealed
    + Copy
    + Ord
    + Hash
    + Debug
    + Default
    + Send
    + Sync
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
    + 'static
{
    /// Width in bits: 32, 64 or 128.
    const BITS: u32;
    /// The word with no bit set.
    const ZERO: Self;

    /// The low bits of `mask`; a design's masks always fit.
    fn from_u128(mask: u128) -> Self;
    /// The word as the low bits of a `u128`.
    fn to_u128(self) -> u128;
    /// How many bits are set: 0 to [`Word::BITS`].
    fn ones(self) -> u32;
    /// The bits of the word at the set positions of `mask`, moved together to the low end.
    fn extract(self, mask: Self) -> Self;
    /// The inverse of [`Word::extract`]: the low bits spread to the set positions of `mask`.
    fn deposit(self, mask: Self) -> Self;
    /// `address` above the low `rest_bits` bits of `rest`; `rest` has no others.
    fn joined(address: u64, rest: Self, rest_bits: u32) -> Self;
    /// The bits above the low `rest_bits`, of which there are at most 64.
    fn above(self, rest_bits: u32) -> u64;
    /// The low `bits` bits.
    fn low(self, bits: u32) -> Self;
    /// Writes the low `out.len()` bytes, little-endian; `out` is at most as wide as the word.
    fn write(self, out: &mut [u8]);
    /// Writes the low `width` bytes to the start of `out`, and what it likes to the rest of it.
    fn write_wide(self, width: usize, out: &mut [u8]) {
        self.write(&mut out[..width]);
    }
    /// Appends the low `width` bytes.
    fn append(self, width: usize, out: &mut Vec<u8>);
    /// For each of `words`, its bits under `address` above the others; `out` is as long.
    fn permute(words: &[Self], address: Self, out: &mut [Self]) {
        let rest_bits = Self::BITS - address.ones();
        for (&word, out) in words.iter().zip(out) {
            let bucket = word.extract(address).above(0);
            *out = Self::joined(bucket, word.extract(!address), rest_bits);
        }
    }
    /// Writes eight words to `out[at..]`, past the caches when they are a cache line.
    fn stream_line(out: &mut [Self], at: usize, line: &[Self; 8]) {
        out[at..at + 8].copy_from_slice(line);
    }
    /// Reads `bytes` as a little-endian number; `bytes` is at most as wide as the word.
    fn read(bytes: &[u8]) -> Self;
    /// Positions of the entries within `radius` of `needle` among `count <= 64` packed entries of
    /// `width` bytes each, as a bit mask; `bytes` starts at the first entry.
    fn scan_packed(bytes: &[u8], width: usize, count: usize, needle: Self, radius: u32) -> u64 {
        scan_slowly(bytes, width, count, needle, radius)
    }
    /// Compares the entries of probes that lie back to back in `entries`, which has eight bytes more. Calls `hit` with
    /// bucket and value of each entry near `needle`, and returns how many were compared.
    fn probe_packed(
        entries: &[u8],
        width: usize,
        probes: Located<'_>,
        needle: Self,
        hit: &mut dyn FnMut(u32, Self),
    ) -> u64 {
        let mut compared = 0;
        for (bucket, left, extent) in probes.each() {
            compared += u64::from(extent.count);
            let first = extent.first as usize;
            for at in first..first + extent.count as usize {
                let entry = Self::read(&entries[at * width..(at + 1) * width]);
                if (entry ^ needle).ones() <= left {
                    hit(bucket, entry);
                }
            }
        }
        compared
    }
    /// As [`Word::probe_packed`] for a table as bits, and in any order.
    fn probe_dense(
        table: Dense<'_>,
        probes: Located<'_>,
        needle: Self,
        hit: &mut dyn FnMut(u32, Self),
    ) -> u64 {
        let mut compared = 0;
        for (bucket, left, extent) in probes.each() {
            compared += u64::from(extent.count);
            let first = extent.first as usize;
            for rank in first..first + extent.count as usize {
                let entry = Self::from_u128(table.entry(rank));
                if (entry ^ needle).ones() <= left {
                    hit(bucket, entry);
                }
            }
        }
        compared
    }
    /// As [`Word::probe_packed`] for buckets of a line each, which hold `shape.1` entries of `shape.0`
    /// bytes at most.
    fn probe_lines(
        lines: &[Line],
        (width, capacity): (usize, u32),
        probes: Flipped<'_>,
        needle: Self,
        visitor: &mut dyn LineVisitor<Self>,
    ) -> u64 {
        let mut compared = 0;
        for &flip in probes.flips {
            let Some(left) = probes.radius.checked_sub(flip.count_ones()) else {
                continue;
            };
            let bucket = probes.bucket ^ flip;
            let line = &lines[bucket as usize];
            let count = line.tail().min(capacity) as usize;
            compared += count as u64;
            for at in 0..count {
                let entry = Self::read(&line.0[at * width..(at + 1) * width]);
                if (entry ^ needle).ones() <= left {
                    visitor.hit(bucket, entry);
                }
            }
            if line.tail() > capacity {
                compared += visitor.overflow(bucket, left);
            }
        }
        compared
    }
    /// Searches tables in lines that a query probes once each, 1 to 20 of them. Calls `found` with the number of the query,
    /// the code and its distance, and returns how many entries were compared.
    fn search_lines(
        tables: &[LineTable<'_, Self>],
        queries: &[Self],
        radius: u32,
        found: Found<'_, Self>,
    ) -> u64 {
        search_slowly(tables, queries, radius, found)
    }
    /// As [`Word::search_lines`] for packed tables.
    fn search_packed(
        tables: &[PackedTable<'_, Self>],
        queries: &[Self],
        radius: u32,
        found: Found<'_, Self>,
    ) -> u64 {
        search_slowly(tables, queries, radius, found)
    }
    /// As [`Word::scan_packed`] for the entries of one cache line.
    fn scan_line(line: &[u8; 64], width: usize, count: usize, needle: Self, radius: u32) -> u64 {
        scan_slowly(line, width, count, needle, radius)
    }
    /// Which of at most 64 words lie within `radius` of `needle`, as a bit mask.
    fn scan_words(words: &[Self], needle: Self, radius: u32) -> u64 {
        let near = words
            .iter()
            .map(|&word| u64::from((word ^ needle).ones() <= radius));
        near.enumerate().fold(0, |hits, (i, near)| hits | near << i)
    }
    /// All pairs within `radius` inside each of some groups of `words`, appended to `pairs`. The groups
    /// lie back to back from `start` on; `ends` tells where each ends. Those of more than `most` words
    /// are passed over.
    fn close_pairs(
        words: &[Self],
        start: usize,
        ends: &[u32],
        most: usize,
        radius: u32,
        pairs: &mut Vec<(Self, Self)>,
    ) {
        kernel::each_group(words, start, ends, most, |group| {
            for (i, &a) in group.iter().enumerate() {
                let near = group[i + 1..].iter().filter(|&&b| (a ^ b).ones() <= radius);
                pairs.extend(near.map(|&b| (a, b)));
            }
        });
    }
}

/// The search of tables that a query probes once each, for words without kernels of their own.
fn search_slowly<W: Word, T: OnceTable<W>>(
    tables: &[T],
    queries: &[W],
    radius: u32,
    found: Found<'_, W>,
) -> u64 {
    let steps = Steps {
        extract: W::extract,
        deposit: W::deposit,
        near: |bytes: &[u8], place: usize, width, count, needle, radius| {
            scan_slowly(&bytes[place..], width, count, needle, radius)
        },
    };
    kernel::search_with(tables, queries, radius, found, &steps)
}

/// The obvious scan over packed entries, for words without a vector kernel.
fn scan_slowly<W: Word>(bytes: &[u8], width: usize, count: usize, needle: W, radius: u32) -> u64 {
    if width == 0 {
        return kernel::low_ones(if needle.ones() <= radius { count } else { 0 });
    }
    let entries = bytes.chunks_exact(width).take(count).enumerate();
    entries.fold(0, |hits, (i, entry)| {
        let near = (W::read(entry) ^ needle).ones() <= radius;
        hits | u64::from(near) << i
    })
}

macro_rules! word {
    ($type:ty, $extract:expr, $deposit:expr, { $($kernels:item)* }) => {
        impl sealed::Sealed for $type {}

        impl Word for $type {
            const BITS: u32 = <$type>::BITS;
            const ZERO: Self = 0;

            #[inline]
            fn from_u128(mask: u128) -> Self {
                mask as $type
            }

            #[inline]
            fn to_u128(self) -> u128 {
                self.into()
            }

            #[inline]
            fn ones(self) -> u32 {
                self.count_ones()
            }

            #[inline]
            fn extract(self, mask: Self) -> Self {
                $extract(self, mask)
            }

            #[inline]
            fn deposit(self, mask: Self) -> Self {
                $deposit(self, mask)
            }

            #[inline]
            fn joined(address: u64, rest: Self, rest_bits: u32) -> Self {
                (address as Self).checked_shl(rest_bits).unwrap_or(0) | rest
            }

            #[inline]
            fn above(self, rest_bits: u32) -> u64 {
                self.checked_shr(rest_bits).unwrap_or(0) as u64
            }

            #[inline]
            fn low(self, bits: u32) -> Self {
                self & !Self::MAX.checked_shl(bits).unwrap_or(0)
            }

            #[inline]
            fn write(self, out: &mut [u8]) {
                out.copy_from_slice(&self.to_le_bytes()[..out.len()]);
            }

            #[inline]
            fn append(self, width: usize, out: &mut Vec<u8>) {
                // A store of fixed size and a cut are much faster than a copy of any size.
                out.extend_from_slice(&self.to_le_bytes());
                out.truncate(out.len() - (size_of::<$type>() - width));
            }

            #[inline]
            fn read(bytes: &[u8]) -> Self {
                let mut whole = [0; size_of::<$type>()];
                whole[..bytes.len()].copy_from_slice(bytes);
                Self::from_le_bytes(whole)
            }

            $($kernels)*
        }

        impl Code for $type {
            type Word = Self;

            #[inline]
            fn word(self) -> Self {
                self
            }

            #[inline]
            fn from_word(word: Self) -> Self {
                word
            }
        }
    };
}

word!(
    u32,
    |word: u32, mask: u32| kernel::extract(word.into(), mask.into()) as u32,
    |word: u32, mask: u32| kernel::deposit(word.into(), mask.into()) as u32,
    {}
);
word!(u64, kernel::extract, kernel::deposit, {
    fn write_wide(self, width: usize, out: &mut [u8]) {
        match out.first_chunk_mut() {
            Some(eight) => *eight = self.to_le_bytes(),
            None => self.write(&mut out[..width]),
        }
    }

    #[inline]
    fn stream_line(out: &mut [u64], at: usize, line: &[u64; 8]) {
        kernel::stream_line(out, at, line);
    }

    fn permute(words: &[u64], address: u64, out: &mut [u64]) {
        kernel::permute(words, address, out);
    }

    fn scan_packed(bytes: &[u8], width: usize, count: usize, needle: u64, radius: u32) -> u64 {
        kernel::scan_packed(bytes, width, count, needle, radius)
    }

    fn probe_packed(
        entries: &[u8],
        width: usize,
        probes: Located<'_>,
        needle: u64,
        hit: &mut dyn FnMut(u32, u64),
    ) -> u64 {
        kernel::probe_packed(entries, width, probes, needle, hit)
    }

    fn probe_dense(
        table: Dense<'_>,
        probes: Located<'_>,
        needle: u64,
        hit: &mut dyn FnMut(u32, u64),
    ) -> u64 {
        kernel::probe_dense(table, probes, needle, hit)
    }

    fn probe_lines(
        lines: &[Line],
        shape: (usize, u32),
        probes: Flipped<'_>,
        needle: u64,
        visitor: &mut dyn LineVisitor<u64>,
    ) -> u64 {
        kernel::probe_lines(lines, shape, probes, needle, visitor)
    }

    fn search_lines(
        tables: &[LineTable<'_, u64>],
        queries: &[u64],
        radius: u32,
        found: Found<'_, u64>,
    ) -> u64 {
        kernel::search_lines(tables, queries, radius, found)
    }

    fn search_packed(
        tables: &[PackedTable<'_, u64>],
        queries: &[u64],
        radius: u32,
        found: Found<'_, u64>,
    ) -> u64 {
        kernel::search_packed(tables, queries, radius, found)
    }

    fn scan_line(line: &[u8; 64], width: usize, count: usize, needle: u64, radius: u32) -> u64 {
        kernel::scan_line(line, width, count, needle, radius)
    }

    fn scan_words(words: &[u64], needle: u64, radius: u32) -> u64 {
        kernel::scan_words(words, needle, radius)
    }

    fn close_pairs(
        words: &[u64],
        start: usize,
        ends: &[u32],
        most: usize,
        radius: u32,
        pairs: &mut Vec<(u64, u64)>,
    ) {
        kernel::close_pairs(words, start, ends, most, radius, pairs);
    }
});
word!(u128, extract_wide, deposit_wide, {});

fn extract_wide(word: u128, mask: u128) -> u128 {
    let low = kernel::extract(word as u64, mask as u64);
    let high = kernel::extract((word >> 64) as u64, (mask >> 64) as u64);
    u128::from(low) | shifted(high, (mask as u64).count_ones())
}

/// `high << by`, for any `by` up to 64.
fn shifted(high: u64, by: u32) -> u128 {
    u128::from(high) << by
}

fn deposit_wide(word: u128, mask: u128) -> u128 {
    let low_bits = (mask as u64).count_ones();
    let low = kernel::deposit(word as u64, mask as u64);
    let high = kernel::deposit((word >> low_bits) as u64, (mask >> 64) as u64);
    u128::from(low) | u128::from(high) << 64
}

/// What is stored and searched: a [`Fingerprint`], or a bare integer of another width; sealed.
pub trait Code: sealed::Sealed + Copy + Debug + Send + Sync + 'static {
    /// The integer that holds the code.
    type Word: Word;

    /// The code as an integer.
    fn word(self) -> Self::Word;
    /// The code that an integer holds.
    fn from_word(word: Self::Word) -> Self;
    /// How many bits differ: 0 to the width.
    fn bits_apart(self, other: Self) -> u32 {
        (self.word() ^ other.word()).ones()
    }
}

impl sealed::Sealed for Fingerprint {}

impl Code for Fingerprint {
    type Word = u64;

    #[inline]
    fn word(self) -> u64 {
        self.0
    }

    #[inline]
    fn from_word(word: u64) -> Self {
        Self(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_words_extract_and_deposit_bit_by_bit() {
        let (word, mask) = (
            0x0123_4567_89ab_cdef_fedc_ba98_7654_3210_u128,
            u128::MAX / 7,
        );
        let mut expected = 0;
        let positions = (0..128).filter(|bit| mask >> bit & 1 == 1);
        for (to, from) in positions.enumerate() {
            expected |= (word >> from & 1) << to;
        }
        assert_eq!(word.extract(mask), expected);
        assert_eq!(expected.deposit(mask), word & mask);
        assert_eq!(word.extract(u128::MAX), word);
        assert_eq!(word.deposit(u128::MAX), word);
    }

    #[test]
    fn bytes_round_trip_at_every_width() {
        for width in 0..=8 {
            let mut bytes = [0; 8];
            0x8877_6655_4433_2211_u64.write(&mut bytes[..width]);
            let kept = if width == 8 {
                u64::MAX
            } else {
                (1 << (8 * width)) - 1
            };
            assert_eq!(u64::read(&bytes[..width]), 0x8877_6655_4433_2211 & kept);
        }
    }
}
