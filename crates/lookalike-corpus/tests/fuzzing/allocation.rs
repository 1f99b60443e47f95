//! An allocator that records the largest allocation of each thread.
//!
//! A reader that trusts a length in a damaged file requests terabytes, which ends the process. A reader that requests a gigabyte is just as wrong,
//! but continues. The tests run under this allocator to detect that, too. Decoders in C use another allocator, and have limits of their own.

#![allow(
    unsafe_code,
    reason = "an allocator is unsafe; this one hands every call on"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The largest allocation allowed while reading a small file: pages and batches of 64 MiB are accepted, and a growing vector requests twice as much.
pub(crate) const MAX_ALLOCATION: usize = 160 << 20;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

/// The largest allocation beyond [`MAX_ALLOCATION`] on any thread, because some readers use threads of their own.
static BEYOND: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, with recording.
pub(crate) struct Watched;

fn watch(bytes: usize) {
    if bytes > MAX_ALLOCATION {
        BEYOND.fetch_max(bytes, Relaxed);
    }
    // Fails while a thread ends, because its cell is gone.
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(bytes)));
}

// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        watch(layout.size());
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        watch(layout.size());
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        watch(size);
        // SAFETY: the caller upholds the contract.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Returns the largest allocation of this thread since the last call.
pub(crate) fn largest() -> usize {
    LARGEST.replace(0)
}

/// Returns the largest allocation beyond [`MAX_ALLOCATION`] on any thread, or zero if there was none.
#[allow(dead_code, reason = "not all formats are read by threads")]
pub(crate) fn beyond() -> usize {
    BEYOND.load(Relaxed)
}
