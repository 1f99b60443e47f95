//! The mark of an orderly end: where the newest log ends. While it is there, nothing may be missing.
//!
//! A checked file as the manifest is; removed, durably, before the first write of the next session.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Result, StoreError};
use crate::fs::FileSystem;
use crate::manifest::{read_checked, replace_checked};

pub(crate) const CLEAN_SHUTDOWN: &str = "CLEAN";
const NEW: &str = "CLEAN.new";

/// The end of the newest log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CleanShutdown {
    pub(crate) collection: u64,
    /// Number of the newest log.
    pub(crate) log: u64,
    /// End of its frames.
    pub(crate) end: u64,
    /// Number of the frame that would come next.
    pub(crate) next: u64,
    /// The server's time, in milliseconds since 1970.
    pub(crate) time: u64,
}

impl CleanShutdown {
    pub(crate) fn write(&self, fs: &dyn FileSystem, folder: &Path) -> Result<()> {
        replace_checked(fs, folder, CLEAN_SHUTDOWN, NEW, self).map_err(StoreError::from)
    }

    pub(crate) fn read(fs: &dyn FileSystem, folder: &Path) -> Result<Option<Self>> {
        match read_checked(fs, folder, CLEAN_SHUTDOWN, "nothing") {
            // A mark that is there and damaged is an error, not an absence: without it, missing frames at the
            // end of the log would pass for an interrupted write.
            Ok(clean_shutdown) => Ok(Some(clean_shutdown)),
            Err(StoreError::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn remove(fs: &dyn FileSystem, folder: &Path) -> Result<()> {
        let path = folder.join(CLEAN_SHUTDOWN);
        let removed = match fs.remove(&path) {
            // Removed before, when its folder could not be synced.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
        // Should a power cut bring the mark back, the next start would take all newer frames for damage.
        removed
            .and_then(|()| fs.sync_dir(folder))
            .map_err(StoreError::io(&path, "removing the mark of an orderly end"))
    }
}
