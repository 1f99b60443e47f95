//! Checksums of the inputs of a job, so that it is resumed only with the same contents: bytes may change while names, sizes and times stay the
//! same.
//!
//! `contents.json` holds the checksum of each input. It is written before anything that a resumed job reuses. A finished job has the digest of all of
//! them in its summary.

use std::fs;
use std::path::Path;

use lookalike_corpus::{Inputs, ReadError};
use xxhash_rust::xxh3::xxh3_128;

use crate::error::BatchError;
use crate::unfinished;

/// Name of the file in the folder of the job's state.
pub(crate) const CONTENTS: &str = "contents.json";

/// Writes the checksums of the inputs, which must have been read.
pub(crate) fn save(path: &Path, inputs: &Inputs) -> Result<(), BatchError> {
    let sums = inputs.content_sums()?;
    unfinished::save(path, &serde_json::to_vec(&sums).unwrap_or_default())
}

/// Returns the digest of the checksums in a file, or `None` if there is no such file.
pub(crate) fn digest(path: &Path) -> Option<String> {
    fs::read(path).ok().map(|text| digest_of(&text))
}

/// Reads all inputs, and returns the digest that [`digest`] returns for the file that [`save`] would write.
pub(crate) fn digest_now(inputs: &Inputs) -> Result<String, ReadError> {
    let sums = inputs.current_sums()?;
    Ok(digest_of(&serde_json::to_vec(&sums).unwrap_or_default()))
}

fn digest_of(text: &[u8]) -> String {
    format!("{:032x}", xxh3_128(text))
}

/// Returns the name of the first input whose contents have changed since the job was interrupted.
pub(crate) fn changed(path: &Path, inputs: &Inputs) -> Result<Option<String>, ReadError> {
    let Ok(text) = fs::read(path) else {
        // The job had not saved anything that a resumed one reuses.
        return Ok(None);
    };
    // A damaged file has no checksums, so that all inputs count as changed.
    let sums: Vec<u64> = serde_json::from_slice(&text).unwrap_or_default();
    let changed = inputs.changed_since(&sums)?;
    Ok(changed.map(|source| source.name().into_owned()))
}
