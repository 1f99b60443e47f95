//! The verdict as it is sent, with its score.

use std::sync::LazyLock;

use lookalike::{Scheme, Sketch};
use lookalike_store::{
    CollectionSettings, ContentKey, DocumentSketch, MAX_RADIUS, Neighbour, QueryResult, Verdict,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::request::{HexBits, ItemResponse, packed};
use crate::rounding::rounded;
use crate::verify::VerifiedNeighbour;

/// Default number of bits of a fingerprint.
const BITS: u32 = 64;

/// The verdict on a document.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Verdict")]
pub(crate) struct VerdictResponse {
    /// `exact`: a document has the same text. `same-fingerprint`: a document has the same fingerprint, or all super-shingles or minima in
    /// common, but none is known to have the same text. `near`: a document is within the radius, or has enough super-shingles or minima in
    /// common. `new`: none of these.
    #[schemars(extend("enum" = ["new", "near", "same-fingerprint", "exact"]))]
    pub(crate) verdict: &'static str,
    /// Distance of the nearest document: the number of bits of a fingerprint, super-shingles or minima that differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) distance: Option<u32>,
    /// Expected resemblance at this distance, from 0 to 1.
    score: f64,
    /// Fingerprint of the content; `null` if the text has no features and so resembles nothing. Left out for other texts if the collection
    /// holds other sketches.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    fingerprint: Option<Option<HexBits>>,
}

/// A verdict with the documents on which it is based.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "QueryAnswer")]
pub(crate) struct QueryResponse {
    #[serde(flatten)]
    pub(crate) verdict: VerdictResponse,
    /// For `exact`: id of the earliest inserted document with the same text.
    #[serde(skip_serializing_if = "Option::is_none")]
    copy_of: Option<String>,
    /// Largest resemblance of the neighbours shown, if any was verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    resemblance: Option<f64>,
    /// Neighbours, the nearest first.
    neighbours: Vec<NeighbourResponse>,
    /// True if there are more neighbours than the limit.
    more: bool,
    /// Cursor of the neighbours that follow: send the same content with it as `after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A document that is near.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Neighbour")]
struct NeighbourResponse {
    id: String,
    distance: u32,
    score: f64,
    /// True if its text is known to be the same; otherwise left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    same_text: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    metadata: Option<Box<RawValue>>,
    /// Result of the verification, if requested: `null` if only the sketch is known of one of the two, or if the stored text takes too much
    /// memory. Left out for what a check-and-insert did not compare within the time limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<Option<VerifiedNeighbour>>,
}

/// Returns the fingerprint that is shown for a sketch: `null` if there is no sketch, nothing for longer sketches.
pub(crate) fn shown_fingerprint(sketch: Option<&DocumentSketch>) -> Option<Option<HexBits>> {
    match sketch {
        None => Some(None),
        Some(sketch) => HexBits::of(sketch.clone()).map(Some),
    }
}

/// The rule that computes scores from distances in a collection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ScoreRule {
    /// Fingerprints of this number of bits.
    Bits(u32),
    /// Sketches of `places` places, each of which is equal if `rows` minima are.
    Places { places: u32, rows: u32 },
}

impl ScoreRule {
    pub(crate) fn of(settings: &CollectionSettings) -> Self {
        // A scheme that this program cannot parse makes no sketches here, but its fingerprints can still be scored.
        let scheme = settings.scheme.text().parse::<Scheme>().ok();
        match scheme.map(|scheme| scheme.sketch) {
            Some(Sketch::SuperShingle { groups, rows }) => Self::Places {
                places: groups.into(),
                rows: rows.into(),
            },
            Some(Sketch::MinHash { functions }) => Self::Places {
                places: functions.into(),
                rows: 1,
            },
            Some(sketch @ (Sketch::Simhash32 | Sketch::Simhash128)) => {
                Self::Bits(sketch.fingerprint_bits())
            }
            _ => Self::Bits(BITS),
        }
    }

    /// Returns the resemblance, from 0 to 1, at which `distance` bits or places are expected to differ.
    ///
    /// Two sets of resemblance J have a minimum in common with probability J, and a super-shingle of r minima with J^r (Broder 1997).
    pub(crate) fn score(self, distance: u32) -> f64 {
        match self {
            Self::Bits(BITS) => score(distance),
            Self::Bits(bits) => resemblance(distance, bits),
            Self::Places { places, rows } => {
                let equal = f64::from(places.saturating_sub(distance)) / f64::from(places);
                rounded(equal.powf(1.0 / f64::from(rows)))
            }
        }
    }
}

/// Returns the score of a distance, from 0 to 1: the resemblance of two equally large feature sets whose fingerprints are expected to
/// differ in this many bits (Manku et al. 2007, section 1).
///
/// A bit of a simhash differs with probability a/pi, where a is the angle between the two weight vectors (Charikar, STOC 2002). So d of 64
/// bits suggest a cosine c = cos(pi d / 64). Two sets of n features that share s have c = s / n, and the resemblance s / (2n - s) = c / (2
/// - c). Beyond 32 bits it is 0.
fn score(distance: u32) -> f64 {
    /// Scores of all distances up to the largest radius.
    static SCORES: LazyLock<[f64; MAX_RADIUS as usize + 1]> =
        LazyLock::new(|| std::array::from_fn(|distance| resemblance(distance as u32, BITS)));
    // Computed once, because a batch may have a hundred thousand neighbours.
    let known = SCORES.get(distance as usize).copied();
    known.unwrap_or_else(|| resemblance(distance, BITS))
}

fn resemblance(distance: u32, bits: u32) -> f64 {
    let angle = std::f64::consts::PI * f64::from(distance) / f64::from(bits);
    let cosine = angle.cos().max(0.0);
    rounded(cosine / (2.0 - cosine))
}

/// Returns the name of a verdict as it is sent.
pub(crate) fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::New => "new",
        Verdict::Exact => "exact",
        Verdict::SameFingerprint => "same-fingerprint",
        Verdict::Near { .. } => "near",
    }
}

