//! Reading a log, strictly: only the last frame of the newest log may be incomplete.

use std::path::Path;

use super::frame::{
    FRAME_HEADER, FRAME_MAGIC, LOG_HEADER, LogHeader, MAX_PAYLOAD_BYTES, SECTOR, frame_at,
};
use crate::checksum::{FileChecksum, FileIdentity};
use crate::error::{Result, StoreError};
use crate::fs::{FileSystem, read_exact, read_whole};

/// The contents of a log.
#[derive(Debug)]
pub(crate) struct LogContents {
    pub(crate) header: LogHeader,
    /// Last frame of the newest log, which was not passed on.
    pub(crate) last: Option<LastFrame>,
    /// Offset at which its frames end.
    pub(crate) end: u64,
    /// End of the bytes that are not zero: beyond `end` after an interrupted group.
    pub(crate) dirty: u64,
    /// Length of the file in bytes.
    pub(crate) length: u64,
    /// Number of the next frame.
    pub(crate) next: u64,
}

/// The last frame of a log.
#[derive(Debug)]
pub(crate) struct LastFrame {
    pub(crate) offset: u64,
    pub(crate) payload: Vec<u8>,
}

impl LogContents {
    /// Returns the end of the frames before the last one.
    pub(crate) fn start_of_last_frame(&self) -> u64 {
        self.last.as_ref().map_or(self.end, |last| last.offset)
    }

    /// Tells whether the log may contain a frame that is not durable, or bytes that are not a frame.
    pub(crate) fn needs_recovery(&self) -> bool {
        self.end != self.header.durable() || self.dirty != self.end
    }
}

/// Reads the header of a log.
///
/// # Errors
/// [`StoreError::Damaged`] and similar errors, and failures of the medium.
pub(crate) fn read_log_header(
    fs: &dyn FileSystem,
    path: &Path,
    identity: FileIdentity,
) -> Result<LogHeader> {
    let failed = |error| StoreError::io(path, "reading the log")(error);
    let file = fs.open(path, false).map_err(failed)?;
    // A file shorter than a header is not a failed read: `LogHeader::read` reports it as damage.
    let length = file.length().map_err(failed)?.min(LOG_HEADER as u64);
    let mut bytes = vec![0; length as usize];
    read_exact(&*file, &mut bytes, 0).map_err(failed)?;
    LogHeader::read(path, &bytes, identity)
}

/// Reads a log and passes each payload to `each`, with its offset. `after` is the header of the next log, which says where this one ends.
/// In the newest log, which has none, the last payload is returned in [`LogContents`] instead.
///
/// # Errors
/// [`StoreError::Damaged`] if anything but the last frame of the newest log is not intact; errors of `each`.
pub(crate) fn read_log(
    fs: &dyn FileSystem,
    path: &Path,
    identity: FileIdentity,
    after: Option<&LogHeader>,
    each: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<LogContents> {
    // Read the whole file: a log is at most a few times as large as its memtable (`LOG_PER_MEMORY`), which it becomes anyway.
    let bytes = read_whole(fs, path).map_err(StoreError::io(path, "reading the log"))?;
    let header = LogHeader::read(path, &bytes, identity)?;
    let checksum = header.checksum();
    let limit = after.map(|after| after.before.offset);
    let (mut at, mut next, mut last) = (LOG_HEADER, header.first, None::<(usize, &[u8])>);
    // Stop where the next log says: after a recovery, the last frame is still intact beyond that offset, but its copy is the one that
    // counts.
    while Some(at as u64) != limit
        && let Some((number, payload)) = frame_at(&bytes[at..], checksum, at as u64)
    {
        // The checksum covers the number, so the frame was written with it: the frames between are missing.
        if number != next {
            let what = format!("frame {number} stands where frame {next} belongs");
            return Err(StoreError::damaged(path, at as u64, what));
        }
        // Pass on a frame only when the next one is found, because the last may belong in another log.
        let before = last.replace((at, payload));
        before.map_or(Ok(()), |(at, payload)| each(at as u64, payload))?;
        at += FRAME_HEADER + payload.len();
        next += 1;
    }
    // Anything after the frames that is not zero is the remains of a write. Zeros mean nothing, because the file is extended by them.
    let dirty = nonzero_end(&bytes).max(at);
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

/// Returns the end of the bytes before the zeros at the end.
fn nonzero_end(bytes: &[u8]) -> usize {
    let last = bytes.iter().rposition(|&byte| byte != 0);
    last.map_or(0, |last| last + 1)
}

/// Checks that a log ends where the next one says.
fn check_end(path: &Path, end: usize, dirty: usize, after: &LogHeader) -> Result<()> {
    let told = after.before.offset;
    if end as u64 != told {
        let what = format!("the log ends here, but the next one says that it ended at byte {told}");
        return Err(StoreError::damaged(path, end as u64, what));
    }
    // A recovery leaves the bytes that it found at the end and ignores them.
    if dirty != end && after.recovered == 0 {
        let what = "data follows the end of the log";
        return Err(StoreError::damaged(path, end as u64, what));
    }
    Ok(())
}

/// The end of the newest log, after its last intact frame.
struct LogTail {
    end: usize,
    dirty: usize,
    next_frame: u64,
}

impl LogTail {
    /// Returns an error for a tail that a single interrupted write cannot have left.
    fn check(&self, path: &Path, bytes: &[u8], header: &LogHeader) -> Result<()> {
        let (end, next) = (self.end, self.next_frame);
        let damaged = |what: String| Err(StoreError::damaged(path, end as u64, what));
        if (end as u64) < header.durable() {
            return damaged(format!(
                "frame {next} is damaged, and it was durable before this log was started"
            ));
        }
        // A frame is synced before the next is written, so no intact frame can follow a torn one. This is the only rule that tells a crash
        // from bit rot. Without it, one flipped bit in the middle would silently discard everything after it as "interrupted".
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

/// Finds the first intact frame after an offset. Returns its offset and number.
fn frame_after(bytes: &[u8], checksum: FileChecksum, from: usize) -> Option<(usize, u64)> {
    // The caller has found no intact frame at `from` itself.
    let mut at = from + SECTOR;
    // Frames begin at sector boundaries.
    while at + FRAME_HEADER <= bytes.len() {
        // Compare the magic first: computing a checksum over up to 256 MiB at each sector of a long tail would take minutes.
        if bytes[at..at + 4] == FRAME_MAGIC
            && let Some((number, _)) = frame_at(&bytes[at..], checksum, at as u64)
        {
            return Some((at, number));
        }
        at += SECTOR;
    }
    None
}

/// Passes the offset and payload of every intact frame of a log to `each`, whatever lies between them, and returns the ranges of lost
/// bytes. `after` is the header of the next log, if it can be read: bytes that a recovery left after the end are not lost.
///
/// # Errors
/// Fails if the file cannot be read or is shorter than a header.
pub(crate) fn salvage_log(
    fs: &dyn FileSystem,
    path: &Path,
    identity: FileIdentity,
    after: Option<&LogHeader>,
    each: &mut dyn FnMut(u64, &[u8]),
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
        // Frame checksums depend only on the identity, which the manifest gives, so no frame is lost with a damaged header.
        lost.push((0, LOG_HEADER as u64));
    }
    let mut at = LOG_HEADER;
    loop {
        while let Some((_, payload)) = frame_at(&bytes[at..], checksum, at as u64) {
            each(at as u64, payload);
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
    let dirty = nonzero_end(&bytes);
    if dirty > at {
        lost.push((at as u64, dirty as u64));
    }
    Ok(lost)
}
