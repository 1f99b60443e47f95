//! A batch of words: one buffer of bytes, and the bounds of each word in it.
//!
//! The segmenter fills it and the token hash reads it. The buffers are longer than their contents, so that a kernel may read and write whole vectors
//! at any word.

use crate::kernel::tokenise::{Scan, WordBatchRoom};

/// Number of bytes and of bounds after the used part of the buffers that a kernel may touch.
const PADDING: usize = 64;

/// Words as pairs of bounds (start, end) into one buffer.
#[derive(Debug, Clone, Default)]
pub(crate) struct WordBatch {
    bytes: Vec<u8>,
    used: usize,
    bounds: Vec<u32>,
    bounds_used: usize,
}

impl WordBatch {
    pub(crate) fn clear(&mut self) {
        self.used = 0;
        self.bounds_used = 0;
    }

    pub(crate) fn len_bytes(&self) -> usize {
        self.used
    }

    /// Returns the buffer; at least 8 bytes can be read from the start of each word.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the start and end of each word, one after another.
    pub(crate) fn bounds(&self) -> &[u32] {
        &self.bounds[..self.bounds_used]
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        // Checked once for the batch, not for each word.
        let text = std::str::from_utf8(&self.bytes[..self.used]).expect("cut from text at words");
        let (bounds, _) = self.bounds().as_chunks::<2>();
        bounds
            .iter()
            .map(move |&[start, end]| &text[start as usize..end as usize])
    }

    /// Makes room for `len` more bytes.
    ///
    /// # Panics
    /// Panics if positions do not fit into 32 bits: batches are far smaller, except for a word of 4 GiB.
    pub(crate) fn room(&mut self, len: usize) -> WordBatchRoom<'_> {
        let bytes = self.used + len + PADDING;
        // Never shrunk: the bytes of earlier texts stay after the used part, where kernels read them but nothing keeps them.
        if self.bytes.len() < bytes {
            self.bytes.resize(bytes, 0);
        }
        let bounds = self.bounds_used + len + PADDING;
        if self.bounds.len() < bounds {
            self.bounds.resize(bounds, 0);
        }
        WordBatchRoom {
            bytes: &mut self.bytes[self.used..bytes],
            base: u32::try_from(bytes)
                .map(|_| self.used as u32)
                .expect("a word is below 4 GiB"),
            bounds: &mut self.bounds[self.bounds_used..],
        }
    }

    /// Keeps the first `len` bytes that `scan` wrote into the room, and the words in them; drops words of underscores alone if `drop_underscores` is
    /// true.
    pub(crate) fn commit(&mut self, scan: Scan, len: usize, drop_underscores: bool) {
        let first = self.bounds_used;
        self.used += len;
        self.bounds_used += scan.bounds;
        // The scan may have read into a piece that is given back. Its words come last, so drop them from the end.
        while self.bounds_used > first && self.bounds[self.bounds_used - 2] as usize >= self.used {
            self.bounds_used -= 2;
        }
        if drop_underscores && scan.underscore {
            self.drop_underscores(first);
        }
    }

    /// Drops the words from bound `first` on that consist of underscores.
    fn drop_underscores(&mut self, first: usize) {
        // UAX #29 makes a segment of underscores, but a word needs an alphanumeric character.
        let mut kept = first;
        for at in (first..self.bounds_used).step_by(2) {
            let (start, end) = (self.bounds[at], self.bounds[at + 1]);
            if self.bytes[start as usize..end as usize]
                .iter()
                .any(|&byte| byte != b'_')
            {
                self.bounds[kept] = start;
                self.bounds[kept + 1] = end;
                kept += 2;
            }
        }
        self.bounds_used = kept;
    }

    /// Appends one word.
    pub(crate) fn push(&mut self, word: &str) {
        let room = self.room(word.len());
        room.bytes[..word.len()].copy_from_slice(word.as_bytes());
        let end = room.base + word.len() as u32;
        room.bounds[0] = room.base;
        room.bounds[1] = end;
        self.used = end as usize;
        self.bounds_used += 2;
    }
}
