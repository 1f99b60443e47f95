//! Codes: the bit strings whose Hamming distance is asked for.
//!
//! First step of the way of a fingerprint through the engine: a [`Code`] is what callers hold (a
//! [`Fingerprint`] of 64 bits, or a bare `u32` or `u128` of a scheme with another width), a
//! [`Word`] the machine integer that tables pack and compare.

use crate::sketch::Fingerprint;
use std::fmt::Debug;

pub use word::Word;

mod entries;
mod integers;
mod word;

pub(crate) mod sealed {
    /// Closes the traits of this engine, so that their contracts can grow.
    pub trait Sealed {}
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
