//! The ranks settled so far, and the decisions on all ranks.

use crate::dedup::counts::ComparisonCounts;
use crate::dedup::decision_table::DecisionTable;
use crate::spill::table_column::TableColumn;

/// Decisions on all classes.
pub(crate) struct ClassDecisions {
    /// Decisions by rank.
    pub(crate) decisions: DecisionTable,
    /// Counts of comparisons.
    pub(crate) comparisons: ComparisonCounts,
    /// Number of classes that survive although their main text resembles that of a survivor, because the pages differ.
    pub(crate) kept_as_pages: u64,
}

/// The ranks settled so far, which are the first ones.
#[derive(Clone, Default)]
pub(crate) struct SettledRanks {
    /// Number of ranks settled.
    pub(crate) count: usize,
    /// Decisions on all ranks; those not settled yet are marked as kept.
    pub(crate) decisions: DecisionTable,
    /// Counts of comparisons for the settled ranks.
    pub(crate) comparisons: ComparisonCounts,
    /// Ranks whose main text resembles that of a survivor, but which are not near-duplicates as pages. Some occur more than once.
    pub(crate) refused: TableColumn<u32>,
    /// Such ranks that were found at the end of windows, and are not in a log.
    pub(super) refused_as_weak: TableColumn<u32>,
    /// Approximate bytes of feature sets compared for the ranks that this process settled.
    pub(crate) compared_bytes: u64,
}

impl SettledRanks {
    /// Creates the state in which the first `fixed` of `ranks` ranks are settled; they survive whatever they resemble.
    pub(crate) fn fixed(fixed: usize, ranks: usize) -> Self {
        Self {
            count: fixed,
            decisions: DecisionTable::all_kept(ranks),
            ..Self::default()
        }
    }

    /// Returns the decisions, after all ranks have been settled.
    pub(super) fn into_decisions(mut self) -> ClassDecisions {
        let (decisions, mut refused) = (self.decisions, self.refused);
        refused.append(&mut self.refused_as_weak);
        refused.sort_unstable();
        refused.dedup();
        // A rank may be refused by one survivor and join another.
        refused.retain(|&rank| decisions.is_kept(rank as usize));
        ClassDecisions {
            decisions,
            comparisons: self.comparisons,
            kept_as_pages: refused.len() as u64,
        }
    }
}
