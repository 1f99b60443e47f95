//! Bits of a word taken out and put in by a mask.

#[cfg(target_arch = "x86_64")]
use super::{KernelLevel, x86};

/// The `count <= 64` lowest bits.
pub(in super::super) fn low_ones(count: usize) -> u64 {
    if count >= 64 {
        u64::MAX
    } else {
        (1 << count) - 1
    }
}

/// The bits of `word` at the set positions of `mask`, moved together to the low end (PEXT).
pub(in super::super) fn extract(word: u64, mask: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if KernelLevel::detected() != KernelLevel::Portable {
        return x86::extract(word, mask);
    }
    extract_portably(word, mask)
}

/// The inverse of [`extract`]: low bits spread to the set positions of `mask` (PDEP).
pub(in super::super) fn deposit(word: u64, mask: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if KernelLevel::detected() != KernelLevel::Portable {
        return x86::deposit(word, mask);
    }
    deposit_portably(word, mask)
}

/// For each of `words`, its bits under `address` above the others; `out` is as long.
pub(in super::super) fn permute(words: &[u64], address: u64, out: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    if KernelLevel::detected() != KernelLevel::Portable {
        return x86::permute(words, address, out);
    }
    permute_portably(words, address, out);
}

pub(super) fn permute_portably(words: &[u64], address: u64, out: &mut [u64]) {
    for (&word, out) in words.iter().zip(out) {
        let (high, low) = (
            extract_portably(word, address),
            extract_portably(word, !address),
        );
        *out = high.checked_shl(address.count_zeros()).unwrap_or(0) | low;
    }
}

/// The runs of ones of a mask, from low to high: where each starts, how long it is, and how many
/// ones lie below it.
fn runs(mut mask: u64) -> impl Iterator<Item = (u32, u32, u32)> {
    let mut below = 0;
    std::iter::from_fn(move || {
        let start = mask.trailing_zeros();
        let length = mask.checked_shr(start)?.trailing_ones();
        mask &= !(low_ones(length as usize) << start);
        below += length;
        Some((start, length, below - length))
    })
}

pub(super) fn extract_portably(word: u64, mask: u64) -> u64 {
    let parts = runs(mask);
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
