//! A page as a flat tree: its elements and texts in page order, each with the position of its end.
//!
//! The content of a node follows it without a gap, so that a walk is a loop, removed parts are jumped over, and sums over the content of every
//! element take one loop from the end to the start. The builder follows those parts of the HTML standard (13.2.6) that matter for real pages:
//! optional end tags, tables without `tbody` and `tr`, end tags that close an outer element. It does not handle frame sets, moves nothing out of
//! tables, and reconstructs no formatting. Time and memory are linear in the page, for pages that are not [`TreeFacts::adversarial`].

use super::attribute::TagAttributes;
use super::element::HtmlElement;
use super::element::group::{ABSENT, ENDS_P, HEADING, SCOPE, SPECIAL, VOID};
use super::marks::{self, AttributeMarks};
use super::shape::{MAX_BYTES, MAX_DEPTH, MAX_ELEMENTS};
use super::tag::TagName;
use super::target::{PageEvent, PageTarget, StartTag};

/// Maximum number of elements and texts of an ordinary page. Real pages have about as many texts as elements.
const MAX_NODES: usize = 4 * MAX_ELEMENTS;

/// The number of characters of a text, counting each run of white space as one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CharCount {
    count: u32,
    /// True if the first character is white space, and if the last is.
    leads: bool,
    trails: bool,
}

impl CharCount {
    /// Returns the count for this text followed by the next.
    pub(super) fn then(self, next: CharCount) -> CharCount {
        if self.count == 0 {
            return next;
        }
        if next.count == 0 {
            return self;
        }
        CharCount {
            // White space on both sides of the border is a single run, as it is on the page.
            count: self.count + next.count - u32::from(self.trails && next.leads),
            leads: self.leads,
            trails: next.trails,
        }
    }

    /// Returns the number of characters without white space at the start and the end.
    pub(super) fn trimmed(self) -> u32 {
        self.count
            .saturating_sub(u32::from(self.leads) + u32::from(self.trails))
    }

    /// Returns true if the text is empty or white space.
    pub(super) fn is_blank(self) -> bool {
        self.trimmed() == 0
    }
}

/// An element or a text in the tree.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PageNode {
    pub(super) element: HtmlElement,
    /// For a text, true if `&` stands for itself.
    pub(super) verbatim: bool,
    /// Number of its ancestors.
    pub(super) depth: u16,
    pub(super) parent: u32,
    /// Position just after the last node of its content.
    pub(super) end: u32,
    /// Number of child elements.
    pub(super) children: u32,
    /// Range on the page: the text, or the start tag after its name.
    pub(super) from: u32,
    pub(super) to: u32,
    /// Number of characters and commas of a text.
    pub(super) chars: CharCount,
    pub(super) commas: u32,
    /// Marks of an element.
    pub(super) marks: AttributeMarks,
}

impl PageNode {
    /// Creates an element without a tag on the page.
    pub(super) fn implied(element: HtmlElement) -> PageNode {
        PageNode {
            element,
            ..PageNode::default()
        }
    }

    /// Returns its source on the page.
    pub(super) fn written<'h>(&self, html: &'h str) -> &'h str {
        &html[self.from as usize..self.to as usize]
    }

    /// Returns true if the node is a text.
    pub(super) fn is_text(&self) -> bool {
        self.element == HtmlElement::Text
    }
}

/// The nodes of a page; the first is `body`, which contains all others.
#[derive(Debug, Clone, Default)]
pub(super) struct PageTree {
    pub(super) nodes: Vec<PageNode>,
}

impl PageTree {
    /// Removes all nodes except an empty `body`.
    pub(super) fn clear(&mut self, body: PageNode) {
        self.nodes.clear();
        let children = 0;
        self.nodes.push(PageNode {
            element: HtmlElement::Body,
            end: 1,
            children,
            ..body
        });
    }

    /// Appends a node, as the last child of `parent`, which must be open. Returns its position.
    pub(super) fn add(&mut self, node: PageNode, parent: u32) -> u32 {
        let at = self.nodes.len() as u32;
        let above = &mut self.nodes[parent as usize];
        above.children += u32::from(!node.is_text());
        let depth = above.depth + 1;
        self.nodes.push(PageNode {
            parent,
            depth,
            // Has no content until it is closed.
            end: at + 1,
            children: 0,
            ..node
        });
        at
    }

