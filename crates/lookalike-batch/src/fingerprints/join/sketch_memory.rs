//! Division of `--memory` in a join of sketches.
//!
//! A fixed part is for code, threads and reading. Sketches, names and what puts them in order take their share of the rest, and lie in files
//! beyond that: see [`table_memory`](crate::spill::table_memory). A quarter of what they leave is for pairs that wait to be sorted.

use crate::error::BatchError;
use crate::settings::JobLimits;
use crate::spill::table_memory::TableShareSizes;

const MIB: u64 = 1 << 20;
/// Least memory beside the tables: of pairs that wait, and of what is compared.
const LEAST: u64 = 4 * MIB;
/// Pairs that wait in memory beyond this are written anyway.
const MOST_PAIRS: u64 = 512 * MIB;
/// Bytes of tables for a sketch beside its own: its place in the order and in a band, twice while these are sorted.
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

    /// The share of tables.
    pub(super) fn tables(&self) -> TableShareSizes {
        TableShareSizes::of(self.left)
    }

    /// Bytes for pairs that wait, beside so many sketches and bytes of their names.
    ///
    /// # Errors
    /// [`BatchError::SketchMemory`]: too little is left, with the limit that would do.
    pub(super) fn pairs(
        &self,
        sketch_bytes: u64,
        name_bytes: u64,
        count: u64,
    ) -> Result<u64, BatchError> {
        // Sketches are there twice while each is taken once.
        let tables = 2 * sketch_bytes + name_bytes + PLACE_BYTES * count;
        let left = self.left - tables.min(self.tables().all());
        if left < LEAST {
            let least = TableShareSizes::least_beside(LEAST).min(tables + LEAST);
            return Err(BatchError::SketchMemory {
                limit: self.limit,
                least: (self.fixed + least).div_ceil(MIB),
            });
        }
        Ok((left / 4).min(MOST_PAIRS))
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
                    // However many: the rest goes to disk.
                    prop_assert!(least * MIB <= memory.fixed + 12 * MIB);
                }
                Err(error) => prop_assert!(false, "{error}"),
            }
        }
    }
}
