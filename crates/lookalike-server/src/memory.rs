//! The memory that requests in progress may take, all together.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::Problem;

const UNIT: usize = 1024;

/// Memory for requests: each takes its share before its body is read and gives it back when its answer is on its way.
#[derive(Debug)]
pub(crate) struct Memory {
    units: Arc<Semaphore>,
    all: usize,
    patience: Duration,
}

/// A share; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    _permit: OwnedSemaphorePermit,
}

impl Memory {
    pub(crate) fn new(bytes: usize, patience: Duration) -> Self {
        let all = (bytes / UNIT).clamp(1, u32::MAX as usize);
        Self {
            units: Arc::new(Semaphore::new(all)),
            all,
            patience,
        }
    }

    /// Takes a share, waiting for others to give theirs back. One that asks for more than there is gets everything.
    pub(crate) async fn take(&self, bytes: usize) -> Result<Share, Problem> {
        let units = bytes.div_ceil(UNIT).clamp(1, self.all) as u32;
        // Mostly there is enough, and no timer is needed.
        if let Ok(permit) = Arc::clone(&self.units).try_acquire_many_owned(units) {
            return Ok(Share { _permit: permit });
        }
        let permit = Arc::clone(&self.units).acquire_many_owned(units);
        match tokio::time::timeout(self.patience, permit).await {
            Ok(Ok(permit)) => Ok(Share { _permit: permit }),
            _ => Err(Problem::busy(
                "memory",
                "requests in progress take all the memory there is for them",
            )),
        }
    }

    /// Bytes that are taken.
    pub(crate) fn taken(&self) -> usize {
        (self.all - self.units.available_permits()) * UNIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn shares_never_exceed_the_whole() {
        let memory = Memory::new(10 * UNIT, Duration::from_millis(5));
        let first = memory.take(6 * UNIT).await.expect("there is enough");
        assert_eq!(memory.taken(), 6 * UNIT);
        assert_eq!(
            memory
                .take(5 * UNIT)
                .await
                .expect_err("too much")
                .status
                .as_u16(),
            503
        );
        drop(first);
        let all = memory.take(usize::MAX).await.expect("everything");
        assert_eq!(memory.taken(), 10 * UNIT);
        drop(all);
        assert_eq!(memory.taken(), 0);
    }
}
