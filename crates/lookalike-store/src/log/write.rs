//! Appending to the newest log.

use std::path::{Path, PathBuf};

use super::frame::{FRAME_HEADER, LOG_HEADER, LogHeader, MAX_PAYLOAD_BYTES, SECTOR, finish};
use super::read::{LastFrame, LogContents};
use crate::error::{Result, StoreError};
use crate::fs::{FileHandle, FileSystem, write_all};

/// The end of the newest log.
#[derive(Debug)]
pub(crate) struct LogWriter {
    path: PathBuf,
    file: Box<dyn FileHandle>,
    header: LogHeader,
    /// Offset of the next frame, and its number.
    offset: u64,
    next: u64,
    /// Bytes of the file that are there, written as zeros before they are used.
    prepared: u64,
    /// End of the remains of a failed write.
    dirty: u64,
    /// Bytes that are allocated at a time. A quarter is reserved for frames that free space.
    step: u64,
    /// True if the last frame proves that those before it were durable.
    closed: bool,
}

/// Result of an append.
#[derive(Debug)]
pub(crate) enum AppendResult {
    /// The frame is durable.
    Durable,
    /// There is no room: nothing was written.
    Full(StoreError),
    /// The medium failed, and nothing is known of the frame: no more may be written.
    Failed(StoreError),
}

impl LogWriter {
    /// A new log with some room; durable, but for its name.
    pub(crate) fn create(
        fs: &dyn FileSystem,
        path: &Path,
        header: LogHeader,
        step: u64,
    ) -> Result<Self> {
        Self::create_with(fs, path, header, Vec::new(), step)
    }

    /// A new log that goes on after one that a crash left, and begins with a copy of its last frame, if there is one.
    pub(crate) fn recover(
        fs: &dyn FileSystem,
        path: &Path,
        mut header: LogHeader,
        last: Option<&LastFrame>,
        step: u64,
    ) -> Result<Self> {
        let mut frame = Vec::new();
        if let Some(last) = last {
            frame.resize(FRAME_HEADER, 0);
            frame.extend_from_slice(&last.payload);
            finish(
                &mut frame,
                header.checksum(),
                LOG_HEADER as u64,
                header.first,
            );
        }
        // All of this is synced before a manifest names the log, so damage up to here is never an interrupted
        // write.
        header.recovered = (LOG_HEADER + frame.len()) as u64;
        Self::create_with(fs, path, header, frame, step)
    }

