//! Files that are synced to disk while they are written.
//!
//! A result gets its name only once it is completely on disk. If a large one were synced only at the end, the job would then just wait for the disk;
//! so syncing begins as soon as there is data.

use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread::Builder;

use crate::detached::spawn_detached;

/// Number of bytes between two syncs.
const STEP_BYTES: u64 = 64 << 20;

/// A file that a separate thread syncs to disk at intervals.
pub(crate) struct WriteBehindFile {
    file: File,
    /// Number of bytes after which a sync starts.
    step: u64,
    /// Number of bytes written since the last sync started.
    waiting: u64,
    /// Receives the result of the last sync that was started.
    sync: Option<Receiver<io::Result<()>>>,
}

impl WriteBehindFile {
    pub(crate) fn new(file: File) -> Self {
        Self {
            file,
            step: STEP_BYTES,
            waiting: 0,
            sync: None,
        }
    }

    /// Returns the file. Not all of it is on disk yet.
    ///
    /// # Errors
    /// Returns an error of the disk so far: the system reports each of them only once.
    pub(crate) fn into_file(mut self) -> io::Result<File> {
        self.finish_sync()?;
        Ok(self.file)
    }

    /// Starts a sync of the written data, unless the previous one is still running.
    ///
    /// # Errors
    /// Returns the error of the previous one.
    fn begin(&mut self) -> io::Result<()> {
        if let Some(sync) = self.sync.take() {
            match sync.try_recv() {
                Err(TryRecvError::Empty) => {
                    self.sync = Some(sync);
                    return Ok(());
                }
                // Taken out before: a result can be received only once, and after an error a `BufWriter` writes again when it is dropped.
                synced => synced.expect("the thread does not panic")?,
            }
        }
        let file = self.file.try_clone()?;
        let (sender, synced) = channel();
        // Nothing receives if the file was dropped.
        let sync = move || drop(sender.send(file.sync_data()));
        // If no thread can be started, the final sync just takes longer.
        self.sync = spawn_detached(Builder::new(), sync)
            .is_ok()
            .then_some(synced);
        self.waiting = 0;
        Ok(())
    }

    /// Waits for the last sync.
    fn finish_sync(&mut self) -> io::Result<()> {
        let synced = self.sync.take().map(|sync| sync.recv());
        synced.map_or(Ok(()), |synced| synced.expect("the thread does not panic"))
    }
}

impl Write for WriteBehindFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Before writing, because a write that returns an error must have written nothing.
        if self.waiting >= self.step {
            self.begin()?;
        }
        let written = self.file.write(bytes)?;
        self.waiting += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufWriter;

    use super::*;

    /// A writer to `file` whose last sync failed, as on a full disk.
    fn after_failed_sync(file: File) -> WriteBehindFile {
        let (sender, synced) = channel();
        sender.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
        WriteBehindFile {
            step: 1,
            waiting: 1,
            sync: Some(synced),
            ..WriteBehindFile::new(file)
        }
    }

    #[test]
    fn the_write_after_a_failed_sync_panicked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut file = after_failed_sync(File::create(&path).unwrap());
        let failed = file.write(b"first").unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::StorageFull);
        assert_eq!(file.write(b"second").unwrap(), 6);
        // Nothing of the write that failed.
        assert_eq!(std::fs::read(&path).unwrap(), b"second");

        let file = after_failed_sync(File::create(&path).unwrap());
        let mut buffered = BufWriter::new(file);
        buffered.write_all(b"first").unwrap();
        assert!(buffered.flush().is_err());
        drop(buffered);
    }

    #[test]
    fn a_file_has_all_bytes_however_often_it_went_to_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        for step in [1, 10, 1 << 20] {
            let path = folder.path().join(step.to_string());
            let mut file = WriteBehindFile {
                step,
                ..WriteBehindFile::new(File::create(&path).unwrap())
            };
            let bytes: Vec<u8> = (0..=255).cycle().take(5000).collect();
            bytes
                .chunks(7)
                .try_for_each(|piece| file.write_all(piece))
                .unwrap();
            assert_eq!(file.sync.is_some(), step < 5000);
            file.into_file().unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
        }
    }
}
