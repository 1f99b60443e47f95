//! The documents to evaluate, in the order of their ids.

use std::cmp::Ordering;

use lookalike::hash::xxh3_64;
use lookalike::{DocumentFields, SketchValue};
use thiserror::Error;

/// One document, with everything that a scheme or a rule may read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EvaluatedDocument {
    /// Its id.
    pub id: String,
    /// Its text.
    pub text: String,
    /// Its anchors and links; empty if no scheme reads them.
    pub fields: DocumentFields,
    /// Its site, the host of its URL. `None` if unknown or not requested.
    pub site: Option<String>,
}

lookalike::setters! {
    EvaluatedDocument {
        fields: DocumentFields,
    }
}

impl EvaluatedDocument {
    /// Creates a document with an id and a text only.
    #[must_use]
    pub fn new(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            text: text.into(),
            ..Self::default()
        }
    }

    /// Sets the site; `None` if it is unknown.
    #[must_use]
    pub fn site(mut self, site: impl Into<Option<String>>) -> Self {
        self.site = site.into();
        self
    }

    /// Returns the memory that the document takes, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let texts = self.texts().map(|text| text.len() as u64);
        // Each text is a separate allocation.
        let own = size_of::<Self>() as u64 + 64 + self.id.len() as u64;
        let site = self.site.as_ref().map_or(0, |site| site.len() as u64);
        own + texts.sum::<u64>() + site
    }

    /// Returns a hash of everything that a scheme may read: XXH3-64 of all texts with their lengths, and of the lengths of the lists of
    /// fields, under two seeds. Exact copies are recognised by it, on whatever site they are. A document whose text is empty or white space is a copy of none, as in jobs: its id
    /// is hashed too.
    #[must_use]
    pub fn text_hash(&self) -> u128 {
        let own_id = self.text.trim().is_empty().then_some(&self.id);
        let half = |seed| {
            let mix = |hash: u64, text: &String| {
                let own = xxh3_64(text.as_bytes(), seed);
                xxh3_64(
                    // The length, so that the ends of texts count: "ab", "c" differs from "a", "bc".
                    &[hash, own, text.len() as u64]
                        .map(u64::to_le_bytes)
                        .concat(),
                    seed,
                )
            };
            let texts = self.texts().chain(own_id);
            texts.fold(self.list_lengths(seed), mix)
        };
        // The two seeds make the halves independent, so that different texts collide with a probability of about 2^-128.
        u128::from(half(0)) << 64 | u128::from(half(1))
    }

    /// Mixes the lengths of the lists of fields, if there are any: an address that links to the document differs from one that it links to.
    fn list_lengths(&self, seed: u64) -> u64 {
        let fields = &self.fields;
        if fields.is_empty() {
            return seed;
        }
        let lists = [
            fields.anchors.len(),
            fields.in_links.len(),
            fields.out_links.len(),
        ];
        let lengths = lists.map(|length| (length as u64).to_le_bytes());
        xxh3_64(&lengths.concat(), seed)
    }

    /// Returns the text and the texts of the fields.
    fn texts(&self) -> impl Iterator<Item = &String> {
        let fields = &self.fields;
        let anchors = fields.anchors.iter();
        let anchors = anchors.flat_map(|anchor| [&anchor.text, &anchor.before, &anchor.after]);
        let texts = [&self.text].into_iter().chain(anchors);
        let links = fields.in_links.iter().chain(&fields.out_links);
        texts.chain(links)
    }
}

/// Documents with their texts, ascending by id, so that positions do not depend on the input order.
#[derive(Debug, Clone, Default)]
pub struct DocumentSet {
    documents: Vec<EvaluatedDocument>,
}

/// Reason why documents cannot be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DocumentSetError {
    /// Two documents have the same id, so labels would be ambiguous.
    #[error("two documents have the id {id:?}")]
    RepeatedId {
        /// The id.
        id: String,
    },
    /// There are fewer than two documents to compare.
    #[error("{found} documents; a pair needs at least two")]
    TooFew {
        /// Number of documents.
        found: usize,
    },
}

