//! Archives of collections: store near-copies with their survivor, and restore every record byte for byte.
//!
//! `build` decides as `dedup` does, reads the sources a second time and orders their records, each survivor before its copies. `blocks` splits that
//! stream into blocks and compresses them, `format` is the directory after them, and `read` opens an archive.

pub(crate) mod blocks;
pub(crate) mod build;
pub(crate) mod error;
pub(crate) mod format;
pub(crate) mod read;
pub(crate) mod settings;
#[cfg(test)]
mod tests;
