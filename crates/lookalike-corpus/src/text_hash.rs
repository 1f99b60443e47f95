//! Hashes that identify equal texts, the same in jobs and in the service.

use lookalike::DocumentFields;

use crate::record::Record;

/// Returns the first 128 bits of the BLAKE3 hash of a text, as a little-endian number. Collisions cannot be constructed.
///
/// ```
/// let hash = lookalike_corpus::text_hash("some text");
/// assert_eq!(hash, lookalike_corpus::seen_text_hash("some text", "some text"));
/// assert_ne!(hash, lookalike_corpus::seen_text_hash("some text", "menu\nsome text"));
/// ```
pub fn text_hash(text: &str) -> u128 {
    first_128(&blake3::hash(text.as_bytes()))
}

/// Hashes a text that was selected from a visible text, together with that: pages that differ elsewhere are not copies of each other.
pub fn seen_text_hash(text: &str, visible: &str) -> u128 {
    let of_text = text_hash(text);
    if text == visible {
        return of_text;
    }
    let mut hasher = blake3::Hasher::new();
    // Combines two hashes of 16 bytes rather than hashing the texts again, so that a caller who has one of the hashes need not read its text twice.
    hasher.update(&of_text.to_le_bytes());
    hasher.update(&text_hash(visible).to_le_bytes());
    first_128(&hasher.finalize())
}

/// Hashes a category, for comparing categories. Never 0, which stands for none.
///
/// ```
/// assert_ne!(lookalike_corpus::category_hash("en"), lookalike_corpus::category_hash("de"));
/// ```
pub fn category_hash(category: &str) -> u64 {
    (text_hash(category) as u64).max(1)
}

/// Returns the first 128 bits of the BLAKE3 hash of a text and its fields, each preceded by its length.
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
    for (name, links) in [("in", &fields.in_links), ("out", &fields.out_links)] {
        part(name);
        for link in links {
            // Without a word before each link, a link "out" to the document would equal the name of the second list.
            part("link");
            part(link);
        }
    }
    first_128(&hasher.finalize())
}

/// Combines the hash of the bytes of an over-long text with a hash of its fields, if given.
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
    /// Returns the hash of its text, and of the visible text if the text is only a part of that.
    pub fn seen_hash(&self) -> u128 {
        match &self.visible {
            None => text_hash(&self.text),
            Some(visible) => seen_text_hash(&self.text, &visible.whole),
        }
    }
}

pub(crate) fn first_128(hash: &blake3::Hash) -> u128 {
    let bytes = hash.as_bytes().first_chunk().copied();
    u128::from_le_bytes(bytes.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_named_as_the_other_list_made_two_hashes_equal() {
        let links = || vec!["out".to_owned()];
        let to = DocumentFields {
            in_links: links(),
            ..DocumentFields::default()
        };
        let from = DocumentFields {
            out_links: links(),
            ..DocumentFields::default()
        };
        assert_ne!(hash_with("text", &to), hash_with("text", &from));
    }
}
