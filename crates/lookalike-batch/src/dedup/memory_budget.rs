//! Division of `--memory`.
//!
//! The limit is on the resident size of the process. A fixed part is for code, chunks in flight and each thread's
//! tools; of the rest the feature sets may keep half in memory while reading, a third of that those of visible texts, keys a twelfth,
//! and the tables of documents and groups take what they need: when that is more than there is, the job stops and says how much would
//! do, instead of breaking its promise.

use lookalike::Scheme;
use lookalike_corpus::{Compression, InputOptions, Inputs, Source};

use crate::dedup::candidate_groups::CandidateGroups;
use crate::dedup::decision_table::NumberedSimilarity;
use crate::dedup::frequency::{CounterPlan, FeatureFrequency};
use crate::dedup::seen_texts::SeenTexts;
use crate::dedup::survivors::settling_bytes;
use crate::document_memory::{DocumentUse, fixed_bytes};
use crate::error::BatchError;
use crate::settings::JobLimits;

const MIB: u64 = 1 << 20;

/// Bytes of text for each counter of features. On 2 GB of manual pages four times the counters saved an eighth of the visits and cost as much
/// in cache misses.
const BYTES_PER_COUNTER: u64 = 256;

/// Bytes of text of which all documents are counted.
const ALL_COUNTED: u64 = 64 * MIB;

/// Of more text, one document in so many is counted: an eighth more candidates, and adding costs next to nothing.
const SAMPLING: u64 = 4;

/// Bytes of text for each byte of compressed input, roughly.
const COMPRESSION_RATIO: u64 = 4;

/// Remainder of the limit as a job goes on; see the module's header.
pub(crate) struct DedupMemory {
    limit: u64,
    fixed: u64,
    used: u64,
}

/// Bytes of text that inputs may hold, roughly.
pub(crate) fn expected_text(inputs: &Inputs) -> u64 {
    let of = |source: &Source| match source.compression {
        Compression::None => source.bytes,
        _ => source.bytes.saturating_mul(COMPRESSION_RATIO),
    };
    inputs.sources.iter().map(of).sum()
}

impl DedupMemory {
    /// The budget of a job whose texts are read so.
    pub(crate) fn new(limits: &JobLimits, scheme: &Scheme, options: &InputOptions) -> Self {
        Self {
            limit: limits.memory,
            fixed: fixed_bytes(limits, DocumentUse::Features(scheme), options),
            used: 0,
        }
    }

    fn left(&self) -> u64 {
        self.limit
            .saturating_sub(self.fixed)
            .saturating_sub(self.used)
    }

    /// Counters for the features of so many bytes of text; they take a sixteenth of the memory, at most, whatever the threads take.
    pub(crate) fn frequency(&mut self, text_bytes: u64) -> FeatureFrequency {
        let frequency = FeatureFrequency::with_counters(CounterPlan {
            wanted: text_bytes / BYTES_PER_COUNTER,
            most: self.limit / 16 / FeatureFrequency::CELL_BYTES,
            sampling: match text_bytes < ALL_COUNTED {
                true => 1,
                false => SAMPLING,
            },
        });
        self.used += frequency.bytes();
        frequency
    }

    /// Gives so many bytes back.
    pub(crate) fn release(&mut self, bytes: u64) {
        self.used -= bytes;
    }

    /// Bytes of feature sets that stay in memory, of each of so many kinds.
    pub(crate) fn sets(&self, kinds: usize) -> u64 {
        self.left() / 2 / kinds as u64
    }

    /// Bytes of candidate keys, or of pairs, that stay in memory.
    pub(crate) fn keys(&self) -> u64 {
        self.left() / 12
    }

    /// Bytes of records that wait for their place in the order of the results, when little else is left.
    pub(crate) fn records(&self) -> u64 {
        self.left() / 6
    }

    /// Memory that the tables of the scan, and the feature sets beside them, may take while it reads.
    pub(crate) fn reading(&self) -> ReadingBudget {
        ReadingBudget {
            left: self.left().saturating_sub(self.keys()),
            fixed: self.fixed + self.used,
        }
    }

