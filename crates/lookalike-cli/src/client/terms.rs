//! Tables of terms with which collections are created.

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use lookalike::{Sketch, Terms, Weight};
use serde_json::Value;

use crate::failure::Failure;
use crate::remedy::terms_error_with_remedy;

/// Adds the table of terms in a file to the settings of a new collection, and a scheme that names it.
pub(super) fn add(path: &Path, scheme: Option<&str>, body: &mut Value) -> Result<(), Failure> {
    let failed = |error: String| Failure::Failed(format!("{}: {error}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    let terms =
        Terms::from_bytes(&bytes, None).map_err(|error| failed(terms_error_with_remedy(&error)))?;
    let scheme = match scheme {
        Some(text) => text
            .parse()
            .map_err(|error| Failure::Usage(format!("--scheme: {error}")))?,
        // The features that were counted, under the weight that a table is usually made for.
        None => terms.scheme().sketch(Sketch::Simhash).weight(Weight::Idf),
    };
    // If the scheme names another table, it is left unchanged, and the check below refuses it.
    let named = scheme.terms(scheme.terms.or(Some(terms.id())));
    terms
        .ensure_fits(&named)
        .map_err(|error| failed(error.to_string()))?;
    body["scheme"] = named.to_string().into();
    body["terms"] = BASE64_STANDARD.encode(terms.to_bytes()).into();
    Ok(())
}
