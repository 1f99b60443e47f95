//! The allocator: that of the C library, told to give large blocks back to the system as soon as they are free; in the static build mimalloc.

/// musl's own allocator has one lock for all threads.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Blocks of so many bytes go back to the system as soon as they are free.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BYTES: libc::c_int = 1 << 20;

/// Free bytes at the end of a heap, of which every thread may have one, that go back to the system. Less costs batch jobs a tenth of
/// their time.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const FREE_BYTES: libc::c_int = 4 << 20;

/// Lets the memory of a long document go back to the system once it is free.
///
/// By itself the GNU C library takes the first large block that is freed for a sign that such blocks are usual, and keeps all up to
/// 32 MiB from then on, in each thread's heap: a service that read some pages of 8 MB held the memory of all its workers for ever.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "a setting of the C library")]
pub(crate) fn give_back_large_blocks() {
    // SAFETY: it takes two numbers and changes how later calls allocate, nothing that is there. No other thread runs yet.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, FREE_BYTES);
    }
}

/// Other allocators decide for themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_back_large_blocks() {}
