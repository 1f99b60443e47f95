//! Sketches that documents are found by: a fingerprint, or several places in each of which two sketches agree or differ.

use std::fmt;

use lookalike::hash::xxh3_64;
use lookalike::sketch::WideFingerprint;
use lookalike::{Fingerprint, Sketch, SketchValue};

use crate::codec::fixed;

/// Largest radius of a collection of 64-bit fingerprints.
pub const MAX_RADIUS: u32 = 16;
/// Maximum number of places of a sketch.
pub const MAX_PLACES: usize = 256;
/// Maximum number of places in which neighbours may differ, as in lists of pairs.
const MAX_DIFFERING: u32 = 128;

/// The form of the sketches of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SketchForm {
    /// A 64-bit fingerprint; the distance is the number of bits that differ.
    Fingerprint,
    /// A fingerprint of 32 or 128 bits; the distance is the number of bits that differ.
    Bits(u32),
    /// This number of super-shingles; the distance is the number of them that differ.
    SuperShingles(usize),
    /// The minima of this number of functions; the distance is the number of them that differ.
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
    /// A fingerprint of the given number of bits, 32 or 128.
    Bits(WideFingerprint, u32),
    /// Super-shingles.
    SuperShingles(Vec<u64>),
    /// The minima of a signature.
    Minima(Vec<u32>),
}

impl From<Fingerprint> for DocumentSketch {
    fn from(fingerprint: Fingerprint) -> Self {
        Self::Fingerprint(fingerprint)
    }
}

/// Error for a sketch by which no collection finds documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no collection finds documents by {0}")]
pub struct UnsupportedSketch(&'static str);

impl TryFrom<SketchValue> for DocumentSketch {
    type Error = UnsupportedSketch;

    /// Converts what a [`Sketcher`](lookalike::Sketcher) returns.
    ///
    /// ```
    /// use lookalike::sketch::WideFingerprint;
    /// use lookalike::{Fingerprint, SketchValue};
    /// use lookalike_store::DocumentSketch;
    ///
    /// let simhash = SketchValue::Bits(WideFingerprint(7), 64);
    /// assert_eq!(DocumentSketch::try_from(simhash), Ok(DocumentSketch::from(Fingerprint(7))));
    /// assert!(DocumentSketch::try_from(SketchValue::Set([1, 2].into())).is_err());
    /// ```
    fn try_from(value: SketchValue) -> Result<Self, UnsupportedSketch> {
        match value {
            SketchValue::Bits(code, 64) => Ok(Self::Fingerprint(Fingerprint(code.0 as u64))),
            SketchValue::Bits(code, bits @ (32 | 128)) => Ok(Self::low_bits(code, bits)),
            SketchValue::Bits(..) => Err(UnsupportedSketch("fingerprints of this width")),
            SketchValue::Signature(minima) => Ok(Self::Minima(minima.into())),
            SketchValue::Hashes(hashes) => {
                let whole: Option<Vec<u64>> = hashes.into_iter().collect();
                whole
                    .map(Self::SuperShingles)
                    .ok_or(UnsupportedSketch("hashes of parts of which one is empty"))
            }
            SketchValue::Set(_) => Err(UnsupportedSketch("sets of features")),
        }
    }
}

impl From<Sketch> for SketchForm {
    /// Returns the form of a scheme's sketches. Schemes whose sketch is neither a wide fingerprint nor several places get the form of
    /// fingerprints; the documents that are inserted decide.
    fn from(sketch: Sketch) -> Self {
        match sketch {
            Sketch::Simhash32 | Sketch::Simhash128 => Self::Bits(sketch.fingerprint_bits()),
            Sketch::SuperShingle { groups, .. } => Self::SuperShingles(groups.into()),
            Sketch::MinHash { functions } => Self::Minima(functions.into()),
            _ => Self::Fingerprint,
        }
    }
}

impl fmt::Display for SketchForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fingerprint => f.write_str("fingerprints of 64 bits"),
            Self::Bits(bits) => write!(f, "fingerprints of {bits} bits"),
            Self::SuperShingles(places) => write!(f, "sketches of {places} super-shingles"),
            Self::Minima(places) => write!(f, "signatures of {places} minima"),
        }
    }
}

