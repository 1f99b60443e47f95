//! Two halves of the documents, by their ids: what is chosen on one is tested on the other.

use lookalike::hash::xxh3_64;

/// The half of each document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentHalves(Vec<bool>);

impl DocumentHalves {
    /// The halves of documents with these ids.
    #[must_use]
    pub fn new<'a>(ids: impl Iterator<Item = &'a str>) -> Self {
        // The low bit: nothing else looks at it.
        Self(ids.map(|id| xxh3_64(id.as_bytes(), 0) & 1 == 1).collect())
    }

    /// True if no document has one.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The half of a document, 0 or 1.
    pub(crate) fn of(&self, document: u32) -> Option<usize> {
        self.0.get(document as usize).copied().map(usize::from)
    }

    /// The half of a pair, if both documents are in one.
    pub(crate) fn of_pair(&self, a: u32, b: u32) -> Option<usize> {
        self.of(a).filter(|half| self.of(b) == Some(*half))
    }
}
