//! Memory prefetching. It is one of the places where this crate needs `unsafe`.
//!
//! Comparing classes accesses tables larger than any cache at random, and waiting for such an access takes about a hundred nanoseconds.
//! So the work is done in strides: first everything that a stride will access is prefetched, then it is accessed.

/// Prefetches the cache line of an element. Does nothing if there is no such element, or on processors without the
/// instruction. Never changes the result of a program.
#[inline]
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the instruction has no safe form")]
pub(crate) fn prefetch<T>(slice: &[T], index: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    if let Some(element) = slice.get(index) {
        // SAFETY: prefetching reads nothing; besides, the address is that of an element.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(element).cast()) }
    }
}

/// The portable twin, which does nothing.
#[inline]
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn prefetch<T>(_: &[T], _: usize) {}
