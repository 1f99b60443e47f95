//! What a frame of the log says: the server's time, then the changes of a group, in order.
//!
//! Time in milliseconds since 1970 (8); number of changes; of each: 1 and a document with its length, or 2 and an id with
//! its length. Numbers but the first are short numbers; zeros follow up to the end of the frame's last sector. A closing
//! frame has no changes.

use crate::codec::{Decoder, put_bytes};
use crate::document::Document;
use crate::log::SECTOR;
use crate::time::Time;

const INSERT: u8 = 1;
const DELETE: u8 = 2;

/// A change, as the log has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change<D> {
    /// The document takes the place of any with its id.
    Insert(D),
    /// The document of this id is gone.
    Delete(String),
}

/// Begins a payload after what is there.
pub(crate) fn begin(out: &mut Vec<u8>, now: Time, changes: usize) {
    out.extend_from_slice(&now.0.to_le_bytes());
    crate::codec::put_number(out, changes as u64);
}

/// Appends a change.
pub(crate) fn put(out: &mut Vec<u8>, change: &Change<impl AsRef<Document>>) {
    match change {
        Change::Insert(document) => {
            let mut bytes = Vec::new();
            document.as_ref().encode(&mut bytes);
            out.push(INSERT);
            put_bytes(out, &bytes);
        }
        Change::Delete(id) => {
            out.push(DELETE);
            put_bytes(out, id.as_bytes());
        }
    }
}

/// Reads a payload; `None` when it is not one.
pub(crate) fn read(payload: &[u8]) -> Option<(Time, Vec<Change<Document>>)> {
    let mut decoder = Decoder::new(payload);
    let now = Time(decoder.fixed64()?);
    let count = decoder.count(2)?;
    let mut changes = Vec::with_capacity(count);
    for _ in 0..count {
        changes.push(match (decoder.byte()?, decoder.bytes()?) {
            (INSERT, bytes) => {
                let mut document = Decoder::new(bytes);
                let read = Document::decode(&mut document)?;
                document.rest().is_empty().then_some(Change::Insert(read))?
            }
            (DELETE, id) => Change::Delete(String::from_utf8(id.to_vec()).ok()?),
            _ => return None,
        });
    }
    let padding = decoder.rest();
    (padding.len() < SECTOR && padding.iter().all(|&byte| byte == 0)).then_some((now, changes))
}
