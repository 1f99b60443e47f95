//! Kinds of sketches in files and indexes.

use std::fmt;

use lookalike::Sketch;

use super::sketch_shape::SketchShape;

/// Kind of the sketches of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SketchKind {
    /// Fingerprints of the given number of bits.
    Fingerprints(u32),
    /// Super-shingles or minima.
    Places(SketchShape),
}

/// Formats the kind, such as `64-bit fingerprints` or `6 super-shingles`.
impl fmt::Display for SketchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fingerprints(bits) => write!(f, "{bits}-bit fingerprints"),
            Self::Places(shape) => shape.fmt(f),
        }
    }
}

impl SketchKind {
    /// Returns a sketch of this kind as a scheme names it. `None` if it has more super-shingles than a scheme can have. Files do not store how many
    /// minima a super-shingle has, and no comparison depends on it.
    #[must_use]
    pub fn sketch(self) -> Option<Sketch> {
        match self {
            Self::Fingerprints(32) => Some(Sketch::Simhash32),
            Self::Fingerprints(128) => Some(Sketch::Simhash128),
            Self::Fingerprints(_) => Some(Sketch::Simhash),
            Self::Places(shape) => shape.sketch(),
        }
    }
}
