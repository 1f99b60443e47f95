//! The machine integers that tables pack and compare, with operations on their bits and bytes.

use super::super::kernel::{bits, memory};
use super::sealed::Sealed;
use std::fmt::Debug;
use std::hash::Hash;
use std::ops::{BitAnd, BitOr, BitXor, Not};

/// A machine integer of 32, 64 or 128 bits; sealed.
pub trait Integer:
    Sealed
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

    /// Returns the low bits of `mask`; a design's masks always fit.
    fn from_u128(mask: u128) -> Self;
    /// Returns the word as the low bits of a `u128`.
    fn to_u128(self) -> u128;
    /// Returns the number of set bits, from 0 to [`Integer::BITS`].
    fn ones(self) -> u32;
    /// Returns the number of bits that differ, from 0 to the width.
    fn bits_apart(self, other: Self) -> u32 {
        (self ^ other).ones()
    }
    /// Returns the bits of the word at the set positions of `mask`, moved together to the low end.
    fn extract(self, mask: Self) -> Self;
    /// Inverts [`Integer::extract`]: spreads the low bits to the set positions of `mask`.
    fn deposit(self, mask: Self) -> Self;
    /// Joins `address` above the low `rest_bits` bits of `rest`, which has no others set.
    fn joined(address: u64, rest: Self, rest_bits: u32) -> Self;
    /// Returns the bits above the low `rest_bits`, of which there are at most 64.
    fn above(self, rest_bits: u32) -> u64;
    /// Returns the low `bits` bits.
    fn low(self, bits: u32) -> Self;
    /// Writes the low `out.len()` bytes, little-endian; `out` is at most as wide as the word.
    fn write(self, out: &mut [u8]);
    /// Writes the low `width` bytes to `out[..width]`. The rest of `out` is overwritten with unspecified bytes.
    fn write_wide(self, width: usize, out: &mut [u8]);
    /// Appends the low `width` bytes.
    fn append(self, width: usize, out: &mut Vec<u8>);
    /// Writes eight words to `out[at..]`, past the caches if they are a cache line.
    fn stream_line(out: &mut [Self], at: usize, line: &[Self; 8]) {
        out[at..at + 8].copy_from_slice(line);
    }
    /// Reads `bytes` as a little-endian number; `bytes` is at most as wide as the word.
    fn read(bytes: &[u8]) -> Self;
    /// Reads the `width` bytes at `place`; fastest if enough bytes follow for a whole word, as they mostly do.
    fn read_at(bytes: &[u8], place: usize, width: usize) -> Self;
}

macro_rules! integer {
    ($type:ty, $extract:expr, $deposit:expr, { $($special:item)* }) => {
        impl Integer for $type {
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
                // Two instructions if the processor has PEXT, otherwise a step for each run of ones in the mask, of which designs have few.
                $extract(self, mask)
            }

            #[inline]
            fn deposit(self, mask: Self) -> Self {
                $deposit(self, mask)
            }

            #[inline]
            fn joined(address: u64, rest: Self, rest_bits: u32) -> Self {
                // Without an address, the rest has the whole width, and a shift by the whole width is not possible.
                (address as Self).checked_shl(rest_bits).unwrap_or(0) | rest
            }

            #[inline]
            fn above(self, rest_bits: u32) -> u64 {
                self.checked_shr(rest_bits).unwrap_or(0) as u64
            }

            #[inline]
            fn low(self, bits: u32) -> Self {
                // A shift by the whole width returns `None`: then all bits are low.
                self & !Self::MAX.checked_shl(bits).unwrap_or(0)
            }

            #[inline]
            fn write(self, out: &mut [u8]) {
                out.copy_from_slice(&self.to_le_bytes()[..out.len()]);
            }

            #[inline]
            fn write_wide(self, width: usize, out: &mut [u8]) {
                // One store of fixed size wherever the word fits, because a copy of variable size is a call.
                match out.first_chunk_mut() {
                    Some(whole) => *whole = self.to_le_bytes(),
                    None => self.write(&mut out[..width]),
                }
            }

            #[inline]
            fn append(self, width: usize, out: &mut Vec<u8>) {
                // A store of fixed size and a truncation are much faster than a copy of variable size.
                out.extend_from_slice(&self.to_le_bytes());
                out.truncate(out.len() - (size_of::<$type>() - width));
            }

            #[inline]
            fn read(bytes: &[u8]) -> Self {
                let mut whole = [0; size_of::<$type>()];
                whole[..bytes.len()].copy_from_slice(bytes);
                Self::from_le_bytes(whole)
            }

            #[inline(always)]
            fn read_at(bytes: &[u8], place: usize, width: usize) -> Self {
                // Only near the end of a list; elsewhere one load and a mask are much faster than a copy of variable size.
                #[cold]
                fn read_last(bytes: &[u8], place: usize, width: usize) -> $type {
                    <$type>::read(&bytes[place..place + width])
                }
                match bytes.get(place..).and_then(<[u8]>::first_chunk) {
                    Some(whole) => Self::from_le_bytes(*whole).low(8 * width as u32),
                    None => read_last(bytes, place, width),
                }
            }

            $($special)*
        }
    };
}

integer!(
    u32,
    |word: u32, mask: u32| bits::extract(word.into(), mask.into()) as u32,
    |word: u32, mask: u32| bits::deposit(word.into(), mask.into()) as u32,
    {}
);
integer!(u64, bits::extract, bits::deposit, {
    #[inline]
    fn stream_line(out: &mut [u64], at: usize, line: &[u64; 8]) {
        memory::stream_line(out, at, line);
    }
});
integer!(u128, extract_wide, deposit_wide, {});

fn extract_wide(word: u128, mask: u128) -> u128 {
    let low = bits::extract(word as u64, mask as u64);
    let high = bits::extract((word >> 64) as u64, (mask >> 64) as u64);
    // PEXT takes 64 bits, so the bits of the high half are put above those of the low half.
    u128::from(low) | shifted(high, (mask as u64).count_ones())
}

/// Returns `high << by`, for any `by` up to 64.
fn shifted(high: u64, by: u32) -> u128 {
    u128::from(high) << by
}

fn deposit_wide(word: u128, mask: u128) -> u128 {
    let low_bits = (mask as u64).count_ones();
    let low = bits::deposit(word as u64, mask as u64);
    let high = bits::deposit((word >> low_bits) as u64, (mask >> 64) as u64);
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
