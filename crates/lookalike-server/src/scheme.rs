//! Schemes under which the service makes sketches.

use lookalike::scheme::{ParseSchemeError, TokenHash};
use lookalike::{Scheme, Sketch, Weight};
use lookalike_corpus::HtmlText;
use lookalike_store::{MOST_PLACES, SketchForm};

use crate::problem::ProblemDetails;

/// The default scheme of collections: that of `lookalike fingerprint`.
pub fn default_scheme() -> Scheme {
    Scheme::default().sketch(Sketch::Simhash)
}

/// A scheme under which the service cannot make sketches.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnusableScheme {
    /// The text is not a scheme.
    #[error(transparent)]
    Malformed(#[from] ParseSchemeError),
    /// The sketch has too many places.
    #[error(
        "collections hold sketches of up to {MOST_PLACES} places, which {0} has not; `lookalike fingerprint` keeps such sketches in \
         files, of which `lookalike join` and `cluster` find all near-duplicates"
    )]
    TooManyPlaces(Sketch),
    /// The sketch is made of a set, and the features have weights.
    #[error(
        "weight={0} does nothing for {1}, which is made of the set of features: use weight=set"
    )]
    Weighted(Weight, Sketch),
    /// The sketch is for comparison with other systems only.
    #[error(
        "collections hold fingerprints (sketch=simhash:64, or 32 or 128), super-shingles (super-shingle:GxR) and minima (minhash:N), not {0}; \
         `lookalike dedup` and `pairs` have the method"
    )]
    OtherSketch(Sketch),
    /// The scheme depends on more than the document.
    #[error("the service does not support schemes with {0}")]
    NeedsMore(&'static str),
    /// The extraction of HTML is not available.
    #[error("{0}")]
    Extraction(String),
}

/// Reads a scheme under which the service can make sketches.
pub(crate) fn usable_scheme(text: &str) -> Result<Scheme, ProblemDetails> {
    parse_scheme(text).map_err(|reason| {
        let remedy = "the summary of `lookalike fingerprint` names schemes that can be used";
        ProblemDetails::invalid(reason.to_string(), remedy)
    })
}

/// Refuses sketches that no collection holds.
fn check_sketch(scheme: &Scheme) -> Result<(), UnusableScheme> {
    let sketch = scheme.sketch;
    match sketch {
        Sketch::Simhash | Sketch::Simhash32 | Sketch::Simhash128 => Ok(()),
        Sketch::MinHash { .. } | Sketch::SuperShingle { .. } => {
            if SketchForm::from(sketch).places() > Some(MOST_PLACES) {
                return Err(UnusableScheme::TooManyPlaces(sketch));
            }
            match scheme.weight {
                Weight::Set => Ok(()),
                weight => Err(UnusableScheme::Weighted(weight, sketch)),
            }
        }
        _ => Err(UnusableScheme::OtherSketch(sketch)),
    }
}

/// Reads a scheme and checks that the service can use it, with the table of terms and the learned lines that it may name.
pub(crate) fn parse_scheme(text: &str) -> Result<Scheme, UnusableScheme> {
    let scheme: Scheme = text.parse()?;
    check_sketch(&scheme)?;
    if matches!(scheme.hash, TokenHash::SipHash(_)) {
        return Err(UnusableScheme::NeedsMore("a secret key"));
    }
    // Made and thrown away: whether this program has the mode is known only by trying.
    HtmlText::new(scheme.html).map_err(|error| UnusableScheme::Extraction(error.to_string()))?;
    Ok(scheme)
}