impl DocumentSet {
    /// Creates a collection from pairs of id and text.
    ///
    /// ```
    /// use lookalike_eval::{DocumentIds as _, DocumentSet};
    ///
    /// let documents = DocumentSet::new([("b", "one text"), ("a", "another")])?;
    /// // Positions follow the ids.
    /// assert_eq!((documents.id(0), documents.position("b")), ("a", Some(1)));
    /// # Ok::<(), lookalike_eval::DocumentSetError>(())
    /// ```
    ///
    /// # Errors
    /// [`DocumentSetError`] for repeated ids and for fewer than two documents.
    pub fn new(
        documents: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> Result<Self, DocumentSetError> {
        let documents = documents.into_iter();
        Self::of(
            documents
                .map(|(id, text)| EvaluatedDocument::new(id, text))
                .collect(),
        )
    }

    /// Creates a collection from documents.
    ///
    /// # Errors
    /// [`DocumentSetError`] for repeated ids and for fewer than two documents.
    pub fn of(mut documents: Vec<EvaluatedDocument>) -> Result<Self, DocumentSetError> {
        documents.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        ensure_pairs(documents.iter().map(|document| &*document.id))?;
        Ok(Self { documents })
    }

    /// Returns the number of documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Tells whether there are no documents.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// Returns the id at a position.
    #[must_use]
    pub fn id(&self, position: u32) -> &str {
        &self.documents[position as usize].id
    }

    /// Returns the text at a position.
    #[must_use]
    pub fn text(&self, position: u32) -> &str {
        &self.documents[position as usize].text
    }

    /// Returns the texts, in the order of the ids.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.documents.iter().map(|document| &*document.text)
    }

    /// Returns the documents, in the order of the ids.
    #[must_use]
    pub fn documents(&self) -> &[EvaluatedDocument] {
        &self.documents
    }
}

/// Documents whose ids are known, ascending.
pub trait DocumentIds {
    /// Returns the number of documents.
    fn len(&self) -> usize;

    /// Tells whether there are no documents.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the id at a position.
    fn id(&self, position: u32) -> &str;

    /// Returns the position of an id, or `None` if no document has it. Takes time logarithmic in the number of documents.
    fn position(&self, id: &str) -> Option<u32> {
        let (mut start, mut end) = (0, self.len() as u32);
        while start < end {
            let middle = start + (end - start) / 2;
            match self.id(middle).cmp(id) {
                Ordering::Less => start = middle + 1,
                Ordering::Equal => return Some(middle),
                Ordering::Greater => end = middle,
            }
        }
        None
    }
}

impl DocumentIds for DocumentSet {
    fn len(&self) -> usize {
        Self::len(self)
    }

    fn id(&self, position: u32) -> &str {
        Self::id(self, position)
    }
}

impl DocumentIds for SketchedSet {
    fn len(&self) -> usize {
        self.ids.len()
    }

    fn id(&self, position: u32) -> &str {
        &self.ids[position as usize]
    }
}

/// Ids alone, ascending and without repetitions.
impl<S: AsRef<str>> DocumentIds for Vec<S> {
    fn len(&self) -> usize {
        Self::len(self)
    }

    fn id(&self, position: u32) -> &str {
        self[position as usize].as_ref()
    }
}

/// Checks that the ids, which ascend, do not repeat and are at least two.
fn ensure_pairs<'a>(ids: impl Iterator<Item = &'a str>) -> Result<(), DocumentSetError> {
    let (mut found, mut last) = (0, None);
    for id in ids {
        if last == Some(id) {
            let id = id.to_owned();
            return Err(DocumentSetError::RepeatedId { id });
        }
        (found, last) = (found + 1, Some(id));
    }
    match found {
        ..2 => Err(DocumentSetError::TooFew { found }),
        _ => Ok(()),
    }
}

/// A document without its text.
#[derive(Debug, Clone, PartialEq)]
pub struct SketchedDocument {
    /// Its id.
    pub id: String,
    /// Its [`EvaluatedDocument::text_hash`], if the text is known.
    pub text: Option<u128>,
    /// Its sketch. `None` if it has no features.
    pub sketch: Option<SketchValue>,
}

impl SketchedDocument {
    /// Returns the memory that the document takes while a [`SketchedSet`] is made of it, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        // Its own fields, those of the set, and two positions.
        let fields = size_of::<Self>() + size_of::<(String, Option<SketchValue>, [u32; 2])>();
        (fields + heap_bytes(&self.id, self.sketch.as_ref())) as u64
    }
}

/// Returns the memory of the allocations of a document, in bytes.
fn heap_bytes(id: &str, sketch: Option<&SketchValue>) -> usize {
    let allocated = |bytes: usize| match bytes {
        0 => 0,
        // As glibc allocates: eight bytes for the length, in steps of 16, at least 32.
        _ => (bytes + 8).next_multiple_of(16).max(32),
    };
    allocated(id.len()) + allocated(sketch.map_or(0, SketchValue::heap_bytes))
}

/// Returns the position of the first document with the text of each. A document whose text is unknown is no copy.
fn first_copies(documents: &[SketchedDocument]) -> Vec<u32> {
    let known = (0..).zip(documents);
    let known = known.filter_map(|(at, document): (u32, _)| Some((document.text?, at)));
    // Sorted rather than hashed, in a third of the memory.
    let mut by_text: Vec<(u128, u32)> = known.collect();
    by_text.sort_unstable();
    let mut first: Vec<u32> = (0..documents.len() as u32).collect();
    for equal in by_text.chunk_by(|a, b| a.0 == b.0) {
        for &(_, at) in equal {
            first[at as usize] = equal[0].1;
        }
    }
    first
}

