//! Counting the documents of features, in batches that are sorted and merged.

use super::Terms;
use crate::scheme::Scheme;

/// Features that are collected before they are sorted and added to the counts.
const BATCH: usize = 1 << 22;

/// Counts in how many documents each feature occurs.
///
/// Memory: 16 bytes for each distinct feature, and twice that while a batch is merged, besides
/// 32 MB for the batch. Time: a sort of all features and a merge a batch. The order of the
/// documents changes nothing.
///
/// ```
/// use lookalike::{Scheme, TermsBuilder};
/// let mut builder = TermsBuilder::new(&Scheme::default());
/// builder.add(&[1, 2, 3]);
/// builder.add(&[2, 3, 4]);
/// let terms = builder.finish();
/// assert_eq!((terms.documents(), terms.len(), terms.count(2), terms.count(9)), (2, 2, 2, 1));
/// ```
#[derive(Debug)]
pub struct TermsBuilder {
    scheme: Scheme,
    documents: u64,
    batch: Vec<u64>,
    /// Features, ascending, with the number of their documents.
    counts: Vec<(u64, u32)>,
}

impl TermsBuilder {
    /// A builder for the features of `scheme`, whose weight and sketch do not matter.
    #[must_use]
    pub fn new(scheme: &Scheme) -> Self {
        Self {
            scheme: scheme.counted(),
            documents: 0,
            batch: Vec::new(),
            counts: Vec::new(),
        }
    }

    /// Counts one document: its distinct features. One without features counts too.
    pub fn add(&mut self, set: &[u64]) {
        self.documents += 1;
        self.batch.extend_from_slice(set);
        if self.batch.len() >= BATCH {
            self.merge_batch();
        }
    }

    /// Bytes in use for the counts.
    #[must_use]
    pub fn memory(&self) -> u64 {
        ((self.counts.capacity() * 16) + self.batch.capacity() * 8) as u64
    }

    /// The table.
    #[must_use]
    pub fn finish(mut self) -> Terms {
        self.merge_batch();
        let frequent = || self.counts.iter().filter(|count| count.1 > 1);
        let features = frequent().map(|count| count.0).collect();
        let counts = frequent().map(|count| count.1).collect();
        Terms::new(self.scheme, self.documents, features, counts)
    }

    fn merge_batch(&mut self) {
        self.batch.sort_unstable();
        let new = self
            .batch
            .chunk_by(|a, b| a == b)
            .map(|equal| (equal[0], u32::try_from(equal.len()).unwrap_or(u32::MAX)));
        self.counts = merged(&self.counts, new);
        self.batch.clear();
    }
}

/// Two ascending lists of counts as one.
fn merged(old: &[(u64, u32)], new: impl Iterator<Item = (u64, u32)>) -> Vec<(u64, u32)> {
    let mut all = Vec::with_capacity(old.len());
    let mut old = old.iter().copied().peekable();
    for (feature, count) in new {
        while let Some(before) = old.next_if(|entry| entry.0 < feature) {
            all.push(before);
        }
        let before = old
            .next_if(|entry| entry.0 == feature)
            .map_or(0, |entry| entry.1);
        all.push((feature, before.saturating_add(count)));
    }
    all.extend(old);
    all
}
