//! Codes: the bit strings that are compared by Hamming distance.
//!
//! A [`Code`] is what callers hold (a `u32`, `u64` or `u128`); a [`Word`] is the machine integer that tables pack and compare.

use std::fmt::Debug;

pub use integer::Integer;
pub use word::Word;

mod integer;
pub(crate) mod sealed;
mod word;

/// Integer that is stored and searched, of 32, 64 or 128 bits; sealed.
///
/// ```
/// use lookalike_hamming::Code;
///
/// fn farthest<C: Code>(code: C, others: &[C]) -> Option<u32> {
///     others.iter().map(|&other| code.bits_apart(other)).max()
/// }
/// assert_eq!(farthest(0b1010_u32, &[0b1011, 0b0101]), Some(4));
/// ```
pub trait Code: sealed::Sealed + Copy + Debug + Send + Sync + 'static {
    /// The integer that holds the code.
    type Word: Word;

    /// Returns the code as an integer.
    fn word(self) -> Self::Word;
    /// Returns the code that an integer holds.
    fn from_word(word: Self::Word) -> Self;
    /// Returns the number of bits that differ, from 0 to the width.
    fn bits_apart(self, other: Self) -> u32 {
        (self.word() ^ other.word()).ones()
    }
}

impl<W: Word> Code for W {
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
