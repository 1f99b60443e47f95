//! The changes of a group before they are durable. Later requests of the group see those of earlier ones; nobody else does.

use std::collections::HashSet;
use std::sync::Arc;

use crate::document::StoredDocument;
use crate::id_hash::IdHasher;
use crate::memtable::MemTable;
use crate::settings::IndexShape;

use super::payload::LogChange;
use crate::view::DocumentLocation;

/// Part number of documents in the stage.
pub(crate) const STAGE: u64 = u64::MAX;

/// A change, and the location of the document that it deletes or replaces.
#[derive(Clone, Debug)]
pub(crate) struct StagedChange {
    pub(crate) change: LogChange<Arc<StoredDocument>>,
    pub(crate) old: Option<DocumentLocation>,
}

/// The changes of the group so far.
#[derive(Debug)]
pub(crate) struct WriteStage {
    pub(crate) memtable: MemTable,
    pub(crate) changes: Vec<StagedChange>,
    /// Approximate size of the changes in bytes.
    pub(crate) bytes: usize,
    /// Documents outside the stage that it deletes or replaces.
    gone: HashSet<DocumentLocation>,
    hasher: IdHasher,
}

impl WriteStage {
    pub(crate) fn new(shape: IndexShape, hasher: IdHasher) -> Self {
        Self {
            memtable: MemTable::new(shape),
            changes: Vec::new(),
            bytes: 0,
            gone: HashSet::new(),
            hasher,
        }
    }

    /// Tells whether the stage deletes or replaces a document outside it.
    pub(crate) fn is_removed(&self, location: DocumentLocation) -> bool {
        self.gone.contains(&location)
    }

    /// Adds a change that deletes or replaces the document at `old`.
    pub(crate) fn push(
        &mut self,
        change: LogChange<Arc<StoredDocument>>,
        old: Option<DocumentLocation>,
    ) {
        match old {
            // A document that is inserted and removed within the group is still logged: the frame repeats the requests, and replay has the
            // same result.
            Some(DocumentLocation { part: STAGE, place }) => self.memtable.remove(place),
            Some(location) => {
                self.gone.insert(location);
            }
            None => {}
        }
        self.bytes += match &change {
            LogChange::Insert(document) => {
                self.memtable.push(Arc::clone(document), &self.hasher);
                document.size()
            }
            LogChange::Delete(id) => id.len(),
        };
        self.changes.push(StagedChange { change, old });
    }

    /// Undoes all but the first `changes` changes.
    pub(crate) fn truncate(&mut self, changes: usize) {
        if self.changes.len() == changes {
            return;
        }
        // A memtable cannot undo an insert, so stage the remaining changes again.
        let mut kept = std::mem::take(&mut self.changes);
        kept.truncate(changes);
        *self = Self::new(self.memtable.shape, self.hasher.clone());
        for StagedChange { change, old } in kept {
            self.push(change, old);
        }
    }
}
