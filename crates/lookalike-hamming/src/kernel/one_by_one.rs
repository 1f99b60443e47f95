//! Words one by one, in plain Rust: the reference that every other vector must equal.

use super::super::code::Integer;
use super::vector::Vector;

/// A vector of one word.
#[derive(Clone, Copy)]
pub(super) struct OneByOne;

impl<W: Integer> Vector<W> for OneByOne {
    type Lanes = W;
    const LANES: usize = 1;
    const WIDE: bool = false;
    const PARTS: bool = false;

    #[inline(always)]
    fn splat(self, word: W) -> W {
        word
    }

    #[inline(always)]
    fn load(self, words: &[W]) -> W {
        words[0]
    }

    #[inline(always)]
    fn packed_lanes(_: usize, _: usize) -> usize {
        0
    }

    #[inline(always)]
    fn load_packed(self, bytes: &[u8], width: usize, _: usize) -> W {
        W::read_at(bytes, 0, width)
    }

    #[inline(always)]
    fn near(self, word: W, needle: W, radius: u32) -> u64 {
        ((word ^ needle).ones() <= radius).into()
    }
}
