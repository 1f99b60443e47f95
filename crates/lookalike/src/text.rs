//! Text to words: the first step of the way of the data, and the published meaning of a scheme.
//!
//! 0. Default-ignorable characters are left out, unless the scheme normalises nothing
//!    ([`Normalization::None`]); then numbers and dates are masked if it says so
//!    ([`Scheme::mask`]).
//! 1. The text is cut at ASCII white space (space, `\t`, `\n`, `\r`, `\x0b`, `\x0c`) into pieces.
//!    Each piece is brought to the scheme's normalisation form, its variants of characters are
//!    folded ([`Scheme::folding`]), then it is lower-cased when the scheme says so (full mapping; a
//!    final sigma is judged within its piece). A piece of which nothing is left is none.
//! 2. [`Segmentation::Unicode`]: the words of a piece are those of UAX #29, that is the segments
//!    between word boundaries that hold at least one alphanumeric character.
//!    `languages`: the same, but for runs of at most 1,024 Han, kana, Thai, Lao, Khmer or Burmese
//!    characters (Han and kana in one run), which dictionaries cut: Han alone by jieba with its
//!    hidden Markov model, all others by ICU's dictionaries; of the segments, words are those
//!    that hold an alphanumeric.
//! 3. [`Segmentation::WordChars`]: the words of a piece are the maximal runs of characters of
//!    general category L* or N*, or `_`. This is `\w+` of Python's `re`, and not
//!    `char::is_alphanumeric`, which takes in combining marks.
//! 4. Character shingles are windows over the code points of the pieces joined by one space
//!    (`Unicode`), or over the word characters alone, joined without anything (`WordChars`;
//!    Python's `''.join(re.findall(r'\w', text.lower()))` when nothing is normalised).
//!
//! 5. Words on the lists of [`Scheme::stop`] are left out, and the others, if they are of at most 64
//!    bytes and their stem is not empty, replaced by their stems ([`Scheme::stem`]). Character shingles
//!    know nothing of either.
//!
//! Every step looks at one piece only, so a text can be worked on in parts of any size; but where a
//! list or stemmer is chosen by the text's language, that is decided first ([`mod@crate::language`]).
//! Pieces of ASCII take a vector kernel, all others the Unicode tables; both give the same words.

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
use crate::language::{nouns::WordPlace, words::WordListFilter};
use crate::scheme::{Case, Folding, Mask, Normalization, Scheme, Segmentation};
pub(crate) use batch::WordBatch;
pub(crate) use chars::CharBatch;
#[cfg(not(feature = "languages"))]
use filter::WordListFilter;
pub use ignorable::without_ignorable;
use mask::mask;
use piece::PieceReader;

/// Bytes of text that are worked on at once: the lower-cased copy and the word bounds of so much
/// stay in the first-level cache.
const CHUNK: usize = 8 << 10;

