//! All sketches behind one type: the sketch that a scheme makes from a document's features, the similarity of two such sketches, and the keys by
//! which documents find each other.
//!
//! The jobs over collections take their keys from here, and the evaluation its scores, so that the code that is measured is the code that runs.

use std::sync::Arc;

use thiserror::Error;

use crate::band::Banding;
use crate::feature::Features;
use crate::hash::{avalanche, xxh3_64};
use crate::scheme::{ParseOptionError, Scheme, Sketch};
use crate::sketch::{
    IMatch, MinHash, OnePermutation, Simhash, WideFingerprint, bucket_checksums, mod_p, winnow,
};
use crate::terms::{Terms, TermsMismatch};

/// Error for a scheme that has no sketcher.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SketcherError {
    /// The sketch or the weight needs a table of terms, and none was given.
    #[error("{needs} needs a table of terms")]
    NoTerms {
        /// The option that needs it.
        needs: String,
    },
    /// The sketch has invalid parameters.
    #[error(transparent)]
    Sketch(#[from] ParseOptionError),
    /// The table that was given is a different one.
    #[error(transparent)]
    Terms(#[from] TermsMismatch),
}

/// Computes the sketches of one scheme.
///
/// ```
/// use lookalike::{FeatureExtractor, Scheme, Sketcher};
///
/// let scheme = Scheme::default().sketch("minhash:64".parse()?);
/// let sketcher = Sketcher::new(&scheme, None)?;
/// let mut extractor = FeatureExtractor::new(&scheme);
/// let mut sketch = |text: &str| sketcher.sketch(&extractor.extract(text));
/// let a = sketch("Once upon a midnight dreary, while I pondered").expect("a text with words");
/// let b = sketch("Once upon a midnight dreary; while I pondered").expect("a text with words");
/// assert_eq!(a.score(&b), 1.0);
/// assert_eq!(sketch(" "), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sketcher {
    sketch: Sketch,
    /// Without functions for sketches that need no minima.
    minhash: MinHash,
    one_permutation: Option<OnePermutation>,
    /// The table of terms of a sketch that needs one.
    terms: Option<Arc<Terms>>,
}

/// A sketch of any kind.
///
/// ```
/// use lookalike::SketchValue;
///
/// // Hashes of parts: the second part of one is empty.
/// let a = SketchValue::Hashes([Some(7), None, Some(9)].into());
/// let b = SketchValue::Hashes([Some(7), Some(8), Some(9)].into());
/// assert_eq!(a.score(&b), 2.0);
/// let keys = b.keys(None);
/// assert_eq!(a.keys(None).iter().filter(|key| keys.contains(key)).count(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SketchValue {
    /// The distinct features themselves, or a selection of them; ascending.
    Set(Box<[u64]>),
    /// A simhash and its number of bits.
    Bits(WideFingerprint, u32),
    /// Values that agree or differ place by place: minima, or low bits of minima.
    Signature(Box<[u32]>),
    /// Hashes of parts, each of which agrees or differs; `None` for an empty part.
    Hashes(Box<[Option<u64>]>),
}

impl Sketcher {
    /// Creates the sketcher of `scheme`.
    ///
    /// # Errors
    /// Returns [`SketcherError`] if the sketch has invalid parameters, or needs a table of terms other than the one given.
    pub fn new(scheme: &Scheme, terms: Option<&Arc<Terms>>) -> Result<Self, SketcherError> {
        let (sketch, seed) = (scheme.sketch, scheme.seed);
        sketch.check()?;
        let terms = terms.filter(|_| sketch.needs_terms());
        match terms {
            // Counts of other features would prune the lexicons arbitrarily.
            Some(terms) => terms.ensure_fits(scheme)?,
            None if sketch.needs_terms() => {
                let needs = format!("the sketch {sketch}");
                return Err(SketcherError::NoTerms { needs });
            }
            None => {}
        }
        Ok(Self {
            sketch,
            minhash: MinHash::new(sketch.functions(), seed),
            one_permutation: match sketch {
                Sketch::OnePermutation { bins } => Some(OnePermutation::new(bins.into(), seed)),
                _ => None,
            },
            terms: terms.cloned(),
        })
    }

