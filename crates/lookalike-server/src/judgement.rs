//! The verdict as it is sent, with the score.

use lookalike::Fingerprint;
use lookalike_store::{Answer, Neighbour, Verdict};
use serde::Serialize;
use serde_json::value::RawValue;

/// Bits of a fingerprint.
const BITS: f64 = 64.0;

/// What is said of a document.
#[derive(Debug, Serialize)]
pub(crate) struct Judgement {
    verdict: &'static str,
    /// Distance of the nearest.
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<u32>,
    score: f64,
    /// `None`: the text has no features, and resembles nothing.
    fingerprint: Option<String>,
}

/// A judgement with what it rests on.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    judgement: Judgement,
    neighbours: Vec<Near>,
    /// Whether there are more neighbours than were asked for.
    more: bool,
}

#[derive(Debug, Serialize)]
struct Near {
    id: String,
    distance: u32,
    score: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Box<RawValue>>,
}

/// The score of a distance, from 0 to 1: the resemblance of two equally large sets of features whose fingerprints are expected
/// to differ in so many bits (M10).
///
/// A bit of a simhash differs with probability a/pi, a being the angle between the two weight vectors (Charikar, STOC 2002).
/// So d of 64 bits point to a cosine c = cos(pi d / 64), and two sets of n features that share s have c = s / n and the
/// resemblance s / (2n - s) = c / (2 - c). Beyond 32 bits it is 0.
pub(crate) fn score(distance: u32) -> f64 {
    let angle = std::f64::consts::PI * f64::from(distance) / BITS;
    let cosine = angle.cos().max(0.0);
    let resemblance = cosine / (2.0 - cosine);
    // Six digits are more than 64 bits can tell, and equal everywhere.
    (resemblance * 1e6).round() / 1e6
}

impl Judgement {
    pub(crate) fn new(verdict: Verdict, fingerprint: Option<Fingerprint>) -> Self {
        let (verdict, distance) = match verdict {
            Verdict::New => ("new", None),
            Verdict::Exact => ("exact", Some(0)),
            Verdict::Near { distance } => ("near", Some(distance)),
        };
        Self {
            verdict,
            distance,
            score: distance.map_or(0.0, score),
            fingerprint: fingerprint.map(|code| code.to_string()),
        }
    }

    /// The verdict's name, for metrics.
    pub(crate) fn verdict(&self) -> &'static str {
        self.verdict
    }
}

impl Report {
    pub(crate) fn new(answer: Answer, fingerprint: Option<Fingerprint>) -> Self {
        Self {
            judgement: Judgement::new(answer.verdict, fingerprint),
            neighbours: answer.neighbours.iter().map(Near::new).collect(),
            more: answer.more,
        }
    }

    /// Of a text without features.
    pub(crate) fn nothing() -> Self {
        Self {
            judgement: Judgement::new(Verdict::New, None),
            neighbours: Vec::new(),
            more: false,
        }
    }

    pub(crate) fn verdict(&self) -> &'static str {
        self.judgement.verdict()
    }
}

impl Near {
    fn new(neighbour: &Neighbour) -> Self {
        Self {
            id: neighbour.document.id.clone(),
            distance: neighbour.distance,
            score: score(neighbour.distance),
            metadata: metadata(&neighbour.document.metadata),
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
