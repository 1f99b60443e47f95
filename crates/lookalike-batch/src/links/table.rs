//! From the address of a page to its numbers.

use lookalike_corpus::text_hash;

use crate::spill::table_column::TableColumn;

/// Hashes of addresses with the numbers of pages, sorted.
#[derive(Default)]
pub(super) struct AddressTable {
    entries: TableColumn<AddressEntry>,
}

/// 24 bytes: as a tuple it were 32.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct AddressEntry {
    high: u64,
    low: u64,
    page: u32,
}

/// 128 bits of BLAKE3: no two addresses of a crawl share them.
pub(super) fn address_hash(address: &str) -> u128 {
    text_hash(address)
}

impl AddressTable {
    /// Adds a page. The table must be sorted before it is asked.
    pub(super) fn push(&mut self, hash: u128, page: u32) {
        self.entries.push(AddressEntry {
            high: (hash >> 64) as u64,
            low: hash as u64,
            page,
        });
    }

    pub(super) fn sort(&mut self) {
        // What is reserved counts as held, and the sort that follows has what is left.
        self.entries.shrink_to_fit();
        self.entries.sort_unstable();
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.entries.capacity() * size_of::<AddressEntry>()) as u64
    }

    /// Returns the pages of an address, if there are any.
    pub(super) fn find(&self, hash: u128) -> Option<AddressPages> {
        let key = ((hash >> 64) as u64, hash as u64);
        let first = self.entries.partition_point(|entry| entry.key() < key);
        let is_there = |place: usize| self.entries.get(place).is_some_and(|e| e.key() == key);
        match (is_there(first), is_there(first + 1)) {
            (false, _) => None,
            (true, false) => Some(AddressPages::One(self.entries[first].page)),
            // Pages have numbers of 32 bits, and no two entries the same: so have their places.
            (true, true) => Some(AddressPages::Several(first as u32)),
        }
    }

    /// Returns the numbers of the pages of [`AddressPages::Several`], ascending.
    pub(super) fn pages(&self, place: u32) -> impl Iterator<Item = u32> {
        let of_address = &self.entries[place as usize..];
        let key = of_address[0].key();
        let same = of_address.iter().take_while(move |e| e.key() == key);
        same.map(|entry| entry.page)
    }

    /// True if an address has several pages.
    pub(super) fn has_repeats(&self) -> bool {
        self.entries
            .windows(2)
            .any(|pair| pair[0].key() == pair[1].key())
    }
}

impl AddressEntry {
    fn key(&self) -> (u64, u64) {
        (self.high, self.low)
    }
}

/// The pages of an address.
#[derive(Clone, Copy)]
pub(super) enum AddressPages {
    /// One, by its number.
    One(u32),
    /// Several: the address was fetched as often. By their place in the table.
    Several(u32),
}
