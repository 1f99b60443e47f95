//! Removal of foreign parts within an article: forms, lists of links, boxes, buttons.

use super::measure::{density, link, text};
use super::score::{ArticleParts, weight};
use crate::html::element::HtmlElement;
use crate::html::element::group::{HEADING, JUNK, MEMBER, TEXT_LIKE};
use crate::html::marks::{FILM, LAYOUT, SHARE, SUMMARY};
use crate::html::tree::{CharCount, PageTree};

/// Length from which a box is no longer a box of share buttons, in characters.
const SHARE_CHARS: u32 = 500;

/// Maximum length of a placeholder text for an advertisement or for content being loaded, in characters.
const NOTICE_CHARS: u32 = 20;

/// The texts of such placeholders.
const ADVERTISEMENTS: [&str; 10] = [
    "ad",
    "advertising",
    "advertisement",
    "pub",
    "publicit\u{e9}",
    "werb",
    "werbung",
    "\u{5e7f}\u{544a}",
    "\u{440}\u{435}\u{43a}\u{43b}\u{430}\u{43c}\u{430}",
    "anuncio",
];
const LOADING: [&str; 5] = [
    "loading",
    "\u{6b63}\u{5728}\u{52a0}\u{8f7d}",
    "\u{437}\u{430}\u{433}\u{440}\u{443}\u{437}\u{43a}\u{430}",
    "chargement",
    "cargando",
];

/// Sums over the remaining content of an element.
#[derive(Debug, Clone, Copy, Default)]
struct ContentSums {
    chars: CharCount,
    linked: f32,
    commas: u32,
    /// Numbers of characters in lists, in headings, and in elements whose text is more than a label. Characters in nested elements of a kind count
    /// for each.
    in_lists: u32,
    in_headings: u32,
    textish: u32,
    paragraphs: u32,
    pictures: u32,
    items: u32,
    inputs: u32,
    embeds: u32,
    rows: u32,
    /// Number of columns of the widest row; for a row, of its cells so far.
    widest: u32,
    columns: u32,
    film: bool,
    code: bool,
    /// Presence of a data table, of any table, and of an element that only data tables have.
    data: bool,
    table: bool,
    member: bool,
    /// Number of child elements, and whether one of them has more than one.
    children: u32,
    branching: bool,
}

impl ContentSums {
    /// Adds the sums of the content that follows.
    fn then(self, next: ContentSums) -> ContentSums {
        ContentSums {
            chars: self.chars.then(next.chars),
            linked: self.linked + next.linked,
            commas: self.commas + next.commas,
            in_lists: self.in_lists + next.in_lists,
            in_headings: self.in_headings + next.in_headings,
            textish: self.textish + next.textish,
            paragraphs: self.paragraphs + next.paragraphs,
            pictures: self.pictures + next.pictures,
            items: self.items + next.items,
            inputs: self.inputs + next.inputs,
            embeds: self.embeds + next.embeds,
            rows: self.rows + next.rows,
            widest: self.widest.max(next.widest),
            columns: self.columns.saturating_add(next.columns),
            film: self.film || next.film,
            code: self.code || next.code,
            data: self.data || next.data,
            table: self.table || next.table,
            member: self.member || next.member,
            children: self.children + next.children,
            branching: self.branching || next.branching,
        }
    }
}

/// Removes junk from articles, reusing its buffers.
#[derive(Debug, Clone, Default)]
pub(super) struct ArticleCleaner {
    /// For each node, true if it has been removed.
    removed: Vec<bool>,
    /// For each element, whether it is (in) a data table or a figure.
    in_data: Vec<bool>,
    in_figure: Vec<bool>,
    /// Sums over the siblings seen so far in each open element, by depth.
    pending: Vec<ContentSums>,
}

/// Selection of the cleaning rules.
#[derive(Debug, Clone, Copy)]
pub(super) struct CleaningRules {
    /// True if classes and ids count.
    pub(super) weigh: bool,
    /// True if elements that look like boxes are removed.
    pub(super) conditionally: bool,
}

