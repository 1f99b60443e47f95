//! Divides `--memory` among the parts of a join.
//!
//! A fixed part is for code, threads and reading. Queries and their ids take what they need. Of the rest, an eighth is for pairs that wait to be
//! sorted, a quarter for the chunks of F, and the remainder for the tables over the queries and the filters before them. If the tables do not fit,
//! the error states the memory that is enough.

use std::sync::atomic::Ordering;

use lookalike_hamming::{BatchJoin, Word};

use crate::error::BatchError;
use crate::fingerprints::files::CodeFiles;
use crate::settings::JobLimits;

const MIB: u64 = 1 << 20;
/// Bytes for code and reading.
const BASE_BYTES: u64 = 12 * MIB;
/// Bytes of each thread, besides its chunk.
const THREAD_BYTES: u64 = 4 * MIB;
/// Larger chunks gain nothing.
const MAX_CHUNK_BYTES: u64 = 128 * MIB;
pub(super) const MIN_CHUNK_BYTES: u64 = MIB;
/// Maximum bytes of pairs that wait in memory; more are written to disk even if memory is left.
const MAX_MATCH_BYTES: u64 = 512 * MIB;

/// Reason why a whole collection is read into memory.
#[derive(Clone, Copy)]
pub(super) enum MemoryPurpose {
    /// Another collection is streamed past it.
    Queries {
        /// Largest distance of a pair, in bits.
        distance: u32,
    },
    /// It is joined with itself.
    SelfJoin,
}

/// Shares of the memory, in bytes.
pub(super) struct MemoryPlan {
    limit: u64,
    pub(super) threads: u64,
    fixed: u64,
    left: u64,
    /// Share of the fingerprints and ids of one chunk of F.
    pub(super) chunk: u64,
    /// Share of pairs that wait to be sorted.
    pub(super) matches: u64,
    /// Share of tables and filters.
    pub(super) tables: u64,
}

impl MemoryPlan {
    /// Creates the plan before anything is read.
    pub(super) fn new(limits: &JobLimits) -> Self {
        Self::of(limits.memory, limits.workers() as u64)
    }

    fn of(limit: u64, threads: u64) -> Self {
        let fixed = BASE_BYTES + threads * THREAD_BYTES;
        Self {
            limit,
            threads,
            fixed,
            left: limit.saturating_sub(fixed),
            chunk: MIN_CHUNK_BYTES,
            matches: 0,
            tables: 0,
        }
    }

    /// Fails if a collection leaves too little memory for its purpose.
    pub(super) fn ensure_fits<W: Word>(
        &self,
        bytes: u64,
        count: u64,
        files: &CodeFiles,
        purpose: MemoryPurpose,
    ) -> Result<(), BatchError> {
        // Tables take more than the fingerprints alone, and vectors double when they grow.
        if bytes * 2 <= self.left {
            return Ok(());
        }
        // Not 0, since the total is divided by it.
        let read = files.bytes_read().load(Ordering::Relaxed).max(1);
        // The error names the memory for the whole collection, of which a part has been read. Of a pipe, a quarter is assumed.
        let whole = files
            .total_bytes()
            .map_or(4.0, |total| total as f64 / read as f64);
        let scaled = |part: u64| (part as f64 * whole) as u64;
        let (bytes, count) = (scaled(bytes), scaled(count));
        Err(match purpose {
            MemoryPurpose::Queries { distance } => self.refusal::<W>(bytes, count, distance),
            MemoryPurpose::SelfJoin => BatchError::SelfJoinMemory {
                name: files.names(),
                limit: self.limit,
                least: (self.fixed + bytes * 3 + 2 * MIB).div_ceil(MIB),
            },
        })
    }

    fn refusal<W: Word>(&self, query_bytes: u64, queries: u64, distance: u32) -> BatchError {
        let tables = BatchJoin::<W>::least_bytes(queries, distance);
        // The inverse of `after`. The result must not be too low, or the job would be refused again when it follows the advice.
        let rest = tables + 3 * MIN_CHUNK_BYTES * self.threads + MIB;
        // Three eighths go to chunks and pairs, and growing vectors need twice their size.
        let needed = (query_bytes + rest * 8 / 5).max(2 * query_bytes + MIB);
        let least = self.fixed + needed;
        BatchError::JoinMemory {
            limit: self.limit,
            least: least.div_ceil(MIB),
        }
    }

    /// Returns the shares next to a collection of `bytes` bytes that is joined with itself.
    pub(super) fn for_self_join(self, bytes: u64) -> Self {
        // Limits that are too low were refused while reading; this bound only keeps the shares below from being 0.
        let left = self.left.saturating_sub(bytes).max(2 * MIB);
        let matches = (left / 4).clamp(MIB, MAX_MATCH_BYTES);
        Self {
            tables: left - matches,
            matches,
            left,
            ..self
        }
    }

