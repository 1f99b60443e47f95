//! Tables of documents and of classes: the data that a job keeps of every record, without its text.
//!
//! A *class* is all documents with equal text (equal BLAKE3 hash, of which 128 bits are stored). For pages whose text is a part of the visible text,
//! the visible text is equal too. Work is done once per class. The scan numbers documents in input order and classes in the order of their first
//! documents; [`super::ranking`] then sorts both by ids and contents only, and from there on the order of the input does not matter.

use lookalike_corpus::OrderNumber;
use serde::{Deserialize, Serialize};

use crate::dedup::class_id::{ClassId, put};
use crate::dedup::id_table::IdTable;
use crate::dedup::length_column::LengthColumn;
use crate::dedup::pages::PageColumns;
use crate::kernel::survivor_order::ordered_bits;
use crate::parallel::column;
use crate::spill::feature_sets::SetPosition;
use crate::spill::table_column::TableColumn;

/// Columns of the document table, by position in the input.
///
/// Memory: 18 bytes per document and its id, 8 bytes less once it is ranked, 8 bytes more if a field orders survivors.
#[derive(Default)]
pub(crate) struct DocumentTable {
    pub(crate) ids: IdTable,
    /// Class of each document; `None` for a document without any text, which equals no other.
    pub(crate) classes: TableColumn<Option<ClassId>>,
    /// Bytes of text.
    pub(crate) lengths: LengthColumn,
    /// Hashes of the records as read, which distinguish records of the same id and text.
    pub(crate) record_hashes: TableColumn<u64>,
    /// Value of the field that orders survivors; empty if there is none.
    pub(crate) values: TableColumn<f64>,
    /// Remainders of integers beyond 2^53 and of times with nanoseconds, see [`OrderNumber`]; empty if there are none.
    value_rests: TableColumn<i64>,
    /// Texts of that field, if survivors are ordered by text; then `values` is NaN for documents without a text, and 0 for the others.
    pub(crate) value_texts: ValueTexts,
    /// Number of documents, from the first, that are only compared with and never removed.
    pub(crate) against: usize,
    /// Number of these, from the first, that come from a collection: its documents that the job may have to compare.
    pub(crate) stored: usize,
}

impl DocumentTable {
    pub(crate) fn len(&self) -> usize {
        self.lengths.len()
    }

    pub(crate) fn push_id(&mut self, id: &str) {
        self.ids.push(id);
    }

    /// Returns true if a document is only compared with and never removed.
    pub(crate) fn is_against(&self, document: u32) -> bool {
        (document as usize) < self.against
    }

    pub(crate) fn id(&self, document: usize) -> &str {
        self.ids.get(document)
    }

    /// Returns the bytes of an id, whose order is the order of ids.
    pub(super) fn raw_id(&self, document: usize) -> &[u8] {
        self.ids.raw(document)
    }

    /// Creates a table without classes from its columns.
    pub(crate) fn from_columns(ids: IdTable, lengths: LengthColumn, against: usize) -> Self {
        Self {
            ids,
            lengths,
            against,
            ..Self::default()
        }
    }

    /// Returns the ids, classes and lengths of documents in the given order, which contains each document once.
    pub(crate) fn in_order(&self, order: &[u32]) -> Self {
        let order_of = || order.iter().map(|&document| document as usize);
        let lengths = order_of().map(|document| self.lengths.get(document));
        Self {
            classes: order_of().map(|document| self.classes[document]).collect(),
            ..Self::from_columns(self.ids.in_order(order), lengths.collect(), 0)
        }
    }

    /// Returns the id that a document was read with, which other documents may have too.
    pub(crate) fn given_id(&self, document: u32) -> &str {
        self.ids.original_id(document as usize)
    }

    /// Drops the columns that only ranking and deciding use.
    pub(crate) fn drop_classes(&mut self) {
        self.classes = TableColumn::new();
        self.record_hashes = TableColumn::new();
        self.values = TableColumn::new();
    }

    /// Adds the value of the next document.
    pub(crate) fn push_value(&mut self, value: OrderNumber) {
        // The column is created at the first number that needs it: most jobs have none.
        if value.rest != 0 || !self.value_rests.is_empty() {
            self.value_rests.resize(self.values.len(), 0);
            self.value_rests.push(value.rest);
        }
        self.values.push(value.nearest);
    }

