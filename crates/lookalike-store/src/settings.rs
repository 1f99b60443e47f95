//! Settings of a collection, and tuning parameters of a store.

use std::fmt;
use std::time::Duration;

use lookalike::hash::xxh3_64;
use lookalike::scheme::ParseOptionError;
use lookalike::{ParagraphRule, Scheme, SchemeId, Sketch};
use serde::{Deserialize, Serialize};

use crate::document::StoredDocument;
use crate::document_sketch::{MAX_PLACES, SketchForm};
use crate::error::{Result, StoreError};
use crate::pair_rule::PairRule;

/// Default radius of fingerprints.
const RADIUS: u32 = 3;

/// The canonical text of a scheme. It is kept as text, so that a program without a key or dictionary of the scheme can still open the
/// collection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StoredScheme(String);

impl From<&Scheme> for StoredScheme {
    fn from(scheme: &Scheme) -> Self {
        Self(scheme.to_string())
    }
}

impl StoredScheme {
    /// Returns the canonical text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Returns the id, which equals that of the parsed scheme.
    pub fn id(&self) -> SchemeId {
        SchemeId(xxh3_64(self.0.as_bytes(), 0))
    }

    /// Returns the form of its sketches.
    pub fn sketch_form(&self) -> SketchForm {
        // A sketch that cannot be parsed does not have several places either.
        let sketch = self.sketch().ok().flatten();
        sketch.map_or(SketchForm::Fingerprint, SketchForm::from)
    }

    /// Parses the sketch; `None` if the scheme does not name one.
    fn sketch(&self) -> std::result::Result<Option<Sketch>, ParseOptionError> {
        // This reads the text for the reason given below.
        let mut fields = self.0.split(' ');
        let sketch = fields.find_map(|field| field.strip_prefix("sketch="));
        sketch.map(str::parse).transpose()
    }

    /// Describes the fields in which two schemes differ, such as `shingle (words:5 and chars:9)`; empty if they are equal.
    pub fn differences(&self, other: &Self) -> String {
        // This compares texts, not parsed schemes: the collection may have a scheme for which this program has no dictionary.
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

/// The settings of a collection. All but the time to live are fixed at its creation.
///
/// ```
/// use std::time::Duration;
/// use lookalike::Scheme;
/// use lookalike_store::{CollectionSettings, RetainedParts};
///
/// let settings = CollectionSettings::new(&Scheme::default())
///     .radius(6)
///     .time_to_live(Duration::from_secs(86_400))
///     .keep(RetainedParts::default().texts(true));
/// assert_eq!(settings.radius, 6);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CollectionSettings {
    /// The scheme of the sketches.
    pub scheme: StoredScheme,
    /// Largest distance of a query: 0 to [`crate::MAX_RADIUS`] bits for 64-bit fingerprints, or for other sketches the number of bits
    /// or places that may differ, up to [`SketchForm::largest_radius`]. Answers within it are complete.
    pub radius: u32,
    /// Lifetime of documents that are inserted without an expiry; `None` means forever.
    pub time_to_live: Option<Duration>,
    /// Optional parts of documents that the collection keeps.
    pub keep: RetainedParts,
    /// Rule by which callers divide texts into paragraphs; the store itself only records it.
    pub paragraphs: ParagraphRule,
    /// Rule that tells which pairs of documents are compared.
    pub pairs: PairRule,
}

lookalike::settings! {
    /// Optional parts of a document that a collection keeps besides id, sketch, expiry and metadata. Inserts drop the others. By default only
    /// hashes of texts are kept.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RetainedParts {
        /// Hashes of texts, with an index. Without them no text is known to equal another.
        text_hashes: bool = true,
        /// Signatures and super-shingles, in collections that find documents by other sketches.
        signatures: bool = false,
        /// Hashes and fingerprints of paragraphs, with an index.
        paragraphs: bool = false,
        /// Texts.
        texts: bool = false,
    }
}

impl fmt::Display for RetainedParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.text_hashes, "text_hashes"),
            (self.signatures, "signatures"),
            (self.paragraphs, "paragraphs"),
            (self.texts, "texts"),
        ];
        let kept: Vec<&str> = parts
            .into_iter()
            .filter_map(|(is_kept, name)| is_kept.then_some(name))
            .collect();
        f.write_str(if kept.is_empty() { "none" } else { "" })?;
        f.write_str(&kept.join("+"))
    }
}

/// The form of sketches and the radiuses that the indexes of a collection are built for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexShape {
    pub(crate) form: SketchForm,
    /// Largest distance of neighbouring documents.
    pub(crate) radius: u32,
    /// Largest distance of similar paragraphs.
    pub(crate) paragraph_radius: u32,
    /// True if documents have categories or lengths.
    pub(crate) has_traits: bool,
}

