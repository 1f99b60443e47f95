//! Numbers and bytes, back to back: little-endian, short numbers in few bytes.

/// Appends a number: seven bits a byte, the lowest first, the eighth bit set on all but the last.
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a length and so many bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads what was put; every method is `None` when the bytes end too early.
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
        // Ten bytes at most have bits of a 64-bit number: an eleventh is refused.
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            // The tenth byte has one bit left. Bits beyond it are shifted out in silence: two encodings may
            // give one number, which harms nothing, since every block that holds numbers has a checksum.
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub(crate) fn fixed64(&mut self) -> Option<u64> {
        let bytes = self.take(8)?.try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.number()?;
        self.take(usize::try_from(count).ok()?)
    }

    /// A list whose items take at least `least` bytes each: its length can be believed then.
    pub(crate) fn count(&mut self, least: usize) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count.checked_mul(least)? <= self.bytes.len()).then_some(count)
    }
}

/// The little-endian number of eight bytes, or fewer.
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
