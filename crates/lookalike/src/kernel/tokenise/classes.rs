//! Masks of character classes for 64 bytes, and their lower-cased copy.

use super::BLOCK;

/// One bit for each byte, the first byte lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Classes {
    /// `A-Z`, `a-z`
    pub letter: u64,
    /// `0-9`
    pub digit: u64,
    /// `_`
    pub underscore: u64,
    /// `.`, `'`, `:`, which join letters
    pub joins_letters: u64,
    /// `.`, `'`, `,`, `;`, which join digits
    pub joins_digits: u64,
    /// Bytes from 0x80 on.
    pub other: u64,
}

/// Kernels that make the masks for a level of instructions.
pub(super) trait Classify {
    /// Returns the classes of `block`, and writes its copy to `copy`, with `A-Z` lower-cased if `lower` is true.
    fn classify(block: &[u8; BLOCK], lower: bool, copy: &mut [u8; BLOCK]) -> Classes;

    /// Writes `base` plus the position of each bit of `mask`, ascending, followed by arbitrary values.
    #[inline(always)]
    fn positions(mut mask: u64, base: u32, out: &mut [u32; BLOCK]) {
        let count = mask.count_ones() as usize;
        // English has about twenty changes in 64 bytes: words of five letters and their spaces.
        let (first, rest) = out.split_at_mut(24);
        for slot in first {
            *slot = base + mask.trailing_zeros();
            // Wrapping, because the mask may be zero by now: values after the last position mean nothing.
            mask &= mask.wrapping_sub(1);
        }
        for slot in rest.iter_mut().take(count.saturating_sub(24)) {
            *slot = base + mask.trailing_zeros();
            mask &= mask.wrapping_sub(1);
        }
    }
}

/// Eight bytes at a time in a 64-bit register.
pub(super) struct Portable;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = ONES << 7;

impl Classify for Portable {
    #[inline(always)]
    fn classify(block: &[u8; BLOCK], lower: bool, copy: &mut [u8; BLOCK]) -> Classes {
        let mut classes = Classes::default();
        let (words, _) = block.as_chunks::<8>();
        let (copies, _) = copy.as_chunks_mut::<8>();
        for (at, (word, copy)) in words.iter().zip(copies).enumerate() {
            let bytes = u64::from_le_bytes(*word);
            let eight = eight(bytes);
            // The mark of a letter, 0x80, becomes 0x20, the bit of lower case.
            let fold = if lower { eight.letter >> 2 } else { 0 };
            *copy = (bytes | fold).to_le_bytes();
            classes.letter |= gather(eight.letter) << (8 * at);
            classes.digit |= gather(eight.digit) << (8 * at);
            classes.underscore |= gather(eight.underscore) << (8 * at);
            classes.joins_letters |= gather(eight.joins_letters) << (8 * at);
            classes.joins_digits |= gather(eight.joins_digits) << (8 * at);
            classes.other |= gather(eight.other) << (8 * at);
        }
        classes
    }
}

/// Returns the classes of eight bytes, as the highest bit of each byte.
#[inline(always)]
fn eight(bytes: u64) -> Classes {
    let other = bytes & HIGHS;
    let ascii = bytes & !HIGHS;
    // The bit of lower case maps both cases to one range, and no other byte into it.
    let folded = ascii | ONES << 5;
    // The highest bit of `x + (0x80 - limit)` is set if the 7-bit x reaches the limit.
    let from = |x: u64, limit: u8| x + ONES * u64::from(0x80 - limit);
    // Non-ASCII bytes look like others without their top bit, so they are removed at the end.
    let within = |x: u64, low: u8, high: u8| from(x, low) & !from(x, high + 1) & HIGHS & !other;
    let is = |byte: u8| within(ascii, byte, byte);
    let both = is(b'.') | is(b'\'');
    Classes {
        letter: within(folded, b'a', b'z'),
        digit: within(ascii, b'0', b'9'),
        underscore: is(b'_'),
        joins_letters: both | is(b':'),
        joins_digits: both | is(b',') | is(b';'),
        other,
    }
}

