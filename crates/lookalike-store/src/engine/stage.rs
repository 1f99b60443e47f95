//! The changes of a group before they are durable: later requests of the group see the earlier ones, nobody else does.

use std::collections::HashSet;
use std::sync::Arc;

use crate::document::Document;
use crate::id_hash::IdHasher;
use crate::memory::Memory;

use super::payload::Change;
use super::view::Location;

/// The part number of documents of the stage.
pub(crate) const STAGE: u64 = u64::MAX;

/// A change, and the document that it puts an end to.
#[derive(Clone, Debug)]
pub(crate) struct Staged {
    pub(crate) change: Change<Arc<Document>>,
    pub(crate) old: Option<Location>,
}

/// The changes so far.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) memory: Memory,
    pub(crate) changes: Vec<Staged>,
    /// Documents outside of the stage that are gone.
    gone: HashSet<Location>,
    radius: u32,
}

impl Stage {
    pub(crate) fn new(radius: u32) -> Self {
        Self {
            memory: Memory::new(radius),
            changes: Vec::new(),
            gone: HashSet::new(),
            radius,
        }
    }

    /// Whether a document is hidden by the stage.
    pub(crate) fn is_gone(&self, location: Location) -> bool {
        self.gone.contains(&location)
    }

    pub(crate) fn push(&mut self, staged: Staged, hasher: &IdHasher) {
        match staged.old {
            Some(Location { part: STAGE, place }) => self.memory.remove(place),
            Some(location) => {
                self.gone.insert(location);
            }
            None => {}
        }
        if let Change::Insert(document) = &staged.change {
            self.memory.push(Arc::clone(document), hasher);
        }
        self.changes.push(staged);
    }

    /// Takes back all but the first changes.
    pub(crate) fn truncate(&mut self, changes: usize, hasher: &IdHasher) {
        if self.changes.len() == changes {
            return;
        }
        let mut kept = std::mem::take(&mut self.changes);
        kept.truncate(changes);
        *self = Self::new(self.radius);
        kept.into_iter()
            .for_each(|staged| self.push(staged, hasher));
    }
}
