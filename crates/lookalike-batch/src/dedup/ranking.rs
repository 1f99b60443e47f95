//! Orders of documents and classes: by id, and by preference as survivors. They depend only on ids and contents.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicU32, Ordering as AtomicOrdering};

use crate::dedup::documents::DocumentTable;
use crate::dedup::id_order::IdOrder;
use crate::kernel::survivor_order::ordered_bits;
use crate::parallel::{column, in_ranges, inverse};
use crate::parallel_sort::{KeyedNumber, sort_unequal_by};
use crate::settings::{KeepRule, KeepRules};
use crate::spill::table_column::TableColumn;

/// The orders used after the scan.
pub(crate) struct DocumentRanking {
    /// Documents in the order of their ids.
    pub(crate) by_id: TableColumn<u32>,
    /// Position of each document in `by_id`.
    pub(crate) id_ranks: TableColumn<u32>,
    /// Classes from the most to the least preferred.
    pub(crate) classes: TableColumn<u32>,
    /// Preferred document of each class, by class position.
    pub(crate) best: TableColumn<u32>,
    /// Number of classes, from the first, with a document that is only compared with.
    pub(crate) fixed: usize,
}

impl DocumentRanking {
    /// Ranks `classes` classes by `keep`, after documents have been sorted by id.
    ///
    /// O(n log n) comparisons.
    pub(crate) fn of_ids(
        ids: IdOrder,
        documents: &mut DocumentTable,
        classes: usize,
        keep: &KeepRules,
        threads: usize,
    ) -> Self {
        // The comparisons below only know doubles, so texts, and numbers that doubles cannot hold, become ranks first.
        documents.rank_value_texts();
        documents.rank_values_with_rests();
        let by_id = ids.by_id;
        let id_ranks = inverse(&by_id, threads);
        let wanted = SurvivorOrder {
            documents,
            id_ranks: &id_ranks,
            keep,
        };
        let best = wanted.best_documents(classes, threads);
        let order = wanted.sorted_classes(&best, threads);
        // Old documents come first in every class, so a class is old if its preferred document is.
        let is_old = |&class: &u32| !wanted.is_new(best[class as usize] as usize);
        let fixed = order.partition_point(is_old);
        Self {
            by_id,
            id_ranks,
            classes: order,
            best,
            fixed,
        }
    }
}

/// Number of bits of a first key that leave room for the rank of an id and for whether a document is new.
const NARROW_BITS: u32 = 31;

/// Compares documents by preference: those that are only compared with first, then by the rules, then by id.
struct SurvivorOrder<'a> {
    documents: &'a DocumentTable,
    id_ranks: &'a [u32],
    keep: &'a KeepRules,
}

