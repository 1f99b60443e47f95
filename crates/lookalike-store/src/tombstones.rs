//! Files of a run's tombstones: one bit for each document, set if it was deleted or replaced. When there are more tombstones, a new file is
//! written and named by the manifest.
//!
//! `LKTS` (4); version, 1 (4); collection (8); number of the file (8); number of the run (8); documents of the run (8); one bit for each
//! document, the lowest first, in whole words of eight bytes; checksum of everything before it (8).

use std::path::Path;

use crate::bits::AtomicBits;
use crate::checksum::{FileChecksum, FileIdentity};
use crate::codec::fixed;
use crate::error::{Result, StoreError};
use crate::fs::{FileSystem, read_whole, write_file};

const HEADER: usize = 40;

fn header(identity: FileIdentity, run: u64, documents: usize) -> Vec<u8> {
    let mut bytes = b"LKTS\x01\0\0\0".to_vec();
    let numbers = [identity.collection, identity.number, run, documents as u64];
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    bytes
}

/// Writes the tombstones of a run to a file and syncs it, but not the folder that names it.
pub(crate) fn write(
    fs: &dyn FileSystem,
    path: &Path,
    identity: FileIdentity,
    run: u64,
    tombstones: &AtomicBits,
) -> Result<()> {
    let mut bytes = header(identity, run, tombstones.len());
    bytes.extend(
        tombstones
            .words()
            .iter()
            .flat_map(|word| word.to_le_bytes()),
    );
    let check = FileChecksum::new(identity).of_block(&bytes, 0);
    bytes.extend_from_slice(&check.to_le_bytes());
    write_file(fs, path, &bytes).map_err(StoreError::io(path, "writing tombstones"))
}

/// Sets the bits that the file has set.
pub(crate) fn read(
    fs: &dyn FileSystem,
    path: &Path,
    identity: FileIdentity,
    run: u64,
    tombstones: &AtomicBits,
) -> Result<()> {
    let failed = StoreError::io(path, "reading tombstones");
    let bytes = read_whole(fs, path).map_err(failed)?;
    let (content, check) = bytes.split_at(bytes.len().saturating_sub(8));
    // The whole header is known in advance and compared as bytes, so no field needs a check of its own.
    let expected = header(identity, run, tombstones.len());
    let length = HEADER + tombstones.len().div_ceil(64) * 8;
    let intact =
        check.len() == 8 && FileChecksum::new(identity).of_block(content, 0) == fixed(check);
    if !intact || content.len() != length || content[..HEADER] != expected {
        let what = "the tombstones do not match their checksum, or belong to another run";
        return Err(StoreError::damaged(path, 0, what));
    }
    for (at, word) in content[HEADER..].chunks_exact(8).map(fixed).enumerate() {
        (0..64)
            .filter(|bit| word >> bit & 1 == 1)
            .map(|bit| at * 64 + bit)
            // Ignore bits of the last word beyond the last document: `set` would panic.
            .take_while(|&document| document < tombstones.len())
            .for_each(|document| tombstones.set(document));
    }
    Ok(())
}
