//! Selection of the element that has the article: a score of every element around paragraphs, by their length and commas.

use super::measure;
use crate::html::attribute;
use crate::html::element::HtmlElement;
use crate::html::element::group::SCORED;
use crate::html::marks::AttributeMarks;
use crate::html::tree::{CharCount, PageNode, PageTree};

/// Shorter texts say nothing.
const SHORT: u32 = 25;

/// Number of ancestors that a paragraph gives points to.
const LEVELS: usize = 5;

/// Of so many elements the best is taken...
const CANDIDATES: usize = 5;

/// ...or what is around so many of the others with so much of its score.
const OTHERS: usize = 3;
const NEARLY: f32 = 0.75;

/// Sums over the content of an element.
#[derive(Debug, Clone, Copy, Default)]
struct ScoredText {
    chars: CharCount,
    linked: f32,
    commas: u32,
}

/// Buffers.
#[derive(Debug, Clone, Default)]
pub(super) struct ArticleScores {
    texts: Vec<ScoredText>,
    /// Of every node; not a number where there is none.
    scores: Vec<f32>,
    /// The nodes that have one, in the order in which they got it.
    scored: Vec<u32>,
}

/// The parts of an article, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct ArticleParts {
    /// Their positions in the tree.
    pub(super) parts: Vec<u32>,
}

impl ArticleScores {
    /// Finds the article. `weigh` says whether classes and ids count. O(nodes), for a bounded depth.
    pub(super) fn article(&mut self, html: &str, tree: &PageTree, weigh: bool) -> ArticleParts {
        self.read(tree);
        self.score(tree, weigh);
        let candidates = self.candidates();
        // Nothing scored, or only `body`: all of the page is the article.
        let Some(best) = candidates.first().copied().filter(|best| *best != 0) else {
            return ArticleParts { parts: vec![0] };
        };
        let best = self.common(tree, best, &candidates, weigh);
        let best = only_children(tree, best);
        if self.scores[best as usize].is_nan() {
            self.scores[best as usize] = base(tree.at(best), weigh);
        }
        self.with_siblings(html, tree, best)
    }

    /// Sums up what is inside of each element.
    fn read(&mut self, tree: &PageTree) {
        let len = tree.nodes.len();
        self.texts.clear();
        self.texts.resize(len, ScoredText::default());
        self.scores.clear();
        self.scores.resize(len, f32::NAN);
        self.scored.clear();
        // From the end: a node's own sums are complete before it is added to its parent.
        for (at, node) in tree.nodes.iter().enumerate().skip(1).rev() {
            let mut text = self.texts[at];
            if node.is_text() {
                text.chars = node.chars;
                text.commas = node.commas;
                self.texts[at] = text;
            }
            let above = &mut self.texts[node.parent as usize];
            above.chars = text.chars.then(above.chars);
            above.linked += text.linked + measure::link(node, text.chars);
            above.commas += text.commas;
        }
    }

    fn length(&self, at: u32) -> u32 {
        self.texts[at as usize].chars.trimmed()
    }

    fn density(&self, at: u32) -> f32 {
        measure::density(self.texts[at as usize].linked, self.length(at))
    }

    /// The score of a node; 0 where there is none.
    fn of(&self, at: u32) -> f32 {
        let score = self.scores[at as usize];
        if score.is_nan() { 0.0 } else { score }
    }

    /// Every text of some length gives points to what is around it.
    fn score(&mut self, tree: &PageTree, weigh: bool) {
        for at in 1..tree.len() {
            let length = self.length(at);
            if !tree.at(at).element.is(SCORED) || length < SHORT {
                continue;
            }
            // As in Readability.js: one, one for each part between commas, and one for each hundred characters,
            // three at most.
            let points = 2 + self.texts[at as usize].commas + (length / 100).min(3);
            for (level, above) in tree.ancestors(at).take(LEVELS).enumerate() {
                let share = match level {
                    // The parent gets all points, its parent half, those above a sixth, a ninth, a twelfth.
                    0 | 1 => level + 1,
                    _ => 3 * level,
                };
                let score = &mut self.scores[above as usize];
                if score.is_nan() {
                    *score = base(tree.at(above), weigh);
                    // In the order of the page, so that the stable sort below settles ties as Readability.js
                    // does.
                    self.scored.push(above);
                }
                *score += points as f32 / share as f32;
            }
        }
    }

    /// The best elements, the best one first; where scores are no points, they are forgotten.
    fn candidates(&mut self) -> Vec<u32> {
        // At most five per paragraph, so sorting them is within O(nodes · log nodes).
        let mut candidates = std::mem::take(&mut self.scored);
        for &at in &candidates {
            let score = self.of(at);
            self.scores[at as usize] = match score {
                ..=0.0 => f32::NAN,
                ..=5.0 => score,
                // Links take points in proportion: lists of links are long, too.
                _ => score * (1.0 - self.density(at)),
            };
        }
        candidates.retain(|at| !self.scores[*at as usize].is_nan());
        candidates.sort_by(|a, b| self.of(*b).total_cmp(&self.of(*a)));
        candidates.truncate(CANDIDATES);
        candidates
    }

