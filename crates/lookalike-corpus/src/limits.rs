//! Limits of reading, as lengths in memory.

use crate::options::InputOptions;

/// Returns the limit as a length in memory, small enough for the arithmetic of readers.
pub(crate) fn max_document_bytes(options: &InputOptions) -> usize {
    usize::try_from(options.max_document_bytes)
        .unwrap_or(usize::MAX)
        // No buffer can be longer, and sums such as limit + 2 cannot overflow.
        .min(isize::MAX as usize / 2)
}

/// Limits of chunks and of the documents in them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadLimits {
    /// Target size of a chunk.
    pub(crate) chunk_bytes: usize,
    pub(crate) document_bytes: usize,
    pub(crate) decoded_ratio: u64,
    /// True if longer files are read to their end for their hash.
    pub(crate) read_long: bool,
}

/// Maximum target size of a chunk: memory is taken for it before it is read.
const MAX_CHUNK_BYTES: usize = 1 << 30;

impl ReadLimits {
    pub(crate) fn new(options: &InputOptions) -> ReadLimits {
        ReadLimits {
            chunk_bytes: options.chunk_bytes.clamp(1, MAX_CHUNK_BYTES),
            document_bytes: max_document_bytes(options),
            decoded_ratio: options.max_decoded_ratio,
            read_long: options.read_long,
        }
    }
}
