//! The table of documents and of classes: what a job knows of every record without its text.
//!
//! A *class* is all documents with equal text (equal BLAKE3 hash, 128 bits kept); of pages also with equal visible text, of
//! which the text is a part. Work is done once a class. The
//! scan numbers documents in input order and classes as they turn up; [`DocumentRanking`] then puts both into orders that
//! depend only on ids and contents, and from there on the input's order is forgotten.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering as AtomicOrdering};

use lookalike_corpus::OrderNumber;
use serde::{Deserialize, Serialize};

use crate::dedup::class_id::{ClassId, put};
use crate::dedup::pages::PageColumns;
use crate::error::BatchError;
use crate::kernel::survivor_order::ordered_bits;
use crate::parallel::{column, in_ranges, inverse};
use crate::parallel_sort::sort_unequal_by;
use crate::settings::{KeepRule, KeepRules, RepeatedIds};
use crate::spill::feature_sets::SetPlace;

/// Columns of the document table, by position in the input.
///
/// Memory: 32 bytes a document and its id, 8 more when a field decides who survives.
#[derive(Default)]
pub(crate) struct DocumentTable {
    id_bytes: Vec<u8>,
    id_starts: Vec<u64>,
    id_lengths: Vec<u32>,
    /// Class of each document; `None` for a document without any text, which equals no other.
    pub(crate) classes: Vec<Option<ClassId>>,
    /// Bytes of text.
    pub(crate) lengths: Vec<u64>,
    /// Hashes of the records as they came in: the last resort to tell records of one id apart.
    pub(crate) record_hashes: Vec<u64>,
    /// Value of the field that decides who survives; empty when none does.
    pub(crate) values: Vec<f64>,
    /// Differences of integers beyond 2^53 to those; empty while there are none.
    value_rests: Vec<i64>,
    /// The texts of that field, where their order decides; then `values` is NaN for documents that have none, and 0 for the others.
    pub(crate) value_texts: ValueTexts,
    /// Documents before this position were given with `--against`: they are never removed.
    pub(crate) against: usize,
    /// Of these, documents before this position come from a collection, and only those that the job may meet.
    pub(crate) stored: usize,
    /// Positions of the ids of numbered documents as they were given: start and length.
    given: BTreeMap<u32, (u64, u32)>,
}

/// Bytes of an entry of a B-tree of given ids, and of its share of the nodes.
const GIVEN_BYTES: usize = 40;

