//! The pages of a Parquet file, looked at before they are unpacked.
//!
//! The library sets aside what a page says it comes to before it unpacks it: eight bytes of a damaged file can ask for two
//! gigabytes. So the file is handed to the library through [`CheckedFile`], which looks at the head of each page first.

use std::fs::File;
use std::io::{BufRead, BufReader};

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
        let mut reader = self.0.get_read(start)?;
        match excessive(reader.fill_buf()?) {
            Some(reason) => Err(ParquetError::General(reason)),
            None => Ok(reader),
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.0.get_bytes(start, length)
    }
}

/// Why the page with this head is not read.
fn excessive(head: &[u8]) -> Option<String> {
    let Some((unpacked, packed)) = sizes(head) else {
        return Some("the head of a page does not begin with its kind and sizes".to_owned());
    };
    let allowed = MOST.min(EASY.max(packed.saturating_mul(TIMES)));
    (unpacked > allowed)
        .then(|| format!("a page of {packed} bytes says that it comes to {unpacked}: not read"))
}

/// Unpacked and packed size from the head of a page: a struct in Thrift's compact protocol, whose first three fields are its
/// kind and the sizes, in the order in which every writer writes them.
fn sizes(head: &[u8]) -> Option<(i64, i64)> {
    /// The field after the one before, an i32.
    const NEXT_I32: u8 = 0x15;
    let mut rest = head.iter().copied();
    let mut field = || {
        rest.next().filter(|&byte| byte == NEXT_I32)?;
        let mut value = 0_u64;
        for shift in (0..35).step_by(7) {
            let byte = rest.next()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        None
    };
    let [_kind, unpacked, packed] = [field()?, field()?, field()?];
    Some((unpacked, packed))
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

    #[test]
    fn sizes_are_read_as_they_were_written() {
        for size in [0, 1, 63, 64, 8191, 1 << 20, i64::from(i32::MAX), -1, -77] {
            for packed in [0, 5, 300_000_000] {
                assert_eq!(sizes(&head(3, size, packed)), Some((size, packed)));
            }
        }
        let whole = head(0, 1 << 20, 1 << 19);
        for end in 0..whole.len() - 3 {
            assert_eq!(sizes(&whole[..end]), None, "cut at {end}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let (mebibyte, most) = (1 << 20, i64::from(i32::MAX));
        for (unpacked, packed) in [(EASY, 10), (MOST, mebibyte), (100 * mebibyte, mebibyte)] {
            assert_eq!(excessive(&head(0, unpacked, packed)), None);
        }
        for (unpacked, packed) in [
            (most, 8),
            (most, mebibyte),
            (EASY + 1, 10),
            (MOST + 1, most),
        ] {
            let reason = excessive(&head(0, unpacked, packed)).unwrap_or_default();
            assert!(reason.contains(&unpacked.to_string()), "{reason}");
        }
        assert!(excessive(b"PAR1").is_some());
        assert!(excessive(b"").is_some());
    }
}
