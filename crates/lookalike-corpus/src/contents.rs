//! Sources that change: checksums of their bytes, by which a resumed job notices it, and sources that a job loses while it reads them.

use std::fs;

use xxhash_rust::xxh3::Xxh3;

use crate::decode::{self, io_error};
use crate::error::ReadError;
use crate::regular::open_regular;
use crate::source::{Inputs, Source};

impl Inputs {
    /// Returns a checksum of the bytes of each source as stored on disk, or zero for a source that was lost because it changed or is gone. Costs
    /// nothing for sources that were read from the first byte to the last. Tables, which are read in parts, are read once more.
    ///
    /// # Errors
    /// Fails if a source cannot be read.
    pub fn content_sums(&self) -> Result<Vec<u64>, ReadError> {
        let sum = |source: &Source| match source.learned.sum.get() {
            // How much of a lost source was read depends on when it was lost; zero means that none of it counts.
            _ if source.is_lost() => Ok(0),
            Some(sum) => Ok(*sum),
            None => content_sum(source),
        };
        self.sources.iter().map(sum).collect()
    }

    /// Returns the checksums of the bytes that the sources have now. Reads all of them.
    ///
    /// # Errors
    /// Fails if a source cannot be read.
    pub fn current_sums(&self) -> Result<Vec<u64>, ReadError> {
        // Never taken from `learned`: size and time may be the same although the bytes differ, which is the purpose of the checksum.
        self.sources.iter().map(content_sum).collect()
    }

    /// Returns the first source whose bytes do not match `sums`, the checksums that [`Inputs::content_sums`] returned earlier. Reads all sources.
    ///
    /// # Errors
    /// Fails if a source cannot be read.
    pub fn changed_since(&self, sums: &[u64]) -> Result<Option<&Source>, ReadError> {
        for (at, source) in self.sources.iter().enumerate() {
            // Read again, as in `current_sums`.
            if sums.get(at) != Some(&content_sum(source)?) {
                return Ok(Some(source));
            }
        }
        Ok(None)
    }

    /// Marks as lost all sources of records that changed since they were discovered; the next reading leaves them out. `records` holds the number of
    /// records read of each source. Returns the first lost source of which something was read, or that was not yet known as lost.
    pub fn mark_changed_lost(&self, records: &[u64]) -> Option<&Source> {
        let mut first = None;
        let sources = self.sources.iter().zip(records);
        for (source, &records) in sources.filter(|(source, _)| !source.is_document()) {
            let was_lost = source.is_lost();
            let metadata = fs::metadata(source.file());
            // Errors of the machine (too many open files, a failing disk) do not concern the source, and recur when it is read.
            if let Err(error) = decode::check_metadata(source, metadata)
                && error.concerns_file()
            {
                source.mark_lost(error.reason());
            }
            if source.is_lost() && (records > 0 || !was_lost) {
                first = first.or(Some(source));
            }
        }
        first
    }
}

/// Reads a source to compute the checksum of its bytes.
fn content_sum(source: &Source) -> Result<u64, ReadError> {
    let read = || {
        let mut file = open_regular(source.file())?;
        let (mut sum, mut piece) = (Xxh3::new(), vec![0; 1 << 20]);
        loop {
            let (filled, end) = decode::fill(&mut file, &mut piece);
            sum.update(&piece[..filled]);
            if end? {
                return Ok(sum.digest());
            }
        }
    };
    read().map_err(|error| io_error(source, error))
}
