//! The documents that are evaluated, in the order of their ids.

use thiserror::Error;

/// Documents with their texts, ascending by id: positions do not depend on the order of the input.
#[derive(Debug, Clone, Default)]
pub struct Collection {
    documents: Vec<(String, String)>,
}

/// Why documents are no collection.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CollectionError {
    /// Two documents have one id: labels could mean either.
    #[error(
        "two documents have the id {id:?}: give them different ids, or name another field with --id"
    )]
    RepeatedId {
        /// The id.
        id: String,
    },
    /// There is nothing to compare.
    #[error("{found} documents: at least two are needed for a pair")]
    TooFew {
        /// Documents there are.
        found: usize,
    },
}

impl Collection {
    /// The collection of these pairs of id and text.
    ///
    /// # Errors
    /// [`CollectionError`] for repeated ids and for fewer than two documents.
    pub fn new(mut documents: Vec<(String, String)>) -> Result<Self, CollectionError> {
        documents.sort_unstable();
        if let Some(pair) = documents.array_windows::<2>().find(|[a, b]| a.0 == b.0) {
            let id = pair[0].0.clone();
            return Err(CollectionError::RepeatedId { id });
        }
        if documents.len() < 2 {
            let found = documents.len();
            return Err(CollectionError::TooFew { found });
        }
        Ok(Self { documents })
    }

    /// Number of documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// The id at a position.
    #[must_use]
    pub fn id(&self, position: u32) -> &str {
        &self.documents[position as usize].0
    }

    /// The text at a position.
    #[must_use]
    pub fn text(&self, position: u32) -> &str {
        &self.documents[position as usize].1
    }

    /// The texts, in order.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.documents.iter().map(|document| &*document.1)
    }

    /// The position of an id.
    #[must_use]
    pub fn position(&self, id: &str) -> Option<u32> {
        let found = self
            .documents
            .binary_search_by(|document| (*document.0).cmp(id));
        found.ok().map(|position| position as u32)
    }
}