impl SurvivorOrder<'_> {
    /// Returns false if the document is only compared with.
    fn is_new(&self, document: usize) -> bool {
        document >= self.documents.against
    }

    /// Returns a key of the first rule, smaller for preferred documents.
    fn first_key(&self, document: usize) -> u64 {
        self.key(&self.keep.rules()[0], document)
    }

    /// Returns the preferred document of each class.
    fn best_documents(&self, classes: usize, threads: usize) -> TableColumn<u32> {
        const NONE: u32 = u32::MAX;
        let best: TableColumn<AtomicU32> = (0..classes).map(|_| AtomicU32::new(NONE)).collect();
        // A total order has one minimum, whichever thread is first.
        in_ranges(self.documents.len(), threads, |range| {
            for document in range {
                let Some(class) = self.documents.classes[document] else {
                    continue;
                };
                let best = &best[class.position()];
                let mut known = best.load(AtomicOrdering::Relaxed);
                while known == NONE || self.compare(document, known as usize) == Ordering::Less {
                    // Relaxed, because nothing else is published with the number, and it is read after all threads have been
                    // joined.
                    let relaxed = AtomicOrdering::Relaxed;
                    match best.compare_exchange_weak(known, document as u32, relaxed, relaxed) {
                        Ok(_) => break,
                        Err(other) => known = other,
                    }
                }
            }
        });
        best.into_numbers()
    }

    /// Returns the classes from the most to the least preferred, by the preferred document of each.
    fn sorted_classes(&self, best: &[u32], threads: usize) -> TableColumn<u32> {
        let keyed = |key: &(dyn Fn(usize) -> u64 + Sync)| {
            column(best.len(), threads, |class| {
                KeyedNumber::new(key(best[class] as usize), class as u32)
            })
        };
        let mut order;
        if let Some(least) = self.smallest_narrow_key(best, threads) {
            // Lengths are often equal. With the rank of the id in the key, all keys differ and no other data is accessed.
            order = keyed(&|document| {
                let first = self.first_key(document) - least;
                // One bit, 31 bits and 32 bits: the complete comparison in one word.
                let is_new = u64::from(self.is_new(document));
                (is_new << NARROW_BITS | first) << 32 | u64::from(self.id_ranks[document])
            });
            sort_unequal_by(&mut order, threads, |a, b| a.key().cmp(&b.key()));
        } else {
            order = keyed(&|document| self.first_key(document));
            let best_of = |entry: &KeyedNumber| best[entry.number as usize] as usize;
            let is_new = |entry: &KeyedNumber| self.is_new(best_of(entry));
            sort_unequal_by(&mut order, threads, |a, b| {
                let ties = || self.compare(best_of(a), best_of(b));
                // Skip the lookup if there are no old documents.
                let is_new = |entry| self.documents.against > 0 && is_new(entry);
                let first = is_new(a).cmp(&is_new(b)).then(a.key().cmp(&b.key()));
                first.then_with(ties)
            });
        }
        column(order.len(), threads, |rank| order[rank].number)
    }

    /// Returns the smallest first key of these documents, if there is a single rule and the range of its keys is narrow.
    fn smallest_narrow_key(&self, best: &[u32], threads: usize) -> Option<u64> {
        // With further rules, the rank of the id must not decide after the first key.
        if self.keep.rules().len() > 1 {
            return None;
        }
        let ends = in_ranges(best.len(), threads, |range| {
            let keys = best[range]
                .iter()
                .map(|&best| self.first_key(best as usize));
            keys.fold((u64::MAX, 0), |(least, most), key| {
                (least.min(key), most.max(key))
            })
        });
        let least = ends.iter().map(|ends| ends.0).min()?;
        let most = ends.iter().map(|ends| ends.1).max()?;
        // Missing values are `u64::MAX`, so the range is wide then.
        (most.saturating_sub(least) < 1 << NARROW_BITS).then_some(least)
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        let rules = &self.keep.rules()[1..];
        let compare = |rule| self.key(rule, a).cmp(&self.key(rule, b));
        let first = self.is_new(a).cmp(&self.is_new(b));
        let first = first.then_with(|| self.first_key(a).cmp(&self.first_key(b)));
        let order = rules
            .iter()
            .fold(first, |order, rule| order.then_with(|| compare(rule)));
        order.then_with(|| self.id_ranks[a].cmp(&self.id_ranks[b]))
    }

    /// Returns a key of one rule, smaller for preferred documents.
    fn key(&self, rule: &KeepRule, document: usize) -> u64 {
        let documents = self.documents;
        let value = || ordered_bits(documents.values[document]);
        match rule {
            // Preferred documents have smaller keys, so keys are inverted if large values are preferred.
            KeepRule::Longest => u64::MAX - documents.lengths.get(document),
            KeepRule::Shortest => documents.lengths.get(document),
            KeepRule::First => document as u64,
            // No value has this key, in either direction: only a NaN maps to 0 or to `u64::MAX`.
            _ if documents.values[document].is_nan() => u64::MAX,
            KeepRule::Min(_) => value(),
            KeepRule::Max(_) | KeepRule::Newest(_) | KeepRule::Latest(_) => u64::MAX - value(),
        }
    }
}

#[cfg(test)]
mod tests {
    use lookalike_corpus::OrderNumber;
    use proptest::prelude::*;

    use super::*;
    use crate::dedup::documents::TextClasses;
    use crate::dedup::id_order::tests::table;
    use crate::error::BatchError;
    use crate::parallel::PARALLEL_MIN;
    use crate::settings::RepeatedIds;

