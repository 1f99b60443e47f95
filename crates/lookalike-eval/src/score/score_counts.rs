//! Counts of pairs by score.

use std::sync::{Mutex, PoisonError};

use hashbrown::HashMap;

/// Counts by the bits of the score.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScoreCounts(HashMap<u64, u64>);

impl ScoreCounts {
    /// Adds `number` to the count of a score.
    pub fn add(&mut self, score: f64, number: u64) {
        // By bits, because floats are neither hashable nor equal to themselves in general; scores are never NaN or -0.
        *self.0.entry(score.to_bits()).or_default() += number;
    }

    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (&bits, &number) in &other.0 {
            self.add(f64::from_bits(bits), number);
        }
    }

    /// Returns the count of a score.
    #[must_use]
    pub fn of(&self, score: f64) -> u64 {
        self.0.get(&score.to_bits()).copied().unwrap_or(0)
    }

    /// Returns the scores with their counts, from the largest score to the smallest.
    #[must_use]
    pub fn descending(&self) -> Vec<(f64, u64)> {
        let counts = self.0.iter();
        let mut all: Vec<(f64, u64)> = counts
            .map(|(&bits, &number)| (f64::from_bits(bits), number))
            .collect();
        all.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        all
    }
}

/// Counts of all pairs by score, and of the pairs within each half of the documents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HalvedCounts {
    /// Counts of all pairs.
    pub all: ScoreCounts,
    /// Counts of the pairs in each half.
    pub halves: [ScoreCounts; 2],
}

impl HalvedCounts {
    /// Adds `number` to the count of a score, also in `half` if the pairs lie in one.
    pub fn add(&mut self, score: f64, number: u64, half: Option<usize>) {
        self.all.add(score, number);
        if let Some(half) = half {
            self.halves[half].add(score, number);
        }
    }

    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.all.merge(&other.all);
        for (own, other) in self.halves.iter_mut().zip(&other.halves) {
            own.merge(other);
        }
    }
}

/// Counts of one thread, added to the common ones on drop.
pub(super) struct CountingVisitor<'a> {
    own: HalvedCounts,
    all: &'a Mutex<HalvedCounts>,
}

impl<'a> CountingVisitor<'a> {
    pub(super) fn new(all: &'a Mutex<HalvedCounts>) -> Self {
        Self {
            own: HalvedCounts::default(),
            all,
        }
    }

    pub(super) fn add(&mut self, score: f64, number: u64, half: Option<usize>) {
        self.own.add(score, number, half);
    }
}

impl Drop for CountingVisitor<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.merge(&self.own);
    }
}
