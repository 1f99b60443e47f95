//! Compact table of the decisions on documents or on classes.

use bytemuck::Zeroable;

use crate::dedup::document_decision::DocumentDecision;
use crate::parallel::{column, concatenated};
use crate::parallel_sort::KeyedNumber;
use crate::spill::table_column::TableColumn;

/// Decisions by number. Memory: 4 bytes each, and 12 for each that is removed without being an exact copy.
#[derive(Clone, Debug, Default)]
pub(crate) struct DecisionTable {
    /// The number of the document or class that is kept for each: its own number if it is kept itself.
    pub(crate) kept: TableColumn<u32>,
    /// Resemblances of removed ones to their survivors, unless they are exact copies; in ascending order of number.
    pub(crate) near: TableColumn<NumberedSimilarity>,
    /// Resemblances of the visible texts, for those that were compared by another text.
    pub(crate) visible: TableColumn<NumberedSimilarity>,
}

/// A number and a resemblance, in 12 bytes.
#[derive(Clone, Copy, Debug, Zeroable)]
pub(crate) struct NumberedSimilarity(KeyedNumber);

impl NumberedSimilarity {
    pub(crate) fn new(number: u32, similarity: f64) -> Self {
        Self(KeyedNumber::new(similarity.to_bits(), number))
    }

    /// Returns the number of the removed document or class.
    pub(crate) fn number(self) -> usize {
        self.0.number as usize
    }

    pub(crate) fn similarity(self) -> f64 {
        f64::from_bits(self.0.key())
    }
}

#[inline]
fn find(similarities: &[NumberedSimilarity], number: usize) -> Option<f64> {
    let found = similarities.binary_search_by_key(&(number as u32), |entry| entry.0.number);
    found.ok().map(|at| similarities[at].similarity())
}

impl DecisionTable {
    /// Creates a table that keeps all of `count`.
    pub(crate) fn all_kept(count: usize) -> Self {
        Self {
            kept: (0..count as u32).collect(),
            ..Self::default()
        }
    }

    /// Joins the tables of consecutive numbers.
    pub(crate) fn joined(parts: &[Self], threads: usize) -> Self {
        let kept: Vec<&[u32]> = parts.iter().map(|part| &part.kept[..]).collect();
        let near: Vec<&[NumberedSimilarity]> = parts.iter().map(|part| &part.near[..]).collect();
        let visible: Vec<&[NumberedSimilarity]> =
            parts.iter().map(|part| &part.visible[..]).collect();
        Self {
            kept: concatenated(&kept, threads),
            near: concatenated(&near, threads),
            visible: concatenated(&visible, threads),
        }
    }

    /// Adds the decision on the next number: the number that is kept for it.
    pub(crate) fn push(&mut self, survivor: u32) {
        self.kept.push(survivor);
    }

    /// Sets the resemblances of a removed one to its survivor. Numbers must be ascending.
    pub(crate) fn set_near(&mut self, number: u32, similarity: f64, visible: Option<f64>) {
        self.near.push(NumberedSimilarity::new(number, similarity));
        let visible = visible.map(|visible| NumberedSimilarity::new(number, visible));
        self.visible.extend(visible);
    }

    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Returns one bit for each of the first `count` numbers, set if it is kept.
    pub(crate) fn kept_bits(&self, count: usize, threads: usize) -> TableColumn<u64> {
        // By words, so that no two threads write the same one.
        column(count.div_ceil(64), threads, |word| {
            let numbers = 64 * word..count.min(64 * word + 64);
            numbers.fold(0, |bits, number| {
                bits | u64::from(self.is_kept(number)) << (number % 64)
            })
        })
    }

    #[inline]
    pub(crate) fn is_kept(&self, number: usize) -> bool {
        self.kept[number] == number as u32
    }

    /// Returns the number that is kept for a removed one.
    #[inline]
    pub(crate) fn survivor(&self, number: usize) -> Option<u32> {
        (!self.is_kept(number)).then(|| self.kept[number])
    }

    /// Removes a class. Ranks must be ascending.
    pub(crate) fn join(&mut self, rank: u32, survivor: u32, similarity: f64, visible: Option<f64>) {
        self.kept[rank as usize] = survivor;
        self.set_near(rank, similarity, visible);
    }

    /// Removes classes, all later than those removed before: `near` has each with the resemblance to its survivor in `survivors`, and `visible`
    /// the resemblances of visible texts.
    pub(crate) fn join_all(
        &mut self,
        near: &[NumberedSimilarity],
        survivors: &[u32],
        visible: &[NumberedSimilarity],
    ) {
        for (near, &survivor) in near.iter().zip(survivors) {
            self.kept[near.number()] = survivor;
        }
        self.near.extend_from_slice(near);
        self.visible.extend_from_slice(visible);
    }

    /// Returns the decision on a document or class. No class is an exact copy: it has a resemblance if it is removed.
    pub(crate) fn get(&self, number: usize) -> DocumentDecision {
        let Some(survivor) = self.survivor(number) else {
            return DocumentDecision::Kept;
        };
        match find(&self.near, number) {
            None => DocumentDecision::Exact { survivor },
            Some(similarity) => DocumentDecision::Near {
                survivor,
                similarity,
                visible: find(&self.visible, number),
            },
        }
    }

    /// Returns the decisions on all documents.
    pub(crate) fn documents(&self) -> impl ExactSizeIterator<Item = DocumentDecision> {
        (0..self.len()).map(|document| self.get(document))
    }
}

#[cfg(test)]
impl FromIterator<DocumentDecision> for DecisionTable {
    fn from_iter<I: IntoIterator<Item = DocumentDecision>>(decisions: I) -> Self {
        let mut table = Self::default();
        for (number, decision) in (0..).zip(decisions) {
            table.push(decision.survivor().unwrap_or(number));
            if let DocumentDecision::Near {
                similarity,
                visible,
                ..
            } = decision
            {
                table.set_near(number, similarity, visible);
            }
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decisions() -> impl Strategy<Value = Vec<DocumentDecision>> {
        let decision = prop_oneof![
            Just(DocumentDecision::Kept),
            (1000..1100_u32).prop_map(|survivor| DocumentDecision::Exact { survivor }),
            (1000..1100_u32, 0.0..1.0_f64, prop::option::of(0.0..1.0_f64)).prop_map(
                |(survivor, similarity, visible)| DocumentDecision::Near {
                    survivor,
                    similarity,
                    visible
                }
            ),
        ];
        prop::collection::vec(decision, 0..60)
    }

    proptest! {
        #[test]
        fn decisions_come_back_one_by_one_and_all_together(decisions in decisions(), start in 0..60_usize) {
            let table: DecisionTable = decisions.iter().copied().collect();
            prop_assert_eq!(table.documents().collect::<Vec<_>>(), decisions.clone());
            let start = start.min(decisions.len());
            let bits = table.kept_bits(start, 1);
            for (document, &decision) in decisions[..start].iter().enumerate() {
                let is_kept = bits[document / 64] >> (document % 64) & 1 == 1;
                prop_assert_eq!(is_kept, decision == DocumentDecision::Kept);
            }
            for (document, &decision) in decisions.iter().enumerate() {
                prop_assert_eq!(table.get(document), decision);
                prop_assert_eq!(table.survivor(document), decision.survivor());
            }
        }
    }
}
