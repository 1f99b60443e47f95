//! Division of `--memory`.
//!
//! The limit is on the resident size of the process. A fixed part is for code, chunks in flight and each thread's
//! tools; of the rest the feature sets may keep half in memory while reading, a third of that those of visible texts, keys a twelfth.
//! Groups take what is left, and go to disk if they need more. The tables of documents take what they need: when that is more than there is, the
//! job stops and says how much would do, instead of breaking its promise.

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
    used: u64,
    counters: CounterNeed,
    /// The least limit that does for what was taken so far.
    least: u64,
    /// Part of `used` that groups took.
    grouped: u64,
}

/// Bytes of the counters of features, which grow with the limit.
#[derive(Clone, Copy, Debug, Default)]
struct CounterNeed {
    /// Those under this limit.
    taken: u64,
    /// Those under any limit, at least and at most.
    least: u64,
    most: u64,
}

impl CounterNeed {
    /// The least limit, or a sixteenth more, that holds so many bytes and the counters that it gives.
    fn limit_for(self, bytes: u64) -> u64 {
        let share = bytes
            .saturating_mul(COUNTER_SHARE)
            .div_ceil(COUNTER_SHARE - 1);
        let least = bytes.saturating_add(self.least);
        share.max(least).min(bytes.saturating_add(self.most))
    }
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
            counters: CounterNeed::default(),
            least: 0,
            grouped: 0,
        }
    }

    fn left(&self) -> u64 {
        self.limit
            .saturating_sub(self.fixed)
            .saturating_sub(self.used)
    }

    /// Counters for the features of so many bytes of text; they take a sixteenth of the memory, at most, whatever the threads take.
    pub(crate) fn frequency(&mut self, text_bytes: u64) -> FeatureFrequency {
        FeatureFrequency::with_counters(self.plan_counters(text_bytes))
    }

    /// Takes counters off.
    fn plan_counters(&mut self, text_bytes: u64) -> CounterPlan {
        let plan = CounterPlan {
            wanted: text_bytes / BYTES_PER_COUNTER,
            most: self.limit / COUNTER_SHARE / FeatureFrequency::CELL_BYTES,
            sampling: match text_bytes < ALL_COUNTED {
                true => 1,
                false => SAMPLING,
            },
        };
        let under = |most| CounterPlan { most, ..plan }.bytes();
        self.counters = CounterNeed {
            taken: plan.bytes(),
            least: under(0),
            most: under(u64::MAX),
        };
        self.used += self.counters.taken;
        plan
    }

    /// Gives back what counters took.
    pub(crate) fn release_counters(&mut self) {
        self.used -= std::mem::take(&mut self.counters).taken;
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

    /// Memory that the tables of the scan, and the feature sets beside them, may take while it reads.
    pub(crate) fn reading(&self) -> ReadingBudget {
        ReadingBudget {
            left: self.left().saturating_sub(self.keys()),
            fixed: self.fixed + self.used - self.counters.taken,
            counters: self.counters,
            has_keys: true,
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
        self.refuse("the index of shared features", needed)
    }

    fn refuse(&self, what: &'static str, needed: u64) -> BatchError {
        BatchError::Memory {
            what,
            needed,
            left: self.left(),
            least: self.least.max(self.limit_for(needed)),
        }
    }

    /// The least limit that holds so many bytes beside what is taken.
    fn limit_for(&self, needed: u64) -> u64 {
        let others = self.fixed + self.used - self.counters.taken;
        self.counters.limit_for(others + needed)
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
        // More counters leave less for the reading, and the limit that does for what follows must do for that, with the hashes of records that
        // have gone.
        let read = with_keys(bytes + 8 * documents + later_bytes(documents, classes));
        self.least = self.limit_for(read.max(bytes + deciding));
        if bytes + deciding > self.left() {
            return Err(self.refuse("the table of documents", bytes + deciding));
        }
        let comparing = comparing_bytes(documents, classes);
        self.take("the table of documents", bytes + comparing)
    }

    /// Takes groups off that fit, with what comparing with survivors touches beside those of so many ranks, into a share of what is left; they go
    /// to a file in `folder` otherwise.
    pub(crate) fn groups(
        &mut self,
        groups: StoredGroups,
        ranks: usize,
        threads: usize,
        share: MemoryShare<'_>,
    ) -> io::Result<StoredGroups> {
        let StoredGroups::InMemory(all) = &groups else {
            return Ok(groups);
        };
        let needed = all.bytes() + settling_bytes(all, ranks, threads);
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
    /// Bytes that were taken before, without those of counters.
    fixed: u64,
    counters: CounterNeed,
    /// True if keys have a part of what is left.
    has_keys: bool,
}

/// Bytes that must be left where keys have their part of it.
pub(crate) fn with_keys(bytes: u64) -> u64 {
    // A byte more for each number that was rounded down.
    bytes.saturating_mul(KEYS_SHARE).div_ceil(KEYS_SHARE - 1) + KEYS_SHARE
}

impl ReadingBudget {
    /// Of so many bytes, whatever was taken before them.
    pub(crate) fn new(left: u64, fixed: u64) -> Self {
        Self {
            left,
            fixed,
            counters: CounterNeed::default(),
            has_keys: false,
        }
    }

    /// Memory that `tables` leave for feature sets, after `read` of `total` bytes of input; an error where they leave nothing.
    /// What all of the input will need is guessed from what this part of it does.
    pub(crate) fn left_by(&self, tables: u64, read: u64, total: u64) -> Result<u64, BatchError> {
        /// Records ahead may take more than those that were read: one of so many parts of what they are expected to take.
        const UNSURE: f64 = 20.0;
        self.left.checked_sub(tables).ok_or_else(|| {
            let parts = (total as f64 / read.max(1) as f64).max(1.0);
            let needed = tables as f64 * parts;
            let unsure = (needed - tables as f64) / UNSURE;
            let held = match self.has_keys {
                true => with_keys((needed + unsure) as u64),
                false => (needed + unsure) as u64,
            };
            BatchError::Memory {
                what: "the table of documents",
                needed: needed as u64,
                left: self.left,
                least: self.counters.limit_for(self.fixed.saturating_add(held)),
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

    fn budget(limit: u64, fixed: u64) -> DedupMemory {
        DedupMemory {
            limit,
            fixed,
            used: 0,
            counters: CounterNeed::default(),
            least: 0,
            grouped: 0,
        }
    }

    /// The least limit with which something does not fail, by halving, if it does with all larger ones; to a thousandth.
    fn least_limit(succeeds: impl Fn(u64) -> bool) -> u64 {
        let (mut fails, mut does) = (0, 1 << 44);
        while does - fails > does / 1000 + 1 {
            let middle = fails + (does - fails) / 2;
            match succeeds(middle) {
                true => does = middle,
                false => fails = middle,
            }
        }
        does
    }

    proptest! {
        #[test]
        fn a_refusal_asks_for_what_does_and_a_tenth_more_at_most(
            fixed in 20 * MIB..200 * MIB,
            bytes in 1_u64..1 << 36,
            text in prop_oneof![Just(0), 0_u64..1 << 40],
            documents in 0..40_000_000_usize,
            share in 0.0..1.0_f64,
            part in 0.0..1.0_f64,
        ) {
            let classes = (documents as f64 * share) as usize;
            let later = later_bytes(documents as u64, classes as u64);
            // As a job does it.
            let job = |limit| {
                let mut budget = budget(limit, fixed);
                let _plan = budget.plan_counters(text);
                budget.reading().left_by(bytes + 8 * documents as u64 + later, 1, 1)?;
                budget.tables(bytes, documents, classes)?;
                budget.release_counters();
                budget.near_ranks(classes)
            };
            let does = least_limit(|limit| job(limit).is_ok());
            let refused = (does as f64 * 0.99 * part) as u64;
            let Err(BatchError::Memory { least, .. }) = job(refused) else {
                // A larger limit with more counters may be refused where this one is not.
                return Ok(());
            };
            prop_assert!(job(least).is_ok(), "{least} of {does}");
            // Keys have a twelfth of what is left, and counters a sixteenth of all.
            prop_assert!(least as f64 <= 1.1 * does as f64, "{least} of {does}");
        }

        #[test]
        fn groups_that_need_more_are_refused_with_what_does(
            room in 0..1_u64 << 36,
            needed in 0..1_u64 << 36,
        ) {
            let of = |limit| {
                let mut budget = budget(limit, MIB);
                budget.tables(1000, 10, 10).unwrap();
                budget
            };
            let small = of(2 * MIB + room);
            let BatchError::Memory { least, .. } = small.refuse_groups(small.for_groups() + needed) else {
                panic!("another error");
            };
            prop_assert_eq!(of(least).for_groups(), small.for_groups() + needed);
        }
    }

    #[test]
    fn what_all_will_need_is_guessed_from_a_part() {
        let budget = ReadingBudget::new(100, 10);
        assert_eq!(budget.left_by(60, 1, 4).unwrap(), 40);
        let refused = |read| match budget.left_by(120, read, 100) {
            Err(BatchError::Memory { needed, least, .. }) => (needed, least),
            _ => panic!("120 of 100 bytes"),
        };
        // A twentieth of the 360 bytes that are a guess.
        assert_eq!(refused(25), (480, 10 + 480 + 18));
        assert_eq!(refused(100), (120, 10 + 120));
    }
}
