//! Asking for memory before it is needed. A kernel: the only `unsafe` of this crate.
//!
//! Comparing jumps about in tables that are larger than any cache, and each jump costs some hundred nanoseconds when
//! it is waited for. So work goes in strides: first everything a stride will touch is asked for, then it is touched.

/// Asks for the cache line of an element; does nothing when there is none, or on processors without such an
/// instruction. Never changes what a program computes.
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

/// The portable twin: nothing.
#[inline]
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn prefetch<T>(_: &[T], _: usize) {}
