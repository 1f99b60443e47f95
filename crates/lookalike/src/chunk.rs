//! Texts to chunks: the units whose fingerprints are counted when documents are laid over one another (Shivakumar and Garcia-Molina 1998, section 2).
//!
//! A [`Chunking`] says what a chunk is; a [`Chunker`] makes the fingerprints of all chunkings that are asked for in one
//! reading of a text. What comes out is a set: a chunk that a document repeats counts once.
//!
//! | chunking | a chunk is |
//! |---|---|
//! | `doc` | the whole text |
//! | `lines:N` | the next N lines; the last chunk may be shorter |
//! | `lines:N:sliding` | any N lines in a row; a shorter text is one chunk |
//! | `paragraphs` | lines up to a blank one |
//! | `sentences` | a sentence by UAX #29, trimmed |
//! | `words:N`, `words:N:sliding` | as for lines |
//!
//! Characters that nobody sees (default-ignorable code points) are left out first; nothing else is normalised.
//! A line ends at `\n`; ASCII white space at both ends of it does not count, and neither do lines without anything
//! else. Words are what ASCII white space separates, punctuation and case included.
//!
//! A fingerprint is XXH3-64 of the bytes for a whole text and a sentence; of several lines or words it is their XXH3-64
//! values folded in order, with their number. Two chunks collide with probability 2^-64, or 2^-32 when asked for
//! [`ChunkBits::Short`], the width of the source; [`ChunkBits::expected_collisions`] tells what that means.

mod name;

use unicode_segmentation::UnicodeSegmentation;
use xxhash_rust::xxh3::xxh3_64;

use crate::feature::sort_dedup;
use crate::hash::{GOLDEN, avalanche};
use crate::text::without_ignorable;

pub use name::ChunkingError;

/// Division of a text into chunks. Parsed from and printed as `doc`, `lines:4`, `lines:2:sliding`, `sentences`, `paragraphs`,
/// `words:8:sliding`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Chunking {
    /// The whole text.
    Document,
    /// Runs of lines.
    Lines(RunChunking),
    /// Sentences by UAX #29.
    Sentences,
    /// Lines up to a blank one.
    Paragraphs,
    /// Runs of words.
    Words(RunChunking),
}

/// Size and step of chunks of lines or words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunChunking {
    /// Lines or words in a chunk, from 1 to [`RunChunking::MOST`].
    pub length: u16,
    /// True if a chunk begins at every line or word, not only where the last one ended.
    pub sliding: bool,
}

impl RunChunking {
    /// The longest run.
    pub const MOST: u16 = 1000;
}

/// Width of a fingerprint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChunkBits {
    /// 32, as in the source.
    Short,
    /// 64.
    #[default]
    Long,
}

impl ChunkBits {
    /// The number of bits.
    #[must_use]
    pub fn count(self) -> u32 {
        match self {
            Self::Short => 32,
            Self::Long => 64,
        }
    }

    /// Expected number of pairs of different chunks among `chunks` are expected to have one fingerprint: n(n-1)/2 divided by two
    /// to the power of the width.
    #[must_use]
    pub fn expected_collisions(self, chunks: u64) -> f64 {
        let chunks = chunks as f64;
        chunks * (chunks - 1.0).max(0.0) / 2.0 / 2_f64.powi(self.count() as i32)
    }

    fn cut(self, fingerprint: u64) -> u64 {
        match self {
            Self::Short => fingerprint >> 32,
            Self::Long => fingerprint,
        }
    }
}

impl Chunking {
    fn is_by_line(self) -> bool {
        matches!(self, Chunking::Lines(_) | Chunking::Paragraphs)
    }

    fn is_by_word(self) -> bool {
        matches!(self, Chunking::Words(_))
    }
}

/// Chunks of a text up to which a second buffer of that size sorts them faster.
const SCRATCH_CHUNKS: usize = 1 << 20;

/// Makes the chunk fingerprints of texts. One a thread; its buffers are used again from text to text.
///
/// Time is linear in the text for each chunking; lines and words are looked for once, whatever number of chunkings
/// uses them.
///
/// ```
/// use lookalike::chunk::{ChunkBits, Chunker};
/// let mut chunker = Chunker::new(&["lines:2".parse()?, "words:1".parse()?], ChunkBits::Long);
/// chunker.chunk("one two\ntwo three\n\none two\n  two three\n");
/// assert_eq!(chunker.set(0).len(), 1, "the same two lines twice");
/// assert_eq!(chunker.set(1).len(), 3);
/// # Ok::<(), lookalike::chunk::ChunkingError>(())
/// ```
pub struct Chunker {
    chunkings: Vec<Chunking>,
    bits: ChunkBits,
    /// Hashes of the lines that are not blank.
    lines: Vec<u64>,
    /// Ends of paragraphs among these lines.
    paragraphs: Vec<usize>,
    words: Vec<u64>,
    sets: Vec<Vec<u64>>,
    scratch: Vec<u64>,
}

