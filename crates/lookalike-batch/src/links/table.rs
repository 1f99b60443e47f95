//! From the address of a page to its numbers.

use lookalike_corpus::text_hash;

/// Hashes of addresses with the numbers of pages, sorted.
#[derive(Default)]
pub(super) struct AddressTable {
    entries: Vec<AddressEntry>,
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

    /// Numbers of the pages of an address: several where it was fetched several times.
    pub(super) fn pages(&self, hash: u128) -> impl Iterator<Item = u32> {
        let key = ((hash >> 64) as u64, hash as u64);
        let of = |entry: &AddressEntry| (entry.high, entry.low);
        let first = self.entries.partition_point(|entry| of(entry) < key);
        let from = self.entries[first..].iter();
        from.take_while(move |entry| of(entry) == key)
            .map(|entry| entry.page)
    }
}
