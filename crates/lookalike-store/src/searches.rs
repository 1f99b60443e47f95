//! Parameters of searches for contents, sketches and paragraphs as of a given time.

use crate::document::{ContentKey, StoredParagraph};
use crate::document_sketch::{DocumentSketch, SketchForm};
use crate::pair_rule::PairFilter;
use crate::time::UnixMillis;

/// A search for documents similar to a content.
#[derive(Clone, Debug)]
pub(crate) struct ContentSearch {
    pub(crate) content: ContentKey,
    /// The form of the collection's sketches.
    pub(crate) form: SketchForm,
    pub(crate) radius: u32,
    pub(crate) now: UnixMillis,
    pub(crate) filter: PairFilter,
}

/// A search for the neighbours of a sketch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NeighbourSearch<'s> {
    pub(crate) sketch: &'s [u8],
    pub(crate) radius: u32,
    pub(crate) now: UnixMillis,
    pub(crate) filter: PairFilter,
    pub(crate) start: SearchStart,
    /// Maximum number of documents, at least one.
    pub(crate) most: usize,
}

impl ContentSearch {
    /// Returns the bytes of its sketch, if it has one.
    pub(crate) fn sketch(&self) -> Option<Vec<u8>> {
        self.content.sketch.as_ref().map(DocumentSketch::to_bytes)
    }
}

/// The start of a page of results: nearer documents are left out, and the first `skip` at this distance.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SearchStart {
    pub(crate) distance: u32,
    pub(crate) skip: usize,
}

/// A search for documents with a similar paragraph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParagraphSearch {
    pub(crate) paragraph: StoredParagraph,
    pub(crate) radius: u32,
    pub(crate) now: UnixMillis,
}
