//! Collections of documents that are not read again: what later jobs need of documents, in a directory.
//!
//! ```text
//! lookalike.collection    the manifest: settings, and the segments that count; replaced in one step
//! lookalike.lock          locked by whoever adds
//! order-….bin             the order of features
//! segment-….bin           the documents of one addition, or of several: immutable
//! ```
//!
//! A job against a collection reads its new documents and the *neighbourhood* of these: the classes of the collection that have the text of a
//! new one, or share so many candidate keys with it that they may resemble it. Nothing else can take part in a decision; [`neighbourhood`]
//! says why.

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