/// Returns an error for a radius larger than that of the collection, with which a search would miss documents.
pub(crate) fn check_radius(asked: u32, most: u32) -> Result<()> {
    if asked > most {
        return Err(StoreError::Invalid(format!(
            "radius {asked} is larger than {most}, the radius of the collection"
        )));
    }
    Ok(())
}

lookalike::settings! {
    /// Memory limits and merge policy of a store.
    #[derive(Clone, Copy, Debug)]
    pub struct StoreTuning {
        /// Size in bytes of the documents in memory at which they are flushed to a run.
        memory_bytes: usize = 64 << 20,
        /// Number of documents in memory at which they are flushed to a run.
        memory_documents: usize = 1 << 18,
        /// Step in bytes by which the log file grows. A quarter of it is reserved for deletes on a full disk.
        log_step: u64 = 1 << 20,
        /// Number of runs of similar size that are merged into one.
        fan_out: usize = 4,
        /// Largest number of fingerprints of a run whose tables are built when it is opened instead of being stored.
        small_run: usize = 1 << 16,
        /// Memory in bytes for sorting while a run is written.
        scratch_bytes: usize = 256 << 20,
    }
}

lookalike::setters! {
    CollectionSettings {
        scheme: StoredScheme,
        radius: u32,
        keep: RetainedParts,
        paragraphs: ParagraphRule,
        pairs: PairRule,
    }
}

impl CollectionSettings {
    /// Creates settings for the sketches of a scheme: radius 3, documents live forever, and hashes of texts are the only optional part that
    /// is kept.
    pub fn new(scheme: &Scheme) -> Self {
        Self {
            scheme: scheme.into(),
            radius: RADIUS,
            time_to_live: None,
            keep: RetainedParts::default(),
            paragraphs: ParagraphRule::default(),
            pairs: PairRule::default(),
        }
    }

    /// Sets the lifetime of documents that are inserted without an expiry; `None` means forever.
    #[must_use]
    pub fn time_to_live(mut self, time_to_live: impl Into<Option<Duration>>) -> Self {
        self.time_to_live = time_to_live.into();
        self
    }

    /// Returns the form of the sketches.
    pub fn sketch_form(&self) -> SketchForm {
        self.scheme.sketch_form()
    }

    /// Returns the largest distance of similar paragraphs, which any collection finds by 64-bit fingerprints.
    pub fn paragraph_radius(&self) -> u32 {
        match self.sketch_form() {
            SketchForm::Fingerprint => self.radius,
            // The radius of the collection counts places, or bits of another width.
            SketchForm::Bits(_) | SketchForm::SuperShingles(_) | SketchForm::Minima(_) => RADIUS,
        }
    }

    pub(crate) fn index_shape(&self) -> IndexShape {
        IndexShape {
            form: self.sketch_form(),
            radius: self.radius,
            paragraph_radius: self.paragraph_radius(),
            has_traits: self.pairs.category.is_some() || self.pairs.length_share.is_some(),
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.scheme.sketch().map_err(StoreError::BadSketch)?;
        let (radius, form) = (self.radius, self.sketch_form());
        if let Some(places) = form.places().filter(|&places| places > MAX_PLACES) {
            return Err(StoreError::Invalid(format!(
                "sketches have {places} places, more than the limit of {MAX_PLACES}"
            )));
        }
        let most = form.largest_radius();
        if radius > most {
            return Err(StoreError::Invalid(format!(
                "radius {radius} is too large: collections of such sketches take 0 to {most}"
            )));
        }
        self.pairs.check()
    }

    /// Drops the optional parts of a document that are not kept.
    pub(crate) fn reduce(&self, document: &mut StoredDocument) {
        if !self.keep.text_hashes {
            document.text_hash = None;
        }
        // The sketch that finds documents is always kept, longer ones besides it only if the settings say so.
        let (form, keeps) = (self.sketch_form(), self.keep.signatures);
        if form != SketchForm::Fingerprint {
            document.fingerprint = None;
        }
        if !matches!(form, SketchForm::Bits(_)) {
            document.wide_fingerprint = None;
        }
        if !keeps && !matches!(form, SketchForm::Minima(_)) {
            document.signature = None;
        }
        if !keeps && !matches!(form, SketchForm::SuperShingles(_)) {
            document.super_shingles = None;
        }
        if !self.keep.paragraphs {
            document.paragraphs.clear();
        }
        if !self.keep.texts {
            document.text = None;
        }
        document.traits = self.pairs.relevant_traits(document.traits);
    }
}
