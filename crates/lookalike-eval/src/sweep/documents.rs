//! Documents that can be read repeatedly and are not held in memory.

use std::borrow::Cow;
use std::convert::Infallible;

use crate::document_set::{DocumentIds, DocumentSet, EvaluatedDocument};

/// A document as delivered by one reading.
#[derive(Debug, Clone)]
pub struct SweptDocument<'a> {
    /// Its position in the order of ids. `None` if another document has its text; it is then not compared, but counts in tables of terms.
    pub position: Option<u32>,
    /// The document.
    pub document: Cow<'a, EvaluatedDocument>,
}

/// Documents that can be read repeatedly, in the same order each time.
///
/// Their ids are those of the documents to compare.
pub trait SweptDocuments: DocumentIds {
    /// Reason why a reading fails.
    type Error;

    /// Returns the bytes of the text at a position.
    fn text_bytes(&self, position: u32) -> u64;

    /// Tells whether two documents have the same text, and it is not empty.
    fn have_equal_texts(&self, a: u32, b: u32) -> bool;

    /// Reads all documents and passes them to `visit` in batches.
    ///
    /// # Errors
    /// If a reading fails.
    fn read(&self, visit: &mut dyn FnMut(&[SweptDocument<'_>])) -> Result<(), Self::Error>;
}

/// Number of documents in a batch of a [`DocumentSet`].
const BATCH: usize = 1 << 12;

impl SweptDocuments for DocumentSet {
    type Error = Infallible;

    fn text_bytes(&self, position: u32) -> u64 {
        self.text(position).len() as u64
    }

    fn have_equal_texts(&self, a: u32, b: u32) -> bool {
        let [a, b] = [a, b].map(|at| self.documents()[at as usize].text_hash());
        a == b
    }

    fn read(&self, visit: &mut dyn FnMut(&[SweptDocument<'_>])) -> Result<(), Infallible> {
        let all = self.documents().iter().zip(0_u32..);
        let all: Vec<SweptDocument<'_>> = all
            .map(|(document, position)| SweptDocument {
                position: Some(position),
                document: Cow::Borrowed(document),
            })
            .collect();
        // In batches even in memory, because results of a batch are held until all threads have finished it.
        all.chunks(BATCH).for_each(visit);
        Ok(())
    }
}
