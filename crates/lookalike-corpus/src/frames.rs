//! Compressed files of independent frames, compressed on several threads.
//!
//! Output is cut into pieces of equal length, and each piece becomes a gzip member or a zstd frame of its own. Every reader of these formats reads
//! several of them as one stream. The cuts do not depend on the number of threads, so neither do the bytes of the file.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use crate::detached::spawn_detached;
use flate2::write::GzEncoder;

const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// The format of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameFormat {
    Gzip,
    Zstd,
}

impl FrameFormat {
    /// Returns the number of bytes in a frame. gzip looks back 32 KiB, so it loses nothing; zstd looks back 2 MiB.
    fn frame_bytes(self) -> usize {
        match self {
            Self::Gzip => 1 << 20,
            Self::Zstd => 4 << 20,
        }
    }

    /// Returns the maximum number of threads that can compress in `memory` bytes: each has a frame, its compressed form and tables of about the same
    /// size, and one more frame waits for it.
    pub(crate) fn threads_within(self, memory: u64) -> usize {
        usize::try_from(memory / (4 * self.frame_bytes() as u64)).unwrap_or(usize::MAX)
    }

    fn compress(self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL));
                encoder.write_all(bytes)?;
                encoder.finish()
            }
            Self::Zstd => zstd::bulk::compress(bytes, ZSTD_LEVEL),
        }
    }
}

type Compressed = mpsc::Receiver<io::Result<Vec<u8>>>;

/// Bytes to compress, and the sender for the result.
type Task = (Vec<u8>, mpsc::Sender<io::Result<Vec<u8>>>);

/// Compresses the bytes written to it. Memory: see [`FrameFormat::threads_within`]; threads start with the second frame.
pub(crate) struct FrameWriter<W> {
    out: W,
    format: FrameFormat,
    threads: usize,
    /// The frame being filled.
    frame: Vec<u8>,
    /// The frames given to threads, in order.
    waiting: VecDeque<Compressed>,
    tasks: Option<mpsc::Sender<Task>>,
    /// True once a frame was passed on.
    is_begun: bool,
}

impl<W: Write> FrameWriter<W> {
    pub(crate) fn new(out: W, format: FrameFormat, threads: usize) -> Self {
        Self {
            out,
            format,
            threads,
            frame: Vec::new(),
            waiting: VecDeque::new(),
            tasks: None,
            is_begun: false,
        }
    }

    /// Writes the last frame, and those that are still being compressed. An empty file has one frame.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        if !self.frame.is_empty() || !self.is_begun {
            self.end_frame()?;
        }
        while !self.waiting.is_empty() {
            self.write_first()?;
        }
        Ok(self.out)
    }

    fn end_frame(&mut self) -> io::Result<()> {
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        let is_whole = self.frame.len() == self.format.frame_bytes();
        // A file of a single frame needs no threads.
        if self.threads < 2 || is_first && !is_whole {
            // `clear` keeps the buffer for the next frame. With threads it is moved into the task.
            let compressed = self.format.compress(&self.frame)?;
            self.frame.clear();
            return self.out.write_all(&compressed);
        }
        // One frame per thread and one that waits; more would use memory without gain. Writing the oldest one keeps the order, and makes the producer
        // wait for a slow disk.
        if self.waiting.len() > self.threads {
            self.write_first()?;
        }
        if self.tasks.is_none() {
            self.tasks = begin(self.format, self.threads);
        }
        let Some(tasks) = &self.tasks else {
            self.threads = 1;
            return self.end_frame();
        };
        let (sender, result) = mpsc::channel();
        let frame = std::mem::take(&mut self.frame);
        // One channel per frame: results arrive in any order, and are taken in the order of the frames.
        tasks.send((frame, sender)).map_err(|_| ended())?;
        self.waiting.push_back(result);
        Ok(())
    }

    fn write_first(&mut self) -> io::Result<()> {
        let Some(first) = self.waiting.pop_front() else {
            return Ok(());
        };
        let compressed = first.recv().map_err(|_| ended())??;
        self.out.write_all(&compressed)
    }
}

impl<W: Write> Write for FrameWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.format.frame_bytes() - self.frame.len();
        let taken = bytes.len().min(room);
        self.frame.extend_from_slice(&bytes[..taken]);
        if taken == room {
            self.end_frame()?;
        }
        Ok(taken)
    }

    /// Does nothing, because a frame ends only when it is full.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts threads that compress until the sender of tasks is dropped, as many as the system allows. Returns `None` if it allows none.
