//! Features of a document's other fields: anchor texts with their surroundings, and links (Manku et al. 2007, section 5.3).
//!
//! Their definition, beside that of the text's features in [`crate::feature`]; weights are in
//! 256ths of one occurrence in the text:
//!
//! - a word of an anchor text with hash t has the feature `avalanche(t ^ G)`, G the golden ratio
//!   0x9E3779B97F4A7C15, and the weight 256 w of the scheme's `anchors:w`;
//! - so has the d-th word before it or behind it, d up to the window n, with the weight
//!   256 w (n + 1 - d) / (n + 1), rounded down;
//! - a page that links to the document, or that it links to, has the feature `avalanche(h ^ 2 G)` or
//!   `avalanche(h ^ 3 G)`, h the hash of its address as it is written, and the weight 256 w; each
//!   address counts once;
//! - the weights of one feature are added, and no sum is above 2^23.

use crate::feature::{FeatureExtractor, Features};
use crate::hash::{GOLDEN, avalanche};
use crate::scheme::{FieldWeights, Weight};

/// One occurrence of a feature in the text.
const UNIT: i32 = 256;
/// No feature weighs more.
const MOST: i32 = 1 << 23;

/// The text of a link to a document, and what stands around it on the page of the link.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Anchor {
    /// The text of the link.
    pub text: String,
    /// Text before it.
    pub before: String,
    /// Text behind it.
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
    /// Links to it with their texts.
    pub anchors: Vec<Anchor>,
    /// Addresses of pages that link to it.
    pub in_links: Vec<String>,
    /// Addresses of pages that it links to.
    pub out_links: Vec<String>,
}

impl DocumentFields {
    /// Returns true if there is nothing in any of them.
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
    /// The features of a text and of the fields that the scheme looks at, with weights for all of
    /// them. Without such fields the same as [`FeatureExtractor::extract`].
    pub fn extract_with(&mut self, text: &str, fields: &DocumentFields) -> Features<'_> {
        if self.fields.is_none() {
            return self.extract(text);
        }
        self.extract(text);
        let mut weights = self.weights_in_256ths();
        let mut extra = std::mem::take(&mut self.features);
        self.each_field(fields, |feature, weight, _, _| {
            extra.push(feature);
            weights.push((feature, weight));
        });
        self.features = extra;
        // One list of all votes, so that a word in the text and in an anchor adds up only if it is the same
        // feature; origins keep them apart.
        weights.sort_unstable();
        self.weights.clear();
        for equal in weights.chunk_by(|a, b| a.0 == b.0) {
            // In 64 bits: the anchors of a popular page add up to more than 32 hold.
            let sum: i64 = equal.iter().map(|&(_, weight)| i64::from(weight)).sum();
            self.weights.push((equal[0].0, sum.min(MOST.into()) as i32));
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

    /// Pieces that the scheme makes of the text at hand.
    fn weights_in_256ths(&self) -> Vec<(u64, i32)> {
        match self.weight {
            Weight::Set => self.set.iter().map(|&feature| (feature, UNIT)).collect(),
            Weight::Tf => self
                .features
                .iter()
                .map(|&feature| (feature, UNIT))
                .collect(),
            // In 1024ths of the largest.
            Weight::TfLengthNoun(_) => {
                let scaled = |&(feature, weight): &(u64, i32)| (feature, (weight / 4).max(1));
                self.weights.iter().map(scaled).collect()
            }
            _ => self.weights.clone(),
        }
    }

    /// Names of the features that [`FeatureExtractor::extract_with`] appends to those of the text, in
    /// its order.
    pub(super) fn field_names(&mut self, fields: &DocumentFields) -> Vec<String> {
        let mut names = Vec::new();
        self.each_field(fields, |_, _, origin, name| {
            names.push(match origin {
                Origin::Anchor => format!("anchor: {name}"),
                Origin::InLink => format!("link from {name}"),
                Origin::OutLink => format!("link to {name}"),
            });
        });
        names
    }

    fn each_field(
        &mut self,
        fields: &DocumentFields,
        mut visit: impl FnMut(u64, i32, Origin, &str),
    ) {
        let FieldWeights {
            anchors,
            window,
            in_links,
            out_links,
        } = self.fields;
        let (hash, seed) = (self.hash, self.seed);
        let full = |weight: u8| i32::from(weight) * UNIT;
        if anchors > 0 {
            let window = usize::from(window);
            // Words around the anchor, the nearest first, as far as the window reaches.
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
                // Collected first: words come in the order of the text, and the nearest are the last.
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
            (&fields.in_links, in_links, Origin::InLink),
            (&fields.out_links, out_links, Origin::OutLink),
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
