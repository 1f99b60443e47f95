//! Hashes of documents that are too long to be held: of documents with equal bytes, one is kept.

/// Hashes a document piece by piece.
///
/// The hashes of whole records, the hashes of texts and plain BLAKE3 hashes are all distinct, even for equal bytes.
#[derive(Debug, Clone)]
pub(crate) struct LongHasher(Box<blake3::Hasher>);

impl LongHasher {
    /// Creates the hasher of a record with all its fields.
    pub(crate) fn of_record() -> LongHasher {
        Self::new("lookalike: record longer than the limit")
    }

    /// Creates the hasher of a file, the body of a page, or the value of a column.
    pub(crate) fn of_text() -> LongHasher {
        Self::new("lookalike: text longer than the limit")
    }

    fn new(context: &str) -> LongHasher {
        // Boxed, because the state of BLAKE3 takes about 2 KB, and readers that hold one are moved around. The contexts must never change, or hashes
        // stored in collections would no longer match.
        LongHasher(Box::new(blake3::Hasher::new_derive_key(context)))
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Adds bytes with their length, so that the border to the next bytes counts.
    pub(crate) fn update_delimited(&mut self, bytes: &[u8]) {
        // Without lengths the encodings "ab", "c" and "a", "bc" would have the same hash.
        self.update(&(bytes.len() as u64).to_le_bytes());
        self.update(bytes);
    }

    /// Returns the first 128 bits of the hash.
    pub(crate) fn finish(&self) -> u128 {
        let mut first = [0; 16];
        self.0.finalize_xof().fill(&mut first);
        u128::from_le_bytes(first)
    }
}

/// Hashes an over-long record that is in memory.
pub(crate) fn long_record_hash(bytes: &[u8]) -> u128 {
    let mut hasher = LongHasher::of_record();
    hasher.update(bytes);
    hasher.finish()
}

/// Hashes an over-long text that is in memory.
pub(crate) fn long_text_hash(bytes: &[u8]) -> u128 {
    let mut hasher = LongHasher::of_text();
    hasher.update(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_no_difference_but_what_they_are_does() {
        let bytes = b"many words".repeat(1000);
        let mut pieces = LongHasher::of_record();
        bytes.chunks(777).for_each(|piece| pieces.update(piece));
        assert_eq!(pieces.finish(), long_record_hash(&bytes));
        assert_ne!(pieces.finish(), long_text_hash(&bytes));
        assert_ne!(pieces.finish(), long_record_hash(&bytes[1..]));
    }
}
