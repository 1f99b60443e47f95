//! Divides `--memory` among the parts of a decision by fingerprints.
//!
//! A fixed part is for code, threads and reading. Tables of fingerprints, ids and classes get a share of the rest, and are in files beyond that: see
//! [`table_memory`](crate::spill::table_memory). Of what tables leave, a quarter is for pairs in memory, and the remainder is scratch memory of the
//! join.

use lookalike_hamming::Word;

use super::error::ClusterError;
use super::sorted_fingerprints::SortedKeys;
use crate::settings::JobLimits;
use crate::spill::table_memory::TableShareSizes;

const MIB: u64 = 1 << 20;
/// Maximum bytes of pairs that wait in memory; more are written to disk even if memory is left.
const MAX_PAIR_BYTES: u64 = 512 * MIB;
/// Minimum memory of a join, besides the fingerprints.
const MIN_JOIN_MEMORY: u64 = 4 * MIB;
/// Bytes of a class in tables besides its fingerprint: its best document, its number of documents, and its rank in both directions.
const CLASS_BYTES: u64 = 4 + 4 + 8;
/// Maximum bytes of a class that always stay in memory: its survivor and the distance to it, or two numbers while components are found.
const DECISION_BYTES: u64 = 8;
/// Bytes of an id that always stay in memory while equal ids are merged.
const JOINED_BYTES: u64 = 4;

/// Shares of the memory, in bytes.
#[derive(Clone, Copy)]
pub(super) struct MemoryShares {
    limit: u64,
    fixed: u64,
    left: u64,
    /// Bytes of tables that exist until the end, besides those of each stage.
    held: u64,
    /// Bytes for pairs that wait in memory, next to fingerprints.
    pub(super) pairs: u64,
    /// Bytes for pairs that wait in memory, next to the ids of a list.
    pub(super) list_pairs: u64,
    /// Bytes of the scratch memory of a join.
    pub(super) join: u64,
}

impl MemoryShares {
    pub(super) fn new(limits: &JobLimits) -> Self {
        let fixed = 24 * MIB + limits.workers() as u64 * 4 * MIB;
        // 0 if not even the fixed part fits; the first share that is asked for then fails and names a limit that is enough.
        let left = limits.memory.saturating_sub(fixed);
        Self {
            limit: limits.memory,
            fixed,
            left,
            held: 0,
            pairs: 0,
            list_pairs: (left / 8).clamp(MIB, MAX_PAIR_BYTES),
            join: 0,
        }
    }

    /// Returns the shares next to tables of `tables` bytes that exist until the end.
    pub(super) fn reserving_tables(self, tables: u64) -> Self {
        Self {
            held: tables,
            ..self
        }
    }

    /// Returns the share of tables.
    pub(super) fn tables(&self) -> TableShareSizes {
        TableShareSizes::of(self.left)
    }

    /// Returns the bytes that tables of `tables` bytes leave.
    fn remaining_after(&self, tables: u64) -> u64 {
        // Tables beyond their share are in files, so they never take more than that.
        let tables = (self.held + tables).min(self.tables().all());
        self.left.saturating_sub(tables)
    }

    fn refusal(&self, what: &'static str, least: u64) -> ClusterError {
        ClusterError::Memory {
            what,
            limit: self.limit,
            least: (self.fixed + least).div_ceil(MIB),
        }
    }

    /// Returns the bytes of `count` fingerprints while pairs are found: the sorted fingerprints, a mark for each, and a number for each 64 marks.
    fn fingerprint_bytes<W: Word>(count: u64) -> u64 {
        SortedKeys::<W>::memory(count) + count / 8 + count / 16
    }

    /// Divides the memory that is left next to `count` fingerprints.
    ///
    /// # Errors
    /// If too little is left for a join.
    pub(super) fn after_fingerprints<W: Word>(self, count: u64) -> Result<Self, ClusterError> {
        self.after_tables(Self::fingerprint_bytes::<W>(count), "the fingerprints")
    }

    /// Divides the memory that is left next to `count` sketches of `bytes` bytes, and next to the columns of numbers for ordering and banding them.
    pub(super) fn after_sketches(self, bytes: u64, count: u64) -> Result<Self, ClusterError> {
        self.after_tables(2 * bytes + 40 * count, "the sketches")
    }

    fn after_tables(self, tables: u64, what: &'static str) -> Result<Self, ClusterError> {
        const MIN_MEMORY: u64 = MIN_JOIN_MEMORY + MIB;
        let left = self.remaining_after(tables);
        if left < MIN_MEMORY {
            let least =
                // The smaller of two ways: with full shares of tables in files, or with all tables in memory.
                TableShareSizes::min_memory_beside(MIN_MEMORY).min(self.held + tables + MIN_MEMORY);
            return Err(self.refusal(what, least));
        }
        let pairs = (left / 4).clamp(MIB, MAX_PAIR_BYTES);
        Ok(Self {
            join: left - pairs,
            pairs,
            ..self
        })
    }

