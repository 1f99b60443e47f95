//! Share of near-duplicates that a collection finds, by their resemblance.
//!
//! A bit of a simhash differs with probability a/pi, a being the angle between the two weight vectors (Charikar, STOC 2002). Two
//! equally large sets of resemblance r have the cosine 2r / (1 + r); with b bits, the number that differ is binomial, and the
//! collection finds those pairs of which at most its radius do.

use lookalike::{Scheme, Shingle};
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

/// The share of near-duplicates that a collection finds, expected from its features and its radius.
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
        let of = |resemblance| rounded(recall(resemblance, radius));
        let by_resemblance = RESEMBLANCES.map(|resemblance| ResemblanceRecall {
            resemblance,
            recall: of(resemblance),
        });
        // A scheme that this program cannot use makes no sketches here.
        let width = parse_scheme(settings.scheme.text())
            .ok()
            .and_then(|scheme| words_of_feature(&scheme));
        let changed = width.map(|width| {
            LENGTHS.map(|words| {
                let resemblance = one_changed_word(words, width);
                ChangedWordRecall {
                    words,
                    resemblance: rounded(resemblance),
                    recall: of(resemblance),
                }
            })
        });
        Self {
            by_resemblance: by_resemblance.into(),
            one_changed_word: changed.into_iter().flatten().collect(),
        }
    }
}

/// Words of each feature, where all have as many.
fn words_of_feature(scheme: &Scheme) -> Option<u32> {
    match scheme.shingle {
        Shingle::Words(width) => Some(width.get() as u32),
        _ => None,
    }
}

/// Resemblance of two texts of so many different words in runs of `width`, of which one in the middle differs: each of the runs
/// with that word differs.
fn one_changed_word(words: u32, width: u32) -> f64 {
    let runs = f64::from(words + 1 - width);
    let changed = f64::from(width);
    (runs - changed) / (runs + changed)
}

/// Chance that the fingerprints of a pair differ in no more bits than the radius.
fn recall(resemblance: f64, radius: u32) -> f64 {
    let cosine = 2.0 * resemblance / (1.0 + resemblance);
    let differs = cosine.clamp(-1.0, 1.0).acos() / std::f64::consts::PI;
    let exactly = |bits: u32| {
        let choose = (0..bits).fold(1.0, |ways, bit| {
            ways * f64::from(BITS - bit) / f64::from(bit + 1)
        });
        choose * differs.powi(bits as i32) * (1.0 - differs).powi((BITS - bits) as i32)
    };
    // The distribution function of a binomial; rounded terms may add up to more than 1.
    (0..=radius.min(BITS)).map(exactly).sum::<f64>().min(1.0)
}

/// Three digits are more than texts keep.
fn rounded(share: f64) -> f64 {
    (share * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use lookalike::resemblance::resemblance;
    use lookalike::{FeatureExtractor, Simhash};

    use super::*;
    use crate::scheme::default_scheme;

    #[test]
    fn recall_rises_with_resemblance_and_radius_to_one() {
        assert_eq!(recall(1.0, 0), 1.0);
        assert!((recall(0.3, 64) - 1.0).abs() < 1e-9);
        for radius in 0..16 {
            let shares = RESEMBLANCES.map(|resemblance| recall(resemblance, radius));
            assert!(shares.is_sorted(), "{shares:?}");
            assert!(recall(0.9, radius) < recall(0.9, radius + 1));
        }
        // acos(2 * 0.8 / 1.8) / pi = 0.151548 of 64 bits: that at most three differ has the chance 0.00853.
        assert!(
            (recall(0.8, 3) - 0.00853).abs() < 1e-5,
            "{}",
            recall(0.8, 3)
        );
    }

    #[test]
    fn the_recall_that_is_told_is_that_of_texts_with_a_changed_word() {
        let scheme = default_scheme();
        let mut features = FeatureExtractor::new(&scheme);
        let width = words_of_feature(&scheme).expect("runs of words");
        for words in [100, 400] {
            let told = one_changed_word(words, width);
            let (mut found, tries) = (0, 400);
            for text in 0..tries {
                let mut all: Vec<String> = (0..words).map(|at| format!("w{text}x{at}")).collect();
                let first = features.extract(&all.join(" "));
                let (ours, set) = (Simhash::of(&first), first.set.to_vec());
                all[words as usize / 2] = "other".to_owned();
                let second = features.extract(&all.join(" "));
                assert!((resemblance(&set, second.set) - told).abs() < 1e-9);
                let theirs = Simhash::of(&second);
                let distance = ours.zip(theirs).map(|(a, b)| (a.0 ^ b.0).count_ones());
                found += u32::from(distance.is_some_and(|distance| distance <= 3));
            }
            let share = f64::from(found) / f64::from(tries);
            // Four standard deviations of 400 tries, and what small sets differ from the law.
            let expected = recall(told, 3);
            assert!(
                (share - expected).abs() < 0.1,
                "{words}: {share}, not {expected}"
            );
        }
    }
}
