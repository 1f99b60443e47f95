//! Hashes by which equal texts are known, the same in jobs and in the service.

use lookalike::DocumentFields;

use crate::record::Record;

/// First 128 bits of the BLAKE3 hash of a text, the first byte lowest. Nobody can make two texts of one hash.
///
/// ```
/// let hash = lookalike_corpus::text_hash("some text");
/// assert_eq!(hash, lookalike_corpus::seen_text_hash("some text", "some text"));
/// assert_ne!(hash, lookalike_corpus::seen_text_hash("some text", "menu\nsome text"));
/// ```
pub fn text_hash(text: &str) -> u128 {
    first_128(&blake3::hash(text.as_bytes()))
}

/// The hash of a text that was chosen from all that a reader sees, and of that: pages that differ elsewhere are no copies of each other.
pub fn seen_text_hash(text: &str, visible: &str) -> u128 {
    let of_text = text_hash(text);
    if text == visible {
        return of_text;
    }
    let mut hasher = blake3::Hasher::new();
    // Two hashes of 16 bytes, not the texts again: whoever has a hash of one at hand need not read it twice.
    hasher.update(&of_text.to_le_bytes());
    hasher.update(&text_hash(visible).to_le_bytes());
    first_128(&hasher.finalize())
}

/// Hash of a category, by which two are known to be the same: never 0, which stands for none.
///
/// ```
/// assert_ne!(lookalike_corpus::category_hash("en"), lookalike_corpus::category_hash("de"));
/// ```
pub fn category_hash(category: &str) -> u64 {
    (text_hash(category) as u64).max(1)
}

/// First 128 bits of the BLAKE3 hash of a text and its fields, each behind its length.
pub fn hash_with(text: &str, fields: &DocumentFields) -> u128 {
    let mut hasher = blake3::Hasher::new();
    let mut part = |part: &str| {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    };
    part(text);
    for anchor in &fields.anchors {
        part("anchor");
        part(&anchor.text);
        part(&anchor.before);
        part(&anchor.after);
    }
    // The names part the lists; each link stands behind its length, so none can pass for a name.
    for (name, links) in [("in", &fields.in_links), ("out", &fields.out_links)] {
        part(name);
        links.iter().for_each(|link| part(link));
    }
    first_128(&hasher.finalize())
}

/// The hash of a text that is not there, by that of its bytes, and of its fields.
pub fn long_hash(of_bytes: u128, fields: Option<&DocumentFields>) -> u128 {
    let Some(fields) = fields else {
        return of_bytes;
    };
    let mut hasher = blake3::Hasher::new();
    hasher.update(&of_bytes.to_le_bytes());
    hasher.update(&hash_with("", fields).to_le_bytes());
    first_128(&hasher.finalize())
}

impl Record<'_> {
    /// The hash of its text, and of what a reader sees where the text is but a part of that.
    pub fn seen_hash(&self) -> u128 {
        match &self.visible {
            None => text_hash(&self.text),
            Some(visible) => seen_text_hash(&self.text, &visible.whole),
        }
    }
}

fn first_128(hash: &blake3::Hash) -> u128 {
    let bytes = hash.as_bytes().first_chunk().copied();
    u128::from_le_bytes(bytes.unwrap_or_default())
}
