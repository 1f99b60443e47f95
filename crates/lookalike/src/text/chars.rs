//! The characters of a text for character shingles (point 4 of the definition in `super`): those between white space joined by one space, or the
//! word characters alone.

use super::piece::is_word_char;
use super::{CHUNK, Segmenter, first_piece, is_space, piece_start};
use crate::scheme::Case;

/// Number of bytes that can be read from the start of any character.
const PADDING: usize = 8;

/// Code points in one buffer, with the start of each.
#[derive(Debug, Clone, Default)]
pub(crate) struct CharBatch {
    /// The characters, followed by at least [`PADDING`] unused bytes.
    bytes: Vec<u8>,
    used: usize,
    starts: Vec<u32>,
    /// True if there was a piece so far.
    begun: bool,
    /// True if there was a character other than white space so far.
    pub(crate) has_ink: bool,
}

impl CharBatch {
    pub(crate) fn clear(&mut self) {
        self.used = 0;
        self.starts.clear();
        self.begun = false;
        self.has_ink = false;
    }

    /// Returns the characters in the buffer.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.used]).expect("whole characters were put in")
    }

    /// Returns the number of code points in the buffer.
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

    /// Appends the characters of ASCII pieces, with a space before each piece but the very first.
    fn push_ascii(&mut self, text: &[u8], lower: bool) {
        // Each space replaces white space that is dropped, except the one before the first piece of this call.
        self.make_room(text.len() + 1);
        let first = self.used;
        let (mut end, mut after_space) = (first, true);
        for &byte in text {
            // A space is written before each byte, and kept only where a new piece begins.
            let space = is_space(&byte);
            // Two writes and two additions per byte, without a branch: words have about five letters, so white space is as good as random.
            self.bytes[end] = b' ';
            end += usize::from(after_space & !space & self.begun);
            self.bytes[end] = if lower {
                byte.to_ascii_lowercase()
            } else {
                byte
            };
            end += usize::from(!space);
            self.begun |= !space;
            after_space = space;
        }
        // In ASCII each byte is a character.
        self.starts.extend(first as u32..end as u32);
        self.used = end;
        self.has_ink |= end > first;
    }

    fn make_room(&mut self, len: usize) {
        if self.bytes.len() < self.used + len + PADDING {
            // Doubled, so that growth costs a constant for each byte.
            self.bytes.resize(2 * self.used + len + PADDING, 0);
        }
    }

    /// Writes the start and end of each window of `width` characters to `bounds`. Returns the bytes that they index.
    pub(crate) fn windows(&self, width: usize, bounds: &mut Vec<u32>) -> &[u8] {
        let windows = (self.len() + 1).saturating_sub(width);
        bounds.resize(2 * windows, 0);
        let (pairs, _) = bounds.as_chunks_mut::<2>();
        // A window ends where the character after it begins.
        let ends = self.starts.get(width..).unwrap_or_default();
        for (pair, (&start, &end)) in pairs.iter_mut().zip(self.starts.iter().zip(ends)) {
            *pair = [start, end];
        }
        if let Some(last) = pairs.last_mut() {
            *last = [self.starts[windows - 1], self.used as u32];
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
    /// Appends the characters of `text` to `batch`. Calls `full` when some thousand characters have accumulated; it must drop some of them. It is not
    /// called at the end.
    pub(crate) fn characters(
        &mut self,
        text: &str,
        batch: &mut CharBatch,
        mut full: impl FnMut(&mut CharBatch),
    ) {
        self.masked(text, |segmenter, text| {
            let mut rest = text;
            while !rest.is_empty() {
                rest = segmenter.take_characters(rest, batch, &mut full);
            }
        });
    }

    /// Takes some pieces off `rest`, which is not empty, and returns the rest.
    fn take_characters<'a>(
        &mut self,
        rest: &'a str,
        batch: &mut CharBatch,
        full: &mut impl FnMut(&mut CharBatch),
    ) -> &'a str {
        let ascii = ascii_pieces(rest);
        // Word characters are chosen one by one, even in ASCII.
        if !self.rules.segmentation.is_word_chars() && !ascii.is_empty() {
            batch.push_ascii(ascii, self.rules.case == Case::Lower);
            flush_batch(batch, full);
            return &rest[ascii.len()..];
        }
        let piece = first_piece(rest);
        // White space beyond ASCII ends no piece of words, since it may be in the middle of a number, but no character shingle tells it from a space.
        for part in piece
            .split(char::is_whitespace)
            .filter(|part| !part.is_empty())
        {
            self.piece_characters(part, batch, full);
        }
        rest.get(piece.len() + 1..).unwrap_or_default()
    }

    fn piece_characters(
        &mut self,
        piece: &str,
        batch: &mut CharBatch,
        full: &mut impl FnMut(&mut CharBatch),
    ) {
        let spaced = !self.rules.segmentation.is_word_chars();
        let folded = self.reader.fold(piece);
        // A piece of only ignorable characters does not count, and has no space before it.
        if folded.is_empty() {
            return;
        }
        if spaced && batch.begun {
            batch.push(' ');
        }
        batch.begun = true;
        for c in folded.chars().filter(|&c| spaced || is_word_char(c)) {
            batch.push(c);
            flush_batch(batch, full);
        }
    }
}

/// Returns the ASCII pieces at the front of `text`, up to white space, the end, or the size of a batch; empty if the first piece is not ASCII or too
/// long.
fn ascii_pieces(text: &str) -> &[u8] {
    let front = &text.as_bytes()[..text.len().min(CHUNK)];
    let ascii = front
        .iter()
        .position(|byte| !byte.is_ascii())
        .unwrap_or(front.len());
    if ascii == text.len() {
        return front;
    }
    &front[..piece_start(text.as_bytes(), ascii)]
}

fn flush_batch(batch: &mut CharBatch, full: &mut impl FnMut(&mut CharBatch)) {
    if batch.len() >= CHUNK {
        full(batch);
    }
}
