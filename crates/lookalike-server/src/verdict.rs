//! The verdict as it is sent, with the score.

use std::sync::LazyLock;

use lookalike::Fingerprint;
use lookalike_store::{ContentKey, LARGEST_RADIUS, Neighbour, QueryResult, Verdict};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::request::{ItemResponse, packed};
use crate::verify::VerifiedNeighbour;

/// Bits of a fingerprint.
const BITS: f64 = 64.0;

/// The verdict on a document.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Verdict")]
pub(crate) struct VerdictResponse {
    /// `exact`: a document has the same text. `same-fingerprint`: one has the same fingerprint, but none is known to have the same
    /// text. `near`: one is within the radius. `new`: none is.
    #[schemars(extend("enum" = ["new", "near", "same-fingerprint", "exact"]))]
    verdict: &'static str,
    /// Distance of the nearest.
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<u32>,
    /// From 0 to 1.
    score: f64,
    /// `null`: the text has no features, and resembles nothing.
    #[serde(serialize_with = "digits")]
    #[schemars(with = "Option<String>")]
    fingerprint: Option<Fingerprint>,
}

/// A judgement with what it rests on.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "QueryAnswer")]
pub(crate) struct QueryResponse {
    #[serde(flatten)]
    verdict: VerdictResponse,
    /// Id of the document that was inserted first of those with the same text; of `exact`.
    #[serde(skip_serializing_if = "Option::is_none")]
    copy_of: Option<String>,
    /// The largest resemblance of the neighbours that are shown, where any was verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    resemblance: Option<f64>,
    /// Nearest first.
    neighbours: Vec<NeighbourResponse>,
    /// True if there are more neighbours than the limit.
    more: bool,
    /// Cursor of the neighbours that follow: query the same content with `after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A document within the radius.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Neighbour")]
struct NeighbourResponse {
    id: String,
    distance: u32,
    score: f64,
    /// True, and else left out, if its text is known to be the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    same_text: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    metadata: Option<Box<RawValue>>,
    /// Value, if it was asked for: `null` where only the fingerprint is known of one of the two.
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<Option<VerifiedNeighbour>>,
}

/// A fingerprint as it is sent.
pub(crate) fn digits<S: Serializer>(
    code: &Option<Fingerprint>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match code {
        Some(code) => serializer.collect_str(code),
        None => serializer.serialize_none(),
    }
}

/// The score of a distance, from 0 to 1: the resemblance of two equally large sets of features whose fingerprints are expected
/// to differ in so many bits (Manku et al. 2007, section 1).
///
/// A bit of a simhash differs with probability a/pi, a being the angle between the two weight vectors (Charikar, STOC 2002).
/// So d of 64 bits point to a cosine c = cos(pi d / 64), and two sets of n features that share s have c = s / n and the
/// resemblance s / (2n - s) = c / (2 - c). Beyond 32 bits it is 0.
pub(crate) fn score(distance: u32) -> f64 {
    /// Of each distance that a collection may have a radius of.
    static SCORES: LazyLock<[f64; LARGEST_RADIUS as usize + 1]> =
        LazyLock::new(|| std::array::from_fn(|distance| resemblance(distance as u32)));
    // Computed once: a batch may have a hundred thousand neighbours.
    let known = SCORES.get(distance as usize).copied();
    known.unwrap_or_else(|| resemblance(distance))
}

fn resemblance(distance: u32) -> f64 {
    let angle = std::f64::consts::PI * f64::from(distance) / BITS;
    let cosine = angle.cos().max(0.0);
    let resemblance = cosine / (2.0 - cosine);
    // Six digits are more than 64 bits can tell, and equal everywhere.
    (resemblance * 1e6).round() / 1e6
}

/// The name of a verdict, as it is sent.
pub(crate) fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::New => "new",
        Verdict::Exact => "exact",
        Verdict::SameFingerprint => "same-fingerprint",
        Verdict::Near { .. } => "near",
    }
}

impl VerdictResponse {
    pub(crate) fn new(verdict: Verdict, content: &ContentKey) -> Self {
        let distance = verdict.distance();
        Self {
            verdict: verdict_name(verdict),
            distance,
            score: distance.map_or(0.0, score),
            fingerprint: content.fingerprint,
        }
    }

    /// The verdict's name, for metrics.
    pub(crate) fn verdict(&self) -> &'static str {
        self.verdict
    }

    pub(crate) fn distance(&self) -> Option<u32> {
        self.distance
    }
}

impl ItemResponse for VerdictResponse {
    fn packed(&self) -> u8 {
        packed::byte(self.distance, false)
    }
}

impl QueryResponse {
    /// Of what was found; `verified` tells more of each neighbour, when that was asked for.
    pub(crate) fn new(
        answer: QueryResult,
        content: &ContentKey,
        verified: Option<Vec<Option<VerifiedNeighbour>>>,
    ) -> Self {
        let all = verified.iter().flatten().flatten();
        let resemblance = all.map(|verified| verified.resemblance).reduce(f64::max);
        let mut verified = verified.map(Vec::into_iter);
        let neighbours = answer.neighbours.into_iter();
        Self {
            verdict: VerdictResponse::new(answer.verdict, content),
            copy_of: answer.copy_of,
            resemblance,
            neighbours: neighbours
                .map(|near| {
                    NeighbourResponse::new(near, verified.as_mut().map(|all| all.next().flatten()))
                })
                .collect(),
            more: answer.more,
            next: answer.next.map(|cursor| cursor.to_string()),
        }
    }

    pub(crate) fn verdict(&self) -> &'static str {
        self.verdict.verdict()
    }

    pub(crate) fn distance(&self) -> Option<u32> {
        self.verdict.distance()
    }
}

impl ItemResponse for QueryResponse {
    fn packed(&self) -> u8 {
        self.verdict.packed()
    }
}

impl NeighbourResponse {
    fn new(neighbour: Neighbour, verified: Option<Option<VerifiedNeighbour>>) -> Self {
        Self {
            distance: neighbour.distance,
            score: score(neighbour.distance),
            same_text: neighbour.same_text,
            metadata: metadata(&neighbour.metadata),
            id: neighbour.id,
            verified,
        }
    }
}

/// Stored metadata as JSON: what was inserted here is; anything else is shown as a string.
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
        // cos(3 pi / 64) = 0.989177, of which 0.989177 / 1.010823.
        assert_eq!(score(3), 0.978585);
    }

    #[test]
    fn metadata_that_is_no_json_is_shown_as_a_string() {
        assert_eq!(metadata(b"{\"a\": 1}").expect("some").get(), "{\"a\": 1}");
        assert_eq!(metadata(b"{a").expect("some").get(), "\"{a\"");
        assert!(metadata(b"").is_none());
    }
}