/// Ids and sketches of documents, ascending by id: enough to draw pairs from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SketchedSet {
    ids: Vec<String>,
    sketches: Vec<Option<SketchValue>>,
    /// Position of the first document with the same text.
    first_copies: Vec<u32>,
    copies: u64,
}

impl SketchedSet {
    /// Creates a set of these documents. Of documents with equal texts only the one with the smallest id stays.
    ///
    /// # Errors
    /// [`DocumentSetError`] for repeated ids and for fewer than two documents or different texts.
    pub fn of(mut documents: Vec<SketchedDocument>) -> Result<Self, DocumentSetError> {
        documents.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        ensure_pairs(documents.iter().map(|document| &*document.id))?;
        let (first, before) = (first_copies(&documents), documents.len());
        let mut own = (0..).zip(&first).map(|(at, &first)| at == first);
        // Ascending by id, so the first of equal texts has the smallest id.
        documents.retain(|_| own.next() == Some(true));
        let (left, copies) = (documents.len(), (before - documents.len()) as u64);
        if left < 2 {
            return Err(DocumentSetError::TooFew { found: left });
        }
        Ok(Self::new(documents, (0..left as u32).collect(), copies))
    }

    /// Creates a set of all these documents, including those with equal texts.
    ///
    /// # Errors
    /// [`DocumentSetError`] for repeated ids and for fewer than two documents.
    pub fn with_copies(mut documents: Vec<SketchedDocument>) -> Result<Self, DocumentSetError> {
        documents.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        ensure_pairs(documents.iter().map(|document| &*document.id))?;
        let first_copies = first_copies(&documents);
        Ok(Self::new(documents, first_copies, 0))
    }

    fn new(documents: Vec<SketchedDocument>, first_copies: Vec<u32>, copies: u64) -> Self {
        let rows = documents.into_iter();
        let (ids, sketches) = rows.map(|document| (document.id, document.sketch)).unzip();
        Self {
            ids,
            sketches,
            first_copies,
            copies,
        }
    }

    /// Returns the ids, ascending.
    #[must_use]
    pub fn ids(&self) -> &[String] {
        &self.ids
    }

    /// Returns the sketches, in the order of the ids.
    #[must_use]
    pub fn sketches(&self) -> &[Option<SketchValue>] {
        &self.sketches
    }

    /// Returns the position of the first document with the text of each, in the order of the ids; its own if no earlier one has it.
    #[must_use]
    pub fn first_copies(&self) -> &[u32] {
        &self.first_copies
    }

    /// Returns the sketches of documents with these ids, `None` for each id that is not in the set. The ids must ascend and include all ids of the
    /// set.
    #[must_use]
    pub fn into_sketches_of<'a>(
        self,
        ids: impl Iterator<Item = &'a str>,
    ) -> Vec<Option<SketchValue>> {
        // A merge of two ascending lists: an id that is not the next one of the set is not in it.
        let mut own = self.ids.into_iter().zip(self.sketches).peekable();
        ids.map(|id| own.next_if(|(next, _)| next == id)?.1)
            .collect()
    }

    /// Returns the memory that the set takes, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let fields = size_of::<(String, Option<SketchValue>, u32)>() * self.ids.len();
        let documents = self.ids.iter().zip(&self.sketches);
        let heap = documents.map(|(id, sketch)| heap_bytes(id, sketch.as_ref()));
        (fields + heap.sum::<usize>()) as u64
    }

    /// Returns the number of documents that were left out because another one has their text.
    #[must_use]
    pub fn copies(&self) -> u64 {
        self.copies
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_link_to_a_document_and_one_from_it_made_copies() {
        let link = || vec!["x".to_owned()];
        let mut all = [(); 3].map(|()| EvaluatedDocument::new("a", "text"));
        all[1].fields.in_links = link();
        all[2].fields.out_links = link();
        let hashes: HashSet<u128> = all.iter().map(EvaluatedDocument::text_hash).collect();
        assert_eq!(hashes.len(), all.len());
    }

    #[test]
    fn empty_texts_counted_as_copies_of_each_other() {
        let [a, b] = ["a", "b"].map(|id| EvaluatedDocument::new(id, " \n").text_hash());
        assert_ne!(a, b);
        let [a, b] = ["a", "b"].map(|id| EvaluatedDocument::new(id, "text").text_hash());
        assert_eq!(a, b);
    }
}