    /// Closes a node: nodes added later are not in it.
    pub(super) fn close(&mut self, at: u32) {
        self.nodes[at as usize].end = self.nodes.len() as u32;
    }

    /// Returns the number of nodes.
    pub(super) fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Returns the node at a position.
    pub(super) fn at(&self, at: u32) -> &PageNode {
        &self.nodes[at as usize]
    }

    /// Iterates over the positions of the children of a node.
    pub(super) fn children(&self, of: u32) -> impl Iterator<Item = u32> {
        let end = self.at(of).end;
        let first = Some(of + 1).filter(|first| *first < end);
        std::iter::successors(first, move |at| {
            // Each step goes to the next child, whatever the amount of content.
            Some(self.at(*at).end).filter(|next| *next < end)
        })
    }

    /// Iterates over the positions of a node and its content, without the nodes for which `is_left_out` is true and their content.
    pub(super) fn within(
        &self,
        of: u32,
        is_left_out: impl Fn(u32) -> bool,
    ) -> impl Iterator<Item = u32> {
        let (mut next, end) = (of, self.at(of).end);
        std::iter::from_fn(move || {
            // Preorder: the content of a node ends where its next sibling begins.
            while next < end && is_left_out(next) {
                next = self.at(next).end;
            }
            next += 1;
            (next <= end).then(|| next - 1)
        })
    }

    /// Iterates over the positions of the ancestors of a node, from the inside outwards.
    pub(super) fn ancestors(&self, of: u32) -> impl Iterator<Item = u32> {
        let above = |at: u32| (at > 0).then(|| self.at(at).parent);
        std::iter::successors(above(of), move |at| above(*at))
    }
}

/// Facts about a page other than its tree.
#[derive(Debug, Clone, Default)]
pub(super) struct TreeFacts {
    /// True if the page is adversarial or much too large; its tree is incomplete.
    pub(super) adversarial: bool,
    /// Title of the page according to a `meta` element, otherwise the `title` element, with character references.
    pub(super) title: String,
    /// True if a `br` follows another one.
    pub(super) breaks: bool,
}

/// Builds the tree of a page, through which `walk` walks. O(length of the page).
pub(super) fn build(
    html: &str,
    walk: impl FnOnce(&mut dyn PageTarget),
    tree: &mut PageTree,
) -> TreeFacts {
    let facts = TreeFacts {
        adversarial: html.len() > MAX_BYTES,
        ..TreeFacts::default()
    };
    tree.clear(PageNode::implied(HtmlElement::Body));
    let mut builder = TreeBuilder {
        // As for headlines, offsets are computed from slices, so the walk need not pass them.
        base: html.as_ptr().addr(),
        tree,
        facts,
        open: Vec::new(),
        counts: TreeCounts::default(),
        named: false,
    };
    if !builder.facts.adversarial {
        walk(&mut builder);
        builder.close_until(0);
        let len = builder.tree.len();
        builder.tree.nodes[0].end = len;
    }
    builder.facts
}

/// An element whose end tag has not been read yet.
#[derive(Debug, Clone, Copy)]
struct OpenElement {
    at: u32,
    element: HtmlElement,
    name: TagName,
}

/// Counts so far.
#[derive(Debug, Default)]
struct TreeCounts {
    elements: usize,
    end_tags: usize,
    /// Numbers of open elements: `p`, `table`, `svg` and `math`, and others.
    paragraphs: u32,
    tables: u32,
    foreign: u32,
    others: u32,
}

struct TreeBuilder<'t> {
    /// Address of the page in memory; texts are slices of the page.
    base: usize,
    tree: &'t mut PageTree,
    facts: TreeFacts,
    open: Vec<OpenElement>,
    counts: TreeCounts,
    /// True if the title comes from a `meta` element.
    named: bool,
}

