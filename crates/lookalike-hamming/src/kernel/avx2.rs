//! Four words of AVX2.

use super::vector::Vector;
use std::arch::x86_64::*;

/// The instructions of AVX2, BMI1, BMI2, LZCNT and POPCNT.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    /// # Safety
    ///
    /// The processor must have these instructions.
    #[inline(always)]
    pub(super) unsafe fn new() -> Self {
        Self(())
    }

    /// Counts the ones in each lane by looking up nibbles, because there is no instruction for it. Two shuffles per vector, on the only port that
    /// shuffles, take two cycles for four words; POPCNT takes one cycle per word.
    #[inline(always)]
    fn ones(self, x: __m256i) -> __m256i {
        // SAFETY: a value of this type proves that the instructions are there.
        unsafe {
            let table = _mm256_broadcastsi128_si256(_mm_setr_epi8(
                0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
            ));
            let nibbles = _mm256_set1_epi8(15);
            let low = _mm256_shuffle_epi8(table, _mm256_and_si256(x, nibbles));
            let high = _mm256_and_si256(_mm256_srli_epi16::<4>(x), nibbles);
            let sums = _mm256_add_epi8(low, _mm256_shuffle_epi8(table, high));
            // The sum of absolute differences from zero adds the eight counts of each lane.
            _mm256_sad_epu8(sums, _mm256_setzero_si256())
        }
    }
}

const LANES: usize = 4;

/// Shuffles that spread four packed entries, loaded as their first and their last 16 bytes, over the lanes; indexed by width less four.
static SPREADS: [[u8; 32]; 5] = [spread(4), spread(5), spread(6), spread(7), spread(8)];

const fn spread(width: usize) -> [u8; 32] {
    // A byte with its top bit set gives a zero in the result.
    let mut order = [0x80; 32];
    // Positions within each 16-byte load: the second load ends with the last entry, so its two entries are counted from its end.
    let firsts = [0, width, 16 - 2 * width, 16 - width];
    let mut at = 0;
    while at < LANES * width {
        let (entry, byte) = (at / width, at % width);
        order[8 * entry + byte] = (firsts[entry] + byte) as u8;
        at += 1;
    }
    order
}

/// Masks for a load of the first n lanes: the four from 4 - n on.
static FIRST: [i64; 8] = [-1, -1, -1, -1, 0, 0, 0, 0];

impl Vector<u64> for Avx2 {
    type Lanes = __m256i;
    const LANES: usize = LANES;
    const WIDE: bool = false;
    const PARTS: bool = false;

    #[inline(always)]
    fn splat(self, word: u64) -> __m256i {
        // SAFETY: the instructions are there.
        unsafe { _mm256_set1_epi64x(word as i64) }
    }

    #[inline(always)]
    fn load(self, words: &[u64]) -> __m256i {
        // A window of four into ones and zeros masks any number of words without a branch.
        let masks = &FIRST[LANES - words.len().min(LANES)..][..LANES];
        // SAFETY: there are four masks, and what they leave out is not read.
        unsafe {
            let mask = _mm256_loadu_si256(masks.as_ptr().cast());
            _mm256_maskload_epi64(words.as_ptr().cast(), mask)
        }
    }

    #[inline(always)]
    fn packed_lanes(width: usize, left: usize) -> usize {
        // Four entries of fewer than four bytes are shorter than one load of 16, and no entry of a word has more than eight bytes.
        if (4..=8).contains(&width) && left >= LANES {
            LANES
        } else {
            0
        }
    }

    #[inline(always)]
    fn load_packed(self, bytes: &[u8], width: usize, _: usize) -> __m256i {
        let (group, order) = (&bytes[..LANES * width], &SPREADS[width - 4]);
        // SAFETY: a group is 4 * width >= 16 bytes, of which the first and the last 16 are read; an order is 32 bytes.
        unsafe {
            // VPSHUFB only moves bytes within halves of 16: the first half gets the bytes of the first two entries, the second those of the last two.
            let first = _mm_loadu_si128(group.as_ptr().cast());
            let last = _mm_loadu_si128(group.as_ptr().add(LANES * width - 16).cast());
            let order = _mm256_loadu_si256(order.as_ptr().cast());
            _mm256_shuffle_epi8(_mm256_set_m128i(last, first), order)
        }
    }

    #[inline(always)]
    fn near(self, lanes: __m256i, needles: __m256i, radius: u32) -> u64 {
        // SAFETY: the instructions are there.
        let beyond = unsafe {
            let apart = self.ones(_mm256_xor_si256(lanes, needles));
            // AVX2 only compares lanes for greater, so the mask has the lanes beyond the radius.
            let limit = _mm256_set1_epi64x(radius.into());
            _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(apart, limit)))
        };
        // MOVMSKPD gives the signs of four lanes; the complement has ones above them.
        (!beyond & 15) as u64
    }

    #[inline(always)]
    fn extract(self, word: u64, mask: u64) -> u64 {
        // SAFETY: BMI2 is there.
        unsafe { _pext_u64(word, mask) }
    }

    #[inline(always)]
    fn deposit(self, word: u64, mask: u64) -> u64 {
        // SAFETY: BMI2 is there.
        unsafe { _pdep_u64(word, mask) }
    }

    #[inline(always)]
    fn select(self, word: u64, n: u32) -> u32 {
        // PDEP moves a single one to the n-th set bit, and TZCNT gives its position, or 64 if there is none (Pandey, Bender, Johnson, "A fast x86
        // implementation of select", 2017).
        self.deposit(1 << n, word).trailing_zeros()
    }
}
