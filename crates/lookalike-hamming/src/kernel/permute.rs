//! Permutation of the bits of words.

use super::super::code::Integer;
use super::vector::{Kernel, Vector};

/// Permutation of each of `words`: its bits under `address` go above the others. Writes them to `out`, which is as long.
#[derive(Debug)]
pub struct Permute<'a, W> {
    /// The words.
    pub words: &'a [W],
    /// The bits that go to the top.
    pub address: W,
    /// Room for as many words.
    pub out: &'a mut [W],
}

impl<W: Integer> Kernel<W> for Permute<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<W>>(self, vector: V) {
        // Outside the loop, which is left with two PEXT, a shift and an OR for each word.
        let rest_bits = W::BITS - self.address.ones();
        for (&word, out) in self.words.iter().zip(self.out) {
            // A bucket number has at most 64 bits, whatever the width of the word.
            let bucket = vector.extract(word, self.address).above(0);
            *out = W::joined(bucket, vector.extract(word, !self.address), rest_bits);
        }
    }
}