fn begin(format: FrameFormat, threads: usize) -> Option<mpsc::Sender<Task>> {
    let (sender, tasks) = mpsc::channel::<Task>();
    let tasks = Arc::new(Mutex::new(tasks));
    let begin_one = |_| {
        let tasks = Arc::clone(&tasks);
        let next = move || {
            // The lock is held while waiting: one thread waits for a task, the others for the lock.
            let tasks = tasks.lock().unwrap_or_else(PoisonError::into_inner);
            tasks.recv().ok()
        };
        spawn_detached(std::thread::Builder::new(), move || {
            while let Some((frame, result)) = next() {
                // A writer that failed no longer receives.
                let _ = result.send(format.compress(&frame));
            }
        })
        .ok()
    };
    let started = (0..threads).map_while(begin_one).count();
    (started > 0).then_some(sender)
}

fn ended() -> io::Error {
    io::Error::other("a thread that compresses has ended")
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::MultiGzDecoder;
    use proptest::prelude::*;

    use super::*;

    const FORMATS: [FrameFormat; 2] = [FrameFormat::Gzip, FrameFormat::Zstd];

    /// Returns distinct lines of `bytes` bytes in all.
    fn lines(bytes: usize, seed: u64) -> Vec<u8> {
        let line = |at: u64| format!("{{\"id\":{}}}\n", at.wrapping_mul(seed | 1)).into_bytes();
        let mut lines: Vec<u8> = (0..)
            .flat_map(|at| line(at).into_iter())
            .take(bytes)
            .collect();
        lines.truncate(bytes);
        lines
    }

    #[test]
    fn threads_that_compress_fit_the_memory() {
        let within = |memory: u64| FORMATS.map(|format| format.threads_within(memory));
        assert_eq!(within(3 << 20), [0, 0]);
        assert_eq!(within(64 << 20), [16, 4]);
        assert_eq!(within(1 << 30), [256, 64]);
    }

    fn written(bytes: &[u8], format: FrameFormat, threads: usize, step: usize) -> Vec<u8> {
        let mut writer = FrameWriter::new(Vec::new(), format, threads);
        for piece in bytes.chunks(step) {
            writer.write_all(piece).unwrap();
        }
        writer.finish().unwrap()
    }

    fn read(compressed: &[u8], format: FrameFormat) -> Vec<u8> {
        match format {
            FrameFormat::Gzip => {
                let mut bytes = Vec::new();
                let mut decoder = MultiGzDecoder::new(compressed);
                decoder.read_to_end(&mut bytes).unwrap();
                bytes
            }
            FrameFormat::Zstd => zstd::stream::decode_all(compressed).unwrap(),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn any_number_of_threads_writes_what_comes_back_as_the_same_bytes(
            frames in 0.0..5.0_f64,
            seed in any::<u64>(),
            threads in 2..6_usize,
            step in prop_oneof![1000..5000_usize, 1_000_000..9_000_000_usize],
        ) {
            for format in FORMATS {
                let bytes = lines((frames * format.frame_bytes() as f64) as usize, seed);
                let one = written(&bytes, format, 1, 4096);
                prop_assert!(written(&bytes, format, threads, step) == one);
                prop_assert!(read(&one, format) == bytes);
            }
        }
    }

    #[test]
    fn cuts_are_after_equal_numbers_of_bytes_and_nothing_is_a_frame_too() {
        for format in FORMATS {
            assert_eq!(read(&written(b"", format, 3, 1), format), b"");
            let whole = lines(3 * format.frame_bytes(), 7);
            let frames = whole.chunks(format.frame_bytes());
            let frames: Vec<Vec<u8>> = frames
                .map(|frame| format.compress(frame).unwrap())
                .collect();
            assert!(written(&whole, format, 3, 12_345) == frames.concat());
        }
    }

    /// A full disk.
    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_told() {
        for threads in [1, 3] {
            let mut writer = FrameWriter::new(Full, FrameFormat::Gzip, threads);
            let written = writer.write_all(&lines(2 << 20, 3));
            let error = written
                .and_then(|()| writer.finish().map(drop))
                .unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
    }
}
