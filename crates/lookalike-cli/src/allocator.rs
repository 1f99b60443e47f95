//! The allocator: that of the C library, in the static build mimalloc, told to give large blocks back to the system as soon as they are free.

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

/// Milliseconds after which freed memory goes back to the system. By default a second: at 1 GB/s a job frees a GB meanwhile.
#[cfg(target_env = "musl")]
const PURGE_DELAY_MS: i32 = 10;

/// Lets memory go back to the system soon, and in pages of 4 KiB.
///
/// By itself mimalloc keeps freed memory for a second and asks for pages of 2 MiB, each of which counts whole: a job with 16 threads
/// and `--memory 300M` took 601 MiB.
#[cfg(target_env = "musl")]
#[expect(unsafe_code, reason = "settings of mimalloc and of the kernel")]
pub(crate) fn give_back_large_blocks() {
    use std::ffi::{c_int, c_long, c_ulong};
    unsafe extern "C" {
        fn mi_option_set(option: c_int, value: c_long);
    }
    /// `mi_option_purge_delay` in mimalloc.h, versions 2 and 3.
    const PURGE_DELAY: c_int = 15;
    // SAFETY: the function is declared as in mimalloc.h, which is linked. Both calls take numbers and change how later ones allocate,
    // nothing that is there. No other thread runs yet. A kernel that does not know the second goes on as before; it looks at the whole
    // words of all arguments, and programs that this one starts inherit the setting.
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

/// Other allocators decide for themselves.
#[cfg(not(any(all(target_os = "linux", target_env = "gnu"), target_env = "musl")))]
pub(crate) fn give_back_large_blocks() {}
