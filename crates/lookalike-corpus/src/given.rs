//! Documents that a caller has in memory, such as rows of a data frame or values of an iterator.

use std::borrow::Cow;

use lookalike::DocumentFields;

use crate::field_value_error::FieldValueError;
use crate::format::{Compression, Format, ReadFormat};
use crate::id_text::id_text;
use crate::order_key::OrderKey;
use crate::source::{Inputs, Source, SourceOrigin};

/// One document that a caller passes in memory, instead of a file that contains it.
///
/// ```
/// use lookalike_corpus::InMemoryDocument;
///
/// let document = InMemoryDocument { id: Some("a".into()), ..InMemoryDocument::of_text("a rose is a rose") };
/// assert_eq!(document.text.as_deref(), Some("a rose is a rose"));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InMemoryDocument<'a> {
    /// The caller's id. `None` means the number of the document, counted from 0.
    pub id: Option<Cow<'a, str>>,
    /// The text. `None` if the document has none; it then equals no other document.
    pub text: Option<Cow<'a, str>>,
    /// True if the text is HTML; [`crate::InputOptions::html`] selects which of it counts.
    pub is_html: bool,
    /// The value by which survivors are chosen, if the job uses one; see [`OrderKey::parse`].
    pub order_key: OrderKey<'a>,
    /// The category, if the job uses one.
    pub category: Option<Cow<'a, str>>,
    /// Anchors and links, if the job uses them; see [`crate::parse_document_fields`].
    pub fields: DocumentFields,
}

/// Parses an id as from the field of a record: the content of a string, or a number as written. Returns `None` for null.
///
/// # Errors
/// Returns a [`FieldValueError`] for other values, and for what is no JSON.
pub fn given_id(json: &str) -> Result<Option<Cow<'_, str>>, FieldValueError> {
    match json {
        "null" => Ok(None),
        json => id_text(json).map(|(id, _)| Some(id)),
    }
}

impl<'a> InMemoryDocument<'a> {
    /// Creates a document with this text and no other values.
    pub fn of_text(text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            text: Some(text.into()),
            ..Self::default()
        }
    }
}

/// A batch of documents that is passed at once and processed by one thread. A good size is a mebibyte of text; with larger batches there may be too
/// few for all threads.
pub trait DocumentBatch: Send {
    /// Returns the number of documents, as many as [`DocumentBatch::visit`] visits: the numbers of the documents after the batch depend on it.
    fn len(&self) -> usize;

    /// Returns true if there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the approximate size of the texts in bytes, for progress and memory accounting.
    fn bytes(&self) -> usize;

    /// Calls `visit` with each document, in order.
    fn visit(&self, visit: &mut dyn FnMut(InMemoryDocument<'_>));
}

impl InMemoryDocument<'_> {
    /// Returns the same document with its texts borrowed.
    fn borrowed(&self) -> InMemoryDocument<'_> {
        fn text<'t>(text: &'t Option<Cow<'_, str>>) -> Option<Cow<'t, str>> {
            text.as_deref().map(Cow::Borrowed)
        }
        InMemoryDocument {
            id: text(&self.id),
            text: text(&self.text),
            is_html: self.is_html,
            order_key: self.order_key.clone(),
            category: text(&self.category),
            fields: self.fields.clone(),
        }
    }
}

impl<'d, B: AsRef<[InMemoryDocument<'d>]> + Send> DocumentBatch for B {
    fn len(&self) -> usize {
        self.as_ref().len()
    }

    fn bytes(&self) -> usize {
        let texts = self.as_ref().iter();
        let texts = texts.filter_map(|document| document.text.as_ref());
        texts.map(|text| text.len()).sum()
    }

    fn visit(&self, visit: &mut dyn FnMut(InMemoryDocument<'_>)) {
        let documents = self.as_ref().iter();
        documents.for_each(|document| visit(document.borrowed()));
    }
}

impl Inputs {
    /// Returns true if a caller passes the documents in memory, so there are no files.
    pub fn are_in_memory(&self) -> bool {
        let mut origins = self.sources.iter().map(|source| &source.origin);
        origins.all(|origin| matches!(origin, SourceOrigin::Given(_))) && !self.sources.is_empty()
    }

    /// Creates inputs without files: one source for each name, whose documents the caller passes in memory; see [`crate::Parser::parse_given`].
    /// Reading them yields nothing.
    pub fn given(names: &[&str]) -> Inputs {
        let source = |name: &&str| {
            let format = ReadFormat::new(Format::Text, Compression::None);
            Source::new(SourceOrigin::Given((*name).to_owned()), format, 0)
        };
        Inputs {
            sources: names.iter().map(source).collect(),
            skips: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression test: an empty id was "a boolean", and a single quote panicked.
    #[test]
    fn what_is_no_json_is_no_id() {
        for json in ["", "\"", "x"] {
            let refused = given_id(json).unwrap_err().to_string();
            assert_eq!(
                refused,
                "the id field holds no JSON, not a string or number"
            );
        }
        let refused = given_id("false").unwrap_err().to_string();
        assert_eq!(
            refused,
            "the id field holds a boolean, not a string or number"
        );
        assert_eq!(given_id("null"), Ok(None));
    }

    /// Regression test: only vectors were batches, and each document was copied.
    #[test]
    fn documents_of_arrays_and_slices_are_passed_without_a_copy() {
        let documents = ["a", "bc"].map(|text| InMemoryDocument::of_text(text.to_owned()));
        let check = |batch: &dyn DocumentBatch| {
            assert_eq!((batch.len(), batch.bytes()), (2, 3));
            let mut texts = Vec::new();
            batch.visit(&mut |document| {
                let Some(Cow::Borrowed(text)) = document.text else {
                    panic!("a copy");
                };
                texts.push(text.to_owned());
            });
            assert_eq!(texts, ["a", "bc"]);
        };
        check(&documents.as_slice());
        check(&documents.to_vec());
        check(&documents);
    }
}
