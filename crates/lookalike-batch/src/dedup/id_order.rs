//! The order of documents by id, which all document numbers in results are based on.
//!
//! Ids are stored in the order of the input, perhaps on disk, and finding one means reading some of its neighbours. A comparison sort would find
//! two ids for each of n log n comparisons. This sort takes eight bytes of each id as a key: it sorts documents by their keys, then those with
//! equal keys by the eight bytes after the common prefix of their ids, until few are left, whose ids are copied and compared. Each level finds
//! each id twice, in the order of the input.

use std::cell::Cell;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering as AtomicOrdering};

use crate::dedup::documents::{DocumentTable, TextClasses};
use crate::error::BatchError;
use crate::parallel::{column, in_ranges, map_parallel_limited, share_length};
use crate::parallel_sort::{KeyedNumber, sort_unequal_by};
use crate::settings::RepeatedIds;
use crate::spill::table_column::TableColumn;

/// The order of documents by id, after repeated ids were renamed.
pub(crate) struct IdOrder {
    /// Documents in the order of their ids.
    pub(crate) by_id: TableColumn<u32>,
    /// Number of documents that were read with a repeated id and renamed.
    pub(crate) renamed: u64,
}

impl IdOrder {
    /// Sorts documents by id and renames repeated ids. Drops the hashes of records, which are only needed to distinguish those. Input that is already
    /// in the order of its ids takes one pass.
    pub(crate) fn new(
        documents: &mut DocumentTable,
        classes: &TextClasses,
        repeated: RepeatedIds,
        threads: usize,
    ) -> Result<Self, BatchError> {
        // A new id may equal that of another document, so repeat until all differ. The loop ends because ids grow.
        let by_id = loop {
            let (order, may_repeat) = sorted_by_id(documents, classes, threads);
            let repeats = match may_repeat {
                true => repeats(documents, &order, threads),
                false => TableColumn::new(),
            };
            if repeats.is_empty() {
                break order;
            }
            rename_repeats(documents, repeats, repeated)?;
        };
        documents.record_hashes = TableColumn::new();
        // Counted at the end, because a document may be renamed several times.
        let renamed = documents.renamed();
        Ok(Self { by_id, renamed })
    }
}

/// Renames documents with repeated ids, or refuses them.
fn rename_repeats(
    documents: &mut DocumentTable,
    repeats: TableColumn<(u32, u32)>,
    repeated: RepeatedIds,
) -> Result<(), BatchError> {
    // Which documents of a collection are loaded depends on the new documents, so they must not cause a refusal.
    let read = |&(document, _): &(u32, u32)| document as usize >= documents.stored;
    if repeated == RepeatedIds::Refuse
        && let Some((first, _)) = repeats.iter().copied().find(read)
    {
        return Err(BatchError::RepeatedId {
            id: documents.id(first as usize).to_owned(),
            count: repeats.iter().copied().filter(read).count(),
        });
    }
    for (document, number) in repeats {
        let id = format!("{}#{number}", documents.id(document as usize));
        documents.rename(document as usize, &id);
    }
    Ok(())
}

/// Returns the documents in order, and false if all ids are known to be different.
fn sorted_by_id(
    documents: &DocumentTable,
    classes: &TextClasses,
    threads: usize,
) -> (TableColumn<u32>, bool) {
    let count = documents.len();
    if are_sorted(documents, threads) {
        return (column(count, threads, |document| document as u32), false);
    }
    let sort = IdSort {
        documents,
        classes,
        most_gathered: MAX_GATHERED,
        has_repeats: AtomicBool::new(false),
    };
    let order = sort.all(threads);
    (order, sort.has_repeats.into_inner())
}

/// Maximum number of documents whose ids are copied and compared.
const MAX_GATHERED: usize = 2048;

/// Maximum number of bytes of these ids.
const MAX_GATHERED_BYTES: usize = 1 << 18;

