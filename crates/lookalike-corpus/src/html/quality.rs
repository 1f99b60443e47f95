//! The main content of a page by a slower, more careful library: a port of Trafilatura with its
//! fallbacks, which takes the best of several extractors' answers.

use lookalike::Extraction;
use trafilatura::Options;

use crate::guard::caught;

/// The HTML of the main content, as [`super::main_content`] gives it.
pub(super) fn quality_content(html: &str, extraction: Extraction) -> Option<String> {
    let options = Options::default()
        .with_fallback(true)
        .with_links(extraction.links)
        .with_images(extraction.alt);
    let extract = || Some(trafilatura::extract(html, &options).ok()?.content_html);
    caught(extract).flatten()
}
