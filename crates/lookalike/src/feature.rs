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
    bounds: Vec<u32>,
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
            bounds: Vec::new(),
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
        if width == 1 {
            return segmenter.batches(text, |batch| {
                token_hash::extend(features, batch.bytes(), batch.bounds(), *seed);
            });
        }
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
            bounds,
            features,
            seed,
            ..
        } = self;
        let mut hash_windows = |chars: &CharBatch, width| {
            let bytes = chars.windows(width, bounds);
            token_hash::extend(features, bytes, bounds, *seed);
        };
        chars.clear();
        segmenter.characters(text, chars, |chars| {
            hash_windows(chars, width);
            chars.keep_last(width - 1);
        });
        hash_windows(chars, width);
        if !chars.has_ink {
            features.clear();
        } else if features.is_empty() {
            chars_of_short_text(chars, bounds, features, *seed);
        }
    }
}

/// The one feature of a text of fewer characters than a shingle has.
fn chars_of_short_text(
    chars: &CharBatch,
    bounds: &mut Vec<u32>,
    features: &mut Vec<u64>,
    seed: u64,
) {
    let bytes = chars.windows(chars.len(), bounds);
    token_hash::extend(features, bytes, bounds, seed);
}
