//! Files that go to the disk while they are written.
//!
//! A result has its name only once all of it is on the disk. Written first and forced to the disk at the end, a large one waits for the
//! disk when nothing else is left to do; so it begins as soon as there is something.

use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread::Builder;

use crate::detached::spawn_detached;

/// Bytes between two times at which what was written is sent to the disk.
const STEP_BYTES: u64 = 64 << 20;

/// A file that a thread of its own forces to the disk now and then.
pub(crate) struct WriteBehindFile {
    file: File,
    /// Bytes after which that is done.
    step: u64,
    /// Bytes since that was begun last.
    waiting: u64,
    /// Hears how the one that was begun last ended.
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

    /// The file; not all of it is on the disk yet.
    ///
    /// # Errors
    /// Those of the disk so far: the system tells each of them once.
    pub(crate) fn into_file(mut self) -> io::Result<File> {
        self.finish_sync()?;
        Ok(self.file)
    }

    /// Sends what was written to the disk, unless the disk is still at what came before.
    fn begin(&mut self) -> io::Result<()> {
        match self.sync.as_ref().map(Receiver::try_recv) {
            Some(Err(TryRecvError::Empty)) => return Ok(()),
            Some(synced) => synced.expect("the thread does not panic")?,
            None => {}
        }
        let file = self.file.try_clone()?;
        let (sender, synced) = channel();
        // Whoever gives the file up does not listen.
        let sync = move || drop(sender.send(file.sync_data()));
        // Without a thread the end waits longer, and that is all.
        self.sync = spawn_detached(Builder::new(), sync)
            .is_ok()
            .then_some(synced);
        self.waiting = 0;
        Ok(())
    }

    /// Waits for what was sent to the disk last.
    fn finish_sync(&mut self) -> io::Result<()> {
        let synced = self.sync.take().map(|sync| sync.recv());
        synced.map_or(Ok(()), |synced| synced.expect("the thread does not panic"))
    }
}

impl Write for WriteBehindFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.waiting += written as u64;
        if self.waiting >= self.step {
            self.begin()?;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
