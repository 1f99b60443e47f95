//! Archives of collections: near-copies beside their survivor, every record back byte for byte.
//!
//! `build` decides as `dedup` does, reads the sources a second time and puts their records in order, each survivor before its copies;
//! `blocks` cuts that stream into blocks and compresses them; `format` is the directory behind them; `read` opens a file.

pub(crate) mod blocks;
pub(crate) mod build;
pub(crate) mod error;
pub(crate) mod format;
pub(crate) mod read;
pub(crate) mod settings;
#[cfg(test)]
mod tests;
