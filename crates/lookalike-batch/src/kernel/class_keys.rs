//! Candidate keys of a class: two classes that a method must compare share at least one key.
//!
//! Keys are the prefix of the feature set ([`Method::AllPairs`]), bands of a signature, super-shingles, or blocks of a fingerprint.

use std::io;
use std::sync::Arc;

use lookalike::band::Banding;
use lookalike::hash::avalanche;
use lookalike::resemblance::prefix_len;
use lookalike::scheme::{Scheme, Sketch};
use lookalike::sketch::{MinHash, Simhash};
use lookalike::{FeatureExtractor, Features, Sketcher, Terms};

use crate::dedup::frequency::{FrequencyLevels, RankedFeature};
use crate::settings::{JobSettings, Method, PairScope};

/// Settings that determine how a class is sketched.
#[derive(Clone, Copy)]
pub(crate) struct SketchPlan<'a> {
    pub(crate) scheme: &'a Scheme,
    pub(crate) method: Method,
    /// Bands of the signatures, for methods that use bands.
    pub(crate) banding: Option<Banding>,
    /// The table of terms that the scheme names.
    pub(crate) terms: Option<&'a Arc<Terms>>,
}

impl<'a> SketchPlan<'a> {
    pub(crate) fn new(settings: &'a JobSettings, banding: Option<Banding>) -> Self {
        let terms = settings.terms.as_ref();
        Self {
            scheme: &settings.scheme,
            method: settings.method,
            banding,
            // A table that the scheme does not name must not change any sketch.
            terms: terms.filter(|_| settings.scheme.terms.is_some()),
        }
    }

    /// Returns the extractor of the scheme, with its table of terms if it names one.
    pub(crate) fn extractor(&self) -> FeatureExtractor {
        FeatureExtractor::with_terms(self.scheme, self.terms).expect("checked before the job began")
    }
}

/// Computes the sketch that a method needs of each new class.
pub(crate) enum ClassSketcher {
    /// No sketch: the keys need the whole collection and are computed later.
    None,
    /// The fingerprint, of this many bits.
    Simhash(u32),
    /// The bands of the signature, computed without an allocation per text.
    Bands {
        minhash: MinHash,
        banding: Banding,
        signature: Vec<u32>,
    },
    /// The keys of any other sketch, and the fingerprint too if `fingerprint` is true.
    Sketch {
        sketcher: Sketcher,
        banding: Option<Banding>,
        fingerprint: bool,
    },
}

impl ClassSketcher {
    pub(crate) fn new(plan: SketchPlan<'_>) -> Self {
        let scheme = plan.scheme;
        match (plan.method, scheme.sketch) {
            (Method::Exact | Method::AllPairs, _) => Self::None,
            (Method::Simhash, sketch) => Self::Simhash(sketch.fingerprint_bits()),
            (Method::MinHash, Sketch::MinHash { functions }) => Self::Bands {
                minhash: MinHash::new(usize::from(functions), scheme.seed),
                banding: plan.banding.expect("chosen with the method"),
                signature: vec![0; usize::from(functions)],
            },
            (method, _) => Self::Sketch {
                sketcher: Sketcher::new(scheme, plan.terms).expect("checked before the job began"),
                banding: plan.banding,
                fingerprint: method == Method::Henzinger,
            },
        }
    }

    /// Returns the features of a text, as far as the sketch needs them.
    pub(crate) fn features<'e>(
        &self,
        extractor: &'e mut FeatureExtractor,
        text: &str,
    ) -> Features<'e> {
        match self {
            // The set of features, without weights.
            Self::None | Self::Bands { .. } => Features::of_set(extractor.feature_set(text)),
            Self::Simhash(_) | Self::Sketch { .. } => extractor.extract(text),
        }
    }

    /// Sketches one class: passes its keys to `push` and returns its fingerprint, 0 if there is none.
    pub(crate) fn sketch(
        &mut self,
        features: &Features<'_>,
        mut push: impl FnMut(u64) -> io::Result<()>,
    ) -> io::Result<u128> {
        // No keys: texts without features are candidates of no other text, not even of each other.
        if features.set.is_empty() {
            return Ok(0);
        }
        let fingerprint = |bits| Simhash::wide(features, bits).map_or(0, |f| f.0);
        match self {
            Self::None => Ok(0),
            Self::Simhash(bits) => Ok(fingerprint(*bits)),
            Self::Bands {
                minhash,
                banding,
                signature,
            } => {
                minhash.signature_into(features.set, signature);
                banding.keys(signature).try_for_each(push)?;
                Ok(0)
            }
            Self::Sketch {
                sketcher,
                banding,
                fingerprint: wanted,
            } => {
                let sketch = sketcher.sketch(features);
                let own = sketch.map_or_else(Vec::new, |sketch| sketch.keys(banding.as_ref()));
                own.into_iter().try_for_each(&mut push)?;
                Ok(if *wanted { fingerprint(64) } else { 0 })
            }
        }
    }

    /// Sketches one class as [`ClassSketcher::sketch`] does, and passes on the keys of its fingerprint too.
    pub(crate) fn sketch_with_blocks(
        &mut self,
        features: &Features<'_>,
        blocks: Option<&BlockKeys>,
        mut push: impl FnMut(u64),
    ) -> io::Result<u128> {
        let fingerprint = self.sketch(features, |key| {
            push(key);
            Ok(())
        })?;
        // The fingerprint of a text without features is 0, which is near all fingerprints with few bits set.
        if let Some(blocks) = blocks.filter(|_| !features.set.is_empty()) {
            blocks.of(fingerprint).for_each(push);
        }
        Ok(fingerprint)
    }
}

/// Separates the keys of classes of different categories if only pairs within a category count.
#[derive(Clone, Copy)]
pub(crate) struct KeySalt(u64);