impl DocumentTable {
    pub(crate) fn len(&self) -> usize {
        self.lengths.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn push_id(&mut self, id: &str) {
        self.id_starts.push(self.id_bytes.len() as u64);
        self.id_lengths.push(id.len() as u32);
        self.id_bytes.extend_from_slice(id.as_bytes());
    }

    pub(crate) fn id(&self, document: usize) -> &str {
        self.id_at((self.id_starts[document], self.id_lengths[document]))
    }

    fn id_at(&self, place: (u64, u32)) -> &str {
        std::str::from_utf8(self.raw_id_at(place)).expect("ids are stored from strings")
    }

    /// The bytes of an id; their order is the order of ids.
    fn raw_id(&self, document: usize) -> &[u8] {
        self.raw_id_at((self.id_starts[document], self.id_lengths[document]))
    }

    fn raw_id_at(&self, (start, length): (u64, u32)) -> &[u8] {
        &self.id_bytes[start as usize..start as usize + length as usize]
    }

    /// Bytes of all ids, where each begins, and its length.
    pub(crate) fn id_columns(&self) -> (&[u8], &[u64], &[u32]) {
        (&self.id_bytes, &self.id_starts, &self.id_lengths)
    }

    /// A table without classes, from its columns.
    pub(crate) fn from_columns(
        (id_bytes, id_starts, id_lengths): (Vec<u8>, Vec<u64>, Vec<u32>),
        lengths: Vec<u64>,
        against: usize,
    ) -> Self {
        Self {
            id_bytes,
            id_starts,
            id_lengths,
            classes: Vec::new(),
            lengths,
            record_hashes: Vec::new(),
            values: Vec::new(),
            value_rests: Vec::new(),
            value_texts: ValueTexts::default(),
            against,
            stored: 0,
            given: BTreeMap::new(),
        }
    }

    /// The id that a document came with, which others may have too.
    pub(crate) fn given_id(&self, document: u32) -> &str {
        match self.given.get(&document) {
            Some(&place) => self.id_at(place),
            None => self.id(document as usize),
        }
    }

    /// Adds the value of the next document.
    pub(crate) fn push_value(&mut self, value: OrderNumber) {
        if value.rest != 0 || !self.value_rests.is_empty() {
            self.value_rests.resize(self.values.len(), 0);
            self.value_rests.push(value.rest);
        }
        self.values.push(value.nearest);
    }

    /// Puts small numbers in the same order in the place of integers that no double holds.
    fn rank_large_integers(&mut self) {
        let rests = std::mem::take(&mut self.value_rests);
        if rests.is_empty() {
            return;
        }
        let values = &mut self.values;
        let key = |values: &[f64], at: u32| {
            let at = at as usize;
            (ordered_bits(values[at]), rests[at])
        };
        let mut order: Vec<u32> = (0..values.len() as u32)
            .filter(|&at| !values[at as usize].is_nan())
            .collect();
        order.sort_unstable_by_key(|&at| key(values, at));
        let (mut rank, mut last) = (0, None);
        for &document in &order {
            let own = key(values, document);
            rank += u32::from(last.is_some_and(|last| last != own));
            last = Some(own);
            values[document as usize] = f64::from(rank);
        }
    }

    /// Makes numbers in the same order of the texts of the field that decides.
    fn rank_value_texts(&mut self) {
        let texts = std::mem::take(&mut self.value_texts);
        if texts.ends.is_empty() {
            return;
        }
        let with_text = self.values.iter_mut().filter(|value| !value.is_nan());
        for (value, rank) in with_text.zip(texts.ranks()) {
            *value = f64::from(rank);
        }
    }

    /// Facts that ranking uses up, as they are now.
    pub(crate) fn ranking_facts(&self) -> RankingFacts {
        let mut texts = 0;
        let text_numbers = self.values.iter().map(|value| {
            texts += u32::from(!value.is_nan());
            texts.saturating_sub(1)
        });
        RankingFacts {
            text_numbers: match self.value_texts.ends.is_empty() {
                true => Vec::new(),
                false => text_numbers.collect(),
            },
            record_hashes: self.record_hashes.clone(),
            values: self.values.clone(),
            value_rests: self.value_rests.clone(),
            value_texts: self.value_texts.clone(),
        }
    }

    /// Puts documents of a collection before all others. They are only compared with.
    pub(crate) fn put_before(&mut self, mut stored: Self) {
        let id_bytes = stored.id_bytes.len() as u64;
        stored.id_bytes.append(&mut self.id_bytes);
        let id_starts = self.id_starts.iter().map(|start| id_bytes + start);
        stored.id_starts.extend(id_starts);
        stored.id_lengths.append(&mut self.id_lengths);
        if !stored.value_rests.is_empty() || !self.value_rests.is_empty() {
            stored.value_rests.resize(stored.values.len(), 0);
            self.value_rests.resize(self.values.len(), 0);
        }
        stored.against = stored.len() + self.against;
        stored.stored = stored.len() + self.stored;
        stored.classes.append(&mut self.classes);
        stored.lengths.append(&mut self.lengths);
        stored.record_hashes.append(&mut self.record_hashes);
        stored.values.append(&mut self.values);
        stored.value_rests.append(&mut self.value_rests);
        stored.value_texts.append(&self.value_texts);
        *self = stored;
    }

    fn rename(&mut self, document: usize, id: &str) {
        let place = (self.id_starts[document], self.id_lengths[document]);
        self.given.entry(document as u32).or_insert(place);
        self.id_starts[document] = self.id_bytes.len() as u64;
        self.id_lengths[document] = id.len() as u32;
        self.id_bytes.extend_from_slice(id.as_bytes());
    }

    /// Documents with a text, but for one of each of the `distinct` texts.
    pub(crate) fn repeated_texts(&self, distinct: u64) -> u64 {
        self.classes.iter().flatten().count() as u64 - distinct
    }

    /// Bytes this table holds.
    pub(crate) fn bytes(&self) -> u64 {
        (self.id_bytes.capacity() + self.id_starts.capacity() * 8 + self.id_lengths.capacity() * 4)
            as u64
            + (self.classes.capacity() * 4
                + self.lengths.capacity() * 8
                + self.record_hashes.capacity() * 8
                + (self.values.capacity() + self.value_rests.capacity()) * 8
                + self.value_texts.bytes.capacity()
                + self.value_texts.ends.capacity() * 8
                + self.given.len() * GIVEN_BYTES) as u64
    }
}

/// Facts of documents that [`DocumentRanking::new`] uses up, by position in the input.
///
/// Memory: 8 bytes a document, 12 to 20 more when a field decides who survives.
#[derive(Default)]
pub(crate) struct RankingFacts {
    record_hashes: Vec<u64>,
    values: Vec<f64>,
    value_rests: Vec<i64>,
    value_texts: ValueTexts,
    /// The number of texts before that of each document; empty where there are none.
    text_numbers: Vec<u32>,
}

impl RankingFacts {
    pub(crate) fn record_hash(&self, document: usize) -> u64 {
        self.record_hashes[document]
    }

