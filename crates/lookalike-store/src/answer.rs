//! What is asked of a collection, and what it answers.

use std::sync::Arc;

use crate::document::Document;
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

/// A document within the radius.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Bits that differ.
    pub distance: u32,
    /// The document, as far as it is kept.
    pub document: Arc<Document>,
}

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
