//! Words of 32 bits near others in windows of a list.

/// Words that one is compared with.
pub(in super::super) const WINDOW: usize = 16;

/// In a form that compilers make vector code of.
#[inline(always)]
pub(super) fn near_one_by_one(
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

/// Tells which words of a window are near one; see [`super::NearWindows`].
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
