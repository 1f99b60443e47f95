//! One collection joined with itself: in memory, by the engine's self-join.

use std::io::{self, Write};
use std::sync::Mutex;

use lookalike_hamming::{SelfJoinLimits, self_join};

use super::matches::{Found, Matches, Sides};
use super::queries::Queries;
use super::shares::{Purpose, Shares};
use super::{FingerprintJoin, JoinSummary};
use crate::error::BatchError;
use crate::fingerprints::files::CodeFile;
use crate::observer::Stage;
use crate::spill::partitions::lock;

/// What one thread finds on its way to all, and the first failure on that way.
struct Handover<'a> {
    found: Found,
    matches: &'a Mutex<Matches>,
    failed: &'a Mutex<Option<io::Error>>,
}

impl Handover<'_> {
    fn append(&mut self) {
        if let Err(error) = lock(self.matches).append(&mut self.found) {
            lock(self.failed).get_or_insert(error);
        }
    }
}

impl Drop for Handover<'_> {
    fn drop(&mut self) {
        self.append();
    }
}

impl FingerprintJoin<'_> {
    pub(super) fn write_alone(&self, out: &mut dyn Write) -> Result<JoinSummary, BatchError> {
        let mut f = CodeFile::open(self.f, self.losses.is_strict())?;
        self.observer
            .stage(Stage::Queries, f.total_bytes().unwrap_or(0));
        let shares = Shares::new(self.limits);
        let all = Queries::read(&mut f, &shares, Purpose::Alone, self.observer)?;
        let shares = shares.alone(all.bytes());
        self.observer.stage(Stage::Compare, 0);
        let matches = Mutex::new(Matches::new(self.folder, shares.matches, Sides::AB));
        let failed = Mutex::new(None);
        let handover = || Handover {
            found: Found::default(),
            matches: &matches,
            failed: &failed,
        };
        let mut equal = handover();
        all.equal(&mut |least, name| {
            equal.found.push_ordered(least, name, 0);
            if equal.found.is_large() {
                equal.append();
            }
        });
        drop(equal);
        let limits = SelfJoinLimits {
            threads: self.limits.threads,
            scratch_bytes: usize::try_from(shares.tables).unwrap_or(usize::MAX),
        };
        self_join(all.codes(), self.distance, limits, || {
            let (all, mut mine) = (&all, handover());
            move |a: u64, b: u64, distance| {
                let (a, b) = (all.least_name(a), all.least_name(b));
                mine.found.push_ordered(a, b, distance);
                if mine.found.is_large() {
                    mine.append();
                }
            }
        });
        let failed = failed.into_inner();
        if let Some(error) = failed.unwrap_or_else(std::sync::PoisonError::into_inner) {
            return Err(BatchError::temporary(self.folder)(error));
        }
        self.finish(f.summary(), None, matches, out)
    }
}