    /// Finds an ancestor of enough of the candidates that are nearly as good; else an ancestor with a better score.
    fn common(&mut self, tree: &PageTree, best: u32, candidates: &[u32], weigh: bool) -> u32 {
        let near = candidates[1..]
            .iter()
            .filter(|at| self.of(**at) / self.of(best) >= NEARLY);
        let near: Vec<u32> = near.copied().collect();
        // An article whose paragraphs stand in several boxes of equal rank: what is around all of them is the
        // article.
        if near.len() > OTHERS {
            let around = |above: &u32| {
                let end = tree.at(*above).end;
                let inside = near.iter().filter(|at| (above + 1..end).contains(*at));
                inside.count() >= OTHERS
            };
            if let Some(common) = tree.ancestors(best).take_while(|at| *at != 0).find(around) {
                return self.better(tree, common, weigh);
            }
        }
        self.better(tree, best, weigh)
    }

    /// Moves outwards while the score rises: there is more of the article.
    fn better(&mut self, tree: &PageTree, best: u32, weigh: bool) -> u32 {
        if self.scores[best as usize].is_nan() {
            self.scores[best as usize] = base(tree.at(best), weigh);
        }
        let mut last = self.of(best);
        // `_grabArticle`: an ancestor with less than a third has other content.
        let least = last / 3.0;
        for above in tree.ancestors(best).take_while(|at| *at != 0) {
            let score = self.scores[above as usize];
            if score.is_nan() {
                continue;
            }
            if score < least {
                break;
            }
            if score > last {
                return above;
            }
            last = score;
        }
        best
    }

    /// The best element and those beside it that belong to it.
    fn with_siblings(&self, html: &str, tree: &PageTree, best: u32) -> ArticleParts {
        let class = class(html, tree.at(best));
        // `siblingScoreThreshold` of Readability.js.
        let least = (self.of(best) * 0.2).max(10.0);
        let belongs = |at: &u32| {
            let node = tree.at(*at);
            // Loose texts beside the article are labels.
            if *at == best || node.is_text() {
                return *at == best;
            }
            let score = self.of(*at);
            if score > 0.0 {
                let same = class.is_some() && class == self::class(html, node);
                let bonus = if same { self.of(best) * 0.2 } else { 0.0 };
                return score + bonus >= least;
            }
            node.element == HtmlElement::P && self.is_prose(html, tree, *at)
        };
        let parent = tree.at(best).parent;
        ArticleParts {
            parts: tree.children(parent).filter(belongs).collect(),
        }
    }

    /// Returns true if a paragraph is long, or a sentence, and no list of links.
    fn is_prose(&self, html: &str, tree: &PageTree, at: u32) -> bool {
        let (length, density) = (self.length(at), self.density(at));
        let is_sentence = || {
            let text = measure::text(html, tree, at, &[]);
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            text.ends_with('.') || text.contains(". ")
        };
        match length {
            // Readability.js asks for more than 80 characters, or fewer: 80 are neither.
            0 | 80 => false,
            ..80 => density == 0.0 && is_sentence(),
            _ => density < 0.25,
        }
    }
}

/// The outermost element that is all there is in what is around it.
fn only_children(tree: &PageTree, best: u32) -> u32 {
    // Outwards, so that siblings of the box around the article are found, too.
    let alone = |at: &u32| *at != 0 && tree.at(*at).children == 1;
    tree.ancestors(best)
        .take_while(alone)
        .last()
        .unwrap_or(best)
}

/// The class of an element, if it has one.
fn class<'h>(html: &'h str, node: &PageNode) -> Option<std::borrow::Cow<'h, str>> {
    attribute::value(node.written(html), "class").filter(|class| !class.is_empty())
}

/// The score of an element before its content is read.
fn base(node: &PageNode, weigh: bool) -> f32 {
    let score = match node.element {
        HtmlElement::Div => 5.0,
        HtmlElement::Pre | HtmlElement::Td | HtmlElement::Blockquote => 3.0,
        HtmlElement::Address
        | HtmlElement::Ol
        | HtmlElement::Ul
        | HtmlElement::Dl
        | HtmlElement::Dd
        | HtmlElement::Dt
        | HtmlElement::Li
        | HtmlElement::Form => -3.0,
        HtmlElement::H1
        | HtmlElement::H2
        | HtmlElement::H3
        | HtmlElement::H4
        | HtmlElement::H5
        | HtmlElement::H6
        | HtmlElement::Th => -5.0,
        _ => 0.0,
    };
    score + weight(node.marks, weigh)
}

/// The weight of class and id, if they count.
pub(super) fn weight(marks: AttributeMarks, weigh: bool) -> f32 {
    if weigh { f32::from(marks.weight) } else { 0.0 }
}
