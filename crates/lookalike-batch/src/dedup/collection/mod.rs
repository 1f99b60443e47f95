//! Collections of documents that are not read again: a directory with the data that later jobs need of them.
//!
//! ```text
//! lookalike.collection    the manifest: settings, and the segments that count; replaced in one step
//! lookalike.lock          locked by whoever adds
//! order-….bin             the order of features
//! segment-….bin           the documents of one addition, or of several: immutable
//! ```
//!
//! A job against a collection reads its new documents and their *neighbourhood*: the classes of the collection that have the text of a
//! new document, or share so many candidate keys with it that they may resemble it. Only these can affect a decision; [`neighbourhood`]
//! explains why.

pub(crate) mod addition;
pub(crate) mod blocks;
pub(crate) mod candidate_records;
pub(crate) mod directory;
pub(crate) mod error;
pub(crate) mod lookup;
pub(crate) mod manifest;
pub(crate) mod merge;
pub(crate) mod neighbourhood;
pub(crate) mod segment;
#[cfg(test)]
mod tests;
