//! Texts to chunks: the pieces whose fingerprints are counted to measure how much documents overlap (Shivakumar and Garcia-Molina 1998, section 2).
//!
//! A [`Chunking`] defines a chunk; a [`Chunker`] computes the fingerprints of several chunkings in one pass over a text. The result is a set: a chunk
//! that a document repeats counts once.
//!
//! | chunking | a chunk is |
//! |---|---|
//! | `doc` | the whole text |
//! | `lines:N` | the next N lines; the last chunk may be shorter |
//! | `lines:N:sliding` | any N lines in a row; a shorter text is one chunk |
//! | `paragraphs` | lines up to a blank one |
//! | `sentences` | a sentence by UAX #29, trimmed |
//! | `fields:N`, `fields:N:sliding` | the same with fields, which white space separates: the words of the paper |
//! | `words:N`, `words:N:sliding` | the same with words |
//! | `chars:N`, `chars:N:sliding` | the same with characters |
//!
//! Words and characters are those of a [`Scheme`], as [`crate::text`] defines them. Its masks, normalisation, folding, case and segmentation apply;
//! its stop words and stems apply to words. A text without words, or of only white space, has no such chunks.
//!
//! For all other chunkings invisible characters (default-ignorable code points) are removed first, and nothing else is normalised. A line ends at
//! `\n`; white space at both of its ends does not count, and neither do lines of nothing else. Fields are separated by white space and include
//! punctuation and case. White space is that of Unicode, with the no-break space and the ideographic space.
//!
//! The fingerprint of a whole text or a sentence is XXH3-64 of its bytes. That of several lines, fields, words or characters folds their XXH3-64
//! values in order, with their number. Two chunks collide with probability 2^-64, or 2^-32 with [`ChunkBits::Short`], the width of the paper;
//! [`ChunkBits::expected_collisions`] computes how many collisions that means.

mod name;
mod novelty;

use unicode_segmentation::UnicodeSegmentation;
use xxhash_rust::xxh3::xxh3_64;

use crate::feature::sort_dedup;
use crate::hash::{GOLDEN, avalanche};
use crate::kernel::token_hash;
use crate::scheme::Scheme;
use crate::text::{CharBatch, Segmenter, without_ignorable};

pub use novelty::{NOVELTY_BYTES, NovelDocument, order_by_novelty};

/// Division of a text into chunks. Parsed from and printed as `doc`, `lines:4`, `lines:2:sliding`, `sentences`, `paragraphs`,
/// `fields:8`, `words:8:sliding`, `chars:50`.
///
/// ```
/// use lookalike::Chunking;
/// use lookalike::chunk::RunChunking;
///
/// let windows: Chunking = "words:8:sliding".parse()?;
/// let runs = RunChunking::new(8, true).expect("1 to 1000 parts");
/// assert_eq!(windows, Chunking::Words(runs));
/// assert_eq!(windows.to_string(), "words:8:sliding");
/// # Ok::<(), lookalike::scheme::ParseOptionError>(())
/// ```
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
    /// Runs of fields, which white space separates.
    Fields(RunChunking),
    /// Runs of words.
    Words(RunChunking),
    /// Runs of characters.
    Characters(RunChunking),
}

/// Size and step of chunks that are runs of parts: lines, fields, words or characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunChunking {
    length: u16,
    sliding: bool,
}

impl RunChunking {
    /// The longest run.
    pub const MAX_PARTS: u16 = 1000;

    /// Single parts.
    pub const SINGLE: Self = Self {
        length: 1,
        sliding: false,
    };

    /// Creates runs of `length` parts, from 1 to [`RunChunking::MAX_PARTS`]; `None` for other lengths. A run begins at every part if `sliding` is
    /// true, otherwise where the last one ended. For runs of one part, both are the same.
    #[must_use]
    pub const fn new(length: u16, sliding: bool) -> Option<Self> {
        match length {
            1..=Self::MAX_PARTS => Some(Self {
                length,
                sliding: sliding && length > 1,
            }),
            _ => None,
        }
    }

    /// Returns the number of parts in a chunk.
    #[must_use]
    pub const fn length(self) -> u16 {
        self.length
    }

    /// Returns true if a chunk begins at every part, false if where the last one ended.
    #[must_use]
    pub const fn is_sliding(self) -> bool {
        self.sliding
    }
}

/// Width of a fingerprint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChunkBits {
    /// 32 bits, as in the paper.
    Short,
    /// 64 bits.
    #[default]
    Long,
}

impl ChunkBits {
    /// Returns the number of bits.
    #[must_use]
    pub fn count(self) -> u32 {
        match self {
            Self::Short => 32,
            Self::Long => 64,
        }
    }

