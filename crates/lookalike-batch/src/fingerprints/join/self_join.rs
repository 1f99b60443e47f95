//! Joins collections with themselves: in memory by the engine's self-join or, for a shard, by a batch query.
//!
//! A shard owns the pairs whose smaller fingerprint belongs to it. It holds its own fingerprints in memory and streams all others past them, so it
//! needs only a share of the memory. The name of a streamed fingerprint is the smallest of all documents that have it, which is known only at the
//! end. Pairs are therefore sorted by fingerprints first and named afterwards.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use lookalike_corpus::ReadError;
use lookalike_hamming::{SelfJoinLimits, SelfJoinProgress, Word, self_join_from};

use super::matches::{FoundPairs, JoinMatches, PairSides};
use super::memory_plan::{MIN_CHUNK_BYTES, MemoryPlan, MemoryPurpose};
use super::queries::QuerySet;
use super::stream_position::{StreamedPart, digest_of_codes, folded};
use super::{FingerprintJoin, JoinSummary, SideCounts};
use crate::error::BatchError;
use crate::fingerprints::files::{CodeFiles, FingerprintFile, FingerprintName};
use crate::fingerprints::settings_error::FingerprintSettingsError;
use crate::locks::{into_inner, lock};
use crate::observer::JobStage;

/// Buffer of one thread's pairs, with the first error of handing pairs over.
pub(super) struct MatchBuffer<'a> {
    found: FoundPairs,
    matches: &'a Mutex<JoinMatches>,
    failed: &'a OnceLock<io::Error>,
}

impl<'a> MatchBuffer<'a> {
    pub(super) fn new(matches: &'a Mutex<JoinMatches>, failed: &'a OnceLock<io::Error>) -> Self {
        Self {
            found: FoundPairs::default(),
            matches,
            failed,
        }
    }

    /// Adds a pair of fingerprints together with a name for the second.
    fn push_codes<W: Word>(&mut self, codes: [W; 2], name: FingerprintName<'_>, distance: u32) {
        self.found.push_codes(codes, name, distance);
        self.append_if_large();
    }

    /// Adds a pair of F and Q.
    pub(super) fn push(&mut self, f: FingerprintName<'_>, q: FingerprintName<'_>, distance: u32) {
        self.found.push(f, q, distance);
        self.append_if_large();
    }

    /// Adds a pair within one collection.
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

    /// Tells whether a thread could not hand over its pairs. Pairs are lost then, so finding more is of no use.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.get().is_some()
    }

    /// Hands over the pairs found so far.
    pub(super) fn append(&mut self) {
        if let Err(error) = lock(self.matches).append(&mut self.found) {
            // Later errors follow from the first.
            let _ = self.failed.set(error);
            // They are lost. Kept, they would be handed over again with every further pair.
            self.found = FoundPairs::default();
        }
    }
}

impl Drop for MatchBuffer<'_> {
    fn drop(&mut self) {
        self.append();
    }
}

/// Minimum number of fingerprints for checkpoints after each table of a self-join.
const MIN_CHECKPOINTED: usize = if cfg!(test) { 1 } else { 1 << 18 };

