//! Selection of the element with the article: scores every element around paragraphs, by their length and commas.

use super::measure;
use super::paragraphs::{InnerContent, inner_sums};
use crate::html::attribute;
use crate::html::element::HtmlElement;
use crate::html::element::group::SCORED;
use crate::html::marks::AttributeMarks;
use crate::html::tree::{PageNode, PageTree};

/// Length below which a text gives no points.
const SHORT: u32 = 25;

/// Number of ancestors to which a paragraph gives points.
const LEVELS: usize = 5;

/// Number of candidates, of which the best is taken...
const CANDIDATES: usize = 5;

/// ...or an element around this many of the others, each with at least this share of its score.
const OTHERS: usize = 3;
const NEARLY: f32 = 0.75;

/// Computes the scores, reusing its buffers.
#[derive(Debug, Clone, Default)]
pub(super) struct ArticleScores {
    insides: Vec<InnerContent>,
    /// Score of each node; NaN if it has none.
    scores: Vec<f32>,
    /// The nodes with a score, in the order in which they got it.
    scored: Vec<u32>,
}

/// The parts of an article, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct ArticleParts {
    /// Positions of the parts in the tree.
    pub(super) parts: Vec<u32>,
}

impl ArticleScores {
    /// Finds the article. With `weigh`, classes and ids count. O(nodes), for a bounded depth.
    pub(super) fn article(&mut self, html: &str, tree: &PageTree, weigh: bool) -> ArticleParts {
        inner_sums(tree, &mut self.insides);
        self.scores.clear();
        self.scores.resize(tree.nodes.len(), f32::NAN);
        self.scored.clear();
        self.score(tree, weigh);
        let candidates = self.candidates();
        // Nothing was scored, or only `body`: the whole page is the article.
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

    fn length(&self, at: u32) -> u32 {
        self.insides[at as usize].chars.trimmed()
    }

    fn density(&self, at: u32) -> f32 {
        measure::density(self.insides[at as usize].linked, self.length(at))
    }

    /// Returns the score of a node, or 0 if it has none.
    fn of(&self, at: u32) -> f32 {
        let score = self.scores[at as usize];
        if score.is_nan() { 0.0 } else { score }
    }

    /// Lets every text of some length give points to the elements around it.
    fn score(&mut self, tree: &PageTree, weigh: bool) {
        for at in 1..tree.len() {
            let length = self.length(at);
            if !tree.at(at).element.is(SCORED) || length < SHORT {
                continue;
            }
            // As in Readability.js: one point, one for each part between commas, and one for each hundred characters, three at most.
            let points = 2 + self.insides[at as usize].commas + (length / 100).min(3);
            for (level, above) in tree.ancestors(at).take(LEVELS).enumerate() {
                let share = match level {
                    // The parent gets all points, its parent half of them, and those above a sixth, a ninth and a twelfth.
                    0 | 1 => level + 1,
                    _ => 3 * level,
                };
                let score = &mut self.scores[above as usize];
                if score.is_nan() {
                    *score = base(tree.at(above), weigh);
                    // In page order, so that the stable sort below resolves ties like Readability.js.
                    self.scored.push(above);
                }
                *score += points as f32 / share as f32;
            }
        }
    }

    /// Returns the best elements, the best one first. Elements without a positive score are dropped.
    fn candidates(&mut self) -> Vec<u32> {
        // At most five per paragraph, so sorting them is within O(nodes · log nodes).
        let mut candidates = std::mem::take(&mut self.scored);
        for &at in &candidates {
            let score = self.of(at);
            self.scores[at as usize] = match score {
                ..=0.0 => f32::NAN,
                ..=5.0 => score,
                // Links reduce the score in proportion, because lists of links are long, too.
                _ => score * (1.0 - self.density(at)),
            };
        }
        candidates.retain(|at| !self.scores[*at as usize].is_nan());
        candidates.sort_by(|a, b| self.of(*b).total_cmp(&self.of(*a)));
        candidates.truncate(CANDIDATES);
        candidates
    }

    /// Finds an ancestor of enough candidates that are nearly as good, or else an ancestor with a better score.
    fn common(&mut self, tree: &PageTree, best: u32, candidates: &[u32], weigh: bool) -> u32 {
        let near = candidates[1..]
            .iter()
            .filter(|at| self.of(**at) / self.of(best) >= NEARLY);
        let near: Vec<u32> = near.copied().collect();
        // The paragraphs of the article may be in several boxes of equal rank; then the element around all of them is the article.
        if near.len() > OTHERS {
            let around = |above: &u32| {
                let end = tree.at(*above).end;
                let inside = near.iter().filter(|at| (above + 1..end).contains(*at));
                inside.count() >= OTHERS
            };
            if let Some(common) = tree.ancestors(best).take_while(|at| *at != 0).find(around) {
                return self.climb_while_better(tree, common, weigh);
            }
        }
        self.climb_while_better(tree, best, weigh)
    }

    /// Moves outwards while the score rises, because then there is more of the article.
    fn climb_while_better(&mut self, tree: &PageTree, best: u32, weigh: bool) -> u32 {
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

    /// Returns the best element and its siblings that belong to the article.
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

    /// Returns true if a paragraph is long, or a sentence, and not a list of links.
    fn is_prose(&self, html: &str, tree: &PageTree, at: u32) -> bool {
        let (length, density) = (self.length(at), self.density(at));
        let is_sentence = || {
            let text = measure::text(html, tree, at, &[]);
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            text.ends_with('.') || text.contains(". ")
        };
        match length {
            // Readability.js tests for more or fewer than 80 characters; exactly 80 are neither.
            0 | 80 => false,
            ..80 => density == 0.0 && is_sentence(),
            _ => density < 0.25,
        }
    }
}

/// Returns the outermost element of a chain of only children.
fn only_children(tree: &PageTree, best: u32) -> u32 {
    // Move outwards, so that siblings of the box around the article are found, too.
    let alone = |at: &u32| *at != 0 && tree.at(*at).children == 1;
    tree.ancestors(best)
        .take_while(alone)
        .last()
        .unwrap_or(best)
}

/// Returns the class of an element, if it has one.
fn class<'h>(html: &'h str, node: &PageNode) -> Option<std::borrow::Cow<'h, str>> {
    attribute::value(node.written(html), "class").filter(|class| !class.is_empty())
}

/// Returns the score of an element before its content counts.
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

/// Returns the weight of class and id, or 0 if they do not count.
pub(super) fn weight(marks: AttributeMarks, weigh: bool) -> f32 {
    if weigh { f32::from(marks.weight) } else { 0.0 }
}
