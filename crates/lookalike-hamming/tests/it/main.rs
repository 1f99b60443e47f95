//! The Hamming engine, compared with slow and obvious implementations.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod batch;
mod collections;
mod designs;
mod files;
mod fuzzed;
#[path = "../fuzzing/mod.rs"]
mod fuzzing;
mod indexes;
#[path = "../../../lookalike-corpus/tests/fuzzing/mutate.rs"]
mod mutate;
mod prefix_lookups;
mod real;
mod self_join;
mod stored;
