//! A batch of words: one buffer of bytes and where each word lies in it.
//!
//! What the segmenter fills and the token hash reads. The buffer is longer than what it holds, so
//! that a kernel may read whole vectors at any word.

/// Bytes that may be read and written behind the used part of the buffer.
pub(crate) const PADDING: usize = 64;

/// Words as pairs of bounds (start, end) into one buffer.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    used: usize,
    bounds: Vec<usize>,
}

/// The free part of a batch, for a kernel to fill.
pub(crate) struct Room<'a> {
    /// As many bytes as were asked for, and [`PADDING`] more.
    pub bytes: &'a mut [u8],
    /// Position of `bytes` within the batch.
    pub base: usize,
    /// Bounds so far, of whole words.
    pub bounds: &'a mut Vec<usize>,
}

impl Batch {
    pub(crate) fn clear(&mut self) {
        self.used = 0;
        self.bounds.clear();
    }

    pub(crate) fn len_bytes(&self) -> usize {
        self.used
    }

    /// The buffer, with [`PADDING`] readable bytes behind the last word.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Start and end of each word, one after another.
    pub(crate) fn bounds(&self) -> &[usize] {
        &self.bounds
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.bounds.chunks_exact(2).map(|bound| {
            std::str::from_utf8(&self.bytes[bound[0]..bound[1]]).expect("words are cut from text")
        })
    }

    /// Room for `len` more bytes.
    pub(crate) fn room(&mut self, len: usize) -> Room<'_> {
        let needed = self.used + len + PADDING;
        if self.bytes.len() < needed {
            self.bytes.resize(needed, 0);
        }
        let base = self.used;
        Room {
            bytes: &mut self.bytes[base..needed],
            base,
            bounds: &mut self.bounds,
        }
    }

    /// Keeps the first `len` bytes of the room that was given out, and the words in them.
    /// Words without a letter or digit are dropped when `drop_underscores`.
    pub(crate) fn commit(&mut self, len: usize, drop_underscores: bool) {
        let first = self.bounds.len() - self.bounds_from(self.used);
        self.used += len;
        let beyond = self.bounds_from(self.used);
        self.bounds.truncate(self.bounds.len() - beyond);
        if drop_underscores {
            self.drop_underscores(first);
        }
    }

    /// How many bounds belong to words that start at `position` or later.
    fn bounds_from(&self, position: usize) -> usize {
        2 * self
            .bounds
            .chunks_exact(2)
            .rev()
            .take_while(|bound| bound[0] >= position)
            .count()
    }

    /// Drops the words from bound `first` on that consist of underscores.
    fn drop_underscores(&mut self, first: usize) {
        let mut kept = first;
        for at in (first..self.bounds.len()).step_by(2) {
            let (start, end) = (self.bounds[at], self.bounds[at + 1]);
            if self.bytes[start..end].iter().any(|&byte| byte != b'_') {
                self.bounds[kept] = start;
                self.bounds[kept + 1] = end;
                kept += 2;
            }
        }
        self.bounds.truncate(kept);
    }

    /// Appends one word.
    pub(crate) fn push(&mut self, word: &str) {
        let base = self.used;
        self.room(word.len()).bytes[..word.len()].copy_from_slice(word.as_bytes());
        self.used += word.len();
        self.bounds.extend([base, self.used]);
    }
}
