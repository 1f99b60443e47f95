//! Operations on a collection, and their results.

use std::sync::Arc;

use crate::document::{ContentKey, DocumentHeader, StoredDocument, StoredParagraph};
use crate::document_sketch::SketchForm;
use crate::error::Result;
use crate::found_document::{FoundDocument, SearchHit};
use crate::neighbour_cursor::NeighbourCursor;
use crate::pair_rule::NeighbourScope;
use crate::time::UnixMillis;
use crate::verdict::{SimilarParagraph, Verdict};

/// Documents within a radius of a sketch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueryResult {
    /// The verdict, which does not depend on the limit of neighbours.
    pub verdict: Verdict,
    /// Id of the document that was inserted first of those with the same text; of [`Verdict::Exact`].
    pub copy_of: Option<String>,
    /// The nearest documents, by distance, then from the one inserted first to the one inserted last.
    pub neighbours: Vec<Neighbour>,
    /// True if more documents follow the last of the neighbours.
    pub more: bool,
    /// The cursor of the documents that follow; none if there are none.
    pub next: Option<NeighbourCursor>,
}

/// The neighbours that an answer shows: so many, from the nearest or from a cursor on.
///
/// ```
/// use lookalike_store::NeighbourPage;
///
/// let page = NeighbourPage::from(10);
/// assert_eq!((page.limit, page.after), (10, None));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NeighbourPage {
    /// Most neighbours.
    pub limit: usize,
    /// End of the neighbours that were shown before.
    pub after: Option<NeighbourCursor>,
}

impl From<usize> for NeighbourPage {
    fn from(limit: usize) -> Self {
        Self { limit, after: None }
    }
}

/// A document within the radius. Its text and signature are read on demand.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// Bits of the fingerprint, or places of a longer sketch, that differ.
    pub distance: u32,
    /// Its id.
    pub id: String,
    /// True if its text is known to be equal.
    pub same_text: bool,
    /// Its metadata.
    pub metadata: Vec<u8>,
    found: FoundDocument,
}

impl Neighbour {
    /// Reads the small parts of a document that was found for a content.
    pub(crate) fn read(hit: SearchHit, of: &ContentKey, form: SketchForm) -> Result<Self> {
        let SearchHit { distance, found } = hit;
        let header = found.header(form)?;
        Ok(Self::new(distance, found, header, of))
    }

    pub(crate) fn new(
        distance: u32,
        found: FoundDocument,
        header: DocumentHeader,
        of: &ContentKey,
    ) -> Self {
        let DocumentHeader {
            id,
            content,
            metadata,
        } = header;
        Self {
            distance,
            id,
            same_text: content.is_same_text(of),
            metadata,
            found,
        }
    }

    /// The whole document as it was when it was found, text and signature included, whatever became of it since. Read
    /// when it is asked for, so that an answer takes little memory; it keeps the file of the document open.
    ///
    /// # Errors
    /// Failures of the medium.
    pub fn document(&self) -> Result<Arc<StoredDocument>> {
        self.found.clone().read()
    }
}

impl PartialEq for Neighbour {
    fn eq(&self, other: &Self) -> bool {
        let shown = |near: &Self| (near.distance, near.same_text);
        shown(self) == shown(other) && self.id == other.id && self.metadata == other.metadata
    }
}

impl Eq for Neighbour {}

/// Documents that contain a paragraph or a similar one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParagraphMatches {
    /// The paragraph that was looked for.
    pub paragraph: StoredParagraph,
    /// The most similar paragraph of each document: those with the same words first, then by distance, then by age; empty if it
    /// is new.
    pub documents: Vec<SimilarParagraph>,
    /// True if there are more than the limit.
    pub more: bool,
}

/// A change of a collection.
///
/// ```
/// # use lookalike::{Fingerprint, Scheme};
/// use lookalike_store::{InsertWhen, StoredDocument, WriteOp, WriteOutcome};
/// # use lookalike_store::{CollectionSettings, Store, StoreOptions, UnixMillis};
///
/// # let folder = tempfile::tempdir()?;
/// # let store = Store::open(&folder, StoreOptions::default().create(true))?;
/// # let pages = store.create_collection("pages", &CollectionSettings::new(&Scheme::default()))?;
/// # let now = UnixMillis(1_700_000_000_000);
/// let check = |id: &str, code| WriteOp::CheckAndInsert {
///     document: StoredDocument::new(id, Fingerprint(code)),
///     scope: 3.into(),
///     insert: InsertWhen::New,
///     limit: 1,
/// };
/// // All or none of them, one after the other: the second is near the first, and stays out.
/// let outcomes = pages.write(vec![check("a", 0b1011), check("b", 0b1001)], now)?;
/// let WriteOutcome::Checked { answer, inserted: false, .. } = &outcomes[1] else { panic!("{outcomes:?}") };
/// assert_eq!(answer.neighbours[0].id, "a");
///
/// let outcomes = pages.write(vec![WriteOp::Delete("a".to_owned()), check("b", 0b1001)], now)?;
/// assert_eq!(outcomes[0], WriteOutcome::Deleted { existed: true });
/// assert!(matches!(outcomes[1], WriteOutcome::Checked { inserted: true, .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum WriteOp {
    /// Inserts a document, in the place of any with its id.
    Insert(StoredDocument),
    /// Looks for documents within a radius and inserts, in one step. A document never counts as its own neighbour: one
    /// with the same id is left out.
    CheckAndInsert {
        /// The document; one without a sketch is always new.
        document: StoredDocument,
        /// Documents that count as neighbours.
        scope: NeighbourScope,
        /// Condition of the insert.
        insert: InsertWhen,
        /// Most neighbours in the answer; the verdict does not depend on it.
        limit: usize,
    },
    /// Deletes the document with this id, if there is one.
    Delete(String),
    /// Sets the expiry of a document; `None` means never. A time in the past takes effect at once.
    Expire {
        /// Id of the document.
        id: String,
        /// The end.
        expires: Option<UnixMillis>,
    },
}

impl WriteOp {
    /// Bytes that it holds, roughly.
    pub(crate) fn size(&self) -> usize {
        32 + match self {
            Self::Insert(document) | Self::CheckAndInsert { document, .. } => document.size(),
            Self::Delete(id) | Self::Expire { id, .. } => id.len(),
        }
    }
}

/// Condition under which a checked document is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InsertWhen {
    /// Insert if nothing is within the radius.
    New,
    /// Insert if nothing has the same sketch.
    NotSameFingerprint,
    /// Insert if nothing has the same text.
    NotExact,
    /// In any case.
    Always,
}

impl InsertWhen {
    pub(crate) fn allows(self, verdict: Verdict) -> bool {
        match self {
            Self::New => verdict == Verdict::New,
            Self::NotSameFingerprint => verdict.distance() != Some(0),
            Self::NotExact => verdict != Verdict::Exact,
            Self::Always => true,
        }
    }
}

/// Result of a [`WriteOp`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteOutcome {
    /// Of [`WriteOp::Insert`].
    Inserted {
        /// True if it replaced a document with this id.
        replaced: bool,
    },
    /// Of [`WriteOp::CheckAndInsert`].
    Checked {
        /// The neighbours before the insert.
        answer: QueryResult,
        /// True if it was inserted.
        inserted: bool,
        /// True if there was a document with this id. An insert replaces it; otherwise it stays.
        known: bool,
    },
    /// Of [`WriteOp::Delete`].
    Deleted {
        /// True if there was one.
        existed: bool,
    },
    /// Of [`WriteOp::Expire`].
    Expiring {
        /// True if there was one.
        existed: bool,
    },
}
