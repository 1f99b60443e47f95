//! The sketches that documents are found by: a fingerprint, or several places, each of which is equal in two sketches or not.

use lookalike::hash::xxh3_64;
use lookalike::{Fingerprint, Sketch};

use crate::codec::fixed;
use crate::document::StoredDocument;
use crate::settings::LARGEST_RADIUS;

/// Most places of a sketch.
pub const MOST_PLACES: usize = 256;
/// Most places in which neighbours differ, as in lists of pairs.
const MOST_APART: u32 = 128;

/// The form of the sketches of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SketchForm {
    /// A fingerprint of 64 bits; a distance counts bits.
    Fingerprint,
    /// So many super-shingles; a distance counts those that differ.
    SuperShingles(usize),
    /// The minima of so many functions; a distance counts those that differ.
    Minima(usize),
}

/// A sketch that a document is found by.
///
/// ```
/// use lookalike::Fingerprint;
/// use lookalike_store::{DocumentSketch, SketchForm};
///
/// assert_eq!(DocumentSketch::from(Fingerprint(7)).form(), SketchForm::Fingerprint);
/// assert_eq!(DocumentSketch::Minima(vec![3, 1, 2]).form(), SketchForm::Minima(3));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DocumentSketch {
    /// A fingerprint.
    Fingerprint(Fingerprint),
    /// Super-shingles.
    SuperShingles(Vec<u64>),
    /// Minima of a signature.
    Minima(Vec<u32>),
}

impl From<Fingerprint> for DocumentSketch {
    fn from(fingerprint: Fingerprint) -> Self {
        Self::Fingerprint(fingerprint)
    }
}

impl From<Sketch> for SketchForm {
    /// The form of a scheme's sketches. A scheme without sketches of several places is one of fingerprints here: what is
    /// inserted decides.
    fn from(sketch: Sketch) -> Self {
        match sketch {
            Sketch::SuperShingle { groups, .. } => Self::SuperShingles(groups.into()),
            Sketch::MinHash { functions } => Self::Minima(functions.into()),
            _ => Self::Fingerprint,
        }
    }
}

impl SketchForm {
    /// Number of places; `None` of a fingerprint.
    pub fn places(self) -> Option<usize> {
        match self {
            Self::Fingerprint => None,
            Self::SuperShingles(places) | Self::Minima(places) => Some(places),
        }
    }

    /// Largest radius of a collection of such sketches.
    pub fn largest_radius(self) -> u32 {
        let of_places = |places: usize| (places.saturating_sub(1) as u32).min(MOST_APART);
        self.places().map_or(LARGEST_RADIUS, of_places)
    }

    /// The sketch that a document is found by; `None` of a document without one, or with one of another form.
    pub fn of_document(self, document: &StoredDocument) -> Option<DocumentSketch> {
        let sketch = match self {
            Self::Fingerprint => document.fingerprint.map(DocumentSketch::Fingerprint),
            Self::SuperShingles(_) => {
                let values = document.super_shingles.clone();
                values.map(DocumentSketch::SuperShingles)
            }
            Self::Minima(_) => document.signature.clone().map(DocumentSketch::Minima),
        };
        sketch.filter(|sketch| sketch.form() == self)
    }

    /// Bytes of a place, or of a fingerprint.
    pub(crate) fn place_bytes(self) -> usize {
        match self {
            Self::Fingerprint | Self::SuperShingles(_) => 8,
            Self::Minima(_) => 4,
        }
    }

    /// Bytes of a sketch.
    pub(crate) fn bytes(self) -> usize {
        self.places().unwrap_or(1) * self.place_bytes()
    }
}

impl DocumentSketch {
    /// Its form.
    pub fn form(&self) -> SketchForm {
        match self {
            Self::Fingerprint(_) => SketchForm::Fingerprint,
            Self::SuperShingles(values) => SketchForm::SuperShingles(values.len()),
            Self::Minima(values) => SketchForm::Minima(values.len()),
        }
    }

    /// Its values, little-endian: so indexes and runs have it.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Fingerprint(code) => code.0.to_le_bytes().to_vec(),
            Self::SuperShingles(values) => {
                values.iter().flat_map(|one| one.to_le_bytes()).collect()
            }
            Self::Minima(values) => values.iter().flat_map(|one| one.to_le_bytes()).collect(),
        }
    }
}

/// A number of the bytes of a sketch: of a fingerprint itself, of longer ones a hash.
pub(crate) fn sketch_key(bytes: &[u8]) -> u64 {
    if bytes.len() == 8 {
        fixed(bytes)
    } else {
        xxh3_64(bytes, 0)
    }
}
