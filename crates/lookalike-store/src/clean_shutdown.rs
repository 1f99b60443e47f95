//! The mark of a clean shutdown, which records the end of the newest log. While it exists, the log must be complete up to that end.
//!
//! It is a checked file like the manifest, and is removed durably before the first write of the next session.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Result, StoreError};
use crate::fs::FileSystem;
use crate::manifest::{read_checked, replace_checked};

pub(crate) const CLEAN_SHUTDOWN: &str = "CLEAN";
/// Name of the mark until it is complete.
pub(crate) const NEW_CLEAN_SHUTDOWN: &str = "CLEAN.new";

/// Contents of the mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CleanShutdown {
    pub(crate) collection: u64,
    /// Number of the newest log.
    pub(crate) log: u64,
    /// Byte offset at which its frames end.
    pub(crate) end: u64,
    /// Number of the next frame.
    pub(crate) next: u64,
    /// Latest time that a caller reported, in milliseconds since 1970.
    pub(crate) time: u64,
}

impl CleanShutdown {
    pub(crate) fn write(&self, fs: &dyn FileSystem, folder: &Path) -> Result<()> {
        replace_checked(fs, folder, CLEAN_SHUTDOWN, NEW_CLEAN_SHUTDOWN, self)
            .map_err(StoreError::from)
    }

    pub(crate) fn read(fs: &dyn FileSystem, folder: &Path) -> Result<Option<Self>> {
        // The last argument only appears in the error of a missing file, which is no error here.
        match read_checked(fs, folder, CLEAN_SHUTDOWN, "nothing") {
            // A damaged mark is an error, not the same as no mark: without it, frames missing at the end of the log would pass for an
            // interrupted write.
            Ok(clean_shutdown) => Ok(Some(clean_shutdown)),
            Err(StoreError::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn remove(fs: &dyn FileSystem, folder: &Path) -> Result<()> {
        let path = folder.join(CLEAN_SHUTDOWN);
        let removed = match fs.remove(&path) {
            // It was removed earlier, by a call that then failed to sync the folder.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
        // If a power failure brought the mark back, the next start would take all newer frames for damage.
        removed
            .and_then(|()| fs.sync_dir(folder))
            .map_err(StoreError::io(&path, "removing the clean-shutdown marker"))
    }
}
