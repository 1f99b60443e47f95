//! Ids of documents, by number.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::convert::Infallible;

use crate::dedup::number_column::{put_varint, split_varint};
use crate::spill::table_column::TableColumn;
use crate::spill::texts_in_order::texts_in_order;

/// Number of ids in a block. Only the position of the first id is stored; the others are found from there.
const BLOCK: usize = 16;

/// Concatenated ids, each preceded by its length.
///
/// Memory: 1.5 bytes per id and the id itself, and one more byte for each 7 bits of a length beyond 127. A lookup reads 8 other ids on average,
/// which are adjacent.
#[derive(Default)]
pub(crate) struct IdTable {
    /// For each id its length, 7 bits per byte, lowest first, and its bytes.
    bytes: TableColumn<u8>,
    /// Position of every [`BLOCK`]th id.
    starts: TableColumn<u64>,
    count: usize,
    /// New ids of renamed documents.
    renamed: BTreeMap<u32, Box<str>>,
}

/// Bytes of an entry of a B-tree of ids, including its share of the nodes.
const RENAMED_BYTES: usize = 48;

impl IdTable {
    /// Adds the id of the next document.
    pub(crate) fn push(&mut self, id: &str) {
        if self.count.is_multiple_of(BLOCK) {
            self.starts.push(self.bytes.len() as u64);
        }
        self.count += 1;
        put(&mut self.bytes, id);
    }

    /// Returns the id of a document.
    pub(crate) fn get(&self, document: usize) -> &str {
        text(self.raw(document))
    }

    /// Returns the bytes of the id of a document, whose order is the order of ids.
    pub(crate) fn raw(&self, document: usize) -> &[u8] {
        // The usual case, without a lookup in a tree: sorting ids calls this for every comparison.
        if self.renamed.is_empty() {
            return self.raw_given(document);
        }
        match self.renamed.get(&(document as u32)) {
            Some(id) => id.as_bytes(),
            None => self.raw_given(document),
        }
    }

    /// Returns the bytes of the ids of documents, which should ascend. Ids of one block are read in one pass, whereas each lookup by number starts
    /// anew.
    pub(crate) fn raw_of(
        &self,
        documents: impl Iterator<Item = usize>,
    ) -> impl Iterator<Item = &[u8]> {
        let (mut next, mut rest) = (0, &self.bytes[..]);
        documents.map(move |document| {
            let block = document - document % BLOCK;
            // Another block, or a document before the last one: start from the first id of the block.
            if next < block || document < next {
                next = block;
                rest = &self.bytes[self.starts[document / BLOCK] as usize..];
            }
            loop {
                let (id, others) = split_first(rest).expect("ids are whole");
                rest = others;
                next += 1;
                if next > document {
                    let new = self.renamed.get(&(document as u32));
                    break new.map_or(id, |new| new.as_bytes());
                }
            }
        })
    }

    /// Returns the id that a document was read with.
    pub(crate) fn original_id(&self, document: usize) -> &str {
        text(self.raw_given(document))
    }

    fn raw_given(&self, document: usize) -> &[u8] {
        let mut rest = &self.bytes[self.starts[document / BLOCK] as usize..];
        for _ in 0..document % BLOCK {
            rest = split_first(rest).expect("ids are whole").1;
        }
        split_first(rest).expect("ids are whole").0
    }

    /// Gives a document a new id.
    pub(crate) fn rename(&mut self, document: usize, id: &str) {
        self.renamed.insert(document as u32, id.into());
    }

    /// Returns the number of documents from this one on that have a new id.
    pub(crate) fn renamed_from(&self, document: usize) -> u64 {
        self.renamed.range(document as u32..).count() as u64
    }

    /// Appends all ids of another table.
    pub(crate) fn append(&mut self, others: &Self) {
        // Before the loop, which counts the new ids.
        let before = self.count as u32;
        self.bytes.reserve(others.bytes.len());
        (0..others.count).for_each(|document| self.push(others.original_id(document)));
        let renamed = others.renamed.iter();
        let renamed = renamed.map(|(document, id)| (before + document, id.clone()));
        self.renamed.extend(renamed);
    }

    /// Returns the ids of documents in the given order, which contains each document once; ids as read and new ids are both kept.
    pub(crate) fn in_order(&self, order: &[u32]) -> Self {
        let mut ordered = Self::default();
        ordered.bytes.reserve_exact(self.bytes.len());
        let given = |document| self.raw_given(document);
        let Ok(()) = texts_in_order(order, given, |id| {
            ordered.push(text(id));
            Ok::<_, Infallible>(())
        });
        for (&document, at) in order.iter().zip(0..).filter(|_| !self.renamed.is_empty()) {
            if let Some(id) = self.renamed.get(&document) {
                ordered.renamed.insert(at, id.clone());
            }
        }
        ordered
    }

