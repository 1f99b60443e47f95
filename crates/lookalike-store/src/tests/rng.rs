//! Random numbers determined by a seed.

use lookalike::hash::splitmix64;

#[derive(Clone, Debug)]
pub(crate) struct TestRng(u64);

impl TestRng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed ^ 0x5851_f42d_4c95_7f2d)
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        splitmix64(&mut self.0)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next_u64() % end.max(1)
    }

    pub(crate) fn one_in(&mut self, odds: u64) -> bool {
        self.below(odds) == 0
    }
}
