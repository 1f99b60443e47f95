//! The pages of a Parquet file, looked at before they are unpacked.
//!
//! The library sets aside what a page says it comes to before it unpacks it: eight bytes of a damaged file can ask for two
//! gigabytes. So the file is handed to the library through [`CheckedFile`], which looks at the head of each page first.
//!
//! A head is a struct in Thrift's compact protocol. The library takes its fields in any order and the last of those that
//! are repeated, so a head is walked through to its end, and has to be as every writer makes it: kind and sizes first, each
//! field once, in the order of their numbers.

use std::fs::File;
use std::io::{BufReader, Read};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// Pages that come to more are not read. Writers aim at 1 MiB; those that count rows first come to some hundred with long
/// texts.
const MOST: i64 = 512 << 20;
/// Beyond this, a page may come to [`TIMES`] its packed size.
const EASY: i64 = 64 << 20;
/// What text is hardly ever packed by.
const TIMES: i64 = 1000;
/// Bytes of a head: some writers put the least and the greatest text into it.
const HEAD: u64 = 64 << 20;
/// Structs within each other; the statistics of a page are the second.
const DEPTH: u32 = 8;

/// A file whose pages are checked when they are read.
pub(super) struct CheckedFile(pub(super) File);

impl Length for CheckedFile {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for CheckedFile {
    type T = BufReader<File>;

    /// Readers are for the heads of pages only.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        let head = self.0.get_read(start)?.take(HEAD);
        match excessive(head.bytes().map_while(std::io::Result::ok)) {
            Some(reason) => Err(ParquetError::General(reason)),
            None => self.0.get_read(start),
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.0.get_bytes(start, length)
    }
}

/// Why the page with this head is not read.
fn excessive(head: impl Iterator<Item = u8>) -> Option<String> {
    let Some((unpacked, packed)) = (Head { bytes: head }).sizes() else {
        return Some("the head of a page is not one".to_owned());
    };
    let allowed = MOST.min(EASY.max(packed.saturating_mul(TIMES)));
    (unpacked > allowed)
        .then(|| format!("a page of {packed} bytes says that it comes to {unpacked}: not read"))
}

/// The head of a page, byte by byte.
struct Head<I> {
    bytes: I,
}

/// Kinds of fields in the compact protocol.
mod kind {
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const I16: u8 = 4;
    pub(super) const I32: u8 = 5;
    pub(super) const I64: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(super) const STRUCT: u8 = 12;
}

impl<I: Iterator<Item = u8>> Head<I> {
    /// Unpacked and packed size.
    fn sizes(&mut self) -> Option<(i64, i64)> {
        /// The kind of the page, both sizes, a checksum, and what belongs to the one or the other kind.
        const FIELDS: u8 = 8;
        let mut first = [0_i64; 3];
        for value in &mut first {
            // The field after the one before.
            self.bytes
                .next()
                .filter(|&field| field == 0x10 | kind::I32)?;
            // The library cuts off what is beyond 32 bits.
            let number = i64::from(u32::try_from(self.number()?).ok()?);
            *value = number >> 1 ^ -(number & 1);
        }
        let mut last = 3;
        loop {
            let (step, kind) = self.field()?;
            if kind == 0 {
                return Some((first[1], first[2]));
            }
            last += step;
            if step == 0 || last > FIELDS {
                return None;
            }
            self.skip(kind, DEPTH)?;
        }
    }