    /// Returns the expected number of pairs of different chunks, among `chunks`, that share a fingerprint: n(n-1)/2 divided by two to the power of
    /// the width.
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

/// Parts of a text that runs are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkPart {
    Line,
    Field,
    Word,
    Character,
}

impl ChunkPart {
    const ALL: [Self; 4] = [Self::Line, Self::Field, Self::Word, Self::Character];
}

impl Chunking {
    /// Returns true if a scheme decides what the chunks are, as it does for words and characters.
    #[must_use]
    pub fn needs_scheme(self) -> bool {
        matches!(self, Self::Words(_) | Self::Characters(_))
    }

    fn part(self) -> Option<ChunkPart> {
        match self {
            Self::Document | Self::Sentences => None,
            Self::Lines(_) | Self::Paragraphs => Some(ChunkPart::Line),
            Self::Fields(_) => Some(ChunkPart::Field),
            Self::Words(_) => Some(ChunkPart::Word),
            Self::Characters(_) => Some(ChunkPart::Character),
        }
    }
}

/// Maximum number of chunks of a text that are sorted with a second buffer of their size, which is faster.
const SCRATCH_CHUNKS: usize = 1 << 20;

/// Computes the chunk fingerprints of texts. Use one per thread: its buffers are reused from text to text.
///
/// Time is linear in the text for each chunking. Lines, fields, words and characters are found once, however many chunkings use them.
///
/// ```
/// use lookalike::Scheme;
/// use lookalike::chunk::{ChunkBits, Chunker};
/// let chunkings = ["lines:2".parse()?, "fields:1".parse()?, "words:1".parse()?];
/// let mut chunker = Chunker::new(&chunkings, ChunkBits::Long, &Scheme::default());
/// chunker.chunk("One two,\ntwo three\n\nOne two,\n  two three\n");
/// assert_eq!(chunker.set(0).len(), 1, "the same two lines twice");
/// assert_eq!(chunker.set(1).len(), 4, "one of them with a comma");
/// assert_eq!(chunker.set(2).len(), 3);
/// # Ok::<(), lookalike::scheme::ParseOptionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Chunker {
    chunkings: Vec<Chunking>,
    bits: ChunkBits,
    segmenter: Segmenter,
    /// Hashes of the parts of each kind; of lines, only those that are not blank.
    parts: [Vec<u64>; ChunkPart::ALL.len()],
    /// Ends of paragraphs, as indexes into the lines.
    paragraphs: Vec<usize>,
    characters: CharBatch,
    bounds: Vec<u32>,
    sets: Vec<Vec<u64>>,
    scratch: Vec<u64>,
}

impl Chunker {
    /// Creates a chunker for these chunkings, with the words and characters of a scheme.
    #[must_use]
    pub fn new(chunkings: &[Chunking], bits: ChunkBits, scheme: &Scheme) -> Self {
        Self {
            chunkings: chunkings.to_vec(),
            bits,
            segmenter: Segmenter::new(scheme),
            parts: Default::default(),
            paragraphs: Vec::new(),
            characters: CharBatch::default(),
            bounds: Vec::new(),
            sets: vec![Vec::new(); chunkings.len()],
            scratch: Vec::new(),
        }
    }

    /// Chunks a text. [`Chunker::set`] returns the results until the next call.
    pub fn chunk(&mut self, text: &str) {
        let seen = &*without_ignorable(text);
        for part in ChunkPart::ALL {
            self.parts[part as usize].clear();
            if self.chunkings.iter().any(|c| c.part() == Some(part)) {
                self.find_parts(part, text, seen);
            }
        }
        for (at, &chunking) in self.chunkings.iter().enumerate() {
            let set = &mut self.sets[at];
            set.clear();
            match chunking {
                Chunking::Document if seen.trim().is_empty() => {}
                Chunking::Document => set.push(xxh3_64(seen.as_bytes())),
                Chunking::Sentences => sentences(seen, set),
                Chunking::Paragraphs => {
                    paragraphs(&self.parts[ChunkPart::Line as usize], &self.paragraphs, set);
                }
                Chunking::Lines(run)
                | Chunking::Fields(run)
                | Chunking::Words(run)
                | Chunking::Characters(run) => {
                    // All chunkings made of these parts share them, and they may be as large as the text.
                    let later = &self.chunkings[at + 1..];
                    // The last chunking that uses the parts may overwrite them.
                    let is_last = !later.iter().any(|c| c.part() == chunking.part());
                    let part = chunking.part().expect("runs are made of parts");
                    runs(&mut self.parts[part as usize], run, is_last, set);
                }
            }
            set.iter_mut()
                .for_each(|chunk| *chunk = self.bits.cut(*chunk));
            match set.len() {
                // Fingerprints are hashes, as the bucket sort requires.
                0..=SCRATCH_CHUNKS => sort_dedup(set, &mut self.scratch),
                _ => {
                    // Sort in place: a second buffer would double the memory of a long text.
                    set.sort_unstable();
                    set.dedup();
                }
            }
        }
    }

