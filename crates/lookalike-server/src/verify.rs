//! Verification of neighbours by text or signature.

use lookalike::Signature;
use lookalike::resemblance::{containment, resemblance};
use lookalike_store::{CollectionSettings, Neighbour};
use schemars::JsonSchema;
use serde::Serialize;

use crate::problem::ProblemDetails;
use crate::rounding::rounded;
use crate::sketch_cache::{QuerySketch, SketchCache};
use crate::word_diff::WordDiff;

/// The result of comparing the text or the signature of a neighbour.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "VerifiedNeighbour")]
pub(crate) struct VerifiedNeighbour {
    /// Number of shared features divided by the number of all features of both, from 0 to 1.
    pub(crate) resemblance: f64,
    /// `text`: exact. `signature`: estimated from minima, 128 unless the collection's sketches consist of minima.
    #[schemars(extend("enum" = ["text", "signature"]))]
    by: &'static str,
    /// Share of the features of the content sent that the neighbour has; only for `text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    containment: Option<f64>,
    /// Differences of the texts, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<WordDiff>,
}

/// Compares the content sent with a neighbour. Returns `None` if only the sketch of one of them is known, for texts without features, and
/// for a stored text that takes more memory than there is for one.
/// One stored text is in memory at a time.
pub(crate) fn verify(
    cache: &mut SketchCache,
    settings: &CollectionSettings,
    sketch: &QuerySketch,
    neighbour: &Neighbour,
    diff: bool,
) -> Result<Option<VerifiedNeighbour>, ProblemDetails> {
    let Some(ours) = &sketch.text else {
        return Ok(None);
    };
    // Equal texts without features have nothing in common that could be counted.
    if sketch.key.sketch.is_none() {
        return Ok(None);
    }
    // Do not read a document that has neither.
    if !settings.keep.texts && !settings.keep.signatures {
        return Ok(None);
    }
    // The document as it was when it was found: comparing a newer version would not match the distance shown.
    let document = neighbour.document()?;
    if let Some(theirs) = &document.text {
        let set = match cache.feature_set(&settings.scheme, theirs) {
            // It was stored under a higher limit. The content sent is not to blame.
            Err(problem) if problem.code == "too-large" => return Ok(None),
            set => set?,
        };
        return Ok(Some(VerifiedNeighbour {
            resemblance: rounded(resemblance(&sketch.set, set)),
            by: "text",
            containment: Some(rounded(containment(&sketch.set, set))),
            diff: diff.then(|| WordDiff::of(theirs, ours)),
        }));
    }
    let theirs = document.signature.clone().map(Signature::from);
    let agreement = sketch
        .signature
        .as_ref()
        .zip(theirs.as_ref())
        .and_then(|(ours, theirs)| ours.agreement(theirs).ok());
    Ok(agreement.map(|agreement| VerifiedNeighbour {
        resemblance: rounded(agreement),
        by: "signature",
        containment: None,
        diff: None,
    }))
}
