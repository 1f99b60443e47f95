//! Pages whose text is in `noscript` elements, as servers of forums write it for readers without scripts, such as crawlers.
//!
//! Browsers with scripts show nothing of it, and most such elements hold a sentence, a picture or a frame. So they count only on a page with next to
//! nothing else: there they become ordinary blocks, in every mode.

use memchr::{memchr, memmem};

use super::MIN_WORDS;
use super::blocks::words;
use super::page;
use super::sink::TextSink;
use super::tag::{self, TagName};
use super::target::{PageEvent, PageTarget};

const NAME: &[u8] = b"noscript";
const NOSCRIPT: TagName = TagName::new("noscript");

/// Returns the page with its `noscript` elements as blocks, if they hold nearly all of its text.
pub(super) fn shown(html: &str) -> Option<String> {
    // Few pages come as far as the walks: an upper bound of what the elements hold is counted at the speed of a search.
    (words_within(html.as_bytes()) >= MIN_WORDS).then_some(())?;
    let mut before = String::new();
    let mut elements = NoscriptFinder {
        base: html.as_ptr().addr(),
        ends: Vec::new(),
        sink: TextSink::new(&mut before),
    };
    page::walk(html, &mut elements);
    let NoscriptFinder { ends, sink, .. } = elements;
    sink.finish();
    (words(before.as_bytes()) < MIN_WORDS).then_some(())?;
    let page = with_blocks(html, &ends);
    let mut after = String::new();
    let mut sink = TextSink::new(&mut after);
    page::walk(&page, &mut sink);
    sink.finish();
    (words(after.as_bytes()) >= words(before.as_bytes()) + MIN_WORDS).then_some(page)
}

/// Counts the words between start and end tags with this name, without those of tags within.
fn words_within(bytes: &[u8]) -> u32 {
    let (mut count, mut at) = (0, 0);
    while let Some(found) = memmem::find(&bytes[at..], NAME) {
        let start = at + found + NAME.len();
        at = tag::raw_end(bytes, start, NAME);
        // The rest of the start tag ends with the first `>`.
        let parts = bytes[start..at].split(|byte| *byte == b'<');
        let texts = parts.filter_map(|part| memchr(b'>', part).map(|end| &part[end + 1..]));
        count += texts.map(words).sum::<u32>();
        at = bytes.len().min(at + b"</".len() + NAME.len());
    }
    count
}

/// A target that collects the visible text, and the ends of the names of the start tags of all `noscript` elements.
struct NoscriptFinder<'t> {
    /// Address of the page in memory; attributes are slices of the page.
    base: usize,
    ends: Vec<usize>,
    sink: TextSink<'t>,
}

impl PageTarget for NoscriptFinder<'_> {
    fn receive(&mut self, event: PageEvent<'_>) {
        if let PageEvent::Open(tag) = event
            && tag.name == NOSCRIPT
        {
            self.ends.push(tag.attributes.as_ptr().addr() - self.base);
        }
        self.sink.receive(event);
    }
}

/// Returns the page with other names for `noscript` elements, given the ends of the names of their start tags.
fn with_blocks(html: &str, ends: &[usize]) -> String {
    const BLOCK: &str = "div";
    let mut page = String::with_capacity(html.len());
    let mut copied = 0;
    for &end in ends {
        page.push_str(&html[copied..end - NAME.len()]);
        page.push_str(BLOCK);
        let close = tag::raw_end(html.as_bytes(), end, NAME);
        page.push_str(&html[end..close]);
        copied = close;
        if close < html.len() {
            page.push_str("</");
            page.push_str(BLOCK);
            copied = close + b"</".len() + NAME.len();
        }
    }
    page.push_str(&html[copied..]);
    page
}