    /// The value of the field that decides who survives, and its text where texts do.
    pub(crate) fn value(&self, document: usize) -> Option<(OrderNumber, Option<&[u8]>)> {
        let nearest = *self.values.get(document).filter(|value| !value.is_nan())?;
        let rest = self.value_rests.get(document).copied().unwrap_or(0);
        let number = self.text_numbers.get(document);
        let text = number.map(|&number| self.value_texts.text(number as usize));
        Some((OrderNumber { nearest, rest }, text))
    }
}

/// Texts back to back, and where each ends.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct ValueTexts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl ValueTexts {
    pub(crate) fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.ends.push(self.bytes.len());
    }

    /// Adds all of `others`.
    pub(crate) fn append(&mut self, others: &Self) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&others.bytes);
        self.ends.extend(others.ends.iter().map(|end| start + end));
    }

    fn text(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[number]]
    }

    /// Number of different texts that come before each, in the order of bytes.
    fn ranks(&self) -> Vec<u32> {
        let text = |at: &u32| self.text(*at as usize);
        let mut order: Vec<u32> = (0..self.ends.len() as u32).collect();
        order.sort_unstable_by(|a, b| text(a).cmp(text(b)));
        let mut ranks = vec![0; order.len()];
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
/// Memory: 28 bytes a class, 8 more for fingerprints or 16 for those of 128 bits, 24 more for categories, 36 more for pages of
/// which a part was chosen.
#[derive(Default)]
pub(crate) struct TextClasses {
    /// First 128 bits of the BLAKE3 hash of the text, or of text, visible text and category.
    pub(crate) hashes: Vec<u128>,
    /// Position of the feature set.
    pub(crate) places: Vec<SetPlace>,
    /// Number of distinct features; 0 for texts without features, which are never near anything.
    pub(crate) sizes: Vec<u32>,
    /// Simhash fingerprints, when the method wants them; 0 stands beside a size of 0.
    pub(crate) fingerprints: Vec<u64>,
    /// The high half of fingerprints of 128 bits; empty for narrower ones.
    pub(crate) high_fingerprints: Vec<u64>,
    /// Category of each class; empty unless categories matter.
    pub(crate) categories: Vec<u64>,
    /// Hash of what a reader sees of each class, 0 or missing where `hashes` is just that; see [`TextClasses::visible_text`].
    texts: Vec<u128>,
    /// Facts about the pages that classes are.
    pub(crate) pages: PageColumns,
}

impl TextClasses {
    pub(crate) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Fills in a class; threads finish them in any order.
    pub(crate) fn set(&mut self, class: ClassId, hash: u128, place: SetPlace, size: u32) {
        let position = class.position();
        if position >= self.hashes.len() {
            self.hashes.resize(position + 1, 0);
            self.places.resize(position + 1, 0);
            self.sizes.resize(position + 1, 0);
        }
        self.hashes[position] = hash;
        self.places[position] = place;
        self.sizes[position] = size;
    }

    /// Fills in the fingerprint of a class, of so many bits.
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

    /// The fingerprint of a class, all its bits.
    pub(crate) fn fingerprint(&self, class: usize) -> u128 {
        let of = |half: &[u64]| u128::from(half.get(class).copied().unwrap_or(0));
        of(&self.high_fingerprints) << 64 | of(&self.fingerprints)
    }

    /// Fills in the category of a class, and the hash of its visible text.
    pub(crate) fn set_category(&mut self, class: ClassId, category: u64, text: u128) {
        put(&mut self.categories, class, category);
        put(&mut self.texts, class, text);
    }

    /// Fills in the hash of the visible text of a class whose text is but a part of that.
    pub(crate) fn set_visible_text(&mut self, class: ClassId, text: u128) {
        put(&mut self.texts, class, text);
    }

    /// Hash of what a reader sees of a class: exact copies are those that have it in common.
    pub(crate) fn visible_text(&self, class: usize) -> u128 {
        match self.texts.get(class) {
            None | Some(0) => self.hashes[class],
            Some(&text) => text,
        }
    }

    /// True if classes may differ though a reader sees the same.
    pub(crate) fn has_visible_texts(&self) -> bool {
        !self.texts.is_empty() || !self.pages.is_empty()
    }

    /// Hamming distance of the fingerprints of two classes.
    pub(crate) fn distance(&self, a: usize, b: usize) -> u32 {
        let of = |half: &[u64]| match half.is_empty() {
            true => 0,
            false => (half[a] ^ half[b]).count_ones(),
        };
        of(&self.fingerprints) + of(&self.high_fingerprints)
    }

    /// Bytes this table holds.
    pub(crate) fn bytes(&self) -> u64 {
        let each = self.hashes.capacity() * 16 + self.places.capacity() * 8;
        let fingerprints = self.fingerprints.capacity() + self.high_fingerprints.capacity();
        let categories = self.categories.capacity() * 8 + self.texts.capacity() * 16;
        (each + self.sizes.capacity() * 4 + fingerprints * 8 + categories) as u64
            + self.pages.bytes()
    }
}

/// The orders in which everything after the scan happens.
pub(crate) struct DocumentRanking {
    /// Documents by id.
    pub(crate) by_id: Vec<u32>,
    /// Position of each document in `by_id`.
    pub(crate) id_ranks: Vec<u32>,
    /// Classes from the most to the least wanted.
    pub(crate) classes: Vec<u32>,
    /// Most wanted document of each class, by class position.
    pub(crate) best: Vec<u32>,
    /// Number of classes at the front that hold a document given with `--against`.
    pub(crate) fixed: usize,
}

impl DocumentRanking {
    /// Ranks documents by id and classes by `keep`, on so many threads. Returns also how many ids were repeated and had to be numbered.
    ///
    /// O(n log n) comparisons; one pass when the input is in the order of its ids.
    pub(crate) fn new(
        documents: &mut DocumentTable,
        classes: &TextClasses,
        keep: &KeepRules,
        repeated: RepeatedIds,
        threads: usize,
    ) -> Result<(Self, u64), BatchError> {
        documents.rank_value_texts();
        documents.rank_large_integers();
        let (by_id, renamed) = sort_ids(documents, classes, repeated, threads)?;
        documents.record_hashes = Vec::new();
        let id_ranks = inverse(&by_id, threads);
        let wanted = SurvivorOrder {
            documents,
            id_ranks: &id_ranks,
            keep,
        };
        let best = wanted.best_documents(classes.len(), threads);
        let mut order = column(classes.len(), threads, |class| {
            (wanted.first_key(best[class] as usize), class as u32)
        });
        sort_unequal_by(&mut order, threads, |(key, class), (other_key, other)| {
            let ties = || {
                wanted.compare(
                    best[*class as usize] as usize,
                    best[*other as usize] as usize,
                )
            };
            key.cmp(other_key).then_with(ties)
        });
        let fixed = order.partition_point(|&((is_new, _), _)| !is_new);
        let classes = column(order.len(), threads, |rank| order[rank].1);
        Ok((
            Self {
                by_id,
                id_ranks,
                classes,
                best,
                fixed,
            },
            renamed,
        ))
    }
}

/// Compares documents by how much they are wanted: given with `--against` first, then by the rules, then by id.
struct SurvivorOrder<'a> {
    documents: &'a DocumentTable,
    id_ranks: &'a [u32],
    keep: &'a KeepRules,
}