    /// Bytes that are left for groups.
    pub(crate) fn for_groups(&self) -> u64 {
        self.left()
    }

    /// Error for groups that need more than is left.
    pub(crate) fn refuse_groups(&self, needed: u64) -> BatchError {
        self.refuse("the index of shared features", needed)
    }

    fn refuse(&self, what: &'static str, needed: u64) -> BatchError {
        BatchError::Memory {
            what,
            needed,
            left: self.left(),
            least: self.fixed + (self.used + needed) * 3 / 2,
        }
    }

    /// Takes the tables of a scan off, of so many bytes, documents and classes, and what is made of them until all is decided.
    pub(crate) fn tables(
        &mut self,
        bytes: u64,
        documents: usize,
        classes: usize,
    ) -> Result<(), BatchError> {
        let (documents, classes) = (documents as u64, classes as u64);
        // Groups have gone when documents are decided on.
        let deciding = deciding_bytes(documents, classes);
        if bytes + deciding > self.left() {
            return Err(self.refuse("the table of documents", bytes + deciding));
        }
        let comparing = comparing_bytes(documents, classes);
        self.take("the table of documents", bytes + comparing)
    }

    /// Takes the groups off, and what comparing with survivors touches beside those of so many ranks.
    pub(crate) fn groups(
        &mut self,
        groups: &CandidateGroups,
        ranks: usize,
        threads: usize,
    ) -> Result<(), BatchError> {
        let needed = groups.bytes() + settling_bytes(groups, ranks, threads);
        self.take("the index of shared features", needed)
    }

    /// Takes off how near so many ranks are to others: nearly all that share a key, at worst.
    pub(crate) fn near_ranks(&mut self, ranks: usize) -> Result<(), BatchError> {
        self.take("the index of shared features", NEAR * ranks as u64)
    }

    fn take(&mut self, what: &'static str, needed: u64) -> Result<(), BatchError> {
        if needed > self.left() {
            return Err(self.refuse(what, needed));
        }
        self.used += needed;
        Ok(())
    }
}

/// Memory that may be taken while records are read: counted from the first one, so that a job that cannot end is refused before
/// it has taken what it must not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadingBudget {
    left: u64,
    fixed: u64,
}

impl ReadingBudget {
    /// Of so many bytes, whatever was taken before them.
    pub(crate) fn new(left: u64, fixed: u64) -> Self {
        Self { left, fixed }
    }

    /// Memory that `tables` leave for feature sets, after `read` of `total` bytes of input; an error where they leave nothing.
    /// What all of the input will need is guessed from what this part of it does.
    pub(crate) fn left_by(&self, tables: u64, read: u64, total: u64) -> Result<u64, BatchError> {
        self.left.checked_sub(tables).ok_or_else(|| {
            let parts = (total as f64 / read.max(1) as f64).max(1.0);
            let needed = (tables as f64 * parts) as u64;
            BatchError::Memory {
                what: "the table of documents",
                needed,
                left: self.left,
                least: self.fixed + needed / 2 * 3,
            }
        })
    }
}

/// Bytes for each class that threads hold for moments while they make groups of keys. Measured: two million short records keep to the limit
/// with it, and were 1 % above it without.
const GROUPING: u64 = 4;

/// Bytes of how near a document or class is to another.
const NEAR: u64 = size_of::<NumberedSimilarity>() as u64;

/// Bytes of orders and decisions of so many documents and classes while these are compared, beside the tables of both, groups, and how near
/// classes are.
fn comparing_bytes(documents: u64, classes: u64) -> u64 {
    // One order; of a class the best document, an order, a column by rank beside those of the table, and what is kept.
    4 * documents + (16 + GROUPING) * classes
}

/// The same while documents are decided on: groups have gone, and columns by rank.
fn deciding_bytes(documents: u64, classes: u64) -> u64 {
    // Two orders and the decisions on documents; of a class the best document, two orders and the decision. Nearly all are near another,
    // at worst.
    (12 + NEAR) * documents + (16 + NEAR) * classes
}