impl KeySalt {
    /// Returns the salt for a class of this category.
    pub(crate) fn new(scope: PairScope, category: u64) -> Self {
        Self(match scope {
            PairScope::Within => category,
            // Across categories, shared keys are exactly what is searched.
            PairScope::Everything | PairScope::Across => 0,
        })
    }

    /// Returns the key, changed so that classes of different categories do not share it if they must not.
    pub(crate) fn apply(self, key: u64) -> u64 {
        match self.0 {
            0 => key,
            // Hash the result: a plain combination would be equal for two keys that differ by the same bits as two categories.
            category => avalanche(key ^ category),
        }
    }
}

/// Returns the key that is shared by all classes with the same visible text.
pub(crate) fn text_key(visible_hash: u128) -> u64 {
    avalanche(visible_hash as u64)
}

/// Computes prefixes of feature sets, in the order of the features' levels.
#[derive(Default)]
pub(crate) struct PrefixFinder {
    prefix: Vec<u64>,
    common: Vec<RankedFeature>,
}

impl PrefixFinder {
    /// Returns the prefix of a set: two sets whose resemblance reaches the threshold share a feature of their prefixes.
    pub(crate) fn prefix(
        &mut self,
        set: &[u64],
        threshold: f64,
        levels: &FrequencyLevels,
    ) -> &[u64] {
        let length = prefix_len(set.len(), threshold);
        levels.prefix(set, length, &mut self.prefix, &mut self.common);
        &self.prefix
    }
}

/// Keys for fingerprints within a distance. A fingerprint is cut into `distance + 1` blocks (or `distance + 2`, for large collections); any
/// two within the distance agree on all but `distance` of these (Manku et al. 2007, section 3.1).
#[derive(Clone, Debug)]
pub(crate) struct BlockKeys {
    masks: Vec<u128>,
    bits: u32,
}

impl BlockKeys {
    /// Creates the blocks of fingerprints of `bits` bits, for a collection of `classes` classes.
    pub(crate) fn new(bits: u32, distance: u32, classes: u64) -> Self {
        // One block per key is enough while its bits distinguish most fingerprints; otherwise each key has two blocks, in more combinations.
        // Unrelated classes share a block of b bits with probability 2^-b: up to eight of them per block on average are accepted.
        let enough = classes as f64 <= 8.0 * f64::from(bits / (distance + 1)).exp2();
        let masks = if enough {
            block_masks(bits, distance + 1, 1)
        } else {
            block_masks(bits, distance + 2, 2)
        };
        Self { masks, bits }
    }

    /// Returns the keys of a fingerprint.
    pub(crate) fn of(&self, fingerprint: u128) -> impl Iterator<Item = u64> {
        self.masks.iter().enumerate().map(move |(number, &mask)| {
            // Keys of different blocks must differ, even if both blocks are all zeros.
            let number = avalanche(number as u64 + 1);
            let key = avalanche((fingerprint & mask) as u64 ^ number);
            match self.bits > 64 {
                true => avalanche(((fingerprint & mask) >> 64) as u64 ^ key),
                false => key,
            }
        })
    }
}

/// Returns the masks of all choices of `chosen` (1 or 2) of `blocks` blocks, which divide `bits` bits.
fn block_masks(bits: u32, blocks: u32, chosen: usize) -> Vec<u128> {
    // Edges are rounded, so the blocks' lengths differ by at most one bit and no bit is left out.
    let edge = |block: u32| block * bits / blocks;
    let block =
        |number: u32| (edge(number)..edge(number + 1)).fold(0_u128, |mask, bit| mask | 1 << bit);
    let single: Vec<u128> = (0..blocks).map(block).collect();
    if chosen == 1 {
        return single;
    }
    let mut pairs = Vec::new();
    for (number, first) in single.iter().enumerate() {
        let others = single[number + 1..].iter();
        pairs.extend(others.map(|second| first | second));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn close_fingerprints_share_a_block(
            a in any::<u128>(),
            bits in prop::sample::select(vec![32_u32, 64, 128]),
            flips in prop::collection::vec(0..128_u32, 0..=32),
        ) {
            let width = |value: u128| value & (u128::MAX >> (128 - bits));
            let flips = &flips[..flips.len().min(bits as usize / 4)];
            let b = flips.iter().fold(a, |b, bit| b ^ 1 << bit);
            let (a, b) = (width(a), width(b));
            let distance = (a ^ b).count_ones();
            for masks in [block_masks(bits, distance + 1, 1), block_masks(bits, distance + 2, 2)] {
                prop_assert!(masks.iter().any(|mask| a & mask == b & mask));
                prop_assert!(masks.iter().all(|mask| *mask > 0 && width(*mask) == *mask));
            }
            for classes in [1, 1 << 60] {
                let keys = BlockKeys::new(bits, distance, classes);
                let others: Vec<u64> = keys.of(b).collect();
                prop_assert!(keys.of(a).any(|key| others.contains(&key)));
            }
        }
    }

    #[test]
    fn the_paper_s_table_counts() {
        assert_eq!(block_masks(64, 4, 1).len(), 4);
        assert_eq!(block_masks(64, 5, 2).len(), 10);
        assert!(
            block_masks(64, 4, 1)
                .iter()
                .all(|mask| mask.count_ones() == 16)
        );
    }

    #[test]
    fn keys_of_different_categories_differ_only_where_pairs_of_one_category_count() {
        let key = |scope, category| KeySalt::new(scope, category).apply(7);
        assert_ne!(key(PairScope::Within, 1), key(PairScope::Within, 2));
        assert_eq!(key(PairScope::Within, 0), 7);
        for scope in [PairScope::Everything, PairScope::Across] {
            assert_eq!(key(scope, 1), 7);
        }
    }
}
