//! Division of `--memory` in a decision by fingerprints.
//!
//! A fixed part is for code, threads and reading. While pairs are found, fingerprints take about ten bytes each (of 128 bits eighteen); a quarter of the
//! rest is for pairs that wait, and what remains for the tables of the join. Later, classes take their share in the place of fingerprints.

use lookalike_hamming::Word;

use super::error::ClusterError;
use super::sorted_fingerprints::SortedKeys;
use crate::settings::JobLimits;

const MIB: u64 = 1 << 20;
/// Pairs that wait in memory beyond this are written anyway.
const MOST_PAIRS: u64 = 512 * MIB;
/// Least memory of a join beside the fingerprints.
const LEAST_JOIN: u64 = 4 * MIB;
/// Bytes of a class besides its fingerprint: the best of its documents, their number, its rank both ways, survivor, distance, and its
/// place among the results.
const CLASS_BYTES: u64 = 4 + 4 + 8 + 5 + 12;

/// Shares of the memory, in bytes.
pub(super) struct MemoryShares {
    limit: u64,
    fixed: u64,
    left: u64,
    /// Of pairs that wait, beside fingerprints.
    pub(super) pairs: u64,
    /// The same, beside the ids of a list.
    pub(super) list_pairs: u64,
    /// Of the tables of a join.
    pub(super) join: u64,
}

impl MemoryShares {
    pub(super) fn new(limits: &JobLimits) -> Self {
        let fixed = 24 * MIB + limits.threads as u64 * 4 * MIB;
        let left = limits.memory.saturating_sub(fixed);
        Self {
            limit: limits.memory,
            fixed,
            left,
            pairs: 0,
            list_pairs: (left / 8).clamp(MIB, MOST_PAIRS),
            join: 0,
        }
    }

    /// Bytes for so many fingerprints while pairs are found: the sorted ones, a mark and its number for each 64.
    fn fingerprint_bytes<W: Word>(count: u64) -> u64 {
        SortedKeys::<W>::memory(count) + count / 8 + count / 16
    }

    /// Most fingerprints that leave room for a join.
    pub(super) fn most_fingerprints<W: Word>(&self) -> u64 {
        let room = self.left.saturating_sub(LEAST_JOIN + MIB);
        // For sixteen at a time, where the eighth and the sixteenth of a byte are whole.
        room * 16 / Self::fingerprint_bytes::<W>(16)
    }

    /// The error of more fingerprints than fit.
    pub(super) fn refusal<W: Word>(&self, what: &'static str, count: u64) -> ClusterError {
        let bytes = self.fixed + Self::fingerprint_bytes::<W>(count) + LEAST_JOIN + 2 * MIB;
        ClusterError::Memory {
            what,
            limit: self.limit,
            least: bytes.div_ceil(MIB),
        }
    }

    /// Memory left beside so many fingerprints, shared out.
    pub(super) fn beside_fingerprints<W: Word>(self, count: u64) -> Self {
        let left = self
            .left
            .saturating_sub(Self::fingerprint_bytes::<W>(count));
        let pairs = (left / 4).clamp(MIB, MOST_PAIRS);
        Self {
            join: left.saturating_sub(pairs).max(LEAST_JOIN),
            pairs,
            ..self
        }
    }

    /// Bytes of feature sets that are held while texts are read.
    pub(super) fn texts(&self) -> u64 {
        self.left / 4
    }

    /// Refuses ids and equal pairs of a list that take so many bytes and leave no room for a decision about them.
    pub(super) fn ensure_list(&self, used: u64, ids: u64) -> Result<(), ClusterError> {
        // Vectors grow by doubling.
        let needed = 2 * used + ids * (4 + CLASS_BYTES) + 2 * self.list_pairs;
        match needed <= self.left {
            true => Ok(()),
            false => Err(ClusterError::Memory {
                what: "the ids of the pairs",
                limit: self.limit,
                least: (self.fixed + 2 * needed).div_ceil(MIB),
            }),
        }
    }

    /// Memory for pairs while they are sorted, beside so many classes, of which so many bytes of fingerprints and ids are held.
    pub(super) fn sorting(&self, classes: u64, held_bytes: u64) -> Result<u64, ClusterError> {
        let needed = classes * CLASS_BYTES + held_bytes + 2 * MIB;
        match self.left.checked_sub(needed) {
            Some(left) => Ok((left / 4).clamp(MIB, MOST_PAIRS)),
            None => Err(ClusterError::Memory {
                what: "the fingerprints that have a neighbour",
                limit: self.limit,
                least: (self.fixed + needed).div_ceil(MIB) + 4,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shares_stay_within_the_memory_and_a_refusal_says_what_is_enough(
            memory in prop_oneof![0..512 * MIB, 0..(64_u64 << 30)],
            threads in 1..65_usize,
            count in prop_oneof![0..10_000_u64, 0..2_000_000_000_u64],
        ) {
            let shares = MemoryShares::new(&JobLimits { memory, threads });
            if count <= shares.most_fingerprints::<u64>() {
                let fixed = shares.fixed;
                let shares = shares.beside_fingerprints::<u64>(count);
                let taken = fixed + MemoryShares::fingerprint_bytes::<u64>(count) + shares.pairs + shares.join;
                prop_assert!(taken <= memory + MIB, "{taken} of {memory}");
            } else {
                let ClusterError::Memory { least, .. } = shares.refusal::<u64>("they", count) else { unreachable!() };
                let enough = MemoryShares::new(&JobLimits { memory: least * MIB, threads });
                prop_assert!(count <= enough.most_fingerprints::<u64>(), "{least} MiB are refused");
            }
        }
    }
}
