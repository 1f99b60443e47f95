//! Numbers as hexadecimal digits.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Numbers of so many hexadecimal digits each, back to back.
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
            // `from_str_radix` takes a sign, and the last chunk may be shorter.
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
        // Eight digits are 32 bits.
        words.0.into_iter().map(|word| word as u32).collect()
    }
}

impl From<&[u32]> for HexWords<8> {
    fn from(values: &[u32]) -> Self {
        Self(values.iter().map(|&value| value.into()).collect())
    }
}
