//! Tables as bytes that travel between machines: a kind, the table, and a checksum, so that nothing else is taken for one.

use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64;

/// Reason why bytes are not the table that they should be.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CheckedBytesError {
    /// They begin otherwise.
    #[error("the bytes are not valid as {expected}: pass bytes that this version made")]
    Kind {
        /// The table that they should be.
        expected: &'static str,
    },
    /// They are cut off, or some of them were changed.
    #[error("the bytes of the {expected} are damaged: make them again")]
    Damaged {
        /// The table that they should be.
        expected: &'static str,
    },
}

/// Kind of a table, told by its first eight bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableKind {
    pub(crate) mark: [u8; 8],
    /// Name of it for people.
    pub(crate) name: &'static str,
}

impl TableKind {
    /// Puts the mark before a table and its checksum behind it.
    pub(crate) fn seal(self, table: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(table.len() + 16);
        bytes.extend_from_slice(&self.mark);
        bytes.extend_from_slice(table);
        bytes.extend_from_slice(&xxh3_64(table).to_le_bytes());
        bytes
    }

    /// The table in the bytes, if they are whole.
    pub(crate) fn open(self, bytes: &[u8]) -> Result<&[u8], CheckedBytesError> {
        let expected = self.name;
        let Some(rest) = bytes.strip_prefix(&self.mark) else {
            return Err(CheckedBytesError::Kind { expected });
        };
        match rest.split_last_chunk() {
            Some((table, checksum)) if xxh3_64(table) == u64::from_le_bytes(*checksum) => Ok(table),
            _ => Err(CheckedBytesError::Damaged { expected }),
        }
    }

    /// The error of a table that is whole, but not what it says.
    pub(crate) fn damaged(self) -> CheckedBytesError {
        CheckedBytesError::Damaged {
            expected: self.name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_cut_or_changed_are_refused() {
        let kind = TableKind {
            mark: *b"lkTEST1\n",
            name: "table of a test",
        };
        let bytes = kind.seal(b"1234");
        assert_eq!(kind.open(&bytes), Ok(&b"1234"[..]));
        for length in 0..bytes.len() {
            assert!(kind.open(&bytes[..length]).is_err(), "{length} bytes");
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(kind.open(&changed).is_err(), "byte {at}");
        }
        assert_eq!(
            kind.open(b"something else").unwrap_err().to_string(),
            "the bytes are not valid as table of a test: pass bytes that this version made"
        );
    }
}