/// Maximum number of levels of keys, because each takes a stack frame. Ids that need more were made for that purpose, and are compared.
const MAX_LEVELS: usize = 64;

/// Number of bytes of a key.
const KEY: usize = 8;

/// A sort of documents by eight bytes of their ids at a time; see the module's header.
struct IdSort<'a> {
    documents: &'a DocumentTable,
    classes: &'a TextClasses,
    most_gathered: usize,
    /// True once two equal ids were found.
    has_repeats: AtomicBool,
}

impl IdSort<'_> {
    fn all(&self, threads: usize) -> TableColumn<u32> {
        let mut order = column(self.documents.len(), threads, |document| {
            KeyedNumber::new(0, document as u32)
        });
        // New documents start again from the smallest id, so both sides are sorted separately.
        let (old, new) = order.split_at_mut(self.documents.against);
        self.sort(old, 0, MAX_LEVELS, threads);
        self.sort(new, 0, MAX_LEVELS, threads);
        column(order.len(), threads, |place| order[place].number)
    }

    /// Sorts documents that are in the order of the input and whose ids share at least their first `common` bytes.
    fn sort(&self, run: &mut [KeyedNumber], common: usize, levels: usize, threads: usize) {
        if self.sort_gathered(run, common) {
            return;
        }
        let common = self.common_bytes(run, common, threads);
        self.set_keys(run, common, threads);
        // By number within equal keys, because ids are read in the order of the input on the next level.
        sort_unequal_by(run, threads, |a, b| {
            (a.key(), a.number).cmp(&(b.key(), b.number))
        });
        let (pieces, large) = pieces(run, share_length(run.len(), threads), threads);
        map_parallel_limited(pieces.into_iter(), threads, |piece| {
            for run in piece.chunk_by_mut(|a, b| a.key() == b.key()) {
                self.sort_after_key(run, common, levels, 1);
            }
        });
        // Many ids with one key are one piece of work that a single thread would finish last, so all threads sort it.
        for run in large {
            self.sort_after_key(run, common, levels, threads);
        }
    }

    /// Sorts documents whose ids share `common` bytes and the key after them.
    fn sort_after_key(
        &self,
        run: &mut [KeyedNumber],
        common: usize,
        levels: usize,
        threads: usize,
    ) {
        // A key that ends with a zero may belong to ids that end within it.
        let has_whole_keys = run[0].key() as u8 != 0;
        match run.len() {
            1 => {}
            _ if levels > 0 && has_whole_keys => self.sort(run, common + KEY, levels - 1, threads),
            _ if self.sort_gathered(run, common) => {}
            _ => sort_unequal_by(run, threads, |a, b| {
                let id = |document: &KeyedNumber| {
                    let id = self.documents.raw_id(document.number as usize);
                    (id, document.number)
                };
                self.compare(id(a), id(b))
            }),
        }
    }

    /// Sorts documents by copies of their ids after the `common` bytes that all share. Returns false if the documents are too many or their ids too
    /// long.
    fn sort_gathered(&self, run: &mut [KeyedNumber], common: usize) -> bool {
        if run.len() > self.most_gathered {
            return false;
        }
        let (mut bytes, mut ids) = (Vec::new(), Vec::with_capacity(run.len()));
        for (document, id) in run.iter().zip(self.ids(run)) {
            let start = bytes.len();
            // Only bytes after `common` are copied, so only they count.
            if start + id.len() > common + MAX_GATHERED_BYTES {
                return false;
            }
            bytes.extend_from_slice(&id[common..]);
            ids.push((start..bytes.len(), document.number));
        }
        let id = |(place, number): &(Range<usize>, u32)| (&bytes[place.clone()], *number);
        ids.sort_unstable_by(|a, b| self.compare(id(a), id(b)));
        for (place, (_, number)) in run.iter_mut().zip(ids) {
            place.number = number;
        }
        true
    }

    fn compare(&self, a: (&[u8], u32), b: (&[u8], u32)) -> Ordering {
        let content = |document: u32| {
            let class = self.documents.classes[document as usize];
            let text = class.map(|class| self.classes.hashes[class.position()]);
            (text, self.documents.record_hashes[document as usize])
        };
        a.0.cmp(b.0).then_with(|| {
            self.has_repeats.store(true, AtomicOrdering::Relaxed);
            // Documents with the same id are ordered by their contents, so that their numbers do not depend on the order of the input. If everything
            // is equal, their order does not matter.
            let contents = content(a.1).cmp(&content(b.1));
            contents.then(a.1.cmp(&b.1))
        })
    }

    /// Returns the ids of documents that are in the order of the input.
    fn ids(&self, run: &[KeyedNumber]) -> impl Iterator<Item = &[u8]> {
        let documents = run.iter().map(|document| document.number as usize);
        self.documents.ids.raw_of(documents)
    }

    /// Returns the length of the longest common prefix of these ids; it is at least `known`.
    fn common_bytes(&self, run: &[KeyedNumber], known: usize, threads: usize) -> usize {
        let first = self.documents.raw_id(run[0].number as usize);
        let common = |range: Range<usize>| {
            let mut common = first.len();
            for id in self.ids(&run[range]) {
                let both = first[known..common].iter().zip(&id[known..]);
                common = known + both.take_while(|(a, b)| a == b).count();
                if common == known {
                    break;
                }
            }
            common
        };
        let common = in_ranges(run.len(), threads, common);
        common.into_iter().min().unwrap_or(known)
    }

    /// Sets the key of each document to the eight bytes of its id after `common`.
    fn set_keys(&self, run: &mut [KeyedNumber], common: usize, threads: usize) {
        let length = share_length(run.len(), threads);
        map_parallel_limited(run.chunks_mut(length), threads, |part| {
            // Cells, because the ids are read by the numbers of the same entries whose keys are being set.
            let part = Cell::from_mut(part).as_slice_of_cells();
            let documents = part.iter().map(|place| place.get().number as usize);
            let ids = self.documents.ids.raw_of(documents);
            for (place, id) in part.iter().zip(ids) {
                place.set(KeyedNumber::new(
                    leading_bytes(&id[common..]),
                    place.get().number,
                ));
            }
        });
    }
}

