//! Splits a text into units and words, and numbers words so that equal words have equal numbers.

use std::collections::HashMap;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

/// Size of both texts together, in bytes, above which a whole unit counts as one word.
const MAX_WORD_BYTES: usize = 1 << 20;
/// Lines longer than this are split after sentences.
const LONG_LINE: usize = 160;
/// Minimum length of a unit that is split off after a sentence.
const SHORT_SENTENCE: usize = 32;
/// Length at which a unit ends at the next white space; at twice this it ends anywhere.
const MAX_UNIT: usize = 480;

/// A word that is not white space.
#[derive(Clone, Debug)]
pub(super) struct DiffWord {
    /// Byte range in the text.
    pub(super) bytes: Range<usize>,
    /// Number of the word, the same for equal words.
    pub(super) id: u32,
}

/// A line, or a part of a long one.
#[derive(Clone, Debug)]
pub(super) struct DiffUnit {
    /// Byte range in the text, without the line end.
    pub(super) bytes: Range<usize>,
    /// Its words, as indices into [`DiffText::words`].
    pub(super) words: Range<usize>,
    /// Number of the line, from 1.
    pub(super) line: usize,
    /// True if the line started in an earlier unit.
    pub(super) continued: bool,
}

/// A text split into units and words.
#[derive(Debug)]
pub(super) struct DiffText<'t> {
    pub(super) source: &'t str,
    pub(super) units: Vec<DiffUnit>,
    pub(super) words: Vec<DiffWord>,
}

/// Numbers words in the order in which they first occur.
#[derive(Default)]
struct WordNumbering<'t>(HashMap<&'t str, u32>);

impl<'t> WordNumbering<'t> {
    fn id(&mut self, word: &'t str) -> u32 {
        let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        *self.0.entry(word).or_insert(next)
    }
}

/// Splits both texts with one numbering.
pub(super) fn cut<'t>(a: &'t str, b: &'t str) -> (DiffText<'t>, DiffText<'t>) {
    // Decided for both texts together, since words are only comparable with words.
    let whole_units = a.len() + b.len() > MAX_WORD_BYTES;
    let mut numbering = WordNumbering::default();
    let mut one = |source| {
        let mut text = DiffText {
            source,
            units: Vec::new(),
            words: Vec::new(),
        };
        text.cut(&mut numbering, whole_units);
        text
    };
    (one(a), one(b))
}

impl<'t> DiffText<'t> {
    fn cut(&mut self, numbering: &mut WordNumbering<'t>, whole_units: bool) {
        let mut start = 0;
        for (index, line) in self.source.split('\n').enumerate() {
            let content = line.strip_suffix('\r').unwrap_or(line);
            let bytes = start..start + content.len();
            if whole_units {
                self.push_coarse(bytes, index + 1, numbering);
            } else {
                self.push_line(bytes, index + 1, numbering);
            }
            start += line.len() + 1;
        }
    }

    /// Appends a line whose units count as words.
    fn push_coarse(
        &mut self,
        line: Range<usize>,
        number: usize,
        numbering: &mut WordNumbering<'t>,
    ) {
        let mut start = line.start;
        // At least once: an empty line is a unit too.
        loop {
            // A unit is longer than any character, so `end` always moves on.
            let end = self
                .source
                .floor_char_boundary((start + MAX_UNIT).min(line.end));
            let first = self.words.len();
            self.push_word(start..end, numbering);
            self.push_unit(start..end, first, number, start > line.start);
            start = end;
            if start == line.end {
                break;
            }
        }
    }

    /// Appends a line, split into parts if it is long.
    fn push_line(&mut self, line: Range<usize>, number: usize, numbering: &mut WordNumbering<'t>) {
        let content = &self.source[line.clone()];
        let long = content.len() > LONG_LINE;
        let (mut start, mut first) = (line.start, self.words.len());
        for (at, segment) in content.split_word_bound_indices() {
            let at = line.start + at;
            if long && ends_unit(&self.source[start..at], segment) {
                self.push_unit(start..at, first, number, start > line.start);
                (start, first) = (at, self.words.len());
            }
            self.push_word(at..at + segment.len(), numbering);
        }
        self.push_unit(start..line.end, first, number, start > line.start);
    }

    /// Appends the unit of the words from `first` on.
    fn push_unit(&mut self, bytes: Range<usize>, first: usize, line: usize, continued: bool) {
        self.units.push(DiffUnit {
            bytes,
            words: first..self.words.len(),
            line,
            continued,
        });
    }

    /// Returns the numbers of adjacent words.
    pub(super) fn ids(&self, words: &Range<usize>) -> Vec<u32> {
        let words = self.words[words.clone()].iter();
        words.map(|word| word.id).collect()
    }

    fn push_word(&mut self, bytes: Range<usize>, numbering: &mut WordNumbering<'t>) {
        let word = self.source[bytes.clone()].trim();
        if !word.is_empty() {
            let id = numbering.id(word);
            self.words.push(DiffWord { bytes, id });
        }
    }
}

/// Tells whether a unit that holds `done` ends before the segment `next`.
///
/// The white space after a sentence stays with it, so that units start with a word.
fn ends_unit(done: &str, next: &str) -> bool {
    if done.len() < SHORT_SENTENCE || next.chars().all(char::is_whitespace) {
        return false;
    }
    let spaced = done.ends_with(char::is_whitespace);
    done.len() >= 2 * MAX_UNIT
        || (done.len() >= MAX_UNIT && spaced)
        || ends_sentence(done, spaced, next)
}

/// Tells whether a sentence ends here. Ideographic full stops need no space after them.
fn ends_sentence(done: &str, spaced: bool, next: &str) -> bool {
    // Also the Arabic question mark, the Urdu full stop, the danda and the ellipsis.
    const STOPS: [char; 7] = ['.', '!', '?', '\u{61f}', '\u{6d4}', '\u{964}', '\u{2026}'];
    // The ideographic full stop, and the wide exclamation and question marks.
    const WIDE_STOPS: [char; 3] = ['\u{3002}', '\u{ff01}', '\u{ff1f}'];
    // Quotation marks and brackets that may stand between a full stop and the space after it.
    const CLOSING: [char; 8] = [
        '"', ')', '\u{201c}', '\u{201d}', '\u{bb}', '\u{300d}', '\u{300f}', '\u{ff09}',
    ];
    let sentence = done.trim_end().trim_end_matches(CLOSING);
    (spaced && sentence.ends_with(STOPS))
        || (sentence.ends_with(WIDE_STOPS) && !next.starts_with(CLOSING))
}
