//! Near-duplicate detection: features, schemes, sketches, exact resemblance, clusters.

pub mod band;
pub mod cluster;
pub mod feature;
pub mod hamming;
pub mod hash;
mod kernel;
pub mod resemblance;
pub mod scheme;
pub mod sketch;
pub mod text;

pub use band::Banding;
pub use cluster::{Decision, survivors};
pub use feature::{FeatureExtractor, sort_dedup};
#[doc(hidden)]
pub use kernel::{force_level, level_name};
pub use resemblance::{
    containment, intersection_at_least, intersection_size, prefix_len, resemblance, resemblance_of,
    shared_needed,
};
pub use scheme::{
    Case, Normalization, Scheme, SchemeId, SchemeMismatch, Segmentation, Shingle, Sketch, Weight,
    Width,
};
pub use sketch::{Fingerprint, MinHash, Signature, Simhash, SuperShingles};
pub use text::Segmenter;
