//! Text to words: the first step of the pipeline, and the published meaning of a scheme.
//!
//! 0. Default-ignorable characters are removed, unless the scheme normalises nothing ([`Normalization::None`]). Then numbers and dates are masked if
//!    the scheme asks for it ([`Scheme::mask`]).
//! 1. The text is cut at ASCII white space (space, `\t`, `\n`, `\r`, `\x0b`, `\x0c`) into pieces. Each piece is brought to the scheme's normalisation
//!    form, its variants of characters are folded ([`Scheme::folding`]), and it is lower-cased if the scheme says so (full mapping; a final sigma is
//!    decided within its piece). A piece that becomes empty is dropped.
//! 2. [`Segmentation::Unicode`]: the words of a piece are those of UAX #29: the segments between word boundaries that contain at least one
//!    alphanumeric character. `languages`: the same, except that dictionaries cut runs of at most 1,024 Han, kana, Thai, Lao, Khmer or Burmese
//!    characters (Han and kana in one run): jieba with its hidden Markov model cuts runs of Han alone, and ICU's dictionaries all others. Of these
//!    segments, too, the words are those that contain an alphanumeric character.
//! 3. [`Segmentation::WordChars`]: the words of a piece are the maximal runs of characters of general category L* or N*, or `_`. This is `\w+` of
//!    Python's `re`, not `char::is_alphanumeric`, which includes combining marks.
//! 4. Character shingles are windows over the code points of the pieces joined by one space (`Unicode`), or over the word characters alone, joined
//!    without a separator (`WordChars`; Python's `''.join(re.findall(r'\w', text.lower()))` if nothing is normalised). For them, all Unicode
//!    white space separates pieces.
//!
//! 5. Words on the lists of [`Scheme::stop`] are left out. The others are replaced by their stems ([`Scheme::stem`]) if they have at most 64 bytes
//!    and the stem is not empty. Character shingles ignore both.
//!
//! Every step looks at one piece only, so a text can be processed in parts of any size. If the text's language chooses a list or a stemmer, however,
//! the language is detected first ([`mod@crate::language`]). Pieces of ASCII go through a vector kernel, all others through the Unicode tables; both
//! give the same words.

mod batch;
mod chars;
mod class;
#[cfg(not(feature = "languages"))]
mod filter;
mod fold;
mod ignorable;
mod mask;
mod piece;

use std::borrow::Cow;

use crate::kernel::CpuLevel;
use crate::kernel::tokenise::{self, TokeniserRules};
#[cfg(feature = "languages")]
use crate::language::{nouns::WordPosition, words::WordListFilter};
use crate::scheme::{Case, Folding, Mask, Normalization, Scheme, Segmentation};
pub(crate) use batch::WordBatch;
pub(crate) use chars::CharBatch;
#[cfg(not(feature = "languages"))]
use filter::WordListFilter;
pub use ignorable::without_ignorable;
use mask::mask;
use piece::PieceReader;

/// Bytes of text that are processed at once, few enough that their lower-cased copy and word bounds stay in the first-level cache.
const CHUNK: usize = 8 << 10;

/// The part of a scheme that defines words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextRules {
    normalization: Normalization,
    folding: Folding,
    case: Case,
    segmentation: Segmentation,
}

impl TextRules {
    fn strips_ignorable(self) -> bool {
        self.normalization != Normalization::None
    }

    fn ascii(self) -> TokeniserRules {
        TokeniserRules {
            lower: self.case == Case::Lower,
            join: !self.segmentation.is_word_chars(),
        }
    }
}

/// Cuts texts into normalised, lower-cased words.
///
/// Use one per thread: its buffers are reused from text to text, and grow to the longest piece. Time is linear in the text, except for a piece without
/// white space whose combining marks NFC or NFKC must reorder, which takes a sort.
///
/// ```
/// use lookalike::{Scheme, Segmenter};
/// let mut words = Vec::new();
/// Segmenter::new(&Scheme::default()).words("Can't stop, 3.14!", |w| words.push(w.to_owned()));
/// assert_eq!(words, ["can't", "stop", "3.14"]);
/// ```
#[derive(Debug, Clone)]
pub struct Segmenter {
    rules: TextRules,
    batch: WordBatch,
    reader: PieceReader,
    mask: Mask,
    masked: String,
    filter: Option<WordListFilter>,
}

