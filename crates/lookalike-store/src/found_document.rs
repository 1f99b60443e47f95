//! Documents that a search found, before they are read.

use std::sync::Arc;

use crate::document::{DocumentHeader, StoredDocument, StoredParagraph};
use crate::document_sketch::SketchForm;
use crate::error::{Result, StoreError};
use crate::run::StoredRun;
use crate::searches::ParagraphSearch;
use crate::verdict::SimilarParagraph;

/// A document that was found, before it is read.
#[derive(Clone, Debug)]
pub(crate) struct SearchHit {
    pub(crate) distance: u32,
    pub(crate) found: FoundDocument,
}

/// A document of the same text that was found.
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

/// A document, or where to read it.
#[derive(Clone, Debug)]
pub(crate) enum FoundDocument {
    InMemory(Arc<StoredDocument>),
    InRun(Arc<StoredRun>, u32),
}

impl FoundDocument {
    /// The document.
    pub(crate) fn read(self) -> Result<Arc<StoredDocument>> {
        match self {
            Self::InMemory(document) => Ok(document),
            Self::InRun(run, place) => run.document(place).map(Arc::new),
        }
    }

    /// Its paragraph that is most similar to one that is looked for. Reads one block of the run.
    pub(crate) fn similar_paragraph(
        &self,
        search: &ParagraphSearch,
    ) -> Result<Option<SimilarParagraph>> {
        let similar = |id: &str, paragraphs: &[StoredParagraph]| {
            let (position, verdict) = search.most_similar(paragraphs)?;
            Some(SimilarParagraph {
                id: id.to_owned(),
                position,
                verdict,
            })
        };
        match self {
            Self::InMemory(document) => Ok(similar(&document.id, &document.paragraphs)),
            Self::InRun(run, place) => {
                // The index says which document, not which paragraph: its position is found by comparing those
                // of the document, some dozens.
                let (id, paragraphs) = run.paragraphs(*place)?;
                let found = similar(&id, &paragraphs);
                let what = "an index of paragraphs names a document that has none like it";
                let damaged = || StoreError::damaged(run.path(), 0, what);
                found.ok_or_else(damaged).map(Some)
            }
        }
    }

    /// Its id, key and metadata; its sketches are of this form. Reads one block of the run.
    pub(crate) fn header(&self, form: SketchForm) -> Result<DocumentHeader> {
        match self {
            Self::InMemory(document) => Ok(DocumentHeader::of(document, form)),
            Self::InRun(run, place) => run.header(*place),
        }
    }
}
