//! The tree as the reading view scores it: page chrome is removed, and paragraphs are formed on pages that only have `div` and `br`.
//!
//! Both steps copy a tree from start to end in one loop.

use super::measure;
use std::collections::HashSet;

use crate::html::element::HtmlElement;
use crate::html::element::group::{BLOCK, HOLDER, PHRASING};
use crate::html::headline::{missing, words};
use crate::html::marks::{BYLINE, DIALOG, HIDDEN, UNLIKELY, UNLIKELY_ROLE};
use crate::html::tree::{CharCount, PageNode, PageTree};

/// Maximum share of links in a `div` that counts as a paragraph.
const LINKED: f32 = 0.25;

/// Length from which a text is no longer a byline, in characters.
const BYLINE_CHARS: u32 = 100;

/// Sums over the content of a node.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InnerContent {
    pub(super) chars: CharCount,
    /// Number of these in links; those in links to positions on the same page count about a third.
    pub(super) linked: f32,
    pub(super) commas: u32,
    /// Number of `br` and `hr` at any depth.
    breaks: u32,
    /// True if it contains elements that a paragraph cannot contain.
    blocks: bool,
    /// True if some child cannot be part of a paragraph.
    breaking: bool,
    /// True if the node itself can be part of a paragraph.
    phrasing: bool,
}

/// Computes the sums over the content of every node. O(nodes).
pub(super) fn inner_sums(tree: &PageTree, insides: &mut Vec<InnerContent>) {
    insides.clear();
    insides.resize(tree.nodes.len(), InnerContent::default());
    // Nodes come before their content, so in reverse order each is complete when it is added to its parent.
    for (at, node) in tree.nodes.iter().enumerate().skip(1).rev() {
        let element = node.element;
        let inside = &mut insides[at];
        if node.is_text() {
            (inside.chars, inside.commas) = (node.chars, node.commas);
        }
        let filled = node.end as usize > at + 1;
        inside.phrasing =
            // `_isPhrasingContent` of Readability.js, for all nodes in one pass; the original repeats it for each child of each `div`.
            element.is(PHRASING) || (element.is_transparent() && filled && !inside.breaking);
        let child = *inside;
        let above = &mut insides[node.parent as usize];
        // The sums of the parent so far come after the child.
        above.chars = child.chars.then(above.chars);
        above.linked += child.linked + measure::link(node, child.chars);
        above.commas += child.commas;
        above.breaks +=
            child.breaks + u32::from(matches!(element, HtmlElement::Br | HtmlElement::Hr));
        above.blocks |= child.blocks || element.is(BLOCK);
        above.breaking |= !child.phrasing;
    }
}

/// Puts the content after two or more `br` into a paragraph. O(nodes).
pub(super) fn break_lines(tree: &PageTree, insides: &[InnerContent], out: &mut PageTree) {
    out.clear(*tree.at(0));
    let mut copy = TreeCopy::new(tree, out);
    let mut at = 1;
    while at < tree.len() {
        copy.close_before(at);
        let node = tree.at(at);
        // A single `br` is a line break within a paragraph; old pages end a paragraph with two (`_replaceBrs`).
        if node.element == HtmlElement::Br && is_break_before(tree, node.end, copy.end()) {
            copy.end_wrap();
            copy.wrap(HtmlElement::P);
            copy.rename_paragraph();
            at = after_breaks(tree, at, copy.end());
            continue;
        }
        if !insides[at as usize].phrasing {
            copy.end_wrap();
        }
        copy.node(at, *node, false);
        at += 1;
    }
    copy.finish();
}

/// Returns true if the next node from `at` on is a `br`, ignoring white space.
fn is_break_before(tree: &PageTree, mut at: u32, end: u32) -> bool {
    while at < end && tree.at(at).is_text() && tree.at(at).chars.is_blank() {
        at += 1;
    }
    at < end && tree.at(at).element == HtmlElement::Br
}

/// Returns the position just after a sequence of `br` and the white space between them.
fn after_breaks(tree: &PageTree, mut at: u32, end: u32) -> u32 {
    while is_break_before(tree, at, end) {
        // Only white space comes before it, as `is_break_before` has checked.
        while tree.at(at).element != HtmlElement::Br {
            at += 1;
        }
        at += 1;
    }
    at
}

/// The state of copying a tree.
struct TreeCopy<'t> {
    from: &'t PageTree,
    to: &'t mut PageTree,
    open: Vec<OpenCopy>,
}

