//! The content of a request: a sketch, a text or a page.

use std::borrow::Cow;

use lookalike_corpus::{category_hash, host};
use lookalike_store::{DocumentSketch, PairRule, TextHash};

use crate::problem::ProblemDetails;
use crate::request::SentFields;

/// Name of the category that stands for the site of a document.
const SITE: &str = "site";

/// A content to be compared.
#[derive(Debug)]
pub(crate) struct RequestContent {
    pub(crate) source: ContentSource,
    /// Hash of its text, if it was sent; otherwise it is computed from the text or page.
    pub(crate) text_hash: Option<TextHash>,
    pub(crate) place: ContentTraits,
}

/// Facts about a document, besides its content, that decide with which others it is compared.
#[derive(Debug, Default)]
pub(crate) struct ContentTraits {
    /// Its id, if it has one.
    pub(crate) id: Option<String>,
    pub(crate) category: Option<String>,
    pub(crate) url: Option<String>,
    /// Size of its text in bytes, which cannot be derived from a sketch.
    pub(crate) length: Option<u32>,
    /// Anchors and links, as they were sent.
    pub(crate) fields: SentFields,
}

/// The content itself.
#[derive(Debug)]
pub(crate) enum ContentSource {
    Sketch(DocumentSketch),
    Text(String),
    Html(String),
}

#[cfg(test)]
impl From<ContentSource> for RequestContent {
    fn from(source: ContentSource) -> Self {
        Self::of(source, None, None)
    }
}

impl RequestContent {
    /// Creates a content with nothing else known but its id and URL, if given.
    pub(crate) fn of(source: ContentSource, id: Option<String>, url: Option<String>) -> Self {
        Self {
            source,
            text_hash: None,
            place: ContentTraits {
                id,
                url,
                ..ContentTraits::default()
            },
        }
    }

    /// Returns the size of its text or page in bytes; 0 for a sketch.
    pub(crate) fn len(&self) -> usize {
        match &self.source {
            ContentSource::Sketch(_) => 0,
            ContentSource::Text(text) | ContentSource::Html(text) => text.len(),
        }
    }

    /// Returns the length of the text that a sketch was made from; 0 if the collection keeps no lengths.
    pub(crate) fn stated_length(&self, pairs: &PairRule) -> Result<u32, ProblemDetails> {
        match (pairs.length_share, self.place.length) {
            (None, _) => Ok(0),
            (Some(_), Some(length)) => Ok(length),
            (Some(_), None) => Err(ProblemDetails::invalid(
                "the collection compares lengths of texts, and a sketch has none",
                "send `length`, the bytes of its text in UTF-8, or the text itself",
            )),
        }
    }
}

/// Returns the length of a text as collections keep it.
pub(crate) fn kept_length(text: &str) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX)
}

impl ContentTraits {
    /// Returns the server of the document, as in jobs: the host of its id if that is a URL, otherwise of its URL.
    pub(crate) fn server(&self) -> Option<Cow<'_, str>> {
        let urls = [self.id.as_deref(), self.url.as_deref()];
        urls.into_iter().flatten().find_map(host)
    }

    /// Returns the hash of a document's category: the value that was sent, otherwise its site if the collection compares sites. Returns 0
    /// if it has none.
    pub(crate) fn category(&self, pairs: &PairRule, id: Option<&str>) -> u64 {
        let Some(name) = &pairs.category else {
            return 0;
        };
        if let Some(category) = &self.category {
            return category_hash(category);
        }
        // In the order of `Category::Site` in jobs: the URL, otherwise the id.
        let urls = [self.url.as_deref(), id].into_iter().flatten();
        let site = || urls.into_iter().find_map(host);
        let site = if name == SITE { site() } else { None };
        site.map_or(0, |site| category_hash(&site))
    }
}
