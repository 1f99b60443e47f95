//! The payload of a frame of the log: the time, then the changes of a group in order.
//!
//! Format: time in milliseconds since 1970 (8); number of changes; for each change, 1 and a document with its length, or 2 and an id with
//! its length. All numbers but the time have variable length. Zeros follow up to the end of the frame's last sector. A closing frame has no
//! changes.

use crate::codec::{ByteDecoder, put_bytes};
use crate::document::StoredDocument;
use crate::log::SECTOR;
use crate::time::UnixMillis;

const INSERT: u8 = 1;
const DELETE: u8 = 2;

/// A change as recorded in the log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LogChange<D> {
    /// Inserts a document. It replaces any document with the same id.
    Insert(D),
    /// Deletes the document with this id.
    Delete(String),
}

/// Appends the beginning of a payload.
pub(crate) fn begin(out: &mut Vec<u8>, now: UnixMillis, changes: usize) {
    out.extend_from_slice(&now.0.to_le_bytes());
    crate::codec::put_number(out, changes as u64);
}

/// Appends a change.
pub(crate) fn put(out: &mut Vec<u8>, change: &LogChange<impl AsRef<StoredDocument>>) {
    match change {
        LogChange::Insert(document) => {
            // Encode to a separate buffer: the length comes before the document, but is only known afterwards.
            let mut bytes = Vec::new();
            document.as_ref().encode(&mut bytes);
            out.push(INSERT);
            put_bytes(out, &bytes);
        }
        LogChange::Delete(id) => {
            out.push(DELETE);
            put_bytes(out, id.as_bytes());
        }
    }
}

/// Decodes a payload. Returns `None` if it is not valid.
pub(crate) fn read(payload: &[u8]) -> Option<(UnixMillis, Vec<LogChange<StoredDocument>>)> {
    let mut decoder = ByteDecoder::new(payload);
    let now = UnixMillis(decoder.fixed64()?);
    // A change has a kind and a length, each at least one byte.
    let count = decoder.count(2)?;
    let mut changes = Vec::with_capacity(count);
    for _ in 0..count {
        changes.push(match (decoder.byte()?, decoder.bytes()?) {
            (INSERT, bytes) => {
                let mut document = ByteDecoder::new(bytes);
                let read = StoredDocument::decode(&mut document)?;
                document
                    .rest()
                    .is_empty()
                    .then_some(LogChange::Insert(read))?
            }
            (DELETE, id) => LogChange::Delete(String::from_utf8(id.to_vec()).ok()?),
            _ => return None,
        });
    }
    let padding = decoder.rest();
    // The checksum of the frame was right, so anything else here was written on purpose, by a newer program.
    (padding.len() < SECTOR && padding.iter().all(|&byte| byte == 0)).then_some((now, changes))
}
