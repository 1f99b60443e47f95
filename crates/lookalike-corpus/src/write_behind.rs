//! Files that go to the disk while they are written.
//!
//! A result gets its name only once it is completely on disk. If a large one were synced only at the end, the job would then just wait for the disk;
//! so Linux is asked to begin as soon as there is data. Other systems begin when they see fit: a sync of each step would stop the job that often.

use std::fs::File;
use std::io::{self, Write};

/// Number of bytes between two requests.
const STEP_BYTES: u64 = 64 << 20;

/// A new file that the system is asked to write to the disk, step by step.
pub(crate) struct WriteBehindFile {
    file: File,
    step: u64,
    /// Number of bytes written.
    written: u64,
    /// Number of these for which the disk was asked to begin.
    begun: u64,
}

impl WriteBehindFile {
    pub(crate) fn new(file: File) -> Self {
        Self {
            file,
            step: STEP_BYTES,
            written: 0,
            begun: 0,
        }
    }

    /// Returns the file. Not all of it is on disk yet.
    pub(crate) fn into_file(self) -> File {
        self.file
    }

    fn begin(&mut self) {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{Advice, fadvise};
            let length = std::num::NonZeroU64::new(self.written - self.begun);
            // Linux begins to write pages that are not needed any more, without waiting, and keeps them until they are written. An error of the disk
            // is reported by the final sync.
            let _ = fadvise(&self.file, self.begun, length, Advice::DontNeed);
        }
        self.begun = self.written;
    }
}

impl Write for WriteBehindFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.written += written as u64;
        if self.written - self.begun >= self.step {
            self.begin();
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
            assert_eq!(file.begun > 0, step < 5000);
            assert_eq!(file.into_file().metadata().unwrap().len(), 5000);
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
        }
    }
}
