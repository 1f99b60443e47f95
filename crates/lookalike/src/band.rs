//! Bands of signatures: they propose the documents that are worth comparing.
//!
//! A min-hash signature is cut into bands of a few rows. Documents that agree in all rows of a band share its key and become candidates, which are
//! then verified.

use crate::hash::xxh3_values;

/// Division of a signature into `bands` bands of `rows` minima each.
///
/// ```
/// use lookalike::hash::avalanche;
/// use lookalike::{Banding, MinHash};
///
/// let minhash = MinHash::new(128, 0);
/// let signature = |ids: std::ops::Range<u64>| {
///     let features: Vec<u64> = ids.map(avalanche).collect();
///     minhash.signature(&features).expect("there are features")
/// };
/// // 95 of 105 features are shared: a resemblance of 0.9.
/// let (a, b) = (signature(0..100), signature(5..105));
/// let banding = Banding::for_threshold(128, 0.8, 0.999).unwrap();
/// let share_a_band = banding.keys(a.values()).zip(banding.keys(b.values())).any(|(a, b)| a == b);
/// assert!(share_a_band);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Banding {
    /// Number of bands.
    pub bands: usize,
    /// Minima in each band; 0 counts as 1.
    pub rows: usize,
}

impl Banding {
    /// Returns the probability that two documents of resemblance s share at least one key: 1 - (1 - s^rows)^bands.
    #[must_use]
    pub fn recall(&self, resemblance: f64) -> f64 {
        if self.bands == 0 {
            return 0.0;
        }
        let miss = -resemblance.powf(self.rows.max(1) as f64);
        // 1 - (1 + miss)^bands, accurate even if the probability is tiny.
        -(self.bands as f64 * miss.ln_1p()).exp_m1()
    }

    /// Returns the banding of at most `functions` minima that proposes the fewest candidates while it finds pairs at the threshold with at least this
    /// recall: as many rows as possible, in as many bands as there are minima for. `None` if even one row per band is not enough.
    ///
    /// ```
    /// use lookalike::Banding;
    /// let banding = Banding::for_threshold(128, 0.8, 0.999).unwrap();
    /// assert_eq!(banding, Banding { bands: 25, rows: 5 });
    /// assert!(banding.recall(0.8) >= 0.999 && banding.recall(0.3) < 0.06);
    /// ```
    #[must_use]
    pub fn for_threshold(functions: usize, threshold: f64, recall: f64) -> Option<Self> {
        (1..=functions)
            .rev()
            .map(|rows| Self {
                bands: functions / rows,
                rows,
            })
            // Recall falls as rows grow, so the first banding that reaches it has the most rows and proposes the fewest pairs.
            .find(|banding| banding.recall(threshold) >= recall)
    }

    /// Returns the key of each band of `signature`: XXH3-64, seeded with the band's number, of the little-endian bytes of its minima. Minima beyond
    /// the last band are not used, and bands beyond the last minimum have no key.
    pub fn keys<'a>(&'a self, signature: &'a [u32]) -> impl Iterator<Item = u64> + 'a {
        signature
            .chunks_exact(self.rows.max(1))
            .take(self.bands)
            .enumerate()
            // Seeded with the band's number, so that equal minima in two bands do not count as agreement.
            .map(|(band, rows)| xxh3_values(rows, band as u64))
    }
}