    /// Computes the sketch of a document; `None` if it has no features, or none that the sketch uses.
    #[must_use]
    pub fn sketch(&self, features: &Features<'_>) -> Option<SketchValue> {
        let set = features.set;
        if set.is_empty() {
            return None;
        }
        let value = match self.sketch {
            Sketch::None => SketchValue::Set(set.into()),
            Sketch::Simhash | Sketch::Simhash32 | Sketch::Simhash128 => {
                let bits = self.sketch.fingerprint_bits();
                SketchValue::Bits(Simhash::wide(features, bits)?, bits)
            }
            Sketch::MinHash { .. } => {
                SketchValue::Signature(self.minhash.signature(set)?.values().into())
            }
            Sketch::OnePermutation { .. } => {
                let signature = self.one_permutation.as_ref()?.signature(set)?;
                SketchValue::Signature(signature.values().into())
            }
            Sketch::BBit { bits, .. } => {
                // At most 16 bits (`Sketch::check`), so the shift cannot overflow.
                let mask = (1 << bits) - 1;
                let minima = self.minhash.signature(set)?;
                SketchValue::Signature(minima.values().iter().map(|value| value & mask).collect())
            }
            Sketch::SuperShingle { groups, rows } => {
                let minima = self.minhash.signature(set)?;
                // Never too short, because there are groups times rows functions.
                let shingles = minima.super_shingles(groups.into(), rows.into()).ok()?;
                SketchValue::Hashes(shingles.values().iter().copied().map(Some).collect())
            }
            Sketch::ModP { modulus } => SketchValue::Set(mod_p(set, modulus.into()).into()),
            Sketch::Winnowing { window } => {
                SketchValue::Set(winnow(features.in_order, window.into()).into())
            }
            Sketch::IMatch { lexicons } => {
                let lexicons = lexicons.into();
                let hashes = IMatch { lexicons }.hashes(set, self.terms.as_deref()?);
                SketchValue::Hashes(hashes.into())
            }
            Sketch::Buckets { buckets } => {
                SketchValue::Hashes(bucket_checksums(set, buckets.into()).into())
            }
        };
        value.is_informative().then_some(value)
    }
}

impl SketchValue {
    fn is_informative(&self) -> bool {
        match self {
            Self::Set(features) => !features.is_empty(),
            Self::Hashes(hashes) => hashes.iter().any(Option::is_some),
            Self::Bits(..) | Self::Signature(_) => true,
        }
    }

    /// Returns the memory of the sketch in addition to the value itself, in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Set(features) => size_of_val(&**features),
            Self::Bits(..) => 0,
            Self::Signature(places) => size_of_val(&**places),
            Self::Hashes(hashes) => size_of_val(&**hashes),
        }
    }

    /// Computes the similarity of two sketches of one scheme in the sketch's own measure, where larger means more similar: the resemblance of sets,
    /// the number of equal bits, the share of equal places, the number of equal hashes; 0 for sketches of different kinds or lengths.
    #[must_use]
    pub fn score(&self, other: &Self) -> f64 {
        match (self, other) {
            (Self::Set(a), Self::Set(b)) => crate::resemblance::resemblance(a, b),
            // Equal bits instead of the distance, so that a larger score means more similar for every sketch.
            (Self::Bits(a, bits), Self::Bits(b, others)) if bits == others => {
                f64::from(bits.saturating_sub(a.distance(*b)))
            }
            (Self::Signature(a), Self::Signature(b)) if a.len() == b.len() => {
                let equal = a.iter().zip(b).filter(|(a, b)| a == b).count();
                // Empty signatures, which no sketcher makes, score 0 instead of NaN.
                equal as f64 / a.len().max(1) as f64
            }
            (Self::Hashes(a), Self::Hashes(b)) if a.len() == b.len() => {
                // Two empty parts are no agreement.
                let equal = a.iter().zip(b).filter(|(a, b)| a.is_some() && a == b);
                equal.count() as f64
            }
            _ => 0.0,
        }
    }

    /// Returns keys of which candidates share at least one: those of the bands of places, one for each hash with its position, one for each feature
    /// of a set. Bits have none: an index over Hamming distances finds them.
    #[must_use]
    pub fn keys(&self, banding: Option<&Banding>) -> Vec<u64> {
        match self {
            Self::Set(features) => features.to_vec(),
            Self::Bits(..) => Vec::new(),
            Self::Signature(places) => match banding {
                Some(banding) => banding.keys(places).collect(),
                // Without bands, only equal signatures share a key.
                None => {
                    let bytes: Vec<u8> = places.iter().flat_map(|p| p.to_le_bytes()).collect();
                    vec![xxh3_64(&bytes, 0)]
                }
            },
            Self::Hashes(hashes) => {
                let key = |(column, hash): (usize, &Option<u64>)| {
                    // Include the column, because equal hashes only count in the same column.
                    // Counted from one, because `avalanche` maps zero to zero.
                    hash.map(|hash| avalanche(hash ^ avalanche(column as u64 + 1)))
                };
                hashes.iter().enumerate().filter_map(key).collect()
            }
        }
    }
}