    /// Replaces all values by small numbers in the same order, if there are numbers that a double cannot hold.
    pub(super) fn rank_values_with_rests(&mut self) {
        let rests = std::mem::take(&mut self.value_rests);
        if rests.is_empty() {
            return;
        }
        let values = &mut self.values;
        // The nearest number first, then its remainder: see `OrderNumber`.
        let key = |values: &[f64], at: u32| {
            let at = at as usize;
            (ordered_bits(values[at]), rests[at])
        };
        // A missing value stays NaN, which is last for every rule.
        let mut order: TableColumn<u32> = (0..values.len() as u32)
            .filter(|&at| !values[at as usize].is_nan())
            .collect();
        order.sort_unstable_by_key(|&at| key(values, at));
        // Equal numbers get the same rank, so that the next rule decides.
        let (mut rank, mut last) = (0, None);
        for &document in &order {
            let own = key(values, document);
            rank += u32::from(last.is_some_and(|last| last != own));
            last = Some(own);
            values[document as usize] = f64::from(rank);
        }
    }

    /// Replaces the texts of the field that orders survivors by numbers in the same order.
    pub(super) fn rank_value_texts(&mut self) {
        let texts = std::mem::take(&mut self.value_texts);
        if texts.ends.is_empty() {
            return;
        }
        // Texts were pushed for exactly these documents, in this order.
        let with_text = self.values.iter_mut().filter(|value| !value.is_nan());
        for (value, rank) in with_text.zip(texts.ranks()) {
            *value = f64::from(rank);
        }
    }

    /// Returns a copy of the facts that ranking consumes.
    pub(crate) fn ranking_facts(&self) -> RankingFacts {
        let mut texts = 0;
        // A document without a text gets the number of another one's, which `RankingFacts::value` never looks up.
        let text_numbers = self.values.iter().map(|value| {
            texts += u32::from(!value.is_nan());
            texts.saturating_sub(1)
        });
        RankingFacts {
            text_numbers: match self.value_texts.ends.is_empty() {
                true => TableColumn::new(),
                false => text_numbers.collect(),
            },
            record_hashes: self.record_hashes.clone(),
            values: self.values.clone(),
            value_rests: self.value_rests.clone(),
            value_texts: self.value_texts.clone(),
        }
    }

    /// Puts documents of a collection, which are only compared with, before all others.
    pub(crate) fn prepend(&mut self, mut stored: Self) {
        stored.ids.append(&self.ids);
        if !stored.value_rests.is_empty() || !self.value_rests.is_empty() {
            // Both must have the column or neither, or the values that follow would be shifted.
            stored.value_rests.resize(stored.values.len(), 0);
            self.value_rests.resize(self.values.len(), 0);
        }
        // Before the columns are appended, because their length is the number of documents.
        stored.against = stored.len() + self.against;
        stored.stored = stored.len() + self.stored;
        stored.classes.append(&mut self.classes);
        stored.lengths.extend(self.lengths.iter());
        stored.record_hashes.append(&mut self.record_hashes);
        stored.values.append(&mut self.values);
        stored.value_rests.append(&mut self.value_rests);
        stored.value_texts.append(&self.value_texts);
        *self = stored;
    }

    pub(super) fn rename(&mut self, document: usize, id: &str) {
        self.ids.rename(document, id);
    }

    /// Returns the number of documents that were read and have a new id.
    pub(super) fn renamed(&self) -> u64 {
        self.ids.renamed_from(self.stored)
    }

    /// Returns the number of documents with a text minus `distinct`, the number of different texts.
    pub(crate) fn repeated_texts(&self, distinct: u64) -> u64 {
        self.classes.iter().flatten().count() as u64 - distinct
    }

    /// Returns the number of bytes of this table. Unused capacity is not counted, because the system has not provided it yet.
    pub(crate) fn bytes(&self) -> u64 {
        let columns = self.classes.len() * 4
            + self.record_hashes.len() * 8
            + (self.values.len() + self.value_rests.len()) * 8
            + self.value_texts.bytes.len()
            + self.value_texts.ends.len() * 8;
        (self.ids.bytes() + self.lengths.bytes() + columns) as u64
    }
}

/// Facts of documents that [`DocumentRanking::of_ids`] consumes, by position in the input.
///
/// Memory: 8 bytes per document, and 12 to 20 more if a field orders survivors.
#[derive(Default)]
pub(crate) struct RankingFacts {
    record_hashes: TableColumn<u64>,
    values: TableColumn<f64>,
    value_rests: TableColumn<i64>,
    value_texts: ValueTexts,
    /// Index of each document's text in `value_texts`; empty if there are no texts.
    text_numbers: TableColumn<u32>,
}

impl RankingFacts {
    pub(crate) fn record_hash(&self, document: usize) -> u64 {
        self.record_hashes[document]
    }

