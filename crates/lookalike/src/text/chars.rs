//! The characters of a text as character shingles see them (point 4 of the definition in
//! `super`): the pieces joined by one space, or the word characters alone.

use super::piece::is_word_char;
use super::{CHUNK, Segmenter, first_piece};
use crate::scheme::{Case, Segmentation};

/// Bytes that can be read from any character on.
const PADDING: usize = 8;

/// Code points in one buffer, and where each begins.
#[derive(Debug, Default)]
pub(crate) struct CharBatch {
    /// The characters, and [`PADDING`] bytes or more that mean nothing.
    bytes: Vec<u8>,
    used: usize,
    starts: Vec<u32>,
    /// Whether there was any piece so far.
    begun: bool,
    /// Whether any character so far is not white space.
    pub(crate) has_ink: bool,
}

impl CharBatch {
    pub(crate) fn clear(&mut self) {
        self.used = 0;
        self.starts.clear();
        self.begun = false;
        self.has_ink = false;
    }

    /// Code points in the buffer.
    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    fn push(&mut self, c: char) {
        let len = c.len_utf8();
        self.make_room(len);
        c.encode_utf8(&mut self.bytes[self.used..]);
        self.starts.push(self.used as u32);
        self.used += len;
        self.has_ink |= !c.is_whitespace();
    }

    /// Appends ASCII characters that are not white space.
    fn push_ascii(&mut self, part: &[u8], lower: bool) {
        self.make_room(part.len());
        let end = self.used + part.len();
        let copy = &mut self.bytes[self.used..end];
        copy.copy_from_slice(part);
        if lower {
            copy.make_ascii_lowercase();
        }
        self.starts.extend(self.used as u32..end as u32);
        self.used = end;
        self.has_ink |= !part.is_empty();
    }

    fn make_room(&mut self, len: usize) {
        if self.bytes.len() < self.used + len + PADDING {
            self.bytes.resize(2 * self.used + len + PADDING, 0);
        }
    }

    /// Writes start and end of each window of `width` characters to `bounds`; returns the bytes
    /// that these count.
    pub(crate) fn windows(&self, width: usize, bounds: &mut Vec<u32>) -> &[u8] {
        bounds.clear();
        if let Some(later) = self.starts.get(width..) {
            bounds.extend(
                self.starts
                    .iter()
                    .zip(later)
                    .flat_map(|(&start, &end)| [start, end]),
            );
            let last = self.starts[self.len() - width];
            bounds.extend([last, self.used as u32]);
        }
        &self.bytes
    }

    /// Drops all characters but the last `count`.
    pub(crate) fn keep_last(&mut self, count: usize) {
        let dropped = self.len().saturating_sub(count);
        let cut = self
            .starts
            .get(dropped)
            .map_or(self.used, |&start| start as usize);
        self.bytes.copy_within(cut..self.used, 0);
        self.used -= cut;
        self.starts.drain(..dropped);
        self.starts
            .iter_mut()
            .for_each(|start| *start -= cut as u32);
    }
}

impl Segmenter {
    /// Appends the characters of `text` to `batch`; `full` is called when some thousand have come
    /// together, and must drop from them. It is not called at the end.
    pub(crate) fn characters(
        &mut self,
        text: &str,
        batch: &mut CharBatch,
        mut full: impl FnMut(&mut CharBatch),
    ) {
        let mut rest = text;
        while !rest.is_empty() {
            let piece = first_piece(rest);
            rest = rest.get(piece.len() + 1..).unwrap_or_default();
            if !piece.is_empty() {
                self.piece_characters(piece, batch, &mut full);
            }
        }
    }

    fn piece_characters(
        &mut self,
        piece: &str,
        batch: &mut CharBatch,
        full: &mut impl FnMut(&mut CharBatch),
    ) {
        let spaced = self.rules.segmentation == Segmentation::Unicode;
        if spaced && batch.begun {
            batch.push(' ');
        }
        batch.begun = true;
        if spaced && piece.is_ascii() {
            for part in piece.as_bytes().chunks(CHUNK) {
                batch.push_ascii(part, self.rules.case == Case::Lower);
                hand_on(batch, full);
            }
            return;
        }
        for c in self
            .reader
            .fold(piece)
            .chars()
            .filter(|&c| spaced || is_word_char(c))
        {
            batch.push(c);
            hand_on(batch, full);
        }
    }
}

fn hand_on(batch: &mut CharBatch, full: &mut impl FnMut(&mut CharBatch)) {
    if batch.len() >= CHUNK {
        full(batch);
    }
}