impl TreeBuilder<'_> {
    /// Returns the range of a part of the page.
    fn place(&self, part: &str) -> (u32, u32) {
        // `MAX_BYTES` keeps offsets within 32 bits: longer pages are not walked.
        let from = part.as_ptr().addr() - self.base;
        (from as u32, (from + part.len()) as u32)
    }

    fn innermost(&self) -> u32 {
        self.open.last().map_or(0, |open| open.at)
    }

    /// Returns the innermost open element that is `wanted`, unless an element that is a `barrier` is open inside it.
    fn find(
        &self,
        wanted: impl Fn(&OpenElement) -> bool,
        barrier: impl Fn(HtmlElement) -> bool,
    ) -> Option<usize> {
        for (i, open) in self.open.iter().enumerate().rev() {
            if wanted(open) {
                return Some(i);
            }
            if barrier(open.element) {
                return None;
            }
        }
        None
    }

    /// Closes elements until only `length` are open.
    fn close_until(&mut self, length: usize) {
        while self.open.len() > length {
            let Some(OpenElement { at, element, .. }) = self.open.pop() else {
                return;
            };
            // Each element was counted when it was pushed, and is popped only here.
            *self.counter(element) -= 1;
            self.tree.close(at);
        }
    }

    /// Closes the found element, if any, with everything in it.
    fn close_if(&mut self, found: Option<usize>) {
        if let Some(at) = found {
            self.close_until(at);
        }
    }

    /// Returns the counter of open elements of this kind.
    fn counter(&mut self, element: HtmlElement) -> &mut u32 {
        match element {
            HtmlElement::P => &mut self.counts.paragraphs,
            HtmlElement::Table => &mut self.counts.tables,
            HtmlElement::Svg | HtmlElement::Math => &mut self.counts.foreign,
            _ => &mut self.counts.others,
        }
    }

    fn push(&mut self, node: PageNode, name: TagName) {
        let at = self.tree.add(node, self.innermost());
        self.counts.elements += 1;
        self.facts.adversarial |=
            self.counts.elements > MAX_ELEMENTS || self.open.len() > MAX_DEPTH;
        let element = node.element;
        self.open.push(OpenElement { at, element, name });
        *self.counter(element) += 1;
    }

    fn imply(&mut self, element: HtmlElement) {
        self.push(PageNode::implied(element), element.name());
    }

    /// Closes the elements that the start of this element closes.
    fn make_room(&mut self, element: HtmlElement) {
        match element {
            HtmlElement::Li => {
                self.close_if(self.find(|open| open.element == HtmlElement::Li, bars_item))
            }
            HtmlElement::Dd | HtmlElement::Dt => self.close_if(self.find(
                |open| matches!(open.element, HtmlElement::Dd | HtmlElement::Dt),
                bars_item,
            )),
            HtmlElement::A => {
                if let Some(at) = self.find(|open| open.element == HtmlElement::A, bars_block) {
                    self.close_inline(at);
                }
            }
            HtmlElement::Button => {
                self.close_if(self.find(|open| open.element == HtmlElement::Button, bars_block));
            }
            HtmlElement::Option | HtmlElement::Optgroup => {
                self.close_if(self.find(|open| open.element == HtmlElement::Option, bars_inline));
            }
            _ if element == HtmlElement::Tr || element.is_row_group() || element.is_cell() => {
                self.make_row(element);
            }
            _ => {}
        }
        // The counter avoids searching the open elements on pages without `p`.
        if element.is(ENDS_P) && self.counts.paragraphs > 0 {
            self.close_if(self.find(|open| open.element == HtmlElement::P, bars_paragraph));
        }
        if element.is(HEADING)
            && self
                .open
                .last()
                .is_some_and(|open| open.element.is(HEADING))
        {
            self.close_until(self.open.len() - 1);
        }
    }

    /// Closes the parts of a table that end where this one begins, and opens omitted ones.
    fn make_row(&mut self, element: HtmlElement) {
        let ends = |open: &OpenElement| match element {
            HtmlElement::Tr => open.element == HtmlElement::Tr,
            _ if element.is_cell() => open.element.is_cell(),
            _ => open.element.is_row_group(),
        };
        let bars = |around: HtmlElement| {
            around == HtmlElement::Table || (element.is_cell() && around == HtmlElement::Tr)
        };
        self.close_if(self.find(ends, bars));
        let innermost = |builder: &Self| builder.open.last().map(|open| open.element);
        if !element.is_row_group() && innermost(self) == Some(HtmlElement::Table) {
            self.imply(HtmlElement::Tbody);
        }
        if element.is_cell() && innermost(self).is_some_and(HtmlElement::is_row_group) {
            self.imply(HtmlElement::Tr);
        }
    }

    /// Closes an element. Blocks that are open in it are reopened outside of it.
    fn close_inline(&mut self, at: usize) {
        // The part of the adoption agency algorithm (HTML, 13.2.6.4.7) that moves text.
        let blocks: Vec<OpenElement> = self.open[at + 1..]
            .iter()
            .filter(|open| open.element.is(SPECIAL))
            .copied()
            .collect();
        self.close_until(at);
        for block in blocks {
            // Each counts as an element, so that wrongly nested tags cannot make the tree grow without limit.
            self.push(*self.tree.at(block.at), block.name);
        }
    }

    /// Reads the title of the page from a `meta` element.
    fn meta(&mut self, attributes: &str) {
        let (mut is_title, mut content) = (false, "");
        for (name, value) in TagAttributes::new(attributes) {
            match &*name {
                "property" | "name" => {
                    is_title |= matches!(value, "og:title" | "twitter:title" | "title");
                }
                "content" => content = value,
                _ => {}
            }
        }
        if is_title && !self.named && !content.is_empty() {
            self.named = true;
            content.clone_into(&mut self.facts.title);
        }
    }

    fn add_text(&mut self, text: &str, verbatim: bool) {
        if self.facts.adversarial || text.is_empty() {
            return;
        }
        let (from, to) = self.place(text);
        let (chars, commas) = match verbatim {
            true => measure(text),
            false => measure(&htmlize::unescape(text)),
        };
        let inside = self.innermost();
        if let Some(before) = self.tree.nodes.last_mut()
            // A `<` that begins no tag arrives separately from the text around it: adjacent pieces form one text.
            && (before.to, before.parent, before.verbatim) == (from, inside, verbatim)
            && before.is_text()
        {
            before.to = to;
            before.chars = before.chars.then(chars);
            before.commas += commas;
            return;
        }
        // The number of elements is limited, but not that of texts between comments.
        self.facts.adversarial |= self.tree.nodes.len() > MAX_NODES;
        let node = PageNode {
            from,
            to,
            chars,
            commas,
            verbatim,
            ..PageNode::implied(HtmlElement::Text)
        };
        self.tree.add(node, inside);
    }

    /// Returns true if the last node so far is a `br`, ignoring white space.
    fn follows_break(&self) -> bool {
        let inside = self.innermost();
        let nodes = self.tree.nodes.iter().rev();
        let mut before = nodes.take_while(|node| node.parent == inside);
        before
            .find(|node| !(node.is_text() && node.chars.is_blank()))
            .is_some_and(|node| node.element == HtmlElement::Br)
    }
}