/// Bytes that so many documents and classes need beside their tables once all are read, whatever comes then.
pub(crate) fn later_bytes(documents: u64, classes: u64) -> u64 {
    // The table of texts; their hashes are taken out of it piece by piece.
    let hashing = SeenTexts::CLASS_BYTES * classes;
    // Hashes, and keys to sort by, twice where several threads do.
    let sorting_ids = 24 * documents + 16 * classes;
    // Hashes of records have gone, in whose place orders are; of those of texts a half is left.
    let sorting_classes = (8 + 4 + 24) * classes;
    let decided = deciding_bytes(documents, classes).saturating_sub(8 * documents);
    let most = hashing.max(sorting_ids);
    most.max(sorting_classes).max(decided) + GROUPING * classes
}

/// Bytes of what is kept of something that could not be read, with a reason of so many bytes.
pub(crate) fn skip_bytes(reason: usize) -> u64 {
    reason as u64 + 192
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counters_are_part_of_what_a_refusal_while_reading_asks_for() {
        let reading = |limit| {
            let mut budget = DedupMemory {
                limit,
                fixed: 30 * MIB,
                used: 0,
            };
            let _frequency = budget.frequency(MIB);
            budget.reading().left_by(40 * MIB, 1, 1)
        };
        let Err(BatchError::Memory { least, .. }) = reading(64 * MIB) else {
            panic!("tables of 40 MiB fit 34");
        };
        assert!(reading(least).is_ok());
        // The smallest tables: nearly all that is wanted is fixed.
        let small = |limit| {
            let mut budget = DedupMemory {
                limit,
                fixed: 36 * MIB,
                used: 0,
            };
            let _frequency = budget.frequency(0);
            budget.reading().left_by(1, 1, 1)
        };
        let Err(BatchError::Memory { least, .. }) = small(MIB) else {
            panic!("36 MiB fit one");
        };
        assert!(small(least + MIB).is_ok());
    }

    proptest! {
        #[test]
        fn what_a_refusal_calls_enough_is_enough(
            fixed in 0..1_u64 << 40,
            room in 0..1_u64 << 40,
            taken in prop::collection::vec(0..1_u64 << 38, 1..8),
        ) {
            let budget = |limit| DedupMemory { limit, fixed, used: 0 };
            let mut small = budget(fixed + room);
            let refused = taken.iter().find_map(|&bytes| small.take("tables", bytes).err());
            prop_assert!(small.used <= room);
            if let Some(BatchError::Memory { least, .. }) = refused {
                let mut enough = budget(least);
                let before = taken.iter().scan(0, |sum, bytes| { *sum += bytes; Some(*sum) });
                let fitting = before.take_while(|&sum| sum <= room).count();
                for &bytes in &taken[..=fitting] {
                    prop_assert!(enough.take("tables", bytes).is_ok());
                }
            } else {
                prop_assert_eq!(small.used, taken.iter().sum::<u64>());
            }
        }

        #[test]
        fn what_reading_calls_enough_holds_all_tables(
            fixed in 0..1_u64 << 40,
            room in 0..1_u64 << 30,
            tables in 0..1_u64 << 40,
        ) {
            let reading = |limit| DedupMemory { limit, fixed, used: 0 }.reading();
            if let Err(BatchError::Memory { least, needed, .. }) = reading(fixed + room).left_by(tables, 1, 1) {
                prop_assert_eq!(needed, tables);
                prop_assert!(reading(least).left_by(tables, 1, 1).is_ok());
            } else {
                prop_assert!(tables <= room);
            }
        }
    }

    #[test]
    fn what_all_will_need_is_guessed_from_a_part() {
        let budget = ReadingBudget::new(100, 10);
        assert_eq!(budget.left_by(60, 1, 4).unwrap(), 40);
        let Err(BatchError::Memory { needed, least, .. }) = budget.left_by(120, 25, 100) else {
            panic!("120 of 100 bytes");
        };
        assert_eq!((needed, least), (480, 730));
    }
}
