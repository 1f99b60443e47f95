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

    /// Reads the neighbours if `shows` is true; otherwise the outcome tells that there are more.
    fn read(self, shows: bool) -> Result<WriteOutcome> {
        match self {
            Self::Known(outcome) => Ok(outcome),
            Self::Checked {
                mut found,
                copy,
                inserted,
                known,
            } => {
                if !shows {
                    found.hide();
                }
                Ok(WriteOutcome::Checked {
                    answer: found.read(copy)?,
                    inserted,
                    known,
                })
            }
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
        self.outcomes_while(|| true)
    }

    /// Reads the neighbours like [`WriteReceipt::outcomes`], but only as long as `goes_on` returns true, and those of the first write in any
    /// case. Later outcomes have their verdicts, and tell that there are more neighbours than the none that they show.
    ///
    /// # Errors
    /// Those of [`WriteReceipt::outcomes`].
    pub fn outcomes_while(self, mut goes_on: impl FnMut() -> bool) -> Result<Vec<WriteOutcome>> {
        let outcomes = self.0.into_iter().enumerate().map(|(at, outcome)| {
            let shows = at == 0 || !outcome.shows_neighbours() || goes_on();
            outcome.read(shows)
        });
        outcomes
            .collect::<Result<_>>()
            .map_err(|error| StoreError::WrittenUnread(Arc::new(error)))
    }
}
