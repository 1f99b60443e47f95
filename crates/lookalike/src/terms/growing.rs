//! Tables that follow a collection: counting continues, while the weights stay until they have drifted by a tolerance.

use super::{TermCounts, Terms, idf};

/// Width of the fingerprints in which drift is measured.
const BITS: f64 = 64.0;

/// A table of terms, and counts that continue to change.
///
/// A scheme names the table. Documents change the counts but not the table, so the fingerprints of a collection that grew a little belong to one
/// scheme and are comparable. When the weights of the counts differ too much from those in use, [`GrowingTerms::refresh_weights`] adopts them, and the table
/// gets a new id.
///
/// ```
/// use lookalike::{GrowingTerms, Scheme, TermCounts};
/// let mut counts = TermCounts::new(&Scheme::default());
/// (0..1000).for_each(|document| counts.add(&[document % 7, 100 + document % 50, 1000 + document]));
/// let mut table = GrowingTerms::new(counts);
/// let id = table.terms().id();
/// table.counts_mut().add(&[1, 2, 3]);
/// assert!(!table.refresh_weights(1.0).renewed && table.terms().id() == id);
/// assert!(table.refresh_weights(0.0).renewed && table.terms().documents() == 1001);
/// ```
#[derive(Debug, Clone)]
pub struct GrowingTerms {
    pub(super) terms: Terms,
    pub(super) counts: TermCounts,
}

/// Drift of the weights found by [`GrowingTerms::refresh_weights`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct TermsDrift {
    /// Number of bits of a 64-bit fingerprint that the weights of the counts would change: an upper estimate of the average over the collection, for
    /// the weight `idf`.
    pub bits: f64,
    /// True if the table has adopted the weights of the counts, and with them a new id.
    pub renewed: bool,
}

impl GrowingTerms {
    /// Creates a table of these counts, which continue to change.
    #[must_use]
    pub fn new(mut counts: TermCounts) -> Self {
        let terms = counts.terms();
        counts.settle();
        Self { terms, counts }
    }

    /// Returns the table that schemes name.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Returns the counts.
    #[must_use]
    pub fn counts(&self) -> &TermCounts {
        &self.counts
    }

    /// Returns the bytes in use for the table and the counts.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.counts.memory() + 12 * self.terms.len() as u64
    }

    /// Returns the table and the counts.
    #[must_use]
    pub fn into_parts(self) -> (Terms, TermCounts) {
        (self.terms, self.counts)
    }

    /// Returns the counts, to add documents or other counts, or to let them decay. The table does not change before [`GrowingTerms::refresh_weights`].
    pub fn counts_mut(&mut self) -> &mut TermCounts {
        &mut self.counts
    }

    /// Adopts the weights of the counts if they differ from those in use by at least `tolerance` bits; always if `tolerance` is 0 or the table counts
    /// no documents.
    pub fn refresh_weights(&mut self, tolerance: f64) -> TermsDrift {
        self.counts.settle();
        let bits = self.drift();
        let renewed = bits >= tolerance || self.terms.documents() == 0;
        if renewed {
            self.terms = self.counts.terms();
        }
        TermsDrift { bits, renewed }
    }

    /// Computes the drift in bits from the angle between the two vectors of weights.
    ///
    /// A bit of a simhash tells on which side of a random plane the vector of weights lies. Two vectors at an angle θ are on different sides with
    /// probability θ / π (Charikar, STOC 2002). The vectors here are those of the whole collection: each feature counts once for every document that
    /// has it. Since the angle is a concave function of the difference, documents move no more than that on average.
    fn drift(&self) -> f64 {
        let counts = &self.counts;
        let (mut dot, mut old_square, mut new_square) = (0.0, 0.0, 0.0);
        let mut add = |often: u64, old: u32, new: u32| {
            let (often, old, new) = (often as f64, f64::from(old), f64::from(new));
            dot += often * old * new;
            old_square += often * old * old;
            new_square += often * new * new;
        };
        let mut others = counts.occurrences;
        for &(feature, count) in &counts.counts {
            // After decay, rounding can make the listed counts exceed the remembered occurrences.
            others = others.saturating_sub(count.into());
            let new = idf(counts.documents, count);
            add(count.into(), self.terms.idf(feature), new);
        }
        // Occurrences that the listed features leave over are features of one document each.
        let unlisted = |documents| idf(documents, 1);
        add(
            others,
            unlisted(self.terms.documents()),
            unlisted(counts.documents),
        );
        let norms = (old_square * new_square).sqrt();
        if norms == 0.0 {
            return 0.0;
        }
        // Rounding may bring the cosine above 1, for which there is no angle.
        BITS * (dot / norms).min(1.0).acos() / std::f64::consts::PI
    }
}
