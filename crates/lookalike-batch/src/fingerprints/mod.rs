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