    /// Returns the shares of a join that holds only the streamed chunks, with eight more bytes for each fingerprint, and pairs. It has fewer threads
    /// if the memory is too small for their chunks.
    pub(super) fn streaming(self) -> Self {
        // A quarter of what threads leave goes to pairs.
        let thread_bytes = THREAD_BYTES + 4 * MIN_CHUNK_BYTES;
        let fitting = self.limit.saturating_sub(BASE_BYTES) / thread_bytes;
        let plan = Self::of(self.limit, self.threads.min(fitting.max(1)));
        let left = plan.left.max(4 * MIB);
        let matches = (left / 4).clamp(MIB, MAX_MATCH_BYTES);
        let chunk = (left - matches) / plan.threads / 3;
        Self {
            chunk: chunk.clamp(MIN_CHUNK_BYTES, MAX_CHUNK_BYTES),
            matches,
            left,
            ..plan
        }
    }

    /// Splits a stream of `total` bytes, if that is known, into parts for all threads, however small it is. No part is smaller than `least`.
    pub(super) fn with_parts(self, total: Option<u64>, least: u64) -> Self {
        /// Number of parts for each thread. With several parts, threads finish at about the same time, and an interrupted join can resume after each
        /// part.
        const PARTS: u64 = 8;
        let part = total.unwrap_or(u64::MAX).div_ceil(PARTS * self.threads);
        Self {
            chunk: self.chunk.min(part.max(least)),
            ..self
        }
    }

    /// Divides the memory that is left next to queries of `query_bytes` bytes.
    pub(super) fn after<W: Word>(
        self,
        query_bytes: u64,
        queries: u64,
        distance: u32,
    ) -> Result<Self, BatchError> {
        let left = self.left.saturating_sub(query_bytes);
        // A chunk is in memory as bytes, as numbers and as addresses.
        let chunk = (left / 4 / self.threads / 3).clamp(MIN_CHUNK_BYTES, MAX_CHUNK_BYTES);
        let matches = (left / 8).clamp(MIB, MAX_MATCH_BYTES);
        let taken = 3 * chunk * self.threads + matches;
        let tables = left.saturating_sub(taken);
        let needed = BatchJoin::<W>::least_bytes(queries, distance);
        if tables < needed {
            return Err(self.refusal::<W>(query_bytes, queries, distance));
        }
        Ok(Self {
            left,
            chunk,
            matches,
            tables,
            ..self
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shares(memory: u64, threads: usize) -> MemoryPlan {
        let limits = JobLimits { memory, threads };
        MemoryPlan::new(&limits)
    }

    #[test]
    fn a_stream_that_fits_one_chunk_was_joined_by_one_thread() {
        let chunk = |total| {
            let plan = shares(64 << 30, 16).after::<u64>(32 * MIB, 4 << 20, 3);
            plan.unwrap().with_parts(total, MIN_CHUNK_BYTES).chunk
        };
        assert_eq!(chunk(Some(1 << 30)), 8 * MIB);
        assert_eq!(chunk(Some(1000)), MIN_CHUNK_BYTES);
        assert_eq!(chunk(None), MAX_CHUNK_BYTES);
    }

    proptest! {
        /// Regression test: 64 threads had chunks of 192 MiB under a limit of 64.
        #[test]
        fn threads_of_a_stream_are_as_many_as_fit(
            memory in prop_oneof![20 * MIB..512 * MIB, 0..(64_u64 << 30)],
            threads in 1..65_usize,
        ) {
            let shares = shares(memory, threads).streaming();
            let chunks = 3 * shares.chunk * shares.threads;
            let taken = shares.fixed + chunks + shares.matches;
            prop_assert!(taken <= memory.max(20 * MIB), "{taken}");
            prop_assert!(shares.threads == threads as u64 || shares.fixed + 4 * MIN_CHUNK_BYTES * shares.threads + 8 * MIB > memory);
        }

        #[test]
        fn shares_after_queries_stay_within_the_memory_and_a_refusal_says_what_is_enough(
            memory in prop_oneof![0..512 * MIB, 0..(64_u64 << 30)],
            threads in 1..65_usize,
            // Without queries there are no tables, and nothing is refused.
            queries in prop_oneof![1..10_000_u64, 1..200_000_000_u64],
            id_bytes in 0..40_u64,
            distance in 0..9_u32,
        ) {
            let query_bytes = queries * (8 + id_bytes);
            match shares(memory, threads).after::<u64>(query_bytes, queries, distance) {
                Ok(shares) => {
                    let chunks = 3 * shares.chunk * threads as u64;
                    prop_assert!(shares.fixed + query_bytes + chunks + shares.matches + shares.tables <= memory);
                }
                Err(BatchError::JoinMemory { least, .. }) => {
                    let enough = shares(least * MIB, threads);
                    prop_assert!(query_bytes * 2 <= enough.left, "{least} MiB are refused while queries are read");
                    prop_assert!(enough.after::<u64>(query_bytes, queries, distance).is_ok(), "{least} MiB are refused");
                }
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
    }
}
