//! The share of near-duplicates that a collection finds, by resemblance: for fingerprints [`lookalike::sketch::simhash_recall`], for
//! sketches of several places the probability that enough of them are equal.

use lookalike::sketch::{binomial_at_most, one_changed_word, simhash_recall};
use lookalike_store::CollectionSettings;
use schemars::JsonSchema;
use serde::Serialize;

use crate::scheme::parse_scheme;
use crate::verdict::ScoreRule;

/// Resemblances for which recall is shown.
const RESEMBLANCES: [f64; 6] = [0.8, 0.9, 0.95, 0.98, 0.99, 0.995];
/// Lengths of texts, in words, for which recall is shown.
const LENGTHS: [u32; 3] = [100, 1000, 10_000];

/// The expected share of near-duplicates that a collection finds, given its features and its radius.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Recall")]
pub(crate) struct RecallResponse {
    /// Recall of pairs by the resemblance of their features.
    by_resemblance: Vec<ResemblanceRecall>,
    /// Recall of texts in which one word was changed; left out unless all features are runs of the same number of words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    one_changed_word: Vec<ChangedWordRecall>,
}

/// The recall of pairs with a given resemblance.
#[derive(Serialize, JsonSchema)]
struct ResemblanceRecall {
    resemblance: f64,
    /// From 0 to 1.
    recall: f64,
}

/// The recall of texts in which one word was changed.
#[derive(Serialize, JsonSchema)]
struct ChangedWordRecall {
    /// Length of both texts in words.
    words: u32,
    /// Resemblance of their features.
    resemblance: f64,
    /// From 0 to 1.
    recall: f64,
}

impl RecallResponse {
    pub(crate) fn of(settings: &CollectionSettings) -> Self {
        let (radius, rule) = (settings.radius, ScoreRule::of(settings));
        let of = |resemblance: f64| {
            rounded(match rule {
                // A super-shingle of r minima differs unless all r are equal.
                ScoreRule::Places { places, rows } => {
                    binomial_at_most(radius, places, 1.0 - resemblance.powi(rows as i32))
                }
                ScoreRule::Bits(bits) => simhash_recall(resemblance, bits, radius),
            })
        };
        let by_resemblance = RESEMBLANCES.map(|resemblance| ResemblanceRecall {
            resemblance,
            recall: of(resemblance),
        });
        // This program cannot make sketches with a scheme that it cannot read.
        let scheme = parse_scheme(settings.scheme.text()).ok();
        let width = scheme.and_then(|scheme| scheme.shingle.words_each());
        let changed = width.map(|width| {
            LENGTHS.into_iter().filter_map(move |words| {
                let resemblance = one_changed_word(words, width)?;
                Some(ChangedWordRecall {
                    words,
                    resemblance: rounded(resemblance),
                    recall: of(resemblance),
                })
            })
        });
        Self {
            by_resemblance: by_resemblance.into(),
            one_changed_word: changed.into_iter().flatten().collect(),
        }
    }
}

/// Rounds to three digits, which is more than the accuracy on real texts.
fn rounded(share: f64) -> f64 {
    (share * 1000.0).round() / 1000.0
}
