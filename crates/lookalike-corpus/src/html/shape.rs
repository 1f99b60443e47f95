//! How large, deep and wide a page is: whether building its tree is safe.
//!
//! Tree builders take quadratic time on pages made to hurt: 20,000 nested elements take the best of them
//! minutes, and 100,000 attributes of one tag seconds. One walk without a tree counts first.

use super::attribute::Attributes;
use super::page::{self, Target};
use super::sink::Gap;
use super::tag::Name;

/// Pages beyond these limits are left to the modes without a tree. Pages of the real web stay far
/// below: the deepest of the 311 in the two benchmark sets has 43 levels.
const MAX_BYTES: usize = 8 << 20;
const MAX_DEPTH: usize = 256;
const MAX_ELEMENTS: usize = 100_000;
const MAX_ATTRIBUTES: usize = 256;

/// Whether the tree of the page can be built in time that is about linear in its length, within the
/// stack of a thread. O(length of the page).
pub(super) fn is_tame(html: &str) -> bool {
    if html.len() > MAX_BYTES {
        return false;
    }
    let mut shape = Shape::default();
    page::walk(html, &mut shape);
    !shape.wild
}

/// The open elements, as far as they matter here.
#[derive(Debug, Default)]
struct Shape {
    open: Vec<Name>,
    elements: usize,
    wild: bool,
}

/// Elements without content or whose end tags may be left out: those do not nest by mistake.
macro_rules! flat {
    ($($name:literal)+) => {
        fn is_flat(name: Name) -> bool {
            $(if name == const { Name::new($name) } {
                return true;
            })+
            false
        }
    };
}

flat!(
    "area" "base" "br" "col" "dd" "dt" "embed" "hr" "img" "input" "li" "link" "meta" "option" "p"
    "param" "source" "tbody" "td" "tfoot" "th" "thead" "tr" "track" "wbr"
);

impl Target for Shape {
    fn text(&mut self, _: &str) {}

    fn verbatim(&mut self, _: &str) {}

    fn gap(&mut self, _: Gap) {}

    fn line_break(&mut self) {}

    fn set_preformatted(&mut self, _: bool) {}

    fn open(&mut self, name: Name, attributes: &str, self_closing: bool) {
        self.elements += 1;
        // An attribute takes two bytes at least.
        let many = attributes.len() > 2 * MAX_ATTRIBUTES
            && Attributes::new(attributes).nth(MAX_ATTRIBUTES).is_some();
        self.wild |= many || self.elements > MAX_ELEMENTS || self.open.len() > MAX_DEPTH;
        if !self.wild && !self_closing && !is_flat(name) {
            self.open.push(name);
        }
    }

    fn close(&mut self, name: Name) {
        if self.wild || is_flat(name) {
            return;
        }
        // As a tree builder does, but for its exceptions: what is inside is closed as well.
        if let Some(at) = self.open.iter().rposition(|open| *open == name) {
            self.open.truncate(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wild_pages_are_told_from_tame_ones() {
        let tame = [
            "<div>".repeat(200),
            "<div></div>".repeat(10_000),
            "<p>a<li>b<td>c<br>".repeat(5_000),
            format!("<a {}>", "b=c ".repeat(200)),
            "<div></b>".repeat(200),
        ];
        for page in tame {
            assert!(is_tame(&page), "{}...", &page[..20]);
        }
        let wild = [
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
        for page in wild {
            assert!(!is_tame(&page), "{}...", &page[..20]);
        }
    }
}
