//! A fingerprint with its width, as files store it and as digits show it.

use std::fmt;
use std::str::FromStr;

use lookalike_hamming::Word;

/// Possible widths of fingerprints, in bits.
pub(super) const WIDTHS: [u32; 3] = [32, 64, 128];
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

    /// Creates a fingerprint from its words in a file.
    pub(crate) fn of_words(bits: u32, words: &[u64]) -> Self {
        let high = words.get(1).map_or(0, |&high| u128::from(high) << 64);
        Self {
            bits,
            value: u128::from(words[0]) | high,
        }
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

/// Returns the words of a code in a file. Those of 32 and 64 bits are one.
pub(super) fn words_of<W: Word>(code: W) -> [u64; 2] {
    let value = code.to_u128();
    [value as u64, (value >> 64) as u64]
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
    use crate::fingerprints::files::SketchKind;

    fn survives<W: Word>(code: W) {
        let shown = SizedFingerprint::new(code);
        assert_eq!(shown.code(), Some(code));
        assert_eq!(shown.to_string().len(), W::BITS as usize / 4);
        assert_eq!(shown.to_string().parse(), Ok(shown));
        assert_eq!(parse_code(&shown.to_string()), Ok(code));
        let kind = SketchKind::Fingerprints(W::BITS);
        let words = &words_of(code)[..kind.words()];
        assert_eq!(SizedFingerprint::of_words(W::BITS, words), shown);
        assert_eq!(kind.digits(words), shown.to_string());
        let mut codes = Vec::new();
        extend_codes::<W>(&mut codes, words);
        assert_eq!(codes, [code]);
        let mut bytes = Vec::new();
        kind.extend_raw(words, &mut bytes);
        assert_eq!(bytes.len(), W::BITS as usize / 8);
        assert_eq!(W::read(&bytes), code);
        assert_eq!(SketchKind::of_header(kind.in_header()), Some(kind));
        assert_eq!(SketchKind::of_raw_ending(&kind.raw_ending()), Some(kind));
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