impl Segmenter {
    /// Frees the buffers that a long text has enlarged.
    pub(crate) fn shrink(&mut self) {
        self.masked = String::new();
        self.batch = WordBatch::default();
        self.reader = PieceReader::new(self.rules);
    }

    /// Creates a segmenter for the words of `scheme`.
    #[must_use]
    pub fn new(scheme: &Scheme) -> Self {
        let rules = TextRules {
            normalization: scheme.normalization,
            folding: scheme.folding,
            case: scheme.case,
            segmentation: scheme.segmentation,
        };
        Self {
            rules,
            batch: WordBatch::default(),
            reader: PieceReader::new(rules),
            mask: scheme.mask,
            masked: String::new(),
            filter: WordListFilter::new(scheme),
        }
    }

    /// Calls `visit` with each word of `text`, in text order.
    pub fn words(&mut self, text: &str, mut visit: impl FnMut(&str)) {
        self.batches(text, |batch| batch.words().for_each(&mut visit));
    }

    /// Calls `full` with the words of `text`, in batches of a few KiB.
    pub(crate) fn batches(&mut self, text: &str, mut full: impl FnMut(&WordBatch)) {
        // Take the filter out, because batches borrow the whole segmenter.
        let Some(mut filter) = self.filter.take() else {
            return self.plain_batches(text, full);
        };
        // Before any word is cut, because the language of the text chooses the lists and the stemmer.
        filter.begin(&self.seen(text));
        self.plain_batches(text, |batch| full(filter.apply(batch)));
        self.filter = Some(filter);
    }

