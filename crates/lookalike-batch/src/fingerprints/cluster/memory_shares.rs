//! Division of `--memory` in a decision by fingerprints.
//!
//! A fixed part is for code, threads and reading. Tables of fingerprints, ids and classes take their share of the rest, and lie in files beyond
//! that: see [`table_memory`](crate::spill::table_memory). Of what they leave, a quarter is for pairs that wait, and the remainder for the
//! scratch of the join.

use lookalike_hamming::Word;

use super::error::ClusterError;
use super::sorted_fingerprints::SortedKeys;
use crate::settings::JobLimits;
use crate::spill::table_memory::TableShareSizes;

const MIB: u64 = 1 << 20;
/// Pairs that wait in memory beyond this are written anyway.
const MOST_PAIRS: u64 = 512 * MIB;
/// Least memory of a join beside the fingerprints.
const LEAST_JOIN: u64 = 4 * MIB;
/// Bytes of a class in tables, besides its fingerprint: the best of its documents, their number, its rank both ways, and its place among
/// the results.
const CLASS_BYTES: u64 = 4 + 4 + 8 + 12;
/// Bytes of a class that stay in memory, at most: its survivor and the distance to it, or two numbers while components are found.
const DECISION_BYTES: u64 = 8;
/// Bytes of an id that stay in memory while equal ones are joined.
const JOINED_BYTES: u64 = 4;

/// Shares of the memory, in bytes.
#[derive(Clone, Copy)]
pub(super) struct MemoryShares {
    limit: u64,
    fixed: u64,
    left: u64,
    /// Of tables that are there to the end, beside those of each stage.
    held: u64,
    /// Of pairs that wait, beside fingerprints.
    pub(super) pairs: u64,
    /// The same, beside the ids of a list.
    pub(super) list_pairs: u64,
    /// Of the scratch of a join.
    pub(super) join: u64,
}

impl MemoryShares {
    pub(super) fn new(limits: &JobLimits) -> Self {
        let fixed = 24 * MIB + limits.workers() as u64 * 4 * MIB;
        let left = limits.memory.saturating_sub(fixed);
        Self {
            limit: limits.memory,
            fixed,
            left,
            held: 0,
            pairs: 0,
            list_pairs: (left / 8).clamp(MIB, MOST_PAIRS),
            join: 0,
        }
    }

    /// The same beside tables of so many bytes, which are there to the end.
    pub(super) fn holding(self, tables: u64) -> Self {
        Self {
            held: tables,
            ..self
        }
    }

    /// The share of tables.
    pub(super) fn tables(&self) -> TableShareSizes {
        TableShareSizes::of(self.left)
    }

    /// Bytes that tables of so many bytes leave.
    fn beside(&self, tables: u64) -> u64 {
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

    /// Bytes of so many fingerprints while pairs are found: the sorted ones, a mark and its number for each 64.
    fn fingerprint_bytes<W: Word>(count: u64) -> u64 {
        SortedKeys::<W>::memory(count) + count / 8 + count / 16
    }

    /// Memory left beside so many fingerprints, shared out.
    ///
    /// # Errors
    /// If there is not enough of it for a join.
    pub(super) fn beside_fingerprints<W: Word>(self, count: u64) -> Result<Self, ClusterError> {
        self.beside_tables(Self::fingerprint_bytes::<W>(count), "the fingerprints")
    }

    /// The same beside sketches of so many bytes, and columns of numbers while they are put in order and into bands.
    pub(super) fn beside_sketches(self, bytes: u64, count: u64) -> Result<Self, ClusterError> {
        self.beside_tables(2 * bytes + 40 * count, "the sketches")
    }

    fn beside_tables(self, tables: u64, what: &'static str) -> Result<Self, ClusterError> {
        const LEAST: u64 = LEAST_JOIN + MIB;
        let left = self.beside(tables);
        if left < LEAST {
            let least = TableShareSizes::least_beside(LEAST).min(self.held + tables + LEAST);
            return Err(self.refusal(what, least));
        }
        let pairs = (left / 4).clamp(MIB, MOST_PAIRS);
        Ok(Self {
            join: left - pairs,
            pairs,
            ..self
        })
    }

    /// Bytes of feature sets that are held while texts are read.
    pub(super) fn texts(&self) -> u64 {
        self.left / 4
    }

    /// Refuses ids and equal pairs of a list, of so many bytes, that leave no room for a decision about them.
    pub(super) fn ensure_list(&self, used: u64, ids: u64) -> Result<(), ClusterError> {
        // Columns grow by doubling.
        let tables = 2 * used + ids * (4 + CLASS_BYTES);
        let resident = ids * (JOINED_BYTES + DECISION_BYTES);
        if resident + 2 * self.list_pairs <= self.beside(tables) {
            return Ok(());
        }
        // Pairs take a quarter of any memory, and two MiB at least.
        let in_files = TableShareSizes::least_beside(resident + 2 * MIB).max(8 * (resident + 8));
        let tables = self.held + tables;
        let in_memory = tables + resident + ((tables + resident) / 3).max(2 * MIB) + 8;
        Err(self.refusal("the ids of the pairs", in_files.min(in_memory)))
    }

    /// Memory for pairs while they are sorted, beside so many classes, tables of so many other bytes, and what is held in memory.
    pub(super) fn sorting(
        &self,
        classes: u64,
        tables: u64,
        held: u64,
    ) -> Result<u64, ClusterError> {
        let tables = tables + classes * CLASS_BYTES;
        let resident = classes * DECISION_BYTES + held + 2 * MIB;
        match self.beside(tables).checked_sub(resident) {
            Some(left) => Ok((left / 4).clamp(MIB, MOST_PAIRS)),
            None => {
                let least = self.held + tables + resident;
                let least = TableShareSizes::least_beside(resident).min(least);
                Err(self.refusal("the fingerprints that have a neighbour", least))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The limit that an error asks for.
    fn asked(error: &ClusterError) -> u64 {
        match error {
            ClusterError::Memory { least, .. } => least * MIB,
            _ => unreachable!("all refusals here are of memory"),
        }
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
            let with = |memory: u64| MemoryShares::new(&JobLimits { memory, threads }).holding(held);
            let shares = with(memory);
            match shares.beside_fingerprints::<u64>(count) {
                Ok(divided) => {
                    let tables = held + MemoryShares::fingerprint_bytes::<u64>(count);
                    let tables = tables.min(shares.tables().all());
                    let taken = shares.fixed + tables + divided.pairs + divided.join;
                    prop_assert!(taken <= memory, "{taken} of {memory}");
                }
                Err(error) => prop_assert!(with(asked(&error)).beside_fingerprints::<u64>(count).is_ok(), "{error}"),
            }
            if let Err(error) = shares.beside_sketches(used, count) {
                prop_assert!(with(asked(&error)).beside_sketches(used, count).is_ok(), "{error}");
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