    impl DocumentRanking {
        /// Ranks documents by id and classes by `keep`, with `threads` threads. Also returns the number of repeated ids that were renamed.
        pub(crate) fn new(
            documents: &mut DocumentTable,
            classes: &TextClasses,
            keep: &KeepRules,
            repeated: RepeatedIds,
            threads: usize,
        ) -> Result<(Self, u64), BatchError> {
            let ids = IdOrder::new(documents, classes, repeated, threads)?;
            let renamed = ids.renamed;
            Ok((
                Self::of_ids(ids, documents, classes.len(), keep, threads),
                renamed,
            ))
        }
    }

    proptest! {
        #[test]
        fn classes_are_sorted_by_what_is_compared_whatever_their_keys(
            rows in prop::collection::vec((prop_oneof![0..5_u64, 0..1_u64 << 40, Just(1 << 31)], any::<u32>()), 1..40),
            keep in prop::sample::select(vec!["longest", "shortest", "first", "longest,first", "shortest,longest"]),
            against in 0..10_usize,
        ) {
            let ids: Vec<String> = rows.iter().enumerate().map(|(at, row)| format!("{}-{at}", row.1)).collect();
            let rows: Vec<(&str, usize, u64)> = rows.iter().enumerate().map(|(at, row)| (ids[at].as_str(), at, row.0)).collect();
            let (mut documents, classes) = table(&rows);
            documents.against = against.min(rows.len());
            let keep = keep.parse().unwrap();
            let (ranking, _) = DocumentRanking::new(&mut documents, &classes, &keep, RepeatedIds::Number, 1).unwrap();
            let order = SurvivorOrder { documents: &documents, id_ranks: &ranking.id_ranks, keep: &keep };
            let mut expected: Vec<u32> = (0..rows.len() as u32).collect();
            expected.sort_by(|&a, &b| order.compare(a as usize, b as usize));
            prop_assert_eq!(ranking.fixed, documents.against);
            prop_assert_eq!(ranking.classes, expected);
        }
    }

    fn ranked(
        documents: &mut DocumentTable,
        classes: &TextClasses,
        keep: &KeepRules,
    ) -> (DocumentRanking, u64) {
        DocumentRanking::new(documents, classes, keep, RepeatedIds::Number, 1).unwrap()
    }

    /// Returns the preferred documents of classes, by rank.
    fn best(ranking: &DocumentRanking) -> Vec<u32> {
        let classes = ranking.classes.iter();
        classes.map(|&class| ranking.best[class as usize]).collect()
    }

    fn ids(documents: &DocumentTable, order: &[u32]) -> Vec<String> {
        order
            .iter()
            .map(|&d| documents.id(d as usize).to_owned())
            .collect()
    }

