//! Huge pages for memory that is read at random: a random cache line beyond 1 GiB costs twice as much without them.
//!
//! They are requested before memory is touched, which costs nothing. But if cached files take most of the memory, the system finds free huge pages
//! for only some of it; for the rest it makes room when it is asked to move the contents of small pages. [`claim_huge_pages`] asks it before anything
//! is written, when there is nothing to move yet: for memory that will be filled. [`gather_huge_pages`] does it once the contents are there.
//! [`advise_huge_pages`] alone is for memory that may stay empty.
//!
//! All are hints: contents and results never depend on them, and on systems other than Linux they do nothing.

/// Asks the system to back a large allocation with huge pages as it is filled.
pub(in super::super) fn advise_huge_pages<T>(items: &mut Vec<T>) {
    #[cfg(target_os = "linux")]
    linux::ask(items.as_mut_ptr().cast(), items.capacity() * size_of::<T>());
    #[cfg(not(target_os = "linux"))]
    let _ = items;
}

/// Puts the whole capacity of a list, filled or not, in huge pages as far as the system has them. Takes all of that memory at once.
pub(in super::super) fn claim_huge_pages<T>(items: &mut Vec<T>) {
    #[cfg(target_os = "linux")]
    linux::claim(items.as_mut_ptr().cast(), items.capacity() * size_of::<T>());
    #[cfg(not(target_os = "linux"))]
    let _ = items;
}

/// Moves items that do not change to huge pages, as far as the system has them. Takes about half a second for each GiB that is moved, and hundredths
/// of a second if nothing is.
pub(in super::super) fn gather_huge_pages<T>(items: &[T]) {
    #[cfg(target_os = "linux")]
    linux::gather(items.as_ptr().cast_mut().cast(), size_of_val(items));
    #[cfg(not(target_os = "linux"))]
    let _ = items;
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "advice to the system about memory")]
mod linux {
    use std::ffi::c_void;
    use std::io;
    use std::mem::MaybeUninit;
    use std::ops::Range;

    /// Size of a huge page where pages have the usual 4 KiB. Where pages are larger, huge ones are, too, and the system declines.
    const HUGE_PAGE: usize = 2 << 20;
    const MADV_HUGEPAGE: i32 = 14;
    /// Since Linux 6.1.
    const MADV_COLLAPSE: i32 = 25;
    /// Error if this advice or this kind of memory is unknown, so that there is no use in continuing.
    const EINVAL: i32 = 22;
    /// Number of failures in a row after which to give up.
    const MAX_CONSECUTIVE_FAILURES: usize = 32;
    /// Number of rounds: refused pages are requested again, because room may have been made meanwhile.
    const ROUNDS: usize = 3;

    unsafe extern "C" {
        fn madvise(address: *mut c_void, length: usize, advice: i32) -> i32;
    }

    pub(super) fn ask(start: *mut c_void, bytes: usize) {
        // Memory of less than two huge pages may contain no whole one: then nothing is requested.
        let range = whole_pages(start.addr(), bytes);
        if !range.is_empty() {
            let address = start.with_addr(range.start);
            // SAFETY: the range lies within an allocation and begins at a page; this advice changes neither content nor access rights, and a failure
            // only means a missing speed-up.
            let _ = unsafe { madvise(address, range.len(), MADV_HUGEPAGE) };
        }
    }

    pub(super) fn claim(start: *mut c_void, bytes: usize) {
        ask(start, bytes);
        // The first touch of a huge page maps it as one if the system has one free; else it leaves a small page there, which MADV_COLLAPSE needs to
        // start from.
        for page in whole_pages(start.addr(), bytes).step_by(HUGE_PAGE) {
            let byte = start.with_addr(page).cast::<MaybeUninit<u8>>();
            // Volatile, or the compiler would remove a write of the value that was just read.
            // SAFETY: the byte lies within an allocation that the caller alone has access to, and is written back as it was,
            // whether it was ever written or not.
            unsafe { byte.write_volatile(byte.read_volatile()) };
        }
        gather(start, bytes);
    }

    pub(super) fn gather(start: *mut c_void, bytes: usize) {
        let mut left: Vec<usize> = whole_pages(start.addr(), bytes)
            .step_by(HUGE_PAGE)
            .collect();
        for _ in 0..ROUNDS {
            let before = left.len();
            let mut in_a_row = 0;
            for page in std::mem::take(&mut left) {
                // SAFETY: the page lies within an allocation; this advice changes neither content nor access rights, which other threads may use
                // meanwhile, and a failure only means a missing speed-up.
                if unsafe { madvise(start.with_addr(page), HUGE_PAGE, MADV_COLLAPSE) } == 0 {
                    in_a_row = 0;
                    continue;
                }
                // Read before anything else can fail: `push` may ask the system for memory.
                let unknown = io::Error::last_os_error().raw_os_error() == Some(EINVAL);
                in_a_row += 1;
                left.push(page);
                // A refusal is not free: the system first tries to make room for a huge page.
                if unknown || in_a_row == MAX_CONSECUTIVE_FAILURES {
                    return;
                }
            }
            // A round without any success made no room for another.
            if left.is_empty() || left.len() == before {
                return;
            }
        }
    }

    /// Returns the addresses of the huge pages that lie inside `bytes` bytes from `start` on.
    fn whole_pages(start: usize, bytes: usize) -> Range<usize> {
        // The pages at the edges hold other allocations as well.
        let first = start.next_multiple_of(HUGE_PAGE);
        let end = (start + bytes) & !(HUGE_PAGE - 1);
        first..end.max(first)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn pages_lie_inside() {
            const MIB: usize = 1 << 20;
            for (start, bytes, expected) in [
                (0, 0, 0..0),
                (1, 2 * MIB, 2 * MIB..2 * MIB),
                (MIB, 4 * MIB, 2 * MIB..4 * MIB),
                (2 * MIB, 2 * MIB, 2 * MIB..4 * MIB),
                (2 * MIB + 64, 6 * MIB, 4 * MIB..8 * MIB),
            ] {
                assert_eq!(whole_pages(start, bytes), expected, "{start} {bytes}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claimed_room_keeps_what_is_in_it() {
        claim_huge_pages(&mut Vec::<u64>::new());
        const COUNT: u64 = 5 << 17;
        let mut half = Vec::with_capacity(2 * COUNT as usize);
        half.extend(0..COUNT);
        claim_huge_pages(&mut half);
        half.extend(COUNT..2 * COUNT);
        assert!(half.into_iter().eq(0..2 * COUNT));
    }

    #[test]
    fn pages_keep_their_content_whoever_reads_meanwhile() {
        advise_huge_pages(&mut Vec::<u64>::new());
        gather_huge_pages::<u64>(&[]);
        gather_huge_pages(&[1_u8, 2, 3]);
        const COUNT: u64 = 9 << 17;
        let mut large = Vec::with_capacity(COUNT as usize);
        advise_huge_pages(&mut large);
        large.extend(0..COUNT);
        let sum = || large.iter().sum::<u64>();
        let expected = sum();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| (0..20).all(|_| sum() == expected));
            gather_huge_pages(&large);
            assert!(reader.join().expect("reads to the end"));
        });
        assert!(large.iter().copied().eq(0..COUNT));
    }
}
