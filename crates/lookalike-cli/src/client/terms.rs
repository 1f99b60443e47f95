//! Tables of terms with which collections are created.

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use lookalike::{Sketch, Terms, Weight};
use serde_json::Value;

use super::sketches::scheme_option;
use crate::failure::Failure;
use crate::remedy::terms_error_with_remedy;

/// Adds a scheme to the settings of a collection, and the table of terms in a file, which the scheme then names.
pub(super) fn add_scheme_and_table(
    path: Option<&Path>,
    scheme: Option<&str>,
    body: &mut Value,
) -> Result<(), Failure> {
    let Some(path) = path else {
        if let Some(scheme) = scheme {
            body["scheme"] = scheme.into();
        }
        return Ok(());
    };
    let failed = |error: String| Failure::Failed(format!("{}: {error}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    let terms =
        Terms::from_bytes(&bytes, None).map_err(|error| failed(terms_error_with_remedy(&error)))?;
    let scheme = match scheme {
        Some(text) => scheme_option(text)?,
        // The features that were counted, under the weight that a table is usually made for.
        None => terms.scheme().sketch(Sketch::Simhash).weight(Weight::Idf),
    };
    let is_used = scheme.needs_terms() || scheme.terms.is_some();
    if !is_used {
        return Err(Failure::Usage(
            "the scheme has no use for a table of terms: leave --terms out, or name a weight that needs it in --scheme, such as weight=idf"
                .to_owned(),
        ));
    }
    // If the scheme names another table, it is left unchanged, and the check below refuses it.
    let named = scheme.terms(scheme.terms.or(Some(terms.id())));
    terms
        .ensure_fits(&named)
        .map_err(|error| failed(error.to_string()))?;
    body["scheme"] = named.to_string().into();
    body["terms"] = BASE64_STANDARD.encode(terms.to_bytes()).into();
    Ok(())
}
