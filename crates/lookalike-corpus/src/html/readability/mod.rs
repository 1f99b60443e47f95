//! The main content of a page, by the rules of the reading views of browsers.
//!
//! The rules are those of Mozilla's Readability.js (Apache License 2.0), on flat trees ([`super::tree`]): page chrome is removed and paragraphs are
//! formed ([`paragraphs`]); every paragraph gives points to the elements around it, and the best element and its neighbours are the article
//! ([`score`]); boxes in it are removed ([`clean`]). If little is left, this is repeated with fewer rules. Every step is a loop over the nodes with
//! running sums, so the total time is linear in the page. Left out of the original: steps that do not affect the text (lazily loaded pictures, URLs,
//! metadata), and author names from metadata and JSON-LD.

mod clean;
mod measure;
mod paragraphs;
mod score;
#[cfg(test)]
mod tests;

use super::blocks::words;
use super::element::HtmlElement;
use super::marks::{self, AttributeMarks};
use super::page::emit_layout_gap;
use super::target::{PageEvent, PageTarget, StartTag};
use super::tree::{self, PageNode, PageTree};
use clean::{ArticleCleaner, CleaningRules};
use paragraphs::{InnerContent, StripRules};
use score::{ArticleParts, ArticleScores};

/// Number of characters that an article needs to be accepted.
const MIN_ARTICLE_CHARS: u32 = 500;

/// Maximum number of nodes for which buffers are kept from page to page.
const MAX_RETAINED_NODES: usize = 1 << 16;

/// The rules of one attempt to find the article.
#[derive(Debug, Clone, Copy)]
struct AttemptRules {
    /// True if elements that look like page chrome are removed before scoring.
    without_unlikely: bool,
    /// Rules for cleaning the article.
    cleaning: CleaningRules,
}

impl AttemptRules {
    const fn new(without_unlikely: bool, weigh: bool, conditionally: bool) -> Self {
        let cleaning = CleaningRules {
            weigh,
            conditionally,
        };
        Self {
            without_unlikely,
            cleaning,
        }
    }
}

/// The attempts, each with one rule fewer than the one before.
const ATTEMPTS: [AttemptRules; 4] = [
    AttemptRules::new(true, true, true),
    AttemptRules::new(false, true, true),
    AttemptRules::new(false, false, true),
    AttemptRules::new(false, false, false),
];

/// Finds articles, reusing its buffers.
#[derive(Debug, Clone, Default)]
pub(super) struct ArticleFinder {
    page: PageTree,
    lines: PageTree,
    insides: Vec<InnerContent>,
    scores: ArticleScores,
    cleaner: ArticleCleaner,
    /// The tree of the current attempt, and the best article so far.
    tree: PageTree,
    best: BestArticle,
}

/// The best article so far.
#[derive(Debug, Clone, Default)]
struct BestArticle {
    chars: u32,
    article: ArticleParts,
    tree: PageTree,
    removed: Vec<bool>,
    /// For each part, whether it is in a footer, a menu or an aside.
    chrome: Vec<bool>,
}

impl ArticleFinder {
    /// Looks for the article of a page, through which `walk` walks. Returns false if there is none, as on an adversarial page. O(length of the page).
    pub(super) fn read(&mut self, html: &str, walk: impl FnOnce(&mut dyn PageTarget)) -> bool {
        let facts = tree::build(html, walk, &mut self.page);
        if facts.adversarial {
            return false;
        }
        paragraphs::inner_sums(&self.page, &mut self.insides);
        if facts.breaks {
            paragraphs::break_lines(&self.page, &self.insides, &mut self.lines);
            // The old tree becomes the buffer for the next page.
            std::mem::swap(&mut self.page, &mut self.lines);
            paragraphs::inner_sums(&self.page, &mut self.insides);
        }
        self.best.article.parts.clear();
        self.best.chars = 0;
        for attempt in ATTEMPTS {
            if self.attempt(html, &facts.title, attempt) {
                break;
            }
        }
        !self.best.article.parts.is_empty()
    }

    /// Keeps the article by these rules if it is the best so far. Returns true if it is long enough.
    fn attempt(&mut self, html: &str, title: &str, rules: AttemptRules) -> bool {
        let strip = StripRules {
            html,
            unlikely: rules.without_unlikely,
            title,
        };
        // Each attempt begins with the original page: an earlier one may have removed the article.
        strip.copy(&self.page, &self.insides, &mut self.tree);
        let weigh = rules.cleaning.weigh;
        let article = self.scores.article(html, &self.tree, weigh);
        // Before `unframe`, which turns a footer into a `div`.
        let chrome = parts_in_chrome(&self.tree, &article);
        unframe(&mut self.tree, &article);
        let chars = self
            .cleaner
            .clean(html, &self.tree, &article, rules.cleaning);
        // As in Readability.js: if no attempt finds enough, the one that found most counts.
        if chars > self.best.chars {
            self.best.chars = chars;
            self.best.article = article;
            self.best.chrome = chrome;
            std::mem::swap(&mut self.best.tree, &mut self.tree);
            self.best.removed.clear();
            self.best.removed.extend_from_slice(self.cleaner.removed());
        }
        chars >= MIN_ARTICLE_CHARS
    }