impl VerdictResponse {
    pub(crate) fn new(verdict: Verdict, content: &ContentKey, rule: ScoreRule) -> Self {
        let distance = verdict.distance();
        Self {
            verdict: verdict_name(verdict),
            distance,
            score: distance.map_or(0.0, |distance| rule.score(distance)),
            fingerprint: shown_fingerprint(content.sketch.as_ref()),
        }
    }
}

impl ItemResponse for VerdictResponse {
    fn packed(&self) -> u8 {
        packed::byte(self.distance, false)
    }
}

impl QueryResponse {
    /// Creates the answer to a query; `verified` has the results of verification, if that was requested.
    pub(crate) fn new(
        answer: QueryResult,
        content: &ContentKey,
        rule: ScoreRule,
        verified: Option<Vec<Option<VerifiedNeighbour>>>,
    ) -> Self {
        let all = verified.iter().flatten().flatten();
        // `None`, not 0, if no neighbour could be compared.
        let resemblance = all.map(|verified| verified.resemblance).reduce(f64::max);
        let mut verified = verified.map(Vec::into_iter);
        let neighbours = answer.neighbours.into_iter();
        Self {
            verdict: VerdictResponse::new(answer.verdict, content, rule),
            copy_of: answer.copy_of,
            resemblance,
            neighbours: neighbours
                .map(|near| {
                    let verified = verified.as_mut().map(|all| all.next().flatten());
                    NeighbourResponse::new(near, rule, verified)
                })
                .collect(),
            more: answer.more,
            next: answer.next.map(|cursor| cursor.to_string()),
        }
    }
}

impl ItemResponse for QueryResponse {
    fn packed(&self) -> u8 {
        self.verdict.packed()
    }
}

impl NeighbourResponse {
    fn new(
        neighbour: Neighbour,
        rule: ScoreRule,
        verified: Option<Option<VerifiedNeighbour>>,
    ) -> Self {
        Self {
            distance: neighbour.distance,
            score: rule.score(neighbour.distance),
            same_text: neighbour.same_text,
            metadata: metadata(&neighbour.metadata),
            id: neighbour.id,
            verified,
        }
    }
}

/// Returns stored metadata as JSON. Metadata inserted by the service is JSON; anything else is shown as a string.
pub(crate) fn metadata(bytes: &[u8]) -> Option<Box<RawValue>> {
    if bytes.is_empty() {
        return None;
    }
    let text = String::from_utf8_lossy(bytes);
    RawValue::from_string(text.clone().into_owned())
        .or_else(|_| serde_json::value::to_raw_value(&text))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_falls_from_one_to_zero() {
        assert_eq!(score(0), 1.0);
        assert_eq!(score(32), 0.0);
        assert_eq!(score(64), 0.0);
        assert!((1..=32).all(|distance| score(distance) < score(distance - 1)));
        // cos(3 pi / 64) = 0.989177, and 0.989177 / 1.010823 is the score.
        assert_eq!(score(3), 0.978585);
    }

    #[test]
    fn scores_of_places_are_the_resemblance_that_so_many_equal_ones_point_to() {
        let of = |sketch: &str, distance| {
            let scheme = Scheme::default().sketch(sketch.parse().expect("a sketch"));
            ScoreRule::of(&CollectionSettings::new(&scheme)).score(distance)
        };
        // 96 of 128 minima are equal; a third to the power of 1/14 is e to the power of -0.0784723.
        assert_eq!((of("minhash:128", 0), of("minhash:128", 32)), (1.0, 0.75));
        assert_eq!(of("super-shingle:6x14", 4), 0.924528);
        assert_eq!(of("simhash:64", 3), score(3));
        assert_eq!(of("simhash:128", 6), score(3));
    }

    #[test]
    fn metadata_that_is_no_json_is_shown_as_a_string() {
        assert_eq!(metadata(b"{\"a\": 1}").expect("some").get(), "{\"a\": 1}");
        assert_eq!(metadata(b"{a").expect("some").get(), "\"{a\"");
        assert!(metadata(b"").is_none());
    }
}
