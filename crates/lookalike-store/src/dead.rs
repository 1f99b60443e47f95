//! Which documents of a run are deleted or replaced, as a file: a new one for each manifest that knows of more.
//!
//! `LKDD` (4); version, 1 (4); collection (8); number of the file (8); number of the run (8); documents of the run (8);
//! a bit each, the lowest first, in whole words of eight bytes; check of all before.

use std::path::Path;

use crate::bits::AtomicBits;
use crate::codec::fixed;
use crate::error::{Result, StoreError};
use crate::fs::{Fs, read_whole, write_all};
use crate::seal::Seal;

const HEADER: usize = 40;

fn header(collection: u64, number: u64, run: u64, documents: usize) -> Vec<u8> {
    let mut bytes = b"LKDD\x01\0\0\0".to_vec();
    let numbers = [collection, number, run, documents as u64];
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    bytes
}

/// Writes the bits of a run; durable, but for the name.
pub(crate) fn write(
    fs: &dyn Fs,
    path: &Path,
    (collection, number): (u64, u64),
    run: u64,
    dead: &AtomicBits,
) -> Result<()> {
    let mut bytes = header(collection, number, run, dead.len());
    bytes.extend(dead.words().iter().flat_map(|word| word.to_le_bytes()));
    let check = Seal::new(collection, number).of(&bytes, 0);
    bytes.extend_from_slice(&check.to_le_bytes());
    let failed = |error| StoreError::io(path, "writing the list of deleted documents")(error);
    let file = fs.create(path).map_err(failed)?;
    write_all(&*file, &bytes, 0).map_err(failed)?;
    file.sync().map_err(failed)
}

/// Sets the bits of a run as they were written.
pub(crate) fn read(
    fs: &dyn Fs,
    path: &Path,
    (collection, number): (u64, u64),
    run: u64,
    dead: &AtomicBits,
) -> Result<()> {
    let failed = StoreError::io(path, "reading the list of deleted documents");
    let bytes = read_whole(fs, path).map_err(failed)?;
    let (content, check) = bytes.split_at(bytes.len().saturating_sub(8));
    let expected = header(collection, number, run, dead.len());
    let length = HEADER + dead.len().div_ceil(64) * 8;
    let intact = check.len() == 8 && Seal::new(collection, number).of(content, 0) == fixed(check);
    if !intact || content.len() != length || content[..HEADER] != expected {
        let what = "the list of deleted documents does not match its check, or is of another run";
        return Err(StoreError::damaged(path, 0, what));
    }
    for (at, word) in content[HEADER..].chunks_exact(8).map(fixed).enumerate() {
        (0..64)
            .filter(|bit| word >> bit & 1 == 1)
            .for_each(|bit| dead.set(at * 64 + bit));
    }
    Ok(())
}