impl SurvivorOrder<'_> {
    /// An ascending key of what is looked at first.
    fn first_key(&self, document: usize) -> (bool, u64) {
        let rule = &self.keep.rules()[0];
        let is_new = document >= self.documents.against;
        (is_new, self.key(rule, document))
    }

    /// The most wanted document of each class.
    fn best_documents(&self, classes: usize, threads: usize) -> Vec<u32> {
        const NONE: u32 = u32::MAX;
        let best: Vec<AtomicU32> = (0..classes).map(|_| AtomicU32::new(NONE)).collect();
        // A total order has one least document, whichever thread comes first.
        in_ranges(self.documents.len(), threads, |range| {
            for document in range {
                let Some(class) = self.documents.classes[document] else {
                    continue;
                };
                let best = &best[class.position()];
                let mut known = best.load(AtomicOrdering::Relaxed);
                while known == NONE || self.compare(document, known as usize) == Ordering::Less {
                    let relaxed = AtomicOrdering::Relaxed;
                    match best.compare_exchange_weak(known, document as u32, relaxed, relaxed) {
                        Ok(_) => break,
                        Err(other) => known = other,
                    }
                }
            }
        });
        best.into_iter().map(AtomicU32::into_inner).collect()
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        let rules = &self.keep.rules()[1..];
        let compare = |rule| self.key(rule, a).cmp(&self.key(rule, b));
        let first = self.first_key(a).cmp(&self.first_key(b));
        let order = rules
            .iter()
            .fold(first, |order, rule| order.then_with(|| compare(rule)));
        order.then_with(|| self.id_ranks[a].cmp(&self.id_ranks[b]))
    }

    /// An ascending key of how much a document is wanted by one rule.
    fn key(&self, rule: &KeepRule, document: usize) -> u64 {
        let documents = self.documents;
        let value = || ordered_bits(documents.values[document]);
        match rule {
            KeepRule::Longest => u64::MAX - documents.lengths[document],
            KeepRule::Shortest => documents.lengths[document],
            KeepRule::First => document as u64,
            _ if documents.values[document].is_nan() => u64::MAX,
            KeepRule::Min(_) => value(),
            KeepRule::Max(_) | KeepRule::Newest(_) | KeepRule::Latest(_) => u64::MAX - value(),
        }
    }
}