/// Divides documents, sorted by key, into pieces of about `length` that do not end within documents of equal keys, and larger runs of equal keys.
/// With one thread there is one piece.
fn pieces(
    mut rest: &mut [KeyedNumber],
    length: usize,
    threads: usize,
) -> (Vec<&mut [KeyedNumber]>, Vec<&mut [KeyedNumber]>) {
    let (mut pieces, mut large) = (Vec::new(), Vec::new());
    if threads < 2 {
        return (vec![rest], large);
    }
    while !rest.is_empty() {
        // The piece has at least the given length, and goes on to the end of the last key in it.
        let last = rest[length.min(rest.len()) - 1].key();
        let start = rest.partition_point(|document| document.key() < last);
        let end = start + rest[start..].partition_point(|document| document.key() == last);
        let (piece, others) = rest.split_at_mut(end);
        rest = others;
        match end - start > length {
            true => {
                let (piece, run) = piece.split_at_mut(start);
                pieces.push(piece);
                large.push(run);
            }
            false => pieces.push(piece),
        }
    }
    (pieces, large)
}

/// Returns true if the documents are already sorted.
fn are_sorted(documents: &DocumentTable, threads: usize) -> bool {
    let are_sorted = AtomicBool::new(true);
    in_ranges(documents.len(), threads, |range| {
        // Skip the rest once any thread has found that they are not.
        if !are_sorted.load(AtomicOrdering::Relaxed) {
            return;
        }
        // From the last document of the range before, so that the pair across the boundary is compared too.
        let from = range.start.saturating_sub(1);
        let ids = documents.ids.raw_of(from..range.end);
        let followers = documents.ids.raw_of(from + 1..range.end);
        let mut pairs = (from + 1..).zip(ids.zip(followers));
        // Strictly ascending, so sorted ids are also different. At `against`, the ids of new documents start again.
        if !pairs.all(|(second, (a, b))| a < b || second == documents.against) {
            are_sorted.store(false, AtomicOrdering::Relaxed);
        }
    });
    are_sorted.into_inner()
}

