//! Works on fingerprints and longer sketches without their texts: computes them, reads and writes files of them, and builds indexes, joins and
//! decisions.

pub mod cluster;
pub mod files;
pub mod index;
pub(crate) mod job;
pub(crate) mod join;
mod mapped;
pub(crate) mod settings_error;
mod sketch_values;
pub mod sketches;
mod with_word;

pub use settings_error::FingerprintSettingsError;
pub use sketch_values::{SketchValues, SketchValuesSummary};

/// Largest distance of a join, in bits.
pub const MAX_DISTANCE: u32 = 16;
/// Default distance within which fingerprints are joined, in bits.
pub(crate) const DEFAULT_DISTANCE: u32 = 3;