/// An open element of the copy.
struct OpenCopy {
    /// Its end in the source tree.
    end: u32,
    /// Its position in the copy.
    at: u32,
    /// Position in the copy of the paragraph that receives its children.
    wrap: Option<u32>,
    /// True if its children are put into paragraphs.
    wraps: bool,
}

impl<'t> TreeCopy<'t> {
    fn new(from: &'t PageTree, to: &'t mut PageTree) -> TreeCopy<'t> {
        let body = OpenCopy {
            end: from.len(),
            at: 0,
            wrap: None,
            wraps: false,
        };
        TreeCopy {
            from,
            to,
            open: vec![body],
        }
    }

    /// Returns the innermost open element.
    fn innermost_open(&mut self) -> &mut OpenCopy {
        self.open.last_mut().expect("the body is open to the end")
    }

    /// Returns the end of the open element.
    fn end(&mut self) -> u32 {
        self.innermost_open().end
    }

    /// Closes the elements that end before `at`.
    fn close_before(&mut self, at: u32) {
        while self.open.len() > 1 && self.end() <= at {
            self.end_wrap();
            if let Some(closed) = self.open.pop() {
                self.to.close(closed.at);
            }
        }
    }

    fn finish(mut self) {
        self.close_before(self.from.len());
        self.end_wrap();
        self.to.close(0);
    }

    /// Opens an element around the next children.
    fn wrap(&mut self, element: HtmlElement) {
        let parent = self.innermost_open().at;
        let wrap = self.to.add(PageNode::implied(element), parent);
        self.innermost_open().wrap = Some(wrap);
    }

    fn end_wrap(&mut self) {
        if let Some(wrap) = self.innermost_open().wrap.take() {
            self.to.close(wrap);
        }
    }

    /// Turns a paragraph that contains paragraphs into another element.
    fn rename_paragraph(&mut self) {
        let at = self.innermost_open().at;
        let element = &mut self.to.nodes[at as usize].element;
        if *element == HtmlElement::P {
            *element = HtmlElement::Div;
        }
    }

    /// Copies the node at `at`, possibly changed. Its content follows.
    fn node(&mut self, at: u32, node: PageNode, wraps: bool) {
        let inside = self.innermost_open();
        let parent = inside.wrap.unwrap_or(inside.at);
        let end = self.from.at(at).end;
        let copied = self.to.add(node, parent);
        if end > at + 1 {
            self.open.push(OpenCopy {
                end,
                at: copied,
                wrap: None,
                wraps,
            });
        }
    }
}

/// The treatment of a `div`.
enum DivTreatment {
    /// Becomes a paragraph with its content; its attributes are dropped.
    Paragraph,
    /// Becomes a paragraph, but keeps its attributes.
    Renamed,
    /// Replaced by the paragraph at this position, which is its only content.
    OnlyParagraph(u32),
    /// Stays a `div`, and its loose texts become paragraphs.
    Block,
}

/// Rules for removing parts of a page.
pub(super) struct StripRules<'p> {
    pub(super) html: &'p str,
    /// True if elements that look like page chrome are removed, too.
    pub(super) unlikely: bool,
    /// The title of the page.
    pub(super) title: &'p str,
}