impl ArticleCleaner {
    /// Removes foreign parts of the article. Returns the number of remaining characters. O(nodes), for a bounded depth.
    pub(super) fn clean(
        &mut self,
        html: &str,
        tree: &PageTree,
        article: &ArticleParts,
        rules: CleaningRules,
    ) -> u32 {
        let len = tree.nodes.len();
        for flags in [&mut self.removed, &mut self.in_data, &mut self.in_figure] {
            flags.clear();
            flags.resize(len, false);
        }
        self.remove_shares(tree, article);
        self.mark(tree, article);
        // Forms first, as in `_prepArticle` of Readability.js: boxes are judged without them.
        self.sweep(tree, article, |cleaner, at, sums| {
            rules.conditionally
                && matches!(
                    tree.at(at).element,
                    HtmlElement::Form | HtmlElement::Fieldset
                )
                && cleaner.is_box(html, tree, at, sums, rules)
        });
        // One sweep, where Readability.js makes a dozen passes by tag. It proceeds from the inside out, so that a box is judged after its inner boxes
        // were removed.
        let left = self.sweep(tree, article, |cleaner, at, sums| {
            let node = tree.at(at);
            match node.element {
                HtmlElement::Object | HtmlElement::Embed | HtmlElement::Iframe => {
                    !node.marks.has(FILM)
                }
                element if element.is(JUNK) => true,
                HtmlElement::H1 | HtmlElement::H2 => weight(node.marks, rules.weigh) < 0.0,
                HtmlElement::Table | HtmlElement::Ul | HtmlElement::Div => {
                    rules.conditionally && cleaner.is_box(html, tree, at, sums, rules)
                }
                _ => false,
            }
        });
        self.sweep(tree, article, |_, at, sums| {
            let empty = sums.chars.is_blank() && sums.pictures == 0 && sums.embeds == 0;
            tree.at(at).element == HtmlElement::P && empty
        });
        left.chars.trimmed()
    }

    /// Returns for each node whether it has been removed.
    pub(super) fn removed(&self) -> &[bool] {
        &self.removed
    }

    /// Removes boxes of share buttons, each judged with all its content.
    fn remove_shares(&mut self, tree: &PageTree, article: &ArticleParts) {
        let shares = |at: u32| tree.at(at).marks.has(SHARE);
        let mut nodes = article
            .parts
            .iter()
            .flat_map(|part| *part..tree.at(*part).end);
        if !nodes.any(shares) {
            return;
        }
        let mut short = Vec::new();
        self.sweep(tree, article, |_, at, sums| {
            if shares(at) && sums.chars.trimmed() < SHARE_CHARS {
                // Collected first: Readability.js measures every box with those inside it still present.
                short.push(at);
            }
            false
        });
        for at in short {
            self.remove(tree, at);
        }
    }

    fn remove(&mut self, tree: &PageTree, at: u32) {
        self.removed[at as usize..tree.at(at).end as usize].fill(true);
    }

    /// Marks the elements in data tables and figures.
    fn mark(&mut self, tree: &PageTree, article: &ArticleParts) {
        self.sweep(tree, article, |cleaner, at, sums| {
            cleaner.in_data[at as usize] = tree.at(at).element == HtmlElement::Table && sums.data;
            false
        });
        for &part in &article.parts {
            // Forwards: in preorder, the flags of the parent are final before its children are reached.
            for at in part..tree.at(part).end {
                let node = tree.at(at);
                let above = node.parent as usize;
                if at > part {
                    self.in_data[at as usize] |= self.in_data[above];
                    let figure = tree.at(node.parent).element == HtmlElement::Figure;
                    self.in_figure[at as usize] = self.in_figure[above] || figure;
                }
            }
        }
    }

    /// Visits the remaining elements of the article from end to start, and removes those for which `removes` returns true, given the sums over their
    /// content. Returns the sums over everything that remains.
    fn sweep(
        &mut self,
        tree: &PageTree,
        article: &ArticleParts,
        mut removes: impl FnMut(&mut Self, u32, &ContentSums) -> bool,
    ) -> ContentSums {
        let mut left = ContentSums::default();
        for &part in article.parts.iter().rev() {
            let outer = usize::from(tree.at(part).depth);
            for at in (part..tree.at(part).end).rev() {
                if self.removed[at as usize] {
                    continue;
                }
                let depth = usize::from(tree.at(at).depth) - outer;
                // One entry for the node and one for its children.
                if self.pending.len() < depth + 2 {
                    self.pending.resize(depth + 2, ContentSums::default());
                }
                // In reverse order: the sums one level deeper since the last node of this level belong to this node.
                let mut inside = std::mem::take(&mut self.pending[depth + 1]);
                if !tree.at(at).is_text() {
                    inside.data = inside.data || is_data(tree, at, &inside);
                    if removes(self, at, &inside) {
                        self.remove(tree, at);
                        // The entry for this depth stays unchanged, which excludes the element from the sums of all elements above.
                        continue;
                    }
                }
                // In reverse preorder each subtree ends before its root: no recursion, and each node is added once per sweep.
                let sums = with(tree, at, inside);
                // Nodes visited later come earlier on the page.
                self.pending[depth] = sums.then(self.pending[depth]);
            }
            left = std::mem::take(&mut self.pending[0]).then(left);
        }
        left
    }