impl Chunker {
    /// A chunker for these chunkings.
    #[must_use]
    pub fn new(chunkings: &[Chunking], bits: ChunkBits) -> Self {
        Self {
            chunkings: chunkings.to_vec(),
            bits,
            lines: Vec::new(),
            paragraphs: Vec::new(),
            words: Vec::new(),
            sets: vec![Vec::new(); chunkings.len()],
            scratch: Vec::new(),
        }
    }

    /// Chunks a text. [`Chunker::set`] has what came out until the next call.
    pub fn chunk(&mut self, text: &str) {
        let text = &*without_ignorable(text);
        self.look(text);
        for (at, chunking) in self.chunkings.iter().enumerate() {
            let set = &mut self.sets[at];
            set.clear();
            let later = &self.chunkings[at + 1..];
            match chunking {
                Chunking::Document if text.is_empty() => {}
                Chunking::Document => set.push(xxh3_64(text.as_bytes())),
                Chunking::Sentences => sentences(text, set),
                Chunking::Lines(run) => {
                    let is_last = !later.iter().any(|chunking| chunking.is_by_line());
                    runs(&mut self.lines, *run, is_last, set);
                }
                Chunking::Words(run) => {
                    let is_last = !later.iter().any(|chunking| chunking.is_by_word());
                    runs(&mut self.words, *run, is_last, set);
                }
                Chunking::Paragraphs => paragraphs(&self.lines, &self.paragraphs, set),
            }
            set.iter_mut()
                .for_each(|chunk| *chunk = self.bits.cut(*chunk));
            match set.len() {
                0..=SCRATCH_CHUNKS => sort_dedup(set, &mut self.scratch),
                _ => {
                    set.sort_unstable();
                    set.dedup();
                }
            }
        }
    }

    /// Gives back the memory of buffers, which grow with the longest text; [`Chunker::set`] is empty until the next one.
    pub fn shrink(&mut self) {
        (self.lines, self.words) = (Vec::new(), Vec::new());
        (self.paragraphs, self.scratch) = (Vec::new(), Vec::new());
        self.sets.fill_with(Vec::new);
    }

    /// Distinct fingerprints of the text's chunks under chunking number `chunking`, ascending.
    #[must_use]
    pub fn set(&self, chunking: usize) -> &[u64] {
        &self.sets[chunking]
    }

    /// Finds lines and words, when a chunking wants them.
    fn look(&mut self, text: &str) {
        if self.chunkings.iter().any(|chunking| chunking.is_by_line()) {
            self.look_for_lines(text);
        }
        if self.chunkings.iter().any(|chunking| chunking.is_by_word()) {
            self.words.clear();
            let words = text.as_bytes().split(u8::is_ascii_whitespace);
            let words = words.filter(|word| !word.is_empty());
            self.words.extend(words.map(xxh3_64));
        }
    }

    fn look_for_lines(&mut self, text: &str) {
        self.lines.clear();
        self.paragraphs.clear();
        let text = text.as_bytes();
        let ends = memchr::memchr_iter(b'\n', text).chain([text.len()]);
        let mut start = 0;
        for end in ends {
            let line = text[start..end].trim_ascii();
            start = end + 1;
            if !line.is_empty() {
                self.lines.push(xxh3_64(line));
            } else if self.paragraphs.last().copied().unwrap_or(0) < self.lines.len() {
                self.paragraphs.push(self.lines.len());
            }
        }
        self.paragraphs.push(self.lines.len());
    }
}

fn sentences(text: &str, set: &mut Vec<u64>) {
    let trimmed = text.split_sentence_bounds().map(|s| s.trim());
    set.extend(
        trimmed
            .filter(|s| !s.is_empty())
            .map(|s| xxh3_64(s.as_bytes())),
    );
}

fn paragraphs(lines: &[u64], ends: &[usize], set: &mut Vec<u64>) {
    let mut start = 0;
    for &end in ends.iter().filter(|&&end| end > 0) {
        if end > start {
            set.push(fold(&lines[start..end]));
        }
        start = end;
    }
}

/// Puts the fingerprints of runs of parts into a set; into the room of the parts, if this is their last use.
fn runs(parts: &mut Vec<u64>, run: RunChunking, is_last: bool, set: &mut Vec<u64>) {
    let length = usize::from(run.length);
    let step = if run.sliding { 1 } else { length };
    let count = match run.sliding && parts.len() > length {
        true => parts.len() - length + 1,
        false => parts.len().div_ceil(length),
    };
    let fold_at = |parts: &[u64], at: usize| {
        let start = at * step;
        fold(&parts[start..parts.len().min(start + length)])
    };
    if is_last {
        // A run begins at its own place or behind it: what is overwritten is not needed again.
        for at in 0..count {
            parts[at] = fold_at(parts, at);
        }
        parts.truncate(count);
        std::mem::swap(parts, set);
    } else {
        set.extend((0..count).map(|at| fold_at(parts, at)));
    }
}

/// One fingerprint of several: their number and each in order.
#[inline]
fn fold(parts: &[u64]) -> u64 {
    let start = (parts.len() as u64).wrapping_mul(GOLDEN);
    let step = |hash: u64, part: &u64| (hash.rotate_left(29) ^ part).wrapping_mul(GOLDEN);
    avalanche(parts.iter().fold(start, step))
}
