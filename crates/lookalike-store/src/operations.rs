//! Operations on a collection, and their results.

use std::sync::Arc;

use serde::Deserialize;

use crate::document::{ContentKey, DocumentHeader, StoredDocument, StoredParagraph};
use crate::error::Result;
use crate::found_document::{FoundDocument, SearchHit};
use crate::neighbour_cursor::NeighbourCursor;
use crate::pair_rule::NeighbourScope;
use crate::time::UnixMillis;
use crate::verdict::{SimilarParagraph, Verdict};

/// The documents found within a radius of a sketch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueryResult {
    /// The verdict, which does not depend on the limit of neighbours.
    pub verdict: Verdict,
    /// Id of the earliest inserted document with the same text, if the verdict is [`Verdict::Exact`].
    pub copy_of: Option<String>,
    /// The nearest documents, by distance and then in order of insertion.
    pub neighbours: Vec<Neighbour>,
    /// True if there are more documents after the last of `neighbours`.
    pub more: bool,
    /// Cursor for the documents that follow; `None` if there are none.
    pub next: Option<NeighbourCursor>,
}

/// The page of neighbours that an answer shows: a maximum number, and where to start.
///
/// ```
/// use lookalike_store::NeighbourPage;
///
/// let page = NeighbourPage::from(10);
/// assert_eq!((page.limit, page.after), (10, None));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NeighbourPage {
    /// Maximum number of neighbours.
    pub limit: usize,
    /// Cursor after which the page starts; `None` starts with the nearest.
    pub after: Option<NeighbourCursor>,
}

impl From<usize> for NeighbourPage {
    fn from(limit: usize) -> Self {
        Self { limit, after: None }
    }
}

/// A document within the radius. Its text and signature are read only on demand.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// Number of bits of the fingerprint, or places of a longer sketch, that differ.
    pub distance: u32,
    /// Its id.
    pub id: String,
    /// True if its text is known to be the same.
    pub same_text: bool,
    /// Its metadata.
    pub metadata: Vec<u8>,
    found: FoundDocument,
}

impl Neighbour {
    /// Shows a document, given its header, that was found for the content `of`.
    pub(crate) fn new(hit: SearchHit, header: DocumentHeader, of: &ContentKey) -> Self {
        Self {
            distance: hit.distance,
            id: header.id,
            same_text: header.content.is_same_text(of),
            metadata: header.metadata,
            found: hit.found,
        }
    }

    /// Reads the whole document, with text and signature, as it was when the search found it, whatever has become of it since. Reading on
    /// demand keeps answers small in memory; a neighbour keeps the file of its document open.
    ///
    /// # Errors
    /// Failures of the medium.
    pub fn document(&self) -> Result<Arc<StoredDocument>> {
        self.found.clone().read()
    }
}

impl PartialEq for Neighbour {
    fn eq(&self, other: &Self) -> bool {
        // Where the document was found does not count: a merge may have moved it.
        let shown = |near: &Self| (near.distance, near.same_text);
        shown(self) == shown(other) && self.id == other.id && self.metadata == other.metadata
    }
}

impl Eq for Neighbour {}

/// Documents that contain a given paragraph or a similar one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParagraphMatches {
    /// The paragraph searched for.
    pub paragraph: StoredParagraph,
    /// The most similar paragraph of each document: those with the same words first, then by distance, then by age. Empty if the paragraph
    /// is new.
    pub documents: Vec<SimilarParagraph>,
    /// True if there are more documents than the limit.
    pub more: bool,
}

/// A change to a collection.
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
    /// Inserts a document. It replaces any document with the same id.
    Insert(StoredDocument),
    /// Searches for neighbours of a document and inserts it, in one atomic step. A document is never its own neighbour: one with the same
    /// id is left out of the search.
    CheckAndInsert {
        /// The document. One without a sketch matches only documents with the same text.
        document: StoredDocument,
        /// Documents that count as neighbours.
        scope: NeighbourScope,
        /// Condition under which it is inserted.
        insert: InsertWhen,
        /// Maximum number of neighbours in the answer; the verdict does not depend on it.
        limit: usize,
    },
    /// Deletes the document with this id, if there is one.
    Delete(String),
    /// Sets the expiry of a document; `None` means never. A time in the past takes effect at once. A document whose expiry changes becomes the
    /// newest, like one that is inserted.
    Expire {
        /// Id of the document.
        id: String,
        /// New expiry; `None` means never.
        expires: Option<UnixMillis>,
    },
}

impl WriteOp {
    /// Returns an error if its document cannot be stored.
    pub(crate) fn check_document(&self) -> Result<()> {
        match self {
            Self::Insert(document) | Self::CheckAndInsert { document, .. } => document.check(),
            Self::Delete(_) | Self::Expire { .. } => Ok(()),
        }
    }

    /// Returns the approximate size in bytes.
    pub(crate) fn size(&self) -> usize {
        32 + match self {
            Self::Insert(document) | Self::CheckAndInsert { document, .. } => document.size(),
            Self::Delete(id) | Self::Expire { id, .. } => id.len(),
        }
    }
}

/// Condition under which a checked document is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum InsertWhen {
    /// Insert if no document is within the radius.
    New,
    /// Insert if no document has the same sketch.
    NotSameFingerprint,
    /// Insert if no document has the same text.
    NotExact,
    /// Insert in any case.
    Always,
}

impl InsertWhen {
    pub(crate) fn allows(self, verdict: Verdict) -> bool {
        match self {
            Self::New => verdict == Verdict::New,
            // A document with the same text is at distance 0, too.
            Self::NotSameFingerprint => verdict.distance() != Some(0),
            Self::NotExact => verdict != Verdict::Exact,
            Self::Always => true,
        }
    }
}

/// The result of a [`WriteOp`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteOutcome {
    /// Result of [`WriteOp::Insert`].
    Inserted {
        /// True if the document replaced one with the same id.
        replaced: bool,
    },
    /// Result of [`WriteOp::CheckAndInsert`].
    Checked {
        /// The neighbours before the insert.
        answer: QueryResult,
        /// True if the document was inserted.
        inserted: bool,
        /// True if there already was a document with this id. An insert replaces it; otherwise it stays.
        known: bool,
    },
    /// Result of [`WriteOp::Delete`].
    Deleted {
        /// True if the document existed.
        existed: bool,
    },
    /// Result of [`WriteOp::Expire`].
    Expiring {
        /// True if the document existed.
        existed: bool,
    },
}
