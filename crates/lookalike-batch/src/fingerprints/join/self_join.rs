//! Joins collections with themselves: in memory by the engine's self-join or, for a shard, by a batch query.
//!
//! A shard owns the pairs whose smaller fingerprint belongs to it. It holds its own fingerprints in memory and streams all others past them, so it
//! needs only a share of the memory. The name of a streamed fingerprint is the smallest of all documents that have it, which is known only at the
//! end. Pairs are therefore sorted by fingerprints first and named afterwards.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use lookalike_corpus::ReadError;
use lookalike_hamming::{SelfJoinLimits, SelfJoinProgress, Word, self_join_from};

use super::matches::{MatchBuffer, PairSides, SharedMatches};
use super::memory_plan::{MIN_CHUNK_BYTES, MemoryPlan, MemoryPurpose};
use super::queries::QuerySet;
use super::stream_position::{StreamedPart, digest_of_codes, folded};
use super::{FingerprintJoin, JoinSummary, SideCounts};
use crate::error::BatchError;
use crate::fingerprints::files::{CodeFiles, FingerprintFile};
use crate::fingerprints::settings_error::FingerprintSettingsError;
use crate::locks::{into_inner, lock};
use crate::observer::JobStage;

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
        let matches = self.matches(shares.matches, all.seen.digest)?;
        push_equal(&all, matches.buffer());
        let limits = SelfJoinLimits::default()
            .threads(self.limits.workers())
            .scratch_bytes(usize::try_from(shares.tables).unwrap_or(usize::MAX));
        let before = matches.state().tables();
        let kept = Mutex::new(Ok(()));
        let completed = &mut |tables| {
            if all.codes.len() >= MIN_CHECKPOINTED {
                *lock(&kept) = matches.keep(tables, StreamedPart::default());
            }
        };
        let mut progress = SelfJoinProgress { before, completed };
        // A join whose pairs cannot be stored ends as a cancelled one does.
        let is_cancelled =
            || self.observer.is_cancelled() || matches.has_failed() || lock(&kept).is_err();
        let ended = self_join_from(
            &all.codes,
            self.distance,
            limits,
            &is_cancelled,
            &mut progress,
            || {
                let (all, mut mine) = (&all, matches.buffer());
                move |a: W, b: W, distance| {
                    // Fingerprints are named by their smallest ids, to which `push_equal` ties the other ids.
                    let (a, b) = (all.smallest_name(a), all.smallest_name(b));
                    mine.push_ordered(a, b, distance);
                }
            },
        );
        into_inner(kept)?;
        let matches = matches.into_inner()?;
        if ended.is_break() {
            return Err(BatchError::Cancelled);
        }
        let (f, q) = (f.summaries(), Vec::new());
        self.finish(SideCounts { f, q }, matches, PairSides::AB, out)
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

    fn write_self_join_shard<W: Word>(
        &self,
        mut f: CodeFiles,
        out: &mut dyn Write,
    ) -> Result<JoinSummary, BatchError> {
        if self.inputs.iter().any(|source| source.is_standard_input()) {
            return Err(FingerprintSettingsError::StandardInputOnce.into());
        }
        let (own, shares) = self.read_own::<W>(&mut f)?;
        let count = own.codes.len() as u64;
        let mut shares = shares.after::<W>(own.bytes(), count, self.distance)?;
        // The two lists of pairs exist one after the other, but overlap in time.
        shares.matches /= 2;
        // A second reading: pairs of the shard may have their larger fingerprint anywhere in the files.
        let mut all = self.open(self.inputs)?;
        let shares = shares.with_parts(all.total_bytes(), MIN_CHUNK_BYTES);
        let join = self.tables(&own, &shares, &all)?;
        self.observer
            .stage(JobStage::Join, all.total_bytes().unwrap_or(0));
        let found_codes = self.matches(shares.matches, own.seen.digest)?;
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
        let found_codes = found_codes.into_inner()?;
        // The second reading must find the fingerprints of the shard again, or pairs would be missing.
        if seen.into_inner() != digest_of_codes(own.codes.iter().copied()) {
            let name = all.names();
            return Err(ReadError::Changed { name }.into());
        }
        let threads = self.limits.workers();
        let matches = SharedMatches::new(self.folder, shares.matches, threads, None);
        push_equal(&own, matches.buffer());
        let mut named = matches.buffer();
        let all_named = found_codes.for_each_smallest_name(|[mine, _]: [W; 2], other, distance| {
            named.push_ordered(own.smallest_name(mine), other, distance);
            match matches.has_failed() {
                // `into_inner` below reports the cause.
                true => Err(BatchError::Cancelled),
                false => Ok(()),
            }
        });
        // This hands over the last pairs, which may fail.
        drop(named);
        let matches = matches.into_inner()?;
        all_named?;
        let (f, q) = (all.summaries(), Vec::new());
        self.finish(SideCounts { f, q }, matches, PairSides::AB, out)
    }
}

/// Pairs the documents of each fingerprint with the one that has the smallest name.
fn push_equal<W: Word>(all: &QuerySet<W>, mut handover: MatchBuffer<'_>) {
    all.equal(&mut |least, name| {
        handover.push_ordered(least, name, 0);
    });
}
