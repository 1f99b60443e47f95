//! What is asked of a collection, and what it answers.

use std::sync::Arc;

use crate::document::Document;
use crate::engine::Found;
use crate::error::Result;
use crate::time::Time;

/// Whether a document was seen before.
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

/// What is within a radius of a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether there is anything, however few neighbours were asked for.
    pub verdict: Verdict,
    /// The nearest documents, by distance, then from the one inserted first to the one inserted last.
    pub neighbours: Vec<Neighbour>,
    /// Whether there are more than were asked for.
    pub more: bool,
}

/// A document within the radius: what is small of it, and where the rest is read from.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// Bits that differ.
    pub distance: u32,
    /// Its id.
    pub id: String,
    /// Its metadata.
    pub metadata: Vec<u8>,
    found: Found,
}

impl Neighbour {
    /// Reads what is shown of a document that was found.
    pub(crate) fn read(distance: u32, found: Found) -> Result<Self> {
        let (id, metadata) = found.brief()?;
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
    pub fn document(&self) -> Result<Arc<Document>> {
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

/// What a paragraph was seen in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParagraphSeen {
    /// The hash that was asked for.
    pub paragraph: u64,
    /// Ids of documents that have it, from the one inserted first on; empty when it is new.
    pub documents: Vec<String>,
    /// Whether there are more than were asked for.
    pub more: bool,
}

/// A change of a collection.
#[derive(Clone, Debug)]
pub enum Write {
    /// Inserts a document, in the place of any with its id.
    Insert(Document),
    /// Looks for documents within a radius and inserts, in one step. A document never counts as its own neighbour: one
    /// with the same id is left out.
    CheckAndInsert {
        /// The document; one without a fingerprint is always new.
        document: Document,
        /// The radius; at most that of the collection.
        radius: u32,
        /// Whether it is inserted though it is not new.
        insert: InsertWhen,
    },
    /// Deletes the document with this id, if there is one.
    Delete(String),
    /// Sets when a document expires; at once, when the time is past. `None`: never.
    Expire {
        /// Id of the document.
        id: String,
        /// The end.
        expires: Option<Time>,
    },
}

/// When a document that was checked is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertWhen {
    /// When nothing is within the radius.
    New,
    /// When nothing has the same fingerprint.
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

/// What became of a [`Write`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Of [`Write::Insert`].
    Inserted {
        /// Whether there was one with this id.
        replaced: bool,
    },
    /// Of [`Write::CheckAndInsert`].
    Checked {
        /// What was found, before the insert.
        answer: Answer,
        /// Whether it was inserted.
        inserted: bool,
        /// Whether there was one with this id; it is replaced if the document was inserted, else it stays.
        known: bool,
    },
    /// Of [`Write::Delete`].
    Deleted {
        /// Whether there was one.
        existed: bool,
    },
    /// Of [`Write::Expire`].
    Expiring {
        /// Whether there was one.
        existed: bool,
    },
}
