//! Who gets how much of `--memory`.
//!
//! The limit is on the resident size of the process. A fixed part is for code, chunks in flight and each thread's
//! tools; of the rest the feature sets may keep half in memory while reading, keys a sixth (a spool's partitions grow
//! by doubling, so a sixth may become a third), and the tables of documents and groups take what they need: when that
//! is more than there is, the job stops and says how much would do, instead of breaking its promise.

use lookalike::Scheme;
use lookalike_corpus::InputOptions;

use crate::error::BatchError;
use crate::groups::Groups;
use crate::scan::Scanned;
use crate::settings::Limits;

const MIB: u64 = 1 << 20;

/// What is left of the limit as a job goes on; see the module's header.
pub(crate) struct Budget {
    limit: u64,
    fixed: u64,
    used: u64,
}

impl Budget {
    /// The budget of a job whose texts are read so: dictionaries and learned lines are resident all the while.
    pub(crate) fn new(limits: &Limits, scheme: &Scheme, options: &InputOptions) -> Self {
        let lines = options.boilerplate.as_ref().map_or(0, |lines| lines.len());
        let data = scheme.dictionary_bytes() + 26 * lines as u64;
        let fixed = 16 * MIB + limits.threads as u64 * 10 * MIB + data;
        Self {
            limit: limits.memory,
            fixed,
            used: 0,
        }
    }

    fn left(&self) -> u64 {
        self.limit
            .saturating_sub(self.fixed)
            .saturating_sub(self.used)
    }

    /// Bytes of feature sets that stay in memory.
    pub(crate) fn sets(&self) -> u64 {
        self.left() / 2
    }

    /// Bytes of candidate keys, or of pairs, that stay in memory.
    pub(crate) fn keys(&self) -> u64 {
        self.left() / 6
    }

    /// Takes the tables of the scan off.
    pub(crate) fn tables(&mut self, scanned: &Scanned) -> Result<(), BatchError> {
        // Ranks, orders and outcomes: 40 bytes a document and a class.
        let rows = (scanned.documents.len() + scanned.classes.len()) as u64;
        self.take(
            "the table of documents",
            scanned.documents.bytes() + scanned.classes.bytes() + 40 * rows,
        )
    }

    /// Takes the groups off.
    pub(crate) fn groups(&mut self, groups: &Groups) -> Result<(), BatchError> {
        self.take("the index of shared features", groups.bytes())
    }

    fn take(&mut self, what: &'static str, needed: u64) -> Result<(), BatchError> {
        let left = self.left();
        if needed > left {
            let least = self.fixed + (self.used + needed) * 3 / 2;
            return Err(BatchError::Memory {
                what,
                needed,
                left,
                least,
            });
        }
        self.used += needed;
        Ok(())
    }
}