    /// Returns the value of the field that orders survivors, and its text if survivors are ordered by text.
    pub(crate) fn value(&self, document: usize) -> Option<(OrderNumber, Option<&[u8]>)> {
        let nearest = *self.values.get(document).filter(|value| !value.is_nan())?;
        let rest = self.value_rests.get(document).copied().unwrap_or(0);
        let number = self.text_numbers.get(document);
        let text = number.map(|&number| self.value_texts.text(number as usize));
        Some((OrderNumber { nearest, rest }, text))
    }
}

/// Concatenated texts, with the end of each.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct ValueTexts {
    bytes: TableColumn<u8>,
    ends: TableColumn<usize>,
}

impl ValueTexts {
    pub(crate) fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.ends.push(self.bytes.len());
    }

    /// Appends all of `others`.
    pub(crate) fn append(&mut self, others: &Self) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&others.bytes);
        self.ends.extend(others.ends.iter().map(|end| start + end));
    }

    fn text(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[number]]
    }

    /// Returns, for each text, the number of different texts before it in byte order.
    fn ranks(&self) -> TableColumn<u32> {
        let text = |at: &u32| self.text(*at as usize);
        let mut order: TableColumn<u32> = (0..self.ends.len() as u32).collect();
        // Equal texts get the same rank, so it does not matter in which order they come.
        order.sort_unstable_by(|a, b| text(a).cmp(text(b)));
        let mut ranks = TableColumn::zeroed(order.len());
        let mut rank = 0;
        for (at, document) in order.iter().enumerate() {
            if at > 0 && text(&order[at - 1]) != text(document) {
                rank += 1;
            }
            ranks[*document as usize] = rank;
        }
        ranks
    }
}

/// Columns of the class table, by class position.
///
/// Memory: 28 bytes per class, 20 once it is ranked, 8 while it is compared; 8 more for fingerprints or 16 for those of 128 bits, 24 more for
/// categories, 36 more for pages of which a part was chosen.
#[derive(Default)]
pub(crate) struct TextClasses {
    /// Hash of the text and of all else that verification reads: see [`PlacedText::class_hash`].
    ///
    /// [`PlacedText::class_hash`]: crate::kernel::placed_text::PlacedText::class_hash
    pub(crate) hashes: TableColumn<u128>,
    /// Upper halves of `hashes`: all that is used after ranking, except for visible texts and collections.
    pub(crate) high_hashes: TableColumn<u64>,
    /// Place of the feature set.
    pub(crate) places: TableColumn<SetPosition>,
    /// Number of distinct features; 0 for texts without features, which resemble no other.
    pub(crate) sizes: TableColumn<u32>,
    /// Simhash fingerprints, if the method needs them; 0 if the size is 0.
    pub(crate) fingerprints: TableColumn<u64>,
    /// Upper halves of fingerprints of 128 bits; empty for narrower ones.
    pub(crate) high_fingerprints: TableColumn<u64>,
    /// Category of each class; empty if categories are not compared.
    pub(crate) categories: TableColumn<u64>,
    /// Hash of the visible text of each class; 0 or missing if it equals the value in `hashes`. See [`TextClasses::visible_text`].
    texts: TableColumn<u128>,
    /// Facts about the pages of the classes.
    pub(crate) pages: PageColumns,
}

impl TextClasses {
    pub(crate) fn len(&self) -> usize {
        self.sizes.len()
    }

    /// Sets the values of a class; threads finish classes in any order.
    pub(crate) fn set(&mut self, class: ClassId, hash: u128, place: SetPosition, size: u32) {
        put(&mut self.hashes, class, hash);
        self.set_features(class, place, size);
    }

    /// Sets the values of a class, as [`TextClasses::set`] does, except its hash, which is set later.
    pub(crate) fn set_features(&mut self, class: ClassId, place: SetPosition, size: u32) {
        put(&mut self.places, class, place);
        put(&mut self.sizes, class, size);
    }

    /// Sets the fingerprint of a class, which has `bits` bits.
    pub(crate) fn set_fingerprint(&mut self, class: ClassId, fingerprint: u128, bits: u32) {
        put(&mut self.fingerprints, class, fingerprint as u64);
        if bits > 64 {
            put(
                &mut self.high_fingerprints,
                class,
                (fingerprint >> 64) as u64,
            );
        }
    }

    /// Returns the fingerprint of a class, with all its bits.
    pub(crate) fn fingerprint(&self, class: usize) -> u128 {
        let of = |half: &[u64]| u128::from(half.get(class).copied().unwrap_or(0));
        of(&self.high_fingerprints) << 64 | of(&self.fingerprints)
    }

