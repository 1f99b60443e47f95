//! Documents that a caller has in memory: rows of a data frame, values of an iterator.

use std::borrow::Cow;

use lookalike::DocumentFields;

use crate::field_value_error::FieldValueError;
use crate::fields::FieldValues;
use crate::format::{Compression, Format, ReadFormat};
use crate::id_text::id_text;
use crate::order_key::OrderKey;
use crate::source::{Inputs, Source, SourceOrigin};

/// One document that a caller hands over, instead of a file that it stands in.
///
/// ```
/// use lookalike_corpus::GivenDocument;
///
/// let document = GivenDocument { id: Some("a".into()), ..GivenDocument::of_text("a rose is a rose") };
/// assert_eq!(document.text.as_deref(), Some("a rose is a rose"));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GivenDocument<'a> {
    /// The caller's id; without one it is the document's number, from 0.
    pub id: Option<Cow<'a, str>>,
    /// The text; none if the document has none, which is then equal to nothing.
    pub text: Option<Cow<'a, str>>,
    /// True if the text is HTML, of which [`crate::InputOptions::html`] says what is taken.
    pub is_html: bool,
    /// The value by which survivors are chosen, where the job asks for one; see [`OrderKey::parse`].
    pub order_key: OrderKey<'a>,
    /// The category, where the job asks for one.
    pub category: Option<Cow<'a, str>>,
    /// Anchors and links, where the job asks for them; see [`given_fields`].
    pub fields: DocumentFields,
}

/// The id that the field of a record would give: a string's content, a number as it is written; none if it is null.
///
/// # Errors
/// [`FieldValueError`] if it is neither.
pub fn given_id(json: &str) -> Result<Option<Cow<'_, str>>, FieldValueError> {
    match json {
        "null" => Ok(None),
        json => id_text(json).map(|(id, _)| Some(id)),
    }
}

/// The anchors, `in_links` and `out_links` that fields of a record would give, each as JSON, or none.
///
/// # Errors
/// [`FieldValueError`] if one of them holds something else.
pub fn given_fields(
    anchors: Option<&str>,
    in_links: Option<&str>,
    out_links: Option<&str>,
) -> Result<DocumentFields, FieldValueError> {
    FieldValues {
        anchors,
        in_links,
        out_links,
    }
    .document_fields()
}

impl<'a> GivenDocument<'a> {
    /// A document of this text, and nothing else.
    pub fn of_text(text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            text: Some(text.into()),
            ..Self::default()
        }
    }
}

/// Documents that are handed over at once, and that one thread works on. A good size is a mebibyte of text: of larger batches there may be too
/// few for all threads.
pub trait DocumentBatch: Send {
    /// The number of documents.
    fn len(&self) -> usize;

    /// True if there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of their texts, roughly: for progress and for the memory of what is under way.
    fn bytes(&self) -> usize;

    /// Shows all documents in their order.
    fn visit(&self, visit: &mut dyn FnMut(GivenDocument<'_>));
}

impl DocumentBatch for Vec<GivenDocument<'_>> {
    fn len(&self) -> usize {
        Vec::len(self)
    }

    fn bytes(&self) -> usize {
        let texts = self.iter().filter_map(|document| document.text.as_ref());
        texts.map(|text| text.len()).sum()
    }

    fn visit(&self, visit: &mut dyn FnMut(GivenDocument<'_>)) {
        self.iter().for_each(|document| visit(document.clone()));
    }
}

impl Inputs {
    /// True if a caller hands the documents over: there are no files.
    pub fn are_given(&self) -> bool {
        let mut origins = self.sources.iter().map(|source| &source.origin);
        origins.all(|origin| matches!(origin, SourceOrigin::Given(_))) && !self.sources.is_empty()
    }

    /// Inputs without files: one source for each name, of which a caller hands over the documents; see [`crate::Parser::parse_given`].
    /// Reading them finds nothing.
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
