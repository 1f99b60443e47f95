//! Counting of the documents that have each feature, in batches that are sorted and merged.

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use super::Terms;
use crate::scheme::{Scheme, SchemeMismatch};

/// Maximum number of features that are collected before they are sorted and added to the counts.
const BATCH: usize = 1 << 22;

/// Counter of the documents in which each feature occurs.
///
/// Memory: 16 bytes for each distinct feature, twice that while a batch is merged, and 32 MB for the batch unless [`TermCounts::set_batch`] sets
/// another size. Time: a sort of all features, and one merge for each batch. The order of the documents does not matter.
///
/// ```
/// use lookalike::{Scheme, TermCounts};
/// let mut counts = TermCounts::new(&Scheme::default());
/// counts.add(&[1, 2, 3]);
/// counts.add(&[2, 3, 4]);
/// let terms = counts.terms();
/// assert_eq!((terms.documents(), terms.len(), terms.count(2), terms.count(9)), (2, 2, 2, 1));
/// ```
#[derive(Debug, Clone)]
pub struct TermCounts {
    pub(super) scheme: Scheme,
    pub(super) documents: u64,
    /// Features of all documents, each counted once for every document that has it.
    pub(super) occurrences: u64,
    /// True if features of one document are also kept.
    pub(super) singles: bool,
    /// Number of features after which a batch is merged.
    batch_features: usize,
    batch: Vec<u64>,
    /// Features, ascending, with the number of their documents.
    pub(super) counts: Vec<(u64, u32)>,
}

impl TermCounts {
    /// Creates counts of no documents, for the features of `scheme`, whose weight and sketch do not matter.
    #[must_use]
    pub fn new(scheme: &Scheme) -> Self {
        Self {
            scheme: scheme.counted(),
            documents: 0,
            occurrences: 0,
            singles: false,
            batch_features: BATCH,
            batch: Vec::new(),
            counts: Vec::new(),
        }
    }

    /// Keeps features of one document, too, in files and for merging. Without them a feature that occurs in one document on each of two sides counts
    /// as one after a merge; with them it counts as two.
    #[must_use]
    pub fn with_singles(self) -> Self {
        Self {
            singles: true,
            ..self
        }
    }

    /// Sets the number of features after which a batch is merged, at most 4 million: fewer take less memory and more time.
    pub fn set_batch(&mut self, features: usize) {
        self.batch_features = features.min(BATCH);
    }

    /// Counts one document, given its distinct features. A document without features also counts.
    pub fn add(&mut self, set: &[u64]) {
        self.documents += 1;
        // Count all features, even those that are forgotten: `drift` computes the number of unlisted ones from this.
        self.occurrences += set.len() as u64;
        self.batch.extend_from_slice(set);
        // A merge reads all counts, so it is done once per batch instead of once per document.
        if self.batch.len() >= self.batch_features {
            self.merge_batch();
        }
    }

    /// Adds the counts of other documents. Linear time. Features of one document are only kept if both sides keep them.
    ///
    /// # Errors
    /// Returns [`SchemeMismatch`] if the other counts are of other features.
    pub fn merge(&mut self, mut other: Self) -> Result<(), SchemeMismatch> {
        self.scheme.ensure_same(&other.scheme)?;
        self.merge_batch();
        other.merge_batch();
        let most = self.counts.len() + other.counts.len();
        self.counts = merged(&self.counts, other.counts.into_iter(), most);
        self.documents = self.documents.saturating_add(other.documents);
        self.occurrences = self.occurrences.saturating_add(other.occurrences);
        // A side that has forgotten its single features would make these features count too little.
        self.singles &= other.singles;
        Ok(())
    }

    /// Multiplies all counts by `factor`, which is above 0 and at most 1. The numbers of documents and occurrences are rounded down, and features
    /// whose count falls to zero are dropped. Documents that are added later count in full, so old ones fade.
    ///
    /// The count of a feature is rounded up with a probability equal to its fraction, by a hash of the feature and of all counts: rounded to the
    /// nearest number, 5 times 0.9 would stay 5 for ever. Equal counts always give equal results.
    ///
    /// # Panics
    /// Panics if `factor` is not above 0 and at most 1.
    pub fn decay(&mut self, factor: f64) {
        assert!(
            factor > 0.0 && factor <= 1.0,
            "a factor above 0 and at most 1"
        );
        self.merge_batch();
        let seed = self.digest();
        // Both get smaller each time, so the hash changes with them.
        let scaled = |sum: u64| (sum as f64 * factor) as u64;
        self.documents = scaled(self.documents);
        self.occurrences = scaled(self.occurrences);
        // Counts are rounded up by chance, but no feature is in more documents than there are.
        let most = u32::try_from(self.documents).unwrap_or(u32::MAX);
        for (feature, count) in &mut self.counts {
            let mixed = xxh3_64_with_seed(&feature.to_le_bytes(), seed);
            // 53 bits give a number from 0 up to, but not including, 1.
            let chance = (mixed >> 11) as f64 / (1_u64 << 53) as f64;
            *count = ((f64::from(*count) * factor + chance) as u32).min(most);
        }
        self.counts.retain(|entry| entry.1 > 0);
    }

    /// Returns a number that changes with every change of the counts.
    fn digest(&self) -> u64 {
        let mut hasher = Xxh3::new();
        hasher.update(&self.documents.to_le_bytes());
        hasher.update(&self.occurrences.to_le_bytes());
        for (feature, count) in &self.counts {
            hasher.update(&feature.to_le_bytes());
            hasher.update(&count.to_le_bytes());
        }
        hasher.digest()
    }