    /// What is added to the number of the field before, and the kind of the field; no kind at the end of a struct.
    fn field(&mut self) -> Option<(u8, u8)> {
        let field = self.bytes.next()?;
        Some((field >> 4, field & 15))
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.bytes.next()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn pass(&mut self, bytes: u64) -> Option<()> {
        let last = usize::try_from(bytes).ok()?.checked_sub(1);
        last.map_or(Some(()), |last| self.bytes.nth(last).map(drop))
    }

    /// Passes over the value of a field.
    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            kind::TRUE | kind::FALSE => Some(()),
            kind::BYTE => self.pass(1),
            kind::I16 | kind::I32 | kind::I64 => self.number().map(drop),
            kind::DOUBLE => self.pass(8),
            kind::BINARY => {
                let length = self.number()?;
                self.pass(length)
            }
            kind::LIST | kind::SET => self.skip_list(depth),
            kind::STRUCT => loop {
                let (step, kind) = self.field()?;
                if kind == 0 {
                    return Some(());
                }
                if step == 0 {
                    self.number()?;
                }
                self.skip(kind, depth)?;
            },
            _ => None,
        }
    }

    fn skip_list(&mut self, depth: u32) -> Option<()> {
        let (short, kind) = self.field()?;
        let count = match short {
            15 => self.number()?,
            few => few.into(),
        };
        for _ in 0..count {
            // In a list each truth value takes a byte.
            match kind {
                kind::TRUE | kind::FALSE => self.pass(1)?,
                other => self.skip(other, depth)?,
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A head as writers make it.
    fn head(kind: i64, unpacked: i64, packed: i64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for value in [kind, unpacked, packed] {
            bytes.push(0x15);
            let mut left = ((value << 1) ^ (value >> 63)) as u64;
            while left >= 0x80 {
                bytes.push(left as u8 | 0x80);
                left >>= 7;
            }
            bytes.push(left as u8);
        }
        bytes.extend([0x2c, 0, 0]);
        bytes
    }

    fn sizes(head: &[u8]) -> Option<(i64, i64)> {
        let bytes = head.iter().copied();
        Head { bytes }.sizes()
    }

    fn refused(head: &[u8]) -> Option<String> {
        excessive(head.iter().copied())
    }

    #[test]
    fn sizes_are_read_as_they_were_written() {
        for size in [0, 1, 63, 64, 8191, 1 << 20, i64::from(i32::MAX), -1, -77] {
            for packed in [0, 5, 300_000_000] {
                assert_eq!(sizes(&head(3, size, packed)), Some((size, packed)));
            }
        }
        let whole = head(0, 1 << 20, 1 << 19);
        for end in 0..whole.len() {
            assert_eq!(sizes(&whole[..end]), None, "cut at {end}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let (mebibyte, most) = (1 << 20, i64::from(i32::MAX));
        for (unpacked, packed) in [(EASY, 10), (MOST, mebibyte), (100 * mebibyte, mebibyte)] {
            assert_eq!(refused(&head(0, unpacked, packed)), None);
        }
        for (unpacked, packed) in [
            (most, 8),
            (most, mebibyte),
            (EASY + 1, 10),
            (MOST + 1, most),
        ] {
            let reason = refused(&head(0, unpacked, packed)).unwrap_or_default();
            assert!(reason.contains(&unpacked.to_string()), "{reason}");
        }
        assert!(refused(&head(0, -(1 << 33) + most, 10)).is_some());
        assert!(refused(b"PAR1").is_some());
        assert!(refused(b"").is_some());
    }

    /// Fuzzing found it: the library takes the last of fields that are repeated.
    #[test]
    fn a_head_that_says_its_size_twice_is_refused() {
        let mut twice = head(0, 100, 50);
        twice.truncate(twice.len() - 3);
        // The field with the number 2 again, in the long form.
        twice.extend([0x05, 0x04, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0]);
        assert!(refused(&twice).is_some());
        // All that a head can have besides: a checksum, and a struct with a list, a text, a number and a truth value in it.
        let mut full = head(0, 100, 50);
        full.truncate(full.len() - 3);
        full.extend([
            0x15, 9, 0x1c, 0x19, 0x23, 1, 2, 0x18, 3, b'a', b'b', b'c', 0x15, 7, 0x11, 0, 0,
        ]);
        assert_eq!(refused(&full), None);
        full.truncate(full.len() - 4);
        assert!(refused(&full).is_some());
    }
}
