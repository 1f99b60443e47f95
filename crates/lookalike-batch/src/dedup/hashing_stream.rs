//! Files that end with a hash of all that is in them.

use std::io::{self, Read, Write};

use bytemuck::Pod;
use xxhash_rust::xxh3::Xxh3;

use crate::spill::table_column::TableColumn;

/// A writer or reader that hashes what passes.
pub(crate) struct HashingStream<W> {
    inner: W,
    hash: Xxh3,
    passed: u64,
}

impl<W> HashingStream<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self {
            inner,
            hash: Xxh3::new(),
            passed: 0,
        }
    }

    /// Number of bytes that passed.
    pub(crate) fn passed(&self) -> u64 {
        self.passed
    }

    /// The hasher of all that passed, to go on with.
    pub(crate) fn hasher(&self) -> Xxh3 {
        self.hash.clone()
    }

    /// The hash of all that passed.
    pub(crate) fn digest(&self) -> u64 {
        self.hash.digest()
    }
}

impl<W: Write> Write for HashingStream<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        // The inner writer may take a part: the rest comes again.
        self.hash.update(&bytes[..written]);
        self.passed += written as u64;
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> HashingStream<R> {
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

    /// A column; `count` comes from the file, so memory is taken only as bytes really arrive.
    pub(crate) fn column<T: Pod>(&mut self, count: u64) -> io::Result<Vec<T>> {
        self.filled(count)
    }

    /// The same of a table.
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

    /// Reads a part that has a sum of its own in front, which alone goes into the hash of all.
    pub(crate) fn summed<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> io::Result<T>,
    ) -> io::Result<T> {
        let sum = self.word()?;
        let outer = std::mem::take(&mut self.hash);
        let part = read(self);
        let found = std::mem::replace(&mut self.hash, outer).digest();
        match part {
            Ok(_) if found != sum => Err(damaged()),
            part => part,
        }
    }

    /// Demands that the hash of all before comes now.
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
