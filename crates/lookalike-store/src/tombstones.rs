//! The tombstones of a run, as a file: a bit for each document that was deleted or replaced. A manifest that knows of
//! more tombstones names a new file.
//!
//! `LKTS` (4); version, 1 (4); collection (8); number of the file (8); number of the run (8); documents of the run (8);
//! a bit each, the lowest first, in whole words of eight bytes; checksum of all before.

use std::path::Path;

use crate::bits::AtomicBits;
use crate::checksum::{FileChecksum, FileIdentity};
use crate::codec::fixed;
use crate::error::{Result, StoreError};
use crate::fs::{FileSystem, read_whole, write_all};

const HEADER: usize = 40;

fn header(identity: FileIdentity, run: u64, documents: usize) -> Vec<u8> {
    let mut bytes = b"LKTS\x01\0\0\0".to_vec();
    let numbers = [identity.collection, identity.number, run, documents as u64];
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    bytes
}

/// Writes the bits of a run; durable, but for the name.
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
    let failed = |error| StoreError::io(path, "writing tombstones")(error);
    let file = fs.create(path).map_err(failed)?;
    write_all(&*file, &bytes, 0).map_err(failed)?;
    file.sync().map_err(failed)
}

/// Sets the bits of a run as they were written.
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
    // The whole header is predicted and compared as bytes: no field can be wrong by itself.
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
            // Bits of the last word behind the last document: `set` would panic.
            .take_while(|&document| document < tombstones.len())
            .for_each(|document| tombstones.set(document));
    }
    Ok(())
}
