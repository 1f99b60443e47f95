//! Code shared by the Rust programs of the race: from JSON Lines to shingles, and the figures of a
//! run.
//!
//! The definitions are those of `peers/pipeline.py`: words are runs of word characters of the
//! lower-cased text, a shingle is `width` words joined by one space, a shorter text has one
//! shingle of all its words, and a text without words has none.

pub mod measure;
pub mod records;
pub mod strip;
