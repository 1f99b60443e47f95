//! The journal of documents that change during a rebuild, and the end of the collection that is replaced.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use super::CollectionEngine;
use super::payload::LogChange;
use super::stage::StagedChange;
use crate::error::StoreError;
use crate::sync::lock;

/// Ids of changed documents, in the order of changes.
#[derive(Debug, Default)]
pub(super) struct ChangeJournal(Vec<String>);

impl ChangeJournal {
    /// Takes the recorded ids, each once, at the position of its last change: this is the order of the documents by age.
    fn take(&mut self) -> Vec<String> {
        let all = std::mem::take(&mut self.0);
        // Borrowed ids: a backlog may be large, and writers wait meanwhile.
        let mut seen = HashSet::new();
        let ids = all.iter().rev().map(|id| seen.insert(id.as_str()));
        let mut is_last: Vec<bool> = ids.collect();
        is_last.reverse();
        let ids = all.into_iter().zip(is_last);
        ids.filter_map(|(id, is_last)| is_last.then_some(id))
            .collect()
    }
}

impl CollectionEngine {
    /// Starts recording which documents change.
    pub(crate) fn begin_journal(&self) {
        *lock(&self.journal) = Some(ChangeJournal::default());
    }

    /// Stops recording, and drops the recorded changes.
    pub(crate) fn end_journal(&self) {
        *lock(&self.journal) = None;
    }

    /// Returns the number of changes not taken yet.
    pub(crate) fn journal_len(&self) -> usize {
        lock(&self.journal)
            .as_ref()
            .map_or(0, |journal| journal.0.len())
    }

    /// Takes the ids of changed documents, in the order of their last changes.
    pub(crate) fn take_changes(&self) -> Vec<String> {
        lock(&self.journal)
            .as_mut()
            .map_or_else(Vec::new, ChangeJournal::take)
    }

    pub(super) fn record_in_journal(&self, changes: &[StagedChange]) {
        if let Some(journal) = &mut *lock(&self.journal) {
            let ids = changes.iter().map(|staged| match &staged.change {
                LogChange::Insert(document) => document.id.clone(),
                LogChange::Delete(id) => id.clone(),
            });
            journal.0.extend(ids);
        }
    }

    /// Runs `replace`, which puts another collection in the place of this one, while writes are blocked. If it succeeds, this collection
    /// refuses all writes from then on.
    pub(crate) fn replace<E>(&self, replace: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let _writer = self.writer();
        replace()?;
        // Still under the writer lock, so no write is acknowledged in between.
        self.replaced.store(true, Ordering::Release);
        self.stopped
            .get_or_init(|| StoreError::Replaced.to_string());
        Ok(())
    }

    /// Tells whether another collection has replaced this one.
    pub(crate) fn is_replaced(&self) -> bool {
        self.replaced.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_id_is_taken_once_where_it_changed_last() {
        let ids = ["a", "b", "a", "c", "b"].map(str::to_owned);
        let mut journal = ChangeJournal(ids.to_vec());
        assert_eq!(journal.take(), ["a", "c", "b"]);
        assert!(journal.take().is_empty());
    }
}
