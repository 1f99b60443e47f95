//! Measures of a node and of its text.

use crate::html::element::HtmlElement;
use crate::html::marks;
use crate::html::tree::{CharCount, PageNode, PageTree};

/// Returns the number of linked characters that a node adds; links to positions on the same page count less.
pub(super) fn link(node: &PageNode, chars: CharCount) -> f32 {
    match node.element {
        // The factor of `_getLinkDensity` of Readability.js.
        HtmlElement::A if node.marks.has(marks::FRAGMENT) => 0.3 * chars.trimmed() as f32,
        HtmlElement::A => chars.trimmed() as f32,
        _ => 0.0,
    }
}

/// Returns the share of a text that is in links.
pub(super) fn density(linked: f32, chars: u32) -> f32 {
    if chars == 0 {
        0.0
    } else {
        linked / chars as f32
    }
}

/// Returns the text of a node as written, without removed parts.
pub(super) fn text(html: &str, tree: &PageTree, of: u32, removed: &[bool]) -> String {
    let mut text = String::new();
    let mut at = of;
    while at < tree.at(of).end {
        let node = tree.at(at);
        if removed.get(at as usize) == Some(&true) {
            // Preorder: the subtree ends where the next sibling begins.
            at = node.end;
            continue;
        }
        if node.is_text() {
            text.push_str(node.written(html));
        }
        at += 1;
    }
    text
}