impl FingerprintJoin<'_> {
    pub(super) fn write_self_join<W: Word>(
        &self,
        mut f: CodeFiles,
        out: &mut dyn Write,
    ) -> Result<JoinSummary, BatchError> {
        if !self.shard.is_all() {
            return self.write_self_join_shard::<W>(f, out);
        }
        let (all, shares) = self.read_own::<W>(&mut f)?;
        let shares = shares.for_self_join(all.bytes());
        self.observer.stage(JobStage::Compare, 0);
        let matches = Mutex::new(self.matches(shares.matches, all.seen().digest)?);
        let failed = OnceLock::new();
        push_equal(&all, MatchBuffer::new(&matches, &failed));
        let limits = SelfJoinLimits::default()
            .threads(self.limits.workers())
            .scratch_bytes(usize::try_from(shares.tables).unwrap_or(usize::MAX));
        let before = lock(&matches).state().tables();
        let kept = Mutex::new(Ok(()));
        let completed = &mut |tables| {
            if all.codes().len() >= MIN_CHECKPOINTED {
                *lock(&kept) = lock(&matches).keep(tables, StreamedPart::default());
            }
        };
        let mut progress = SelfJoinProgress { before, completed };
        // A join whose pairs cannot be stored ends as a cancelled one does.
        let is_cancelled =
            || self.observer.is_cancelled() || failed.get().is_some() || lock(&kept).is_err();
        let ended = self_join_from(
            all.codes(),
            self.distance,
            limits,
            &is_cancelled,
            &mut progress,
            || {
                let (all, mut mine) = (&all, MatchBuffer::new(&matches, &failed));
                move |a: W, b: W, distance| {
                    // Fingerprints are named by their smallest ids, to which `push_equal` ties the other ids.
                    let (a, b) = (all.smallest_name(a), all.smallest_name(b));
                    mine.push_ordered(a, b, distance);
                }
            },
        );
        into_inner(kept)?;
        self.ensure_kept(failed)?;
        if ended.is_break() {
            return Err(BatchError::Cancelled);
        }
        self.finish(SideCounts::new(f, None), matches, PairSides::AB, out)
    }

    /// Reads the fingerprints of the shard into memory.
    fn read_own<W: Word>(
        &self,
        f: &mut CodeFiles,
    ) -> Result<(QuerySet<W>, MemoryPlan), BatchError> {
        self.observer
            .stage(JobStage::Queries, f.total_bytes().unwrap_or(0));
        let shares = MemoryPlan::new(&self.limits);
        let purpose = match self.shard.is_all() {
            true => MemoryPurpose::SelfJoin,
            false => MemoryPurpose::Queries {
                distance: self.distance,
            },
        };
        let own = QuerySet::read(f, self.shard, &shares, purpose, self.observer)?;
        Ok((own, shares))
    }

    pub(super) fn ensure_kept(&self, failed: OnceLock<io::Error>) -> Result<(), BatchError> {
        match failed.into_inner() {
            Some(error) => Err(BatchError::temporary(self.folder)(error)),
            None => Ok(()),
        }
    }

    fn write_self_join_shard<W: Word>(
        &self,
        mut f: CodeFiles,
        out: &mut dyn Write,
    ) -> Result<JoinSummary, BatchError> {
        if self.inputs.iter().any(|source| source.is_standard_input()) {
            return Err(FingerprintSettingsError::StandardInputOnce.into());
        }
        let (own, shares) = self.read_own::<W>(&mut f)?;
        let count = own.codes().len() as u64;
        let mut shares = shares.after::<W>(own.bytes(), count, self.distance)?;
        // The two lists of pairs exist one after the other, but overlap in time.
        shares.matches /= 2;
        // A second reading: pairs of the shard may have their larger fingerprint anywhere in the files.
        let mut all = self.open(self.inputs)?;
        let shares = shares.with_parts(all.total_bytes(), MIN_CHUNK_BYTES);
        let join = self.tables(&own, &shares, &all)?;
        self.observer
            .stage(JobStage::Join, all.total_bytes().unwrap_or(0));
        let found_codes = Mutex::new(self.matches(shares.matches, own.seen().digest)?);
        let seen = AtomicU64::new(0);
        let look = |chunk: &FingerprintFile<W>| {
            let is_own = |code: &W| self.shard.has(folded(*code));
            let own = chunk.codes.iter().copied().filter(is_own);
            // A sum does not depend on the order of threads, and is read after they have been joined.
            seen.fetch_add(digest_of_codes(own), Ordering::Relaxed);
        };
        self.stream(
            &mut all,
            &shares,
            &found_codes,
            &look,
            &|chunk, scratch, found| {
                join.join(&chunk.codes, scratch, &mut |at, mine, distance| {
                    let code = chunk.codes[at];
                    // Pairs of equal fingerprints are pairs of ids only, which `push_equal` makes. A pair of two shards belongs to the one of its
                    // smaller fingerprint, so exactly one run writes it.
                    if mine < code {
                        found.push_codes([mine, code], chunk.ids.name(at, code), distance);
                    }
                });
                Ok(())
            },
        )?;
        // The second reading must find the fingerprints of the shard again, or pairs would be missing.
        if seen.into_inner() != digest_of_codes(own.codes().iter().copied()) {
            let name = all.names();
            return Err(ReadError::Changed { name }.into());
        }
        let matches = Mutex::new(JoinMatches::new(
            self.folder,
            shares.matches,
            self.limits.workers(),
        ));
        let failed = OnceLock::new();
        push_equal(&own, MatchBuffer::new(&matches, &failed));
        let mut named = MatchBuffer::new(&matches, &failed);
        let all_named =
            into_inner(found_codes).for_each_smallest_name(|[mine, _]: [W; 2], other, distance| {
                named.push_ordered(own.smallest_name(mine), other, distance);
                match named.has_failed() {
                    // `ensure_kept` reports the cause.
                    true => Err(BatchError::Cancelled),
                    false => Ok(()),
                }
            });
        // This hands over the last pairs, which may fail.
        drop(named);
        self.ensure_kept(failed)?;
        all_named?;
        self.finish(SideCounts::new(all, None), matches, PairSides::AB, out)
    }
}

/// Pairs the documents of each fingerprint with the one that has the smallest name.
fn push_equal<W: Word>(all: &QuerySet<W>, mut handover: MatchBuffer<'_>) {
    all.equal(&mut |least, name| {
        handover.push_ordered(least, name, 0);
    });
}
