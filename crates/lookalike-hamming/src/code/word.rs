//! Integers with kernels.

use super::super::kernel::{self, Kernel};
use super::integer::Integer;

/// A machine integer of 32, 64 or 128 bits with its kernels; sealed.
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
