//! The mark of an orderly end: where the newest log ends. While it is there, nothing may be missing.
//!
//! A checked file as the manifest is; removed, durably, before the first write of the next session.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Result, StoreError};
use crate::fs::Fs;
use crate::manifest::{ReplaceError, read_checked, replace_checked};

pub(crate) const MARKER: &str = "CLEAN";
const NEW: &str = "CLEAN.new";

/// Where the newest log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Marker {
    pub(crate) collection: u64,
    /// Number of the newest log.
    pub(crate) log: u64,
    /// Where its frames end.
    pub(crate) end: u64,
    /// Number of the frame that would come next.
    pub(crate) next: u64,
    /// The server's time, in milliseconds since 1970.
    pub(crate) time: u64,
}

impl Marker {
    pub(crate) fn write(&self, fs: &dyn Fs, folder: &Path) -> Result<()> {
        replace_checked(fs, folder, MARKER, NEW, self).map_err(|error| match error {
            ReplaceError::Before(error) | ReplaceError::Unknown(error) => error,
        })
    }

    pub(crate) fn read(fs: &dyn Fs, folder: &Path) -> Result<Option<Self>> {
        match read_checked(fs, folder, MARKER, "nothing") {
            Ok(marker) => Ok(Some(marker)),
            Err(StoreError::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn remove(fs: &dyn Fs, folder: &Path) -> Result<()> {
        let path = folder.join(MARKER);
        let removed = match fs.remove(&path) {
            // Removed before, when its folder could not be synced.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
        removed
            .and_then(|()| fs.sync_dir(folder))
            .map_err(StoreError::io(&path, "removing the mark of an orderly end"))
    }
}
