//! The main content of a page by several extractors: takes the answer that the others agree with.
//!
//! The extractors fail on different pages, and if one fails, the others seldom fail in the same way. So no rule decides which of them to trust on
//! which kind of page: the answer that resembles the others most, called their medoid, is taken. The extractors are a library, a port of Trafilatura
//! with its fallbacks, used once to exclude doubtful content and once to include it; the reading view; and the rules of the fast mode.

use lookalike::resemblance::resemblance;
use lookalike::{Extraction, FeatureExtractor, Scheme, Shingle};
pub(super) use trafilatura::ExtractionFocus as Focus;
use trafilatura::Options;

use super::shape;
use crate::guard::catch_panic;

/// Longer pages, and those with more markup, are not given to the library, which takes up to 20 microseconds for a tag or a comment. The largest of
/// the 2,465 pages in the test sets has 6,000 tags and comments.
const MAX_BYTES: usize = 2 << 20;
const MAX_MARKUP: usize = 50_000;

/// Answers are compared by shingles of this many words, the default for documents.
const WORDS: u8 = 5;

/// Returns true if a page is ordinary ([`super::shape`]) and within the limits of the library.
pub(super) fn within_limits(html: &str) -> bool {
    html.len() <= MAX_BYTES
        // Cheap checks first; `shape` walks the page.
        && memchr::memchr_iter(b'<', html.as_bytes()).count() <= MAX_MARKUP
        && !shape::is_adversarial(html)
}

/// Returns the HTML of the main content by the library, or `None` if it finds nothing or fails. The page must be ordinary: see [`super::shape`].
pub(super) fn content(html: &str, extraction: Extraction, focus: Focus) -> Option<String> {
    let options = Options::default()
        .with_fallback(true)
        .with_focus(focus)
        .with_links(extraction.links)
        .with_images(extraction.alt);
    let extract = || Some(trafilatura::extract(html, &options).ok()?.content_html);
    catch_panic(extract).ok().flatten()
}

/// The answers of the extractors for the current page.
#[derive(Debug, Clone)]
pub(super) struct ExtractorAnswers {
    features: FeatureExtractor,
    texts: Vec<String>,
}

impl Default for ExtractorAnswers {
    fn default() -> ExtractorAnswers {
        let scheme = Scheme::default().shingle(Shingle::words(WORDS).expect("a width of shingles"));
        ExtractorAnswers {
            features: FeatureExtractor::new(&scheme),
            texts: Vec::new(),
        }
    }
}

impl ExtractorAnswers {
    /// Adds an answer.
    pub(super) fn add(&mut self, text: String) {
        self.texts.push(text);
    }

    /// Returns the answer that resembles the others most, the first of several such; answers without words do not count. Then clears all answers.
    /// O(length of the answers).
    pub(super) fn take_best(&mut self) -> String {
        let sets: Vec<Vec<u64>> = self
            .texts
            .iter()
            // A copy, because the set is in a buffer of the extractor and valid only until the next text.
            .map(|text| self.features.feature_set(text).to_vec())
            .collect();
        let agreement = |of: usize| -> f64 {
            let others = (0..sets.len()).filter(|other| *other != of);
            others
                .map(|other| resemblance(&sets[of], &sets[other]))
                .sum()
        };
        let mut best: Option<(f64, usize)> = None;
        for at in (0..sets.len()).filter(|at| !sets[*at].is_empty()) {
            let agreement = agreement(at);
            // Strictly greater: among equals the order in which answers were added decides, so the result is the same on every machine.
            if best.is_none_or(|(most, _)| agreement > most) {
                best = Some((agreement, at));
            }
        }
        let chosen = best.map_or_else(String::new, |(_, at)| std::mem::take(&mut self.texts[at]));
        self.texts.clear();
        chosen
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn best(texts: &[String]) -> String {
        let mut answers = ExtractorAnswers::default();
        texts.iter().for_each(|text| answers.add(text.clone()));
        answers.take_best()
    }

    #[test]
    fn the_answer_that_others_agree_with_is_taken() {
        let words = |from: u32, to: u32| {
            let words: Vec<String> = (from..to).map(|n| format!("w{n}")).collect();
            words.join(" ")
        };
        let (story, menu) = (words(0, 100), words(200, 400));
        let whole = format!("{story} {menu}");
        for (answers, expected) in [
            (
                vec![words(0, 20), words(0, 90), story.clone(), whole.clone()],
                &story,
            ),
            (
                vec![menu.clone(), words(0, 90), story.clone()],
                &words(0, 90),
            ),
            (
                vec![String::new(), String::new(), String::new(), menu.clone()],
                &menu,
            ),
            (
                vec!["...".to_owned(), story.clone(), "!".to_owned()],
                &story,
            ),
            (vec![menu.clone(), story.clone()], &menu),
            (vec![String::new(), String::new()], &String::new()),
            (vec![], &String::new()),
        ] {
            assert_eq!(&best(&answers), expected, "{answers:?}");
        }
    }

    #[test]
    fn a_page_does_not_count_for_the_next_one() {
        let mut answers = ExtractorAnswers::default();
        answers.add("one two three".to_owned());
        answers.add("one two three".to_owned());
        assert_eq!(answers.take_best(), "one two three");
        answers.add("four".to_owned());
        assert_eq!(answers.take_best(), "four");
    }

    proptest! {
        /// Checks that two equal answers outvote a third in any position.
        #[test]
        fn two_outvote_one(same in "([a-d] ){9,30}", other in "([e-h] ){1,40}", at in 0usize..3) {
            let mut texts = vec![same.clone(), same.clone()];
            texts.insert(at, other);
            prop_assert_eq!(best(&texts), same);
        }
    }
}
