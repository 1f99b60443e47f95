//! Sketches of several places, super-shingles and min-hash signatures, as files and joins hold them.
//!
//! A sketch of any kind is a row of 64-bit words. The more places of two sketches are equal, the nearer they are.

use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

use lookalike::Sketch;
use lookalike_hamming::SketchWords;

/// Kind of a sketch's places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceKind {
    /// Super-shingles of 64 bits: hashes of groups of minima.
    SuperShingles,
    /// Minima of 32 bits: a min-hash signature.
    Minima,
}

impl PlaceKind {
    // In the order of their numbers in an index, from 1, as `SketchIndexHeader::read` expects.
    pub(crate) const ALL: [Self; 2] = [Self::SuperShingles, Self::Minima];

    /// Returns the name of the field and column for such sketches.
    #[must_use]
    pub const fn column(self) -> &'static str {
        match self {
            Self::SuperShingles => "super_shingles",
            Self::Minima => "signature",
        }
    }

    /// Returns the number of hexadecimal digits of a place.
    const fn digits(self) -> usize {
        match self {
            Self::SuperShingles => 16,
            Self::Minima => 8,
        }
    }

    /// Returns the name of the number type in raw files.
    const fn number(self) -> &'static str {
        match self {
            Self::SuperShingles => "u64",
            Self::Minima => "u32",
        }
    }
}

/// Shape of the sketches of a file: the kind and the number of their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SketchShape {
    /// Kind of the places.
    pub kind: PlaceKind,
    /// Number of places, 1 to 65,535.
    pub places: usize,
}

/// Formats the shape, such as `6 super-shingles`.
impl fmt::Display for SketchShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (one, many) = match self.kind {
            PlaceKind::SuperShingles => ("super-shingle", "super-shingles"),
            PlaceKind::Minima => ("minimum", "minima"),
        };
        write!(
            f,
            "{} {}",
            self.places,
            if self.places == 1 { one } else { many }
        )
    }
}

impl SketchShape {
    /// Returns the shape of a scheme's sketch. `None` for fingerprints, and for sketches without a fixed number of places.
    #[must_use]
    pub fn of(sketch: Sketch) -> Option<Self> {
        match sketch {
            Sketch::SuperShingle { groups, .. } => Some(Self {
                kind: PlaceKind::SuperShingles,
                places: groups.into(),
            }),
            Sketch::MinHash { functions } => Some(Self {
                kind: PlaceKind::Minima,
                places: functions.into(),
            }),
            _ => None,
        }
    }

    /// Returns a sketch of this shape. Super-shingles get one minimum each, because a shape does not tell their number. `None` if it has more places
    /// than a scheme can have.
    #[must_use]
    pub(crate) fn sketch(self) -> Option<Sketch> {
        match self.kind {
            PlaceKind::SuperShingles => Some(Sketch::SuperShingle {
                groups: u8::try_from(self.places).ok()?,
                rows: 1,
            }),
            PlaceKind::Minima => Some(Sketch::MinHash {
                functions: u16::try_from(self.places).ok()?,
            }),
        }
    }

    /// Returns the number of 64-bit words of a sketch.
    #[must_use]
    pub fn words(self) -> usize {
        match self.kind {
            PlaceKind::SuperShingles => self.places,
            PlaceKind::Minima => self.places.div_ceil(2),
        }
    }

    /// Returns the shape in the form of a fingerprint file's header: kind 1 for super-shingles, 2 for an even number of minima, 3 for an odd number
    /// (4 is for fingerprints of widths other than 64 bits).
    pub(super) fn in_header(self) -> SketchWords {
        SketchWords {
            words: self.words(),
            kind: match self.kind {
                PlaceKind::SuperShingles => 1,
                // A word holds two minima, so the number of words would not distinguish 2n - 1 from 2n.
                PlaceKind::Minima => 2 + (self.places % 2) as u16,
            },
        }
    }

    pub(super) fn of_header(header: SketchWords) -> Option<Self> {
        let (kind, places) = match header.kind {
            1 => (PlaceKind::SuperShingles, header.words),
            2 => (PlaceKind::Minima, 2 * header.words),
            3 => (PlaceKind::Minima, 2 * header.words - 1),
            _ => return None,
        };
        // A header can name up to 65,536 words, more places than a shape has.
        let is_known = u16::try_from(places).is_ok();
        is_known.then_some(Self { kind, places })
    }

