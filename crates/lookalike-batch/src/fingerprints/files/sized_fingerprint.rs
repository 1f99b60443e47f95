//! A fingerprint with its width, as files store it and as digits show it.

use std::fmt;
use std::str::FromStr;

use lookalike_hamming::{SketchWords, Word};

/// Possible widths of fingerprints, in bits.
pub(super) const WIDTHS: [u32; 3] = [32, 64, 128];
/// Kind in the header of a fingerprint file for other widths: fingerprints of 32 bits, one in each word, or of 128 bits, the lower word first.
const OTHER_WIDTH: u16 = 4;

// The derived order compares the width first, so fingerprints of one width sort as their digits do.
/// A fingerprint of 32, 64 or 128 bits. Its text has one lower-case hexadecimal digit for each four bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SizedFingerprint {
    bits: u32,
    value: u128,
}

/// Error: a text that is not a fingerprint of any width.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not a fingerprint: use 16 hexadecimal digits, or 8 or 32 for 32 or 128 bits")]
pub struct ParseSizedFingerprintError {
    /// The text.
    pub found: String,
}

impl SizedFingerprint {
    /// Creates a fingerprint from a code.
    pub fn new<W: Word>(code: W) -> Self {
        Self {
            bits: W::BITS,
            value: code.to_u128(),
        }
    }

    /// Returns its width in bits.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Returns the code if it has this width.
    pub fn code<W: Word>(self) -> Option<W> {
        (self.bits == W::BITS).then(|| W::from_u128(self.value))
    }

    /// Returns the low 64 bits, which are the whole fingerprint unless it is wider.
    pub(super) fn low(self) -> u64 {
        self.value as u64
    }

    /// Returns its words in a fingerprint file, and their number.
    pub(super) fn words(self) -> ([u64; 2], usize) {
        let words = [self.value as u64, (self.value >> 64) as u64];
        (words, header_of_bits(self.bits).words)
    }

    /// Creates a fingerprint from its words in a file.
    pub(crate) fn of_words(bits: u32, words: &[u64]) -> Self {
        let high = words.get(1).map_or(0, |&high| u128::from(high) << 64);
        Self {
            bits,
            value: u128::from(words[0]) | high,
        }
    }

    /// Writes its little-endian bytes.
    pub(super) fn write(self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        out.write_all(&self.value.to_le_bytes()[..self.bits as usize / 8])
    }
}

impl fmt::Display for SizedFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.bits as usize / 4;
        write!(f, "{:0width$x}", self.value)
    }
}

impl FromStr for SizedFingerprint {
    type Err = ParseSizedFingerprintError;

    fn from_str(text: &str) -> Result<Self, ParseSizedFingerprintError> {
        let bits = bits_of_digits(text);
        // `from_str_radix` also accepts a sign, which is not a digit.
        let value = bits.and_then(|_| u128::from_str_radix(text, 16).ok());
        match (bits, value) {
            (Some(bits), Some(value)) => Ok(Self { bits, value }),
            _ => Err(ParseSizedFingerprintError {
                found: text.to_owned(),
            }),
        }
    }
}

/// Returns the width of the fingerprint that a text of digits stands for, or `None` if it is not one.
pub(super) fn bits_of_digits(text: &str) -> Option<u32> {
    let is_plain = text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let fits = |bits: &u32| is_plain && text.len() == *bits as usize / 4;
    WIDTHS.into_iter().find(fits)
}

/// Parses the digits of a code.
pub(super) fn parse_code<W: Word>(text: &str) -> Result<W, String> {
    let parsed = text.parse::<SizedFingerprint>().ok();
    parsed.and_then(SizedFingerprint::code).ok_or_else(|| {
        let digits = W::BITS / 4;
        format!("{text:?} is not a fingerprint: use {digits} hexadecimal digits")
    })
}

/// Returns the header fields of a file of fingerprints with this width.
pub(super) fn header_of_bits(bits: u32) -> SketchWords {
    match bits {
        64 => SketchWords::FINGERPRINT,
        _ => SketchWords {
            // The number of words tells 32 bits from 128, so one kind serves both.
            words: bits.div_ceil(64) as usize,
            kind: OTHER_WIDTH,
        },
    }
}

/// Returns the width of a file's fingerprints, or `None` if it holds longer sketches.
pub(super) fn bits_of_header(header: SketchWords) -> Option<u32> {
    WIDTHS
        .into_iter()
        .find(|&bits| header_of_bits(bits) == header)
}

/// Appends the codes stored in words of a file.
pub(super) fn extend_codes<W: Word>(codes: &mut Vec<W>, words: &[u64]) {
    match W::BITS {
        128 => {
            let (pairs, _) = words.as_chunks::<2>();
            codes.extend(
                pairs
                    .iter()
                    .map(|&[low, high]| W::from_u128(u128::from(low) | u128::from(high) << 64)),
            );
        }
        _ => codes.extend(words.iter().map(|&word| W::from_u128(word.into()))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn survives<W: Word>(code: W) {
        let shown = SizedFingerprint::new(code);
        assert_eq!(shown.code(), Some(code));
        assert_eq!(shown.to_string().len(), W::BITS as usize / 4);
        assert_eq!(shown.to_string().parse(), Ok(shown));
        assert_eq!(parse_code(&shown.to_string()), Ok(code));
        let (words, count) = shown.words();
        assert_eq!(SizedFingerprint::of_words(W::BITS, &words[..count]), shown);
        let mut codes = Vec::new();
        extend_codes::<W>(&mut codes, &words[..count]);
        assert_eq!(codes, [code]);
        let mut bytes = Vec::new();
        shown.write(&mut bytes).unwrap();
        assert_eq!(bytes.len(), W::BITS as usize / 8);
        assert_eq!(W::read(&bytes), code);
        assert_eq!(bits_of_header(header_of_bits(W::BITS)), Some(W::BITS));
    }

    proptest! {
        #[test]
        fn fingerprints_survive_digits_words_and_bytes(value in any::<u128>()) {
            survives(value as u32);
            survives(value as u64);
            survives(value);
        }
    }

    #[test]
    fn digits_of_another_width_are_another_fingerprint() {
        let told = parse_code::<u128>("0000000000000001").unwrap_err();
        assert!(told.contains("32 hexadecimal digits"), "{told}");
        for text in ["", "1", "+0000001", "000000000000000g", "0x000000"] {
            assert!(text.parse::<SizedFingerprint>().is_err(), "{text}");
        }
    }
}