/// Returns the highest bits of eight bytes as eight bits.
#[inline(always)]
fn gather(highs: u64) -> u64 {
    // Bit 8 i times bit 7 (8 - i) of the factor is bit 56 + i. No two products share a bit, so nothing is carried.
    (highs >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{BLOCK, Classes, Classify};

    /// Two vectors of 32 bytes. Only for code that runs where AVX2 was detected.
    pub(in super::super) struct Avx2;

    impl Classify for Avx2 {
        #[inline(always)]
        #[expect(unsafe_code, reason = "vector instructions")]
        fn classify(block: &[u8; BLOCK], lower: bool, copy: &mut [u8; BLOCK]) -> Classes {
            // SAFETY: this type is only named by the version for AVX2.
            unsafe { classify_avx2(block, lower, copy) }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    #[expect(unsafe_code, reason = "vector loads and stores take pointers")]
    fn classify_avx2(block: &[u8; BLOCK], lower: bool, copy: &mut [u8; BLOCK]) -> Classes {
        let mut classes = Classes::default();
        for half in 0..2 {
            // SAFETY: 32 bytes at 0 or 32 lie within the 64 of the block.
            let bytes = unsafe { _mm256_loadu_si256(block.as_ptr().add(32 * half).cast()) };
            let (masks, letter) = half_classes(bytes);
            let bit = _mm256_set1_epi8(if lower { 0x20 } else { 0 });
            let folded = _mm256_or_si256(bytes, _mm256_and_si256(letter, bit));
            // SAFETY: as above, for the copy.
            unsafe { _mm256_storeu_si256(copy.as_mut_ptr().add(32 * half).cast(), folded) };
            classes.letter |= masks.letter << (32 * half);
            classes.digit |= masks.digit << (32 * half);
            classes.underscore |= masks.underscore << (32 * half);
            classes.joins_letters |= masks.joins_letters << (32 * half);
            classes.joins_digits |= masks.joins_digits << (32 * half);
            classes.other |= masks.other << (32 * half);
        }
        classes
    }

    /// Masks of 32 bytes, and the letters as a vector.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn half_classes(bytes: __m256i) -> (Classes, __m256i) {
        // Through `u32`, because the sign of the result would fill the upper half.
        let mask = |vector| u64::from(_mm256_movemask_epi8(vector) as u32);
        let is = |byte: u8| _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte as i8));
        let within = |vector, low: u8, high: u8| {
            // AVX2 only compares bytes as signed. If the unsigned minimum of the difference and the span is the difference, it is at most the span.
            let from_low = _mm256_sub_epi8(vector, _mm256_set1_epi8(low as i8));
            let span = _mm256_set1_epi8((high - low) as i8);
            _mm256_cmpeq_epi8(_mm256_min_epu8(from_low, span), from_low)
        };
        let letter = within(_mm256_or_si256(bytes, _mm256_set1_epi8(0x20)), b'a', b'z');
        let both = _mm256_or_si256(is(b'.'), is(b'\''));
        let pause = _mm256_or_si256(is(b','), is(b';'));
        let classes = Classes {
            letter: mask(letter),
            digit: mask(within(bytes, b'0', b'9')),
            underscore: mask(is(b'_')),
            joins_letters: mask(_mm256_or_si256(both, is(b':'))),
            joins_digits: mask(_mm256_or_si256(both, pause)),
            // MOVMSKB takes the top bit of a byte, which ASCII does not have set.
            other: mask(bytes),
        };
        (classes, letter)
    }

    /// One vector of 64 bytes. Only for code that runs where AVX-512 was detected.
    pub(in super::super) struct Avx512;

    impl Classify for Avx512 {
        #[inline(always)]
        #[expect(unsafe_code, reason = "vector instructions")]
        fn classify(block: &[u8; BLOCK], lower: bool, copy: &mut [u8; BLOCK]) -> Classes {
            // SAFETY: this type is only named by the version for AVX-512.
            unsafe { classify_avx512(block, lower, copy) }
        }

        #[inline(always)]
        #[expect(unsafe_code, reason = "vector instructions")]
        fn positions(mask: u64, base: u32, out: &mut [u32; BLOCK]) {
            // SAFETY: as above.
            unsafe { positions_avx512(mask, base, out) }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,popcnt")]
    #[expect(unsafe_code, reason = "vector stores take pointers")]
    fn positions_avx512(mask: u64, base: u32, out: &mut [u32; BLOCK]) {
        let first = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
        let mut written = 0;
        for quarter in 0..4 {
            let mask = (mask >> (16 * quarter)) as u16;
            let places = _mm512_add_epi32(first, _mm512_set1_epi32((base + 16 * quarter) as i32));
            // The positions of set bits move to the front without a loop over bits, whose end would be mispredicted.
            let places = _mm512_maskz_compress_epi32(mask, places);
            // SAFETY: at most 16 positions per quarter have been written before, so 16 more fit.
            unsafe { _mm512_storeu_si512(out.as_mut_ptr().add(written).cast(), places) };
            written += mask.count_ones() as usize;
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    #[expect(unsafe_code, reason = "vector loads and stores take pointers")]
    fn classify_avx512(block: &[u8; BLOCK], lower: bool, copy: &mut [u8; BLOCK]) -> Classes {
        // SAFETY: the block has the 64 bytes of the vector.
        let bytes = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
        let set = |byte: u8| _mm512_set1_epi8(byte as i8);
        let is = |byte: u8| _mm512_cmpeq_epi8_mask(bytes, set(byte));
        let within = |vector, low: u8, high: u8| {
            _mm512_cmple_epu8_mask(_mm512_sub_epi8(vector, set(low)), set(high - low))
        };
        let letter = within(_mm512_or_si512(bytes, set(0x20)), b'a', b'z');
        // Only letters: the bit would turn other bytes into different characters.
        let bit = _mm512_maskz_mov_epi8(if lower { letter } else { 0 }, set(0x20));
        let folded = _mm512_or_si512(bytes, bit);
        // SAFETY: the copy has the 64 bytes of the vector.
        unsafe { _mm512_storeu_si512(copy.as_mut_ptr().cast(), folded) };
        let both = is(b'.') | is(b'\'');
        Classes {
            letter,
            digit: within(bytes, b'0', b'9'),
            underscore: is(b'_'),
            joins_letters: both | is(b':'),
            joins_digits: both | is(b',') | is(b';'),
            other: _mm512_movepi8_mask(bytes),
        }
    }
}

#[cfg(target_arch = "aarch64")]
pub(super) use arm::Neon;

#[cfg(target_arch = "aarch64")]
mod arm {
    use std::arch::aarch64::*;

    use super::{BLOCK, Classes, Classify};

    /// Four vectors of 16 bytes.
    pub(in super::super) struct Neon;

    type Four = [uint8x16_t; 4];

    impl Classify for Neon {
        #[inline(always)]
        #[expect(unsafe_code, reason = "vector instructions")]
        fn classify(block: &[u8; BLOCK], lower: bool, copy: &mut [u8; BLOCK]) -> Classes {
            // SAFETY: NEON is part of aarch64.
            unsafe { classify_neon(block, lower, copy) }
        }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    #[expect(unsafe_code, reason = "vector loads and stores take pointers")]
    fn classify_neon(block: &[u8; BLOCK], lower: bool, copy: &mut [u8; BLOCK]) -> Classes {
        // SAFETY: 16 bytes at 0, 16, 32 or 48 lie within the 64 of the block.
        let load = |at: usize| unsafe { vld1q_u8(block.as_ptr().add(16 * at)) };
        let bytes: Four = [load(0), load(1), load(2), load(3)];
        let is = |byte: u8| bytes.map(|bytes| vceqq_u8(bytes, vdupq_n_u8(byte)));
        let within = |vector: uint8x16_t, low: u8, high: u8| {
            vcleq_u8(vsubq_u8(vector, vdupq_n_u8(low)), vdupq_n_u8(high - low))
        };
        let or = |a: Four, b: Four| -> Four { std::array::from_fn(|at| vorrq_u8(a[at], b[at])) };
        let letter = bytes.map(|bytes| within(vorrq_u8(bytes, vdupq_n_u8(0x20)), b'a', b'z'));
        let bit = vdupq_n_u8(if lower { 0x20 } else { 0 });
        for (at, (&bytes, &letter)) in bytes.iter().zip(&letter).enumerate() {
            let folded = vorrq_u8(bytes, vandq_u8(letter, bit));
            // SAFETY: as above, for the copy.
            unsafe { vst1q_u8(copy.as_mut_ptr().add(16 * at), folded) };
        }
        let both = or(is(b'.'), is(b'\''));
        Classes {
            letter: mask(letter),
            digit: mask(bytes.map(|bytes| within(bytes, b'0', b'9'))),
            underscore: mask(is(b'_')),
            joins_letters: mask(or(both, is(b':'))),
            joins_digits: mask(or(both, or(is(b','), is(b';')))),
            other: mask(bytes.map(|bytes| vcgeq_u8(bytes, vdupq_n_u8(0x80)))),
        }
    }

    /// Returns one bit for each of 64 bytes that are all ones or all zeros, the first byte lowest: each byte keeps the bit of its position among
    /// eight, and three pairwise additions bring the eight together.
    #[inline]
    #[target_feature(enable = "neon")]
    fn mask(vectors: Four) -> u64 {
        let places = vreinterpretq_u8_u64(vdupq_n_u64(0x8040_2010_0804_0201));
        let [a, b, c, d] = vectors.map(|vector| vandq_u8(vector, places));
        // Eight different bits add up to at most one byte, so nothing is carried.
        let halves = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(halves, halves)))
    }
}