    /// Returns the file name ending of raw files, such as `u64x6`, without the dot.
    #[must_use]
    pub fn raw_ending(self) -> String {
        format!("{}x{}", self.kind.number(), self.places)
    }

    /// Parses the shape from the ending of a raw file's name.
    pub(super) fn of_raw_ending(ending: &str) -> Option<Self> {
        let (number, places) = ending.split_once('x')?;
        let kind = PlaceKind::ALL
            .into_iter()
            .find(|kind| kind.number() == number)?;
        let is_plain =
            // `+6` would parse as a number too, and `06` would be a second ending for one shape.
            places.bytes().all(|digit| digit.is_ascii_digit()) && !places.starts_with('0');
        let places = u16::from_str(places).ok().filter(|_| is_plain)?.into();
        Some(Self { kind, places })
    }

    /// Returns the bytes of a sketch in a raw file or an index.
    pub(crate) fn raw_bytes(self) -> usize {
        self.places * self.place_bytes()
    }

    /// Returns the bytes of a place in a raw file or an index.
    pub(crate) fn place_bytes(self) -> usize {
        self.kind.digits() / 2
    }

    /// Appends the places of a sketch as little-endian numbers.
    pub(crate) fn extend_raw(self, sketch: &[u64], bytes: &mut Vec<u8>) {
        let start = bytes.len();
        bytes.extend(sketch.iter().flat_map(|word| word.to_le_bytes()));
        // The last half word of an odd number of minima is unused.
        bytes.truncate(start + self.raw_bytes());
    }

    /// Appends the words of a sketch, given the bytes of its places.
    pub(crate) fn extend_words(bytes: &[u8], words: &mut Vec<u64>) {
        words.extend(bytes.chunks(8).map(|word| {
            // The half word that an odd number of minima leaves is zero, as in every format.
            let mut eight = [0; 8];
            eight[..word.len()].copy_from_slice(word);
            u64::from_le_bytes(eight)
        }));
    }

    /// Returns the place at a position of a sketch.
    #[must_use]
    pub fn place(self, sketch: &[u64], at: usize) -> u64 {
        match self.kind {
            PlaceKind::SuperShingles => sketch[at],
            // The lower half comes first, so a row's little-endian words are its minima in order, as `extend_raw` and `extend_words` assume.
            PlaceKind::Minima => sketch[at / 2] >> (32 * (at % 2)) & 0xffff_ffff,
        }
    }

    /// Returns the number of places in which two sketches are equal.
    #[must_use]
    pub fn equal_places(self, a: &[u64], b: &[u64]) -> usize {
        let both = a.iter().zip(b);
        match self.kind {
            PlaceKind::SuperShingles => both.filter(|(a, b)| a == b).count(),
            PlaceKind::Minima => {
                let halves = |(a, b): (&u64, &u64)| {
                    let apart = a ^ b;
                    usize::from(apart as u32 == 0) + usize::from(apart >> 32 == 0)
                };
                // The half word that an odd number leaves is zero in every sketch, so do not count it.
                both.map(halves).sum::<usize>() - self.places % 2
            }
        }
    }

    /// Packs the places of a signature into words and appends them.
    pub(crate) fn pack(minima: &[u32], words: &mut Vec<u64>) {
        let pairs = minima.chunks(2);
        words.extend(pairs.map(|pair| {
            let high = pair.get(1).map_or(0, |&high| u64::from(high) << 32);
            u64::from(pair[0]) | high
        }));
    }

    /// Returns the places in hexadecimal digits, concatenated.
    #[must_use]
    pub fn digits(self, sketch: &[u64]) -> String {
        let width = self.kind.digits();
        let mut text = String::with_capacity(self.places * width);
        for at in 0..self.places {
            // Writing to a string never fails.
            let _ = write!(text, "{:0width$x}", self.place(sketch, at));
        }
        text
    }

