//! Draws a sample of the different texts of a collection.

use std::collections::BTreeMap;

use lookalike::hash::xxh3_64;

use super::SampleTooLarge;
use crate::document_set::EvaluatedDocument;

/// Sampler of documents with different texts. It chooses those whose texts have the smallest hashes under a seed, each text by the document with the
/// smallest id. Copies make a text no more likely to be drawn, and the order of the documents does not matter.
#[derive(Debug)]
pub struct DocumentSampler {
    size: usize,
    seed: u64,
    most_bytes: u64,
    bytes: u64,
    /// True if the sample has ever exceeded `most_bytes`.
    is_too_large: bool,
    /// The sample by the seeded hash of the text and its unseeded hash.
    chosen: BTreeMap<(u64, u128), EvaluatedDocument>,
}

impl DocumentSampler {
    /// Creates a sampler of `size` documents that may take `most_bytes` of memory.
    #[must_use]
    pub fn new(size: usize, seed: u64, most_bytes: u64) -> Self {
        Self {
            size,
            seed,
            most_bytes,
            bytes: 0,
            is_too_large: false,
            chosen: BTreeMap::new(),
        }
    }

    /// Offers one document to the sample.
    pub fn add(&mut self, document: &EvaluatedDocument) {
        let text = document.text_hash();
        // The text's own hash breaks ties, so that two texts with the same seeded hash are still two entries.
        let key = (xxh3_64(&text.to_le_bytes(), self.seed), text);
        let is_full = self.chosen.len() >= self.size;
        let last = self.chosen.last_key_value().map(|(last, _)| *last);
        // In a large collection this one comparison rejects nearly all documents.
        if self.is_too_large || self.size == 0 || (is_full && last.is_some_and(|last| key > last)) {
            return;
        }
        let known = self.chosen.get(&key);
        // The smallest id stands for its text, in whatever order the documents come.
        if known.is_some_and(|known| known.id <= document.id) {
            return;
        }
        self.bytes += document.bytes();
        let replaced = self.chosen.insert(key, document.clone());
        // Either the new text made the sample too long and the largest key goes, or it took the place of a copy of itself.
        let dropped = match self.chosen.len() > self.size {
            true => self.chosen.pop_last().map(|(_, dropped)| dropped),
            false => replaced,
        };
        self.bytes -= dropped.map_or(0, |dropped| dropped.bytes());
        if self.bytes > self.most_bytes {
            self.is_too_large = true;
            // The flag stays set: what was dropped cannot be drawn again, so the sample would no longer be one.
            self.chosen = BTreeMap::new();
        }
    }

    /// Returns the sample, ascending by id.
    ///
    /// # Errors
    /// [`SampleTooLarge`] if the sample exceeded its memory limit.
    pub fn finish(self) -> Result<Vec<EvaluatedDocument>, SampleTooLarge> {
        if self.is_too_large {
            let most_bytes = self.most_bytes;
            return Err(SampleTooLarge { most_bytes });
        }
        let mut sample: Vec<EvaluatedDocument> = self.chosen.into_values().collect();
        // By the text as well, because ids may repeat and the positions must not depend on the input.
        sample.sort_unstable_by(|a, b| (&a.id, &a.text).cmp(&(&b.id, &b.text)));
        Ok(sample)
    }
}
