//! Reading a log, by strict rules: only the last frame of the newest log may be half written.

use std::path::Path;

use super::frame::{
    FRAME_HEADER, FRAME_MAGIC, LOG_HEADER, LogHeader, MAX_PAYLOAD_BYTES, SECTOR, frame_at,
};
use crate::checksum::{FileChecksum, FileIdentity};
use crate::error::{Result, StoreError};
use crate::fs::{FileSystem, read_exact, read_whole};

/// Contents of a log.
#[derive(Debug)]
pub(crate) struct LogContents {
    pub(crate) header: LogHeader,
    /// The last frame of the newest log, which was not handed on.
    pub(crate) last: Option<LastFrame>,
    /// End of its frames.
    pub(crate) end: u64,
    /// End of the bytes that are not zero: beyond `end` after an interrupted group.
    pub(crate) dirty: u64,
    /// Length of the file.
    pub(crate) length: u64,
    /// Number of the frame that comes next.
    pub(crate) next: u64,
}

/// The last frame of a log.
#[derive(Debug)]
pub(crate) struct LastFrame {
    pub(crate) offset: u64,
    pub(crate) payload: Vec<u8>,
}

impl LogContents {
    /// End of the frames before the last one.
    pub(crate) fn end_before_last(&self) -> u64 {
        self.last.as_ref().map_or(self.end, |last| last.offset)
    }

    /// Tells whether it may contain anything that is not durable, or not a frame.
    pub(crate) fn needs_recovery(&self) -> bool {
        self.end != self.header.durable() || self.dirty != self.end
    }
}

/// Reads the header of a log.
///
/// # Errors
/// [`StoreError::Damaged`] and its like, and failures of the medium.
pub(crate) fn read_log_header(
    fs: &dyn FileSystem,
    path: &Path,
    identity: FileIdentity,
) -> Result<LogHeader> {
    let failed = |error| StoreError::io(path, "reading the log")(error);
    let file = fs.open(path, false).map_err(failed)?;
    let length = file.length().map_err(failed)?.min(LOG_HEADER as u64);
    let mut bytes = vec![0; length as usize];
    read_exact(&*file, &mut bytes, 0).map_err(failed)?;
    LogHeader::read(path, &bytes, identity)
}

