//! The common interface of readers that cut a source of many records into chunks.

use crate::error::ReadError;
use crate::limits::ReadLimits;
use crate::piece::{ReadMode, RecordChunk};
use crate::source::Source;

/// A source that is cut, and how.
#[derive(Clone, Copy)]
pub(super) struct CutSource<'a> {
    pub(super) number: u32,
    pub(super) source: &'a Source,
    pub(super) limits: ReadLimits,
    pub(super) mode: ReadMode,
}

/// The state of reading a source of many records.
pub(super) trait RecordCutter {
    /// Adds records to the chunk. Returns true if the source has ended.
    fn fill(&mut self, chunk: &mut RecordChunk) -> Result<bool, ReadError>;

    /// Returns the number of records that were added to chunks.
    fn records(&self) -> u64;

    /// Returns the number of bytes of the file that were consumed so far.
    fn disk_bytes(&self) -> u64;
}
