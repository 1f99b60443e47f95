//! The kernels that work on words other than codes: items of a filter, halves of codes. AVX-512 has separate forms of them.

use super::dispatch::run;
use super::vector::{Kernel, Vector};
use super::windows::NearWindows;

/// Appends the owner's bits of the items that are marked in the words of their stretch, whose number is a power of two.
///
/// # Panics
///
/// Panics if the number of words is not a power of two.
pub(in super::super) fn select_members<const BLOOM: bool>(
    words: &[u64],
    items: &[u64],
    out: &mut Vec<u32>,
) {
    // Kernels use the number of words less one as a mask of positions.
    assert!(words.len().is_power_of_two());
    let before = out.len();
    // Kernels write something for every item, so the room must have this length, whatever is kept.
    out.resize(before + items.len(), 0);
    let room = &mut out[before..];
    let kept = run(SelectMembers::<BLOOM> { words, items, room });
    out.truncate(before + kept);
}

/// Kernel of [`Vector::select_members`].
pub(super) struct SelectMembers<'a, const BLOOM: bool> {
    pub(super) words: &'a [u64],
    pub(super) items: &'a [u64],
    pub(super) room: &'a mut [u32],
}

impl<const BLOOM: bool> Kernel<u64> for SelectMembers<'_, BLOOM> {
    type Output = usize;

    #[inline(always)]
    fn run<V: Vector<u64>>(self, vector: V) -> usize {
        vector.select_members::<BLOOM>(self.words, self.items, self.room)
    }
}

impl<F: Fn(usize) -> usize + Copy> Kernel<u64> for NearWindows<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<u64>>(self, vector: V) {
        vector.near_windows(self);
    }
}