    /// Returns all ids, each preceded by its length.
    pub(crate) fn encoded(&self) -> Cow<'_, TableColumn<u8>> {
        if self.renamed.is_empty() {
            return Cow::Borrowed(&self.bytes);
        }
        // Only the new id of a renamed document: after the checkpoint, nothing asks for the given one.
        let mut bytes = TableColumn::with_capacity(self.bytes.len());
        (0..self.count).for_each(|document| put(&mut bytes, self.get(document)));
        Cow::Owned(bytes)
    }

    /// Reads `count` ids. Returns `None` if the bytes are not valid.
    pub(crate) fn decoded(bytes: TableColumn<u8>, count: usize) -> Option<Self> {
        let mut starts = TableColumn::new();
        let mut rest = &bytes[..];
        for document in 0..count {
            if document % BLOCK == 0 {
                starts.push((bytes.len() - rest.len()) as u64);
            }
            let (id, others) = split_first(rest)?;
            // Checked here once, because `text` relies on it.
            std::str::from_utf8(id).ok()?;
            rest = others;
        }
        rest.is_empty().then(|| Self {
            starts,
            count,
            renamed: BTreeMap::new(),
            bytes,
        })
    }

    /// Returns true if there are no ids.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of bytes of the table.
    pub(crate) fn bytes(&self) -> usize {
        let renamed = self.renamed.values();
        let renamed: usize = renamed.map(|id| id.len() + RENAMED_BYTES).sum();
        self.bytes.len() + self.starts.len() * 8 + renamed
    }
}

fn text(id: &[u8]) -> &str {
    std::str::from_utf8(id).expect("ids are stored from strings")
}

fn put(bytes: &mut TableColumn<u8>, id: &str) {
    put_varint(bytes, id.len() as u64);
    bytes.extend_from_slice(id.as_bytes());
}

/// Splits the bytes into their first id and the rest.
fn split_first(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = split_varint(bytes)?;
    // Checked, because the length may be damaged.
    rest.split_at_checked(usize::try_from(length).ok()?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ids_come_back_whatever_their_lengths_and_new_names(
            ids in prop::collection::vec(("[aé\\x00]{0,4}", prop_oneof![Just(1_usize), 100..150_usize, Just(20_000)]), 0..60),
            more in prop::collection::vec("[b]{0,3}", 0..30),
            renamed in prop::collection::vec((any::<prop::sample::Index>(), "[c]{0,3}"), 0..5),
        ) {
            let given: Vec<String> = ids.iter().map(|(id, times)| id.repeat(*times)).collect();
            let mut names = given.clone();
            let mut table = IdTable::default();
            given.iter().for_each(|id| table.push(id));
            for (index, name) in renamed.iter().filter(|_| !given.is_empty()) {
                let document = index.index(given.len());
                table.rename(document, name);
                names[document].clone_from(name);
            }
            let mut others = IdTable::default();
            more.iter().for_each(|id| others.push(id));
            if let Some(first) = more.first() {
                others.rename(0, &format!("{first}#2"));
            }
            let all = |table: &IdTable| -> Vec<String> { (0..table.count).map(|document| table.get(document).to_owned()).collect() };
            let came: Vec<&str> = (0..given.len()).map(|document| table.original_id(document)).collect();
            prop_assert_eq!(came, given);
            prop_assert_eq!(all(&table), names.clone());
            for start in 0..=names.len() {
                let walked: Vec<&[u8]> = table.raw_of(start..names.len()).collect();
                let expected: Vec<&[u8]> = names[start..].iter().map(|name| name.as_bytes()).collect();
                prop_assert_eq!(walked, expected);
                let some: Vec<&[u8]> = table.raw_of((start / 3..names.len()).step_by(start + 1)).collect();
                let expected: Vec<&[u8]> = names[start / 3..].iter().step_by(start + 1).map(|name| name.as_bytes()).collect();
                prop_assert_eq!(some, expected);
            }
            let back = IdTable::decoded(table.encoded().into_owned(), names.len()).unwrap();
            prop_assert_eq!(all(&back), names.clone());
            names.extend(all(&others));
            table.append(&others);
            prop_assert_eq!(all(&table), &names[..]);
            let order: Vec<u32> = (0..names.len() as u32).rev().collect();
            let turned = table.in_order(&order);
            for document in 0..names.len() {
                let turned_at = names.len() - 1 - document;
                prop_assert_eq!(turned.get(turned_at), table.get(document));
                prop_assert_eq!(turned.original_id(turned_at), table.original_id(document));
            }
        }

        #[test]
        fn no_other_bytes_are_taken_for_ids(bytes in prop::collection::vec(any::<u8>(), 0..40), count in 0..6_usize) {
            if let Some(table) = IdTable::decoded(bytes.iter().copied().collect(), count) {
                let all: usize = (0..count).map(|document| table.get(document).len()).sum();
                prop_assert!(all + count <= bytes.len());
            }
        }
    }
}