    fn create_with(
        fs: &dyn FileSystem,
        path: &Path,
        header: LogHeader,
        frame: Vec<u8>,
        step: u64,
    ) -> Result<Self> {
        let failed = |action| move |error| StoreError::io(path, action)(error);
        let file = fs.create(path).map_err(failed("creating a log"))?;
        let mut bytes = header.to_bytes().to_vec();
        bytes.extend_from_slice(&frame);
        let offset = bytes.len() as u64;
        // Zeros ahead of the frames reserve room, and spare each sync of a frame a change of the file's length.
        bytes.resize((offset + step) as usize, 0);
        write_all(&*file, &bytes, 0).map_err(failed("writing a log"))?;
        file.sync().map_err(failed("syncing a log"))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            header,
            offset,
            next: header.first + u64::from(!frame.is_empty()),
            prepared: bytes.len() as u64,
            dirty: 0,
            step,
            closed: true,
        })
    }

    /// Goes on after the frames of a log that was read: one in which all is durable, or one that there is no room to leave.
    pub(crate) fn resume(
        fs: &dyn FileSystem,
        path: &Path,
        contents: &LogContents,
        step: u64,
    ) -> Result<Self> {
        let file = fs
            .open(path, true)
            .map_err(StoreError::io(path, "opening the log to write"))?;
        // Frames that were read may be in the page cache only. They are served from now on, so they have to be
        // durable.
        if contents.needs_recovery() {
            file.sync()
                .map_err(StoreError::io(path, "syncing the log"))?;
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            header: contents.header,
            offset: contents.end,
            next: contents.next,
            prepared: contents.length,
            // The next append zeroes what a torn write left.
            dirty: contents.dirty,
            step,
            closed: contents.end == contents.header.durable(),
        })
    }

    pub(crate) fn file(&self) -> u64 {
        self.header.file
    }

    /// End of the frames.
    pub(crate) fn end(&self) -> u64 {
        self.offset
    }

    /// Number of the next frame.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Bytes of frames.
    pub(crate) fn bytes(&self) -> u64 {
        self.offset - LOG_HEADER as u64
    }

    /// True if damage to any frame so far can be told from an interrupted write.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Appends a closing frame, which uses the room that is kept where the disk is full.
    pub(crate) fn close(&mut self, frame: &mut Vec<u8>) -> AppendResult {
        let appended = self.append(frame, true);
        self.closed |= matches!(appended, AppendResult::Durable);
        appended
    }

    /// Appends a frame, whose first [`FRAME_HEADER`] bytes are room for the header, and makes it durable. Frames that
    /// free space may use the room that is kept for them.
    pub(crate) fn append(&mut self, frame: &mut Vec<u8>, frees_space: bool) -> AppendResult {
        if frame.len() > FRAME_HEADER + MAX_PAYLOAD_BYTES {
            return AppendResult::Full(StoreError::BatchTooLarge {
                bytes: frame.len() - FRAME_HEADER,
                limit: MAX_PAYLOAD_BYTES,
            });
        }
        // Room first, then the frame: the file's length changes in `prepare` with a sync of its own, so that
        // the sync of a frame has data to write and no metadata.
        let end = self.offset + frame.len().next_multiple_of(SECTOR) as u64;
        if let Err(error) = self.prepare(end, frees_space) {
            return match error {
                StoreError::DiskFull { .. } => AppendResult::Full(error),
                _ => AppendResult::Failed(error),
            };
        }
        finish(frame, self.header.checksum(), self.offset, self.next);
        let path = &self.path;
        let written = write_all(&*self.file, frame, self.offset)
            .map_err(StoreError::io(path, "writing the log"));
        // Even a write that fails may have left part of the frame.
        self.dirty = self.dirty.max(end);
        match written {
            Ok(()) => {}
            // A file system that copies on write can be full where the file has room. Nothing was acknowledged:
            // go on without it.
            Err(error @ StoreError::DiskFull { .. }) => return AppendResult::Full(error),
            Err(error) => return AppendResult::Failed(error),
        }
        // A sync that failed is never tried again: the system may have forgotten what it did not write.
        if let Err(error) = self.file.sync() {
            let error = StoreError::Io {
                path: path.clone(),
                action: "syncing the log",
                cause: error.into(),
            };
            return AppendResult::Failed(error);
        }
        self.offset = end;
        self.next += 1;
        // Damage to this frame looks like an interrupted write until a later frame, or a closing one, follows
        // it.
        self.closed = false;
        AppendResult::Durable
    }

    /// Makes zeros of what a failed or torn write left behind the frames, durably.
    pub(crate) fn clear_tail(&mut self) -> Result<()> {
        if self.dirty > self.offset {
            self.prepare(self.offset, true)
        } else {
            Ok(())
        }
    }

    /// Makes zeros of what a failed write left, and room for a frame.
    fn prepare(&mut self, end: u64, frees_space: bool) -> Result<()> {
        let path = self.path.clone();
        let failed = |action| {
            let path = path.clone();
            move |error| StoreError::io(&path, action)(error)
        };
        let mut changed = false;
        if self.dirty > self.offset {
            let zeros = vec![0; (self.dirty - self.offset) as usize];
            // Without zeros a shorter frame could leave the end of the failed one behind it, whole sectors with
            // a valid header among them, and the next start would refuse the log.
            write_all(&*self.file, &zeros, self.offset)
                .map_err(failed("clearing the end of the log"))?;
            self.prepared = self.prepared.max(self.dirty);
            changed = true;
        }
        // Deletes may use the last quarter: on a full disk they are what makes room again.
        let kept = if frees_space { 0 } else { self.step / 4 };
        if end + kept > self.prepared {
            let target = end + self.step;
            let zeros = vec![0; (target - self.prepared) as usize];
            write_all(&*self.file, &zeros, self.prepared).map_err(failed("extending the log"))?;
            self.prepared = target;
            changed = true;
        }
        if changed {
            self.file.sync().map_err(|error| StoreError::Io {
                path: path.clone(),
                action: "syncing the log",
                cause: error.into(),
            })?;
            // Only the sync proves that the remains are gone: after a power cut they could stand behind a newer
            // frame.
            self.dirty = 0;
        }
        Ok(())
    }
}
