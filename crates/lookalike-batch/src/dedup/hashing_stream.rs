//! Files that end with a hash of their contents.

use std::io::{self, Read, Write};
use std::path::Path;

use bytemuck::Pod;
use lookalike_corpus::{AtomicFile, Compression};
use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::Xxh3;

use crate::spill::table_column::TableColumn;

/// A writer or reader that hashes the bytes that pass through it.
pub(crate) struct HashingStream<W> {
    inner: W,
    hash: Xxh3,
    pub(crate) passed: u64,
}

impl<W> HashingStream<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self {
            inner,
            hash: Xxh3::new(),
            passed: 0,
        }
    }

    /// Returns the hash of all bytes that have passed.
    pub(crate) fn digest(&self) -> u64 {
        self.hash.digest()
    }
}

impl<W: Write> Write for HashingStream<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        // The inner writer may take only a part; the caller passes the rest again.
        self.hash.update(&bytes[..written]);
        self.passed += written as u64;
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Writes a file that begins with `magic` and a JSON object after its length, and ends with the hash of everything before. The file gets its name
/// when it is complete.
pub(crate) fn save_hashed(
    path: &Path,
    magic: [u8; 8],
    head: &impl Serialize,
    columns: impl FnOnce(&mut HashingStream<&mut AtomicFile>) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = AtomicFile::create(path, Compression::None)?;
    let mut out = HashingStream::new(&mut file);
    let head = serde_json::to_vec(head)?;
    out.write_all(&magic)?;
    write_words(&mut out, &[head.len()])?;
    out.write_all(&head)?;
    columns(&mut out)?;
    let sum = out.digest();
    // Directly to the file: the checksum covers everything before it.
    file.write_all(&sum.to_le_bytes())?;
    file.commit()
}

/// Writes numbers, each as a `u64`.
pub(crate) fn write_words(out: &mut impl Write, words: &[usize]) -> io::Result<()> {
    let mut words = words.iter();
    words.try_for_each(|&word| out.write_all(&(word as u64).to_le_bytes()))
}

impl<R: Read> HashingStream<R> {
    /// Reads the object at the start of a file of [`save_hashed`].
    pub(crate) fn head<T: DeserializeOwned>(&mut self, magic: [u8; 8]) -> io::Result<T> {
        if self.word()? != u64::from_le_bytes(magic) {
            return Err(damaged());
        }
        let length = self.word()?;
        Ok(serde_json::from_slice(&self.column::<u8>(length)?)?)
    }

    pub(crate) fn take(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.inner.read_exact(bytes)?;
        self.hash.update(bytes);
        self.passed += bytes.len() as u64;
        Ok(())
    }

    pub(crate) fn word(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.take(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub(crate) fn words<const N: usize>(&mut self) -> io::Result<[u64; N]> {
        let mut words = [0; N];
        for word in &mut words {
            *word = self.word()?;
        }
        Ok(words)
    }

    /// Reads a column. `count` comes from the file, so memory is only allocated as bytes arrive.
    pub(crate) fn column<T: Pod>(&mut self, count: u64) -> io::Result<Vec<T>> {
        self.filled(count)
    }

    /// Reads a column of a table, as [`Self::column`] does.
    pub(crate) fn table_column<T: Pod>(&mut self, count: u64) -> io::Result<TableColumn<T>> {
        self.filled(count)
    }

    fn filled<T: Pod, C: Default + Extend<T> + AsMut<[T]>>(&mut self, count: u64) -> io::Result<C> {
        const STEP: usize = 1 << 16;
        let count = usize::try_from(count).map_err(|_| damaged())?;
        let (mut column, mut length) = (C::default(), 0);
        while length < count {
            let more = (count - length).min(STEP);
            column.extend(std::iter::repeat_n(T::zeroed(), more));
            self.take(bytemuck::cast_slice_mut(&mut column.as_mut()[length..]))?;
            length += more;
        }
        Ok(column)
    }

    /// Reads the hash of everything before it, and returns an error if it is wrong.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        let sum = self.hash.digest();
        if self.word()? == sum {
            Ok(())
        } else {
            Err(damaged())
        }
    }
}

pub(crate) fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the checkpoint is damaged")
}

#[cfg(target_endian = "big")]
compile_error!("checkpoints are written as they lie in memory, which must be little-endian");
