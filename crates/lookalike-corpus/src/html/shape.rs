//! The shape of a page, determined before its tree is built: whether building it is safe, and whether it helps.
//!
//! Tree builders take quadratic time on adversarial pages: 20,000 nested elements take the best of them minutes, and 100,000 attributes of one tag
//! take seconds. A walk without a tree checks for that first.
//!
//! Reading views look for an article. API documentation has none: from such a page they take one table or one entry, and a different one in each
//! version of the page. Such pages are recognized by their marks: `code`, `dt`, `dd`.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::attribute::TagAttributes;
use super::blocks::words;
use super::page;
use super::tag::{TagName, tag_set};
use super::target::{PageEvent, PageTarget, StartTag};

/// Pages beyond these limits are left to the modes without a tree. Real pages stay far below: the deepest of the 311 in the two benchmark sets has 43
/// levels.
pub(super) const MAX_BYTES: usize = 8 << 20;
pub(super) const MAX_DEPTH: usize = 256;
pub(super) const MAX_ELEMENTS: usize = 100_000;
const MAX_ATTRIBUTES: usize = 256;

/// Number of words per mark, or fewer, on a reference page. This holds for 407 of 410 pages of Javadoc, none of the 66 articles of
/// article-extraction-benchmark, and 16 of the 245 pages of wcxb-pages, for which it makes little difference.
const MAX_WORDS_PER_MARK: u32 = 50;

/// Minimum number of marks on a reference page, however short it is.
const MIN_MARKS: u32 = 4;

/// Returns true for a page that is made to take quadratic time, or much too large: its tree cannot be built in about linear time, within the stack
/// of a thread. O(length of the page).
#[cfg(any(test, feature = "quality"))]
pub(super) fn is_adversarial(html: &str) -> bool {
    html.len() > MAX_BYTES || ShapeCounter::of(html).adversarial
}

/// Returns true for a reference page, no element of which contains its content. O(length of the page), but for most other pages only a search that is
/// much faster than a walk.
pub(super) fn is_reference(html: &str) -> bool {
    static MARKS: LazyLock<AhoCorasick> = LazyLock::new(|| {
        let tags = ["<code", "<CODE", "<dt", "<DT", "<dd", "<DD"];
        AhoCorasick::new(tags).expect("a few short tags")
    });
    let mut marks = MARKS.find_iter(html);
    // The search also finds tags in comments and scripts, so it cannot decide, only send a page to the walk.
    marks.nth(MIN_MARKS as usize - 1).is_some() && ShapeCounter::of(html).has_marks()
}

/// Counts open elements, as far as they matter here.
#[derive(Debug, Default)]
struct ShapeCounter {
    open: Vec<TagName>,
    elements: usize,
    adversarial: bool,
    /// Number of elements for names and their meanings.
    marks: u32,
    words: u32,
}

tag_set!(is_mark: "code" "dt" "dd");
// Elements without content, or whose end tags may be left out: those do not nest by mistake.
tag_set!(is_flat:
    "area" "base" "br" "col" "dd" "dt" "embed" "hr" "img" "input" "li" "link" "meta" "option" "p"
    "param" "source" "tbody" "td" "tfoot" "th" "thead" "tr" "track" "wbr"
);

impl PageTarget for ShapeCounter {
    fn receive(&mut self, event: PageEvent<'_>) {
        match event {
            PageEvent::Text(text) | PageEvent::Verbatim(text) => {
                self.words += words(text.as_bytes());
            }
            PageEvent::Open(tag) => self.open(tag),
            PageEvent::Close(name) => self.close(name),
            _ => {}
        }
    }
}

impl ShapeCounter {
    fn of(html: &str) -> Self {
        let mut shape = Self::default();
        page::walk(html, &mut shape);
        shape
    }

    fn has_marks(&self) -> bool {
        self.marks >= MIN_MARKS && self.marks.saturating_mul(MAX_WORDS_PER_MARK) >= self.words
    }

    fn open(&mut self, tag: StartTag<'_>) {
        let (name, attributes) = (tag.name, tag.attributes);
        self.elements += 1;
        self.marks += u32::from(is_mark(name));
        // An attribute takes at least two bytes.
        let many = attributes.len() > 2 * MAX_ATTRIBUTES
            && TagAttributes::new(attributes).nth(MAX_ATTRIBUTES).is_some();
        // The walk continues, but pushes nothing more, so the rest costs one comparison per tag.
        self.adversarial |= many || self.elements > MAX_ELEMENTS || self.open.len() > MAX_DEPTH;
        if !self.adversarial && !tag.self_closing && !is_flat(name) {
            self.open.push(name);
        }
    }

    fn close(&mut self, name: TagName) {
        if self.adversarial || is_flat(name) {
            return;
        }
        // Closes everything inside as well, like a tree builder apart from its exceptions. At most `MAX_DEPTH` comparisons per end tag, so the walk
        // stays linear.
        if let Some(at) = self.open.iter().rposition(|open| *open == name) {
            self.open.truncate(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adversarial_pages_are_told_from_ordinary_ones() {
        let ordinary = [
            "<div>".repeat(200),
            "<div></div>".repeat(10_000),
            "<p>a<li>b<td>c<br>".repeat(5_000),
            format!("<a {}>", "b=c ".repeat(200)),
            "<div></b>".repeat(200),
        ];
        for page in ordinary {
            assert!(!is_adversarial(&page), "{}...", &page[..20]);
        }
        let adversarial = [
            "<div>".repeat(100_000),
            "<div></b>".repeat(300),
            "<b></i>".repeat(300),
            "<longer-than-any-name>".repeat(300),
            "<table><tr><td>".repeat(5_000),
            "<i></i>".repeat(60_000) + &"<i></i>".repeat(60_000),
            format!("<a {}>", "b=c ".repeat(1_000_000)),
            format!("<a {}>", "b ".repeat(300)),
            "a".repeat(MAX_BYTES + 1),
        ];
        for page in adversarial {
            assert!(is_adversarial(&page), "{}...", &page[..20]);
        }
    }

    #[test]
    fn reference_pages_are_told_by_their_marks() {
        let words = "Returns the number of entries that are held here. ".repeat(5);
        let entries = |mark: &str, n: usize| format!("<{mark}>size</{mark}>{words}").repeat(n);
        for page in [entries("code", 4), entries("dt", 4), entries("dd", 30)] {
            assert!(is_reference(&page), "{page}");
        }
        let story = format!("<p>{}</p>", words.repeat(10)).repeat(4);
        for page in [
            entries("code", 3),
            entries("b", 30),
            entries("code", 4) + &story,
        ] {
            assert!(!is_reference(&page), "{page}");
        }
    }
}
