//! Kinds of sketches that files and indexes hold.

use std::fmt;

use lookalike::Sketch;

use super::sketch_shape::SketchShape;

/// Kind of the sketches of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SketchKind {
    /// Fingerprints of so many bits.
    Fingerprints(u32),
    /// Super-shingles or minima.
    Places(SketchShape),
}

/// Such as `64-bit fingerprints` or `6 super-shingles`.
impl fmt::Display for SketchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fingerprints(bits) => write!(f, "{bits}-bit fingerprints"),
            Self::Places(shape) => shape.fmt(f),
        }
    }
}

impl SketchKind {
    /// A sketch of this kind, as a scheme names it; none of more super-shingles than a scheme can have. How many minima a super-shingle is of,
    /// files do not tell, and no comparison asks.
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
