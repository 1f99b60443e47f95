//! Share of near-duplicates that a collection finds, by their resemblance: [`lookalike::sketch::simhash_recall`], and of sketches of several
//! places the chance that enough of them are equal.

use lookalike::Sketch;
use lookalike::sketch::{binomial_at_most, one_changed_word, simhash_recall};
use lookalike_store::CollectionSettings;
use schemars::JsonSchema;
use serde::Serialize;

use crate::scheme::parse_scheme;

/// Bits of a fingerprint.
const BITS: u32 = 64;
/// Resemblances that are told.
const RESEMBLANCES: [f64; 6] = [0.8, 0.9, 0.95, 0.98, 0.99, 0.995];
/// Lengths of texts that are told, in words.
const LENGTHS: [u32; 3] = [100, 1000, 10_000];

/// The share of near-duplicates that a collection finds, expected from its features and from what is near.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Recall")]
pub(crate) struct RecallResponse {
    /// Of pairs of a resemblance of their features.
    by_resemblance: Vec<ResemblanceRecall>,
    /// Of texts of which one word was changed; left out where features are no runs of words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    one_changed_word: Vec<ChangedWordRecall>,
}

/// Recall of pairs of a resemblance.
#[derive(Serialize, JsonSchema)]
struct ResemblanceRecall {
    resemblance: f64,
    /// From 0 to 1.
    recall: f64,
}

/// Recall of texts with one changed word.
#[derive(Serialize, JsonSchema)]
struct ChangedWordRecall {
    /// Length of both texts.
    words: u32,
    /// Resemblance of their features.
    resemblance: f64,
    /// From 0 to 1.
    recall: f64,
}

impl RecallResponse {
    pub(crate) fn of(settings: &CollectionSettings) -> Self {
        let radius = settings.radius;
        // A scheme that this program cannot use makes no sketches here.
        let scheme = parse_scheme(settings.scheme.text()).ok();
        let sketch = scheme.map(|scheme| scheme.sketch);
        let bits = sketch.map_or(BITS, Sketch::fingerprint_bits);
        let of = |resemblance: f64| {
            // A super-shingle of r minima differs unless all of them are equal.
            let of_places =
                |places, rows: i32| binomial_at_most(radius, places, 1.0 - resemblance.powi(rows));
            rounded(match sketch {
                Some(Sketch::SuperShingle { groups, rows }) => {
                    of_places(groups.into(), rows.into())
                }
                Some(Sketch::MinHash { functions }) => of_places(functions.into(), 1),
                _ => simhash_recall(resemblance, bits, radius),
            })
        };
        let by_resemblance = RESEMBLANCES.map(|resemblance| ResemblanceRecall {
            resemblance,
            recall: of(resemblance),
        });
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

/// Three digits are more than texts keep.
fn rounded(share: f64) -> f64 {
    (share * 1000.0).round() / 1000.0
}
