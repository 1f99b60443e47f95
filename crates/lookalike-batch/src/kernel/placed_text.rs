//! Identity of a text: the class that it belongs to.

use lookalike::{DocumentFields, Scheme};
use lookalike_corpus::{Record, VisibleText, text_hash};
pub(crate) use lookalike_corpus::{category_hash, hash_with, long_hash};

/// A text with its hashes and its category, from which its class follows.
#[derive(Clone, Copy)]
pub(crate) struct PlacedText<'t> {
    pub(crate) text: &'t str,
    /// Anchors and links, if the scheme uses them.
    pub(crate) fields: Option<&'t DocumentFields>,
    /// True if the text is longer than the limit and was left out: then it is compared by its hash only.
    pub(crate) is_too_long: bool,
    /// Hash of the text, and of the fields if the scheme uses them.
    pub(crate) hash: u128,
    /// The visible text, if it is more than the text.
    pub(crate) visible: Option<&'t VisibleText<'t>>,
    /// Hash of the visible text, and of the fields if the scheme uses them.
    pub(crate) visible_hash: u128,
    /// Hash of the category; 0 if there is none.
    pub(crate) category: u64,
}

impl<'t> PlacedText<'t> {
    /// Creates a text that is all visible. One longer than `most_bytes` is compared by its hash only.
    pub(crate) fn plain(text: &'t str, category: Option<&str>, most_bytes: u64) -> Self {
        let is_too_long = text.len() as u64 > most_bytes;
        let hash = text_hash(text);
        Self {
            text: if is_too_long { "" } else { text },
            fields: None,
            is_too_long,
            hash,
            visible: None,
            visible_hash: hash,
            category: category.map_or(0, category_hash),
        }
    }

    /// Creates the text of a record; `category` is the hash of its category.
    pub(crate) fn of_record(record: &'t Record<'_>, scheme: &Scheme, category: u64) -> Self {
        let text = &*record.text;
        let fields = (!scheme.fields.is_none()).then_some(&record.fields);
        let hash = |text: &str| match fields {
            Some(fields) => hash_with(text, fields),
            None => text_hash(text),
        };
        let of_text = match record.long_hash {
            Some(of_bytes) => long_hash(of_bytes, fields),
            None => hash(text),
        };
        let visible = record.visible.as_ref();
        // A visible text that is no more than the text has the same hash, and is not hashed again.
        let whole = visible.filter(|visible| visible.whole != record.text);
        Self {
            text,
            fields,
            is_too_long: record.long_hash.is_some(),
            hash: of_text,
            visible,
            visible_hash: whole.map_or(of_text, |visible| hash(&visible.whole)),
            category,
        }
    }

    /// Returns true if there is nothing to compare: such a document equals no other.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && !self.is_too_long
    }

    /// Returns the key of the class: a hash of all that verification reads of a document. That is the text, the visible text, the identity of a
    /// page and the part of it that is not boilerplate, and the category if `by_category`.
    pub(crate) fn class_hash(&self, by_category: bool) -> u128 {
        // Collections and packed rows hold this hash, so its definition is a part of their formats.
        let page = self.visible.and_then(|visible| visible.page);
        // Usually the text is all visible: then its hash is the key, and nothing has to be hashed again.
        if !by_category && page.is_none() && self.hash == self.visible_hash {
            return self.hash;
        }
        let mut hasher = blake3::Hasher::new();
        // Without separators: in a job, each combination of parts has a length of its own.
        hasher.update(&self.hash.to_le_bytes());
        if page.is_some() || self.hash != self.visible_hash {
            hasher.update(&self.visible_hash.to_le_bytes());
        }
        if let Some(page) = page {
            hasher.update(&page.to_bits().to_le_bytes());
            // The lines that are left out of one text differ between sites.
            if let Some(own) = self.visible.and_then(|visible| visible.own.as_ref()) {
                hasher.update(&text_hash(own).to_le_bytes());
            }
        }
        if by_category {
            hasher.update(&self.category.to_le_bytes());
        }
        let hash = hasher.finalize();
        let first = hash.as_bytes().first_chunk();
        u128::from_le_bytes(*first.expect("a hash has 32 bytes"))
    }
}
