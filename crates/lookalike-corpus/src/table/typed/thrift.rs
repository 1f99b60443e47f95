//! A walk through Thrift's compact protocol, byte by byte: Parquet uses it for its footers and the heads of its pages.
//!
//! The library allocates memory for the counts that it reads. Walking through the whole struct first proves that each counted element exists.

/// Kinds of fields.
pub(super) mod kind {
    pub(crate) const TRUE: u8 = 1;
    pub(crate) const FALSE: u8 = 2;
    pub(crate) const BYTE: u8 = 3;
    pub(crate) const I16: u8 = 4;
    pub(crate) const I32: u8 = 5;
    pub(crate) const I64: u8 = 6;
    pub(crate) const DOUBLE: u8 = 7;
    pub(crate) const BINARY: u8 = 8;
    pub(crate) const LIST: u8 = 9;
    pub(crate) const SET: u8 = 10;
    pub(crate) const STRUCT: u8 = 12;
}

/// A struct in the compact protocol, read from its first byte on.
pub(super) struct CompactWalk<I> {
    bytes: I,
    passed: u64,
}

impl<I: Iterator<Item = u8>> CompactWalk<I> {
    pub(super) fn new(bytes: I) -> CompactWalk<I> {
        CompactWalk { bytes, passed: 0 }
    }

    /// Returns the number of bytes read so far.
    pub(super) fn passed(&self) -> u64 {
        self.passed
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let byte = self.bytes.next()?;
        self.passed += 1;
        Some(byte)
    }

    /// Reads the header of a field: the step from the number of the previous field, and the kind; the kind is 0 at the end of a struct.
    pub(super) fn field(&mut self) -> Option<(u8, u8)> {
        let field = self.byte()?;
        Some((field >> 4, field & 15))
    }

    /// Calls `read` with the number and the kind of each field of a struct, to read or skip its value.
    pub(super) fn for_each_field(
        &mut self,
        mut read: impl FnMut(&mut Self, i64, u8) -> Option<()>,
    ) -> Option<()> {
        let mut last = 0_i64;
        loop {
            let (step, kind) = self.field()?;
            last = match step {
                _ if kind == 0 => return Some(()),
                // Then the field number follows in full.
                0 => self.signed()?,
                step => last.wrapping_add(step.into()),
            };
            read(self, last, kind)?;
        }
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        // A 64-bit number takes at most ten bytes.
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// Reads a signed number.
    pub(super) fn signed(&mut self) -> Option<i64> {
        self.number().map(signed)
    }

    fn advance(&mut self, bytes: u64) -> Option<()> {
        // `nth` skips one more than its argument, and there is no `nth(-1)` for a text without bytes.
        let last = usize::try_from(bytes).ok()?.checked_sub(1);
        last.map_or(Some(()), |last| self.bytes.nth(last).map(drop))?;
        self.passed += bytes;
        Some(())
    }

    /// Skips the value of a field, with structs nested at most `depth` deep.
    pub(super) fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            // The kind is the value.
            kind::TRUE | kind::FALSE => Some(()),
            kind::BYTE => self.advance(1),
            kind::I16 | kind::I32 | kind::I64 => self.number().map(drop),
            kind::DOUBLE => self.advance(8),
            kind::BINARY => {
                let length = self.number()?;
                self.advance(length)
            }
            kind::LIST | kind::SET => self.skip_list(depth),
            kind::STRUCT => self.for_each_field(|walk, _, kind| walk.skip(kind, depth)),
            _ => None,
        }
    }

    /// Reads the number of elements of a list, and their kind.
    pub(super) fn list(&mut self) -> Option<(u64, u8)> {
        let (short, kind) = self.field()?;
        match short {
            // For longer lists, the count follows the first byte.
            15 => Some((self.number()?, kind)),
            few => Some((few.into(), kind)),
        }
    }

    fn skip_list(&mut self, depth: u32) -> Option<()> {
        let (count, kind) = self.list()?;
        (0..count).try_for_each(|_| self.skip_element(kind, depth))
    }

    /// Skips an element of a list, where a boolean takes a byte, unlike in a struct.
    pub(super) fn skip_element(&mut self, kind: u8, depth: u32) -> Option<()> {
        match kind {
            kind::TRUE | kind::FALSE => self.advance(1),
            other => self.skip(other, depth),
        }
    }
}

/// Decodes a signed number: 0, -1, 1, -2 are stored as 0, 1, 2, 3 ("zigzag").
pub(super) fn signed(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}
