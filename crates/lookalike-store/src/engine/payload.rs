//! The payload of a frame of the log: the time, then the changes of a group in order.
//!
//! Time in milliseconds since 1970 (8); number of changes; of each: 1 and a document with its length, or 2 and an id with
//! its length. Numbers but the first are short numbers; zeros follow up to the end of the frame's last sector. A closing
//! frame has no changes.

use crate::codec::{ByteDecoder, put_bytes};
use crate::document::StoredDocument;
use crate::log::SECTOR;
use crate::time::UnixMillis;

const INSERT: u8 = 1;
const DELETE: u8 = 2;

/// A change, as the log has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LogChange<D> {
    /// The document takes the place of any with its id.
    Insert(D),
    /// The document of this id is gone.
    Delete(String),
}

/// Begins a payload after what is there.
pub(crate) fn begin(out: &mut Vec<u8>, now: UnixMillis, changes: usize) {
    out.extend_from_slice(&now.0.to_le_bytes());
    crate::codec::put_number(out, changes as u64);
}

/// Appends a change.
pub(crate) fn put(out: &mut Vec<u8>, change: &LogChange<impl AsRef<StoredDocument>>) {
    match change {
        LogChange::Insert(document) => {
            // Encoded apart: the length stands before the document and is known only behind it.
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

/// Reads a payload; `None` when it is not one.
pub(crate) fn read(payload: &[u8]) -> Option<(UnixMillis, Vec<LogChange<StoredDocument>>)> {
    let mut decoder = ByteDecoder::new(payload);
    let now = UnixMillis(decoder.fixed64()?);
    // A change has a kind and a length, one byte each at least.
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
    // The check of the frame held, so anything else here was written on purpose, by a newer program.
    (padding.len() < SECTOR && padding.iter().all(|&byte| byte == 0)).then_some((now, changes))
}
