//! Copying and linking whole files.

use std::path::Path;

use crate::error::{Result, StoreError};
use crate::fs::{FileHandle, FileSystem, read_exact, write_all};

/// Number of bytes that are copied at a time.
const PIECE: usize = 1 << 20;

/// Reads a file piece by piece and passes each with its offset to `each`. Returns the length of the file.
pub(crate) fn for_each_piece(
    fs: &dyn FileSystem,
    path: &Path,
    each: &mut dyn FnMut(&[u8], u64) -> Result<()>,
) -> Result<u64> {
    let file = fs.open(path, false);
    let file = file.map_err(StoreError::io(path, "reading a snapshot"))?;
    for_each_piece_of(&*file, path, each)
}

/// Reads an open file piece by piece; `path` is only for errors.
fn for_each_piece_of(
    file: &dyn FileHandle,
    path: &Path,
    each: &mut dyn FnMut(&[u8], u64) -> Result<()>,
) -> Result<u64> {
    let failed = |error| StoreError::io(path, "reading a snapshot")(error);
    let length = file.length().map_err(failed)?;
    let (mut piece, mut at) = (vec![0; PIECE], 0);
    while at < length {
        let now = &mut piece[..PIECE.min((length - at) as usize)];
        read_exact(file, now, at).map_err(failed)?;
        each(now, at)?;
        at += now.len() as u64;
    }
    Ok(length)
}

/// Copies a file and syncs the copy, but not the folder that names it.
pub(crate) fn copy_file(fs: &dyn FileSystem, from: &Path, to: &Path) -> Result<()> {
    let file = fs.open(from, false);
    let file = file.map_err(StoreError::io(from, "copying a file"))?;
    copy_open_file(fs, &*file, from, to)
}

/// Copies an open file in the same way; `from` is only for errors.
pub(crate) fn copy_open_file(
    fs: &dyn FileSystem,
    file: &dyn FileHandle,
    from: &Path,
    to: &Path,
) -> Result<()> {
    let failed = |error| StoreError::io(to, "copying a file")(error);
    let copy = fs.create(to).map_err(failed)?;
    for_each_piece_of(file, from, &mut |piece, at| {
        write_all(&*copy, piece, at).map_err(failed)
    })?;
    copy.sync().map_err(failed)
}

/// Creates a hard link to a file that never changes, or a copy if that is not possible.
pub(crate) fn link_or_copy(fs: &dyn FileSystem, from: &Path, to: &Path) -> Result<()> {
    match link(fs, from, to)? {
        true => Ok(()),
        false => copy_file(fs, from, to),
    }
}

/// Creates a hard link to a file. Returns false if that is not possible.
pub(crate) fn link(fs: &dyn FileSystem, from: &Path, to: &Path) -> Result<bool> {
    match fs.link(from, to) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::StorageFull => {
            Err(StoreError::DiskFull {
                path: to.to_owned(),
            })
        }
        // The target is on another medium, or the medium has no hard links. Any other failure will show up again when copying.
        Err(_) => Ok(false),
    }
}