impl SketchForm {
    /// Returns the number of places, or `None` for fingerprints.
    pub fn places(self) -> Option<usize> {
        match self {
            Self::Fingerprint | Self::Bits(_) => None,
            Self::SuperShingles(places) | Self::Minima(places) => Some(places),
        }
    }

    /// Returns the largest radius of a collection of such sketches.
    pub fn largest_radius(self) -> u32 {
        // At least one part, a place or a byte of a fingerprint, must be left in which neighbours agree.
        let of_parts = |parts: usize| (parts.saturating_sub(1) as u32).min(MAX_DIFFERING);
        match self {
            Self::Fingerprint => MAX_RADIUS,
            Self::Bits(_) | Self::SuperShingles(_) | Self::Minima(_) => of_parts(self.parts()),
        }
    }

    /// Returns the number of parts that bands are made of: places, or bytes of a fingerprint.
    pub(crate) fn parts(self) -> usize {
        match self {
            Self::Fingerprint => 8,
            Self::Bits(bits) => bits as usize / 8,
            Self::SuperShingles(places) | Self::Minima(places) => places,
        }
    }

    /// Returns the size of a part in bytes.
    pub(crate) fn part_bytes(self) -> usize {
        match self {
            Self::Fingerprint | Self::Bits(_) => 1,
            Self::SuperShingles(_) => 8,
            Self::Minima(_) => 4,
        }
    }

    /// Returns the size of a sketch in bytes.
    pub(crate) fn bytes(self) -> usize {
        self.parts() * self.part_bytes()
    }
}

impl DocumentSketch {
    /// Creates a fingerprint from the lowest `bits` bits of `code`.
    pub(crate) fn low_bits(code: WideFingerprint, bits: u32) -> Self {
        // A caller may ask for a form with any number of bits.
        let mask = u128::MAX
            .checked_shr(128_u32.saturating_sub(bits))
            .unwrap_or(0);
        Self::Bits(WideFingerprint(code.0 & mask), bits)
    }

    /// Returns its form.
    pub fn form(&self) -> SketchForm {
        match self {
            Self::Fingerprint(_) => SketchForm::Fingerprint,
            Self::Bits(_, bits) => SketchForm::Bits(*bits),
            Self::SuperShingles(values) => SketchForm::SuperShingles(values.len()),
            Self::Minima(values) => SketchForm::Minima(values.len()),
        }
    }

    /// Returns its values as little-endian bytes, as indexes and runs store them.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Fingerprint(code) => code.0.to_le_bytes().to_vec(),
            Self::Bits(code, bits) => code.0.to_le_bytes()[..*bits as usize / 8].to_vec(),
            Self::SuperShingles(values) => {
                values.iter().flat_map(|one| one.to_le_bytes()).collect()
            }
            Self::Minima(values) => values.iter().flat_map(|one| one.to_le_bytes()).collect(),
        }
    }
}

/// Returns a 64-bit key for the bytes of a sketch: the fingerprint itself if they are eight, otherwise a hash.
pub(crate) fn sketch_key(bytes: &[u8]) -> u64 {
    // A 64-bit fingerprint names itself in the tables (`RunSketches::for_each`), and a single super-shingle is a hash already.
    if bytes.len() == 8 {
        fixed(bytes)
    } else {
        xxh3_64(bytes, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_of_impossible_widths_panicked() {
        let code = WideFingerprint(u128::MAX);
        for (bits, low) in [(0, 0), (32, u128::from(u32::MAX)), (129, u128::MAX)] {
            let sketch = DocumentSketch::low_bits(code, bits);
            assert_eq!(sketch, DocumentSketch::Bits(WideFingerprint(low), bits));
        }
    }
}
