//! Searches: contents, sketches and paragraphs that are looked for at a time.

use crate::document::{ContentKey, StoredParagraph};
use crate::document_sketch::{DocumentSketch, SketchForm};
use crate::pair_rule::PairFilter;
use crate::time::UnixMillis;
use crate::verdict::Verdict;

/// A search for what is like a content at a time.
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
    /// Largest number of documents, at least one.
    pub(crate) most: usize,
}

impl ContentSearch {
    /// The bytes of its sketch, if it has one.
    pub(crate) fn sketch(&self) -> Option<Vec<u8>> {
        self.content.sketch.as_ref().map(DocumentSketch::to_bytes)
    }
}

/// The first document of a search: nearer ones are left out, and so many of this distance.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SearchStart {
    pub(crate) distance: u32,
    pub(crate) skip: usize,
}

/// A paragraph that is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParagraphSearch {
    pub(crate) paragraph: StoredParagraph,
    pub(crate) radius: u32,
    pub(crate) now: UnixMillis,
}

impl ParagraphSearch {
    /// Position of the most similar paragraph of a document, and how similar it is; `None` if none is.
    pub(crate) fn most_similar(&self, paragraphs: &[StoredParagraph]) -> Option<(usize, Verdict)> {
        let same = |other: &StoredParagraph| other.hash == self.paragraph.hash;
        // Equal words win over any fingerprint: equal fingerprints do not prove equal words.
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
