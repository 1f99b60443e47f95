//! Words to features: the second step of the pipeline.
//!
//! The published definition, all arithmetic modulo 2^64:
//!
//! - the hash of a word is `t = XXH3-64(its UTF-8 bytes, seed)`;
//! - `words:1`: the feature is `t`;
//! - `words:w`, w >= 2: a window of m = w consecutive words with hashes t_0 .. t_(m-1) has the feature
//!   `avalanche(XOR over j of rotl64(t_j, m - 1 - j) ^ m * 0x9E3779B97F4A7C15)`, with [`avalanche`](crate::hash::avalanche). For m > 16, t_j is
//!   not rotated but multiplied by x^(m - 1 - j) modulo x^64 + x^4 + x^3 + x + 1 over GF(2), because rotations of equal words would cancel out. A
//!   text of m < w words, m >= 1, has one feature, that of the window of all its m words; as m is part of it, it differs from the features of longer windows;
//! - `chars:n`: a window of n code points has the feature `XXH3-64(its UTF-8 bytes, seed)`. A text of fewer code points has one feature, that of all
//!   of them. A text of only white space has none;
//! - `words:v+w`: the features of `words:v` and those of `words:w` as one list, for any number of sizes. A size that is longer than the text adds
//!   nothing; a text shorter than all sizes has the one feature of all its words;
//! - `words:w/n:v`, v < w: the features of `words:v` if the text has fewer than n words, else those of `words:w`;
//! - `stops:w`: the features of `words:w` over the text's English function words, with all other words left out; the list is in
//!   `docs/explanation/algorithms.md`;
//! - `phrases:c`: the words, with hashes t_0, t_1, .., are read from the front. If the table of terms has the pair (t_i, t_(i+1)) in n_12 >= c of its
//!   N documents, and n_12 N >= 8 n_1 n_2, the feature is that of the pair under `words:2`, and reading continues after the pair; else it is t_i,
//!   and reading continues with the next word. A feature that the table lacks counts as occurring in one document;
//! - a token hash other than XXH3-64 takes its place, in words and in windows of characters; `avalanche` stays.
//!
//! [`crate::text`] defines the words and characters. A text without any has no features and resembles nothing, not even itself.

mod fields;
mod phrase;
mod sort;
mod spelling;
mod stop;
mod weight;

use std::sync::Arc;

use crate::hash::lookup3::lookup3_64;
use crate::hash::siphash::siphash_2_4;
use crate::hash::xxh3_64;
use crate::kernel::{shingle, token_hash};
use crate::scheme::{FieldWeights, Nouns, Scheme, Shingle, TokenHash, Weight};
use crate::terms::{Terms, TermsMismatch};
use crate::text::{CharBatch, Segmenter};
pub use fields::{Anchor, DocumentFields};
pub use sort::sort_dedup;
pub use spelling::Spelling;

/// Extracts the features of texts under one scheme. Use one per thread: its buffers are reused.
///
/// ```
/// use lookalike::{FeatureExtractor, Scheme};
/// let mut extractor = FeatureExtractor::new(&Scheme::default());
/// assert_eq!(extractor.features("one two three four five six seven").len(), 3);
/// assert!(extractor.features(" \n").is_empty());
/// ```
#[derive(Debug, Clone)]
pub struct FeatureExtractor {
    segmenter: Segmenter,
    shingle: Shingle,
    weight: Weight,
    fields: FieldWeights,
    nouns: Nouns,
    hash: TokenHash,
    seed: u64,
    terms: Option<Arc<Terms>>,
    /// Hashes of the function words, ascending; empty unless the shingle is made of them.
    stops: Vec<u64>,
    tokens: Vec<u64>,
    chars: CharBatch,
    bounds: Vec<u32>,
    features: Vec<u64>,
    scratch: Vec<u64>,
    set: Vec<u64>,
    weights: Vec<(u64, i32)>,
}

