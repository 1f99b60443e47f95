//! Splits the documents into two halves by their ids, so that choices made on one half can be tested on the other.

use lookalike::hash::xxh3_64;

/// The half of each document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentHalves(Vec<bool>);

impl DocumentHalves {
    /// Assigns documents with these ids to halves.
    #[must_use]
    pub fn new<'a>(ids: impl Iterator<Item = &'a str>) -> Self {
        // Use the low bit of the hash: nothing else depends on it.
        Self(ids.map(|id| xxh3_64(id.as_bytes(), 0) & 1 == 1).collect())
    }

    /// Tells whether no document is assigned to a half.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the half of a document, 0 or 1. `None` if there are no halves.
    pub(crate) fn of(&self, document: u32) -> Option<usize> {
        self.0.get(document as usize).copied().map(usize::from)
    }

    /// Returns the half of a pair, or `None` if its documents are in different halves.
    pub(crate) fn of_pair(&self, a: u32, b: u32) -> Option<usize> {
        self.of(a).filter(|half| self.of(b) == Some(*half))
    }
}
