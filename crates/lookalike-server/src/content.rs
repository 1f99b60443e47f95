//! The content of a request: a fingerprint, a text or a page.

use lookalike::Fingerprint;

/// A content to be compared.
#[derive(Debug)]
pub(crate) enum RequestContent {
    Fingerprint(Fingerprint),
    Text(String),
    Html(String),
}

impl RequestContent {
    /// Bytes of its text or page.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Fingerprint(_) => 0,
            Self::Text(text) | Self::Html(text) => text.len(),
        }
    }
}
