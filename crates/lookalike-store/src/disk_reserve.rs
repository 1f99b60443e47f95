//! Disk space that the store keeps in reserve for a full disk: removing a collection frees the most space, but first has to write a new
//! catalog.

use std::path::Path;

use crate::fs::{FileSystem, write_file};

/// Name of the file that occupies the space.
const RESERVE: &str = "RESERVE";

/// Size of the file: larger than a catalog of 400 collections with the longest names.
const BYTES: usize = 64 << 10;

/// Creates the file unless it exists. If the disk has no room for it, there is no reserve.
pub(crate) fn reserve(fs: &dyn FileSystem, folder: &Path) {
    let names = fs.list(folder).unwrap_or_default();
    if names.iter().any(|name| name == RESERVE) {
        return;
    }
    let path = folder.join(RESERVE);
    if write_file(fs, &path, &[0; BYTES]).is_err() {
        release(fs, folder);
    }
}

/// Removes the file, so that its space can be used.
pub(crate) fn release(fs: &dyn FileSystem, folder: &Path) {
    // It may not exist.
    let _ = fs.remove(&folder.join(RESERVE));
}
