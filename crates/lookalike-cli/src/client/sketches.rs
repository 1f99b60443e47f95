//! Sketches of collections that differ from those of their schemes.

use lookalike::{Scheme, Sketch};
use lookalike_batch::fingerprints::sketches::MinEqual;
use serde_json::Value;

use crate::failure::Failure;

#[derive(clap::Args)]
pub(crate) struct SketchSettings {
    /// Sketch of each document, instead of the one in the scheme: simhash:64 (or 32 or 128), super-shingle:GxR or minhash:N
    #[arg(long, value_name = "SKETCH")]
    pub(crate) sketch: Option<Sketch>,

    /// Minimum number of super-shingles or minima that near-duplicates have in common: a number, or a share such as 0.8
    #[arg(long, value_name = "NUMBER", conflicts_with = "radius")]
    pub(crate) equal: Option<MinEqual>,
}

impl SketchSettings {
    /// Returns the scheme of a collection with the specified sketch, if there is one.
    pub(crate) fn scheme(&self, of_texts: Scheme) -> Scheme {
        match self.sketch {
            Some(sketch) => of_texts.sketch(sketch),
            None => of_texts,
        }
    }

    /// Adds the specified options to the settings of a collection. A sketch goes into the scheme in the settings, or else into `scheme`.
    pub(super) fn add(&self, scheme: &str, body: &mut Value) -> Result<(), Failure> {
        if self.sketch.is_some() {
            let scheme = scheme_option(body["scheme"].as_str().unwrap_or(scheme))?;
            body["scheme"] = self.scheme(scheme).to_string().into();
        }
        match self.equal {
            // The service tells a number from a share by the type of the JSON value.
            Some(MinEqual::Places(places)) => body["equal"] = places.into(),
            Some(MinEqual::Share(share)) => body["equal"] = share.into(),
            None => {}
        }
        Ok(())
    }
}

/// Parses the value of `--scheme`.
pub(super) fn scheme_option(text: &str) -> Result<Scheme, Failure> {
    text.parse()
        .map_err(|error| Failure::Usage(format!("--scheme: {error}")))
}
