//! Encoding of numbers and byte strings, back to back: fixed-width numbers are little-endian, others have variable length.

/// Appends a number in LEB128: seven bits a byte, the lowest first, the eighth bit set in all bytes but the last.
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends the length of `bytes` and then the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads encoded values from a slice; every method returns `None` if the bytes end too early.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteDecoder<'a> {
    bytes: &'a [u8],
}

impl<'a> ByteDecoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        // A 64-bit number takes at most ten bytes: an eleventh is refused.
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            // Only one bit of the tenth byte counts. Higher bits are shifted out silently, so two encodings may give the same number; this
            // does no harm, since every block that holds numbers has a checksum.
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub(crate) fn fixed64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Takes `BYTES` bytes.
    pub(crate) fn array<const BYTES: usize>(&mut self) -> Option<[u8; BYTES]> {
        self.take(BYTES)?.try_into().ok()
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.number()?;
        self.take(usize::try_from(count).ok()?)
    }

    /// Reads the length of a list whose items take at least `least` bytes each. Returns `None` if the remaining bytes cannot hold so many
    /// items, so the caller may allocate by it.
    pub(crate) fn count(&mut self, least: usize) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count.checked_mul(least)? <= self.bytes.len()).then_some(count)
    }
}

/// Reads a little-endian number from at most eight bytes.
pub(crate) fn fixed(bytes: &[u8]) -> u64 {
    let mut number = [0; 8];
    number[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_put_is_read(numbers: Vec<u64>, text: Vec<u8>) {
            let mut out = Vec::new();
            numbers.iter().for_each(|&number| put_number(&mut out, number));
            put_bytes(&mut out, &text);
            let mut decoder = ByteDecoder::new(&out);
            for number in numbers {
                prop_assert_eq!(decoder.number(), Some(number));
            }
            prop_assert_eq!(decoder.bytes(), Some(text.as_slice()));
            prop_assert_eq!(decoder.byte(), None);
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            let mut decoder = ByteDecoder::new(&bytes);
            while decoder.bytes().is_some() {}
            prop_assert!(ByteDecoder::new(&bytes).count(8).is_none_or(|count| count <= bytes.len() / 8));
        }
    }
}