    /// Returns true if an element is a box beside the article: it has too many links, pictures or inputs for its text.
    fn is_box(
        &self,
        html: &str,
        tree: &PageTree,
        at: u32,
        sums: &ContentSums,
        rules: CleaningRules,
    ) -> bool {
        let node = tree.at(at);
        if sums.data || self.in_data[at as usize] {
            return false;
        }
        let weight = weight(node.marks, rules.weigh);
        if weight < 0.0 {
            return !sums.code;
        }
        // As in `_cleanConditionally`: so many commas are prose.
        if sums.commas >= 10 || sums.film {
            return false;
        }
        let chars = sums.chars.trimmed();
        if chars <= NOTICE_CHARS && is_notice(&text(html, tree, at, &self.removed)) {
            return true;
        }
        let share = |part: u32| part as f32 / chars.max(1) as f32;
        let is_list = node.element.is_list() || share(sums.in_lists) > 0.9;
        if !self.is_poor(at, sums, weight, is_list) {
            return false;
        }
        // A list of pictures, one per item, may stay.
        !is_list || sums.branching || sums.pictures != sums.items
    }

    /// Returns true if an element has too little text for its other content.
    fn is_poor(&self, at: u32, sums: &ContentSums, weight: f32, is_list: bool) -> bool {
        let chars = sums.chars.trimmed();
        let in_figure = self.in_figure[at as usize];
        let linked = density(sums.linked, chars);
        let headings = sums.in_headings as f32 / chars.max(1) as f32;
        let (paragraphs, pictures) = (sums.paragraphs, sums.pictures);
        // The ratios are those of `_cleanConditionally` of Readability.js.
        (!in_figure && pictures > 1 && 2 * paragraphs < pictures)
            || (!is_list && sums.items > paragraphs + 100)
            || sums.inputs > paragraphs / 3
            || (!is_list
                && !in_figure
                && chars < 25
                && (pictures == 0 || pictures > 2)
                && linked > 0.0
                && headings < 0.9)
            || (!is_list && weight < 25.0 && linked > 0.2)
            || (weight >= 25.0 && linked > 0.5)
            || (sums.embeds == 1 && chars < 75)
            || sums.embeds > 1
            || (pictures == 0 && sums.textish == 0)
    }
}

/// Returns the sums of an element or a text, including itself.
fn with(tree: &PageTree, at: u32, inside: ContentSums) -> ContentSums {
    let node = tree.at(at);
    if node.is_text() {
        return ContentSums {
            chars: node.chars,
            commas: node.commas,
            ..ContentSums::default()
        };
    }
    let element = node.element;
    let chars = inside.chars.trimmed();
    let only = |on: bool| if on { chars } else { 0 };
    let one = |on: bool| u32::from(on);
    let is_row = element == HtmlElement::Tr;
    ContentSums {
        linked: inside.linked + link(node, inside.chars),
        in_lists: inside.in_lists + only(element.is_list()),
        in_headings: inside.in_headings + only(element.is(HEADING)),
        textish: inside.textish + only(element.is(TEXT_LIKE)),
        paragraphs: inside.paragraphs + one(element == HtmlElement::P),
        pictures: inside.pictures + one(element == HtmlElement::Img),
        items: inside.items + one(element == HtmlElement::Li),
        inputs: inside.inputs + one(element == HtmlElement::Input),
        embeds: inside.embeds + one(element.is_embed()),
        rows: inside.rows + one(is_row),
        widest: inside.widest.max(if is_row { inside.columns } else { 0 }),
        columns: match element {
            HtmlElement::Td => inside.columns.saturating_add(node.marks.columns()),
            // Columns of a table inside a cell do not belong to the outer row.
            HtmlElement::Table => 0,
            _ => inside.columns,
        },
        film: inside.film || node.marks.has(FILM),
        code: inside.code || element == HtmlElement::Pre,
        table: inside.table || element == HtmlElement::Table,
        member: inside.member || element.is(MEMBER),
        children: 1,
        branching: inside.children > 1,
        ..inside
    }
}

/// Returns true if a table contains data rather than the layout of the page.
fn is_data(tree: &PageTree, at: u32, inside: &ContentSums) -> bool {
    let node = tree.at(at);
    if node.element != HtmlElement::Table || node.marks.has(LAYOUT) {
        return false;
    }
    if node.marks.has(SUMMARY) || inside.member {
        return true;
    }
    // As in `_markDataTables` of Readability.js.
    let (rows, columns) = (inside.rows, inside.widest);
    let plain = inside.table || rows == 1 || columns == 1;
    !plain && (rows >= 10 || columns > 4 || rows.saturating_mul(columns) > 10)
}

/// Returns true if a text is only a placeholder for an advertisement or for content being loaded.
fn is_notice(text: &str) -> bool {
    let text = text.trim().to_lowercase();
    let word = text.trim_end_matches(['\u{2026}', '.']);
    ADVERTISEMENTS.contains(&text.as_str()) || LOADING.contains(&word)
}
