//! The format of a log file.
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 4 | `LKLG` |
//! | 4 | 4 | version, 1 |
//! | 8 | 8 | collection |
//! | 16 | 8 | number of the file |
//! | 24 | 8 | number of its first frame |
//! | 32 | 8 | previous log: its number, zero for none |
//! | 40 | 8 | previous log: offset at which its frames end |
//! | 48 | 8 | if a recovery created this log: end of the frames that were durable before the manifest named it; otherwise zero |
//! | 56 | 448 | zeros |
//! | 504 | 8 | checksum of the bytes before |
//! | 512 | | frames |
//!
//! A frame: `LKFR` (4); length of the payload (4); number of the frame (8); checksum (8), which covers file, offset, number, length and
//! payload; payload. The payload ends at a sector boundary, so no write touches a sector with acknowledged data: a write that is lost in a
//! power failure damages nothing else.

use std::path::Path;

use crate::checksum::{self, FileChecksum, FileIdentity, check_header};
use crate::codec::fixed;
use crate::error::{Result, StoreError};
use crate::manifest::MAX_NUMBER;

/// Size in bytes of the unit that a medium writes at once. A sector that is being written when the power fails may end up with any
/// contents.
pub(crate) const SECTOR: usize = 512;
pub(crate) const LOG_HEADER: usize = SECTOR;
pub(crate) const FRAME_HEADER: usize = 24;
/// Maximum size of a payload in bytes.
pub(crate) const MAX_PAYLOAD_BYTES: usize = 256 << 20;
const MAGIC: [u8; 4] = *b"LKLG";
pub(super) const FRAME_MAGIC: [u8; 4] = *b"LKFR";
const VERSION: u32 = 1;

/// The number of a log, and the offset at which its frames end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogEnd {
    pub(crate) log: u64,
    pub(crate) offset: u64,
}

/// The header of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogHeader {
    pub(crate) collection: u64,
    pub(crate) file: u64,
    /// Number of the first frame.
    pub(crate) first: u64,
    /// End of the previous log.
    pub(crate) before: LogEnd,
    /// If a recovery created this log: end of the frames that were durable before the manifest named it. In this case, bytes of the
    /// previous log after `before` are ignored. Zero otherwise.
    pub(crate) recovered: u64,
}

impl LogHeader {
    pub(super) fn to_bytes(self) -> [u8; LOG_HEADER] {
        let numbers = [
            self.collection,
            self.file,
            self.first,
            self.before.log,
            self.before.offset,
            self.recovered,
        ];
        checksum::header(MAGIC, VERSION, &numbers)
    }

    pub(super) fn read(path: &Path, bytes: &[u8], identity: FileIdentity) -> Result<Self> {
        let Some(bytes) = bytes.first_chunk::<LOG_HEADER>() else {
            let what = "the log ends within its header";
            return Err(StoreError::damaged(path, bytes.len() as u64, what));
        };
        let other = "not a log of a collection: it does not begin with \"LKLG\"";
        check_header(path, bytes, MAGIC, other, VERSION)?;
        let number = |at: usize| fixed(&bytes[8 + 8 * at..16 + 8 * at]);
        let header = Self {
            collection: number(0),
            file: number(1),
            first: number(2),
            before: LogEnd {
                log: number(3),
                offset: number(4),
            },
            recovered: number(5),
        };
        if header.identity() != identity {
            let what = "a log of another collection, or under another name";
            return Err(StoreError::foreign(path, what));
        }
        // Numbers count up from this one without overflow checks.
        if header.first > MAX_NUMBER {
            let what = "the number of the first frame is larger than any that was given";
            return Err(StoreError::damaged(path, 24, what));
        }
        Ok(header)
    }

    /// Returns the end of the frames that were durable before the manifest named this log.
    pub(crate) fn durable(&self) -> u64 {
        self.recovered.max(LOG_HEADER as u64)
    }

    pub(crate) fn identity(&self) -> FileIdentity {
        FileIdentity {
            collection: self.collection,
            number: self.file,
        }
    }

    pub(super) fn checksum(&self) -> FileChecksum {
        FileChecksum::new(self.identity())
    }
}

/// Completes a frame that starts with [`FRAME_HEADER`] bytes reserved for its header: pads its last sector and writes the header.
pub(super) fn finish(frame: &mut Vec<u8>, checksum: FileChecksum, offset: u64, number: u64) {
    // Padding is part of the payload and covered by the checksum, so a torn sector is detected even after the last change.
    frame.resize(frame.len().next_multiple_of(SECTOR), 0);
    let length = (frame.len() - FRAME_HEADER) as u32;
    frame[..4].copy_from_slice(&FRAME_MAGIC);
    frame[4..8].copy_from_slice(&length.to_le_bytes());
    frame[8..16].copy_from_slice(&number.to_le_bytes());
    // The number that is hashed includes the length, so a damaged length fails the check even if the payload is intact.
    let check = checksum.of_numbered_block(
        &frame[FRAME_HEADER..],
        offset,
        number ^ u64::from(length) << 32,
    );
    frame[16..24].copy_from_slice(&check.to_le_bytes());
}

/// Returns the number and payload of the frame at the beginning of `bytes`, or `None` if it is not intact.
pub(super) fn frame_at(bytes: &[u8], checksum: FileChecksum, offset: u64) -> Option<(u64, &[u8])> {
    let header = bytes.first_chunk::<FRAME_HEADER>()?;
    // The length has four bytes, so header and payload stay below 2^33 and cannot overflow a 64-bit `usize`.
    let length = fixed(&header[4..8]) as usize;
    if header[..4] != FRAME_MAGIC || !(FRAME_HEADER + length).is_multiple_of(SECTOR) {
        return None;
    }
    // The length is used before it is verified: with a wrong one, the frame ends beyond the bytes or fails the check.
    let payload = bytes.get(FRAME_HEADER..FRAME_HEADER + length)?;
    let number = fixed(&header[8..16]);
    let check = checksum.of_numbered_block(payload, offset, number ^ (length as u64) << 32);
    (check == fixed(&header[16..24])).then_some((number, payload))
}
