//! How much each feature of a text weighs in a simhash (M2, Y1), in integers.

use crate::feature::FeatureExtractor;
use crate::scheme::Weight;
use crate::terms::{Terms, log2_256};

/// Occurrences beyond this many count as this many, so that no product overflows.
const MOST: usize = 1 << 15;

/// Appends each distinct feature of `sorted` with its weight.
///
/// With n the number of a feature's occurrences, in 256ths: `log-tf` 1 + log2 n; `idf`, see
/// [`Terms::idf`]; the products of `tf` and `log-tf` with it. Set and tf are in units.
pub(super) fn weigh(
    weight: Weight,
    terms: Option<&Terms>,
    sorted: &[u64],
    out: &mut Vec<(u64, i32)>,
) {
    let idf = |feature| terms.map_or(1, |terms| terms.idf(feature)) as usize;
    out.extend(sorted.chunk_by(|a, b| a == b).map(|equal| {
        let (feature, often) = (equal[0], equal.len().min(MOST));
        let log_tf = || 256 + log2_256(often as u64) as usize;
        let value = match weight {
            Weight::Set | Weight::Yu => 1,
            Weight::Tf => often,
            Weight::LogTf => log_tf(),
            Weight::Idf => idf(feature),
            Weight::TfIdf => often * idf(feature),
            Weight::LogTfIdf => (log_tf() * idf(feature) / 256).max(1),
        };
        (feature, value as i32)
    }));
}

/// Y1: `W = Score / max Score` in 1024ths, `Score = n + lambda * (Len + Pos)`; Len is 1 for words
/// of 4 characters or more. Pos, which is 1 for nouns, is 0 throughout: no tagger is built in.
/// The source leaves open how lambda depends on the document's length; here it is
/// 1 + floor(log2(1 + words / 64)), so that it keeps pace with the frequencies of longer texts.
pub(super) fn yu(words: &mut [(u64, bool)], out: &mut Vec<(u64, i32)>) {
    words.sort_unstable();
    let lambda = 1 + u64::from((1 + words.len() as u64 / 64).ilog2());
    let scores = |words: &[(u64, bool)]| words.len() as u64 + lambda * u64::from(words[0].1);
    let equal = || words.chunk_by(|a, b| a.0 == b.0);
    let most = equal().map(scores).max().unwrap_or(1);
    out.extend(equal().map(|equal| {
        let weight = (scores(equal) * 1024 + most / 2) / most;
        (equal[0].0, weight as i32)
    }));
}

impl FeatureExtractor {
    /// Y1's weights of the words of `text`.
    pub(super) fn yu_weights(&mut self, text: &str) {
        let Self {
            segmenter,
            hash,
            seed,
            weights,
            ..
        } = self;
        let mut words = Vec::new();
        segmenter.words(text, |word| {
            let long = word.chars().nth(3).is_some();
            words.push((hash.of(word.as_bytes(), *seed), long));
        });
        yu(&mut words, weights);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn y1_by_hand() {
        // "data" three times, "of" five times, "the" once: 9 words, so lambda is 1. Scores:
        // data 3 + 1 = 4, of 5 + 0 = 5, the 1 + 0 = 1; the largest is 5.
        let mut words = [(1, true); 3].to_vec();
        words.extend([(2, false); 5]);
        words.push((3, false));
        let mut out = Vec::new();
        yu(&mut words, &mut out);
        assert_eq!(out, [(1, 819), (2, 1024), (3, 205)]); // 4/5, 1 and 1/5 of 1024
    }
}
