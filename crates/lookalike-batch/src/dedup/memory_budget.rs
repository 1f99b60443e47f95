//! Division of `--memory`.
//!
//! The limit is on the resident size of the process. A fixed part is for code, chunks in flight and each thread's tools. Of the rest,
//! tables of documents take up to [`DedupMemory::table_share`], and lie in files beyond that: see
//! [`table_memory`](crate::spill::table_memory). Of what they leave, feature sets may keep half in memory while reading, a third of that
//! those of visible texts, keys a twelfth. Groups take what is left, and go to disk if they need more.

use std::io;
use std::path::Path;

use lookalike::Scheme;
use lookalike_corpus::{Compression, InputOptions, Inputs, Source};

use crate::dedup::decision_table::NumberedSimilarity;
use crate::dedup::frequency::{CounterPlan, FeatureFrequency};
use crate::dedup::group_windows::StoredGroups;
use crate::dedup::seen_texts::SeenTexts;
use crate::dedup::survivors::settling_bytes;
use crate::document_memory::{DocumentUse, fixed_bytes};
use crate::error::BatchError;
use crate::settings::JobLimits;
use crate::spill::table_memory::TableShareSizes;

const MIB: u64 = 1 << 20;

/// Bytes of text for each counter of features. On 2 GB of manual pages four times the counters saved an eighth of the visits and cost as much
/// in cache misses.
const BYTES_PER_COUNTER: u64 = 256;

/// Bytes of text of which all documents are counted.
const ALL_COUNTED: u64 = 64 * MIB;

/// Of more text, one document in so many is counted: an eighth more candidates, and adding costs next to nothing.
const SAMPLING: u64 = 4;

/// Counters take one of so many parts of the memory, at most.
const COUNTER_SHARE: u64 = 16;

/// Keys take one of so many parts of what is left.
const KEYS_SHARE: u64 = 12;

/// Bytes of text for each byte of compressed input, roughly.
const COMPRESSION_RATIO: u64 = 4;

/// Share of the memory that is left, and a place for what does not fit.
pub(crate) struct MemoryShare<'a> {
    /// One of so many.
    pub(crate) of: u64,
    pub(crate) folder: &'a Path,
}

/// Remainder of the limit as a job goes on; see the module's header.
pub(crate) struct DedupMemory {
    limit: u64,
    fixed: u64,
    /// Taken by all but tables.
    used: u64,
    /// Bytes of tables, in memory and in files.
    tables: u64,
    /// Part of `used` that counters of features took.
    counters: u64,
    /// Part of `used` that groups took.
    grouped: u64,
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
            tables: 0,
            counters: 0,
            grouped: 0,
        }
    }

    /// Bytes beside the fixed part.
    fn all(&self) -> u64 {
        self.limit.saturating_sub(self.fixed)
    }

    fn left(&self) -> u64 {
        let tables = self.tables.min(self.table_share().all());
        self.all().saturating_sub(self.used + tables)
    }

    /// Bytes that tables may take.
    pub(crate) fn table_share(&self) -> TableShareSizes {
        TableShareSizes::of(self.all())
    }

    /// Counters for the features of so many bytes of text; they take a sixteenth of the memory, at most, whatever the threads take.
    pub(crate) fn frequency(&mut self, text_bytes: u64) -> FeatureFrequency {
        let plan = CounterPlan {
            wanted: text_bytes / BYTES_PER_COUNTER,
            most: self.limit / COUNTER_SHARE / FeatureFrequency::CELL_BYTES,
            sampling: match text_bytes < ALL_COUNTED {
                true => 1,
                false => SAMPLING,
            },
        };
        self.counters = plan.bytes();
        self.used += self.counters;
        FeatureFrequency::with_counters(plan)
    }

    /// Gives back what counters took.
    pub(crate) fn release_counters(&mut self) {
        self.used -= std::mem::take(&mut self.counters);
    }

    /// Bytes of feature sets that stay in memory, of each of so many kinds.
    pub(crate) fn sets(&self, kinds: usize) -> u64 {
        self.left() / 2 / kinds as u64
    }

    /// Bytes of candidate keys, or of pairs, that stay in memory.
    pub(crate) fn keys(&self) -> u64 {
        self.left() / KEYS_SHARE
    }

    /// Bytes of records that wait for their place in the order of the results, when little else is left.
    pub(crate) fn records(&self) -> u64 {
        self.left() / 3
    }

    /// Memory for feature sets, beside tables, while records are read.
    pub(crate) fn reading(&self) -> ReadingBudget {
        ReadingBudget {
            left: self.left().saturating_sub(self.keys()),
            tables: self.table_share().all(),
            fixed: self.fixed,
            used: self.used,
        }
    }

    /// Bytes for the search just below the threshold, when groups have gone.
    pub(crate) fn for_margin(&self) -> u64 {
        // Half: what groups gave back is in pieces. With less than some MiB it would read all feature sets again and again.
        (self.left() / 2).max(4 * MIB)
    }

    /// Bytes that are left for groups.
    pub(crate) fn for_groups(&self) -> u64 {
        self.left()
    }

    /// Error for groups that need more than is left.
    pub(crate) fn refuse_groups(&self, needed: u64) -> BatchError {
        let others = self.used + needed;
        // Either all tables are in memory too, or they take their share, which grows with the limit.
        let with_files = TableShareSizes::least_beside(others);
        BatchError::Memory {
            what: "the index of shared features",
            needed,
            left: self.left(),
            least: self.fixed + with_files.min(others + self.tables),
        }
    }

    /// Takes the tables of a scan off, of so many bytes, documents and classes, and what is made of them while groups are there.
    pub(crate) fn tables(&mut self, bytes: u64, documents: usize, classes: usize) {
        self.tables += bytes + comparing_bytes(documents as u64, classes as u64);
    }

    /// Takes off how near so many ranks are to others: nearly all that share a key, at worst.
    pub(crate) fn near_ranks(&mut self, ranks: usize) {
        self.tables += NEAR * ranks as u64;
    }

    /// Takes groups off that fit, with what comparing with survivors touches beside them, into a share of what is left; they go to a file in
    /// `folder` otherwise.
    pub(crate) fn groups(
        &mut self,
        groups: StoredGroups,
        threads: usize,
        share: MemoryShare<'_>,
    ) -> io::Result<StoredGroups> {
        let StoredGroups::InMemory(all) = &groups else {
            return Ok(groups);
        };
        let needed = all.bytes() + settling_bytes(all, threads);
        if needed > self.left() / share.of {
            return groups.into_file(share.folder);
        }
        self.used += needed;
        self.grouped += needed;
        Ok(groups)
    }

    /// Gives back what all groups took.
    pub(crate) fn release_groups(&mut self) {
        self.used -= std::mem::take(&mut self.grouped);
    }
}

