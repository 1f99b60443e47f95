//! Writes of documents that stay as they are, in batches.

use crate::collection::Collection;
use crate::document::StoredDocument;
use crate::error::Result;
use crate::operations::WriteOp;
use crate::time::UnixMillis;

/// Changes that are written at once.
const BATCH: usize = 1000;
/// Bytes of them, roughly; a larger document is written alone.
const BATCH_BYTES: usize = 16 << 20;

/// Writes what comes from another collection, batch by batch.
pub(crate) struct BatchWriter<'a> {
    collection: &'a Collection,
    batch: Vec<WriteOp>,
    bytes: usize,
    /// Time of the batches.
    pub(crate) time: UnixMillis,
    /// Changes so far.
    pub(crate) written: u64,
}

impl<'a> BatchWriter<'a> {
    pub(crate) fn new(collection: &'a Collection, time: UnixMillis) -> Self {
        Self {
            collection,
            batch: Vec::new(),
            bytes: 0,
            time,
            written: 0,
        }
    }

    /// Inserts a document, which keeps the end that it has: none gets a new one.
    pub(crate) fn insert(&mut self, document: StoredDocument) -> Result<()> {
        let expires = document.expires.or(Some(UnixMillis::NEVER));
        self.push(WriteOp::Insert(StoredDocument {
            expires,
            ..document
        }))
    }

    pub(crate) fn delete(&mut self, id: String) -> Result<()> {
        self.push(WriteOp::Delete(id))
    }

    fn push(&mut self, write: WriteOp) -> Result<()> {
        // Before the batch is too large for the collection, not after: it would be refused, and the rest lost with it.
        if self.batch.len() >= BATCH || self.bytes + write.size() > BATCH_BYTES {
            self.flush()?;
        }
        self.bytes += write.size();
        self.batch.push(write);
        Ok(())
    }

    /// Makes all so far durable.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        self.bytes = 0;
        let writes = batch.len() as u64;
        self.collection.write(batch, self.time)?;
        self.written += writes;
        Ok(())
    }
}