// HTML, 13.2.6.4.7: an item also ends if one of these three is open in it.
fn bars_item(element: HtmlElement) -> bool {
    element.is(SPECIAL)
        && !matches!(
            element,
            HtmlElement::Address | HtmlElement::Div | HtmlElement::P
        )
}

fn bars_block(element: HtmlElement) -> bool {
    element.is(SCOPE)
}

fn bars_inline(element: HtmlElement) -> bool {
    element.is(SPECIAL)
}

fn bars_paragraph(element: HtmlElement) -> bool {
    // The button scope of HTML, 13.2.4.2.
    element.is(SCOPE) || element == HtmlElement::Button
}

fn bars_table(element: HtmlElement) -> bool {
    element == HtmlElement::Table
}

impl PageTarget for TreeBuilder<'_> {
    fn receive(&mut self, event: PageEvent<'_>) {
        match event {
            PageEvent::Text(text) => self.add_text(text, false),
            PageEvent::Verbatim(text) => self.add_text(text, true),
            // A `title` in an `svg` names a drawing, not the page.
            PageEvent::Title(text) if self.facts.title.is_empty() && self.counts.foreign == 0 => {
                text.clone_into(&mut self.facts.title);
            }
            PageEvent::Open(tag) => self.open(tag),
            PageEvent::Close(name) => self.close(name),
            _ => {}
        }
    }
}

