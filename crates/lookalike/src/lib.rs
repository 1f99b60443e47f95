//! Near-duplicate detection: features, schemes, sketches, exact resemblance, clusters.
//!
//! The core is pure: it does no input or output, starts no thread, reads no clock, and what it
//! computes depends on the text and the [`Scheme`] alone. The way of a document through it:
//!
//! 1. a [`Scheme`] says what is compared: normalisation, words, shingles, hash, sketch ([`scheme`]);
//! 2. [`Segmenter`] normalises a text and cuts it into words ([`text`]);
//! 3. [`FeatureExtractor`] hashes runs of words or characters to 64-bit features ([`feature`]);
//! 4. [`Simhash`] or [`MinHash`] makes a small sketch of many features ([`sketch`]);
//! 5. [`Banding`] or the Hamming indexes propose pairs of like sketches ([`band`], the crate `lookalike-hamming`);
//! 6. [`resemblance`](resemblance()) of the feature sets decides about a pair ([`mod@resemblance`]);
//! 7. [`survivors`] keeps one document of each cluster ([`cluster`]).
//!
//! ```
//! use lookalike::{FeatureExtractor, MinHash, Scheme, Simhash, resemblance};
//!
//! let scheme = Scheme::default().shingle("words:3".parse()?);
//! let mut extractor = FeatureExtractor::new(&scheme);
//! let a = extractor.feature_set("Once upon a midnight dreary, while I pondered").to_vec();
//! let b = extractor.feature_set("Once upon a time, while I pondered").to_vec();
//! assert_eq!(resemblance(&a, &b), 2.0 / 9.0);
//!
//! let fingerprints = [&a, &b].map(|set| Simhash::fingerprint(set));
//! assert_ne!(fingerprints[0], fingerprints[1]);
//! let minhash = MinHash::new(128, scheme.seed);
//! let signatures = [&a, &b].map(|set| minhash.signature(set).expect("the lines have words"));
//! assert!(signatures[0].agreement(&signatures[1])? < 0.5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which sketch should I use?
//!
//! | sketch | bytes | finds | strength and price |
//! |---|---|---|---|
//! | none: the feature sets | 8 a feature | every pair at or above any threshold | exact; the largest |
//! | [`MinHash`], bands | 4 a function, 512 for 128 | pairs above a threshold with a recall that is computed ([`Banding::recall`]) | any threshold from 0.3 on; needs verification |
//! | [`SuperShingles`] | 8 a group, 48 for 6 | pairs of resemblance 0.95 and more | small, exact lookups; blind below 0.9 |
//! | [`Simhash`] | 8 | pairs within a Hamming distance, all of them | smallest; the distance stands for a resemblance only roughly, less so on short texts |
//!
//! Which pairs are truly alike is decided by the exact [`resemblance`](resemblance()), whatever the
//! sketch. Texts without words or characters have no features and no sketch: they resemble nothing.
//!
//! # Languages
//!
//! With the Cargo feature `languages` there are schemes that know words of single languages
//! ([`Segmentation`], [`StopWords`], [`Stemming`], [`Nouns`]) and a way to tell which language a
//! text is in ([`mod@language`]). Without it such schemes are refused by name. Dictionaries are part
//! of the build and of the schemes' texts.
//!
//! # Instructions of the processor
//!
//! The hot loops use AVX-512 or AVX2 where the processor has them, which is found out at run time,
//! and plain code elsewhere. The results are the same to the last bit.

pub mod band;
pub mod chunk;
pub mod cluster;
pub mod feature;
pub mod hash;
mod kernel;
pub mod language;
mod paragraph;
mod preset;
pub mod resemblance;
pub mod scheme;
mod setters;
pub mod sketch;
pub mod terms;
pub mod text;

pub use band::Banding;
pub use chunk::{Chunker, Chunking};
pub use cluster::{Decision, survivors};
pub use feature::{Anchor, DocumentFields, FeatureExtractor, Features, sort_dedup};
#[doc(hidden)]
pub use kernel::{force_level, level_name};
pub use language::Language;
pub use paragraph::{ParagraphRule, ParagraphRuleError};
pub use preset::Preset;
pub use resemblance::{
    containment, intersection_at_least, intersection_size, prefix_len, resemblance, resemblance_of,
    shared_needed,
};
pub use scheme::{
    Boilerplate, Case, Extraction, FieldWeights, Folding, HtmlMode, Mask, Normalization, Nouns,
    Scheme, SchemeId, SchemeMismatch, Segmentation, Shingle, Sketch, Stemming, StopWords, TermsId,
    TokenHash, Weight, Width,
};
pub use sketch::{
    Fingerprint, MinHash, OnePermutation, Signature, Simhash, SketchValue, Sketcher, SuperShingles,
};
pub use terms::{GrowingTerms, TermCounts, Terms};
pub use text::Segmenter;

/// The example of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct CoreReadme;
