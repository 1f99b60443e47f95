//! Batched writes of documents that are copied unchanged.

use crate::collection::Collection;
use crate::document::StoredDocument;
use crate::error::Result;
use crate::operations::WriteOp;
use crate::time::UnixMillis;

/// Maximum number of changes in a batch.
const BATCH: usize = 1000;
/// Approximate maximum size of a batch in bytes; a larger document gets a batch of its own.
const BATCH_BYTES: usize = 16 << 20;

/// Writes documents from another collection, batch by batch.
pub(crate) struct BatchWriter<'a> {
    collection: &'a Collection,
    batch: Vec<WriteOp>,
    bytes: usize,
    /// Time at which the batches are written.
    pub(crate) time: UnixMillis,
    /// Number of changes written so far.
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

    /// Inserts a document with its own expiry: one without an expiry never expires, whatever the time to live of the collection.
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
        // Flush before the batch grows too large for the collection, not after: it would be refused, and everything in it lost.
        if self.batch.len() >= BATCH || self.bytes + write.size() > BATCH_BYTES {
            self.flush()?;
        }
        self.bytes += write.size();
        self.batch.push(write);
        Ok(())
    }

    /// Writes the pending batch and makes it durable.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        self.bytes = 0;
        let writes = batch.len() as u64;
        self.collection.write(batch, self.time)?;
        self.written += writes;
        Ok(())
    }
}
