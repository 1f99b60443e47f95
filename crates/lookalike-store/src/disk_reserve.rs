//! Room that the store keeps for the day on which the disk is full: to remove a collection, which frees most, takes a new catalog first.

use std::path::Path;

use crate::fs::{FileSystem, write_all};

/// Name of the file that takes the room.
const RESERVE: &str = "RESERVE";

/// More than any catalog has.
const BYTES: usize = 64 << 10;

/// Takes the room, unless it is taken. A disk that has none keeps none.
pub(crate) fn keep(fs: &dyn FileSystem, folder: &Path) {
    let names = fs.list(folder).unwrap_or_default();
    if names.iter().any(|name| name == RESERVE) {
        return;
    }
    let path = folder.join(RESERVE);
    let written = fs.create(&path).and_then(|file| {
        write_all(&*file, &[0; BYTES], 0)?;
        // A file system that allocates late reports a full disk only here.
        file.sync()
    });
    if written.is_err() {
        give(fs, folder);
    }
}

/// Gives the room to what needs it more.
pub(crate) fn give(fs: &dyn FileSystem, folder: &Path) {
    // Where there is none, nothing is to be given.
    let _ = fs.remove(&folder.join(RESERVE));
}
