//! The changes of a group before they are durable: later requests of the group see the earlier ones, nobody else does.

use std::collections::HashSet;
use std::sync::Arc;

use crate::document::StoredDocument;
use crate::id_hash::IdHasher;
use crate::memtable::MemTable;
use crate::settings::IndexShape;

use super::payload::LogChange;
use crate::view::DocumentLocation;

/// The part number of documents of the stage.
pub(crate) const STAGE: u64 = u64::MAX;

/// A change, and the document that it puts an end to.
#[derive(Clone, Debug)]
pub(crate) struct StagedChange {
    pub(crate) change: LogChange<Arc<StoredDocument>>,
    pub(crate) old: Option<DocumentLocation>,
}

/// The changes so far.
#[derive(Debug)]
pub(crate) struct WriteStage {
    pub(crate) memtable: MemTable,
    pub(crate) changes: Vec<StagedChange>,
    /// Bytes of the changes, roughly.
    pub(crate) bytes: usize,
    /// Documents outside of the stage that are gone.
    gone: HashSet<DocumentLocation>,
    shape: IndexShape,
}

impl WriteStage {
    pub(crate) fn new(shape: IndexShape) -> Self {
        Self {
            memtable: MemTable::new(shape),
            changes: Vec::new(),
            bytes: 0,
            gone: HashSet::new(),
            shape,
        }
    }

    /// Tells whether the stage hides a document.
    pub(crate) fn is_gone(&self, location: DocumentLocation) -> bool {
        self.gone.contains(&location)
    }

    pub(crate) fn push(&mut self, staged: StagedChange, hasher: &IdHasher) {
        match staged.old {
            // A document that came and went within the group goes to the log all the same: the frame repeats
            // the requests, and replay comes to the same end.
            Some(DocumentLocation { part: STAGE, place }) => self.memtable.remove(place),
            Some(location) => {
                self.gone.insert(location);
            }
            None => {}
        }
        self.bytes += match &staged.change {
            LogChange::Insert(document) => {
                self.memtable.push(Arc::clone(document), hasher);
                document.size()
            }
            LogChange::Delete(id) => id.len(),
        };
        self.changes.push(staged);
    }

    /// Takes back all but the first changes.
    pub(crate) fn truncate(&mut self, changes: usize, hasher: &IdHasher) {
        if self.changes.len() == changes {
            return;
        }
        // A memtable cannot take a document back, so the changes that stay are staged anew.
        let mut kept = std::mem::take(&mut self.changes);
        kept.truncate(changes);
        *self = Self::new(self.shape);
        kept.into_iter()
            .for_each(|staged| self.push(staged, hasher));
    }
}
