//! The bytes of a log.
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 4 | `LKLG` |
//! | 4 | 4 | version, 1 |
//! | 8 | 8 | collection |
//! | 16 | 8 | number of the file |
//! | 24 | 8 | number of its first frame |
//! | 32 | 8 | the log before: its number, zero for none |
//! | 40 | 8 | the log before: where its frames end |
//! | 48 | 8 | where the frames end that were durable before the log was named; zero if no recovery made it |
//! | 56 | 448 | zeros |
//! | 504 | 8 | check of the bytes before |
//! | 512 | | frames |
//!
//! A frame: `LKFR` (4); length of the payload (4); number of the frame (8); check (8), which covers file, offset, number,
//! length and payload; payload, which ends where a sector does. So no write ever touches a sector that holds what was
//! acknowledged: one that is lost in a power cut takes nothing else with it.

use std::path::Path;

use crate::checksum::{FileChecksum, FileIdentity, whole_file};
use crate::codec::fixed;
use crate::error::{Result, StoreError};
use crate::manifest::LARGEST_NUMBER;

/// Bytes that a medium writes as one; what it writes when the power fails may be anything.
pub(crate) const SECTOR: usize = 512;
pub(crate) const LOG_HEADER: usize = SECTOR;
pub(crate) const FRAME_HEADER: usize = 24;
/// Largest payload of a frame.
pub(crate) const MAX_PAYLOAD_BYTES: usize = 256 << 20;
const MAGIC: [u8; 4] = *b"LKLG";
pub(super) const FRAME_MAGIC: [u8; 4] = *b"LKFR";
const VERSION: u32 = 1;

/// Number of a log, and where its frames end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogEnd {
    pub(crate) log: u64,
    pub(crate) offset: u64,
}

/// Header of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogHeader {
    pub(crate) collection: u64,
    pub(crate) file: u64,
    /// Number of the first frame.
    pub(crate) first: u64,
    /// End of the log before.
    pub(crate) before: LogEnd,
    /// End of the frames that were durable before the log was named, if a recovery made it: what follows `before` in
    /// the log before is not read. Zero otherwise.
    pub(crate) recovered: u64,
}

impl LogHeader {
    pub(super) fn to_bytes(self) -> [u8; LOG_HEADER] {
        let mut bytes = [0; LOG_HEADER];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&VERSION.to_le_bytes());
        let numbers = [
            self.collection,
            self.file,
            self.first,
            self.before.log,
            self.before.offset,
            self.recovered,
        ];
        for (at, number) in numbers.into_iter().enumerate() {
            bytes[8 + 8 * at..16 + 8 * at].copy_from_slice(&number.to_le_bytes());
        }
        let check = whole_file(&bytes[..LOG_HEADER - 8]);
        bytes[LOG_HEADER - 8..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    pub(super) fn read(path: &Path, bytes: &[u8], identity: FileIdentity) -> Result<Self> {
        let Some(bytes) = bytes.first_chunk::<LOG_HEADER>() else {
            return Err(StoreError::damaged(
                path,
                bytes.len() as u64,
                "the log ends within its header",
            ));
        };
        if bytes[..4] != MAGIC {
            let what = "not a log of a collection: it does not begin with \"LKLG\"";
            return Err(StoreError::Foreign {
                path: path.to_owned(),
                what,
            });
        }
        // The version comes before the check: another version may place its check elsewhere.
        let found = fixed(&bytes[4..8]) as u32;
        if found != VERSION {
            return Err(StoreError::Version {
                path: path.to_owned(),
                found,
                known: VERSION,
            });
        }
        if whole_file(&bytes[..LOG_HEADER - 8]) != fixed(&bytes[LOG_HEADER - 8..]) {
            return Err(StoreError::damaged(
                path,
                0,
                "the header does not match its check",
            ));
        }
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
            return Err(StoreError::Foreign {
                path: path.to_owned(),
                what,
            });
        }
        // Numbers are counted up from here without a check for overflow.
        if header.first > LARGEST_NUMBER {
            let what = "the number of the first frame is larger than any that was given";
            return Err(StoreError::damaged(path, 24, what));
        }
        Ok(header)
    }

    /// End of the frames that were durable from the beginning.
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

/// Ends a frame that was begun with [`FRAME_HEADER`] bytes of room: fills up its last sector, and the header.
pub(super) fn finish(frame: &mut Vec<u8>, checksum: FileChecksum, offset: u64, number: u64) {
    // Padding is part of the payload and of the check: a sector that is torn anywhere is seen, also behind the
    // last change.
    frame.resize(frame.len().next_multiple_of(SECTOR), 0);
    let length = (frame.len() - FRAME_HEADER) as u32;
    frame[..4].copy_from_slice(&FRAME_MAGIC);
    frame[4..8].copy_from_slice(&length.to_le_bytes());
    frame[8..16].copy_from_slice(&number.to_le_bytes());
    // The length is part of the number, so that a damaged length fails the check even where the payload is
    // whole.
    let check = checksum.of_numbered_block(
        &frame[FRAME_HEADER..],
        offset,
        number ^ u64::from(length) << 32,
    );
    frame[16..24].copy_from_slice(&check.to_le_bytes());
}

/// The frame at the beginning of some bytes, when it is whole: its number and payload.
pub(super) fn frame_at(bytes: &[u8], checksum: FileChecksum, offset: u64) -> Option<(u64, &[u8])> {
    let header = bytes.first_chunk::<FRAME_HEADER>()?;
    // Four bytes, so header and payload stay below 2^33: no overflow where `usize` has 64 bits.
    let length = fixed(&header[4..8]) as usize;
    if header[..4] != FRAME_MAGIC || !(FRAME_HEADER + length).is_multiple_of(SECTOR) {
        return None;
    }
    // The length is used before the check covers it: a wrong one ends beyond the bytes, or fails the check.
    let payload = bytes.get(FRAME_HEADER..FRAME_HEADER + length)?;
    let number = fixed(&header[8..16]);
    let check = checksum.of_numbered_block(payload, offset, number ^ (length as u64) << 32);
    (check == fixed(&header[16..24])).then_some((number, payload))
}