/// Memory that feature sets may take while records are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadingBudget {
    left: u64,
    /// The most that tables take of it.
    tables: u64,
    fixed: u64,
    /// Bytes that others than tables took beside the fixed part.
    used: u64,
}

/// Bytes that must be left where keys have their part of it.
pub(crate) fn with_keys(bytes: u64) -> u64 {
    // A byte more for each number that was rounded down.
    bytes.saturating_mul(KEYS_SHARE).div_ceil(KEYS_SHARE - 1) + KEYS_SHARE
}

impl ReadingBudget {
    /// Memory that tables and `lists`, of what could not be read, leave for feature sets.
    ///
    /// # Errors
    /// If the lists, which stay in memory, do not fit beside the share of tables.
    pub(crate) fn left_by(&self, tables: u64, lists: u64) -> Result<u64, BatchError> {
        let beside_tables = self.left.saturating_sub(self.tables);
        match lists > beside_tables {
            true => Err(BatchError::Memory {
                what: "the list of what could not be read",
                needed: lists,
                left: beside_tables,
                least: self.least_for(lists),
            }),
            false => Ok(self.left.saturating_sub(tables.min(self.tables) + lists)),
        }
    }

    fn least_for(&self, lists: u64) -> u64 {
        // Of the memory beside the fixed part, without the shares of keys and of tables.
        const ALL: u64 = KEYS_SHARE * TableShareSizes::PARTS;
        const BESIDE: u64 = KEYS_SHARE * TableShareSizes::LEFT - TableShareSizes::PARTS;
        // Some bytes more for numbers that were rounded down.
        let others = lists + self.used + TableShareSizes::PARTS;
        self.fixed + (others * ALL).div_ceil(BESIDE)
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
    // One order; of a class the best document, an order, a column by rank beside those of the table, what is kept, the start of its list of
    // groups, what is left of it while lists are filled, and bits.
    4 * documents + (16 + 9 + GROUPING) * classes
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

    const FIXED: u64 = 30 * MIB;

    /// The budget of a job with these tables, which has used so many bytes besides.
    fn budget(limit: u64, tables: u64, used: u64) -> DedupMemory {
        DedupMemory {
            limit,
            fixed: FIXED,
            used,
            tables,
            counters: 0,
            grouped: 0,
        }
    }

    proptest! {
        #[test]
        fn groups_that_need_more_are_refused_with_the_least_that_does(
            limit in FIXED..FIXED + (1 << 36),
            tables in prop_oneof![0..1_u64 << 20, 0..1_u64 << 36],
            used in 0..1_u64 << 30,
            more in 1..1_u64 << 36,
        ) {
            let refusing = budget(limit, tables, used);
            let needed = refusing.for_groups() + more;
            let BatchError::Memory { least, .. } = refusing.refuse_groups(needed) else {
                panic!("another error");
            };
            prop_assert!(least > limit);
            prop_assert!(budget(least, tables, used).for_groups() >= needed);
            // Parts are of a whole number of bytes.
            prop_assert!(budget(least - 4 * TableShareSizes::PARTS, tables, used).for_groups() < needed);
        }

        #[test]
        fn lists_that_leave_nothing_are_refused_with_what_does(
            limit in FIXED..FIXED + (1 << 30),
            lists in 0..1_u64 << 30,
            tables in 0..1_u64 << 31,
            used in 0..1_u64 << 30,
        ) {
            let reading = budget(limit, 0, used).reading();
            match reading.left_by(tables, lists) {
                Ok(left) => prop_assert!(left + lists <= reading.left),
                Err(BatchError::Memory { least, needed, .. }) => {
                    prop_assert_eq!(needed, lists);
                    prop_assert!(least > limit);
                    prop_assert!(budget(least, 0, used).reading().left_by(tables, lists).is_ok());
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn tables_beyond_their_share_take_no_more_of_the_memory() {
        let limit = FIXED + 800 * MIB;
        let left = |tables| budget(limit, tables, 0).for_groups();
        assert_eq!(left(100 * MIB), 700 * MIB);
        assert_eq!(left(500 * MIB), 300 * MIB);
        assert_eq!(left(1 << 40), 300 * MIB);
    }
}
