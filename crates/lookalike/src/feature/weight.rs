//! Weights of the features of a text in a simhash (Manku et al. 2007, section 2; Yu, Hu and Zhang, word weight), in integers.

use crate::feature::FeatureExtractor;
use crate::scheme::{Lambda, Weight};
use crate::terms::{Terms, log2_256};
use crate::text::Segmenter;

/// Maximum number of occurrences that count, so that no product overflows.
const MAX_OCCURRENCES: usize = 1 << 15;

/// Appends each distinct feature of `sorted` with its weight.
///
/// With n the number of a feature's occurrences, in 256ths: `log-tf` is 1 + log2 n, `idf` is [`Terms::idf`], and the others are the products of `tf`
/// and `log-tf` with it. `set` and `tf` are whole numbers.
pub(super) fn weigh(
    weight: Weight,
    terms: Option<&Terms>,
    sorted: &[u64],
    out: &mut Vec<(u64, i32)>,
) {
    let idf = |feature| terms.map_or(1, |terms| terms.idf(feature)) as usize;
    out.extend(sorted.chunk_by(|a, b| a == b).map(|equal| {
        let (feature, often) = (equal[0], equal.len().min(MAX_OCCURRENCES));
        let log_tf = || 256 + log2_256(often as u64) as usize;
        let value = match weight {
            Weight::Set | Weight::TfLengthNoun(_) => 1,
            Weight::Tf => often,
            Weight::LogTf => log_tf(),
            Weight::Idf => idf(feature),
            Weight::TfIdf => often * idf(feature),
            // Both factors are in 256ths. No weight is zero, or the feature would have no vote.
            Weight::LogTfIdf => (log_tf() * idf(feature) / 256).max(1),
        };
        (feature, value as i32)
    }));
}

/// A word of a text with the properties that Yu, Hu and Zhang score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ScoredWord {
    hash: u64,
    /// True if it has four characters or more.
    long: bool,
    noun: bool,
}

/// Computes the word weights of Yu, Hu and Zhang: `W = Score / max Score` in 1024ths, `Score = n + lambda * (Len + Pos)`. Len is 1 for words of 4
/// characters or more. Pos is 1 for words that are nouns at least as often as not, if the scheme distinguishes nouns. The paper leaves open how
/// lambda depends on the document's length: see [`Lambda`].
fn length_noun_weights(lambda: Lambda, words: &mut [ScoredWord], out: &mut Vec<(u64, i32)>) {
    // Bring equal words together, whatever their tags.
    words.sort_unstable();
    // Words count as often as they occur, without stop words.
    let lambda = lambda.of(words.len());
    let scores = |words: &[ScoredWord]| {
        let nouns = words.iter().filter(|word| word.noun).count();
        // A word may be tagged differently at each occurrence: the majority decides.
        let pos = 2 * nouns >= words.len();
        words.len() as u64 + lambda * (u64::from(words[0].long) + u64::from(pos))
    };
    let equal = || words.chunk_by(|a, b| a.hash == b.hash);
    let most = equal().map(scores).max().unwrap_or(1);
    out.extend(equal().map(|equal| {
        // Round to the nearest in integers, so that every machine has the same weights.
        let weight = (scores(equal) * 1024 + most / 2) / most;
        (equal[0].hash, weight as i32)
    }));
}

/// The words of a text, one after another.
#[derive(Default)]
struct WordStream {
    text: String,
    ends: Vec<usize>,
}

impl WordStream {
    fn push(&mut self, word: &str) {
        self.text.push_str(word);
        self.ends.push(self.text.len());
    }

    fn list(&self) -> Vec<&str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let bounds = starts.zip(&self.ends);
        bounds.map(|(start, &end)| &self.text[start..end]).collect()
    }
}

impl FeatureExtractor {
    /// Computes the weights of the words of `text` by Yu, Hu and Zhang.
    pub(super) fn weigh_by_length_and_noun(&mut self, text: &str, lambda: Lambda) {
        let segmenter = &mut self.segmenter;
        // The words themselves are tagged, not their stems.
        let (words, nouns) = match self.nouns.are_tagged() {
            #[cfg(feature = "languages")]
            true => tagged_words(segmenter, text),
            _ => untagged_words(segmenter, text),
        };
        segmenter.begin(text);
        let weighed = words
            .list()
            .into_iter()
            .zip(nouns)
            .filter_map(|(word, noun)| {
                let word = segmenter.filtered(word)?;
                Some(ScoredWord {
                    hash: self.hash.of(word.as_bytes(), self.seed),
                    // Characters, not bytes: a Chinese word of two characters has six bytes.
                    long: word.chars().nth(3).is_some(),
                    noun,
                })
            });
        length_noun_weights(lambda, &mut weighed.collect::<Vec<_>>(), &mut self.weights);
    }
}

/// Returns the words of a text, none of them a noun.
fn untagged_words(segmenter: &mut Segmenter, text: &str) -> (WordStream, Vec<bool>) {
    let mut words = WordStream::default();
    segmenter.plain_batches(text, |batch| {
        batch.words().for_each(|word| words.push(word));
    });
    let nouns = vec![false; words.ends.len()];
    (words, nouns)
}

/// Returns the words of a text and, for each, true if it is a noun.
#[cfg(feature = "languages")]
fn tagged_words(segmenter: &mut Segmenter, text: &str) -> (WordStream, Vec<bool>) {
    let (mut words, mut places) = (WordStream::default(), Vec::new());
    segmenter.words_by_run(text, |word, place| {
        words.push(word);
        places.push(place);
    });
    let nouns = crate::language::nouns::nouns(&words.list(), &places);
    (words, nouns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn y1_by_hand() {
        // "data" three times, "of" five times, "the" once: 9 words, so lambda is 1. Scores:
        // data 3 + 1 = 4, of 5 + 0 = 5, the 1 + 0 = 1; the largest is 5.
        let word = |hash, long, noun| ScoredWord { hash, long, noun };
        let mut words = vec![word(1, true, false); 3];
        words.extend([word(2, false, false); 5]);
        words.push(word(3, false, false));
        let mut out = Vec::new();
        length_noun_weights(Lambda::BY_LENGTH, &mut words, &mut out);
        assert_eq!(out, [(1, 819), (2, 1024), (3, 205)]); // 4/5, 1 and 1/5 of 1024
    }

    #[test]
    fn y1_by_hand_with_nouns() {
        // As above, but "data" is a noun in two of three places, "of" never, "the" by mistake: scores are 3 + 1 + 1 = 5, 5 and 1 + 1 = 2.
        let word = |hash, long, noun| ScoredWord { hash, long, noun };
        let mut words = vec![word(1, true, true); 2];
        words.push(word(1, true, false));
        words.extend([word(2, false, false); 5]);
        words.push(word(3, false, true));
        let mut out = Vec::new();
        length_noun_weights(Lambda::BY_LENGTH, &mut words, &mut out);
        assert_eq!(out, [(1, 1024), (2, 1024), (3, 410)]); // 1, 1 and 2/5 of 1024
    }
}
