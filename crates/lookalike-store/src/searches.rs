//! Parameters of searches for contents, sketches and paragraphs as of a given time.

use crate::document::{ContentKey, StoredParagraph};
use crate::document_sketch::SketchForm;
use crate::pair_rule::PairFilter;
use crate::time::UnixMillis;

/// A search for documents similar to a content.
#[derive(Clone, Debug)]
pub(crate) struct ContentSearch {
    pub(crate) content: ContentKey,
    /// The form of the collection's sketches.
    pub(crate) form: SketchForm,
    /// The bytes of the content's sketch, if it has one.
    pub(crate) sketch: Option<Vec<u8>>,
    pub(crate) radius: u32,
    pub(crate) now: UnixMillis,
    pub(crate) filter: PairFilter,
}

/// The results that are wanted of a search: nearer documents are left out, and the first `skip` at this distance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HitRange {
    pub(crate) distance: u32,
    pub(crate) skip: usize,
    /// Maximum number of documents, at least one.
    pub(crate) most: usize,
}

/// A search for documents with a similar paragraph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParagraphSearch {
    pub(crate) paragraph: StoredParagraph,
    pub(crate) radius: u32,
    pub(crate) now: UnixMillis,
}
