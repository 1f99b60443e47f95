//! Integers with kernels.

use super::super::kernel::{self, Kernel};
use super::integer::Integer;

/// A machine integer of 32, 64 or 128 bits with its kernels; sealed.
///
/// ```
/// use lookalike_hamming::Word;
///
/// fn farthest<W: Word>(code: W, others: &[W]) -> Option<u32> {
///     others.iter().map(|&other| code.bits_apart(other)).max()
/// }
/// assert_eq!(farthest(0b1010_u32, &[0b1011, 0b0101]), Some(4));
/// ```
pub trait Word: Integer {
    /// Runs a kernel with the best instructions that this processor has for such words.
    fn run<K: Kernel<Self>>(kernel: K) -> K::Output;
}

impl Word for u32 {
    #[inline]
    fn run<K: Kernel<Self>>(kernel: K) -> K::Output {
        kernel::run_one_by_one(kernel)
    }
}

impl Word for u64 {
    #[inline]
    fn run<K: Kernel<Self>>(kernel: K) -> K::Output {
        kernel::run(kernel)
    }
}

impl Word for u128 {
    #[inline]
    fn run<K: Kernel<Self>>(kernel: K) -> K::Output {
        kernel::run_one_by_one(kernel)
    }
}
