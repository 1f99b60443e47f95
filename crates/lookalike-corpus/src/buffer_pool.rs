//! Reusable buffers.
//!
//! Chunks are so large that allocators request their memory from the system and return it each time: the system would clear and map every page again,
//! for many threads at once, which costs more than reading into it.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum capacity of buffers that are kept. Larger ones held an unusually long document.
const MAX_POOLED_BYTES: usize = 2 << 20;

/// A pool of reusable buffers. Cheap to clone; clones share the buffers, which are freed with the last clone.
///
/// Memory: the pool holds at most as many buffers as were in use at once.
#[derive(Clone, Debug, Default)]
pub struct BufferPool(Arc<Mutex<Vec<Vec<u8>>>>);

impl BufferPool {
    /// Takes an empty buffer, which returns to the pool when dropped.
    pub fn take(&self) -> PooledBytes {
        PooledBytes {
            bytes: self.waiting().pop().unwrap_or_default(),
            pool: Some(self.clone()),
        }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes in a buffer of a [`BufferPool`]. The default buffer belongs to no pool.
#[derive(Debug, Default)]
pub struct PooledBytes {
    bytes: Vec<u8>,
    pool: Option<BufferPool>,
}

impl Deref for PooledBytes {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for PooledBytes {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

impl Drop for PooledBytes {
    fn drop(&mut self) {
        let Some(pool) = self.pool.take() else { return };
        let mut bytes = std::mem::take(&mut self.bytes);
        // A buffer without capacity would only make a later one allocate.
        if (1..=MAX_POOLED_BYTES).contains(&bytes.capacity()) {
            bytes.clear();
            pool.waiting().push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_empty_unless_they_are_too_long() {
        let pool = BufferPool::default();
        let mut bytes = pool.take();
        bytes.extend_from_slice(b"a rose");
        let place = bytes.as_ptr();
        drop(bytes);
        let mut again = pool.take();
        assert_eq!((again.as_ptr(), again.len()), (place, 0));
        again.reserve(MAX_POOLED_BYTES + 1);
        drop((again, pool.take()));
        assert_eq!(pool.take().capacity(), 0);
        assert!(pool.waiting().is_empty());
    }
}
