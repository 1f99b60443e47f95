//! Checks of bytes on the medium: XXH3-64, seeded by what the bytes are and where they belong.
//!
//! A seal covers the collection, the file, the offset and a purpose, so that whole blocks that were exchanged, moved or
//! brought from another file or store do not match, however intact they are in themselves.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The identity of a file: its collection and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seal(u64);

impl Seal {
    pub(crate) fn new(collection: u64, file: u64) -> Self {
        Self(xxh3_64(&[collection, file].map(u64::to_le_bytes).concat()))
    }

    /// The check of a block at an offset.
    pub(crate) fn of(self, bytes: &[u8], offset: u64) -> u64 {
        self.numbered(bytes, offset, 0)
    }

    /// The check of a block at an offset with a number of its own.
    pub(crate) fn numbered(self, bytes: &[u8], offset: u64, number: u64) -> u64 {
        #[cfg(test)]
        if BLIND.get() {
            return 0;
        }
        xxh3_64_with_seed(bytes, self.seed(offset, number))
    }

    fn seed(self, offset: u64, number: u64) -> u64 {
        let mixed = self.0 ^ offset.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed.rotate_left(29) ^ number.wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }
}

/// The check of a small file that is read whole.
pub(crate) fn whole(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

#[cfg(test)]
thread_local! {
    static BLIND: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Makes all checks of this thread alike: what a store without checks would do.
#[cfg(test)]
pub(crate) fn blind(blind: bool) {
    BLIND.set(blind);
}
