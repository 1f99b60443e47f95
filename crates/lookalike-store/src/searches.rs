//! Parameters of searches for contents, sketches and paragraphs as of a given time.

use crate::document::{ContentKey, StoredParagraph};
use crate::document_sketch::{DocumentSketch, SketchForm};
use crate::pair_rule::PairFilter;
use crate::time::UnixMillis;
use crate::verdict::Verdict;

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

impl ParagraphSearch {
    /// Returns the position of the document's most similar paragraph and the verdict on it, or `None` if none is similar.
    pub(crate) fn most_similar(&self, paragraphs: &[StoredParagraph]) -> Option<(usize, Verdict)> {
        let same = |other: &StoredParagraph| other.hash == self.paragraph.hash;
        // Equal words come before any fingerprint: equal fingerprints do not prove equal words.
        if let Some(position) = paragraphs.iter().position(same) {
            return Some((position, Verdict::Exact));
        }
        let code = self.paragraph.fingerprint?;
        let distances = paragraphs.iter().enumerate().filter_map(|(at, other)| {
            let distance = (other.fingerprint?.0 ^ code.0).count_ones();
            Some((distance, at))
        });
        let (distance, position) = distances.min()?;
        (distance <= self.radius).then_some((position, Verdict::of(Some(distance))))
    }
}