/// Returns the first eight bytes of the rest of an id as a number with the order of the bytes.
fn leading_bytes(id: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = id.len().min(8);
    // Short ids are padded with zeros, so such a key may equal that of a longer id.
    bytes[..length].copy_from_slice(&id[..length]);
    u64::from_be_bytes(bytes)
}

/// Returns the documents whose id equals that of their predecessor, with the number 2 for the second of an id, 3 for the third.
fn repeats(documents: &DocumentTable, order: &[u32], threads: usize) -> TableColumn<(u32, u32)> {
    let repeats_last = |place: &usize| {
        let [last, own] = [order[place - 1] as usize, order[*place] as usize];
        let same_side = (last >= documents.against) == (own >= documents.against);
        same_side && documents.raw_id(last) == documents.raw_id(own)
    };
    let places = in_ranges(order.len(), threads, |range| -> TableColumn<usize> {
        (range.start.max(1)..range.end)
            .filter(repeats_last)
            .collect()
    });
    let (mut found, mut number, mut last) = (TableColumn::new(), 1, 0);
    for place in places.into_iter().flatten() {
        // `last` is the place of the previous repeat; if it is adjacent, the id is the same.
        number = match place == last + 1 {
            true => number + 1,
            false => 2,
        };
        last = place;
        found.push((order[place], number));
    }
    found
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dedup::class_id::ClassId;
    use crate::parallel::PARALLEL_MIN;

    /// Creates documents with these ids, classes and lengths.
    pub(in super::super) fn table(rows: &[(&str, usize, u64)]) -> (DocumentTable, TextClasses) {
        let (mut documents, mut classes) = (DocumentTable::default(), TextClasses::default());
        for &(id, class, length) in rows {
            documents.push_id(id);
            documents.classes.push(ClassId::new(class));
            documents.lengths.push(length);
            documents.record_hashes.push(0);
            while classes.hashes.len() <= class {
                classes.sizes.push(0);
                let hash = classes.hashes.len() as u128 * 77 % 13;
                classes.hashes.push(hash);
            }
        }
        (documents, classes)
    }

    /// Returns the order by comparing whole ids.
    fn compared(
        rows: &[(String, usize, u64)],
        documents: &DocumentTable,
        classes: &TextClasses,
    ) -> Vec<u32> {
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        order.sort_by_key(|&document| {
            let (id, class, hash) = &rows[document as usize];
            let is_new = document as usize >= documents.against;
            (
                is_new,
                id.as_bytes(),
                classes.hashes[*class],
                *hash,
                document,
            )
        });
        order
    }

    fn table_of(rows: &[(String, usize, u64)], against: usize) -> (DocumentTable, TextClasses) {
        let table_rows: Vec<(&str, usize, u64)> = rows
            .iter()
            .map(|(id, class, _)| (id.as_str(), *class, 1))
            .collect();
        let (mut documents, classes) = table(&table_rows);
        documents.record_hashes = rows.iter().map(|row| row.2).collect();
        documents.against = against.min(rows.len());
        (documents, classes)
    }

    #[test]
    fn a_document_that_was_renamed_twice_was_counted_twice() {
        let rows = ["a#2", "a", "a", "b"].map(|id| (id, 0, 1));
        let (mut documents, classes) = table(&rows);
        let order = IdOrder::new(&mut documents, &classes, RepeatedIds::Number, 1).unwrap();
        let ids: Vec<&str> = (0..4).map(|document| documents.id(document)).collect();
        assert_eq!(ids, ["a#2", "a", "a#2#2", "b"]);
        assert_eq!(order.renamed, 1);
    }

    proptest! {
        #[test]
        fn documents_are_sorted_by_id_then_content_then_place(
            rows in prop::collection::vec(("(http://a/|page-0000000){0,3}[ab\\x00é]{0,10}", 0..4_usize, 0..3_u64), 0..60),
            against in 0..10_usize,
            most_gathered in prop::sample::select(vec![1, 2, 5, MAX_GATHERED]),
        ) {
            let (documents, classes) = table_of(&rows, against);
            let expected = compared(&rows, &documents, &classes);
            let sort = IdSort { documents: &documents, classes: &classes, most_gathered, has_repeats: AtomicBool::new(false) };
            prop_assert_eq!(sort.all(1), expected.clone());
            let (order, may_repeat) = sorted_by_id(&documents, &classes, 1);
            prop_assert_eq!(&order, &expected);
            prop_assert!(may_repeat || repeats(&documents, &order, 1).is_empty());
        }

        #[test]
        fn repeated_ids_become_different_and_others_stay(
            ids_given in prop::collection::vec("[ab](#[23]){0,2}", 0..30),
        ) {
            let rows: Vec<(&str, usize, u64)> = ids_given.iter().map(|id| (id.as_str(), 0, 1)).collect();
            let (mut documents, classes) = table(&rows);
            let IdOrder { by_id: order, renamed } = IdOrder::new(&mut documents, &classes, RepeatedIds::Number, 1).unwrap();
            let names: Vec<String> = order.iter().map(|&document| documents.id(document as usize).to_owned()).collect();
            prop_assert!(names.is_sorted_by(|a, b| a < b), "{:?}", names);
            let distinct: std::collections::BTreeSet<&String> = ids_given.iter().collect();
            prop_assert_eq!(renamed == 0, distinct.len() == ids_given.len());
            for (document, given) in ids_given.iter().enumerate() {
                prop_assert_eq!(documents.given_id(document as u32), given);
                prop_assert!(documents.id(document).starts_with(given.as_str()));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn addresses_are_sorted_on_any_number_of_threads(
            count in PARALLEL_MIN..2 * PARALLEL_MIN,
            sites in prop_oneof![Just(1), Just(3), Just(997)],
            pages in prop_oneof![Just(1), Just(50), Just(1 << 40)],
            against in 0..PARALLEL_MIN,
            threads in 1..6_usize,
        ) {
            let mixed = |at: usize| (at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
            let rows: Vec<(String, usize, u64)> = (0..count).map(|at| {
                let (site, page) = (mixed(at) % sites, mixed(at + count) % pages);
                // One site has most of the pages.
                let site = if at % 4 == 0 { site } else { 0 };
                (format!("https://www.site{site}.example/archive/{}/article-{page}", page % 7), at % 10, page % 3)
            }).collect();
            let (documents, classes) = table_of(&rows, against);
            let (order, may_repeat) = sorted_by_id(&documents, &classes, threads);
            prop_assert_eq!(&order, &compared(&rows, &documents, &classes));
            prop_assert!(may_repeat || repeats(&documents, &order, threads).is_empty());
        }
    }

    /// Each level of keys separates one id from the others.
    #[test]
    fn ids_that_are_made_to_take_a_level_each_are_sorted() {
        let rows: Vec<(String, usize, u64)> = (0..3 * MAX_LEVELS)
            .rev()
            .map(|at| ("x".repeat(KEY * at), 0, 0))
            .collect();
        let (documents, classes) = table_of(&rows, 0);
        let sort = IdSort {
            documents: &documents,
            classes: &classes,
            most_gathered: 2,
            has_repeats: AtomicBool::new(false),
        };
        assert_eq!(sort.all(1), compared(&rows, &documents, &classes));
        assert!(!sort.has_repeats.into_inner());
    }
}
