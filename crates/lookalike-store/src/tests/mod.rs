//! Compares the store with a slow and obvious model: in normal operation, in crashes, and on failing or damaged media.

#[path = "../../../lookalike-corpus/tests/fuzzing/allocation.rs"]
mod allocation;
mod background;
mod contents;
mod crash;
mod damage;
mod equal_pages;
mod expiry;
mod faults;
mod fuzzed;
mod lifetimes;
mod model;
mod model_runs;
#[path = "../../../lookalike-corpus/tests/fuzzing/mutate.rs"]
mod mutate;
mod parts;
mod random_writes;
mod rebuild;
mod removal;
mod rng;

#[global_allocator]
static ALLOCATOR: allocation::Watched = allocation::Watched;
