//! Numbers as hexadecimal digits.

use lookalike::sketch::WideFingerprint;
use lookalike_store::DocumentSketch;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Pattern of the hexadecimal digits of a fingerprint of 32, 64 or 128 bits.
pub(crate) const FINGERPRINT: &str = "^([0-9a-fA-F]{8}|[0-9a-fA-F]{16}|[0-9a-fA-F]{32})$";

/// A fingerprint of 32, 64 or 128 bits in hexadecimal digits, as in bodies.
#[derive(Clone, Debug)]
pub(crate) struct HexBits(pub(crate) DocumentSketch);

impl HexBits {
    /// Wraps a sketch that is a fingerprint. Returns `None` for other sketches.
    pub(crate) fn of(sketch: DocumentSketch) -> Option<Self> {
        let is_fingerprint = sketch.form().places().is_none();
        is_fingerprint.then_some(Self(sketch))
    }
}

impl Serialize for HexBits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            DocumentSketch::Fingerprint(code) => serializer.collect_str(code),
            DocumentSketch::Bits(WideFingerprint(code), bits) => {
                let digits = *bits as usize / 4;
                serializer.collect_str(&format_args!("{code:0digits$x}"))
            }
            DocumentSketch::SuperShingles(_) | DocumentSketch::Minima(_) => {
                Err(serde::ser::Error::custom("no fingerprint"))
            }
        }
    }
}

impl<'de> Deserialize<'de> for HexBits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HexBitsVisitor;
        impl serde::de::Visitor<'_> for HexBitsVisitor {
            type Value = HexBits;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("16 hexadecimal digits as a string, or 8 or 32")
            }

            fn visit_str<E: serde::de::Error>(self, digits: &str) -> Result<HexBits, E> {
                let is_plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
                // Everything else is parsed as 64 bits, also for the message of `Fingerprint`.
                if is_plain && [8, 32].contains(&digits.len()) {
                    // At most 32 digits, so this cannot overflow.
                    let code = u128::from_str_radix(digits, 16).map_err(E::custom)?;
                    let bits = digits.len() as u32 * 4;
                    return Ok(HexBits(DocumentSketch::Bits(WideFingerprint(code), bits)));
                }
                let code: lookalike::Fingerprint = digits.parse().map_err(E::custom)?;
                Ok(HexBits(code.into()))
            }
        }
        deserializer.deserialize_str(HexBitsVisitor)
    }
}

/// Numbers of `DIGITS` hexadecimal digits each, without separators.
#[derive(Debug)]
pub(crate) struct HexWords<const DIGITS: usize>(pub(crate) Vec<u64>);

impl<const DIGITS: usize> HexWords<DIGITS> {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl<const DIGITS: usize> Serialize for HexWords<DIGITS> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digits = self.0.iter().map(|word| format!("{word:0DIGITS$x}"));
        serializer.serialize_str(&digits.collect::<String>())
    }
}

impl<'de, const DIGITS: usize> Deserialize<'de> for HexWords<DIGITS> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let word = |digits: &[u8]| {
            let text = std::str::from_utf8(digits).ok()?;
            // `from_str_radix` accepts a sign, and the last chunk may be shorter.
            let is_whole = text.len() == DIGITS && digits.iter().all(u8::is_ascii_hexdigit);
            u64::from_str_radix(text, 16).ok().filter(|_| is_whole)
        };
        let words: Option<Vec<u64>> = digits.as_bytes().chunks(DIGITS).map(word).collect();
        let wrong = || format!("expected numbers of {DIGITS} hexadecimal digits each");
        words
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom(wrong()))
    }
}

impl From<HexWords<8>> for Vec<u32> {
    fn from(words: HexWords<8>) -> Self {
        // Eight digits fit in 32 bits.
        words.0.into_iter().map(|word| word as u32).collect()
    }
}

impl From<&[u32]> for HexWords<8> {
    fn from(values: &[u32]) -> Self {
        Self(values.iter().map(|&value| value.into()).collect())
    }
}
