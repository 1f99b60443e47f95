//! Blocks of sixteen bytes that are examined together: the step of the loops over JSON strings and HTML text.
//!
//! A mask has bit i set if byte i matches. SSE2, which every x86-64 processor has, is selected at compile time; other targets use the portable twin,
//! and a test compares the two.

#[cfg(not(target_feature = "sse2"))]
pub(crate) use portable::ByteBlock;
#[cfg(target_feature = "sse2")]
pub(crate) use sse2::ByteBlock;

/// Bytes in a block.
pub(crate) const BLOCK: usize = 16;

#[cfg(target_feature = "sse2")]
#[expect(unsafe_code, reason = "vector instructions")]
mod sse2 {
    #[cfg(target_arch = "x86")]
    use std::arch::x86::{
        __m128i, _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8,
    };
    #[cfg(target_arch = "x86_64")]
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8,
    };

    use super::BLOCK;

    /// A vector register.
    #[derive(Clone, Copy)]
    pub(crate) struct ByteBlock(__m128i);

    impl ByteBlock {
        /// Loads the block. Compiles to one unaligned load.
        #[inline]
        pub(crate) fn new(bytes: &[u8; BLOCK]) -> ByteBlock {
            let all = u128::from_le_bytes(*bytes);
            // SAFETY: needs SSE2, without which this module is not compiled.
            // Built from two halves, because the load intrinsic takes a raw pointer; the compiler turns this into one `movdqu`.
            ByteBlock(unsafe { _mm_set_epi64x((all >> 64) as i64, all as i64) })
        }

        #[inline]
        pub(crate) fn equal(self, byte: u8) -> u32 {
            // SAFETY: needs SSE2, without which this module is not compiled.
            unsafe {
                let same = _mm_cmpeq_epi8(self.0, _mm_set1_epi8(byte as i8));
                _mm_movemask_epi8(same) as u32
            }
        }

        #[inline]
        pub(crate) fn at_most(self, byte: u8) -> u32 {
            // SAFETY: needs SSE2, without which this module is not compiled.
            unsafe {
                // SSE2 compares only signed bytes, where non-ASCII bytes are the smallest. The minimum is unsigned: x <= b is min(x, b) == x.
                let least = _mm_min_epu8(self.0, _mm_set1_epi8(byte as i8));
                _mm_movemask_epi8(_mm_cmpeq_epi8(least, self.0)) as u32
            }
        }
    }
}

#[cfg(any(test, not(target_feature = "sse2")))]
mod portable {
    use super::BLOCK;

    /// The bytes themselves.
    #[derive(Clone, Copy)]
    pub(crate) struct ByteBlock([u8; BLOCK]);

    impl ByteBlock {
        pub(crate) fn new(bytes: &[u8; BLOCK]) -> ByteBlock {
            ByteBlock(*bytes)
        }

        pub(crate) fn equal(self, byte: u8) -> u32 {
            self.mask(|other| other == byte)
        }

        pub(crate) fn at_most(self, byte: u8) -> u32 {
            self.mask(|other| other <= byte)
        }

        fn mask(self, passes: impl Fn(u8) -> bool) -> u32 {
            let bits = self.0.iter().enumerate();
            bits.fold(0, |mask, (i, byte)| mask | u32::from(passes(*byte)) << i)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_kinds_of_block_agree(bytes: [u8; BLOCK], byte: u8, at in 0..BLOCK) {
            let mut bytes = bytes;
            bytes[at] = byte;
            let (ours, theirs) = (ByteBlock::new(&bytes), portable::ByteBlock::new(&bytes));
            prop_assert_eq!(ours.equal(byte), theirs.equal(byte));
            prop_assert_eq!(ours.at_most(byte), theirs.at_most(byte));
            prop_assert!(ours.equal(byte) >> at & 1 == 1);
        }
    }
}
