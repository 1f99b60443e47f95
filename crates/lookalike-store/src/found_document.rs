//! Documents that a search has found, before they are read.

use std::sync::Arc;

use crate::document::{DocumentHeader, StoredDocument};
use crate::document_sketch::SketchForm;
use crate::error::Result;
use crate::run::StoredRun;
use crate::time::UnixMillis;

/// A neighbour that was found, not yet read.
#[derive(Clone, Debug)]
pub(crate) struct SearchHit {
    pub(crate) distance: u32,
    pub(crate) found: FoundDocument,
}

/// A document with the same text that was found.
#[derive(Debug)]
pub(crate) struct FoundCopy {
    pub(crate) id: String,
    pub(crate) found: FoundDocument,
}

impl From<&Arc<StoredDocument>> for FoundCopy {
    fn from(document: &Arc<StoredDocument>) -> Self {
        Self {
            id: document.id.clone(),
            found: FoundDocument::InMemory(Arc::clone(document)),
        }
    }
}

/// A document in memory, or its place in a run.
#[derive(Clone, Debug)]
pub(crate) enum FoundDocument {
    InMemory(Arc<StoredDocument>),
    InRun(Arc<StoredRun>, u32),
}

impl FoundDocument {
    /// Tells whether the document is live at a given time. One in memory is never returned once it is deleted.
    pub(crate) fn is_alive(&self, now: UnixMillis) -> bool {
        match self {
            Self::InMemory(document) => document.is_alive(now),
            Self::InRun(run, place) => run.is_alive(*place, now),
        }
    }

    /// Returns its time of expiry, possibly [`UnixMillis::NEVER`].
    pub(crate) fn expires(&self) -> UnixMillis {
        match self {
            Self::InMemory(document) => document.expires.unwrap_or(UnixMillis::NEVER),
            Self::InRun(run, place) => UnixMillis(run.expires(*place)),
        }
    }

    /// Returns the document, read from its run if necessary.
    pub(crate) fn read(self) -> Result<Arc<StoredDocument>> {
        match self {
            Self::InMemory(document) => Ok(document),
            Self::InRun(run, place) => run.document(place).map(Arc::new),
        }
    }

    /// Returns its id, key and metadata, with its sketch of the given form. Reads one block of the run.
    pub(crate) fn header(&self, form: SketchForm) -> Result<DocumentHeader> {
        match self {
            Self::InMemory(document) => Ok(DocumentHeader::of(document, form)),
            Self::InRun(run, place) => run.header(*place),
        }
    }
}
