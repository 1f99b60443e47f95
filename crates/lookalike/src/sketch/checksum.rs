//! Sketches that are hashes of whole parts of a document: I-Match and bucket checksums (Manku et al. 2007, section 5.4).

use crate::hash::{GOLDEN, avalanche, xxh3_64};
use crate::terms::Terms;

/// Terms of the document that a lexicon must leave for a hash to mean something.
const LEAST_TERMS: usize = 3;

/// I-Match (Chowdhury et al., TOIS 2002) with randomised lexicons (Kolcz, Chowdhury and Alspector,
/// KDD 2004).
///
/// Lexicon 0 is pruned by rarity: the terms that two documents or more have, and at most a tenth
/// of them. Every other lexicon drops of these, at random, one in three: lexicon i those whose
/// `avalanche(t ^ i * 0x9E3779B97F4A7C15)` is below 2^64 / 3. A document has for each lexicon the
/// XXH3-64, with the lexicon's number as seed, of its distinct terms in it, ascending and
/// little-endian; or none, when there are fewer than three. Documents that agree in any hash are
/// candidates: one changed term leaves each of the other hashes alone with probability 1/3.
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
    /// The hash for each lexicon.
    #[must_use]
    pub fn hashes(&self, set: &[u64], terms: &Terms) -> Vec<Option<u64>> {
        // Pruned once for all lexicons, which differ in what they drop of the rest.
        let kept: Vec<u64> = set
            .iter()
            .copied()
            .filter(|&t| in_lexicon(t, terms))
            .collect();
        (0..self.lexicons as u64)
            .map(|lexicon| {
                let own = kept.iter().filter(|&&term| !is_dropped(term, lexicon));
                let bytes: Vec<u8> = own.flat_map(|term| term.to_le_bytes()).collect();
                // One or two terms are in many documents that have nothing else in common.
                (bytes.len() >= LEAST_TERMS * 8).then(|| xxh3_64(&bytes, lexicon))
            })
            .collect()
    }
}

fn in_lexicon(term: u64, terms: &Terms) -> bool {
    let count = u64::from(terms.count(term));
    // Of fewer than twenty documents a tenth is less than two, and no term would be left.
    count >= 2 && count * 10 <= terms.documents().max(20)
}

fn is_dropped(term: u64, lexicon: u64) -> bool {
    // A hash instead of a draw: every machine drops the same terms.
    lexicon > 0 && avalanche(term ^ lexicon.wrapping_mul(GOLDEN)) < u64::MAX / 3
}

/// Bucket checksums (Pugh and Henzinger, US patent 6,658,423): each feature goes to one of the
/// buckets, `floor(f * buckets / 2^64)`, and a bucket's checksum is the XXH3-64, with its number
/// as seed, of its features, ascending and little-endian; a bucket without any has none. A changed
/// feature changes the checksum of its bucket and of no other.
///
/// # Panics
/// If there are features and no buckets.
#[must_use]
pub fn bucket_checksums(set: &[u64], buckets: usize) -> Vec<Option<u64>> {
    let bucket_of = |feature: u64| ((u128::from(feature) * buckets as u128) >> 64) as usize;
    let mut checksums = vec![None; buckets];
    // The set is ascending, and so are its buckets.
    for members in set.chunk_by(|&a, &b| bucket_of(a) == bucket_of(b)) {
        let bytes: Vec<u8> = members.iter().flat_map(|f| f.to_le_bytes()).collect();
        let bucket = bucket_of(members[0]);
        checksums[bucket] = Some(xxh3_64(&bytes, bucket as u64));
    }
    checksums
}