/// Reads a log and hands each payload, with its offset, to `each`. `after` is the header of the log that follows, which says
/// where this one ends; of the newest, the last payload is returned instead.
///
/// # Errors
/// [`StoreError::Damaged`] when anything but the last frame of the newest log is not whole, or `each` refuses a payload.
pub(crate) fn read_log(
    fs: &dyn FileSystem,
    path: &Path,
    identity: FileIdentity,
    after: Option<&LogHeader>,
    each: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<LogContents> {
    // Whole: a log is a few times the memory of its memtable at most (`LOG_PER_MEMORY`), and it becomes one
    // anyway.
    let bytes = read_whole(fs, path).map_err(StoreError::io(path, "reading the log"))?;
    let header = LogHeader::read(path, &bytes, identity)?;
    let checksum = header.checksum();
    let limit = after.map(|after| after.before.offset);
    let (mut at, mut next, mut last) = (LOG_HEADER, header.first, None::<(usize, &[u8])>);
    // Stop where the next log says so: after a recovery the last frame is still whole behind that place, and
    // its copy counts.
    while Some(at as u64) != limit
        && let Some((number, payload)) = frame_at(&bytes[at..], checksum, at as u64)
    {
        // The check covers the number, so this frame was written under it: those between are gone.
        if number != next {
            let what = format!("frame {number} stands where frame {next} belongs");
            return Err(StoreError::damaged(path, at as u64, what));
        }
        // Hand a frame on when the next one is found, since the last may have to go to another log.
        let before = last.replace((at, payload));
        before.map_or(Ok(()), |(at, payload)| each(at as u64, payload))?;
        at += FRAME_HEADER + payload.len();
        next += 1;
    }
    // Whatever is not zero behind the frames is the remains of a write. Zeros say nothing: the file was
    // extended by them.
    let dirty = bytes
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(0, |last| last + 1)
        .max(at);
    match after {
        Some(after) => {
            check_end(path, at, dirty, after)?;
            let last = last.take();
            last.map_or(Ok(()), |(at, payload)| each(at as u64, payload))?;
        }
        None => {
            let tail = LogTail {
                end: at,
                dirty,
                next_frame: next,
            };
            tail.check(path, &bytes, &header)?;
        }
    }
    Ok(LogContents {
        header,
        last: last.map(|(offset, payload)| LastFrame {
            offset: offset as u64,
            payload: payload.to_vec(),
        }),
        end: at as u64,
        dirty: dirty as u64,
        length: bytes.len() as u64,
        next,
    })
}

/// A log that another one follows ends where that one says.
fn check_end(path: &Path, end: usize, dirty: usize, after: &LogHeader) -> Result<()> {
    let told = after.before.offset;
    if end as u64 != told {
        let what = format!("the log ends here, but the next one says that it ended at byte {told}");
        return Err(StoreError::damaged(path, end as u64, what));
    }
    // A recovery leaves what it found at the end, and does not read it again.
    if dirty != end && after.recovered == 0 {
        let what = "there is something behind the end of the log";
        return Err(StoreError::damaged(path, end as u64, what));
    }
    Ok(())
}

/// The bytes behind the last whole frame of the newest log.
struct LogTail {
    end: usize,
    dirty: usize,
    next_frame: u64,
}

impl LogTail {
    /// Refuses a tail that no single interrupted write can have left.
    fn check(&self, path: &Path, bytes: &[u8], header: &LogHeader) -> Result<()> {
        let (end, next) = (self.end, self.next_frame);
        let damaged = |what: String| Err(StoreError::damaged(path, end as u64, what));
        if (end as u64) < header.durable() {
            return damaged(format!(
                "frame {next} is damaged, and it was durable before this log was started"
            ));
        }
        // A frame is synced before the next is written, so nothing whole can follow a torn one.
        // The one rule that tells a crash from rot. Without it, one flipped bit in the middle would silently
        // cut off everything behind it as "interrupted".
        if let Some((later, number)) = frame_after(bytes, header.checksum(), end) {
            return damaged(format!(
                "frame {next} is damaged, but frame {number} at byte {later} is intact: this is not an interrupted write"
            ));
        }
        if self.dirty - end > (FRAME_HEADER + MAX_PAYLOAD_BYTES).next_multiple_of(SECTOR) {
            return damaged("more bytes are damaged than one write can leave".to_owned());
        }
        Ok(())
    }
}

/// The first whole frame after a place, and its number.
fn frame_after(bytes: &[u8], checksum: FileChecksum, from: usize) -> Option<(usize, u64)> {
    let mut at = from + SECTOR;
    // Frames begin where sectors do.
    while at + FRAME_HEADER <= bytes.len() {
        // The magic first: a checksum over up to 256 MiB at each sector of a long tail would take minutes.
        if bytes[at..at + 4] == FRAME_MAGIC
            && let Some((number, _)) = frame_at(&bytes[at..], checksum, at as u64)
        {
            return Some((at, number));
        }
        at += SECTOR;
    }
    None
}

/// Hands on every whole frame of a log, whatever lies between them; the ranges of bytes that are lost. `after` is the header
/// of the log that follows, if it can be read: what a recovery left behind the end is no loss.
///
/// # Errors
/// When the file cannot be read or its header is damaged.
pub(crate) fn salvage_log(
    fs: &dyn FileSystem,
    path: &Path,
    identity: FileIdentity,
    after: Option<&LogHeader>,
    each: &mut dyn FnMut(&[u8]),
) -> Result<Vec<(u64, u64)>> {
    let mut bytes = read_whole(fs, path).map_err(StoreError::io(path, "reading the log"))?;
    if let Some(after) = after.filter(|after| after.recovered > 0) {
        bytes.truncate(after.before.offset.max(LOG_HEADER as u64) as usize);
    }
    let checksum = FileChecksum::new(identity);
    let mut lost = Vec::new();
    if let Err(error) = LogHeader::read(path, &bytes, identity) {
        if bytes.len() < LOG_HEADER {
            return Err(error);
        }
        // Checks of frames need only the identity, which the manifest gives: no frame is lost with the header.
        lost.push((0, LOG_HEADER as u64));
    }
    let mut at = LOG_HEADER;
    loop {
        while let Some((_, payload)) = frame_at(&bytes[at..], checksum, at as u64) {
            each(payload);
            at += FRAME_HEADER + payload.len();
        }
        match frame_after(&bytes, checksum, at) {
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
