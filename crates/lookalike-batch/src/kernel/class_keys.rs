//! Candidate keys of a class: two classes that a method must compare share one.
//!
//! The prefix of the feature set ([`Method::AllPairs`]), bands of a signature, super-shingles, blocks of a fingerprint.

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

/// Things that decide how a class is sketched.
#[derive(Clone, Copy)]
pub(crate) struct SketchPlan<'a> {
    pub(crate) scheme: &'a Scheme,
    pub(crate) method: Method,
    /// Bands of the signatures, for the methods that have some.
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
            terms: terms.filter(|_| settings.scheme.terms.is_some()),
        }
    }

    /// The extractor of the scheme, with its table of terms where it names one.
    pub(crate) fn extractor(&self) -> FeatureExtractor {
        match self.terms {
            Some(terms) => FeatureExtractor::with_terms(self.scheme, terms)
                .expect("checked before the job began"),
            None => FeatureExtractor::new(self.scheme),
        }
    }
}

/// Makes the sketch a method wants of each new class.
pub(crate) enum ClassSketcher {
    /// Nothing of each text by itself: keys that need the whole collection come later.
    None,
    /// Its fingerprint of so many bits.
    Simhash(u32),
    /// The bands of its signature, without an allocation a text.
    Bands {
        minhash: MinHash,
        banding: Banding,
        signature: Vec<u32>,
    },
    /// The keys of any other sketch, and with `fingerprint` its fingerprint as well.
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
            (Method::Copies | Method::AllPairs, _) => Self::None,
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

    /// True if the set of features is all that is looked at.
    fn needs_set_only(&self) -> bool {
        matches!(self, Self::None | Self::Bands { .. })
    }

    /// Features of a text, and of them those that the sketch looks at.
    pub(crate) fn features<'e>(
        &self,
        extractor: &'e mut FeatureExtractor,
        text: &str,
    ) -> Features<'e> {
        match self.needs_set_only() {
            true => Features::of_set(extractor.feature_set(text)),
            false => extractor.extract(text),
        }
    }

    /// Sketches one class: hands its keys to `push`, returns its fingerprint.
    pub(crate) fn sketch(
        &mut self,
        features: &Features<'_>,
        mut push: impl FnMut(u64) -> io::Result<()>,
    ) -> io::Result<u128> {
        // No keys: texts without features are nobody's candidates, not even each other's.
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
}

/// Keeps keys of classes of different categories apart, where only pairs of one category count.
#[derive(Clone, Copy)]
pub(crate) struct KeySalt(u64);

impl KeySalt {
    /// The salt of a class of this category.
    pub(crate) fn new(scope: PairScope, category: u64) -> Self {
        Self(match scope {
            PairScope::Within => category,
            // Across categories a shared key is just what is looked for.
            PairScope::Everything | PairScope::Across => 0,
        })
    }

    /// A key that classes of different categories do not share, if they must not.
    pub(crate) fn apply(self, key: u64) -> u64 {
        match self.0 {
            0 => key,
            // Mixed, not only combined: two keys that differ as two categories do would meet otherwise.
            category => avalanche(key ^ category),
        }
    }
}

/// The key under which classes meet of which a reader sees the same.
pub(crate) fn text_key(visible_hash: u128) -> u64 {
    avalanche(visible_hash as u64)
}

/// Finds prefixes of feature sets under the order of their levels.
#[derive(Default)]
pub(crate) struct PrefixFinder {
    prefix: Vec<u64>,
    common: Vec<RankedFeature>,
}

impl PrefixFinder {
    /// The features of which two sets that reach the threshold share one.
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

/// Keys for fingerprints within a distance: cut into one block more than the distance (or two, for large collections), any two
/// fingerprints agree on all but `distance` of them (Manku et al. 2007, section 3.1).
#[derive(Clone, Debug)]
pub(crate) struct BlockKeys {
    masks: Vec<u128>,
    bits: u32,
}

impl BlockKeys {
    /// Blocks of fingerprints of so many bits, for a collection of so many classes.
    pub(crate) fn new(bits: u32, distance: u32, classes: u64) -> Self {
        // One block each is enough while its bits tell most fingerprints apart; else two blocks, in more combinations.
        // Unrelated classes meet in a block of b bits with chance 2^-b: up to eight of them in a block on
        // average.
        let enough = classes as f64 <= 8.0 * f64::from(bits / (distance + 1)).exp2();
        let masks = if enough {
            block_masks(bits, distance + 1, 1)
        } else {
            block_masks(bits, distance + 2, 2)
        };
        Self { masks, bits }
    }

    /// The keys of a fingerprint.
    pub(crate) fn of(&self, fingerprint: u128) -> impl Iterator<Item = u64> {
        self.masks.iter().enumerate().map(move |(number, &mask)| {
            // Keys of different blocks must not meet: zeros in one block are zeros in all.
            let number = avalanche(number as u64 + 1);
            let key = avalanche((fingerprint & mask) as u64 ^ number);
            match self.bits > 64 {
                true => avalanche(((fingerprint & mask) >> 64) as u64 ^ key),
                false => key,
            }
        })
    }
}

/// Masks of all choices of `chosen` (1 or 2) among `blocks` blocks of so many bits.
fn block_masks(bits: u32, blocks: u32, chosen: usize) -> Vec<u128> {
    // Edges are rounded, so lengths differ by a bit at most and no bit is left out.
    let edge = |block: u32| block * bits / blocks;
    let block =
        |number: u32| (edge(number)..edge(number + 1)).fold(0_u128, |mask, bit| mask | 1 << bit);
    let single: Vec<u128> = (0..blocks).map(block).collect();
    if chosen == 1 {
        return single;
    }
    let others = |i: usize| {
        single[i + 1..]
            .iter()
            .map(move |b| (i, *b))
            .collect::<Vec<_>>()
    };
    (0..single.len())
        .flat_map(others)
        .map(|(i, b)| single[i] | b)
        .collect()
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
