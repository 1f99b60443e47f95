//! The documents that are evaluated, in the order of their ids.

use lookalike::DocumentFields;
use thiserror::Error;

/// One document, with all that a scheme or a rule may look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EvaluatedDocument {
    /// Its id.
    pub id: String,
    /// Its text.
    pub text: String,
    /// Its anchors and links; empty where no scheme looks at them.
    pub fields: DocumentFields,
    /// Its site, the host of its URL, where that is asked for and known.
    pub site: Option<String>,
}

impl EvaluatedDocument {
    /// Returns the memory that it takes, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let DocumentFields {
            anchors,
            in_links,
            out_links,
        } = &self.fields;
        let anchors = anchors
            .iter()
            .flat_map(|anchor| [&anchor.text, &anchor.before, &anchor.after]);
        let texts = [&self.id, &self.text].into_iter().chain(anchors);
        let texts = texts.chain(in_links).chain(out_links);
        // Each text is a string of its own.
        let own = size_of::<Self>() as u64 + 64;
        own + texts.map(|text| text.len() as u64).sum::<u64>()
    }
}

/// Documents with their texts, ascending by id: positions do not depend on the order of the input.
#[derive(Debug, Clone, Default)]
pub struct DocumentSet {
    documents: Vec<EvaluatedDocument>,
}

/// Documents that cannot be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DocumentSetError {
    /// Two documents have the same id, so labels are ambiguous.
    #[error("two documents have the id {id:?}")]
    RepeatedId {
        /// The id.
        id: String,
    },
    /// There is nothing to compare.
    #[error("{found} documents; a pair needs at least two")]
    TooFew {
        /// Documents there are.
        found: usize,
    },
}

impl DocumentSet {
    /// The collection of these pairs of id and text.
    ///
    /// # Errors
    /// [`DocumentSetError`] for repeated ids and for fewer than two documents.
    pub fn new(documents: Vec<(String, String)>) -> Result<Self, DocumentSetError> {
        let document = |(id, text)| EvaluatedDocument {
            id,
            text,
            ..EvaluatedDocument::default()
        };
        Self::of(documents.into_iter().map(document).collect())
    }

    /// The collection of these documents.
    ///
    /// # Errors
    /// [`DocumentSetError`] for repeated ids and for fewer than two documents.
    pub fn of(mut documents: Vec<EvaluatedDocument>) -> Result<Self, DocumentSetError> {
        documents.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        if let Some([same, _]) = documents.array_windows().find(|[a, b]| a.id == b.id) {
            let id = same.id.clone();
            return Err(DocumentSetError::RepeatedId { id });
        }
        if documents.len() < 2 {
            let found = documents.len();
            return Err(DocumentSetError::TooFew { found });
        }
        Ok(Self { documents })
    }

    /// Number of documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Tells whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// The id at a position.
    #[must_use]
    pub fn id(&self, position: u32) -> &str {
        &self.documents[position as usize].id
    }

    /// The text at a position.
    #[must_use]
    pub fn text(&self, position: u32) -> &str {
        &self.documents[position as usize].text
    }

    /// The texts, in order.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.documents.iter().map(|document| &*document.text)
    }

    /// The documents, in order.
    #[must_use]
    pub fn documents(&self) -> &[EvaluatedDocument] {
        &self.documents
    }

    /// The position of an id.
    #[must_use]
    pub fn position(&self, id: &str) -> Option<u32> {
        let found = self
            .documents
            .binary_search_by(|document| (*document.id).cmp(id));
        found.ok().map(|position| position as u32)
    }
}
