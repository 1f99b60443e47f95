//! Documents of an input for a sweep: ids, lengths and hashes of the texts are held, and the texts are read again each time.

use std::borrow::Cow;
use std::collections::HashMap;

use lookalike::hash::xxh3_64;
use lookalike_corpus::InputOptions;
use lookalike_eval::{
    DocumentIds, EvaluatedDocument, SketchedDocument, SketchedSet, SweptDocument, SweptDocuments,
};

use super::{EvaluationInput, document, unusable_documents};
use crate::failure::Failure;

/// Size of a batch of texts: bytes, and number of documents.
const BATCH: (usize, usize) = (4 << 20, 1 << 12);
/// Memory per document in addition to its id: hash, length, position, and entries in the tables for finding copies.
const BYTES_PER_DOCUMENT: u64 = 160;

/// An input that was read once.
pub(super) struct SweptInput<'a> {
    reading: &'a EvaluationInput<'a>,
    options: InputOptions,
    /// Ids of the documents that are compared, ascending.
    pub(super) ids: Vec<String>,
    /// Lengths and hashes of their texts.
    texts: Vec<(u64, u128)>,
    /// Position of each record, in input order; `None` for copies.
    places: Vec<Option<u32>>,
    /// Hash of all ids and texts, independent of their order.
    pub(super) digest: u64,
}

/// A record of the first reading.
struct ScannedRecord {
    id: String,
    bytes: u64,
    text: u128,
}

impl<'a> SweptInput<'a> {
    /// Reads all documents; `sets_copies_aside` sets aside those that have the text of another.
    pub(super) fn new(
        reading: &'a EvaluationInput<'a>,
        options: &InputOptions,
        sets_copies_aside: bool,
    ) -> Result<Self, Failure> {
        let records = scan(reading, options)?;
        let named = records.iter().map(|record| SketchedDocument {
            id: record.id.clone(),
            text: sets_copies_aside.then_some(record.text),
            sketch: None,
        });
        let compared =
            SketchedSet::of(named.collect()).map_err(|error| unusable_documents(&error))?;
        Ok(Self::of(reading, options, records, compared.ids().to_vec()))
    }

    /// Reads the same documents with other options. If it finds other documents, returns their number as the inner error.
    pub(super) fn reread_with(
        &self,
        options: &InputOptions,
    ) -> Result<Result<Self, usize>, Failure> {
        let records = scan(self.reading, options)?;
        let found = records.len();
        // With the ids of the first reading: copies stay those of the original texts, although other texts may be equal now.
        let other = Self::of(self.reading, options, records, self.ids.clone());
        // Positions by input order: equal lists mean the same documents in the same order, with the same ones set aside.
        Ok(match other.places == self.places {
            true => Ok(other),
            false => Err(found),
        })
    }

    /// Returns the number of documents, including those that were set aside.
    pub(super) fn records(&self) -> usize {
        self.places.len()
    }

    fn of(
        reading: &'a EvaluationInput<'a>,
        options: &InputOptions,
        records: Vec<ScannedRecord>,
        ids: Vec<String>,
    ) -> Self {
        let by_id: HashMap<&str, u32> = ids.iter().map(|id| &**id).zip(0..).collect();
        let mut texts = vec![(0, 0); ids.len()];
        let (mut places, mut digest) = (Vec::with_capacity(records.len()), 0_u64);
        for ScannedRecord { id, bytes, text } in &records {
            let place = by_id.get(&**id).copied();
            if let Some(place) = place {
                texts[place as usize] = (*bytes, *text);
            }
            places.push(place);
            digest = digest.wrapping_add(xxh3_64(&text.to_le_bytes(), xxh3_64(id.as_bytes(), 0)));
        }
        Self {
            reading,
            options: options.clone(),
            texts,
            places,
            digest,
            ids,
        }
    }

    /// Returns the number of documents that were set aside because another one has the same text.
    pub(super) fn copies(&self) -> u64 {
        (self.places.len() - self.ids.len()) as u64
    }

    /// Returns the memory that is held, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let ids = self.ids.iter().map(|id| id.len() as u64);
        ids.sum::<u64>() + BYTES_PER_DOCUMENT * self.places.len() as u64
    }

    /// Returns true if the texts that are compared are the same.
    pub(super) fn has_texts_of(&self, other: &Self) -> bool {
        self.texts == other.texts
    }
}

/// Reads all records once, without holding texts.
fn scan(
    reading: &EvaluationInput<'_>,
    options: &InputOptions,
) -> Result<Vec<ScannedRecord>, Failure> {
    let limit = reading.run.limits().memory;
    let (mut records, mut bytes) = (Vec::new(), 0);
    reading.visit_with(options, |record| {
        let document = document(record);
        // While copies are searched, the ids exist twice.
        bytes += BYTES_PER_DOCUMENT + 2 * document.id.len() as u64;
        // Beyond the limit documents are only counted, so that the failure can state how much all of them need.
        if bytes <= limit {
            records.push(ScannedRecord {
                bytes: document.text.len() as u64,
                text: document.text_hash(),
                id: document.id,
            });
        }
    })?;
    match bytes <= limit {
        true => Ok(records),
        false => Err(super::too_large("ids of the documents", bytes, limit)),
    }
}

impl DocumentIds for SweptInput<'_> {
    fn len(&self) -> usize {
        self.ids.len()
    }

    fn id(&self, position: u32) -> &str {
        &self.ids[position as usize]
    }
}

impl SweptDocuments for SweptInput<'_> {
    type Error = Failure;

    fn text_bytes(&self, position: u32) -> u64 {
        self.texts[position as usize].0
    }

    fn have_equal_texts(&self, a: u32, b: u32) -> bool {
        self.texts[a as usize] == self.texts[b as usize]
    }

    fn read(&self, visit: &mut dyn FnMut(&[SweptDocument<'_>])) -> Result<(), Failure> {
        let mut batch: Vec<SweptDocument<'_>> = Vec::new();
        let (mut bytes, mut records, mut is_changed) = (0, 0, false);
        self.reading.visit_with(&self.options, |record| {
            let own = document(record);
            match self.places.get(records) {
                Some(&position) => {
                    let expected = position.map(|position| self.text_bytes(position));
                    is_changed |=
                        // By length alone: a change that keeps the length of a text is not noticed.
                        expected.is_some_and(|expected| expected != own.text.len() as u64);
                    bytes += own.text.len();
                    let document: Cow<'_, EvaluatedDocument> = Cow::Owned(own);
                    batch.push(SweptDocument { position, document });
                }
                None => is_changed = true,
            }
            records += 1;
            if bytes >= BATCH.0 || batch.len() >= BATCH.1 {
                visit(&batch);
                batch.clear();
                bytes = 0;
            }
        })?;
        visit(&batch);
        // Checked at the end of the reading, whose results are then dropped.
        match is_changed || records != self.places.len() {
            true => Err(Failure::Failed(
                "the input changed while it was read: give files that do not change".to_owned(),
            )),
            false => Ok(()),
        }
    }
}
