//! One collection joined with itself: in memory, by the engine's self-join.

use std::io::{self, Write};
use std::sync::Mutex;

use lookalike_hamming::{SelfJoinLimits, self_join};

use super::matches::{FoundPairs, JoinMatches, PairSides};
use super::memory_plan::{MemoryPlan, MemoryPurpose};
use super::queries::QuerySet;
use super::{FingerprintJoin, JoinSummary};
use crate::error::BatchError;
use crate::fingerprints::files::CodeFile;
use crate::observer::JobStage;
use crate::spill::partitions::lock;

/// Pairs that one thread finds on its way to all, and the first failure on that way.
struct MatchHandover<'a> {
    found: FoundPairs,
    matches: &'a Mutex<JoinMatches>,
    failed: &'a Mutex<Option<io::Error>>,
}

impl MatchHandover<'_> {
    fn append(&mut self) {
        if let Err(error) = lock(self.matches).append(&mut self.found) {
            lock(self.failed).get_or_insert(error);
        }
    }
}

impl Drop for MatchHandover<'_> {
    fn drop(&mut self) {
        self.append();
    }
}

impl FingerprintJoin<'_> {
    pub(super) fn write_alone(&self, out: &mut dyn Write) -> Result<JoinSummary, BatchError> {
        let mut f = CodeFile::open(self.f, self.losses.is_strict())?;
        self.observer
            .stage(JobStage::Queries, f.total_bytes().unwrap_or(0));
        let shares = MemoryPlan::new(self.limits);
        let all = QuerySet::read(&mut f, &shares, MemoryPurpose::Alone, self.observer)?;
        let shares = shares.alone(all.bytes());
        self.observer.stage(JobStage::Compare, 0);
        let matches = Mutex::new(JoinMatches::new(self.folder, shares.matches, PairSides::AB));
        let failed = Mutex::new(None);
        let handover = || MatchHandover {
            found: FoundPairs::default(),
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
