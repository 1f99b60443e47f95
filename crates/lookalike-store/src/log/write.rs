//! Appending to the newest log.

use std::path::{Path, PathBuf};

use super::frame::{FRAME_HEADER, LOG_HEADER, LogHeader, MAX_PAYLOAD_BYTES, SECTOR, finish};
use super::read::{LastFrame, LogContents};
use crate::error::{Result, StoreError};
use crate::fs::{FileHandle, FileSystem, write_all};

/// The writer of the newest log.
#[derive(Debug)]
pub(crate) struct LogWriter {
    path: PathBuf,
    file: Box<dyn FileHandle>,
    header: LogHeader,
    /// Offset of the next frame, followed by its number.
    offset: u64,
    next: u64,
    /// Length of the file, which is filled with zeros ahead of the frames.
    prepared: u64,
    /// End of the remains of a failed write.
    dirty: u64,
    /// Number of bytes by which the file is extended. A quarter of it is reserved for frames that free space.
    step: u64,
    /// True if the last frame proves that all frames before it were durable.
    closed: bool,
}

/// The result of an append.
#[derive(Debug)]
pub(crate) enum AppendResult {
    /// The frame is durable.
    Durable,
    /// The disk is full, and nothing was written.
    Full(StoreError),
    /// The medium failed, and the state of the frame is unknown: no more frames may be written.
    Failed(StoreError),
}

impl LogWriter {
    /// Creates a log with space for some frames and syncs it, but not the folder that names it.
    pub(crate) fn create(
        fs: &dyn FileSystem,
        path: &Path,
        header: LogHeader,
        step: u64,
    ) -> Result<Self> {
        Self::create_with(fs, path, header, Vec::new(), step)
    }

    /// Creates a log that continues the one that a crash left, starting with a copy of its last frame, if there is one.
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
        // All of this is synced before a manifest names the log, so damage up to here is never an interrupted write.
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
        // Zeros ahead of the frames reserve space, and keep the syncs of frames from having to update the length of the file.
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
            // There is no frame yet, or only one before `recovered`, whose damage no reader takes for an interrupted write.
            closed: true,
        })
    }

    /// Continues a log that was read: one that is entirely durable, or one that cannot be replaced because the disk is full.
    pub(crate) fn resume(
        fs: &dyn FileSystem,
        path: &Path,
        contents: &LogContents,
        step: u64,
    ) -> Result<Self> {
        let file = fs
            .open(path, true)
            .map_err(StoreError::io(path, "opening the log to write"))?;
        // The frames may only be in the page cache. Readers see them from now on, so they must be durable.
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
            // The next append overwrites the remains of a torn write with zeros.
            dirty: contents.dirty,
            step,
            closed: contents.end == contents.header.durable(),
        })
    }

    pub(crate) fn file(&self) -> u64 {
        self.header.file
    }

    /// Returns the offset at which the frames end.
    pub(crate) fn end(&self) -> u64 {
        self.offset
    }

    /// Returns the number of the next frame.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Returns the size of the frames in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.offset - LOG_HEADER as u64
    }

    /// Returns true if damage to any frame so far can be told from an interrupted write.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Appends a closing frame, which may use the reserved space if the disk is full.
    pub(crate) fn close(&mut self, frame: &mut Vec<u8>) -> AppendResult {
        let appended = self.append(frame, true);
        self.closed |= matches!(appended, AppendResult::Durable);
        appended
    }

    /// Appends a frame, which starts with [`FRAME_HEADER`] bytes reserved for its header, and makes it durable. Frames that free space may
    /// use the reserved space.
    pub(crate) fn append(&mut self, frame: &mut Vec<u8>, frees_space: bool) -> AppendResult {
        if frame.len() > FRAME_HEADER + MAX_PAYLOAD_BYTES {
            return AppendResult::Full(StoreError::BatchTooLarge {
                bytes: frame.len() - FRAME_HEADER,
                limit: MAX_PAYLOAD_BYTES,
            });
        }
        // Extend the file first, then write the frame: `prepare` changes the file's length with a sync of its own, so that the sync of the
        // frame writes data but no metadata.
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
        // Even a failed write may have left a part of the frame.
        self.dirty = self.dirty.max(end);
        match written {
            Ok(()) => {}
            // A copy-on-write file system can be full even though the file has space. Nothing was acknowledged, so the log continues
            // without this frame.
            Err(error @ StoreError::DiskFull { .. }) => return AppendResult::Full(error),
            Err(error) => return AppendResult::Failed(error),
        }
        // Never retry a failed sync: the system may have dropped the data that it could not write.
        if let Err(error) = self.file.sync() {
            let error = StoreError::failed(path.clone(), "syncing the log", error);
            return AppendResult::Failed(error);
        }
        self.offset = end;
        self.next += 1;
        // Damage to this frame looks like an interrupted write until another frame, perhaps a closing one, follows it.
        self.closed = false;
        AppendResult::Durable
    }

    /// Overwrites the remains of a failed or torn write after the frames with zeros, durably.
    pub(crate) fn clear_tail(&mut self) -> Result<()> {
        if self.dirty > self.offset {
            self.prepare(self.offset, true)
        } else {
            Ok(())
        }
    }

    /// Overwrites the remains of a failed write with zeros, and extends the file for a frame.
    fn prepare(&mut self, end: u64, frees_space: bool) -> Result<()> {
        let path = self.path.clone();
        let failed = |action| {
            let path = path.clone();
            move |error| StoreError::io(&path, action)(error)
        };
        let mut changed = false;
        if self.dirty > self.offset {
            let zeros = vec![0; (self.dirty - self.offset) as usize];
            // Without zeros, a shorter frame could leave the end of the failed one after it, with whole sectors and perhaps a valid header,
            // and the next start would refuse the log.
            write_all(&*self.file, &zeros, self.offset)
                .map_err(failed("clearing the end of the log"))?;
            // The failed write may have extended the file.
            self.prepared = self.prepared.max(self.dirty);
            changed = true;
        }
        // Deletes may use the last quarter: on a full disk, they are the way to free space.
        let kept = if frees_space { 0 } else { self.step / 4 };
        if end + kept > self.prepared {
            let target = end + self.step;
            let zeros = vec![0; (target - self.prepared) as usize];
            write_all(&*self.file, &zeros, self.prepared).map_err(failed("extending the log"))?;
            self.prepared = target;
            changed = true;
        }
        if changed {
            let synced = self.file.sync();
            synced.map_err(|error| StoreError::failed(path.clone(), "syncing the log", error))?;
            // Only the sync ensures that the remains are gone: after a power failure they could otherwise follow a newer frame.
            self.dirty = 0;
        }
        Ok(())
    }
}
