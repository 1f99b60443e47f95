//! Collections joined with themselves: in memory, by the engine's self-join; of a shard, by a batch query.
//!
//! A shard owns the pairs whose lesser fingerprint is one of its own. It keeps its own fingerprints in memory and reads all others
//! past them, so it needs a share of the memory. The name of a fingerprint that streams by is the least of all documents that have
//! it, which is known only at the end: so pairs are sorted by their fingerprints first, and named then.

use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use lookalike_corpus::ReadError;
use lookalike_hamming::{SelfJoinLimits, self_join};

use super::matches::{FoundPairs, JoinMatches, PairSides};
use super::memory_plan::{MemoryPlan, MemoryPurpose};
use super::queries::QuerySet;
use super::{FingerprintJoin, JoinSummary, JoinedSides};
use crate::error::BatchError;
use crate::fingerprints::files::{CodeFiles, FingerprintName};
use crate::observer::JobStage;
use crate::spill::partitions::lock;

/// Pairs that one thread finds on its way to all, and the first failure on that way.
pub(super) struct MatchHandover<'a> {
    pub(super) found: FoundPairs,
    pub(super) matches: &'a Mutex<JoinMatches>,
    pub(super) failed: &'a Mutex<Option<io::Error>>,
}

impl MatchHandover<'_> {
    /// Adds a pair of F and Q.
    pub(super) fn push(&mut self, f: FingerprintName<'_>, q: FingerprintName<'_>, distance: u32) {
        self.found.push(f, q, distance);
        self.append_if_large();
    }

    /// Adds a pair of one collection.
    pub(super) fn push_ordered(
        &mut self,
        a: FingerprintName<'_>,
        b: FingerprintName<'_>,
        distance: u32,
    ) {
        self.found.push_ordered(a, b, distance);
        self.append_if_large();
    }

    fn append_if_large(&mut self) {
        if self.found.is_large() {
            self.append();
        }
    }

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
        if !self.shard.is_all() {
            return self.write_alone_shard(out);
        }
        let mut f = self.open(self.f)?;
        let (all, shares) = self.read_own(&mut f)?;
        let shares = shares.alone(all.bytes());
        self.observer.stage(JobStage::Compare, 0);
        let matches = Mutex::new(JoinMatches::new(self.folder, shares.matches));
        let failed = Mutex::new(None);
        let handover = || MatchHandover {
            found: FoundPairs::default(),
            matches: &matches,
            failed: &failed,
        };
        push_equal(&all, handover());
        let limits = SelfJoinLimits::default()
            .threads(self.limits.threads)
            .scratch_bytes(usize::try_from(shares.tables).unwrap_or(usize::MAX));
        self_join(all.codes(), self.distance, limits, || {
            let (all, mut mine) = (&all, handover());
            move |a: u64, b: u64, distance| {
                let (a, b) = (all.least_name(a), all.least_name(b));
                mine.push_ordered(a, b, distance);
            }
        });
        self.ensure_kept(failed)?;
        self.finish(JoinedSides::new(f, None), matches, PairSides::AB, out)
    }

    /// The fingerprints of the shard, in memory.
    fn read_own(&self, f: &mut CodeFiles) -> Result<(QuerySet, MemoryPlan), BatchError> {
        self.observer
            .stage(JobStage::Queries, f.total_bytes().unwrap_or(0));
        let shares = MemoryPlan::new(self.limits);
        let purpose = match self.shard.is_all() {
            true => MemoryPurpose::Alone,
            false => MemoryPurpose::Queries {
                distance: self.distance,
            },
        };
        let own = QuerySet::read(f, self.shard, &shares, purpose, self.observer)?;
        Ok((own, shares))
    }

    pub(super) fn ensure_kept(&self, failed: Mutex<Option<io::Error>>) -> Result<(), BatchError> {
        let failed = failed.into_inner();
        match failed.unwrap_or_else(std::sync::PoisonError::into_inner) {
            Some(error) => Err(BatchError::temporary(self.folder)(error)),
            None => Ok(()),
        }
    }

    fn write_alone_shard(&self, out: &mut dyn Write) -> Result<JoinSummary, BatchError> {
        if self.f.iter().any(|source| source.is_standard_input()) {
            return self.refuse(
                "a shard of a self-join reads everything twice, which standard input cannot be: save it to a file",
            );
        }
        let (own, shares) = self.read_own(&mut self.open(self.f)?)?;
        let mut shares = shares.after(own.bytes(), own.codes().len() as u64, self.distance)?;
        // Two lists of pairs, one after the other but not quite.
        shares.matches /= 2;
        let mut all = self.open(self.f)?;
        let join = self.tables(&own, &shares, &all)?;
        self.observer
            .stage(JobStage::Join, all.total_bytes().unwrap_or(0));
        let found_codes = Mutex::new(JoinMatches::new(self.folder, shares.matches));
        let (seen, temporary) = (AtomicU64::new(0), BatchError::temporary(self.folder));
        self.stream(&mut all, &shares, &|chunk, scratch| {
            let (mut found, mut failed) = (FoundPairs::default(), Ok(()));
            join.join(&chunk.codes, scratch, &mut |at, mine, distance| {
                let code = chunk.codes[at];
                // Equal fingerprints are pairs of ids only, which `push_equal` makes.
                // A pair of two shards belongs to that of its lesser fingerprint, so exactly one run writes it.
                if mine < code {
                    let name = chunk.ids.name(at, code);
                    found.push_codes([mine, code], name, distance);
                }
                if found.is_large() && failed.is_ok() {
                    failed = lock(&found_codes).append(&mut found);
                }
            });
            let is_own = |code: &&u64| self.shard.has(**code);
            let digest = digest(chunk.codes.iter().filter(is_own));
            // A sum, to which threads may add in any order; it is read when all are done.
            seen.fetch_add(digest, Ordering::Relaxed);
            failed
                .and_then(|()| lock(&found_codes).append(&mut found))
                .map_err(&temporary)
        })?;
        // The second reading has to meet the fingerprints of the shard again, or pairs are missing.
        if seen.into_inner() != digest(own.codes()) {
            let name = all.names();
            return Err(ReadError::Changed { name }.into());
        }
        let matches = Mutex::new(JoinMatches::new(self.folder, shares.matches));
        let failed = Mutex::new(None);
        let handover = || MatchHandover {
            found: FoundPairs::default(),
            matches: &matches,
            failed: &failed,
        };
        push_equal(&own, handover());
        let mut named = handover();
        let found_codes = found_codes.into_inner();
        let found_codes = found_codes.unwrap_or_else(std::sync::PoisonError::into_inner);
        found_codes.each_least_name(
            |[mine, _], other, distance| {
                named.push_ordered(own.least_name(mine), other, distance);
                Ok(())
            },
            &temporary,
        )?;
        drop(named);
        self.ensure_kept(failed)?;
        self.finish(JoinedSides::new(all, None), matches, PairSides::AB, out)
    }
}

/// The documents of each fingerprint, as pairs with the one of the least name.
fn push_equal(all: &QuerySet, mut handover: MatchHandover<'_>) {
    all.equal(&mut |least, name| {
        handover.push_ordered(least, name, 0);
    });
}

/// A number that is the same for the same fingerprints in any order.
fn digest<'a>(codes: impl IntoIterator<Item = &'a u64>) -> u64 {
    let mixed = codes.into_iter().map(|&code| {
        let spread = (code ^ code >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        spread ^ spread >> 29
    });
    mixed.fold(0, u64::wrapping_add)
}
