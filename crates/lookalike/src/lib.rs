//! Near-duplicate detection: features, schemes, sketches, exact resemblance, clusters.
//!
//! The core is pure: it does no input or output, starts no thread and reads no clock, and its results depend only on the text and the [`Scheme`]. A
//! document passes through these steps:
//!
//! 1. a [`Scheme`] defines what is compared: normalisation, words, shingles, hash, sketch ([`scheme`]);
//! 2. [`Segmenter`] normalises a text and cuts it into words ([`text`]);
//! 3. [`FeatureExtractor`] hashes runs of words or characters to 64-bit features ([`feature`]);
//! 4. [`Simhash`] or [`MinHash`] computes a small sketch from many features ([`sketch`]);
//! 5. [`Banding`] or the Hamming indexes propose pairs of similar sketches ([`band`], the crate `lookalike-hamming`);
//! 6. [`resemblance`](resemblance()) of the feature sets verifies each proposed pair ([`mod@resemblance`]);
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
//! | sketch | bytes | finds | strengths and limits |
//! |---|---|---|---|
//! | none: the feature sets | 8 per feature | every pair at or above any threshold | exact; the largest |
//! | [`MinHash`], bands | 4 per function, 512 for 128 | pairs above a threshold, with a recall that can be computed ([`Banding::recall`]) | any threshold from 0.3 up; needs verification |
//! | [`SuperShingles`] | 8 per group, 48 for 6 | pairs of resemblance 0.95 and more | small, exact lookups; blind below 0.9 |
//! | [`Simhash`] | 8 | all pairs within a Hamming distance | smallest; the distance corresponds to a resemblance only roughly, and even less closely on short texts |
//!
//! Whatever the sketch, the exact [`resemblance`](resemblance()) decides which pairs are near-duplicates. A text without words or characters has no
//! features and no sketch, and resembles nothing.
//!
//! # Languages
//!
//! The Cargo feature `languages` adds schemes that know the words of single languages ([`Segmentation`], [`StopWords`], [`Stemming`], [`Nouns`]) and
//! detects the language of a text ([`mod@language`]). Builds without it refuse such schemes by name. Dictionaries are part of the build, and their
//! versions are part of a scheme's text.
//!
//! # Processor instructions
//!
//! The hot loops use AVX-512, AVX2 or NEON if the processor has them, which is detected at run time, and portable code otherwise. The results are the
//! same to the last bit.

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
mod words;

pub use band::Banding;
pub use chunk::{Chunker, Chunking};
pub use cluster::{Decision, survivors};
pub use feature::{Anchor, DocumentFields, FeatureExtractor, Features, sort_dedup};
#[doc(hidden)]
pub use kernel::{force_level, level_name};
pub use language::Language;
pub use paragraph::ParagraphRule;
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

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct CoreReadme;