/// The part of a scheme that says what a word is.
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
/// One a thread: the buffers inside are used again from text to text, and grow to the longest
/// piece met. Time is linear in the text, but for a piece without white space that NFC or NFKC
/// must reorder (the reordering of combining marks is a sort).
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
    /// Gives back the memory of a long text.
    pub(crate) fn shrink(&mut self) {
        self.masked = String::new();
        self.batch = WordBatch::default();
        self.reader = PieceReader::new(self.rules);
    }

    /// A segmenter for the words of `scheme`.
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

    /// Shows `visit` each word of `text`, in text order.
    pub fn words(&mut self, text: &str, mut visit: impl FnMut(&str)) {
        self.batches(text, |batch| batch.words().for_each(&mut visit));
    }

    /// Shows `full` the words of `text` in batches of some thousand.
    pub(crate) fn batches(&mut self, text: &str, mut full: impl FnMut(&WordBatch)) {
        // The filter is lent out, since batches borrow the whole segmenter.
        let Some(mut filter) = self.filter.take() else {
            return self.plain_batches(text, full);
        };
        // Before any word is cut: the language of the text chooses lists and stemmer.
        filter.begin(&self.seen(text));
        self.plain_batches(text, |batch| full(filter.apply(batch)));
        self.filter = Some(filter);
    }

    /// Rule for a word of a text that was last cut by [`Segmenter::batches`] or
    /// [`Segmenter::begin`]: its stem, or nothing.
    pub(crate) fn filtered<'w>(&self, word: &'w str) -> Option<Cow<'w, str>> {
        match &self.filter {
            Some(filter) => filter.word(word),
            None => Some(Cow::Borrowed(word)),
        }
    }

    /// Turns to the stop words and stems of a text.
    pub(crate) fn begin(&mut self, text: &str) {
        if let Some(mut filter) = self.filter.take() {
            filter.begin(&self.seen(text));
            self.filter = Some(filter);
        }
    }

    /// The text without its ignorable characters, where the scheme leaves them out.
    pub(crate) fn seen<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.rules.strips_ignorable() {
            true => without_ignorable(text),
            false => Cow::Borrowed(text),
        }
    }

    /// Shows `full` the words of `text` before any is left out or reduced to its stem.
    pub(crate) fn plain_batches(&mut self, text: &str, mut full: impl FnMut(&WordBatch)) {
        self.masked(text, |segmenter, text| {
            let mut rest = text;
            segmenter.batch.clear();
            while !rest.is_empty() {
                rest = segmenter.chunk(rest, &mut full);
                // Not every few words: whoever takes them calls kernels for a batch.
                // Half a chunk: a batch and the next scan then fit the buffers without growing.
                segmenter.flush(CHUNK / 2, &mut full);
            }
            segmenter.flush(1, &mut full);
        });
    }

    /// Shows `visit` the words that [`Segmenter::plain_batches`] shows, one by one and with their
    /// surroundings.
    #[cfg(feature = "languages")]
    pub(crate) fn words_by_run(&mut self, text: &str, mut visit: impl FnMut(&str, WordPlace)) {
        self.masked(text, |segmenter, text| {
            let lines = text.split(is_line_end).enumerate();
            for (line, text) in lines {
                let pieces = text.split(|c| u8::try_from(c).is_ok_and(|byte| is_space(&byte)));
                for piece in pieces {
                    segmenter.reader.words_by_run(piece, |word, dictionary| {
                        visit(word, WordPlace { line, dictionary });
                    });
                }
            }
        });
    }

    /// Goes on with the text masked as the scheme says.
    fn masked(&mut self, text: &str, go_on: impl FnOnce(&mut Self, &str)) {
        if self.mask == Mask::default() {
            return go_on(self, text);
        }
        // Lent out, since the call takes the whole segmenter.
        let mut masked = std::mem::take(&mut self.masked);
        mask(&self.seen(text), self.mask, &mut masked);
        go_on(self, &masked);
        self.masked = masked;
    }

    /// Hands the batch on when it holds so many bytes.
    fn flush(&mut self, least: usize, full: &mut impl FnMut(&WordBatch)) {
        if self.batch.len_bytes() >= least {
            full(&self.batch);
            self.batch.clear();
        }
    }

    /// Takes the next chunk off `text`, puts its words into the batch, returns what is left.
    fn chunk<'a>(&mut self, text: &'a str, full: &mut impl FnMut(&WordBatch)) -> &'a str {
        let chunk = &text[..chunk_len(text.as_bytes())];
        // No white space in eight KiB: Chinese text, base64, or made on purpose. It goes by the tables, whose
        // buffers grow with the piece.
        if chunk.len() > CHUNK {
            // A piece too long for the kernel's buffers: its words are handed on bit by bit.
            self.piece_words(first_piece(chunk), full);
            return &text[chunk.len()..];
        }
        let done = self.ascii_words(chunk.as_bytes());
        let done = done + self.unicode_words(&chunk[done..], full);
        &text[done..]
    }

    /// Words of the leading pieces of `text` that are ASCII; returns their length in bytes.
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
            // A piece with a byte beyond ASCII is normalised as a whole: its words are cut again.
            piece_start(text, scan.len)
        };
        self.batch.commit(scan, len, rules.join);
        len
    }

    /// Words of the leading pieces of `text` that are not ASCII; returns their length in bytes.
    fn unicode_words(&mut self, text: &str, full: &mut impl FnMut(&WordBatch)) -> usize {
        let mut done = 0;
        while done < text.len() {
            let piece = first_piece(&text[done..]);
            // The kernel goes on from here.
            if piece.is_ascii() && !piece.is_empty() {
                break;
            }
            self.piece_words(piece, full);
            // With one byte of white space behind it: an empty piece is white space alone.
            done = (done + piece.len() + 1).min(text.len());
        }
        done
    }

    /// Words of one piece, by the Unicode tables.
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

/// A chunk ends behind white space or with the text.
fn chunk_len(text: &[u8]) -> usize {
    if text.len() <= CHUNK {
        return text.len();
    }
    // White space of ASCII is no part of a longer character: the cut is between two.
    match text[..CHUNK].iter().rposition(is_space) {
        Some(at) => at + 1,
        None => text[CHUNK..]
            .iter()
            .position(is_space)
            .map_or(text.len(), |at| CHUNK + at + 1),
    }
}

/// Start of the piece that holds the byte `at`.
fn piece_start(text: &[u8], at: usize) -> usize {
    text[..at]
        .iter()
        .rposition(is_space)
        .map_or(0, |space| space + 1)
}

/// `text` up to its first white space; empty when it begins with one.
fn first_piece(text: &str) -> &str {
    let end = text.as_bytes().iter().position(is_space);
    end.map_or(text, |end| &text[..end])
}

/// The ASCII characters behind which a line must end by UAX #14.
#[cfg(feature = "languages")]
fn is_line_end(c: char) -> bool {
    matches!(c, '\n'..='\r')
}

/// ASCII white space with the vertical tab, which `u8::is_ascii_whitespace` leaves out.
pub(crate) fn is_space(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}