/// Documents by (given with `--against`, id); repeated ids are made different first.
fn sort_ids(
    documents: &mut DocumentTable,
    classes: &TextClasses,
    repeated: RepeatedIds,
    threads: usize,
) -> Result<(Vec<u32>, u64), BatchError> {
    let mut renamed = 0;
    loop {
        let order = sorted_by_id(documents, classes, threads);
        let repeats = repeats(documents, &order, threads);
        if repeats.is_empty() {
            return Ok((order, renamed));
        }
        // What of a collection is at hand depends on the new documents: it must not decide whether they are refused.
        let read = |&(document, _): &(u32, u32)| document as usize >= documents.stored;
        if repeated == RepeatedIds::Refuse
            && let Some((first, _)) = repeats.iter().copied().find(read)
        {
            return Err(BatchError::RepeatedId {
                id: documents.id(first as usize).to_owned(),
                count: repeats.iter().copied().filter(read).count(),
            });
        }
        renamed += repeats.iter().copied().filter(read).count() as u64;
        for (document, number) in repeats {
            let id = format!("{}#{number}", documents.id(document as usize));
            documents.rename(document as usize, &id);
        }
    }
}

fn sorted_by_id(documents: &DocumentTable, classes: &TextClasses, threads: usize) -> Vec<u32> {
    let is_new = |document: u32| document as usize >= documents.against;
    let content = |document: u32| {
        let class = documents.classes[document as usize];
        let text = class.map(|class| classes.hashes[class.position()]);
        (text, documents.record_hashes[document as usize])
    };
    let in_order = |a: u32, b: u32| {
        is_new(a) == is_new(b) && documents.raw_id(a as usize) < documents.raw_id(b as usize)
            || !is_new(a) && is_new(b)
    };
    let count = documents.len();
    let is_sorted = |range: Range<usize>| {
        let mut others = range.start.max(1)..range.end;
        others.all(|document| in_order(document as u32 - 1, document as u32))
    };
    if in_ranges(count, threads, is_sorted)
        .into_iter()
        .all(|is_sorted| is_sorted)
    {
        return column(count, threads, |document| document as u32);
    }
    let common = common_prefix(documents, threads);
    let mut keyed = column(count, threads, |document| {
        let key = leading_bytes(&documents.raw_id(document)[common..]);
        (key, document as u32)
    });
    sort_unequal_by(&mut keyed, threads, |&(key_a, a), &(key_b, b)| {
        let ids = || {
            documents
                .raw_id(a as usize)
                .cmp(documents.raw_id(b as usize))
        };
        let rest = || {
            ids()
                .then_with(|| content(a).cmp(&content(b)))
                .then(a.cmp(&b))
        };
        match is_new(a).cmp(&is_new(b)).then(key_a.cmp(&key_b)) {
            Ordering::Equal => rest(),
            different => different,
        }
    });
    column(count, threads, |place| keyed[place].1)
}

