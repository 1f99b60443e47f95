//! Checksums of the inputs of an interrupted job, so that a resumed one goes on with the same: names, sizes and times may stay
//! while the bytes change.
//!
//! `contents.json` holds the sum of each input. It is written before anything that a resumed job takes over.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use lookalike_corpus::{AtomicFile, Compression, Inputs, ReadError};

use crate::error::BatchError;

/// The name of the file, in the folder of the job's state.
pub(crate) const CONTENTS: &str = "contents.json";

/// Writes the sums of the inputs, which were read.
pub(crate) fn save(path: &Path, inputs: &Inputs) -> Result<(), BatchError> {
    let sums = inputs.content_sums()?;
    let write = || {
        let mut file = AtomicFile::create(path, Compression::None)?;
        serde_json::to_writer(&mut file, &sums)?;
        file.flush()?;
        file.commit()
    };
    write().map_err(BatchError::result(path))
}

/// The name of the first input that does not hold what it held when the job was interrupted.
pub(crate) fn changed(path: &Path, inputs: &Inputs) -> Result<Option<String>, ReadError> {
    let Ok(text) = fs::read(path) else {
        // The job had not come to what a resumed one takes over.
        return Ok(None);
    };
    // A file that is damaged knows of none: then all have changed.
    let sums: Vec<u64> = serde_json::from_slice(&text).unwrap_or_default();
    let changed = inputs.changed_since(&sums)?;
    Ok(changed.map(|source| source.name().into_owned()))
}