    /// Returns true if the article is far from the headline, which ends at `headline`: before it, or with more words between them than the article
    /// has. O(nodes and text of the page).
    pub(super) fn is_far_from(&self, html: &str, headline: usize) -> bool {
        let headline = headline as u32;
        let (mut kept, mut first, mut last) = (0, None, 0);
        let parts = self.best.article.parts.iter();
        for node in parts.flat_map(|part| self.texts_of(*part)) {
            let count = words(node.written(html).as_bytes());
            if count > 0 {
                first.get_or_insert(node.from);
                last = node.to;
                kept += count;
            }
        }
        let Some(first) = first else { return false };
        if last <= headline {
            return true;
        }
        // Readers do not see hidden words between headline and article.
        let is_hidden = |at: u32| self.page.at(at).marks.has(marks::HIDDEN);
        let seen = self.page.within(0, is_hidden).map(|at| self.page.at(at));
        let between = seen
            .filter(|node| node.is_text() && node.from >= headline && node.to <= first)
            .map(|node| words(node.written(html).as_bytes()))
            .sum::<u32>();
        between > kept
    }

    /// Returns true if most of the article is in a footer, a menu or an aside.
    pub(super) fn is_chrome(&self, html: &str) -> bool {
        if !self.best.chrome.contains(&true) {
            return false;
        }
        let (mut chrome, mut all) = (0, 0);
        for (&part, &is_chrome) in self.best.article.parts.iter().zip(&self.best.chrome) {
            for node in self.texts_of(part) {
                let count = words(node.written(html).as_bytes());
                all += count;
                chrome += count * u32::from(is_chrome);
            }
        }
        2 * chrome > all
    }

    /// Iterates over the positions of the nodes of a part of the article.
    fn nodes_of(&self, part: u32) -> impl Iterator<Item = u32> {
        let removed = &self.best.removed;
        self.best.tree.within(part, |at| removed[at as usize])
    }

    /// Iterates over the texts of a part of the article.
    fn texts_of(&self, part: u32) -> impl Iterator<Item = &PageNode> {
        let nodes = self.nodes_of(part).map(|at| self.best.tree.at(at));
        nodes.filter(|node| node.is_text())
    }

    /// Frees the buffers if the last page was large.
    pub(super) fn recycle(&mut self) {
        if self.page.nodes.capacity() > MAX_RETAINED_NODES {
            *self = ArticleFinder::default();
        }
    }

    /// Calls `target` with the texts and elements of the article.
    pub(super) fn emit(&self, html: &str, target: &mut dyn PageTarget) {
        for &part in &self.best.article.parts {
            self.emit_part(html, part, target);
        }
    }

    fn emit_part(&self, html: &str, part: u32, target: &mut dyn PageTarget) {
        let tree = &self.best.tree;
        // A stack of ends instead of recursion. It is as deep as the page nests, at most 256.
        let end = tree.at(part).end;
        let mut open: Vec<(u32, HtmlElement)> = Vec::new();
        for at in self.nodes_of(part).chain([end]) {
            while let Some((_, element)) = open.pop_if(|(end, _)| *end <= at) {
                emit_layout_gap(target, element.kind(), false);
                target.receive(PageEvent::Close(element.name()));
            }
            if at == end {
                return;
            }
            let node = tree.at(at);
            let written = node.written(html);
            match node.element {
                HtmlElement::Text if node.verbatim => target.receive(PageEvent::Verbatim(written)),
                HtmlElement::Text => target.receive(PageEvent::Text(written)),
                element => {
                    target.receive(PageEvent::Open(StartTag {
                        name: element.name(),
                        attributes: written,
                        self_closing: false,
                    }));
                    emit_layout_gap(target, element.kind(), true);
                    // Elements without content are only opened: closing a `br` would make a second line break.
                    if node.end > at + 1 {
                        open.push((node.end, element));
                    }
                }
            }
        }
    }
}

/// Returns for each part of an article whether it is in an element that contains none.
fn parts_in_chrome(tree: &PageTree, article: &ArticleParts) -> Vec<bool> {
    let holds_none = |at: u32| {
        let element = tree.at(at).element;
        matches!(
            element,
            HtmlElement::Footer | HtmlElement::Nav | HtmlElement::Aside
        )
    };
    let within = |&part: &u32| holds_none(part) || tree.ancestors(part).any(holds_none);
    article.parts.iter().map(within).collect()
}

/// Turns the parts of an article into blocks: on the page they may have been cells, forms and the like.
fn unframe(tree: &mut PageTree, article: &ArticleParts) {
    for &part in &article.parts {
        let node = &mut tree.nodes[part as usize];
        match node.element {
            HtmlElement::Article
            | HtmlElement::Section
            | HtmlElement::P
            | HtmlElement::Ol
            | HtmlElement::Ul => {}
            HtmlElement::Body => {
                *node = PageNode {
                    element: HtmlElement::Div,
                    marks: AttributeMarks::default(),
                    ..*node
                }
            }
            _ => node.element = HtmlElement::Div,
        }
    }
}
