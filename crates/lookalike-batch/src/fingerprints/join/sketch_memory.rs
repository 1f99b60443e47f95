//! Divides `--memory` among the parts of a join of sketches.
//!
//! A fixed part is for code, threads and reading. Sketches, their names and the tables that order them get a share of the rest, and are in files
//! beyond that: see [`table_memory`](crate::spill::table_memory). A quarter of what they leave is for pairs that wait to be sorted.

use crate::error::BatchError;
use crate::settings::JobLimits;
use crate::spill::table_memory::TableShareSizes;

const MIB: u64 = 1 << 20;
/// Minimum memory besides the tables, for pairs that wait and for the comparison.
const MIN_MEMORY: u64 = 4 * MIB;
/// Maximum bytes of pairs that wait in memory; more are written to disk even if memory is left.
const MAX_PAIR_BYTES: u64 = 512 * MIB;
/// Bytes of tables for each sketch besides its own: its place in the order and in a band, twice while these are sorted.
const PLACE_BYTES: u64 = 40;

/// The memory of a join of sketches, in bytes.
pub(super) struct SketchMemory {
    limit: u64,
    fixed: u64,
    left: u64,
}

impl SketchMemory {
    pub(super) fn new(limits: &JobLimits) -> Self {
        let fixed = 24 * MIB + limits.workers() as u64 * 4 * MIB;
        Self {
            limit: limits.memory,
            fixed,
            left: limits.memory.saturating_sub(fixed),
        }
    }

    /// Returns the share of tables.
    pub(super) fn tables(&self) -> TableShareSizes {
        TableShareSizes::of(self.left)
    }

    /// Returns the bytes for pairs that wait, next to `count` sketches of `sketch_bytes` bytes with names of `name_bytes` bytes.
    ///
    /// # Errors
    /// [`BatchError::SketchMemory`] if too little is left; it states the limit that is enough.
    pub(super) fn pairs(
        &self,
        sketch_bytes: u64,
        name_bytes: u64,
        count: u64,
    ) -> Result<u64, BatchError> {
        // Sketches are in memory twice while duplicates are removed.
        let tables = 2 * sketch_bytes + name_bytes + PLACE_BYTES * count;
        // The shares of tables are parts of `left`.
        let left = self.left - tables.min(self.tables().all());
        if left < MIN_MEMORY {
            let least = TableShareSizes::min_memory_beside(MIN_MEMORY).min(tables + MIN_MEMORY);
            return Err(BatchError::SketchMemory {
                limit: self.limit,
                least: (self.fixed + least).div_ceil(MIB),
            });
        }
        Ok((left / 4).min(MAX_PAIR_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_given_away_fits_and_a_refusal_says_what_is_enough(
            memory in prop_oneof![0..128 * MIB, 0..(64_u64 << 30)],
            threads in 1..65_usize,
            sketches in prop_oneof![0..16 * MIB, 0..(64_u64 << 30)],
            names in 0..(1_u64 << 30),
            count in prop_oneof![0..100_000_u64, 0..4_000_000_000_u64],
        ) {
            let with = |memory: u64| SketchMemory::new(&JobLimits { memory, threads });
            let memory = with(memory);
            match memory.pairs(sketches, names, count) {
                Ok(pairs) => {
                    let tables = (2 * sketches + names + PLACE_BYTES * count).min(memory.tables().all());
                    prop_assert!(memory.fixed + tables + 4 * pairs <= memory.limit);
                }
                Err(BatchError::SketchMemory { least, .. }) => {
                    prop_assert!(with(least * MIB).pairs(sketches, names, count).is_ok());
                    // Whatever their number: the rest goes to disk.
                    prop_assert!(least * MIB <= memory.fixed + 12 * MIB);
                }
                Err(error) => prop_assert!(false, "{error}"),
            }
        }
    }
}
