//! Words to features: the second step of the way of the data.
//!
//! The published definition, all arithmetic modulo 2^64:
//!
//! - the hash of a word is `t = XXH3-64(its UTF-8 bytes, seed)`;
//! - `words:1`: the feature is `t`;
//! - `words:w`, w >= 2: a window of m = w words in a row with hashes t_0 .. t_(m-1) has the feature
//!   `avalanche(XOR over j of rotl64(t_j, m - 1 - j) ^ m * 0x9E3779B97F4A7C15)`, with
//!   [`avalanche`](crate::hash::avalanche). A text of m < w words, m >= 1, has one feature, that of
//!   the window of all its m words: a feature of its own kind, for m is in it;
//! - `chars:n`: a window of n code points has the feature `XXH3-64(its UTF-8 bytes, seed)`. A text
//!   of fewer has one feature, that of all of them. A text of white space alone has none.
//!
//! What the words and characters are is said in [`crate::text`]. A text without any has no
//! features: it resembles nothing, not even itself.

mod sort;

use crate::kernel::{shingle, token_hash};
use crate::scheme::{Scheme, Shingle, Weight};
use crate::text::{CharBatch, Segmenter};
pub use sort::sort_dedup;

/// Makes the features of texts under one scheme. One a thread: its buffers are used again.
///
/// ```
/// use lookalike::{FeatureExtractor, Scheme};
/// let mut extractor = FeatureExtractor::new(&Scheme::default());
/// assert_eq!(extractor.features("one two three four five six seven").len(), 3);
/// assert!(extractor.features(" \n").is_empty());
/// ```
#[derive(Debug)]
pub struct FeatureExtractor {
    segmenter: Segmenter,
    shingle: Shingle,
    weight: Weight,
    seed: u64,
    tokens: Vec<u64>,
    chars: CharBatch,
    features: Vec<u64>,
    scratch: Vec<u64>,
}

impl FeatureExtractor {
    /// An extractor for the features of `scheme`.
    #[must_use]
    pub fn new(scheme: &Scheme) -> Self {
        Self {
            segmenter: Segmenter::new(scheme),
            shingle: scheme.shingle,
            weight: scheme.weight,
            seed: scheme.seed,
            tokens: Vec::new(),
            chars: CharBatch::default(),
            features: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// The features of `text` in text order, as often as they occur: a text of n words has
    /// max(n - w + 1, 1) of them, one without words none. Linear time.
    pub fn features(&mut self, text: &str) -> &[u64] {
        self.features.clear();
        match self.shingle {
            Shingle::Words(width) => self.word_features(text, width.get()),
            Shingle::Chars(width) => self.char_features(text, width.get()),
        }
        &self.features
    }

    /// The distinct features of `text`, ascending: the set whose resemblance is computed.
    /// Expected linear time.
    pub fn feature_set(&mut self, text: &str) -> &[u64] {
        self.features(text);
        sort_dedup(&mut self.features, &mut self.scratch);
        &self.features
    }

    /// The features a simhash of this scheme is made of: the set, or each as often as it occurs,
    /// as the scheme's [`Weight`] says.
    pub fn weighted_features(&mut self, text: &str) -> &[u64] {
        match self.weight {
            Weight::Set => self.feature_set(text),
            Weight::Tf => self.features(text),
        }
    }

    fn word_features(&mut self, text: &str, width: usize) {
        let Self {
            segmenter,
            tokens,
            features,
            seed,
            ..
        } = self;
        tokens.clear();
        segmenter.batches(text, |batch| {
            token_hash::extend(tokens, batch.bytes(), batch.bounds(), *seed);
            shingle::extend(features, tokens, width);
            let seen = tokens.len().saturating_sub(width - 1);
            tokens.drain(..seen);
        });
        if features.is_empty() && !tokens.is_empty() {
            shingle::extend(features, tokens, tokens.len());
        }
    }

    fn char_features(&mut self, text: &str, width: usize) {
        let Self {
            segmenter,
            chars,
            features,
            seed,
            ..
        } = self;
        chars.clear();
        segmenter.characters(text, chars, |batch| {
            char_windows(features, batch, width, *seed);
            batch.keep_last(width - 1);
        });
        char_windows(features, chars, width, *seed);
        if features.is_empty() && chars.len() > 0 {
            char_windows(features, chars, chars.len(), *seed);
        }
        if !chars.has_ink {
            features.clear();
        }
    }
}

/// Appends the feature of each window of `width` characters.
fn char_windows(features: &mut Vec<u64>, chars: &CharBatch, width: usize, seed: u64) {
    for first in 0..(chars.len() + 1).saturating_sub(width) {
        let window = &chars.bytes()[chars.start(first)..chars.start(first + width)];
        features.push(crate::hash::xxh3_64(window, seed));
    }
}
