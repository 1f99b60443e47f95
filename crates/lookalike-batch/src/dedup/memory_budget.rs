//! Division of `--memory`.
//!
//! The limit is on the resident size of the process. A fixed part is for code, chunks in flight and the tools of each thread. Of the rest,
//! tables of documents may take up to [`DedupMemory::table_share`]; further tables are in files: see
//! [`table_memory`](crate::spill::table_memory). Of what tables leave, feature sets may keep a half in memory while reading (those of visible
//! texts a third of that), and keys a twelfth. Groups take the rest, and go to disk if they need more.

use std::io;
use std::path::Path;

use lookalike_corpus::{Compression, Inputs, Source};

use crate::dedup::candidate_groups::StoredGroups;
use crate::dedup::decision_table::NumberedSimilarity;
use crate::dedup::frequency::{CounterPlan, FeatureFrequency};
use crate::dedup::seen_texts::SeenTexts;
use crate::dedup::survivors::settling_bytes;
use crate::error::BatchError;
use crate::spill::table_memory::TableShareSizes;

const MIB: u64 = 1 << 20;

/// Bytes of text per counter of features. On 2 GB of manual pages, four times as many counters saved an eighth of the visits but cost as much
/// in cache misses.
const BYTES_PER_COUNTER: u64 = 256;

/// Maximum number of bytes of text of which all documents are counted.
const ALL_COUNTED: u64 = 64 * MIB;

/// One document in this many is counted in longer texts: this gives an eighth more candidates, and counting costs almost nothing.
const SAMPLING: u64 = 4;

/// Counters take at most one part in this many of the memory.
const COUNTER_SHARE: u64 = 16;

/// Keys take one part in this many of the memory that is left.
const KEYS_SHARE: u64 = 12;

/// Approximate bytes of text per byte of compressed input.
const COMPRESSION_RATIO: u64 = 4;

/// The part of the limit that is left as a job proceeds; see the module's header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DedupMemory {
    limit: u64,
    fixed: u64,
    /// Bytes taken by everything except tables.
    used: u64,
    /// Bytes of tables, in memory and in files.
    tables: u64,
    /// Bytes of `used` that counters of features take.
    counters: u64,
    /// Bytes of `used` that groups take.
    grouped: u64,
}

/// Returns the approximate number of bytes of text in the inputs.
pub(crate) fn expected_text(inputs: &Inputs) -> u64 {
    let of = |source: &Source| match source.compression {
        Compression::None => source.bytes,
        _ => source.bytes.saturating_mul(COMPRESSION_RATIO),
    };
    inputs.sources.iter().map(of).sum()
}

impl DedupMemory {
    /// Creates a budget of `limit` bytes, of which the job takes `fixed` at any rate.
    pub(crate) fn new(limit: u64, fixed: u64) -> Self {
        Self {
            limit,
            fixed,
            used: 0,
            tables: 0,
            counters: 0,
            grouped: 0,
        }
    }

    /// Returns the number of bytes besides the fixed part.
    fn all(&self) -> u64 {
        self.limit.saturating_sub(self.fixed)
    }

    fn remaining(&self) -> u64 {
        // Tables beyond their share are in files.
        let tables = self.tables.min(self.table_share().all());
        self.all().saturating_sub(self.used + tables)
    }

    /// Returns the bytes that tables may take.
    pub(crate) fn table_share(&self) -> TableShareSizes {
        TableShareSizes::of(self.all())
    }

    /// Creates counters for the features of `text_bytes` bytes of text; they take at most a sixteenth of the memory, for any number of threads.
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

    /// Releases the memory of counters.
    pub(crate) fn release_counters(&mut self) {
        self.used -= std::mem::take(&mut self.counters);
    }

    /// Returns the number of bytes of feature sets that stay in memory, for each of `kinds` kinds.
    pub(crate) fn sets(&self, kinds: usize) -> u64 {
        self.remaining() / 2 / kinds as u64
    }

    /// Returns the number of bytes of candidate keys, or of pairs, that stay in memory.
    pub(crate) fn keys(&self) -> u64 {
        self.remaining() / KEYS_SHARE
    }

    /// Returns the number of bytes for records that are being ordered for the results, late in the job.
    pub(crate) fn records(&self) -> u64 {
        self.remaining() / 3
    }

    /// Returns the memory that tables and `lists`, of records that could not be read, leave for feature sets while records are read.
    ///
    /// # Errors
    /// Returns an error if the lists, which stay in memory, do not fit beside the share of tables.
    pub(crate) fn remaining_after(&self, tables: u64, lists: u64) -> Result<u64, BatchError> {
        let left = self.remaining().saturating_sub(self.keys());
        let most = self.table_share().all();
        let beside_tables = left.saturating_sub(most);
        match lists > beside_tables {
            true => Err(BatchError::Memory {
                what: "the list of what could not be read",
                needed: lists,
                left: beside_tables,
                least: self.min_memory_for_lists(lists),
            }),
            false => Ok(left.saturating_sub(tables.min(most) + lists)),
        }
    }

    fn min_memory_for_lists(&self, lists: u64) -> u64 {
        // The shares of the memory besides the fixed part, in total and without those of keys and of tables.
        // With K = KEYS_SHARE, P = PARTS and L = LEFT: of R bytes, keys take R / K and tables R (P - L) / P, which leaves R (K L - P) / (K P).
        const ALL: u64 = KEYS_SHARE * TableShareSizes::PARTS;
        const BESIDE: u64 = KEYS_SHARE * TableShareSizes::LEFT - TableShareSizes::PARTS;
        // A few bytes more for numbers that were rounded down.
        let others = lists + self.used + TableShareSizes::PARTS;
        self.fixed + (others * ALL).div_ceil(BESIDE)
    }

