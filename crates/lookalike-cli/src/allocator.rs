//! The allocator: that of the C library, or mimalloc in the static build, configured to return large blocks to the system as soon as they are free.

/// Used because musl's own allocator has one lock for all threads.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Minimum size of blocks that return to the system as soon as they are free.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BYTES: libc::c_int = 1 << 20;

/// Free bytes at the end of a heap above which they return to the system. Every thread may have a heap. A lower value costs batch jobs a tenth of
/// their time.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const FREE_BYTES: libc::c_int = 4 << 20;

/// Makes the memory of a long document return to the system once it is free.
///
/// By default, the GNU C library takes the first freed large block as a sign that such blocks are common, and from then on keeps all blocks up to 32
/// MiB, in the heap of each thread: a service that read some pages of 8 MB held the memory of all its workers forever.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "a setting of the C library")]
pub(crate) fn release_large_blocks() {
    // SAFETY: `mallopt` takes two numbers and changes how later calls allocate, but no existing data. No other thread runs yet.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, FREE_BYTES);
    }
}

/// Milliseconds after which freed memory returns to the system. The default is a second: at 1 GB/s, a job frees a gigabyte in that time.
#[cfg(target_env = "musl")]
const PURGE_DELAY_MS: i32 = 10;

/// Makes memory return to the system soon, and in pages of 4 KiB.
///
/// By default, mimalloc keeps freed memory for a second and requests pages of 2 MiB, each of which counts as a whole: a job with 16 threads and
/// `--memory 300M` took 601 MiB.
#[cfg(target_env = "musl")]
#[expect(unsafe_code, reason = "settings of mimalloc and of the kernel")]
pub(crate) fn release_large_blocks() {
    use std::ffi::{c_int, c_long, c_ulong};
    unsafe extern "C" {
        fn mi_option_set(option: c_int, value: c_long);
    }
    /// `mi_option_purge_delay` in mimalloc.h, versions 2 and 3.
    const PURGE_DELAY: c_int = 15;
    // SAFETY: the function is declared as in mimalloc.h, which is linked. Both calls take numbers and change how later calls allocate, but no
    // existing data. No other thread runs yet. A kernel that does not know the second call ignores it; it checks the whole words of all arguments,
    // and child processes inherit the setting.
    unsafe {
        mi_option_set(PURGE_DELAY, c_long::from(PURGE_DELAY_MS));
        #[cfg(target_os = "linux")]
        libc::prctl(
            libc::PR_SET_THP_DISABLE,
            1 as c_ulong,
            0 as c_ulong,
            0 as c_ulong,
            0 as c_ulong,
        );
    }
}

/// Does nothing for other allocators.
#[cfg(not(any(all(target_os = "linux", target_env = "gnu"), target_env = "musl")))]
pub(crate) fn release_large_blocks() {}
