//! The promises of the command, each seen through the real binary. One module a theme.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod archives;
mod boilerplate;
mod choices;
#[cfg(all(unix, feature = "parquet"))]
mod client;
#[cfg(unix)]
mod convert;
mod corpora;
mod design;
mod evaluate;
mod evaluate_input;
mod explain;
mod extract;
#[cfg(feature = "parquet")]
mod fingerprint_files;
mod henzinger;
mod hostile;
mod hostile_bombs;
mod hostile_files;
mod hostile_lines;
mod hostile_pipes;
#[cfg(unix)]
mod hostile_service;
mod html_modes;
mod index;
mod invariance;
mod join;
mod label;
mod languages;
mod methods;
mod oracle;
mod overlap;
mod overlap_atlas;
#[cfg(feature = "pdf")]
mod pdf;
mod promises;
mod refusals;
mod results;
mod resume;
mod scope;
#[cfg(unix)]
mod serve;
mod support;
mod surface;
#[cfg(feature = "parquet")]
mod tables;