    /// Filters a word of the text that was last given to [`Segmenter::batches`] or [`Segmenter::begin`]: returns its stem, or `None` if the word is
    /// left out.
    pub(crate) fn filtered<'w>(&self, word: &'w str) -> Option<Cow<'w, str>> {
        match &self.filter {
            Some(filter) => filter.word(word),
            None => Some(Cow::Borrowed(word)),
        }
    }

    /// Selects the stop words and the stemmer for a text.
    pub(crate) fn begin(&mut self, text: &str) {
        if let Some(mut filter) = self.filter.take() {
            filter.begin(&self.seen(text));
            self.filter = Some(filter);
        }
    }

    /// Returns the text without its ignorable characters if the scheme leaves them out.
    pub(crate) fn seen<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.rules.strips_ignorable() {
            true => without_ignorable(text),
            false => Cow::Borrowed(text),
        }
    }

    /// Calls `full` with the words of `text` before any is left out or stemmed.
    pub(crate) fn plain_batches(&mut self, text: &str, mut full: impl FnMut(&WordBatch)) {
        self.masked(text, |segmenter, text| {
            let mut rest = text;
            segmenter.batch.clear();
            while !rest.is_empty() {
                rest = segmenter.chunk(rest, &mut full);
                // Wait for half a chunk: callers run kernels on whole batches, and a batch and the next scan still fit the buffers without growing
                // them.
                segmenter.flush(CHUNK / 2, &mut full);
            }
            segmenter.flush(1, &mut full);
        });
    }

    /// Calls `visit` with each word of [`Segmenter::plain_batches`], its line, and the dictionary that cut it.
    #[cfg(feature = "languages")]
    pub(crate) fn words_by_run(&mut self, text: &str, mut visit: impl FnMut(&str, WordPosition)) {
        self.masked(text, |segmenter, text| {
            let lines = text.split(is_line_end).enumerate();
            for (line, text) in lines {
                let pieces = text.split(|c| u8::try_from(c).is_ok_and(|byte| is_space(&byte)));
                for piece in pieces {
                    segmenter.reader.words_by_run(piece, |word, dictionary| {
                        visit(word, WordPosition { line, dictionary });
                    });
                }
            }
        });
    }

    /// Calls `go_on` with the text, masked as the scheme says.
    fn masked(&mut self, text: &str, go_on: impl FnOnce(&mut Self, &str)) {
        if self.mask == Mask::default() {
            return go_on(self, text);
        }
        // Take the buffer out, because the call borrows the whole segmenter.
        let mut masked = std::mem::take(&mut self.masked);
        mask(&self.seen(text), self.mask, &mut masked);
        go_on(self, &masked);
        self.masked = masked;
    }

    /// Passes the batch to `full` once it holds at least `least` bytes, and clears it.
    fn flush(&mut self, least: usize, full: &mut impl FnMut(&WordBatch)) {
        if self.batch.len_bytes() >= least {
            full(&self.batch);
            self.batch.clear();
        }
    }

    /// Takes the next chunk off `text`, adds its words to the batch, and returns the rest.
    fn chunk<'a>(&mut self, text: &'a str, full: &mut impl FnMut(&WordBatch)) -> &'a str {
        let chunk = &text[..chunk_len(text.as_bytes())];
        // 8 KiB without white space are Chinese text, base64, or made on purpose. They go through the Unicode tables, whose buffers grow with the
        // piece.
        if chunk.len() > CHUNK {
            // The piece is too long for the kernel's buffers, so its words are passed on in parts.
            self.piece_words(first_piece(chunk), full);
            return &text[chunk.len()..];
        }
        let done = self.ascii_words(chunk.as_bytes());
        let done = done + self.unicode_words(&chunk[done..], full);
        &text[done..]
    }

    /// Adds the words of the leading ASCII pieces of `text` to the batch, and returns the length of these pieces in bytes.
    fn ascii_words(&mut self, text: &[u8]) -> usize {
        let rules = self.rules.ascii();
        let scan = tokenise::scan(
            CpuLevel::current(),
            text,
            rules,
            self.batch.room(text.len()),
        );
        let whole = scan.len == text.len();
        let len = if whole {
            scan.len
        } else {
            // A piece with a non-ASCII byte is normalised as a whole, so its words are cut again.
            piece_start(text, scan.len)
        };
        self.batch.commit(scan, len, rules.join);
        len
    }

    /// Adds the words of the leading non-ASCII pieces of `text` to the batch, and returns the length of these pieces in bytes.
    fn unicode_words(&mut self, text: &str, full: &mut impl FnMut(&WordBatch)) -> usize {
        let mut done = 0;
        while done < text.len() {
            let piece = first_piece(&text[done..]);
            // The ASCII kernel continues here.
            if piece.is_ascii() && !piece.is_empty() {
                break;
            }
            self.piece_words(piece, full);
            // Include the byte of white space after the piece. An empty piece stands for white space alone.
            done = (done + piece.len() + 1).min(text.len());
        }
        done
    }

    /// Cuts one piece into words by the Unicode tables.
    fn piece_words(&mut self, piece: &str, full: &mut impl FnMut(&WordBatch)) {
        let Self { batch, reader, .. } = self;
        reader.words(piece, |word| {
            batch.push(word);
            if batch.len_bytes() >= CHUNK {
                full(batch);
                batch.clear();
            }
        });
    }
}

/// Returns the length of the next chunk, which ends after white space or at the end of the text.
fn chunk_len(text: &[u8]) -> usize {
    if text.len() <= CHUNK {
        return text.len();
    }
    // ASCII white space is never part of a longer character, so the cut is between characters.
    match text[..CHUNK].iter().rposition(is_space) {
        Some(at) => at + 1,
        None => text[CHUNK..]
            .iter()
            .position(is_space)
            .map_or(text.len(), |at| CHUNK + at + 1),
    }
}

/// Returns the start of the piece that contains byte `at`.
fn piece_start(text: &[u8], at: usize) -> usize {
    text[..at]
        .iter()
        .rposition(is_space)
        .map_or(0, |space| space + 1)
}

/// Returns `text` up to its first white space; empty if `text` begins with white space.
fn first_piece(text: &str) -> &str {
    let end = text.as_bytes().iter().position(is_space);
    end.map_or(text, |end| &text[..end])
}

/// Returns true for the ASCII characters after which UAX #14 requires a line to end.
#[cfg(feature = "languages")]
fn is_line_end(c: char) -> bool {
    matches!(c, '\n'..='\r')
}

/// Returns true for ASCII white space including the vertical tab, which `u8::is_ascii_whitespace` leaves out.
pub(crate) fn is_space(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}
