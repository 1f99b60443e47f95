//! Finds lists that have most of their items in common, without comparing all pairs.
//!
//! Two lists *fit* if they share at least a given part of the longer one. In any fixed order of items, such lists share an item among the first few
//! of each: the prefix filter of set joins. Items are ordered by rarity, so that few lists start with the same item.

use std::collections::HashMap;

use lookalike::resemblance::close_lengths;

use crate::spill::table_column::TableColumn;

/// A list that fits another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FittingList {
    /// Its number, in the order in which lists were added.
    pub(super) number: u32,
    /// Number of items in both lists.
    pub(super) shared: usize,
    /// Number of items in the longer list.
    pub(super) longer: usize,
    /// Number of items in either list.
    pub(super) either: usize,
}

impl FittingList {
    /// Tells whether this list fits better than `other`: it shares more of the items in either list. Among ties the lower number is better.
    pub(super) fn is_better(&self, other: &Self) -> bool {
        // Ties go to the list that was added first.
        self.is_nearer(other) || !other.is_nearer(self) && self.number < other.number
    }

    /// Tells whether this list fits better than `other`, regardless of their numbers.
    pub(super) fn is_nearer(&self, other: &Self) -> bool {
        // Cross-multiply, so that rounding decides nothing.
        self.shared * other.either > other.shared * self.either
    }
}

/// Lists of ascending items, with a search for those that fit a list.
pub(super) struct SimilarLists {
    share: f64,
    /// Numbers of the lists that have each item in their prefix.
    postings: HashMap<u32, Vec<u32>>,
    items: TableColumn<u32>,
    ends: TableColumn<usize>,
    visited: VisitedLists,
}

/// Marks of the lists that a search has visited.
#[derive(Default)]
pub(super) struct VisitedLists {
    /// Last search that visited each list.
    searches: TableColumn<u32>,
    search: u32,
}

impl VisitedLists {
    /// Begins a search in this many lists.
    fn begin(&mut self, lists: usize) {
        // Searches count from 1, since 0 stands for a list that was never visited.
        self.search += 1;
        self.searches.resize(lists, 0);
    }

    /// Marks a list. Returns true if the search has not visited it before.
    fn is_new(&mut self, number: u32) -> bool {
        // Storing the last search avoids clearing marks.
        std::mem::replace(&mut self.searches[number as usize], self.search) != self.search
    }
}

impl SimilarLists {
    /// Creates an empty index. `share` is the part of the longer list that both must have, above 0 and at most 1.
    pub(super) fn new(share: f64) -> Self {
        Self {
            share,
            postings: HashMap::new(),
            items: TableColumn::new(),
            ends: TableColumn::new(),
            visited: VisitedLists::default(),
        }
    }

    /// Adds a list.
    pub(super) fn push(&mut self, list: &[u32]) {
        let number = self.ends.len() as u32;
        for &item in &list[..self.prefix(list.len())] {
            self.postings.entry(item).or_default().push(number);
        }
        self.items.extend_from_slice(list);
        self.ends.push(self.items.len());
    }

    /// Returns the lists that fit this one, in no particular order.
    pub(super) fn fitting_lists(&mut self, list: &[u32]) -> Vec<FittingList> {
        let mut visited = std::mem::take(&mut self.visited);
        let mut found = Vec::new();
        self.visit_candidates(list, &mut visited, |number| {
            found.extend(self.fit(number, list));
            true
        });
        self.visited = visited;
        found
    }

    /// Passes the numbers of all lists that may fit this one to `visit`, each once, until it returns false.
    pub(super) fn visit_candidates(
        &self,
        list: &[u32],
        visited: &mut VisitedLists,
        mut visit: impl FnMut(u32) -> bool,
    ) {
        visited.begin(self.ends.len());
        let first = &list[..self.prefix(list.len())];
        let with_first = first.iter().filter_map(|item| self.postings.get(item));
        // A list may share several of the first items.
        let mut candidates = with_first
            .flatten()
            .filter(|&&number| visited.is_new(number));
        candidates.all(|&number| visit(number));
    }

