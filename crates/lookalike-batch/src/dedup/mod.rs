//! Deduplication and lists of pairs: one pass over the input, candidates by shared keys, verification, survivors, results.
//!
//! `scan` fills `documents` and `spill`; `ranking` orders them; `candidate_groups` proposes candidates (`group_windows` if groups are on disk),
//! `verify` checks them, and `survivors` or `pairs` collects the outcome; `run` connects all steps, of which `result_writer` is the last.

pub(crate) mod block_components;
pub(crate) mod candidate_groups;
pub(crate) mod checkpoint;
pub(crate) mod class_id;
pub(crate) mod collection;
pub(crate) mod collection_job;
pub(crate) mod comparison;
pub(crate) mod counts;
pub(crate) mod decided;
pub(crate) mod decision;
pub(crate) mod decision_log;
pub(crate) mod decision_table;
pub(crate) mod document_decision;
pub(crate) mod documents;
pub(crate) mod entry_log;
pub(crate) mod field_refusals;
pub(crate) mod frequency;
pub(crate) mod given;
pub(crate) mod group_file;
pub(crate) mod group_windows;
pub(crate) mod hashing_stream;
pub(crate) mod id_order;
pub(crate) mod id_table;
pub(crate) mod job;
pub(crate) mod job_keys;
pub(crate) mod job_logs;
pub(crate) mod just_below;
pub(crate) mod length_column;
pub(crate) mod margin_search;
pub(crate) mod memory_budget;
pub(crate) mod number_column;
pub(crate) mod page_groups;
pub(crate) mod pages;
pub(crate) mod pair_log;
pub(crate) mod pair_test;
pub(crate) mod pairs;
pub(crate) mod pairs_job;
pub(crate) mod paragraphs;
pub(crate) mod preparation;
pub(crate) mod ranking;
pub(crate) mod record_cursor;
pub(crate) mod record_router;
pub(crate) mod report_examples;
pub(crate) mod result_lines;
pub(crate) mod result_writer;
pub(crate) mod run;
pub(crate) mod saved;
pub(crate) mod scan;
pub(crate) mod scan_batch;
pub(crate) mod scan_log;
pub(crate) mod scan_tally;
pub(crate) mod seen_texts;
pub(crate) mod skipped_files;
pub(crate) mod summary;
pub(crate) mod survivors;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod verify;
pub(crate) mod visit_counts;
