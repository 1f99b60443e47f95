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
    let kept = tree.within(of, |at| removed.get(at as usize) == Some(&true));
    let texts = kept.map(|at| tree.at(at)).filter(|node| node.is_text());
    texts.map(|node| node.written(html)).collect()
}