/// Everything that a sketch can be computed from, as [`FeatureExtractor::extract`] returns it for one text.
///
/// ```
/// use lookalike::{FeatureExtractor, Scheme};
///
/// let scheme = Scheme::default().shingle("words:1".parse()?).weight("log-tf".parse()?);
/// let mut extractor = FeatureExtractor::new(&scheme);
/// let features = extractor.extract("never, nevermore, never");
/// assert_eq!((features.in_order.len(), features.set.len()), (3, 2));
/// // In 256ths: a word that occurs twice weighs as much as two that occur once.
/// let mut weights: Vec<i32> = features.weights.iter().map(|&(_, weight)| weight).collect();
/// weights.sort_unstable();
/// assert_eq!(weights, [256, 512]);
/// # Ok::<(), lookalike::scheme::ParseOptionError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Features<'a> {
    /// The features in text order, as often as they occur.
    pub in_order: &'a [u64],
    /// The distinct features, ascending.
    pub set: &'a [u64],
    /// The distinct features with their weights in a simhash; empty if the scheme's weight is `set` or `tf`, for which `set` and `in_order` are
    /// enough.
    pub weights: &'a [(u64, i32)],
    /// If all features weigh the same: true if each counts as often as it occurs, false if once.
    repeats: bool,
}

impl<'a> Features<'a> {
    /// Wraps a set of features that each weigh 1. They must ascend without duplicates: of others, sketches and resemblances are meaningless.
    #[must_use]
    pub fn of_set(set: &'a [u64]) -> Self {
        Self {
            in_order: set,
            set,
            weights: &[],
            repeats: false,
        }
    }

    /// Wraps features of your own that count in a simhash as often as they occur: those of a text in its order, and the distinct ones, ascending.
    ///
    /// ```
    /// use lookalike::{Features, Simhash};
    ///
    /// const A: u64 = 0x0f0f;
    /// const B: u64 = 0xf0f0;
    /// let features = Features::of_occurrences(&[B, A, B], &[A, B]);
    /// assert_eq!(Simhash::of(&features).map(|simhash| simhash.0), Some(B));
    /// ```
    #[must_use]
    pub fn of_occurrences(in_order: &'a [u64], set: &'a [u64]) -> Self {
        Self {
            in_order,
            repeats: true,
            ..Self::of_set(set)
        }
    }

    /// Wraps features of your own with their weights in a simhash: the distinct ones, ascending, and each with its weight.
    ///
    /// ```
    /// use lookalike::{Features, Simhash};
    ///
    /// // The second feature outvotes the first in every bit.
    /// const A: u64 = 0x0f0f;
    /// const B: u64 = 0xf0f0;
    /// let features = Features::of_weights(&[A, B], &[(A, 1), (B, 2)]);
    /// assert_eq!(Simhash::wide(&features, 64).map(|wide| wide.0), Some(u128::from(B)));
    /// ```
    #[must_use]
    pub fn of_weights(set: &'a [u64], weights: &'a [(u64, i32)]) -> Self {
        Self {
            weights,
            ..Self::of_set(set)
        }
    }

    /// Returns the features that each count once in a simhash if `weights` is empty.
    pub(crate) fn equal_weights(&self) -> &'a [u64] {
        if self.repeats {
            self.in_order
        } else {
            self.set
        }
    }
}

impl FeatureExtractor {
    /// Frees the buffers, which grow with the longest text.
    pub fn shrink(&mut self) {
        self.segmenter.shrink();
        self.chars = CharBatch::default();
        (self.tokens, self.bounds) = (Vec::new(), Vec::new());
        (self.features, self.scratch) = (Vec::new(), Vec::new());
        (self.set, self.weights) = (Vec::new(), Vec::new());
    }

    /// Creates an extractor for the features of `scheme`. If the scheme's weight needs a table of terms, use [`FeatureExtractor::with_terms`];
    /// without the table all features weigh the same.
    #[must_use]
    pub fn new(scheme: &Scheme) -> Self {
        Self {
            segmenter: Segmenter::new(scheme),
            shingle: scheme.shingle,
            weight: scheme.weight,
            fields: scheme.fields,
            nouns: scheme.nouns,
            hash: scheme.hash,
            seed: scheme.seed,
            terms: None,
            stops: match scheme.shingle {
                Shingle::Stops(_) => stop::hashes(scheme.hash, scheme.seed),
                _ => Vec::new(),
            },
            tokens: Vec::new(),
            chars: CharBatch::default(),
            bounds: Vec::new(),
            features: Vec::new(),
            scratch: Vec::new(),
            set: Vec::new(),
            weights: Vec::new(),
        }
    }

