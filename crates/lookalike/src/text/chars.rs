//! The characters of a text as character shingles see them (point 4 of the definition in
//! `super`): the pieces joined by one space, or the word characters alone.

use super::piece::is_word_char;
use super::{CHUNK, Segmenter, is_space};
use crate::scheme::Segmentation;

/// Code points in one buffer, and where each begins.
#[derive(Debug, Default)]
pub(crate) struct CharBatch {
    text: String,
    starts: Vec<usize>,
    /// Whether any character so far is not white space.
    pub(crate) has_ink: bool,
}

impl CharBatch {
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.starts.clear();
        self.has_ink = false;
    }

    fn push(&mut self, c: char) {
        self.starts.push(self.text.len());
        self.text.push(c);
        self.has_ink |= !c.is_whitespace();
    }

    /// Code points in the buffer.
    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// The bytes of the buffer.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// Where the code point `at` begins; the end of the text for one past the last.
    pub(crate) fn start(&self, at: usize) -> usize {
        self.starts.get(at).copied().unwrap_or(self.text.len())
    }

    /// Drops all code points but the last `count`.
    pub(crate) fn keep_last(&mut self, count: usize) {
        let dropped = self.len().saturating_sub(count);
        let cut = self.start(dropped);
        self.text.drain(..cut);
        self.starts.drain(..dropped);
        self.starts.iter_mut().for_each(|start| *start -= cut);
    }
}

impl Segmenter {
    /// Appends the characters of `text` to `batch`; `full` is called whenever many have come
    /// together, may drop from them, and is not called at the end.
    pub(crate) fn characters(
        &mut self,
        text: &str,
        batch: &mut CharBatch,
        mut full: impl FnMut(&mut CharBatch),
    ) {
        let spaced = self.rules.segmentation == Segmentation::Unicode;
        let mut first = true;
        for piece in text.split(|c: char| c.is_ascii() && is_space(&(c as u8))) {
            if piece.is_empty() {
                continue;
            }
            if spaced && !first {
                batch.push(' ');
            }
            first = false;
            let folded = self.reader.fold(piece);
            folded
                .chars()
                .filter(|&c| spaced || is_word_char(c))
                .for_each(|c| batch.push(c));
            if batch.len() >= CHUNK {
                full(batch);
            }
        }
    }
}
