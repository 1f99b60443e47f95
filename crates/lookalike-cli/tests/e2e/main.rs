//! The promises of the command, tested through the built binary. One module per subject.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod advice;
mod against;
mod annotations;
mod archives;
mod arrays;
mod boilerplate;
#[cfg(target_os = "linux")]
mod changing_files;
mod choices;
#[cfg(all(unix, feature = "parquet"))]
mod client;
mod client_losses;
mod cluster;
mod collection_archives;
mod collections;
#[cfg(unix)]
mod convert;
mod corpora;
mod counts;
mod design;
#[cfg(all(unix, feature = "parquet", feature = "pdf"))]
mod docs;
mod evaluate;
mod evaluate_input;
#[cfg(feature = "parquet")]
mod evaluate_sketches;
mod excluded;
mod explain;
mod extract;
#[cfg(feature = "parquet")]
mod fingerprint_files;
#[cfg(feature = "parquet")]
mod fingerprint_widths;
mod further_tests;
mod henzinger;
mod hostile;
mod hostile_bombs;
#[cfg(unix)]
mod hostile_clients;
mod hostile_files;
#[cfg(all(unix, feature = "parquet"))]
mod hostile_lengths;
mod hostile_lines;
#[cfg(target_os = "linux")]
mod hostile_memory;
mod hostile_pipes;
#[cfg(unix)]
mod hostile_service;
#[cfg(feature = "parquet")]
mod hostile_tables;
mod html_modes;
mod idle_options;
mod index;
mod index_sketches;
mod input_lists;
mod invariance;
mod invisible;
mod join;
mod join_resume;
mod label;
mod languages;
mod links;
mod long_documents;
mod losses;
mod main_text;
mod memory_limits;
mod methods;
mod misleading_words;
mod misread;
mod options;
mod oracle;
mod overlap;
mod overlap_atlas;
mod page_sets;
mod pairs_resume;
mod paragraphs;
#[cfg(feature = "pdf")]
mod pdf;
#[cfg(unix)]
mod presets;
#[cfg(unix)]
mod progress;
mod promises;
mod radius_warning;
mod refusals;
#[cfg(unix)]
mod refused_records;
mod result_folders;
mod results;
mod resume;
mod scope;
#[cfg(unix)]
mod serve;
#[cfg(unix)]
mod serve_settings;
#[cfg(unix)]
mod service_pairs;
#[cfg(unix)]
mod service_sketches;
#[cfg(unix)]
mod service_state;
mod sketch_files;
mod skipped_files;
#[cfg(unix)]
mod store_hardening;
mod support;
mod surface;
#[cfg(feature = "parquet")]
mod tables;
mod terms;
mod text_fields;
#[cfg(target_os = "linux")]
mod thread_limits;
#[cfg(feature = "parquet")]
mod typed_tables;