/// Bytes with which all ids begin: made ids and URLs share long beginnings, which would make the keys of the sort equal.
fn common_prefix(documents: &DocumentTable, threads: usize) -> usize {
    let first = documents.raw_id(0);
    let common = |range: Range<usize>| {
        range.fold(first.len(), |common, document| {
            let id = documents.raw_id(document);
            let same = first[..common]
                .iter()
                .zip(id)
                .take_while(|(a, b)| a == b)
                .count();
            same.min(common)
        })
    };
    let common = in_ranges(documents.len(), threads, common);
    common.into_iter().min().unwrap_or(0)
}

/// First eight bytes of an id as a number in the order of the bytes.
fn leading_bytes(id: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = id.len().min(8);
    bytes[..length].copy_from_slice(&id[..length]);
    u64::from_be_bytes(bytes)
}

/// Documents whose id equals that of their predecessor, with 2 for the second of a kind, 3 for the third.
fn repeats(documents: &DocumentTable, order: &[u32], threads: usize) -> Vec<(u32, u32)> {
    let repeats_last = |place: &usize| {
        let [last, own] = [order[place - 1] as usize, order[*place] as usize];
        let same_side = (last >= documents.against) == (own >= documents.against);
        same_side && documents.raw_id(last) == documents.raw_id(own)
    };
    let places = in_ranges(order.len(), threads, |range| -> Vec<usize> {
        (range.start.max(1)..range.end)
            .filter(repeats_last)
            .collect()
    });
    let (mut found, mut number, mut last) = (Vec::new(), 1, 0);
    for place in places.into_iter().flatten() {
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
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parallel::FEW;

    proptest! {
        #[test]
        fn documents_are_sorted_by_id_then_content_then_place(
            rows in prop::collection::vec(("(http://a/)?[ab\\x00é]{0,10}", 0..4_usize, 0..3_u64), 0..40),
            against in 0..10_usize,
        ) {
            let table_rows: Vec<(&str, usize, u64)> = rows.iter().map(|(id, class, _)| (id.as_str(), *class, 1)).collect();
            let (mut documents, classes) = table(&table_rows);
            documents.record_hashes = rows.iter().map(|row| row.2).collect();
            documents.against = against.min(rows.len());
            let mut expected: Vec<u32> = (0..rows.len() as u32).collect();
            expected.sort_by_key(|&document| {
                let (id, class, hash) = &rows[document as usize];
                let is_new = document as usize >= documents.against;
                (is_new, id.as_bytes(), classes.hashes[*class], *hash, document)
            });
            prop_assert_eq!(sorted_by_id(&documents, &classes, 1), expected);
        }

        #[test]
        fn repeated_ids_become_different_and_others_stay(
            ids_given in prop::collection::vec("[ab](#[23]){0,2}", 0..30),
        ) {
            let rows: Vec<(&str, usize, u64)> = ids_given.iter().map(|id| (id.as_str(), 0, 1)).collect();
            let (mut documents, classes) = table(&rows);
            let (order, renamed) = sort_ids(&mut documents, &classes, RepeatedIds::Number, 1).unwrap();
            let names = ids(&documents, &order);
            prop_assert!(names.is_sorted_by(|a, b| a < b), "{:?}", names);
            let distinct: std::collections::BTreeSet<&String> = ids_given.iter().collect();
            prop_assert_eq!(renamed == 0, distinct.len() == ids_given.len());
            for (document, given) in ids_given.iter().enumerate() {
                prop_assert_eq!(documents.given_id(document as u32), given);
                prop_assert!(documents.id(document).starts_with(given.as_str()));
            }
        }

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

    fn table(rows: &[(&str, usize, u64)]) -> (DocumentTable, TextClasses) {
        let (mut documents, mut classes) = (DocumentTable::default(), TextClasses::default());
        for &(id, class, length) in rows {
            documents.push_id(id);
            documents.classes.push(ClassId::new(class));
            documents.lengths.push(length);
            documents.record_hashes.push(0);
            while classes.hashes.len() <= class {
                classes.hashes.push(classes.hashes.len() as u128 * 77 % 13);
            }
        }
        (documents, classes)
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
            let (ranking, renamed) = DocumentRanking::new(
                &mut documents,
                &classes,
                &KeepRules::default(),
                RepeatedIds::Number,
                1,
            )
            .unwrap();
            assert_eq!(renamed, 0);
            let best: Vec<u32> = ranking
                .classes
                .iter()
                .map(|&c| ranking.best[c as usize])
                .collect();
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
            count in FEW..2 * FEW,
            classes in 1..2 * FEW,
            different_ids in prop_oneof![Just(100), Just(1_000_000)],
            against in 0..FEW,
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
        let (ranking, renamed) = DocumentRanking::new(
            &mut documents,
            &classes,
            &KeepRules::default(),
            RepeatedIds::Number,
            1,
        )
        .unwrap();
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
            documents.values = vec![-1.0, 4.0, f64::NAN];
            let (ranking, _) = DocumentRanking::new(
                &mut documents,
                &classes,
                &keep.into(),
                RepeatedIds::Number,
                1,
            )
            .unwrap();
            let best: Vec<u32> = ranking
                .classes
                .iter()
                .map(|&c| ranking.best[c as usize])
                .collect();
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
        let ranked = DocumentRanking::new(&mut documents, &classes, &keep, RepeatedIds::Number, 1);
        assert_eq!(ranked.unwrap().0.classes, [2, 4, 1, 3, 0]);
    }

    #[test]
    fn texts_rank_by_their_bytes_and_ties_go_to_the_next_rule() {
        let (mut documents, classes) = table(&[("a", 0, 1), ("b", 1, 9), ("c", 2, 5), ("d", 3, 7)]);
        documents.values = vec![0.0, 0.0, f64::NAN, 0.0];
        for text in ["v2", "v10", "v10"] {
            documents.value_texts.push(text);
        }
        let keep = "latest:version,shortest".parse().unwrap();
        let ranked = DocumentRanking::new(&mut documents, &classes, &keep, RepeatedIds::Number, 1);
        let best: Vec<u32> = ranked.unwrap().0.classes;
        assert_eq!(best, [0, 3, 1, 2]);
    }
}