    /// Returns the number of bytes for the search just below the threshold, after groups were freed.
    pub(crate) fn for_margin(&self) -> u64 {
        // A half, because the memory freed by groups is fragmented. With less than a few MiB, the search would read all feature sets many times.
        (self.remaining() / 2).max(4 * MIB)
    }

    /// Returns the number of bytes left for groups.
    pub(crate) fn for_groups(&self) -> u64 {
        self.remaining()
    }

    /// Returns the error for groups that need more than is left.
    pub(crate) fn refuse_groups(&self, needed: u64) -> BatchError {
        let others = self.used + needed;
        // Either all tables are in memory too, or they take their share, which grows with the limit.
        let with_files = TableShareSizes::min_memory_beside(others);
        BatchError::Memory {
            what: "the index of shared features",
            needed,
            left: self.remaining(),
            least: self.fixed + with_files.min(others + self.tables),
        }
    }

    /// Subtracts the tables of a scan, with this number of bytes, documents and classes, and the tables that are computed from them while groups are
    /// in memory.
    pub(crate) fn tables(&mut self, bytes: u64, documents: usize, classes: usize) {
        self.tables += bytes + comparing_bytes(documents as u64, classes as u64);
    }

    /// Subtracts the resemblances of this number of ranks; in the worst case nearly all that share a key have one.
    pub(crate) fn near_ranks(&mut self, ranks: usize) {
        self.tables += NEAR * ranks as u64;
    }

    /// Subtracts groups if they fit in one of `shares` shares of the memory that is left, together with the memory for settling. Otherwise moves them
    /// to a file in `folder`.
    pub(crate) fn groups(
        &mut self,
        groups: StoredGroups,
        threads: usize,
        shares: u64,
        folder: &Path,
    ) -> io::Result<StoredGroups> {
        let StoredGroups::InMemory(all) = &groups else {
            return Ok(groups);
        };
        let needed = all.bytes() + settling_bytes(all, threads);
        if needed > self.remaining() / shares {
            return groups.into_file(folder);
        }
        self.used += needed;
        self.grouped += needed;
        Ok(groups)
    }

    /// Releases the memory of all groups.
    pub(crate) fn release_groups(&mut self) {
        self.used -= std::mem::take(&mut self.grouped);
    }
}

/// Returns the number of bytes that must be left so that `bytes` remain after the share of keys.
pub(crate) fn with_keys(bytes: u64) -> u64 {
    // A byte more for each number that was rounded down.
    bytes.saturating_mul(KEYS_SHARE).div_ceil(KEYS_SHARE - 1) + KEYS_SHARE
}

/// Bytes per class that threads use briefly while they group keys. Measured: with it, two million short records stay within the limit;
/// without it they exceeded it by 1 %.
const GROUPING: u64 = 4;

/// Bytes of the resemblance of a document or class to another.
const NEAR: u64 = size_of::<NumberedSimilarity>() as u64;

/// Returns the number of bytes of orders and decisions while documents and classes are compared, without the tables of both, groups, and
/// resemblances of classes.
fn comparing_bytes(documents: u64, classes: u64) -> u64 {
    // One order of documents. For each class: the best document, an order, a column by rank besides those of the table, its survivor, the start
    // of its list of groups, a counter while lists are filled, and bits.
    4 * documents + (16 + 9 + GROUPING) * classes
}

/// Returns the number of bytes while documents are decided on, when groups and columns by rank have been freed.
fn deciding_bytes(documents: u64, classes: u64) -> u64 {
    // Two orders and the decisions of documents. For each class: the best document, two orders and the decision. In the worst case nearly
    // all resemble another.
    (12 + NEAR) * documents + (16 + NEAR) * classes
}

/// Returns the number of bytes that documents and classes need besides their tables after the scan, in the most expensive step.
pub(crate) fn later_bytes(documents: u64, classes: u64) -> u64 {
    // The table of texts, whose hashes are taken out of it piece by piece.
    let hashing = SeenTexts::CLASS_BYTES * classes;
    // Hashes, and keys to sort by, twice with several threads.
    let sorting_ids = 24 * documents + 16 * classes;
    // Orders have replaced the hashes of records; half of the hashes of texts is left.
    let sorting_classes = (8 + 4 + 24) * classes;
    let decided = deciding_bytes(documents, classes).saturating_sub(8 * documents);
    let most = hashing.max(sorting_ids);
    most.max(sorting_classes).max(decided) + GROUPING * classes
}

/// Returns the number of bytes stored for a record that could not be read, with a reason of this many bytes.
pub(crate) fn skip_bytes(reason: usize) -> u64 {
    reason as u64 + 192
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIXED: u64 = 30 * MIB;

    /// Creates the budget of a job with these tables that has used `used` bytes besides.
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
            // Shares are rounded down to whole bytes.
            prop_assert!(budget(least - 4 * TableShareSizes::PARTS, tables, used).for_groups() < needed);
        }

        #[test]
        fn lists_that_leave_nothing_are_refused_with_what_does(
            limit in FIXED..FIXED + (1 << 30),
            lists in 0..1_u64 << 30,
            tables in 0..1_u64 << 31,
            used in 0..1_u64 << 30,
        ) {
            let reading = budget(limit, 0, used);
            match reading.remaining_after(tables, lists) {
                Ok(left) => prop_assert!(left + lists <= reading.remaining()),
                Err(BatchError::Memory { least, needed, .. }) => {
                    prop_assert_eq!(needed, lists);
                    prop_assert!(least > limit);
                    prop_assert!(budget(least, 0, used).remaining_after(tables, lists).is_ok());
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
