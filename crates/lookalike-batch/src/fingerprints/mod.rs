//! Fingerprints and longer sketches without their texts: computing them, files of them, Hamming indexes, joins, and decisions.

pub mod cluster;
pub mod files;
pub mod index;
pub(crate) mod job;
pub(crate) mod join;
mod mapped;
pub(crate) mod settings_error;
mod sketch_values;
pub mod sketches;

pub use settings_error::FingerprintSettingsError;
pub use sketch_values::{SketchValues, SketchValuesSummary};

/// Largest distance of a join, in bits.
pub const LARGEST_DISTANCE: u32 = 16;
/// Distance within which fingerprints are joined unless told otherwise.
pub(crate) const DEFAULT_DISTANCE: u32 = 3;
