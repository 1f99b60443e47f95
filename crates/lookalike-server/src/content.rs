//! The content of a request: a fingerprint, a text or a page.

use lookalike::Fingerprint;
use lookalike_store::TextHash;

/// A content to be compared.
#[derive(Debug)]
pub(crate) struct RequestContent {
    pub(crate) source: ContentSource,
    /// Hash of its text, if it was sent; else that of the text or page.
    pub(crate) text_hash: Option<TextHash>,
}

/// The content itself.
#[derive(Debug)]
pub(crate) enum ContentSource {
    Fingerprint(Fingerprint),
    Text(String),
    Html(String),
}

impl From<ContentSource> for RequestContent {
    fn from(source: ContentSource) -> Self {
        Self {
            source,
            text_hash: None,
        }
    }
}

impl RequestContent {
    /// Bytes of its text or page.
    pub(crate) fn len(&self) -> usize {
        match &self.source {
            ContentSource::Fingerprint(_) => 0,
            ContentSource::Text(text) | ContentSource::Html(text) => text.len(),
        }
    }
}