impl TreeBuilder<'_> {
    fn open(&mut self, tag: StartTag<'_>) {
        let StartTag {
            name, attributes, ..
        } = tag;
        if self.facts.adversarial {
            return;
        }
        let element = HtmlElement::of(name);
        let in_table = element == HtmlElement::Tr || element.is_row_group() || element.is_cell();
        // Outside of a table, tags of its parts are ignored (HTML, 13.2.6.4.7).
        if element.is(ABSENT) || (in_table && self.counts.tables == 0) {
            match element {
                HtmlElement::Meta => self.meta(attributes),
                // The root is the `body`, which is there from the beginning.
                HtmlElement::Body => self.tree.nodes[0].marks = marks::read(element, attributes),
                _ => {}
            }
            return;
        }
        let marks = marks::read(element, attributes);
        // Pictures without a source are tracking pixels.
        if element == HtmlElement::Img && !marks.has(marks::SOURCE) {
            return;
        }
        self.make_room(element);
        let (from, to) = self.place(attributes);
        let node = PageNode {
            from,
            to,
            marks,
            ..PageNode::implied(element)
        };
        // In HTML, a slash at the end of a start tag is ignored (HTML, 13.1.2.1).
        if element.is(VOID) || (tag.self_closing && self.counts.foreign > 0) {
            self.facts.breaks |= element == HtmlElement::Br && self.follows_break();
            self.counts.elements += 1;
            self.facts.adversarial |= self.counts.elements > MAX_ELEMENTS;
            self.tree.add(node, self.innermost());
        } else {
            self.push(node, name);
        }
    }

    fn close(&mut self, name: TagName) {
        let element = HtmlElement::of(name);
        if self.facts.adversarial || element.is(VOID | ABSENT) {
            return;
        }
        // Each one may search all open elements.
        self.counts.end_tags += 1;
        self.facts.adversarial |= self.counts.end_tags > 2 * MAX_ELEMENTS;
        // Elements that are not distinguished share `Other`, so compare their names too.
        let same = |open: &OpenElement| open.element == element && open.name == name;
        match element {
            HtmlElement::P => self.close_if(self.find(same, bars_paragraph)),
            HtmlElement::Li => {
                self.close_if(self.find(same, |around| around.is_list() || around.is(SCOPE)))
            }
            // Nothing that is open in a table keeps its end tag from closing it.
            HtmlElement::Table => self.close_if(self.find(same, |_| false)),
            HtmlElement::Tr | HtmlElement::Caption => self.close_if(self.find(same, bars_table)),
            _ if element.is_row_group() || element.is_cell() => {
                self.close_if(self.find(same, bars_table));
            }
            // The end tag of any heading closes the open heading: `<h2>…</h3>` (HTML, 13.2.6.4.7).
            _ if element.is(HEADING) => {
                self.close_if(self.find(|open| open.element.is(HEADING), bars_block));
            }
            _ if element.is(SPECIAL) => self.close_if(self.find(same, bars_block)),
            _ => {
                if let Some(at) = self.find(same, bars_block) {
                    self.close_inline(at);
                }
            }
        }
    }
}

