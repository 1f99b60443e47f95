//! Words of a list that are near one another.

use super::KernelLevel;
#[cfg(target_arch = "aarch64")]
use super::arm;
#[cfg(target_arch = "x86_64")]
use super::x86;

/// All pairs of `words` within `radius` inside each of some groups, appended to `pairs`. The groups
/// lie back to back from `start` on; `ends` tells where each ends. Those of more than `most` words are
/// passed over.
pub(in super::super) fn close_pairs(
    words: &[u64],
    start: usize,
    ends: &[u32],
    most: usize,
    radius: u32,
    pairs: &mut Vec<(u64, u64)>,
) {
    close_pairs_at(
        KernelLevel::detected(),
        words,
        start,
        ends,
        most,
        radius,
        pairs,
    );
}

pub(super) fn close_pairs_at(
    level: KernelLevel,
    words: &[u64],
    start: usize,
    ends: &[u32],
    most: usize,
    radius: u32,
    pairs: &mut Vec<(u64, u64)>,
) {
    match level {
        KernelLevel::Portable => close_pairs_portably(words, start, ends, most, radius, pairs),
        #[cfg(target_arch = "x86_64")]
        _ => x86::close_pairs(level, words, start, ends, most, radius, pairs),
        #[cfg(target_arch = "aarch64")]
        _ => arm::close_pairs(words, start, ends, most, radius, pairs),
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        _ => close_pairs_portably(words, start, ends, most, radius, pairs),
    }
}

#[inline(always)]
pub(super) fn close_pairs_portably(
    words: &[u64],
    start: usize,
    ends: &[u32],
    most: usize,
    radius: u32,
    pairs: &mut Vec<(u64, u64)>,
) {
    each_group(words, start, ends, most, |group| {
        for (i, &a) in group.iter().enumerate() {
            for &b in &group[i + 1..] {
                if (a ^ b).count_ones() <= radius {
                    pairs.push((a, b));
                }
            }
        }
    });
}

/// Hands every group of 2 to `most` words to `each`; see [`close_pairs`].
#[inline(always)]
pub(in super::super) fn each_group<W>(
    words: &[W],
    mut start: usize,
    ends: &[u32],
    most: usize,
    mut each: impl FnMut(&[W]),
) {
    for &end in ends {
        let group = &words[start..end as usize];
        start = end as usize;
        if (2..=most).contains(&group.len()) {
            each(group);
        }
    }
}

/// Words that [`near_windows`] compares with one.
pub(in super::super) const WINDOW: usize = 16;

/// Compares each of `xs` with the sixteen words of `ys` from `window` of its position on. Appends the positions of those
/// within `radius`; to that of the one in `xs`, `first` is added.
///
/// # Panics
///
/// When a window reaches beyond `ys`.
pub(in super::super) fn near_windows(
    xs: &[u32],
    ys: &[u32],
    window: impl Fn(usize) -> usize + Copy,
    radius: u32,
    first: usize,
    found: &mut Vec<(u32, u32)>,
) {
    near_windows_at(
        KernelLevel::detected(),
        (xs, ys),
        window,
        radius,
        first,
        found,
    );
}

pub(super) fn near_windows_at(
    level: KernelLevel,
    (xs, ys): (&[u32], &[u32]),
    window: impl Fn(usize) -> usize + Copy,
    radius: u32,
    first: usize,
    found: &mut Vec<(u32, u32)>,
) {
    match level {
        #[cfg(target_arch = "x86_64")]
        KernelLevel::Avx2 | KernelLevel::Avx512 | KernelLevel::Avx512Popcnt => {
            x86::near_windows(level, (xs, ys), window, radius, first, found);
        }
        _ => near_windows_portably((xs, ys), window, radius, first, found),
    }
}

/// In a form that compilers make vector code of.
#[inline(always)]
pub(super) fn near_windows_portably(
    (xs, ys): (&[u32], &[u32]),
    window: impl Fn(usize) -> usize + Copy,
    radius: u32,
    first: usize,
    found: &mut Vec<(u32, u32)>,
) {
    for (at, &x) in xs.iter().enumerate() {
        let from = window(at);
        let apart = ys[from..from + WINDOW].iter().map(|y| (y ^ x).count_ones());
        if apart.fold(u32::MAX, u32::min) <= radius {
            near_in_window((x, first + at), ys, from, radius, found);
        }
    }
}

/// Tells which words of a window are near one; see [`near_windows`].
#[cold]
fn near_in_window(
    (x, at): (u32, usize),
    ys: &[u32],
    from: usize,
    radius: u32,
    found: &mut Vec<(u32, u32)>,
) {
    let window = (from..).zip(&ys[from..from + WINDOW]);
    let near = window.filter(|&(_, y)| (y ^ x).count_ones() <= radius);
    found.extend(near.map(|(place, _)| (at as u32, place as u32)));
}
