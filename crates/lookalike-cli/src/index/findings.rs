//! Findings of `lookalike index info`, which are printed as JSON and drawn on its page.

use std::path::Path;

use lookalike_batch::BatchError;
use lookalike_batch::fingerprints::sketches::{BandLoads, EqualPlaces};
use lookalike_hamming::FileError;
use serde::Serialize;

/// For `map_err`: an index that is damaged.
pub(super) fn damaged(path: &Path) -> impl Fn(FileError) -> BatchError {
    move |cause| BatchError::IndexFile {
        path: path.display().to_string(),
        cause,
    }
}

/// Fingerprints that many documents have, with ids of some.
#[derive(Serialize)]
pub(super) struct RepeatedFingerprints {
    pub(super) fingerprint: String,
    pub(super) copies: u64,
    pub(super) ids: Vec<String>,
}

/// A range with far more fingerprints than others.
#[derive(Serialize)]
pub(super) struct SpikeRow {
    pub(super) range: usize,
    pub(super) count: u64,
    pub(super) commonest: RepeatedFingerprints,
}

#[derive(Serialize)]
pub(super) struct TableInfo {
    pub(super) key_bits: u32,
    pub(super) budget: u32,
    pub(super) address_bits: u32,
    pub(super) observed_candidates: f64,
    pub(super) expected_candidates: f64,
    pub(super) fullest_bucket: usize,
}

/// Findings of `--analyse`.
#[derive(Serialize)]
pub(super) struct Distribution {
    /// For neighbours in sorted order, counts by the first bit that differs, starting from the lowest bit.
    pub(super) leading_gaps: Vec<u64>,
    pub(super) expected_gaps: Vec<f64>,
    pub(super) ranges: Vec<u64>,
    pub(super) spikes: Vec<SpikeRow>,
    pub(super) repeated: Vec<RepeatedFingerprints>,
    pub(super) tables: Vec<TableInfo>,
}

#[derive(Serialize)]
pub(super) struct IndexInfo {
    pub(super) file: String,
    pub(super) bytes: u64,
    pub(super) documents: u64,
    pub(super) fingerprints: u64,
    pub(super) bits: u32,
    pub(super) distance: u32,
    pub(super) design: String,
    pub(super) layout: &'static str,
    pub(super) tables: usize,
    pub(super) bytes_per_fingerprint: f64,
    pub(super) ids: bool,
    pub(super) scheme_id: Option<String>,
    pub(super) verified: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) distribution: Option<Distribution>,
}

/// A sketch shared by many documents, with some of their ids.
#[derive(Serialize)]
pub(super) struct RepeatedSketch {
    /// Its digits.
    pub(super) sketch: String,
    pub(super) copies: u64,
    pub(super) ids: Vec<String>,
}

/// Returns the first digits of a sketch, which may have thousands.
pub(super) fn shortened(digits: &str) -> String {
    const SHOWN: usize = 16;
    match digits.len() > SHOWN {
        true => format!("{}...", &digits[..SHOWN]),
        false => digits.to_owned(),
    }
}

/// Findings of `--analyse` in an index of sketches.
#[derive(Serialize)]
pub(super) struct SketchDistribution {
    pub(super) bands: Vec<BandLoads>,
    pub(super) repeated: Vec<RepeatedSketch>,
}

#[derive(Serialize)]
pub(super) struct SketchIndexInfo {
    pub(super) file: String,
    pub(super) bytes: u64,
    pub(super) documents: u64,
    pub(super) sketches: u64,
    pub(super) equal: EqualPlaces,
    pub(super) bands: usize,
    pub(super) bytes_per_sketch: f64,
    pub(super) ids: bool,
    pub(super) scheme_id: Option<String>,
    pub(super) verified: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) distribution: Option<SketchDistribution>,
}
