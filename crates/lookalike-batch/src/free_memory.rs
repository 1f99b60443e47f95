//! Freed memory that the allocator keeps although the job's limit counts it.

/// Returns freed memory to the system, wherever it is in the heaps.
///
/// By itself, the GNU C library returns only large blocks and the end of a heap. Thousands of smaller blocks, such as the groups of partitions, stay
/// resident after they are freed as long as a single block behind them is in use: a job with 96 MiB took 20 MiB more. Takes time in
/// proportion to the free memory of the process, in which other threads wait when they allocate.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "a function of the C library")]
pub(crate) fn release_free_memory() {
    // SAFETY: `malloc_trim` takes a number, may be called from any thread at any time, and leaves blocks in use as they are.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Does nothing: other allocators return freed memory by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn release_free_memory() {}

#[cfg(test)]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    fn resident_bytes() -> usize {
        let sizes = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: usize = sizes.split(' ').nth(1).unwrap().parse().unwrap();
        pages * 4096
    }

    #[test]
    fn freed_blocks_stayed_resident_because_of_one_behind_them() {
        const BLOCK: usize = 64 << 10;
        let mut blocks: Vec<Vec<u8>> = (0..(256 << 20) / BLOCK).map(|_| vec![1; BLOCK]).collect();
        let last = blocks.pop();
        let before = resident_bytes();
        drop(blocks);
        release_free_memory();
        let returned = before.saturating_sub(resident_bytes());
        // Other tests of this process take and free some meanwhile.
        assert!(returned > 128 << 20, "{returned}");
        drop(last);
    }
}
