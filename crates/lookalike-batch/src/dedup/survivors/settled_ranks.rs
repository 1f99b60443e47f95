//! Ranks that are settled so far, and what comes of all of them.

use crate::dedup::counts::ComparisonCounts;
use crate::dedup::decision_table::DecisionTable;
use crate::spill::table_column::TableColumn;

/// Decision on all classes.
pub(crate) struct ClassDecisions {
    /// By rank.
    pub(crate) decisions: DecisionTable,
    /// Counts of what was looked at for them.
    pub(crate) comparisons: ComparisonCounts,
    /// Number of classes that survive though their main text resembles that of a survivor: the pages differ.
    pub(crate) kept_as_pages: u64,
}

/// Settled ranks: the first ones of all.
#[derive(Clone, Default)]
pub(crate) struct SettledRanks {
    /// Number of ranks that are settled.
    pub(crate) count: usize,
    /// Decisions on all ranks; those that are not settled are kept so far.
    pub(crate) decisions: DecisionTable,
    /// Counts of what was looked at for them.
    pub(crate) comparisons: ComparisonCounts,
    /// Ranks that resemble a survivor by their main text, but not as pages; some more than once.
    pub(crate) refused: TableColumn<u32>,
    /// The same, found at the ends of windows: no log tells of them.
    pub(super) refused_as_weak: TableColumn<u32>,
    /// Bytes of feature sets that were compared for those settled by this process, roughly.
    pub(crate) compared_bytes: u64,
}

impl SettledRanks {
    /// The first `fixed` of so many ranks, which survive whatever they resemble.
    pub(crate) fn fixed(fixed: usize, ranks: usize) -> Self {
        Self {
            count: fixed,
            decisions: DecisionTable::all_kept(ranks),
            ..Self::default()
        }
    }

    /// The decisions, once all ranks are settled.
    pub(super) fn into_decisions(self) -> ClassDecisions {
        let Self {
            decisions,
            comparisons,
            mut refused,
            mut refused_as_weak,
            ..
        } = self;
        refused.append(&mut refused_as_weak);
        refused.sort_unstable();
        refused.dedup();
        // A rank may be refused by one survivor and join another.
        refused.retain(|&rank| decisions.is_kept(rank as usize));
        ClassDecisions {
            decisions,
            comparisons,
            kept_as_pages: refused.len() as u64,
        }
    }
}