    /// Frees the buffers, which grow with the longest text. [`Chunker::set`] is empty until the next text.
    pub fn shrink(&mut self) {
        self.segmenter.shrink();
        self.parts = Default::default();
        (self.paragraphs, self.scratch) = (Vec::new(), Vec::new());
        self.sets.fill_with(Vec::new);
    }

    /// Returns the distinct fingerprints of the text's chunks under the chunking at index `chunking`, ascending.
    ///
    /// # Panics
    /// If there is no such chunking.
    #[must_use]
    pub fn set(&self, chunking: usize) -> &[u64] {
        &self.sets[chunking]
    }

    /// Finds the parts of a kind; `seen` is the text without ignorable characters.
    fn find_parts(&mut self, part: ChunkPart, text: &str, seen: &str) {
        match part {
            ChunkPart::Line => self.look_for_lines(seen),
            ChunkPart::Field => {
                let fields = seen.split_whitespace();
                self.parts[part as usize].extend(fields.map(|field| xxh3_64(field.as_bytes())));
            }
            // The scheme decides whether ignorable characters count.
            ChunkPart::Word => {
                let words = &mut self.parts[part as usize];
                self.segmenter.batches(text, |batch| {
                    token_hash::extend(words, batch.bytes(), batch.bounds(), 0);
                });
            }
            ChunkPart::Character => self.find_characters(text),
        }
    }

    fn find_characters(&mut self, text: &str) {
        let hashes = &mut self.parts[ChunkPart::Character as usize];
        let characters = &mut self.characters;
        let mut hash = |characters: &mut CharBatch| {
            let bytes = characters.windows(1, &mut self.bounds);
            token_hash::extend(hashes, bytes, &self.bounds, 0);
            characters.keep_last(0);
        };
        characters.clear();
        self.segmenter.characters(text, characters, &mut hash);
        hash(characters);
        if !characters.has_ink {
            hashes.clear();
        }
    }

    fn look_for_lines(&mut self, text: &str) {
        let lines = &mut self.parts[ChunkPart::Line as usize];
        self.paragraphs.clear();
        // The last line may lack its line end.
        let ends = memchr::memchr_iter(b'\n', text.as_bytes()).chain([text.len()]);
        let mut start = 0;
        for end in ends {
            let line = text[start..end].trim();
            start = end + 1;
            if !line.is_empty() {
                lines.push(xxh3_64(line.as_bytes()));
            // Several blank lines in a row end one paragraph.
            } else if self.paragraphs.last().copied().unwrap_or(0) < lines.len() {
                self.paragraphs.push(lines.len());
            }
        }
        self.paragraphs.push(lines.len());
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
    // A text without lines has one paragraph end, at zero.
    for &end in ends.iter().filter(|&&end| end > 0) {
        if end > start {
            set.push(fold(&lines[start..end]));
        }
        start = end;
    }
}

/// Puts the fingerprints of runs of parts into `set`. Reuses the buffer of the parts if this is their last use.
fn runs(parts: &mut Vec<u64>, run: RunChunking, is_last: bool, set: &mut Vec<u64>) {
    let length = usize::from(run.length);
    let step = if run.sliding { 1 } else { length };
    // Without sliding, the last run may be shorter. A text shorter than a run is one run.
    let count = match run.sliding && parts.len() > length {
        true => parts.len() - length + 1,
        false => parts.len().div_ceil(length),
    };
    let fold_at = |parts: &[u64], at: usize| {
        let start = at * step;
        fold(&parts[start..parts.len().min(start + length)])
    };
    if is_last {
        // A run begins at or after the slot that it is written to, so nothing overwritten is needed again.
        for at in 0..count {
            parts[at] = fold_at(parts, at);
        }
        parts.truncate(count);
        std::mem::swap(parts, set);
    } else {
        set.extend((0..count).map(|at| fold_at(parts, at)));
    }
}

/// Folds several fingerprints into one: their number, then each in order.
#[inline]
fn fold(parts: &[u64]) -> u64 {
    // The number of parts comes first, so that a run never hashes like the beginning of a longer one.
    let start = (parts.len() as u64).wrapping_mul(GOLDEN);
    // The rotation makes the order count: the same parts in another order give another fingerprint.
    let step = |hash: u64, part: &u64| (hash.rotate_left(29) ^ part).wrapping_mul(GOLDEN);
    avalanche(parts.iter().fold(start, step))
}
