//! Maps the address of a page to the numbers of the pages that have it.

use lookalike_corpus::text_hash;

use crate::parallel_sort::sort_unequal_by;
use crate::spill::table_column::TableColumn;

/// Hashes of addresses with page numbers, sorted.
#[derive(Default)]
pub(super) struct AddressTable {
    entries: TableColumn<AddressEntry>,
}

/// An entry of 24 bytes; a tuple with a `u128` would take 32.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct AddressEntry {
    high: u64,
    low: u64,
    page: u32,
}

/// Returns 128 bits of BLAKE3; collisions among the addresses of a crawl are practically impossible.
pub(super) fn address_hash(address: &str) -> u128 {
    text_hash(address)
}

impl AddressTable {
    /// Adds a page. Call [`Self::sort`] before any lookup.
    pub(super) fn push(&mut self, hash: u128, page: u32) {
        self.entries.push(AddressEntry {
            high: (hash >> 64) as u64,
            low: hash as u64,
            page,
        });
    }

    pub(super) fn sort(&mut self, threads: usize) {
        // Reserved memory counts as used, and the sort of the links gets the rest.
        self.entries.shrink_to_fit();
        sort_unequal_by(&mut self.entries, threads, Ord::cmp);
    }

    /// Returns the number of pages with an address.
    pub(super) fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.entries.capacity() * size_of::<AddressEntry>()) as u64
    }

    /// Returns the pages of an address, or `None` if no page has it.
    pub(super) fn find(&self, hash: u128) -> Option<AddressPages> {
        let key = ((hash >> 64) as u64, hash as u64);
        let first = self.entries.partition_point(|entry| entry.key() < key);
        let is_there = |place: usize| self.entries.get(place).is_some_and(|e| e.key() == key);
        match (is_there(first), is_there(first + 1)) {
            (false, _) => None,
            (true, false) => Some(AddressPages::One(self.entries[first].page)),
            // Page numbers have 32 bits and no two entries have the same, so places fit 32 bits too.
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

    /// Tells whether any address has several pages.
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

/// Pages of an address.
#[derive(Clone, Copy)]
pub(super) enum AddressPages {
    /// The number of its only page.
    One(u32),
    /// Place in the table of an address that was fetched several times.
    Several(u32),
}

impl AddressPages {
    /// Returns the number of the page, or the place of the address.
    pub(super) fn number(self) -> u32 {
        match self {
            Self::One(number) | Self::Several(number) => number,
        }
    }
}