    /// Parses the digits of a sketch. Returns `None` if they do not have this shape.
    #[must_use]
    pub fn parse(self, digits: &str) -> Option<Vec<u64>> {
        let mut words = Vec::new();
        let found = Self::read_digits(self.kind, digits, &mut words);
        (found == Ok(self)).then_some(words)
    }

    /// Parses the digits of a sketch, appends its words, and returns its shape.
    pub(super) fn read_digits(
        kind: PlaceKind,
        text: &str,
        words: &mut Vec<u64>,
    ) -> Result<Self, String> {
        let width = kind.digits();
        let places = text.len() / width;
        // `from_str_radix` would accept a sign, and slices of other characters might panic.
        let is_plain = text.bytes().all(|digit| digit.is_ascii_hexdigit());
        if !is_plain
            || !text.len().is_multiple_of(width)
            || !(1..=usize::from(u16::MAX)).contains(&places)
        {
            return Err(format!(
                "not a sketch: {} has {width} hexadecimal digits for each place, and at least one place",
                kind.column()
            ));
        }
        let place = |at: usize| {
            let digits = &text[at * width..(at + 1) * width];
            u64::from_str_radix(digits, 16).map_err(|error| error.to_string())
        };
        match kind {
            PlaceKind::SuperShingles => {
                for at in 0..places {
                    words.push(place(at)?);
                }
            }
            PlaceKind::Minima => {
                let minima = (0..places).map(|at| place(at).map(|minimum| minimum as u32));
                Self::pack(&minima.collect::<Result<Vec<u32>, String>>()?, words);
            }
        }
        Ok(Self { kind, places })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shapes() -> impl Strategy<Value = SketchShape> {
        let kinds = prop::sample::select(PlaceKind::ALL.to_vec());
        (kinds, 1..9_usize).prop_map(|(kind, places)| SketchShape { kind, places })
    }

    proptest! {
        #[test]
        fn places_survive_words_digits_and_headers(shape in shapes(), numbers in prop::collection::vec(0..3_u32, 16)) {
            let (a, b) = numbers.split_at(8);
            let row = |numbers: &[u32]| {
                let mut words = Vec::new();
                match shape.kind {
                    PlaceKind::SuperShingles => words.extend(numbers[..shape.places].iter().map(|&n| u64::from(n) << 40)),
                    PlaceKind::Minima => SketchShape::pack(&numbers[..shape.places], &mut words),
                }
                words
            };
            let (first, second) = (row(a), row(b));
            prop_assert_eq!(first.len(), shape.words());
            let equal = (0..shape.places).filter(|&at| a[at] == b[at]).count();
            prop_assert_eq!(shape.equal_places(&first, &second), equal);
            prop_assert_eq!((0..shape.places).filter(|&at| shape.place(&first, at) == shape.place(&second, at)).count(), equal);
            let (mut raw, mut of_raw) = (vec![7], Vec::new());
            shape.extend_raw(&first, &mut raw);
            prop_assert_eq!(raw.len(), 1 + shape.raw_bytes());
            SketchShape::extend_words(&raw[1..], &mut of_raw);
            prop_assert_eq!(&of_raw, &first);
            prop_assert_eq!(shape.parse(&shape.digits(&first)), Some(of_raw));
            let mut again = Vec::new();
            prop_assert_eq!(SketchShape::read_digits(shape.kind, &shape.digits(&first), &mut again), Ok(shape));
            prop_assert_eq!(again, first);
            prop_assert_eq!(SketchShape::of_header(shape.in_header()), Some(shape));
            prop_assert_eq!(SketchShape::of_raw_ending(&shape.raw_ending()), Some(shape));
        }
    }

    #[test]
    fn what_is_no_sketch_is_told() {
        let mut words = Vec::new();
        for text in ["", "12", "000000000000000g", "+00000000000000f"] {
            let told = SketchShape::read_digits(PlaceKind::SuperShingles, text, &mut words);
            assert!(
                told.unwrap_err().contains("16 hexadecimal digits"),
                "{text}"
            );
        }
        for ending in [
            "u64",
            "u64x",
            "u64x0",
            "u64x06",
            "u16x4",
            "u64x65536",
            "u64x+6",
        ] {
            assert_eq!(SketchShape::of_raw_ending(ending), None, "{ending}");
        }
    }
}
