//! Sources that change: sums of their bytes, by which a resumed job knows, and what a job loses while it reads.

use std::fs;
use std::io::{self, Read};

use xxhash_rust::xxh3::Xxh3;

use crate::decode::{self, io_error};
use crate::error::ReadError;
use crate::regular::open_regular;
use crate::source::{Inputs, Source};

impl Inputs {
    /// A sum of the bytes of each source, as they lie on disk; zero for one that was lost because it changed or is gone. Free for those that were read from the first byte to the
    /// last; tables, of which parts are read, are read once more.
    ///
    /// # Errors
    /// When a source cannot be read.
    pub fn content_sums(&self) -> Result<Vec<u64>, ReadError> {
        let sum = |source: &Source| match source.learned.sum.get() {
            // What of a lost source was read depends on when it was lost; zero says that nothing of it counts.
            _ if source.is_lost() => Ok(0),
            Some(sum) => Ok(*sum),
            None => content_sum(source),
        };
        self.sources.iter().map(sum).collect()
    }

    /// The first source whose bytes are not those of which [`Inputs::content_sums`] told. Reads all of them.
    ///
    /// # Errors
    /// When a source cannot be read.
    pub fn changed_since(&self, sums: &[u64]) -> Result<Option<&Source>, ReadError> {
        for (at, source) in self.sources.iter().enumerate() {
            // Read anew, never from `learned`: size and time may be the same although the bytes are not, which
            // is why the sum is asked for.
            if sums.get(at) != Some(&content_sum(source)?) {
                return Ok(Some(source));
            }
        }
        Ok(None)
    }

    /// Loses the sources of records that changed since they were discovered; the next reading leaves them out. `records` counts what
    /// was read of each source. Returns the first lost one of which something was read, or that is found only here.
    pub fn lose_changed(&self, records: &[u64]) -> Option<&Source> {
        let mut first = None;
        let sources = self.sources.iter().zip(records);
        for (source, &records) in sources.filter(|(source, _)| !source.is_document()) {
            let was_lost = source.is_lost();
            let metadata = fs::metadata(source.file());
            // Errors of the machine (too many open files, a disk that fails) are no property of the source, and
            // come up again when it is read.
            if let Err(error) = decode::check_metadata(source, metadata)
                && error.is_of_file()
            {
                source.lose(error.reason());
            }
            if source.is_lost() && (records > 0 || !was_lost) {
                first = first.or(Some(source));
            }
        }
        first
    }
}

/// The sum of the bytes of a source, read for it.
fn content_sum(source: &Source) -> Result<u64, ReadError> {
    let read = || {
        let mut file = open_regular(source.file())?;
        let (mut sum, mut piece) = (Xxh3::new(), vec![0; 1 << 20]);
        loop {
            match file.read(&mut piece) {
                Ok(0) => return Ok(sum.digest()),
                Ok(n) => sum.update(&piece[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    };
    read().map_err(|error| io_error(source, error))
}
