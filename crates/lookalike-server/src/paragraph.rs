//! Division of texts into paragraphs, each identified by a hash of its words, and by a fingerprint if it is long enough.
//!
//! The words are those of the collection's scheme (its segmentation, case and marks), so paragraphs that differ only in line breaks or
//! capitals are the same. The hash is XXH3-64 of the 64-bit hashes of the words in order, little-endian; two different paragraphs have the
//! same hash with probability 2^-64. The fingerprint is that of a document with the text of the paragraph.

use lookalike::hash::xxh3_64;
use lookalike::{FeatureExtractor, ParagraphRule, Scheme, Simhash, Sketch};
use lookalike_store::StoredParagraph;

use crate::problem::ProblemDetails;

/// Maximum number of paragraphs of a page.
pub(crate) const MAX_PARAGRAPHS: usize = 10_000;

/// Minimum number of distinct features of a paragraph with a fingerprint. If one of `n` features that count once is replaced, 64 acos(1 -
/// 1/n) / pi of 64 bits change on average (Charikar 2002): 10 bits for eight features; 15 for four, which is more than a collection can
/// tell from unrelated texts.
const MIN_FEATURES: usize = 8;

/// A paragraph of a page. One without words is kept, so that positions are those in the text, but equals no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageParagraph {
    pub(crate) key: StoredParagraph,
    pub(crate) words: usize,
}

/// Tells whether a paragraph has words, without which it equals no other.
pub(crate) fn has_words(paragraph: StoredParagraph) -> bool {
    paragraph.hash != xxh3_64(&[], 0)
}

/// Extracts the paragraphs of texts under a scheme.
pub(crate) struct ParagraphHasher {
    words: FeatureExtractor,
    bytes: Vec<u8>,
}

impl ParagraphHasher {
    pub(crate) fn new(scheme: &Scheme) -> Self {
        // A paragraph is identified by its words in order, whatever runs of them the features of the scheme are.
        let words = scheme
            .shingle("words:1".parse().expect("a kind of shingle"))
            .sketch(Sketch::Simhash);
        Self {
            words: FeatureExtractor::new(&words),
            bytes: Vec::new(),
        }
    }

    /// Returns the paragraphs of a text in order. `features` must be the extractor of the same scheme. Takes linear time.
    pub(crate) fn of(
        &mut self,
        text: &str,
        rule: ParagraphRule,
        features: &mut FeatureExtractor,
    ) -> Result<Vec<PageParagraph>, ProblemDetails> {
        let mut found = Vec::new();
        for paragraph in rule.split(text) {
            if found.len() == MAX_PARAGRAPHS {
                return Err(ProblemDetails::invalid(
                    format!("the page has more than {MAX_PARAGRAPHS} paragraphs"),
                    "send it in parts, or use a collection that keeps no paragraphs",
                ));
            }
            let words = self.words.extract(paragraph).in_order;
            // Hashes of words, not their letters, so that words that the scheme treats as equal (case, marks, width) are equal here.
            self.bytes.clear();
            self.bytes
                .extend(words.iter().flat_map(|word| word.to_le_bytes()));
            // After the limit on paragraphs was checked, because extraction is expensive.
            let features = features.extract(paragraph);
            let is_long = features.set.len() >= MIN_FEATURES;
            found.push(PageParagraph {
                key: StoredParagraph {
                    hash: xxh3_64(&self.bytes, 0),
                    fingerprint: is_long.then(|| Simhash::of(&features)).flatten(),
                },
                words: words.len(),
            });
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::default_scheme;

    fn paragraphs(text: &str) -> Result<Vec<PageParagraph>, ProblemDetails> {
        let scheme = default_scheme();
        let mut features = FeatureExtractor::new(&scheme);
        ParagraphHasher::new(&scheme).of(text, ParagraphRule::Auto, &mut features)
    }

    #[test]
    fn a_paragraph_is_known_by_its_words_however_they_are_wrapped() {
        let of = |text: &str| paragraphs(text).expect("few");
        let all = of("One two,\nthree.\n\n \t\n\nFour\n\n--\n\none  TWO three");
        assert_eq!(all.len(), 4);
        assert_eq!((all[0], all[1].words), (all[3], 1));
        assert_eq!(
            (all[2].words, [1, 2].map(|at| has_words(all[at].key))),
            (0, [true, false])
        );
        assert_eq!(all[0].words, 3);
        assert_ne!(of("three two one")[0].key, all[0].key);
        assert_ne!(of("one two")[0].key, all[0].key);
        assert_eq!(of(""), []);
        assert_eq!(of(" \n\n \n"), []);
        assert_eq!(of("\n\nfour").len(), 1);
    }

    #[test]
    fn a_paragraph_has_the_fingerprint_of_a_document_unless_it_is_short() {
        let words: Vec<String> = (0..12).map(|word| format!("w{word}")).collect();
        for count in 1..=words.len() {
            let text = words[..count].join(" ");
            let mut features = FeatureExtractor::new(&default_scheme());
            let of_document = Simhash::of(&features.extract(&text));
            let of_paragraph = paragraphs(&text).expect("one")[0].key.fingerprint;
            // Features are runs of five words.
            let is_long = count + 1 >= 5 + MIN_FEATURES;
            assert_eq!(of_paragraph, of_document.filter(|_| is_long), "{count}");
        }
    }

    #[test]
    fn more_paragraphs_than_a_page_may_have_are_refused() {
        let most = paragraphs(&"a\n\n".repeat(MAX_PARAGRAPHS));
        assert_eq!(most.expect("as many").len(), MAX_PARAGRAPHS);
        assert!(paragraphs(&"a\n\n".repeat(MAX_PARAGRAPHS + 1)).is_err());
    }
}
