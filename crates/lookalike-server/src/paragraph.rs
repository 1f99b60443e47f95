//! Texts to paragraphs: lines up to a blank one, each known by a hash of its words.
//!
//! Extraction sets blocks of a page off by blank lines, so that a paragraph is one, a heading too. The words are those that
//! the collection's scheme sees (its segmentation, case and marks), so that a paragraph which was only wrapped or
//! capitalised differently is the same. Its hash is XXH3-64 of the 64-bit hashes of its words in order, little-endian; two
//! paragraphs that differ have one with probability 2^-64.

use lookalike::hash::xxh3_64;
use lookalike::{FeatureExtractor, Scheme, Sketch};

use crate::problem::ProblemDetails;

/// Most paragraphs of a page.
const MOST: usize = 10_000;

/// A paragraph with words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HashedParagraph {
    pub(crate) hash: u64,
    pub(crate) words: usize,
}

/// Makes the paragraphs of texts under one scheme.
pub(crate) struct ParagraphHasher {
    words: FeatureExtractor,
    bytes: Vec<u8>,
}

impl ParagraphHasher {
    pub(crate) fn new(scheme: &Scheme) -> Self {
        let words = Scheme {
            shingle: "words:1".parse().expect("a kind of shingle"),
            sketch: Sketch::Simhash,
            ..*scheme
        };
        Self {
            words: FeatureExtractor::new(&words),
            bytes: Vec::new(),
        }
    }

    /// The paragraphs of a text in order. Linear in the text.
    pub(crate) fn of(&mut self, text: &str) -> Result<Vec<HashedParagraph>, ProblemDetails> {
        let mut found = Vec::new();
        for paragraph in split(text) {
            let words = self.words.extract(paragraph).in_order;
            if words.is_empty() {
                continue;
            }
            if found.len() == MOST {
                return Err(ProblemDetails::invalid(
                    format!("the page has more than {MOST} paragraphs"),
                    "send it in parts, or use a collection that keeps no paragraphs",
                ));
            }
            self.bytes.clear();
            self.bytes
                .extend(words.iter().flat_map(|word| word.to_le_bytes()));
            found.push(HashedParagraph {
                hash: xxh3_64(&self.bytes, 0),
                words: words.len(),
            });
        }
        Ok(found)
    }
}

/// Parts of a text between blank lines; some may be blank themselves.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut end = 0;
        for line in text.split_inclusive('\n') {
            if end > 0 && line.trim().is_empty() {
                rest = Some(&text[end + line.len()..]);
                return Some(&text[..end]);
            }
            end += line.len();
        }
        rest = None;
        Some(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_is_known_by_its_words_however_they_are_wrapped() {
        let mut paragraphs = ParagraphHasher::new(&Scheme::default());
        let mut of = |text: &str| paragraphs.of(text).expect("few");
        let all = of("One two,\nthree.\n\n \t\n\nFour\n\n--\n\none  TWO three");
        assert_eq!(all.len(), 3);
        assert_eq!((all[0], all[1].words), (all[2], 1));
        assert_eq!(all[0].words, 3);
        assert_ne!(of("three two one")[0].hash, all[0].hash);
        assert_ne!(of("one two")[0].hash, all[0].hash);
        assert_eq!(of(""), []);
        assert_eq!(of(" \n\n \n"), []);
        assert_eq!(of("\n\nfour").len(), 1);
    }

    #[test]
    fn more_paragraphs_than_a_page_may_have_are_refused() {
        let mut paragraphs = ParagraphHasher::new(&Scheme::default());
        assert_eq!(
            paragraphs.of(&"a\n\n".repeat(MOST)).expect("as many").len(),
            MOST
        );
        assert!(paragraphs.of(&"a\n\n".repeat(MOST + 1)).is_err());
    }
}
