//! Durable writes whose neighbours are read later, so that no other write waits for these reads.

use std::sync::Arc;

use crate::error::{Result, StoreError};
use crate::found_document::FoundCopy;
use crate::neighbour_hits::NeighbourHits;
use crate::operations::WriteOutcome;

/// An outcome before the neighbours that it shows are read.
#[derive(Debug)]
pub(crate) enum UnreadOutcome {
    /// An outcome that shows none.
    Known(WriteOutcome),
    /// The outcome of [`crate::WriteOp::CheckAndInsert`].
    Checked {
        found: NeighbourHits,
        copy: Option<FoundCopy>,
        inserted: bool,
        known: bool,
    },
}

impl UnreadOutcome {
    fn shows_neighbours(&self) -> bool {
        match self {
            Self::Known(_) => false,
            Self::Checked { found, copy, .. } => found.shows_any(copy.as_ref()),
        }
    }

    fn read(self) -> Result<WriteOutcome> {
        match self {
            Self::Known(outcome) => Ok(outcome),
            Self::Checked {
                found,
                copy,
                inserted,
                known,
            } => Ok(WriteOutcome::Checked {
                answer: found.read(copy)?,
                inserted,
                known,
            }),
        }
    }
}

/// Writes that are durable, and visible to readers.
#[derive(Debug)]
pub struct WriteReceipt(pub(crate) Vec<UnreadOutcome>);

impl WriteReceipt {
    /// Tells whether any outcome shows neighbours, which [`WriteReceipt::outcomes`] reads.
    pub fn shows_neighbours(&self) -> bool {
        self.0.iter().any(UnreadOutcome::shows_neighbours)
    }

    /// Reads the neighbours, as they were when the writes were done, and returns the outcomes in the order of the writes.
    ///
    /// # Errors
    /// [`StoreError::WrittenUnread`] if the medium fails or a neighbour is damaged.
    pub fn outcomes(self) -> Result<Vec<WriteOutcome>> {
        let outcomes = self.0.into_iter().map(UnreadOutcome::read);
        outcomes
            .collect::<Result<_>>()
            .map_err(|error| StoreError::WrittenUnread(Arc::new(error)))
    }
}
