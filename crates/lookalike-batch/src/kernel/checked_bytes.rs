//! Tables as bytes that are sent between machines: a mark for the kind, the table, and a checksum, so that other bytes are rejected.

use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64;

/// Reason why bytes are not the expected table.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckedBytesError {
    /// They do not begin with the mark of the table.
    #[error("the bytes are not valid as {expected}: pass bytes that this version made")]
    Kind {
        /// Name of the expected table.
        expected: &'static str,
    },
    /// They are truncated or were changed.
    #[error("the bytes of the {expected} are damaged: make them again")]
    Damaged {
        /// Name of the expected table.
        expected: &'static str,
    },
}

/// Kind of a table, identified by its first eight bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableKind {
    pub(crate) mark: [u8; 8],
    /// Name of the kind for error messages.
    pub(crate) name: &'static str,
}

impl TableKind {
    /// Returns the table with the mark before it and its checksum after it.
    pub(crate) fn seal(self, table: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(table.len() + 16);
        bytes.extend_from_slice(&self.mark);
        bytes.extend_from_slice(table);
        bytes.extend_from_slice(&xxh3_64(table).to_le_bytes());
        bytes
    }

    /// Returns the table in the bytes, if the mark and the checksum are right.
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

    /// Returns the error for a table with the right checksum but invalid contents.
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
