//! Immutable runs: many documents in one file, with tables of their fingerprints, or with sketches of other forms.
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 4 | `LKRN` |
//! | 4 | 4 | version, 1 |
//! | 8 | 8 | collection |
//! | 16 | 8 | number of the file |
//! | 24 | 8 | checksum of the bytes before |
//! | 32 | | blocks and sections, in the order of `RunFooter`; the footer, a section, last |
//! | end - 32 | 8, 8 | offset and length of the footer's contents |
//! | end - 16 | 8 | checksum of the 16 bytes before |
//! | end - 8 | 8 | `LKRNEND` and a zero |
//!
//! A block is its contents and their checksum (8). A section is its contents divided into blocks of 65,528 bytes, with a shorter last one.

mod code_groups;
mod expiry;
mod footer;
mod id_filter;
mod pages;
mod read;
mod sorted;
mod sources;
mod table_design;
mod tables;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use read::StoredRun;
pub(crate) use sorted::{IndexEntry, IndexKey};
pub(crate) use sources::DocumentSource;
pub(crate) use write::{RunOptions, write_run};

const MAGIC: [u8; 4] = *b"LKRN";
const END: [u8; 8] = *b"LKRNEND\0";
const VERSION: u32 = 1;
const HEADER: usize = 32;
const TRAILER: usize = 32;
