//! Tables that follow a collection: counts go on, weights stay until they have moved by a tolerance.

use super::{TermCounts, Terms, idf};

/// Bits of the fingerprints by which drift is told.
const BITS: f64 = 64.0;

/// A table of terms and the counts that go on behind it.
///
/// A scheme names the table, and the table does not change with each document: the counts do. So
/// fingerprints of a collection that grew a little are of one scheme, and comparable. When the
/// weights of the counts are too far from those in use, [`GrowingTerms::follow`] takes them over,
/// and the table has a new id.
///
/// ```
/// use lookalike::{GrowingTerms, Scheme, TermCounts};
/// let mut counts = TermCounts::new(&Scheme::default());
/// (0..1000).for_each(|document| counts.add(&[document % 7, 100 + document % 50, 1000 + document]));
/// let mut table = GrowingTerms::new(counts);
/// let id = table.terms().id();
/// table.counts_mut().add(&[1, 2, 3]);
/// assert!(!table.follow(1.0).renewed && table.terms().id() == id);
/// assert!(table.follow(0.0).renewed && table.terms().documents() == 1001);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrowingTerms {
    pub(super) terms: Terms,
    pub(super) counts: TermCounts,
}

/// Drift of the weights that [`GrowingTerms::follow`] found, and whether it took new ones.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct TermsDrift {
    /// Bits of a 64-bit fingerprint that the weights of the counts would change: an upper estimate of the average over the
    /// collection, under the weight `idf`.
    pub bits: f64,
    /// True if the table has taken the weights of the counts over, and with them a new id.
    pub renewed: bool,
}

impl GrowingTerms {
    /// A table of these counts.
    #[must_use]
    pub fn new(mut counts: TermCounts) -> Self {
        let terms = counts.terms();
        counts.settle();
        Self { terms, counts }
    }

    /// The table that schemes name.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The counts.
    #[must_use]
    pub fn counts(&self) -> &TermCounts {
        &self.counts
    }

    /// Bytes in use for table and counts.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.counts.memory() + 12 * self.terms.len() as u64
    }

    /// The table and the counts.
    #[must_use]
    pub fn into_parts(self) -> (Terms, TermCounts) {
        (self.terms, self.counts)
    }

    /// The counts, to add documents to, or other counts, or to let them decay. The table does not change
    /// before [`GrowingTerms::follow`].
    pub fn counts_mut(&mut self) -> &mut TermCounts {
        &mut self.counts
    }

    /// Takes over the weights of the counts if they are `tolerance` bits or more from those in use;
    /// with 0 always, and where no documents gave those in use.
    pub fn follow(&mut self, tolerance: f64) -> TermsDrift {
        self.counts.settle();
        let bits = self.drift();
        let renewed = bits >= tolerance || self.terms.documents() == 0;
        if renewed {
            self.terms = self.counts.terms();
        }
        TermsDrift { bits, renewed }
    }

    /// The drift in bits, by the angle between the two vectors of weights.
    ///
    /// A bit of a simhash is the side of a random plane on which the vector of weights lies. Two
    /// vectors at an angle θ are on different sides with probability θ / π (Charikar, STOC 2002).
    /// The vectors are those of the whole collection: each feature as often as documents have it.
    /// Since the angle is a concave function of the difference, documents move no more than that on average.
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
            // A table whose counts have decayed may list more than it remembers as occurrences, by rounding.
            others = others.saturating_sub(count.into());
            let new = idf(counts.documents, count);
            add(count.into(), self.terms.idf(feature), new);
        }
        // What the listed features leave of all occurrences are features of one document each.
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
        // Rounding may bring the cosine above 1, where there is no angle.
        BITS * (dot / norms).min(1.0).acos() / std::f64::consts::PI
    }
}
