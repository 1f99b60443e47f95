//! Sketches that are hashes of whole parts of a document: I-Match and bucket checksums (Manku et al. 2007, section 5.4).

use crate::hash::{GOLDEN, avalanche, xxh3_64};
use crate::terms::Terms;

/// Minimum number of a document's distinct terms in a lexicon; with fewer, it has no hash.
const MIN_TERMS: usize = 3;

/// I-Match (Chowdhury et al., TOIS 2002) with randomised lexicons (Kolcz, Chowdhury and Alspector,
/// KDD 2004).
///
/// Lexicon 0 is pruned by rarity: it has the terms that occur in two documents or more, but in at most a tenth of all. Every other lexicon drops one
/// in three of these terms at random: lexicon i drops those whose `avalanche(t ^ i * 0x9E3779B97F4A7C15)` is below 2^64 / 3. For each lexicon, the
/// hash of a document is the XXH3-64, with the lexicon's number as seed, of the document's distinct terms in it, ascending and little-endian; there
/// is none if the terms are fewer than three. Documents that agree in any hash are candidates: one term of lexicon 0 that is added or lost leaves
/// each of the other hashes unchanged with probability 1/3, and one that becomes another with probability 1/9.
///
/// ```
/// use lookalike::sketch::IMatch;
/// use lookalike::{Scheme, TermCounts};
///
/// let mut counts = TermCounts::new(&Scheme::default());
/// (0..40).for_each(|document| counts.add(&[1, 2 + document / 4, 20 + document / 2]));
/// let terms = counts.terms();
/// // The feature 1 is in all documents, and so in no lexicon.
/// let hashes = |set: &[u64]| IMatch { lexicons: 1 }.hashes(set, &terms);
/// assert_eq!(hashes(&[1, 2, 3, 4]), hashes(&[2, 3, 4]));
/// assert_eq!(hashes(&[1, 2, 3]), [None]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IMatch {
    /// Number of lexicons.
    pub lexicons: usize,
}

impl IMatch {
    /// Returns the hash of a feature set for each lexicon.
    #[must_use]
    pub fn hashes(&self, set: &[u64], terms: &Terms) -> Vec<Option<u64>> {
        // Prune once for all lexicons, which differ only in the terms that they drop from the rest.
        let kept: Vec<u64> = set
            .iter()
            .copied()
            .filter(|&t| in_lexicon(t, terms))
            .collect();
        (0..self.lexicons as u64)
            .map(|lexicon| {
                let own = kept.iter().filter(|&&term| !is_dropped(term, lexicon));
                let bytes: Vec<u8> = own.flat_map(|term| term.to_le_bytes()).collect();
                // One or two terms occur in many documents that have nothing else in common.
                (bytes.len() >= MIN_TERMS * 8).then(|| xxh3_64(&bytes, lexicon))
            })
            .collect()
    }
}

fn in_lexicon(term: u64, terms: &Terms) -> bool {
    let count = u64::from(terms.count(term));
    // A tenth of fewer than twenty documents is less than two, so no term would be left.
    count >= 2 && count * 10 <= terms.documents().max(20)
}

fn is_dropped(term: u64, lexicon: u64) -> bool {
    // A hash instead of a random draw, so that every machine drops the same terms.
    lexicon > 0 && avalanche(term ^ lexicon.wrapping_mul(GOLDEN)) < u64::MAX / 3
}

/// Computes bucket checksums (Pugh and Henzinger, US patent 6,658,423): each feature goes to the bucket `floor(f * buckets / 2^64)`, and the checksum
/// of a bucket is the XXH3-64, with its number as seed, of its features, ascending and little-endian. An empty bucket has none. A feature that is
/// added or removed changes the checksum of its bucket and of no other.
///
/// # Panics
/// Panics if there are features but no buckets.
#[must_use]
pub fn bucket_checksums(set: &[u64], buckets: usize) -> Vec<Option<u64>> {
    let bucket_of = |feature: u64| ((u128::from(feature) * buckets as u128) >> 64) as usize;
    let mut checksums = vec![None; buckets];
    // The set is ascending, so its buckets are too.
    for members in set.chunk_by(|&a, &b| bucket_of(a) == bucket_of(b)) {
        let bytes: Vec<u8> = members.iter().flat_map(|f| f.to_le_bytes()).collect();
        let bucket = bucket_of(members[0]);
        checksums[bucket] = Some(xxh3_64(&bytes, bucket as u64));
    }
    checksums
}
