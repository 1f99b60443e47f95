//! Operations on a collection, and their results.

use std::sync::Arc;

use crate::document::{DocumentHeader, StoredDocument};
use crate::error::Result;
use crate::time::UnixMillis;
use crate::view::{FoundDocument, SearchHit};

/// Verdict on a document: seen before, or new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Nothing is within the radius.
    New,
    /// Something has the same fingerprint.
    Exact,
    /// Something is within the radius.
    Near {
        /// Distance of the nearest, at least 1.
        distance: u32,
    },
}

impl Verdict {
    pub(crate) fn of(nearest: Option<u32>) -> Self {
        match nearest {
            None => Self::New,
            Some(0) => Self::Exact,
            Some(distance) => Self::Near { distance },
        }
    }
}

/// Documents within a radius of a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryResult {
    /// The verdict, which does not depend on the limit of neighbours.
    pub verdict: Verdict,
    /// The nearest documents, by distance, then from the one inserted first to the one inserted last.
    pub neighbours: Vec<Neighbour>,
    /// True if there are more than the limit.
    pub more: bool,
}

impl QueryResult {
    /// Reads ids and metadata of the hits. One hit beyond the limit tells that there are more.
    pub(crate) fn from_hits(mut hits: Vec<SearchHit>, limit: usize) -> Result<Self> {
        let verdict = Verdict::of(hits.first().map(|hit| hit.distance));
        let more = hits.len() > limit;
        hits.truncate(limit);
        let read = |hit: SearchHit| Neighbour::read(hit.distance, hit.found);
        let neighbours = hits.into_iter().map(read).collect::<Result<_>>()?;
        Ok(Self {
            verdict,
            neighbours,
            more,
        })
    }
}

/// A document within the radius. Its text and signature are read on demand.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// Bits that differ.
    pub distance: u32,
    /// Its id.
    pub id: String,
    /// Its metadata.
    pub metadata: Vec<u8>,
    found: FoundDocument,
}

impl Neighbour {
    /// Reads id and metadata of a document that was found.
    pub(crate) fn read(distance: u32, found: FoundDocument) -> Result<Self> {
        let DocumentHeader { id, metadata } = found.header()?;
        Ok(Self {
            distance,
            id,
            metadata,
            found,
        })
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
        let shown = |near: &Self| (near.distance, near.id.clone(), near.metadata.clone());
        shown(self) == shown(other)
    }
}

impl Eq for Neighbour {}

/// Documents that contain a paragraph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParagraphMatches {
    /// Hash of the paragraph.
    pub paragraph: u64,
    /// Ids of documents that contain it, oldest first; empty if it is new.
    pub documents: Vec<String>,
    /// True if there are more than the limit.
    pub more: bool,
}

/// A change of a collection.
#[derive(Clone, Debug)]
pub enum WriteOp {
    /// Inserts a document, in the place of any with its id.
    Insert(StoredDocument),
    /// Looks for documents within a radius and inserts, in one step. A document never counts as its own neighbour: one
    /// with the same id is left out.
    CheckAndInsert {
        /// The document; one without a fingerprint is always new.
        document: StoredDocument,
        /// The radius; at most that of the collection.
        radius: u32,
        /// Condition of the insert.
        insert: InsertWhen,
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

/// Condition under which a checked document is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertWhen {
    /// Insert if nothing is within the radius.
    New,
    /// Insert if nothing has the same fingerprint.
    NotExact,
    /// In any case.
    Always,
}

impl InsertWhen {
    pub(crate) fn allows(self, verdict: Verdict) -> bool {
        match self {
            Self::New => verdict == Verdict::New,
            Self::NotExact => verdict != Verdict::Exact,
            Self::Always => true,
        }
    }
}

/// Result of a [`WriteOp`].
#[derive(Clone, Debug, PartialEq, Eq)]
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
