//! The limit on exports, and other passes over all documents of a collection, that run at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::problem::ProblemDetails;

/// Largest number of exports and searches at once.
const MAX_EXPORTS: usize = 2;

/// Counts the exports in progress.
#[derive(Debug, Default)]
pub(crate) struct ExportSlots(Arc<AtomicUsize>);

/// The slot of an export; freed when it is dropped.
#[derive(Debug)]
pub(crate) struct ExportSlot(Arc<AtomicUsize>);

impl ExportSlots {
    /// Takes a slot, if one is free.
    pub(crate) fn begin(&self) -> Result<ExportSlot, ProblemDetails> {
        let slot = ExportSlot(Arc::clone(&self.0));
        // Counted first, given back by the drop of a refused one: of several that race none too many is let in.
        // Relaxed: the number guards nothing but itself.
        if slot.0.fetch_add(1, Ordering::Relaxed) < MAX_EXPORTS {
            return Ok(slot);
        }
        Err(ProblemDetails::busy(
            "exports",
            format!("{MAX_EXPORTS} exports or searches for copies are already running"),
        ))
    }
}

impl Drop for ExportSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
