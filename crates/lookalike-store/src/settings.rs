//! What a collection is told once, when it is made.

use std::time::Duration;

use lookalike::hash::xxh3_64;
use lookalike::{Scheme, SchemeId};
use serde::{Deserialize, Serialize};

use crate::document::Document;
use crate::error::{Result, StoreError};

/// Largest radius of a collection.
pub const LARGEST_RADIUS: u32 = 16;

/// The canonical text of a scheme. It is kept as text, so that a collection can be opened by a program that has no
/// key or no dictionary for the scheme.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StoredScheme(String);

impl From<&Scheme> for StoredScheme {
    fn from(scheme: &Scheme) -> Self {
        Self(scheme.to_string())
    }
}

impl StoredScheme {
    /// The canonical text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The id, as of the scheme itself.
    pub fn id(&self) -> SchemeId {
        SchemeId(xxh3_64(self.0.as_bytes(), 0))
    }

    /// The fields in which two texts differ, such as `shingle (words:5 and chars:9)`; empty when they are equal.
    pub fn differences(&self, other: &Self) -> String {
        let value = |scheme: &Self, name: &str| {
            let mut fields = scheme.0.split(' ').filter_map(|word| word.split_once('='));
            let field = fields.find(|field| field.0 == name);
            field.map_or("default".to_owned(), |field| field.1.to_owned())
        };
        let mut names: Vec<&str> = Vec::new();
        for word in self.0.split(' ').chain(other.0.split(' ')) {
            let name = word.split('=').next().unwrap_or(word);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let both = names
            .iter()
            .map(|name| (name, value(self, name), value(other, name)));
        let differing = both.filter(|(_, a, b)| a != b);
        let told: Vec<_> = differing
            .map(|(name, a, b)| format!("{name} ({a} and {b})"))
            .collect();
        told.join(", ")
    }
}

/// What a collection compares and keeps; fixed when it is made, but for the time to live.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectionSettings {
    /// What the fingerprints were made with.
    pub scheme: StoredScheme,
    /// The largest distance of a query, which is answered completely: 0 to [`LARGEST_RADIUS`].
    pub radius: u32,
    /// How long documents live that are inserted without an end; for ever, when `None`.
    pub time_to_live: Option<Duration>,
    /// Which parts of a document are kept.
    pub keep: Keep,
}

/// Which parts of a document are kept, beside id, fingerprint, expiry and metadata; others are dropped when it is
/// inserted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keep {
    /// Signatures and super-shingles.
    pub signatures: bool,
    /// Hashes of paragraphs, with a lookup.
    pub paragraphs: bool,
    /// Texts.
    pub texts: bool,
}

impl CollectionSettings {
    /// A collection for fingerprints of a scheme at a radius of 3; documents live for ever, and nothing else of them
    /// is kept.
    pub fn new(scheme: &Scheme) -> Self {
        Self {
            scheme: scheme.into(),
            radius: 3,
            time_to_live: None,
            keep: Keep::default(),
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.radius > LARGEST_RADIUS {
            let radius = self.radius;
            return Err(StoreError::Invalid(format!(
                "the radius of a collection is at most {LARGEST_RADIUS}, not {radius}"
            )));
        }
        Ok(())
    }

    /// Drops the parts of a document that are not kept.
    pub(crate) fn reduce(&self, document: &mut Document) {
        if !self.keep.signatures {
            document.signature = None;
            document.super_shingles = None;
        }
        if !self.keep.paragraphs {
            document.paragraphs.clear();
        }
        if !self.keep.texts {
            document.text = None;
        }
    }
}