    /// Creates an extractor for the features and weights of `scheme`, which names the table `terms`. Without a table, no weight depends on rarity.
    ///
    /// # Errors
    /// Returns [`TermsMismatch`] if the scheme names another table or other features.
    pub fn with_terms<'t>(
        scheme: &Scheme,
        terms: impl Into<Option<&'t Arc<Terms>>>,
    ) -> Result<Self, TermsMismatch> {
        let terms = terms.into();
        terms.map_or(Ok(()), |terms| terms.ensure_fits(scheme))?;
        Ok(Self {
            terms: terms.cloned(),
            ..Self::new(scheme)
        })
    }

    /// Extracts the features of `text`: in order, as a set, and weighted as the scheme says.
    pub fn extract(&mut self, text: &str) -> Features<'_> {
        self.features(text);
        self.weights.clear();
        if let Weight::TfLengthNoun(lambda) = self.weight {
            self.weigh_by_length_and_noun(text, lambda);
        }
        self.gather()
    }

    /// Like [`FeatureExtractor::extract`], for a text whose word hashes are known: `tokens` are the features that an extractor for `words:1` with the
    /// same hash returns for it. Returns `None` if words are not enough: for character shingles and the weights of Yu, Hu and Zhang.
    pub fn extract_tokens(&mut self, tokens: &[u64]) -> Option<Features<'_>> {
        if matches!(self.weight, Weight::TfLengthNoun(_)) {
            return None;
        }
        if matches!(self.shingle, Shingle::Chars(_)) {
            return None;
        }
        self.tokens.clear();
        self.tokens.extend_from_slice(tokens);
        self.features.clear();
        self.token_features();
        self.weights.clear();
        Some(self.gather())
    }

    /// Collects the set and the weights of the current features.
    fn gather(&mut self) -> Features<'_> {
        self.set.clear();
        // Sort a copy: some sketches need the features in text order.
        self.set.extend_from_slice(&self.features);
        // `set` and `tf` need no list of weights, and the weights of Yu, Hu and Zhang are already there.
        if !matches!(
            self.weight,
            Weight::Set | Weight::Tf | Weight::TfLengthNoun(_)
        ) {
            self.set.sort_unstable();
            let terms = self.terms.as_deref();
            weight::weigh(self.weight, terms, &self.set, &mut self.weights);
        }
        sort_dedup(&mut self.set, &mut self.scratch);
        Features {
            in_order: &self.features,
            set: &self.set,
            weights: &self.weights,
            repeats: self.weight == Weight::Tf,
        }
    }

    /// Returns the features of `text` in text order, as often as they occur: max(n - w + 1, 1) for a text of n words, none for a text without words.
    /// Linear time.
    pub fn features(&mut self, text: &str) -> &[u64] {
        self.features.clear();
        match self.shingle {
            Shingle::Words(width) => self.word_features(text, width.get()),
            Shingle::Chars(width) => self.char_features(text, width.get()),
            // All tokens at once: their number decides the sizes, and the features of one size come before those of the next.
            _ => {
                self.tokens.clear();
                self.segmenter.batches(text, |batch| {
                    self.hash
                        .extend(&mut self.tokens, batch.bytes(), batch.bounds(), self.seed);
                });
                self.token_features();
            }
        }
        &self.features
    }

    /// Computes the features of the current tokens: those of one size in text order, then those of the next.
    fn token_features(&mut self) {
        let (tokens, features) = (&mut self.tokens, &mut self.features);
        match self.shingle {
            Shingle::Words(width) => add_windows(features, tokens, width.get()),
            Shingle::WordsByLength { width, short } => {
                add_windows(features, tokens, short.width_of(tokens.len(), width));
            }
            Shingle::WordSizes(widths) => widths
                .iter()
                .for_each(|width| add_windows(features, tokens, width)),
            Shingle::Stops(width) => {
                // Compare hashes, since tokens passed to `extract_tokens` have no words. A word with the same hash as a function word would be taken
                // for it, which happens to one pair of words in 2^64.
                tokens.retain(|token| self.stops.binary_search(token).is_ok());
                add_windows(features, tokens, width.get());
            }
            Shingle::Phrases(least) => {
                phrase::join(tokens, self.terms.as_deref(), least.get(), |feature, _| {
                    features.push(feature);
                });
            }
            Shingle::Chars(_) => {}
        }
        add_short_text(features, tokens);
    }

    /// Returns the distinct features of `text`, ascending: the set that resemblance is computed from. Expected linear time.
    pub fn feature_set(&mut self, text: &str) -> &[u64] {
        self.features(text);
        sort_dedup(&mut self.features, &mut self.scratch);
        &self.features
    }

    fn word_features(&mut self, text: &str, width: usize) {
        let (tokens, features, seed) = (&mut self.tokens, &mut self.features, self.seed);
        // A window of one word is its token, so hash straight into the features.
        if width == 1 {
            return self.segmenter.batches(text, |batch| {
                self.hash
                    .extend(features, batch.bytes(), batch.bounds(), seed);
            });
        }
        tokens.clear();
        self.segmenter.batches(text, |batch| {
            self.hash
                .extend(tokens, batch.bytes(), batch.bounds(), seed);
            // Batch by batch, so that the tokens of a long text are never in memory all at once.
            shingle::extend(features, tokens, width);
            // The last w - 1 tokens begin windows that end in the next batch.
            let seen = tokens.len().saturating_sub(width - 1);
            tokens.drain(..seen);
        });
        add_short_text(features, tokens);
    }

    fn char_features(&mut self, text: &str, width: usize) {
        let (chars, features) = (&mut self.chars, &mut self.features);
        let mut hash_windows = |chars: &CharBatch, width| {
            let bytes = chars.windows(width, &mut self.bounds);
            self.hash.extend(features, bytes, &self.bounds, self.seed);
        };
        chars.clear();
        self.segmenter.characters(text, chars, |chars| {
            hash_windows(chars, width);
            // The last n - 1 characters begin windows that end in the next batch.
            chars.keep_last(width - 1);
        });
        hash_windows(chars, width);
        if !chars.has_ink {
            features.clear();
        } else if features.is_empty() {
            // A text of fewer characters than a shingle has one feature, that of all of them.
            let bytes = chars.windows(chars.len(), &mut self.bounds);
            self.hash.extend(features, bytes, &self.bounds, self.seed);
        }
    }
}

