//! Extracting and depositing the bits of a word by a mask.

#[cfg(target_arch = "x86_64")]
use super::level::CpuLevel;

/// Returns a mask of the `count` lowest bits; all 64 from 64 on.
#[inline(always)]
pub(in super::super) fn low_ones(count: usize) -> u64 {
    if count >= 64 {
        u64::MAX
    } else {
        (1 << count) - 1
    }
}

/// Returns the bits of `word` at the set positions of `mask`, moved together to the low end (PEXT).
#[inline]
pub(in super::super) fn extract(word: u64, mask: u64) -> u64 {
    // A relaxed load and a branch that is always predicted. Kernels do not call this: their vector has the instruction inline.
    #[cfg(target_arch = "x86_64")]
    if CpuLevel::current() != CpuLevel::PORTABLE {
        return x86::extract(word, mask);
    }
    extract_portably(word, mask)
}

/// Inverts [`extract`]: spreads the low bits to the set positions of `mask` (PDEP).
#[inline]
pub(in super::super) fn deposit(word: u64, mask: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if CpuLevel::current() != CpuLevel::PORTABLE {
        return x86::deposit(word, mask);
    }
    deposit_portably(word, mask)
}

/// Returns the runs of ones of a mask, from low to high: the start and the length of each, and the number of ones below it.
fn runs(mut mask: u64) -> impl Iterator<Item = (u32, u32, u32)> {
    let mut below = 0;
    std::iter::from_fn(move || {
        let start = mask.trailing_zeros();
        // An empty mask has 64 trailing zeros: the shift returns `None`, which ends the runs.
        let length = mask.checked_shr(start)?.trailing_ones();
        mask &= !(low_ones(length as usize) << start);
        below += length;
        Some((start, length, below - length))
    })
}

pub(super) fn extract_portably(word: u64, mask: u64) -> u64 {
    let parts = runs(mask);
    // A step for each run of ones, however long it is.
    parts.fold(0, |out, (start, length, below)| {
        out | (word >> start & low_ones(length as usize)) << below
    })
}

pub(super) fn deposit_portably(word: u64, mask: u64) -> u64 {
    let parts = runs(mask);
    parts.fold(0, |out, (start, length, below)| {
        out | (word >> below & low_ones(length as usize)) << start
    })
}

#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "calls of code for instructions that were detected"
)]
mod x86 {
    use std::arch::x86_64::*;

    #[inline]
    pub(super) fn extract(word: u64, mask: u64) -> u64 {
        #[target_feature(enable = "bmi2")]
        fn pext(word: u64, mask: u64) -> u64 {
            _pext_u64(word, mask)
        }
        // SAFETY: called where a level above portable was detected, all of which include BMI2.
        unsafe { pext(word, mask) }
    }

    #[inline]
    pub(super) fn deposit(word: u64, mask: u64) -> u64 {
        #[target_feature(enable = "bmi2")]
        fn pdep(word: u64, mask: u64) -> u64 {
            _pdep_u64(word, mask)
        }
        // SAFETY: called where a level above portable was detected, all of which include BMI2.
        unsafe { pdep(word, mask) }
    }
}
