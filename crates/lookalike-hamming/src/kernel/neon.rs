//! Sixteen words of NEON.
//!
//! NEON counts the ones of bytes. Pairwise additions sum up the counts of sixteen 64-bit words, eight bytes to one in three rounds, so that sixteen
//! words end as one vector of sixteen counts, and one comparison judges them all.

use super::super::code::Integer;
use super::vector::Vector;
use std::arch::aarch64::*;

/// The instructions of NEON.
#[derive(Clone, Copy)]
pub(super) struct Neon(());

impl Neon {
    /// # Safety
    ///
    /// The processor must have NEON, which is part of aarch64.
    #[inline(always)]
    pub(super) unsafe fn new() -> Self {
        Self(())
    }

    /// Returns one bit for each byte that is all ones, the first byte lowest.
    #[inline(always)]
    fn bits(self, bytes: uint8x16_t) -> u64 {
        // NEON has no MOVMSK: each byte keeps its own bit, and the sum over eight bytes is their mask.
        // SAFETY: a value of this type proves that the instructions are there.
        unsafe {
            let places = vreinterpretq_u8_u64(vdupq_n_u64(0x8040_2010_0804_0201));
            let kept = vandq_u8(bytes, places);
            let low = vaddv_u8(vget_low_u8(kept));
            let high = vaddv_u8(vget_high_u8(kept));
            u64::from(low) | u64::from(high) << 8
        }
    }
}

const LANES: usize = 16;

impl Vector<u64> for Neon {
    /// Two words in each register. Needles have the same word in all lanes.
    type Lanes = [uint64x2_t; LANES / 2];
    const LANES: usize = LANES;
    const WIDE: bool = false;
    const PARTS: bool = true;

    #[inline(always)]
    fn splat(self, word: u64) -> Self::Lanes {
        // SAFETY: NEON is there.
        [unsafe { vdupq_n_u64(word) }; LANES / 2]
    }

    #[inline(always)]
    fn load(self, words: &[u64]) -> Self::Lanes {
        let mut room = [0; LANES];
        // NEON has no masked load. Sixteen words, the common case, are not copied; fewer are copied to where sixteen may be read.
        let whole = words.first_chunk().unwrap_or_else(|| {
            room[..words.len()].copy_from_slice(words);
            &room
        });
        let mut lanes = self.splat(0);
        for (lane, pair) in lanes.iter_mut().zip(whole.as_chunks::<2>().0) {
            // SAFETY: a pair is 16 bytes.
            *lane = unsafe { vld1q_u64(pair.as_ptr()) };
        }
        lanes
    }

    #[inline(always)]
    fn packed_lanes(_: usize, left: usize) -> usize {
        left.min(LANES)
    }

    #[inline(always)]
    fn load_packed(self, bytes: &[u8], width: usize, count: usize) -> Self::Lanes {
        let mut words = [0; LANES];
        for (at, word) in words[..count].iter_mut().enumerate() {
            *word = u64::read_at(bytes, at * width, width);
        }
        self.load(&words)
    }

    #[inline(always)]
    fn near(self, lanes: Self::Lanes, needles: Self::Lanes, radius: u32) -> u64 {
        // SAFETY: NEON is there.
        unsafe {
            let mut counts = [vdupq_n_u8(0); LANES / 2];
            for (at, count) in counts.iter_mut().enumerate() {
                // CNT counts bytes; there is no instruction for 64-bit lanes.
                *count = vcntq_u8(vreinterpretq_u8_u64(veorq_u64(lanes[at], needles[at])));
            }
            // A word has at most 64 ones, so no sum overflows its byte.
            let [a, b, c, d, e, f, g, h] = counts;
            let (ab, cd) = (vpaddq_u8(a, b), vpaddq_u8(c, d));
            let (ef, gh) = (vpaddq_u8(e, f), vpaddq_u8(g, h));
            // Pairwise additions keep the order: the count of word i ends in byte i.
            let counts = vpaddq_u8(vpaddq_u8(ab, cd), vpaddq_u8(ef, gh));
            // Any radius from 64 on lets every word pass.
            self.bits(vcleq_u8(counts, vdupq_n_u8(radius.min(64) as u8)))
        }
    }
}
