//! Memory that is requested before it is used, so that the lack of it raises an exception and does not end the process.

use std::hint::black_box;

use crate::error::CallError;

/// Returns an error if the system refuses this number of bytes. `consumer` says what exceeds the memory, and the remedy.
pub(crate) fn ensure_room(bytes: u64, consumer: impl FnOnce() -> String) -> Result<(), CallError> {
    let size = usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut probe = Vec::<u8>::new();
    let probed = probe.try_reserve_exact(size);
    // Otherwise the compiler may leave out a request whose memory is never used.
    black_box(&probe);
    probed.map_err(|_| CallError::MemoryLimit {
        message: consumer(),
        needed: Some(bytes),
    })
}

/// Collects values whose number is known, unless the system refuses the memory for them.
pub(crate) fn collected<T>(
    values: impl ExactSizeIterator<Item = T>,
    consumer: impl FnOnce() -> String,
) -> Result<Vec<T>, CallError> {
    let (mut all, bytes) = (Vec::new(), values.len().saturating_mul(size_of::<T>()));
    all.try_reserve_exact(values.len())
        .map_err(|_| CallError::MemoryLimit {
            message: consumer(),
            needed: Some(bytes as u64),
        })?;
    all.extend(values);
    Ok(all)
}
