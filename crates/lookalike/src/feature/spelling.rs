//! Spelling of features, for people: the words or characters behind each feature.

use crate::feature::{CharBatch, DocumentFields, FeatureExtractor, Features, phrase};
use crate::scheme::Shingle;

/// The words or characters of a text, as its features see them.
///
/// Memory: one copy of the words; names are borrowed from it.
///
/// ```
/// use lookalike::{FeatureExtractor, Scheme};
///
/// let mut extractor = FeatureExtractor::new(&Scheme::default().shingle("words:2".parse()?));
/// let spelling = extractor.spelling("Once upon a midnight");
/// assert_eq!(spelling.name(1), "upon a");
/// # Ok::<(), lookalike::scheme::ParseOptionError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spelling {
    text: String,
    /// End of each piece in `text`; a piece is a word followed by a space, or a character.
    ends: Vec<usize>,
    widths: Vec<usize>,
    words: bool,
    /// Names of the features that follow those of the text.
    fields: Vec<String>,
    /// Number of features of the text.
    of_text: usize,
}

impl Spelling {
    /// Returns the text of the feature at index `place` of [`Features::in_order`]; empty beyond the last.
    #[must_use]
    pub fn name(&self, place: usize) -> &str {
        if let Some(field) = place.checked_sub(self.of_text) {
            return self.fields.get(field).map_or("", String::as_str);
        }
        let mut before = 0;
        for &width in &self.widths {
            let windows = (self.ends.len() + 1).saturating_sub(width);
            if place < before + windows {
                return self.window(place - before, width);
            }
            before += windows;
        }
        // A text shorter than a shingle has one feature, that of all of it.
        let is_short = before == 0 && place == 0;
        self.window(0, if is_short { self.ends.len() } else { 0 })
    }

    fn window(&self, first: usize, width: usize) -> &str {
        let end = |count: usize| count.checked_sub(1).map_or(0, |last| self.ends[last]);
        let name = &self.text[end(first)..end(first + width)];
        // A shingle of characters may end with a space of its own.
        match self.words {
            true => name.strip_suffix(' ').unwrap_or(name),
            false => name,
        }
    }
}

impl FeatureExtractor {
    /// Returns the words or characters behind the features of `text`. Takes the time of [`FeatureExtractor::features`] again, and copies the words.
    pub fn spelling(&mut self, text: &str) -> Spelling {
        let (mut copy, mut ends) = (String::new(), Vec::new());
        let widths = match self.shingle {
            Shingle::Chars(width) => {
                let mut chars = CharBatch::default();
                let mut take = |chars: &mut CharBatch| {
                    for c in chars.text().chars() {
                        copy.push(c);
                        ends.push(copy.len());
                    }
                    chars.keep_last(0);
                };
                self.segmenter.characters(text, &mut chars, &mut take);
                take(&mut chars);
                vec![width.get()]
            }
            _ => {
                let mut tokens = Vec::new();
                let stops = &self.stops;
                let wanted = |token: u64| stops.is_empty() || stops.binary_search(&token).is_ok();
                self.segmenter.words(text, |word| {
                    let token = self.hash.of(word.as_bytes(), self.seed);
                    if wanted(token) {
                        copy.push_str(word);
                        copy.push(' ');
                        ends.push(copy.len());
                        tokens.push(token);
                    }
                });
                match self.shingle {
                    Shingle::WordSizes(widths) => widths.iter().collect(),
                    Shingle::WordsByLength { width, short } => {
                        vec![short.width_of(tokens.len(), width)]
                    }
                    // Characters were handled above, and are named only to complete the match.
                    Shingle::Words(width) | Shingle::Chars(width) | Shingle::Stops(width) => {
                        vec![width.get()]
                    }
                    Shingle::Phrases(least) => {
                        // A phrase is one piece.
                        let (mut pieces, mut at) = (Vec::new(), 0);
                        phrase::join(&tokens, self.terms.as_deref(), least.get(), |_, words| {
                            at += words;
                            pieces.push(ends[at - 1]);
                        });
                        ends = pieces;
                        vec![1]
                    }
                }
            }
        };
        Spelling {
            text: copy,
            ends,
            widths,
            words: !matches!(self.shingle, Shingle::Chars(_)),
            fields: Vec::new(),
            // Without fields, every index is one of the text.
            of_text: usize::MAX,
        }
    }

    /// Returns the texts of the features of [`FeatureExtractor::extract_with`].
    pub fn spelling_with(&mut self, text: &str, fields: &DocumentFields) -> Spelling {
        let of_text = self.features(text).len();
        Spelling {
            fields: self.field_names(fields),
            of_text,
            ..self.spelling(text)
        }
    }
}

impl Features<'_> {
    /// Returns the distinct features with the weights that a simhash gives them, ascending. O(n log n) for term frequencies, else linear.
    #[must_use]
    pub fn weighted(&self) -> Vec<(u64, i32)> {
        if !self.weights.is_empty() {
            let mut weighted = self.weights.to_vec();
            weighted.sort_unstable();
            return weighted;
        }
        let mut all = self.equal_weights().to_vec();
        all.sort_unstable();
        let count = |equal: &[u64]| i32::try_from(equal.len()).unwrap_or(i32::MAX);
        all.chunk_by(|a, b| a == b)
            .map(|equal| (equal[0], count(equal)))
            .collect()
    }

    /// Computes the cosine of the angle between the weighted features of two texts, in [-1, 1]; 0 if either has none. A simhash under a random hash
    /// differs in each bit with probability angle / pi (Manku et al. 2007, section 2).
    #[must_use]
    pub fn cosine(&self, other: &Features<'_>) -> f64 {
        let (a, b) = (self.weighted(), other.weighted());
        let norm = |all: &[(u64, i32)]| {
            let squares = all.iter().map(|&(_, weight)| f64::from(weight).powi(2));
            squares.sum::<f64>().sqrt()
        };
        let (mut at, mut product) = (0, 0.0);
        for &(feature, weight) in &a {
            // Both lists ascend, so the search continues from the last position.
            at += b[at..].partition_point(|entry| entry.0 < feature);
            match b.get(at) {
                Some(&(same, other)) if same == feature => {
                    product += f64::from(weight) * f64::from(other);
                }
                _ => {}
            }
        }
        let norms = norm(&a) * norm(&b);
        if norms > 0.0 {
            // Rounding may carry the quotient a little beyond 1.
            (product / norms).clamp(-1.0, 1.0)
        } else {
            0.0
        }
    }
}
