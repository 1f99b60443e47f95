//! Documents that are read again and again, and never held.

use std::borrow::Cow;
use std::convert::Infallible;

use crate::document_set::{DocumentSet, EvaluatedDocument};

/// A document of a reading.
#[derive(Debug, Clone)]
pub struct SweptDocument<'a> {
    /// Its position in the order of ids; none of one that is set aside, for another has its text. It counts in tables of terms.
    pub position: Option<u32>,
    /// The document.
    pub document: Cow<'a, EvaluatedDocument>,
}

/// Documents that can be read again and again, in the same order each time.
pub trait SweptDocuments {
    /// Reason why a reading fails.
    type Error;

    /// Number of documents that are compared.
    fn len(&self) -> usize;

    /// Tells whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id at a position.
    fn id(&self, position: u32) -> &str;

    /// Bytes of the text at a position.
    fn text_bytes(&self, position: u32) -> u64;

    /// Reads all documents, and shows them in batches.
    ///
    /// # Errors
    /// When a reading fails.
    fn read(&self, visit: &mut dyn FnMut(&[SweptDocument<'_>])) -> Result<(), Self::Error>;
}

/// Documents of a set that are shown at a time.
const BATCH: usize = 1 << 12;

impl SweptDocuments for DocumentSet {
    type Error = Infallible;

    fn len(&self) -> usize {
        Self::len(self)
    }

    fn id(&self, position: u32) -> &str {
        Self::id(self, position)
    }

    fn text_bytes(&self, position: u32) -> u64 {
        self.text(position).len() as u64
    }

    fn read(&self, visit: &mut dyn FnMut(&[SweptDocument<'_>])) -> Result<(), Infallible> {
        let all = self.documents().iter().zip(0_u32..);
        let all: Vec<SweptDocument<'_>> = all
            .map(|(document, position)| SweptDocument {
                position: Some(position),
                document: Cow::Borrowed(document),
            })
            .collect();
        all.chunks(BATCH).for_each(visit);
        Ok(())
    }
}
