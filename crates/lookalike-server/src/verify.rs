//! What becomes of a neighbour when more than its fingerprint is compared.

use lookalike::Signature;
use lookalike::resemblance::{containment, resemblance};
use lookalike_store::{CollectionSettings, Neighbour};
use schemars::JsonSchema;
use serde::Serialize;

use crate::diff::Diff;
use crate::problem::Problem;
use crate::sketch::{Bench, Own};

/// What the text or the signature of a neighbour tells.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "VerifiedNeighbour")]
pub(crate) struct Verified {
    /// Shared features over all features, from 0 to 1.
    pub(crate) resemblance: f64,
    /// `text`: exact. `signature`: estimated from 128 minima.
    #[schemars(extend("enum" = ["text", "signature"]))]
    by: &'static str,
    /// Share of the features of what was sent that the neighbour has; of texts only.
    #[serde(skip_serializing_if = "Option::is_none")]
    containment: Option<f64>,
    /// Where the texts differ, when that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<Diff>,
}

/// Six digits are more than anybody reads.
fn rounded(share: f64) -> f64 {
    (share * 1e6).round() / 1e6
}

/// Compares what was sent with a neighbour; `None` where nothing is kept of one of them but the fingerprint. Of all texts
/// that are kept one is in memory at a time.
pub(crate) fn verify(
    bench: &mut Bench,
    settings: &CollectionSettings,
    own: &Own,
    neighbour: &Neighbour,
    diff: bool,
) -> Result<Option<Verified>, Problem> {
    let Some(ours) = &own.text else {
        return Ok(None);
    };
    if !settings.keep.texts && !settings.keep.signatures {
        return Ok(None);
    }
    let document = neighbour.document()?;
    if let Some(theirs) = &document.text {
        let set = bench.feature_set(&settings.scheme, theirs)?;
        return Ok(Some(Verified {
            resemblance: rounded(resemblance(&own.set, set)),
            by: "text",
            containment: Some(rounded(containment(&own.set, set))),
            diff: diff.then(|| Diff::of(theirs, ours)),
        }));
    }
    let theirs = document.signature.clone().map(Signature::from);
    let agreement = own
        .signature
        .as_ref()
        .zip(theirs.as_ref())
        .and_then(|(ours, theirs)| ours.agreement(theirs).ok());
    Ok(agreement.map(|agreement| Verified {
        resemblance: rounded(agreement),
        by: "signature",
        containment: None,
        diff: None,
    }))
}