    /// Sets the category of a class and the hash of its visible text.
    pub(crate) fn set_category(&mut self, class: ClassId, category: u64, text: u128) {
        put(&mut self.categories, class, category);
        put(&mut self.texts, class, text);
    }

    /// Sets the hash of the visible text of a class whose text is a part of it.
    pub(crate) fn set_visible_text(&mut self, class: ClassId, text: u128) {
        put(&mut self.texts, class, text);
    }

    /// Returns the hash of the visible text of a class; exact copies have the same.
    pub(crate) fn visible_text(&self, class: usize) -> u128 {
        match self.texts.get(class) {
            None | Some(0) => self.hashes[class],
            Some(&text) => text,
        }
    }

    /// Returns the visible text of a class with its category, or with 0 if categories are not compared.
    fn placed_text(&self, class: usize) -> (u128, u64) {
        let category = self.categories.get(class).copied().unwrap_or(0);
        (self.visible_text(class), category)
    }

    /// Returns the visible text and category of each page among the first `classes`, in order.
    pub(crate) fn page_texts(&self, classes: usize) -> TableColumn<(u128, u64)> {
        let pages = (0..classes).filter(|&class| self.pages.is_page(class));
        let mut texts: TableColumn<_> = pages.map(|class| self.placed_text(class)).collect();
        texts.sort_unstable();
        texts
    }

    /// Returns those of the first `classes` that are not pages but have a visible text and category of `pages`.
    pub(crate) fn beside_pages(
        &self,
        pages: &[(u128, u64)],
        classes: usize,
    ) -> impl Iterator<Item = usize> {
        let classes = if pages.is_empty() { 0 } else { classes };
        let others = (0..classes).filter(|&class| !self.pages.is_page(class));
        others.filter(move |&class| pages.binary_search(&self.placed_text(class)).is_ok())
    }

    /// Returns how many of the first `classes` have the visible text and category of another: all but one of each.
    pub(crate) fn repeated_texts(&self, classes: usize) -> u64 {
        let mut pages = self.page_texts(classes);
        let all = pages.len();
        pages.dedup();
        (all - pages.len() + self.beside_pages(&pages, classes).count()) as u64
    }

    /// Computes the upper halves of the hashes, and drops the complete ones unless they are `wanted`.
    pub(crate) fn halve_hashes(&mut self, are_wanted: bool, threads: usize) {
        let hashes = &self.hashes;
        self.high_hashes = column(hashes.len(), threads, |class| (hashes[class] >> 64) as u64);
        if !are_wanted && !self.has_visible_texts() {
            self.hashes = TableColumn::new();
        }
    }

    /// Returns true if different classes may have the same visible text.
    pub(crate) fn has_visible_texts(&self) -> bool {
        !self.texts.is_empty() || !self.pages.is_empty()
    }

    /// Returns the Hamming distance of the fingerprints of two classes.
    pub(crate) fn distance(&self, a: usize, b: usize) -> u32 {
        let of = |half: &[u64]| match half.is_empty() {
            true => 0,
            false => (half[a] ^ half[b]).count_ones(),
        };
        of(&self.fingerprints) + of(&self.high_fingerprints)
    }

    /// Returns the number of bytes of this table, as [`DocumentTable::bytes`] does.
    pub(crate) fn bytes(&self) -> u64 {
        let halves = self.high_hashes.len() + self.places.len();
        let each = self.hashes.len() * 16 + halves * 8;
        let fingerprints = self.fingerprints.len() + self.high_fingerprints.len();
        let categories = self.categories.len() * 8 + self.texts.len() * 16;
        (each + self.sizes.len() * 4 + fingerprints * 8 + categories) as u64 + self.pages.bytes()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn texts_have_as_rank_how_many_different_ones_come_before(
            texts in prop::collection::vec("[ab]{0,3}", 0..30),
            split in 0..30_usize,
        ) {
            let (first, second) = texts.split_at(split.min(texts.len()));
            let pushed = |texts: &[String]| {
                let mut all = ValueTexts::default();
                texts.iter().for_each(|text| all.push(text));
                all
            };
            let mut all = pushed(first);
            all.append(&pushed(second));
            let distinct: std::collections::BTreeSet<&String> = texts.iter().collect();
            let expected: Vec<u32> = texts.iter().map(|text| distinct.iter().filter(|other| **other < text).count() as u32).collect();
            prop_assert_eq!(all.ranks(), expected);
        }
    }
}
