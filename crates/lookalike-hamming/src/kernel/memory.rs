//! Prefetches of memory, and writes past the caches.

/// Prefetches the cache line that holds `items[index]`; does nothing if there is no such item.
#[inline(always)]
pub(in super::super) fn prefetch<T>(items: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    x86::prefetch(items, index);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, index);
}

/// Bytes of a run that are prefetched in addition to its last: the processor itself prefetches those that follow.
const PREFETCH_BYTES: usize = 512;
const LINE_BYTES: usize = 64;
/// Minimum number of entries that vector kernels read, including those that follow a bucket.
const READ: usize = 8;

/// Prefetches the first cache lines of some entries of `width` bytes from `place` on, and the last. No line that a comparison reads is left out,
/// because a processor that waits for one does nothing else meanwhile.
#[inline(always)]
pub(in super::super) fn prefetch_run(entries: &[u8], place: usize, count: usize, width: usize) {
    // An empty bucket is prefetched as well, because the kernel reads a vector before it knows the count.
    let last = (place + count.max(READ) * width).saturating_sub(1);
    prefetch(entries, place);
    prefetch(entries, last);
    for place in (place + LINE_BYTES..last.min(place + PREFETCH_BYTES)).step_by(LINE_BYTES) {
        prefetch(entries, place);
    }
}

/// Bytes of a bucket's overflow that are prefetched.
const OVERFLOW_BYTES: usize = 32;

/// Prefetches the overflow of a bucket: few bytes, which may reach into the next cache line all the same.
#[inline(always)]
pub(in super::super) fn prefetch_overflow(overflow: &[u8], place: usize) {
    prefetch(overflow, place);
    prefetch(overflow, place + OVERFLOW_BYTES - 1);
}

/// Writes eight words to `out[at..]`, past the caches if they fill a cache line there.
#[inline]
pub(in super::super) fn stream_line(out: &mut [u64], at: usize, line: &[u64; 8]) {
    let to = &mut out[at..at + 8];
    #[cfg(target_arch = "x86_64")]
    // Only whole lines, because a part of one that goes past the caches is a separate transfer. A store past the caches does not read the line first:
    // half of the traffic of a scatter, and the caches keep their contents.
    if to.as_ptr().addr().is_multiple_of(64) {
        return x86::stream_line(to, line);
    }
    to.copy_from_slice(line);
}

/// Orders the writes of [`stream_line`] before everything that follows.
pub(in super::super) fn end_streaming() {
    #[cfg(target_arch = "x86_64")]
    x86::end_streaming();
}

#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "prefetch and stores past the caches take pointers"
)]
mod x86 {
    use std::arch::x86_64::*;

    #[inline(always)]
    pub(super) fn prefetch<T>(items: &[T], index: usize) {
        // Wrapping, because an address beyond the list must not be undefined behaviour; prefetching it is merely useless.
        let address = items.as_ptr().wrapping_add(index);
        // SAFETY: a prefetch never faults, whatever the address; SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }

    #[inline]
    pub(super) fn stream_line(to: &mut [u64], line: &[u64; 8]) {
        assert!(to.len() == 8 && to.as_ptr().addr().is_multiple_of(16));
        // Four stores fill one write-combining buffer, which goes to memory as one line.
        for at in 0..4 {
            // SAFETY: both have eight words, of which two are moved at a time, and the target is aligned
            // to 16 bytes; SSE2 is part of x86-64.
            unsafe {
                let two = _mm_loadu_si128(line.as_ptr().cast::<__m128i>().add(at));
                _mm_stream_si128(to.as_mut_ptr().cast::<__m128i>().add(at), two);
            }
        }
    }

    pub(super) fn end_streaming() {
        // Stores past the caches are weakly ordered: without a fence, another thread that is started or joined after them may still see the old
        // contents.
        // SAFETY: a fence has no preconditions; SSE is part of x86-64.
        unsafe { _mm_sfence() };
    }
}
