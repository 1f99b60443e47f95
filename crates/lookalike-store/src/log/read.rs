//! Reading a log, by strict rules: only the last frame of the newest log may be half written.

use std::path::Path;

use super::frame::{FRAME_HEADER, FRAME_MAGIC, LARGEST_PAYLOAD, LOG_HEADER, LogHeader, frame_at};
use crate::error::{Result, StoreError};
use crate::fs::{Fs, read_whole};
use crate::seal::Seal;

/// What a log holds.
#[derive(Debug)]
pub(crate) struct LogContents {
    pub(crate) header: LogHeader,
    /// The last frame, header included.
    pub(crate) last: Vec<u8>,
    /// Where its frames end.
    pub(crate) end: u64,
    /// Where what is not zero ends: beyond `end` when a group was torn.
    pub(crate) dirty: u64,
    /// Length of the file.
    pub(crate) length: u64,
    /// Number of the frame that comes next.
    pub(crate) next: u64,
}

/// Reads a log and hands each payload, with its offset, to `each`.
///
/// # Errors
/// [`StoreError::Damaged`] when anything but the last frame is not whole, or `each` refuses a payload.
pub(crate) fn read_log(
    fs: &dyn Fs,
    path: &Path,
    identity: (u64, u64),
    each: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<LogContents> {
    let bytes = read_whole(fs, path).map_err(StoreError::io(path, "reading the log"))?;
    let header = LogHeader::read(path, &bytes, identity.0, identity.1)?;
    let seal = header.seal();
    let (mut at, mut next, mut last) = (LOG_HEADER, header.first, LOG_HEADER);
    while let Some((number, payload)) = frame_at(&bytes[at..], seal, at as u64) {
        if number != next {
            let what = format!("frame {number} stands where frame {next} belongs");
            return Err(StoreError::damaged(path, at as u64, what));
        }
        each(at as u64, payload)?;
        last = at;
        at += FRAME_HEADER + payload.len();
        next += 1;
    }
    let dirty = bytes
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(0, |last| last + 1)
        .max(at);
    if let Some((later, number)) = frame_after(&bytes, seal, at) {
        let what = format!(
            "frame {next} is damaged, and frame {number} at byte {later} is whole: this is no interrupted write"
        );
        return Err(StoreError::damaged(path, at as u64, what));
    }
    if dirty - at > FRAME_HEADER + LARGEST_PAYLOAD {
        let what = "more bytes are damaged than one write can leave";
        return Err(StoreError::damaged(path, at as u64, what));
    }
    Ok(LogContents {
        header,
        last: bytes[last..at].to_vec(),
        end: at as u64,
        dirty: dirty as u64,
        length: bytes.len() as u64,
        next,
    })
}

/// The first whole frame after a place, and its number.
fn frame_after(bytes: &[u8], seal: Seal, from: usize) -> Option<(usize, u64)> {
    let mut at = from + 8;
    // Frames begin at multiples of eight.
    while at + FRAME_HEADER <= bytes.len() {
        if bytes[at..at + 4] == FRAME_MAGIC
            && let Some((number, _)) = frame_at(&bytes[at..], seal, at as u64)
        {
            return Some((at, number));
        }
        at += 8;
    }
    None
}

/// Hands on every whole frame of a log, whatever lies between them; the ranges of bytes that are lost.
///
/// # Errors
/// When the file cannot be read or its header is damaged.
pub(crate) fn salvage_log(
    fs: &dyn Fs,
    path: &Path,
    identity: (u64, u64),
    each: &mut dyn FnMut(&[u8]),
) -> Result<Vec<(u64, u64)>> {
    let bytes = read_whole(fs, path).map_err(StoreError::io(path, "reading the log"))?;
    let seal = Seal::new(identity.0, identity.1);
    let mut lost = Vec::new();
    if let Err(error) = LogHeader::read(path, &bytes, identity.0, identity.1) {
        if bytes.len() < LOG_HEADER {
            return Err(error);
        }
        lost.push((0, LOG_HEADER as u64));
    }
    let mut at = LOG_HEADER;
    loop {
        while let Some((_, payload)) = frame_at(&bytes[at..], seal, at as u64) {
            each(payload);
            at += FRAME_HEADER + payload.len();
        }
        match frame_after(&bytes, seal, at) {
            Some((next, _)) => {
                lost.push((at as u64, next as u64));
                at = next;
            }
            None => break,
        }
    }
    let dirty = bytes
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(0, |last| last + 1);
    if dirty > at {
        lost.push((at as u64, dirty as u64));
    }
    Ok(lost)
}