    #[test]
    fn ranks_do_not_depend_on_the_order_of_the_input() {
        let mut rows = vec![
            ("b", 0, 5),
            ("longer-id-2", 1, 9),
            ("longer-id-1", 2, 9),
            ("a", 0, 5),
            ("c", 3, 1),
        ];
        let mut seen = Vec::new();
        for _ in 0..rows.len() {
            rows.rotate_left(1);
            let (mut documents, classes) = table(&rows);
            let (ranking, renamed) = ranked(&mut documents, &classes, &KeepRules::default());
            assert_eq!(renamed, 0);
            let best = best(&ranking);
            seen.push((ids(&documents, &ranking.by_id), ids(&documents, &best)));
        }
        assert_eq!(seen[0].0, ["a", "b", "c", "longer-id-1", "longer-id-2"]);
        assert_eq!(seen[0].1, ["longer-id-1", "longer-id-2", "a", "c"]);
        assert!(seen.iter().all(|s| *s == seen[0]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        #[test]
        fn any_number_of_threads_ranks_like_one(
            count in PARALLEL_MIN..2 * PARALLEL_MIN,
            classes in 1..2 * PARALLEL_MIN,
            different_ids in prop_oneof![Just(100), Just(1_000_000)],
            against in 0..PARALLEL_MIN,
            is_sorted in any::<bool>(),
            threads in 2..9_usize,
        ) {
            let classes = classes.min(count);
            let rows: Vec<(String, usize, u64)> = (0..count).map(|at| {
                let mixed = (at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
                let id = match is_sorted {
                    true => format!("page-{at:08}"),
                    false => format!("page-{}", mixed % different_ids),
                };
                (id, if at < classes { at } else { mixed as usize % classes }, mixed % 50)
            }).collect();
            let rows: Vec<(&str, usize, u64)> = rows.iter().map(|(id, class, length)| (id.as_str(), *class, *length)).collect();
            let ranked = |threads| {
                let (mut documents, classes) = table(&rows);
                documents.against = against;
                let keep = KeepRules::default();
                let ranked = DocumentRanking::new(&mut documents, &classes, &keep, RepeatedIds::Number, threads);
                let (ranking, renamed) = ranked.unwrap();
                let names = ids(&documents, &ranking.by_id);
                (ranking.by_id, ranking.id_ranks, ranking.classes, ranking.best, ranking.fixed, renamed, names)
            };
            prop_assert_eq!(ranked(threads), ranked(1));
        }
    }

    #[test]
    fn repeated_ids_are_numbered_even_when_the_number_is_taken() {
        let (mut documents, classes) =
            table(&[("x", 0, 1), ("x#2", 1, 1), ("x", 2, 1), ("x", 3, 1)]);
        let (ranking, renamed) = ranked(&mut documents, &classes, &KeepRules::default());
        let names = ids(&documents, &ranking.by_id);
        assert!(renamed >= 2);
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
    }

    #[test]
    fn repeated_ids_can_be_refused() {
        let (mut documents, classes) = table(&[("x", 0, 1), ("y", 1, 1), ("x", 2, 1)]);
        let error = DocumentRanking::new(
            &mut documents,
            &classes,
            &KeepRules::default(),
            RepeatedIds::Refuse,
            1,
        )
        .err()
        .unwrap();
        assert!(error.to_string().contains("\"x\""), "{error}");
    }

    #[test]
    fn the_field_decides_and_missing_values_come_last() {
        for (keep, expected) in [
            (KeepRule::Max("f".into()), ["b", "a", "c"]),
            (KeepRule::Min("f".into()), ["a", "b", "c"]),
        ] {
            let (mut documents, classes) = table(&[("a", 0, 1), ("b", 1, 1), ("c", 2, 1)]);
            documents.values = [-1.0, 4.0, f64::NAN].into_iter().collect();
            let (ranking, _) = ranked(&mut documents, &classes, &keep.into());
            let best = best(&ranking);
            assert_eq!(ids(&documents, &best), expected);
        }
    }

    #[test]
    fn integers_that_no_double_holds_keep_their_order() {
        let (mut documents, classes) = table(&[
            ("a", 0, 1),
            ("b", 1, 1),
            ("c", 2, 1),
            ("d", 3, 1),
            ("e", 4, 1),
        ]);
        let number = |nearest, rest| OrderNumber { nearest, rest };
        let border = 9_007_199_254_740_992.0;
        for value in [
            number(f64::NAN, 0),
            number(border, 0),
            number(border, 1),
            number(-border, -1),
            number(border, 1),
        ] {
            documents.push_value(value);
        }
        let keep = KeepRule::Max("f".into()).into();
        let (ranking, _) = ranked(&mut documents, &classes, &keep);
        assert_eq!(ranking.classes, [2, 4, 1, 3, 0]);
    }

    #[test]
    fn texts_rank_by_their_bytes_and_ties_go_to_the_next_rule() {
        let (mut documents, classes) = table(&[("a", 0, 1), ("b", 1, 9), ("c", 2, 5), ("d", 3, 7)]);
        documents.values = [0.0, 0.0, f64::NAN, 0.0].into_iter().collect();
        for text in ["v2", "v10", "v10"] {
            documents.value_texts.push(text);
        }
        let keep = "latest:version,shortest".parse().unwrap();
        let (ranking, _) = ranked(&mut documents, &classes, &keep);
        assert_eq!(ranking.classes, [0, 3, 1, 2]);
    }
}
