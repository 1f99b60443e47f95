//! Search for words of 32 bits that are near others in windows of a list.

/// Number of words that one word is compared with.
pub(in super::super) const WINDOW: usize = 16;

/// Comparison of each of `xs` with the sixteen words of `ys` that begin at `window` of its position. Appends the positions of the pairs within
/// `radius`; `first` is added to that of the word in `xs`.
#[derive(Debug)]
pub struct NearWindows<'a, F> {
    pub xs: &'a [u32],
    pub ys: &'a [u32],
    pub window: F,
    pub radius: u32,
    pub first: usize,
    pub found: &'a mut Vec<(u32, u32)>,
}

impl<F: Fn(usize) -> usize + Copy> NearWindows<'_, F> {
    /// Compares in a form that compilers vectorise.
    #[inline(always)]
    pub(super) fn find_one_by_one(mut self) {
        for (at, &x) in self.xs.iter().enumerate() {
            let from = (self.window)(at);
            let window = &self.ys[from..from + WINDOW];
            // The least distance of all sixteen, and one branch, which is hardly ever taken.
            let apart = window.iter().map(|y| (y ^ x).count_ones());
            // A minimum over sixteen has no branch inside, so the compiler vectorises it, which it could not do with a test for each word.
            if apart.fold(u32::MAX, u32::min) <= self.radius {
                self.find_near(at, from);
            }
        }
    }

    /// Appends the words of a window that are near the one at a position.
    #[cold]
    fn find_near(&mut self, at: usize, from: usize) {
        let (x, radius) = (self.xs[at], self.radius);
        let window = (from..).zip(&self.ys[from..from + WINDOW]);
        let near = window.filter(|&(_, y)| (y ^ x).count_ones() <= radius);
        let at = (self.first + at) as u32;
        self.found.extend(near.map(|(place, _)| (at, place as u32)));
    }
}