    /// Compares this list with one in the index. Returns `None` if they do not fit.
    pub(super) fn fit(&self, number: u32, list: &[u32]) -> Option<FittingList> {
        let other = self.list(number);
        let longer = list.len().max(other.len());
        let shared = shared_items(list, other, min_shared_items(self.share, longer))?;
        Some(FittingList {
            number,
            shared,
            longer,
            either: list.len() + other.len() - shared,
        })
    }

    /// Returns the length of the prefix by which fitting lists can be found.
    fn prefix(&self, length: usize) -> usize {
        match length {
            0 => 0,
            // Lists of `n` items that share `t` have one in common among the first `n - t + 1` of each (the prefix filter of Chaudhuri, Ganti and
            // Kaushik 2006).
            _ => length - min_shared_items(self.share, length) + 1,
        }
    }

    pub(super) fn list(&self, number: u32) -> &[u32] {
        let number = number as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.items[start..self.ends[number]]
    }
}

/// Tells whether `part` is at least the given share of `whole`.
pub(super) fn is_share(part: usize, whole: usize, share: f64) -> bool {
    close_lengths(part as u64, whole as u64, share)
}

/// Returns the smallest number of items that is at least the given share of `of`, at least 1.
fn min_shared_items(share: f64, of: usize) -> usize {
    let near = (share * of as f64).ceil() as usize;
    // The product is rounded, so search its neighbourhood with the exact comparison.
    let exact = (near.saturating_sub(1)..=near + 1).find(|&part| is_share(part, of, share));
    exact.unwrap_or(of).max(1)
}

/// Returns the number of items in both of two ascending lists.
pub(super) fn common_items(a: &[u32], b: &[u32]) -> usize {
    shared_items(a, b, 0).unwrap_or(0)
}

/// Returns the number of items that two ascending lists share, or `None` if it is less than `least`.
fn shared_items(a: &[u32], b: &[u32], least: usize) -> Option<usize> {
    let (mut at_a, mut at_b, mut shared) = (0, 0, 0);
    while at_a < a.len() && at_b < b.len() {
        // Stop if the remaining items cannot reach `least`.
        if shared + (a.len() - at_a).min(b.len() - at_b) < least {
            return None;
        }
        // Sums instead of branches, because which of two items is smaller is unpredictable.
        let (x, y) = (a[at_a], b[at_b]);
        shared += usize::from(x == y);
        at_a += usize::from(x <= y);
        at_b += usize::from(y <= x);
    }
    (shared >= least).then_some(shared)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Exactly the lists that fit are found.
        #[test]
        fn lists_that_fit_are_those_of_the_definition(
            lists in prop::collection::vec(prop::collection::btree_set(0_u32..14, 0..14), 1..30),
            share in prop_oneof![Just(0.3), Just(0.5), Just(0.8), Just(0.9), Just(0.95), Just(1.0), 0.01_f64..1.0],
        ) {
            let mut similar = SimilarLists::new(share);
            for (number, list) in lists.iter().enumerate() {
                let items: Vec<u32> = list.iter().copied().collect();
                let mut found = similar.fitting_lists(&items);
                found.sort_unstable_by_key(|fit| fit.number);
                let fits = |(number, other): (usize, &BTreeSet<u32>)| {
                    let (shared, longer) = (list.intersection(other).count(), list.len().max(other.len()));
                    let either = list.union(other).count();
                    let fit = FittingList { number: number as u32, shared, longer, either };
                    (shared > 0 && shared as f64 / longer as f64 >= share).then_some(fit)
                };
                let expected: Vec<FittingList> = lists[..number].iter().enumerate().filter_map(fits).collect();
                prop_assert_eq!(found, expected);
                similar.push(&items);
            }
        }
    }
}
