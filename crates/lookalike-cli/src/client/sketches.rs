//! Features and sketches of collections that differ from those of their schemes.

use lookalike::scheme::Shingle;
use lookalike::{Scheme, Sketch};
use lookalike_batch::fingerprints::sketches::MinEqual;
use serde_json::Value;

use crate::failure::Failure;

#[derive(clap::Args)]
pub(crate) struct SketchSettings {
    /// Features of texts, instead of those in the scheme: words:N, chars:N, stops:N or phrases:N
    #[arg(long, value_name = "KIND:N")]
    pub(crate) shingle: Option<Shingle>,

    /// Sketch of each document, instead of the one in the scheme: simhash:64 (or 32 or 128), super-shingle:GxR or minhash:N
    #[arg(long, value_name = "SKETCH")]
    pub(crate) sketch: Option<Sketch>,

    /// Minimum number of super-shingles or minima that near-duplicates have in common: a number, or a share such as 0.8
    #[arg(long, value_name = "NUMBER", conflicts_with = "radius")]
    pub(crate) equal: Option<MinEqual>,
}

impl SketchSettings {
    /// Returns true if features or a sketch are specified, which change a scheme.
    pub(crate) fn change_scheme(&self) -> bool {
        self.shingle.is_some() || self.sketch.is_some()
    }

    /// Returns a scheme with the specified features and sketch.
    pub(crate) fn scheme(&self, scheme: Scheme) -> Scheme {
        let scheme = scheme.shingle(self.shingle.unwrap_or(scheme.shingle));
        scheme.sketch(self.sketch.unwrap_or(scheme.sketch))
    }

    /// Adds the specified options to the settings of a collection. Features and sketch go into the scheme in the settings, or else into `scheme`.
    pub(super) fn add(&self, scheme: &str, body: &mut Value) -> Result<(), Failure> {
        if self.change_scheme() {
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
