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
use super::target::PageTarget;

/// Pages beyond these limits are left to the modes without a tree. Real pages stay far below: the deepest of the 311 in the two benchmark sets has 43
/// levels.
pub(super) const MAX_BYTES: usize = 8 << 20;
pub(super) const MAX_DEPTH: usize = 256;
pub(super) const MAX_ELEMENTS: usize = 100_000;
const MAX_ATTRIBUTES: usize = 256;

/// Number of words per mark, or fewer, on a reference page. This holds for 407 of 410 pages of Javadoc, none of the 66 articles of
/// article-extraction-benchmark, and 16 of the 245 pages of wcxb-pages, for which it makes no difference.
const MAX_WORDS_PER_MARK: u32 = 50;

/// Minimum number of marks on a reference page, however short it is.
const MIN_MARKS: u32 = 4;

/// The shape of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageShape {
    /// Its tree can be built in about linear time, within the stack of a thread.
    Ordinary,
    /// Like `Ordinary`, but no single element contains its content.
    Reference,
    /// Made to take quadratic time, or much too large.
    Adversarial,
}

/// Determines the shape of a page. O(length of the page).
pub(super) fn kind(html: &str) -> PageShape {
    if html.len() > MAX_BYTES {
        return PageShape::Adversarial;
    }
    let mut shape = ShapeCounter::default();
    page::walk(html, &mut shape);
    let ShapeCounter {
        adversarial,
        marks,
        words,
        ..
    } = shape;
    match adversarial {
        true => PageShape::Adversarial,
        false if has_marks(marks, words) => PageShape::Reference,
        false => PageShape::Ordinary,
    }
}

fn has_marks(marks: u32, words: u32) -> bool {
    marks >= MIN_MARKS && marks.saturating_mul(MAX_WORDS_PER_MARK) >= words
}

/// Returns true for a reference page. O(length of the page), but for most other pages only a search that is much faster than a walk.
pub(super) fn is_reference(html: &str) -> bool {
    static MARKS: LazyLock<AhoCorasick> = LazyLock::new(|| {
        let tags = ["<code", "<CODE", "<dt", "<DT", "<dd", "<DD"];
        AhoCorasick::new(tags).expect("a few short tags")
    });
    let mut marks = MARKS.find_iter(html);
    // The search also finds tags in comments and scripts, so it cannot decide, only send a page to the walk.
    marks.nth(MIN_MARKS as usize - 1).is_some() && kind(html) == PageShape::Reference
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
    fn text(&mut self, text: &str) {
        self.words += words(text.as_bytes());
    }

    fn verbatim(&mut self, text: &str) {
        self.text(text);
    }

    fn open(&mut self, name: TagName, attributes: &str, self_closing: bool) {
        self.elements += 1;
        self.marks += u32::from(is_mark(name));
        // An attribute takes at least two bytes.
        let many = attributes.len() > 2 * MAX_ATTRIBUTES
            && TagAttributes::new(attributes).nth(MAX_ATTRIBUTES).is_some();
        // The walk continues, but pushes nothing more, so the rest costs one comparison per tag.
        self.adversarial |= many || self.elements > MAX_ELEMENTS || self.open.len() > MAX_DEPTH;
        if !self.adversarial && !self_closing && !is_flat(name) {
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
            assert!(kind(&page) != PageShape::Adversarial, "{}...", &page[..20]);
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
            assert!(kind(&page) == PageShape::Adversarial, "{}...", &page[..20]);
        }
    }
    #[test]
    fn reference_pages_are_told_by_their_marks() {
        let words = "Returns the number of entries that are held here. ".repeat(5);
        let entries = |mark: &str, n: usize| format!("<{mark}>size</{mark}>{words}").repeat(n);
        for page in [entries("code", 4), entries("dt", 4), entries("dd", 30)] {
            assert_eq!(kind(&page), PageShape::Reference, "{page}");
            assert!(is_reference(&page), "{page}");
        }
        let story = format!("<p>{}</p>", words.repeat(10)).repeat(4);
        for page in [
            entries("code", 3),
            entries("b", 30),
            entries("code", 4) + &story,
        ] {
            assert_eq!(kind(&page), PageShape::Ordinary, "{page}");
            assert!(!is_reference(&page), "{page}");
        }
    }
}
