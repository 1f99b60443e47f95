//! The main content of a page, by the rules of the browsers' reading views.
//!
//! The tree and its scoring are those of a library (a port of Mozilla's Readability.js); the text is
//! taken from the element that it chose by our own walk, so that lines, paragraphs and notes are
//! those of the other modes.

use dom_smoothie::Readability;

use crate::guard::caught;

/// The HTML of the main content; none if the library finds nothing, or fails on a page that no test
/// of ours or theirs foresaw. The page must be tame: see [`super::shape`].
pub(super) fn main_content(html: &str) -> Option<String> {
    let parse = || {
        let article = Readability::new(html, None, None).ok()?.parse().ok()?;
        Some(article.content.to_string())
    };
    caught(parse).flatten()
}
