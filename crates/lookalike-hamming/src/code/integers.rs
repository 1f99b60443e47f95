//! The integers of 32, 64 and 128 bits as words; those of 64 bits have kernels.

use super::super::kernel::{
    self, BucketTable, BucketVisitor, CacheLine, Dense, Found, PackedTable, ProbeLocations,
    ProbeSet,
};
use super::sealed::Sealed;
use super::{Code, Word};

macro_rules! word {
    ($type:ty, $extract:expr, $deposit:expr, { $($kernels:item)* }) => {
        impl Sealed for $type {}

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
        probes: ProbeLocations<'_>,
        needle: u64,
        hit: &mut dyn FnMut(u32, u64),
    ) -> u64 {
        kernel::probe_packed(entries, width, probes, needle, hit)
    }

    fn probe_dense(
        table: Dense<'_>,
        probes: ProbeLocations<'_>,
        needle: u64,
        hit: &mut dyn FnMut(u32, u64),
    ) -> u64 {
        kernel::probe_dense(table, probes, needle, hit)
    }

    fn probe_buckets(
        lines: &[CacheLine],
        shape: (usize, u32),
        probes: ProbeSet<'_>,
        needle: u64,
        visitor: &mut dyn BucketVisitor<u64>,
    ) -> u64 {
        kernel::probe_buckets(lines, shape, probes, needle, visitor)
    }

    fn search_buckets(
        tables: &[BucketTable<'_, u64>],
        queries: &[u64],
        radius: u32,
        found: Found<'_, u64>,
    ) -> u64 {
        kernel::search_buckets(tables, queries, radius, found)
    }

    fn search_packed(
        tables: &[PackedTable<'_, u64>],
        queries: &[u64],
        radius: u32,
        found: Found<'_, u64>,
    ) -> u64 {
        kernel::search_packed(tables, queries, radius, found)
    }

    fn scan_cache_line(
        line: &[u8; 64],
        width: usize,
        count: usize,
        needle: u64,
        radius: u32,
    ) -> u64 {
        kernel::scan_cache_line(line, width, count, needle, radius)
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