/// Appends the features of all windows of `width` tokens; a window of one is its token.
fn add_windows(features: &mut Vec<u64>, tokens: &[u64], width: usize) {
    if width == 1 {
        features.extend_from_slice(tokens);
    } else {
        shingle::extend(features, tokens, width);
    }
}

/// Appends the feature of all tokens, if they are too few for a window and so have none.
fn add_short_text(features: &mut Vec<u64>, tokens: &[u64]) {
    if features.is_empty() && !tokens.is_empty() {
        shingle::extend(features, tokens, tokens.len());
    }
}

impl TokenHash {
    /// Returns the hash of one word.
    fn of(self, word: &[u8], seed: u64) -> u64 {
        match self {
            Self::Xxh3 => xxh3_64(word, seed),
            Self::Lookup3 => lookup3_64(word, seed),
            Self::SipHash(key) => siphash_2_4(&key, word),
        }
    }

    /// Appends the hash of each word of `bytes`; `bounds` holds the start and end of each.
    fn extend(self, out: &mut Vec<u64>, bytes: &[u8], bounds: &[u32], seed: u64) {
        // The vector kernel computes XXH3 only. The other hashes are chosen for their guarantees rather than their speed.
        if self == Self::Xxh3 {
            return token_hash::extend(out, bytes, bounds, seed);
        }
        let (bounds, _) = bounds.as_chunks::<2>();
        out.extend(
            bounds
                .iter()
                .map(|&[start, end]| self.of(&bytes[start as usize..end as usize], seed)),
        );
    }
}
