//! Kinds of sketches in files and indexes.

use std::fmt;

use lookalike::Sketch;
use lookalike_hamming::SketchWords;

use super::sized_fingerprint::{SizedFingerprint, WIDTHS};
use super::sketch_shape::SketchShape;

/// Kind in the header of a fingerprint file for other widths: fingerprints of 32 bits, one in each word, or of 128 bits, the lower word first.
const OTHER_WIDTH: u16 = 4;

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
    /// Returns the kind of a scheme's sketch. `None` for sketches that are neither fingerprints nor have a fixed number of places.
    pub(crate) fn of(sketch: Sketch) -> Option<Self> {
        match sketch.fingerprint_bits() {
            0 => SketchShape::of(sketch).map(Self::Places),
            bits => Some(Self::Fingerprints(bits)),
        }
    }

    /// Returns the name of the field and column for such sketches.
    pub(crate) fn column(self) -> &'static str {
        match self {
            Self::Fingerprints(_) => "fingerprint",
            Self::Places(shape) => shape.kind.column(),
        }
    }

    /// Returns the number of 64-bit words of a sketch.
    pub(crate) fn words(self) -> usize {
        match self {
            Self::Fingerprints(bits) => bits.div_ceil(64) as usize,
            Self::Places(shape) => shape.words(),
        }
    }

    /// Returns a sketch as hexadecimal digits.
    pub(super) fn digits(self, sketch: &[u64]) -> String {
        match self {
            Self::Fingerprints(bits) => SizedFingerprint::of_words(bits, sketch).to_string(),
            Self::Places(shape) => shape.digits(sketch),
        }
    }

    /// Returns the kind in the form of a fingerprint file's header.
    pub(super) fn in_header(self) -> SketchWords {
        match self {
            Self::Fingerprints(64) => SketchWords::FINGERPRINT,
            Self::Fingerprints(_) => SketchWords {
                // The number of words tells 32 bits from 128, so one kind serves both.
                words: self.words(),
                kind: OTHER_WIDTH,
            },
            Self::Places(shape) => shape.in_header(),
        }
    }

    /// Returns the kind of a file with this header. `None` if this version does not know it.
    pub(super) fn of_header(header: SketchWords) -> Option<Self> {
        let mut widths = WIDTHS.into_iter().map(Self::Fingerprints);
        let fingerprints = widths.find(|kind| kind.in_header() == header);
        fingerprints.or_else(|| SketchShape::of_header(header).map(Self::Places))
    }

    /// Returns the file name ending of raw files, such as `u64` or `u64x6`, without the dot.
    pub(super) fn raw_ending(self) -> String {
        match self {
            Self::Fingerprints(bits) => format!("u{bits}"),
            Self::Places(shape) => shape.raw_ending(),
        }
    }

    /// Parses the kind from the ending of a raw file's name.
    pub(super) fn of_raw_ending(ending: &str) -> Option<Self> {
        let mut widths = WIDTHS.into_iter().map(Self::Fingerprints);
        let fingerprints = widths.find(|kind| kind.raw_ending() == ending);
        fingerprints.or_else(|| SketchShape::of_raw_ending(ending).map(Self::Places))
    }

    /// Appends a sketch as the little-endian numbers of a raw file.
    pub(super) fn extend_raw(self, sketch: &[u64], bytes: &mut Vec<u8>) {
        match self {
            Self::Fingerprints(bits) => {
                let start = bytes.len();
                bytes.extend(sketch.iter().flat_map(|word| word.to_le_bytes()));
                bytes.truncate(start + bits as usize / 8);
            }
            Self::Places(shape) => shape.extend_raw(sketch, bytes),
        }
    }

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