    /// Returns the bytes for feature sets while texts are read.
    pub(super) fn texts(&self) -> u64 {
        self.left / 4
    }

    /// Fails if a list's ids and equal pairs, of `used` bytes, leave too little memory for a decision about them.
    pub(super) fn ensure_list(&self, used: u64, ids: u64) -> Result<(), ClusterError> {
        // Columns double when they grow.
        let tables = 2 * used + ids * (4 + CLASS_BYTES);
        let resident = ids * (JOINED_BYTES + DECISION_BYTES);
        if resident + 2 * self.list_pairs <= self.remaining_after(tables) {
            return Ok(());
        }
        // Pairs take a quarter of the memory, but at least 2 MiB and at most twice `MAX_PAIR_BYTES`.
        // Tables in files take 5/8 of `left` and pairs 2/8, so 1/8 must hold what is resident. In memory, `left` is 4/3 of tables and residents.
        let beside = |pairs| TableShareSizes::min_memory_beside(resident + pairs);
        let in_files = (8 * (resident + 8)).min(beside(2 * MAX_PAIR_BYTES));
        let in_files = in_files.max(beside(2 * MIB));
        let all = self.held + tables + resident;
        let in_memory = all + (all / 3).clamp(2 * MIB, 2 * MAX_PAIR_BYTES) + 8;
        Err(self.refusal("the ids of the pairs", in_files.min(in_memory)))
    }

    /// Returns the memory for sorting pairs, next to `classes` classes, other tables of `tables` bytes, and `held` bytes in memory.
    pub(super) fn sorting(
        &self,
        classes: u64,
        tables: u64,
        held: u64,
    ) -> Result<u64, ClusterError> {
        let tables = tables + classes * CLASS_BYTES;
        // 2 MiB, because a quarter of the rest goes to pairs, and at least one MiB.
        let resident = classes * DECISION_BYTES + held + 2 * MIB;
        match self.remaining_after(tables).checked_sub(resident) {
            Some(left) => Ok((left / 4).clamp(MIB, MAX_PAIR_BYTES)),
            None => {
                let least = self.held + tables + resident;
                let least = TableShareSizes::min_memory_beside(resident).min(least);
                Err(self.refusal("the fingerprints that have a neighbour", least))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the limit that an error asks for, in bytes.
    fn asked(error: &ClusterError) -> u64 {
        match error {
            ClusterError::Memory { least, .. } => least * MIB,
            _ => unreachable!("all refusals here are of memory"),
        }
    }

    #[test]
    fn pairs_beyond_their_maximum_were_asked_for_with_a_long_list() {
        let count = 1_000_000_000;
        let with = |memory: u64| {
            let shares = MemoryShares::new(&JobLimits { memory, threads: 1 });
            shares.ensure_list(8 * count, count)
        };
        let least = asked(&with(MIB).unwrap_err());
        assert!(with(least).is_ok());
        // Resident are 12 bytes for each id, and a gibibyte of pairs. Nothing else needs the memory.
        assert!(with(least - 16 * MIB).is_err());
    }

    proptest! {
        #[test]
        fn shares_stay_within_the_memory_and_a_refusal_says_what_is_enough(
            memory in prop_oneof![0..512 * MIB, 0..(64_u64 << 30)],
            threads in 1..65_usize,
            count in prop_oneof![0..10_000_u64, 0..4_000_000_000_u64],
            used in 0..(64_u64 << 30),
            held in prop_oneof![Just(0), 0..(64_u64 << 30)],
        ) {
            let with = |memory: u64| MemoryShares::new(&JobLimits { memory, threads }).reserving_tables(held);
            let shares = with(memory);
            match shares.after_fingerprints::<u64>(count) {
                Ok(divided) => {
                    let tables = held + MemoryShares::fingerprint_bytes::<u64>(count);
                    let tables = tables.min(shares.tables().all());
                    let taken = shares.fixed + tables + divided.pairs + divided.join;
                    prop_assert!(taken <= memory, "{taken} of {memory}");
                }
                Err(error) => prop_assert!(with(asked(&error)).after_fingerprints::<u64>(count).is_ok(), "{error}"),
            }
            if let Err(error) = shares.after_sketches(used, count) {
                prop_assert!(with(asked(&error)).after_sketches(used, count).is_ok(), "{error}");
            }
            if let Err(error) = shares.ensure_list(used, count) {
                prop_assert!(with(asked(&error)).ensure_list(used, count).is_ok(), "{error}");
            }
            if let Err(error) = shares.sorting(count, used, used / 50) {
                prop_assert!(with(asked(&error)).sorting(count, used, used / 50).is_ok(), "{error}");
            }
        }
    }
}
