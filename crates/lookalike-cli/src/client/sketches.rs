//! Sketches of collections other than those of their schemes.

use lookalike::{Scheme, Sketch};
use lookalike_batch::fingerprints::sketches::LeastEqual;
use serde_json::Value;

use crate::failure::Failure;

#[derive(clap::Args)]
pub(super) struct SketchSettings {
    /// Sketch of each document, instead of the one in the scheme: simhash:64 (or 32 or 128), super-shingle:GxR or minhash:N
    #[arg(long, value_name = "SKETCH")]
    sketch: Option<Sketch>,

    /// Minimum number of super-shingles or minima that near-duplicates have in common: a number, or a share such as 0.8
    #[arg(long, value_name = "NUMBER", conflicts_with = "radius")]
    equal: Option<LeastEqual>,
}

impl SketchSettings {
    /// True if nothing is named.
    pub(super) fn is_empty(&self) -> bool {
        self.sketch.is_none() && self.equal.is_none()
    }

    pub(super) fn names_sketch(&self) -> bool {
        self.sketch.is_some()
    }

    /// Adds what is named to the settings of a collection. A sketch goes into the scheme that these have, or else into `scheme`.
    pub(super) fn add(&self, scheme: &str, body: &mut Value) -> Result<(), Failure> {
        if let Some(sketch) = self.sketch {
            let text = body["scheme"].as_str().unwrap_or(scheme);
            let scheme: Scheme = text
                .parse()
                .map_err(|error| Failure::Usage(format!("--scheme: {error}")))?;
            body["scheme"] = scheme.sketch(sketch).to_string().into();
        }
        match self.equal {
            Some(LeastEqual::Places(places)) => body["equal"] = places.into(),
            Some(LeastEqual::Share(share)) => body["equal"] = share.into(),
            None => {}
        }
        Ok(())
    }
}