    /// Takes out the counts of all features, ascending by feature, so that they can be merged elsewhere when memory cannot hold them. The number of
    /// documents stays. [`TermCounts::restore`] puts them back.
    ///
    /// ```
    /// use lookalike::{Scheme, TermCounts};
    /// let mut counts = TermCounts::new(&Scheme::default());
    /// counts.add(&[5, 7]);
    /// let first = counts.take();
    /// counts.add(&[7]);
    /// assert_eq!((first, counts.take()), (vec![(5, 1), (7, 1)], vec![(7, 1)]));
    /// counts.restore(vec![(5, 1), (7, 2)]);
    /// assert_eq!((counts.documents(), counts.terms().count(7)), (2, 2));
    /// ```
    #[must_use]
    pub fn take(&mut self) -> Vec<(u64, u32)> {
        self.merge_batch();
        std::mem::take(&mut self.counts)
    }

    /// Replaces the counts.
    ///
    /// # Panics
    /// Panics if their features are not ascending.
    pub fn restore(&mut self, counts: Vec<(u64, u32)>) {
        let ascend = |a: &(u64, u32), b: &(u64, u32)| a.0 < b.0;
        assert!(counts.is_sorted_by(ascend), "features ascend");
        self.batch.clear();
        self.counts = counts;
    }

    /// Returns counts of no documents that count and keep the same features.
    #[must_use]
    pub fn without_documents(&self) -> Self {
        Self {
            singles: self.singles,
            ..Self::new(&self.scheme)
        }
    }

    /// Counts documents, and the features of each, that were added to other counts, whose features [`TermCounts::restore`] brings here.
    ///
    /// ```
    /// use lookalike::{Scheme, TermCounts};
    /// let mut counts = TermCounts::new(&Scheme::default());
    /// let mut part = counts.without_documents();
    /// part.add(&[5, 7]);
    /// part.add(&[7]);
    /// counts.restore(part.take());
    /// counts.add_counted(2, 3);
    /// let terms = counts.terms();
    /// assert_eq!((terms.documents(), terms.count(7)), (2, 2));
    /// ```
    pub fn add_counted(&mut self, documents: u64, features: u64) {
        self.documents += documents;
        self.occurrences += features;
    }

    /// Returns the scheme whose features are counted, without weight and sketch.
    #[must_use]
    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// Returns the number of documents that were counted.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Returns true if features of one document are kept.
    #[must_use]
    pub fn keeps_singles(&self) -> bool {
        self.singles
    }

    /// Returns the bytes in use for the counts.
    #[must_use]
    pub fn memory(&self) -> u64 {
        ((self.counts.capacity() * 16) + self.batch.capacity() * 8) as u64
    }

    /// Returns the maximum bytes in use until `features` more features are merged into the counts. A feature of several documents counts once for
    /// each.
    #[must_use]
    pub fn memory_with(&self, features: usize) -> u64 {
        let batch = self.batch.len() + features;
        // The old list, the list that results from the merge, and a batch that may have room for twice as many.
        let lists = self.counts.capacity() + self.counts.len() + batch;
        ((lists * 16) + batch.max(self.batch.capacity()) * 16) as u64
    }

    /// Returns the maximum bytes in use for the table of these counts and its file, including the counts.
    #[must_use]
    pub fn memory_of_table(&mut self) -> u64 {
        self.merge_batch();
        let frequent = self.counts.iter().filter(|count| count.1 > 1).count();
        let others = if self.singles { self.counts.len() } else { 0 };
        // 12 bytes each in the table, in its file, and in the part of the file that lists all features.
        self.memory() + (frequent * 24 + others * 12) as u64
    }

    /// Returns an upper bound of the number of distinct features: one that occurred again since the last merge counts twice.
    #[must_use]
    pub fn distinct(&self) -> usize {
        self.counts.len() + self.batch.len()
    }

    /// Builds the table of these counts.
    #[must_use]
    pub fn terms(&mut self) -> Terms {
        self.merge_batch();
        let frequent = || self.counts.iter().filter(|count| count.1 > 1);
        let features = frequent().map(|count| count.0).collect();
        let counts = frequent().map(|count| count.1).collect();
        Terms::new(self.scheme, self.documents, features, counts)
    }

    /// Merges everything that was added, and forgets features of one document unless they are kept.
    pub(super) fn settle(&mut self) {
        self.merge_batch();
        if !self.singles {
            self.counts.retain(|entry| entry.1 > 1);
            self.counts.shrink_to_fit();
        }
    }

    fn merge_batch(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        self.batch.sort_unstable();
        let groups = || self.batch.chunk_by(|a, b| a == b);
        let new = groups().map(|equal| (equal[0], u32::try_from(equal.len()).unwrap_or(u32::MAX)));
        let most = self.counts.len() + groups().count();
        self.counts = merged(&self.counts, new, most);
        self.batch.clear();
        // The last document may have made the batch much larger than its limit.
        self.batch.shrink_to(self.batch_features);
    }
}

/// Merges two ascending lists of counts into one, of at most `most` features.
fn merged(
    old: &[(u64, u32)],
    new: impl Iterator<Item = (u64, u32)>,
    most: usize,
) -> Vec<(u64, u32)> {
    // Allocate all at once: a list that grows is in memory twice while it moves, in addition to the old one.
    let mut all = Vec::with_capacity(most);
    let mut old = old.iter().copied().peekable();
    for (feature, count) in new {
        // Both ascend, so one pass over each is enough.
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
