//! The limit on concurrent exports and other passes over all documents of a collection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::problem::ProblemDetails;

/// Maximum number of concurrent exports and searches.
const MAX_EXPORTS: usize = 2;

/// A counter of the exports in progress.
#[derive(Debug, Default)]
pub(crate) struct ExportSlots(Arc<AtomicUsize>);

/// The slot of an export, which is freed when dropped.
#[derive(Debug)]
pub(crate) struct ExportSlot(Arc<AtomicUsize>);

impl ExportSlots {
    /// Takes a slot if one is free.
    pub(crate) fn begin(&self) -> Result<ExportSlot, ProblemDetails> {
        let slot = ExportSlot(Arc::clone(&self.0));
        // Count first; a refused slot is subtracted when it is dropped. So concurrent calls never get too many slots. Relaxed is enough,
        // because the counter guards nothing else.
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
