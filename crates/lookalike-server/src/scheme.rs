//! Schemes with which the service can make sketches.

use lookalike::scheme::{ParseSchemeError, TokenHash};
use lookalike::{Scheme, Sketch, Weight};
use lookalike_corpus::HtmlText;
use lookalike_store::{MAX_PLACES, SketchForm};

use crate::problem::{ProblemDetails, SettingField};

/// Returns the default scheme of collections, which is that of `lookalike fingerprint`.
pub fn default_scheme() -> Scheme {
    Scheme::default().sketch(Sketch::Simhash)
}

/// The reason why the service cannot make sketches with a scheme.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnusableScheme {
    /// The text is not a scheme.
    #[error(transparent)]
    Malformed(#[from] ParseSchemeError),
    /// The sketch has too many places.
    #[error(
        "collections hold sketches of up to {MAX_PLACES} places, which {0} has not; `lookalike fingerprint` keeps such sketches in \
         files, of which `lookalike join` and `cluster` find all near-duplicates"
    )]
    TooManyPlaces(Sketch),
    /// The sketch is made from the set of features, but the scheme has weights.
    #[error(
        "weight={0} does nothing for {1}, which is made of the set of features: use weight=set"
    )]
    Weighted(Weight, Sketch),
    /// The kind of sketch is only for comparison with other systems.
    #[error(
        "collections hold fingerprints (sketch=simhash:64, or 32 or 128), super-shingles (super-shingle:GxR) and minima (minhash:N), not {0}; \
         `lookalike dedup` and `pairs` have the method"
    )]
    OtherSketch(Sketch),
    /// The scheme depends on more than the document.
    #[error("the service does not support schemes with {0}")]
    NeedsMore(&'static str),
    /// This kind of HTML extraction is not available.
    #[error("{0}")]
    Extraction(String),
}

/// Parses a scheme and checks that the service can make sketches with it.
pub(crate) fn usable_scheme(text: &str) -> Result<Scheme, ProblemDetails> {
    parse_scheme(text).map_err(|reason| {
        let remedy = "the summary of `lookalike fingerprint` names schemes that can be used";
        ProblemDetails::invalid(reason.to_string(), remedy).of_field(SettingField::Scheme)
    })
}

/// Returns an error for sketches that no collection holds.
fn check_sketch(scheme: &Scheme) -> Result<(), UnusableScheme> {
    let sketch = scheme.sketch;
    match sketch {
        Sketch::Simhash | Sketch::Simhash32 | Sketch::Simhash128 => Ok(()),
        Sketch::MinHash { .. } | Sketch::SuperShingle { .. } => {
            if SketchForm::from(sketch).places() > Some(MAX_PLACES) {
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

/// Parses a scheme and checks that the service can use it, given the table of terms and the learned lines that it may name.
pub(crate) fn parse_scheme(text: &str) -> Result<Scheme, UnusableScheme> {
    let scheme: Scheme = text.parse()?;
    check_sketch(&scheme)?;
    if matches!(scheme.hash, TokenHash::SipHash(_)) {
        return Err(UnusableScheme::NeedsMore("a secret key"));
    }
    // Construct and discard an extractor: this is the only way to find out whether this program has the mode.
    HtmlText::new(scheme.html).map_err(|error| UnusableScheme::Extraction(error.to_string()))?;
    Ok(scheme)
}
