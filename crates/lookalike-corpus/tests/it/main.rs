//! Integration tests of the crate's promises, one module per topic.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

#[global_allocator]
static ALLOCATOR: fuzzing::allocation::Watched = fuzzing::allocation::Watched;

mod archives;
mod charsets;
#[cfg(feature = "parquet")]
mod columns;
mod containers;
mod discovery;
mod exact;
mod extraction;
mod fuzzed;
#[path = "../fuzzing/mod.rs"]
mod fuzzing;
mod html;
mod html_modes;
mod laws;
mod output;
#[cfg(feature = "pdf")]
mod pdf;
mod reading;
mod support;
mod tables;
#[cfg(feature = "parquet")]
mod written_tables;