/// Counts the characters and commas of a text, in which character references are resolved.
fn measure(text: &str) -> (CharCount, u32) {
    let (mut count, mut commas) = (0, 0);
    let mut white = false;
    // Controls count as blanks; they hardly occur.
    let is_blank = |c: char| c <= ' ' || c.is_whitespace();
    for c in text.chars() {
        let blank = is_blank(c);
        count += u32::from(!(blank && white));
        // Also those of Arabic, Chinese and Japanese.
        commas += u32::from(matches!(c, ',' | '\u{60c}' | '\u{ff0c}'));
        white = blank;
    }
    let chars = CharCount {
        count,
        leads: text.starts_with(is_blank),
        trails: white,
    };
    (chars, commas)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::html::page;

    /// Formats the tree as elements with their contents in brackets.
    fn shape(html: &str) -> String {
        let mut tree = PageTree::default();
        let facts = build(html, |target| page::walk(html, target), &mut tree);
        assert!(!facts.adversarial);
        inside(html, &tree, 0)
    }

    fn inside(html: &str, tree: &PageTree, of: u32) -> String {
        let child = |at: u32| {
            let node = tree.at(at);
            if node.is_text() {
                return node.written(html).to_owned();
            }
            format!("{:?}[{}]", node.element, inside(html, tree, at)).to_lowercase()
        };
        tree.children(of).map(child).collect()
    }

    #[test]
    fn end_tags_that_may_be_left_out() {
        for (html, expected) in [
            ("<p>a<p>b<div>c", "p[a]p[b]div[c]"),
            ("<p>a<b>b<p>c</b>d", "p[ab[b]]p[cd]"),
            (
                "<ul><li>a<li>b<ul><li>c</ul>d</ul>",
                "ul[li[a]li[bul[li[c]]d]]",
            ),
            ("<dl><dt>a<dd>b<p>c<dt>d</dl>", "dl[dt[a]dd[bp[c]]dt[d]]"),
            ("<h2>a<h3>b</h2>c", "h2[a]h3[b]c"),
            (
                "<table><tr><td>a<td>b<tr><th>c</table>",
                "table[tbody[tr[td[a]td[b]]tr[th[c]]]]",
            ),
            (
                "<table><td>a<tbody><tr><td><table><td>b</table>c</table>",
                "table[tbody[tr[td[a]]]tbody[tr[td[table[tbody[tr[td[b]]]]c]]]]",
            ),
            ("<td>a</td><tr>b", "ab"),
            ("<a>b<a>c", "a[b]a[c]"),
            ("<a>b<div>c</a>d</div>e", "a[bdiv[c]]div[d]e"),
            ("<div>a</p>b</span>c</div></div>d", "div[abc]d"),
            (
                "<td></p><table><td>a</div>b</table>c",
                "table[tbody[tr[td[ab]]]]c",
            ),
            ("a<br>b</br>c<hr>d", "abr[]bchr[]d"),
            (
                "<head><title>a</title><meta name=x></head><body class=b>c</body>",
                "c",
            ),
            (
                "<svg><path/><g>a</g></svg>b<i/>c",
                "svg[other[]other[a]]bi[c]",
            ),
            ("a<img>b<img src=c>", "abimg[]"),
            ("<script>a</script><style>b</style><!--c-->d<e", "d"),
            ("a<b", "a"),
            ("<my-el>a<x>b</my-el>c", "other[aother[b]]c"),
        ] {
            assert_eq!(shape(html), expected, "{html}");
        }
    }

    #[test]
    fn facts_of_a_page() {
        let facts = |html: &str| {
            let mut tree = PageTree::default();
            build(html, |target| page::walk(html, target), &mut tree)
        };
        let page =
            "<title>Window</title><meta property=og:title content='The page'>a b<code>c</code>";
        assert_eq!(facts(page).title, "The page");
        assert_eq!(
            facts("<title>Window</title><svg><title>x</title>").title,
            "Window"
        );
        assert!(facts("a<br> <br>b").breaks && !facts("a<br>b<br>c").breaks);
        assert!(!facts("<br><i>a</i><br><p><br></p>").breaks);
    }

    fn chars(text: &str) -> CharCount {
        measure(&htmlize::unescape(text)).0
    }

    #[test]
    fn characters_and_commas_are_counted() {
        for (text, count, commas) in [
            ("", 0, 0),
            (" \n ", 0, 0),
            (" a  b\tc ", 5, 0),
            ("&nbsp;a,&amp;&nbsp; b", 5, 1),
            ("\u{a0}\u{e9}\u{3000}\u{2003}\u{ff0c}\u{60c}x", 5, 2),
            ("a & b &x", 8, 0),
        ] {
            assert_eq!(chars(text).trimmed(), count, "{text:?}");
            assert_eq!(measure(&htmlize::unescape(text)).1, commas, "{text:?}");
        }
        assert_eq!(measure("&amp;").0.trimmed(), 5);
    }

    proptest! {
        #[test]
        fn characters_of_parts_are_those_of_the_whole(a in "[ab \n]{0,8}", b in "[ab \n]{0,8}") {
            prop_assert_eq!(chars(&a).then(chars(&b)), chars(&(a.clone() + &b)));
            let plain: Vec<&str> = a.split_whitespace().collect();
            prop_assert_eq!(chars(&a).trimmed() as usize, plain.join(" ").len());
        }

        #[test]
        fn children_lie_in_their_parents(
            html in "(</?(a|p|div|li|ul|table|tr|td|b|h2|button|svg|x)/?>|a| |<br>|<!---->|<){0,60}"
        ) {
            let mut tree = PageTree::default();
            build(&html, |target| page::walk(&html, target), &mut tree);
            prop_assert_eq!(tree.at(0).end, tree.len());
            for at in 1..tree.len() {
                let (node, parent) = (tree.at(at), tree.at(tree.at(at).parent));
                prop_assert!(node.parent < at && at < node.end && node.end <= parent.end, "{}", html);
                prop_assert_eq!(node.depth, parent.depth + 1);
            }
            for at in 0..tree.len() {
                let elements = tree.children(at).filter(|child| !tree.at(*child).is_text());
                prop_assert_eq!(elements.count(), tree.at(at).children as usize);
                prop_assert!(tree.children(at).all(|child| tree.at(child).parent == at));
            }
        }
    }
}
