//! Features of a document's other fields: anchor texts with their surroundings, and links (Manku et al. 2007, section 5.3).
//!
//! The definition, in addition to that of the text's features in [`crate::feature`]; weights are in 256ths of one occurrence in the text:
//!
//! - a word of an anchor text with hash t has the feature `avalanche(t ^ G)`, where G is the golden ratio 0x9E3779B97F4A7C15, and the weight 256 w of
//!   the scheme's `anchors:w`;
//! - the d-th word before or after the anchor text, d up to the window n, has the same kind of feature, with the weight 256 w (n + 1 - d) / (n + 1),
//!   rounded down;
//! - a page that links to the document has the feature `avalanche(h ^ 2 G)`, a page that it links to `avalanche(h ^ 3 G)`, where h is the hash of the
//!   page's address as it is written, and the weight 256 w; each address counts once;
//! - the weights of equal features are added, and no sum is above 2^23.

use crate::feature::{FeatureExtractor, Features};
use crate::hash::{GOLDEN, avalanche};
use crate::scheme::Weight;

/// Weight of one occurrence of a feature in the text.
const UNIT: i32 = 256;
/// Maximum weight of a feature.
const MAX_WEIGHT: i32 = 1 << 23;

/// Text of a link to a document, and the text around it on the page of the link.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Anchor {
    /// The text of the link.
    pub text: String,
    /// Text before it.
    pub before: String,
    /// Text after it.
    pub after: String,
}

/// Fields of a document besides its text.
///
/// ```
/// use lookalike::{Anchor, DocumentFields, FeatureExtractor, Scheme};
///
/// // A word of an anchor weighs as much as two in the text.
/// let scheme = Scheme::default().fields("anchors:2".parse()?);
/// let anchor = Anchor { text: "Poe's ravens".to_owned(), ..Anchor::default() };
/// let fields = DocumentFields { anchors: vec![anchor], ..DocumentFields::default() };
/// let mut extractor = FeatureExtractor::new(&scheme);
/// let alone = extractor.extract("Once upon a midnight dreary").set.len();
/// assert_eq!(extractor.extract_with("Once upon a midnight dreary", &fields).set.len(), alone + 2);
/// # Ok::<(), lookalike::scheme::ParseOptionError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DocumentFields {
    /// Links to the document, with their texts.
    pub anchors: Vec<Anchor>,
    /// Addresses of pages that link to the document.
    pub in_links: Vec<String>,
    /// Addresses of pages that the document links to.
    pub out_links: Vec<String>,
}

impl DocumentFields {
    /// Returns true if all fields are empty.
    pub fn is_empty(&self) -> bool {
        self.anchors.is_empty() && self.in_links.is_empty() && self.out_links.is_empty()
    }
}

/// Origin of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Anchor = 1,
    InLink = 2,
    OutLink = 3,
}

impl Origin {
    fn feature(self, hash: u64) -> u64 {
        avalanche(hash ^ GOLDEN.wrapping_mul(self as u64))
    }
}

impl FeatureExtractor {
    /// Extracts the features of a text and of the fields that the scheme uses, with weights for all of them. Without such fields the same as
    /// [`FeatureExtractor::extract`].
    pub fn extract_with(&mut self, text: &str, fields: &DocumentFields) -> Features<'_> {
        if self.fields.is_none() {
            return self.extract(text);
        }
        self.extract(text);
        let mut weights = self.weights_in_256ths();
        let mut extra = std::mem::take(&mut self.features);
        self.for_each_field(fields, |feature, weight, _, _| {
            extra.push(feature);
            weights.push((feature, weight));
        });
        self.features = extra;
        // Sort all votes in one list, so that equal features add up. A word in the text and in an anchor are different features, because the origin
        // is part of the hash.
        weights.sort_unstable();
        self.weights.clear();
        for equal in weights.chunk_by(|a, b| a.0 == b.0) {
            // Add in 64 bits: the anchors of a popular page add up to more than 32 bits hold.
            let sum: i64 = equal.iter().map(|&(_, weight)| i64::from(weight)).sum();
            self.weights
                .push((equal[0].0, sum.min(MAX_WEIGHT.into()) as i32));
        }
        self.set.clear();
        self.set.extend(self.weights.iter().map(|entry| entry.0));
        Features {
            in_order: &self.features,
            set: &self.set,
            weights: &self.weights,
            repeats: false,
        }
    }

    /// Returns the features of the current text with their weights in 256ths.
    fn weights_in_256ths(&self) -> Vec<(u64, i32)> {
        match self.weight {
            Weight::Set => self.set.iter().map(|&feature| (feature, UNIT)).collect(),
            Weight::Tf => self
                .features
                .iter()
                .map(|&feature| (feature, UNIT))
                .collect(),
            // Weights are in 1024ths of the largest.
            Weight::TfLengthNoun(_) => {
                let scaled = |&(feature, weight): &(u64, i32)| (feature, (weight / 4).max(1));
                self.weights.iter().map(scaled).collect()
            }
            _ => self.weights.clone(),
        }
    }

    /// Returns the names of the features that [`FeatureExtractor::extract_with`] appends to those of the text, in the same order.
    pub(super) fn field_names(&mut self, fields: &DocumentFields) -> Vec<String> {
        let mut names = Vec::new();
        self.for_each_field(fields, |_, _, origin, name| {
            names.push(match origin {
                Origin::Anchor => format!("anchor: {name}"),
                Origin::InLink => format!("link from {name}"),
                Origin::OutLink => format!("link to {name}"),
            });
        });
        names
    }

    fn for_each_field(
        &mut self,
        fields: &DocumentFields,
        mut visit: impl FnMut(u64, i32, Origin, &str),
    ) {
        let weights = self.fields;
        let anchors = weights.anchors();
        let (hash, seed) = (self.hash, self.seed);
        let full = |weight: u8| i32::from(weight) * UNIT;
        if anchors > 0 {
            let window = usize::from(weights.window());
            // Weight of a word around the anchor, which falls with the distance as far as the window reaches.
            let fading = |distance: usize| {
                let steps = window as i32 + 1;
                full(anchors) * (steps - distance as i32) / steps
            };
            for anchor in &fields.anchors {
                let mut word = |word: &str, weight: i32| {
                    let feature = Origin::Anchor.feature(hash.of(word.as_bytes(), seed));
                    visit(feature, weight, Origin::Anchor, word);
                };
                self.segmenter
                    .words(&anchor.text, |text| word(text, full(anchors)));
                // Collect first: words come in text order, and the nearest are the last.
                let mut before = Vec::new();
                if window > 0 {
                    self.segmenter
                        .words(&anchor.before, |text| before.push(text.to_owned()));
                }
                for (at, text) in before.iter().rev().take(window).enumerate() {
                    word(text, fading(at + 1));
                }
                let mut distance = 0;
                if window > 0 {
                    self.segmenter.words(&anchor.after, |text| {
                        distance += 1;
                        if distance <= window {
                            word(text, fading(distance));
                        }
                    });
                }
            }
        }
        for (addresses, weight, origin) in [
            (&fields.in_links, weights.in_links(), Origin::InLink),
            (&fields.out_links, weights.out_links(), Origin::OutLink),
        ] {
            let mut distinct: Vec<&String> = addresses.iter().filter(|_| weight > 0).collect();
            // An address counts once, however often a page links to it.
            distinct.sort_unstable();
            distinct.dedup();
            for address in distinct {
                let feature = origin.feature(hash.of(address.as_bytes(), seed));
                visit(feature, full(weight), origin, address);
            }
        }
    }
}
