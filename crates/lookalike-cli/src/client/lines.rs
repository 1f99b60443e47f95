//! Learned lines with which collections are created.

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use lookalike::scheme::Boilerplate;
use lookalike_corpus::{BoilerplateFileError, BoilerplateLines};
use lookalike_server::default_scheme;
use serde_json::Value;

use super::sketches::scheme_option;
use crate::failure::Failure;

/// Adds the lines of a file to the settings of a new collection, and to its scheme unless that already names lines.
pub(super) fn add(path: &Path, body: &mut Value) -> Result<(), Failure> {
    let failed = |error: String| Failure::Failed(format!("{}: {error}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    let lines = BoilerplateLines::from_bytes(&bytes).map_err(|error| match error {
        BoilerplateFileError::NotLines => {
            failed(format!("{error}: make one with --boilerplate-lines"))
        }
        _ => failed(error.to_string()),
    })?;
    let scheme = body["scheme"].as_str().map(scheme_option).transpose()?;
    let scheme = scheme.unwrap_or_else(default_scheme);
    // If the scheme names other lines, it is left unchanged, and the service refuses it.
    let named = match scheme.boilerplate {
        Boilerplate::Kept => scheme.boilerplate(lines.scheme()),
        Boilerplate::Removed { .. } => scheme,
    };
    // The scheme names the lines by their id, so that collections with other lines are never taken for this one.
    body["scheme"] = named.to_string().into();
    body["boilerplate"] = BASE64_STANDARD.encode(&bytes).into();
    Ok(())
}