impl StripRules<'_> {
    /// Copies a tree without page chrome. O(nodes and text of headings).
    pub(super) fn copy(&self, tree: &PageTree, insides: &[InnerContent], out: &mut PageTree) {
        out.clear(*tree.at(0));
        let title: HashSet<String> = words(self.title).collect();
        let mut titled = title.is_empty();
        let mut signed = false;
        let mut copy = TreeCopy::new(tree, out);
        // Nodes before this position are not judged.
        let mut fixed = 0;
        let mut at = 1;
        while at < tree.len() {
            copy.close_before(at);
            let (node, inside) = (tree.at(at), &insides[at as usize]);
            place(&mut copy, node, inside);
            if node.is_text() {
                copy.node(at, *node, false);
                at += 1;
                continue;
            }
            if at >= fixed {
                let is_title = || is_title(self.html, tree, at, &title);
                let is_byline =
                    node.marks.has(BYLINE) && (1..BYLINE_CHARS).contains(&inside.chars.trimmed());
                let titles = !titled && node.element.is_title() && is_title();
                let signs = !signed && is_byline;
                titled |= titles;
                signed |= signs;
                // Only the first heading that repeats the title and the first byline are removed: later ones belong to the text.
                if titles || signs || self.should_remove(&mut copy, node, inside) {
                    at = node.end;
                    continue;
                }
            }
            // A drawing is kept or removed as a whole, because class names in it mean other things.
            if node.element == HtmlElement::Svg {
                fixed = fixed.max(node.end);
            }
            let mut node = *node;
            let mut wraps = false;
            if node.element == HtmlElement::Div && at >= fixed {
                match division(tree, insides, at) {
                    DivTreatment::Paragraph => node = PageNode::implied(HtmlElement::P),
                    DivTreatment::Renamed => node.element = HtmlElement::P,
                    DivTreatment::Block => wraps = true,
                    DivTreatment::OnlyParagraph(paragraph) => {
                        at = paragraph;
                        // The paragraph replaces the `div`, and was judged as its content; do not judge it again.
                        fixed = fixed.max(paragraph + 1);
                        copy.close_before(at);
                        node = *tree.at(at);
                    }
                }
            }
            copy.node(at, node, wraps);
            at += 1;
        }
        copy.finish();
    }

    /// Returns true if an element is removed.
    fn should_remove(
        &self,
        copy: &mut TreeCopy<'_>,
        node: &PageNode,
        inside: &InnerContent,
    ) -> bool {
        let marks = node.marks;
        marks.has(HIDDEN | DIALOG)
            || (self.unlikely && marks.has(UNLIKELY_ROLE))
            // `hasAncestorTag(node, "table")` and `"code"` in Readability.js examine three levels.
            || (self.unlikely && marks.has(UNLIKELY) && !is_in_code(copy))
            || (node.element.is(HOLDER)
                && inside.chars.is_blank()
                && (node.children == 0 || node.children == inside.breaks))
    }
}

/// Begins and ends the paragraphs around the children of a `div`.
fn place(copy: &mut TreeCopy<'_>, node: &PageNode, inside: &InnerContent) {
    let around = copy.innermost_open();
    if !around.wraps {
        return;
    }
    if !inside.phrasing {
        copy.end_wrap();
    } else if around.wrap.is_none() && !is_white(node) {
        copy.wrap(HtmlElement::P);
    }
}

/// Returns true if a node has nothing to read: white space or `br`.
fn is_white(node: &PageNode) -> bool {
    (node.is_text() && node.chars.is_blank()) || node.element == HtmlElement::Br
}

/// Returns true if one of the three innermost open elements is a table or code.
fn is_in_code(copy: &mut TreeCopy<'_>) -> bool {
    let inside = copy.innermost_open();
    let at = inside.wrap.unwrap_or(inside.at);
    let around = std::iter::once(at).chain(copy.to.ancestors(at)).take(3);
    let mut elements = around.map(|at| copy.to.at(at).element);
    elements.any(|element| matches!(element, HtmlElement::Table | HtmlElement::Code))
}

/// Decides how to treat the `div` at `of`.
fn division(tree: &PageTree, insides: &[InnerContent], of: u32) -> DivTreatment {
    let (mut rows, mut others, mut paragraph) = (0, 0, None);
    let mut in_row = false;
    for at in tree.children(of) {
        let node = tree.at(at);
        if insides[at as usize].phrasing {
            if !in_row && !is_white(node) {
                in_row = true;
                rows += 1;
            }
            others += u32::from(!in_row && node.element == HtmlElement::Br);
        } else {
            in_row = false;
            others += 1;
            paragraph = Some(at).filter(|_| node.element == HtmlElement::P);
        }
    }
    let inside = &insides[of as usize];
    let linked = measure::density(inside.linked, inside.chars.trimmed());
    match (rows, others, paragraph) {
        (1, 0, _) if linked < LINKED => DivTreatment::Paragraph,
        // `_hasSingleTagInsideElement`: the `div` around a single paragraph would take half of its points.
        (0, 1, Some(paragraph)) if linked < LINKED => DivTreatment::OnlyParagraph(paragraph),
        (0, _, _) if !inside.blocks => DivTreatment::Renamed,
        _ => DivTreatment::Block,
    }
}

/// Returns true if a heading repeats the title: more than three quarters of its letters are in words of the title.
fn is_title(html: &str, tree: &PageTree, at: u32, title: &HashSet<String>) -> bool {
    let heading = measure::text(html, tree, at, &[]);
    // A heading without words repeats nothing.
    words(&heading).next().is_some() && missing(&heading, title) < 0.25
}
