//! An allocator that knows the largest piece of memory that each thread asked for.
//!
//! A reader that believes a length in a damaged file asks for terabytes, and the process ends. One that asks for a gigabyte is
//! as wrong, but goes on: so that the tests see it too, they run under this allocator. Decoders in C ask elsewhere: they have limits of
//! their own.

#![allow(
    unsafe_code,
    reason = "an allocator is unsafe; this one hands every call on"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The largest piece that reading a small file may ask for: pages and batches of 64 MiB are believed, and a vector that grows
/// asks for twice as much.
pub(crate) const MOST: usize = 160 << 20;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

/// The largest piece beyond [`MOST`] that any thread asked for: some readers work on threads of their own.
static BEYOND: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, watched.
pub(crate) struct Watched;

fn watch(bytes: usize) {
    if bytes > MOST {
        BEYOND.fetch_max(bytes, Relaxed);
    }
    // While a thread ends it has no cell.
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(bytes)));
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        watch(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        watch(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        watch(size);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// The largest piece that this thread asked for since it was asked last.
pub(crate) fn largest() -> usize {
    LARGEST.replace(0)
}

/// The largest piece beyond [`MOST`] that any thread ever asked for; zero when there was none.
#[allow(dead_code, reason = "not all formats are read by threads")]
pub(crate) fn beyond() -> usize {
    BEYOND.load(Relaxed)
}
