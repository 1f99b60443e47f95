//! Memory for documents in work: processing a document takes many times its own size, so long documents wait for each other, and documents
//! that are too long for `--memory` are refused before they are processed.

use lookalike::chunk::{Chunking, RunChunking};
use lookalike::{HtmlMode, Scheme, Shingle};
use lookalike_corpus::{Compression, InputOptions, Inputs, RecordPosition, Source};

use crate::error::BatchError;
use crate::overlap::OverlapSettings;
use crate::settings::JobLimits;

const MIB: u64 = 1 << 20;

/// Bytes of code and of everything else that exists once.
const CODE_BYTES: u64 = 16 * MIB;

/// Bytes of the chunks in flight and the tools of a thread.
const THREAD_BYTES: u64 = 10 * MIB;

/// Bytes of an ordinary chunk, as readers produce them.
pub(crate) const CHUNK_BYTES: u64 = 1 << 20;

/// Use that a job makes of each document.
#[derive(Clone, Copy, Debug)]
pub enum DocumentUse<'a> {
    /// Its text.
    Text,
    /// Its links, each with the words around it.
    Links {
        /// Number of words on either side.
        window: usize,
    },
    /// The chunks of its text, under each chunking of these settings.
    Chunks(&'a OverlapSettings),
    /// The features of its text under this scheme.
    Features(&'a Scheme),
}

impl DocumentUse<'_> {
    /// Returns the bytes of memory that a long document takes for each of its own bytes: text, words and features. Measured: 6 to 7 for runs of words
    /// of one size, 13 for two sizes, 30 for characters.
    fn factor(self) -> u64 {
        match self {
            // A control character takes six bytes in JSON.
            Self::Text => 9,
            // A link of 16 bytes is stored with two addresses and the words around it, each several times.
            Self::Links { window } => 24 + window as u64,
            Self::Chunks(settings) => chunk_factor(&settings.chunkings),
            // The measured values, rounded up to powers of two.
            Self::Features(scheme) => match scheme.shingle {
                Shingle::Chars(_) => 32,
                Shingle::Words(..) => 8,
                _ => 16,
            },
        }
    }

    fn dictionary_bytes(self) -> u64 {
        match self {
            Self::Text | Self::Links { .. } => 0,
            Self::Chunks(settings) => match settings.needs_scheme() {
                true => settings.scheme.dictionary_bytes(),
                false => 0,
            },
            Self::Features(scheme) => scheme.dictionary_bytes(),
        }
    }
}

/// Returns the bytes that the chunks of a long document take for each of its own bytes, in the worst case: every line, field, word or sentence is one
/// letter with a separator, and every character is one byte. Each takes eight bytes in the list of its kind, which exists once, and again in
/// its set, except for the last set, which is built in the memory of its parts; and again among the distinct chunks, half as many if
/// each is a single part.
fn chunk_factor(chunkings: &[Chunking]) -> u64 {
    const HASH: u64 = 8 / 2;
    let distinct = |run: &RunChunking, hash: u64| match (run.length(), run.is_sliding()) {
        (1, _) => hash / 2,
        (_, true) => hash,
        (length, false) => hash.div_ceil(u64::from(length)),
    };
    let set = |run: &RunChunking, hash: u64| match run.is_sliding() {
        true => hash,
        false => hash.div_ceil(u64::from(run.length())),
    };
    // The text as it was read, and the text without invisible characters.
    let mut factor = 3;
    let (mut lines, mut fields, mut words, mut characters) = (0, 0, 0, 0);
    for chunking in chunkings.iter().rev() {
        let (run, parts, hash) = match chunking {
            Chunking::Document => continue,
            Chunking::Sentences => {
                factor += HASH + HASH / 2;
                continue;
            }
            Chunking::Paragraphs => {
                lines = HASH;
                factor += HASH + HASH / 2;
                continue;
            }
            Chunking::Lines(run) => (run, &mut lines, HASH),
            Chunking::Fields(run) => (run, &mut fields, HASH),
            Chunking::Words(run) => (run, &mut words, HASH),
            Chunking::Characters(run) => (run, &mut characters, 2 * HASH),
        };
        // The last set is built in the memory of its parts.
        factor += distinct(run, hash) + if *parts == 0 { 0 } else { set(run, hash) };
        *parts = hash;
    }
    // The piece that is split into words: masked, normalised and lower-cased, with a class and a length for each character.
    let piece = if words + characters > 0 { 4 } else { 0 };
    factor + lines + fields + words + characters + piece
}

/// Part of a job's memory that is for documents in work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentMemory<'a> {
    /// Sources of the documents, to name them in errors.
    inputs: Option<&'a Inputs>,
    limit: u64,
    fixed: u64,
    /// Bytes of memory that a document takes for each of its own bytes.
    factor: u64,
    /// False if documents that are too long are processed one at a time instead.
    refuses: bool,
    /// True if trees are built of HTML.
    has_trees: bool,
}

impl<'a> DocumentMemory<'a> {
    /// Returns the memory for documents with this use.
    pub(crate) fn new(
        limits: &JobLimits,
        documents: DocumentUse<'_>,
        inputs: &'a Inputs,
        options: &InputOptions,
    ) -> Self {
        Self {
            inputs: Some(inputs),
            limit: limits.memory,
            fixed: fixed_bytes(limits, documents, inputs, options),
            factor: documents.factor(),
            refuses: true,
            has_trees: matches!(options.html.mode, HtmlMode::Main | HtmlMode::Quality),
        }
    }

    /// Returns the memory for chunks that take only their own size, `in_flight` bytes at a time; none is refused.
    pub(crate) fn of_chunks(in_flight: u64) -> Self {
        Self {
            inputs: None,
            // `DocumentMemory::in_flight` takes a quarter of it.
            limit: in_flight.saturating_mul(4),
            fixed: 0,
            factor: 1,
            refuses: false,
            has_trees: false,
        }
    }

    /// Returns memory of `limit` bytes for documents that take only their own size.
    #[cfg(test)]
    pub(crate) fn of(limit: u64) -> Self {
        Self {
            inputs: None,
            limit,
            fixed: 0,
            factor: 1,
            refuses: true,
            has_trees: false,
        }
    }

    /// Returns the number of bytes of the chunks that workers may process at the same time: with their results they take a quarter of the memory.
    pub(crate) fn in_flight(&self) -> u64 {
        // May be 0 for a tiny limit; the pipeline lets ordinary chunks in at any rate.
        self.limit / 4 / self.factor
    }

    /// Returns the number of bytes of [`Self::in_flight`] that one of at most `window` chunks takes: its own, which are `held`, and more if it may
    /// have a page with many elements.
    pub(crate) fn counted(&self, held: u64, start_tags: impl Fn() -> u64, window: u64) -> u64 {
        /// Number of elements whose tree is part of the memory of a thread. A chunk of ordinary pages has about as many.
        const ORDINARY: u64 = 20_000;
        /// Maximum number of elements of which a tree is built.
        const MOST: u64 = 100_000;
        /// Bytes in flight of each further element: it takes 300 (measured: 26 MiB for 90,000 elements, each with a text), and the memory of a thread
        /// is for one and a half ordinary chunks.
        const ELEMENT_BYTES: u64 = 300 * (CHUNK_BYTES * 3 / 2) / THREAD_BYTES;
        /// Maximum number of bytes in flight of an ordinary chunk.
        const LARGEST: u64 = 2 * CHUNK_BYTES + (MOST - ORDINARY) * ELEMENT_BYTES;
        // If a window of the largest chunks fits, the reader need not spend time on counting.
        let elements = match self.has_trees && self.in_flight() < window * LARGEST {
            true => start_tags().min(MOST).saturating_sub(ORDINARY),
            false => 0,
        };
        held + elements * ELEMENT_BYTES
    }

    /// Returns the number of bytes of the longest chunk that fits. An ordinary chunk always fits: it is part of the fixed memory of a thread.
    fn longest(&self) -> u64 {
        (self.limit.saturating_sub(self.fixed) / self.factor).max(2 * CHUNK_BYTES)
    }

    /// Returns true if there is room for a document or chunk of this size.
    pub(crate) fn fits(&self, bytes: u64) -> bool {
        !self.refuses || bytes <= self.longest()
    }

    /// Returns an error if a document is too long.
    ///
    /// # Errors
    /// [`BatchError::LongDocuments`], which names a sufficient limit.
    pub(crate) fn ensure_fits(&self, document: LongestDocument) -> Result<(), BatchError> {
        let LongestDocument { bytes, place } = document;
        if self.fits(bytes) {
            return Ok(());
        }
        // The length may be the largest one that a compressed input could have, or that the caller accepts.
        let needed = bytes.saturating_mul(self.factor);
        Err(BatchError::LongDocuments {
            place: place.and_then(|place| self.name(place)),
            document: bytes,
            needed,
            limit: self.limit,
            left: self.limit.saturating_sub(self.fixed),
            least: needed.saturating_add(self.fixed),
            fitting: self.longest(),
        })
    }

    /// Refuses inputs whose list of files takes more than three quarters of the memory that code and threads leave.
    fn ensure_files_fit(&self, inputs: &Inputs) -> Result<(), BatchError> {
        /// Bytes of a list that no job is refused for.
        const SMALL: u64 = 4 * MIB;
        let needed = inputs.held_bytes();
        let others = self.fixed - needed;
        let left = self.limit.saturating_sub(others) / 4 * 3;
        match needed <= left.max(SMALL) {
            true => Ok(()),
            false => Err(BatchError::Memory {
                what: "the list of files",
                needed,
                left,
                // Four more for the division.
                least: others + (needed + 4).div_ceil(3) * 4,
            }),
        }
    }

    fn name(&self, place: RecordPosition) -> Option<String> {
        let source = self.inputs?.sources.get(place.source as usize)?;
        Some(format!("{}, record {}", source.name(), place.record + 1))
    }
}

/// Length of a document in bytes, with its place if it has been read.
#[derive(Clone, Copy)]
pub(crate) struct LongestDocument {
    pub(crate) bytes: u64,
    pub(crate) place: Option<RecordPosition>,
}

/// Refuses, before the job starts, inputs that may contain a document too long for the memory, and more files than fit in it. Documents of up to
/// 16 MiB are only refused when they are read, because a large file of records seldom contains one.
///
/// # Errors
/// [`BatchError::LongDocuments`] and [`BatchError::Memory`], which name a sufficient limit.
pub fn ensure_documents_fit(
    limits: &JobLimits,
    documents: DocumentUse<'_>,
    inputs: &Inputs,
    options: &InputOptions,
) -> Result<(), BatchError> {
    /// Maximum number of bytes of a document that is expected among records.
    const TYPICAL_BYTES: u64 = 16 * MIB;
    let memory = DocumentMemory::new(limits, documents, inputs, options);
    memory.ensure_files_fit(inputs)?;
    // A file may be a single document.
    let longest = inputs
        .sources
        .iter()
        .map(|source| most_decoded_bytes(source, options))
        .max();
    let bytes = longest.unwrap_or(0).min(options.max_document_bytes);
    if bytes <= TYPICAL_BYTES {
        return Ok(());
    }
    memory.ensure_fits(LongestDocument { bytes, place: None })
}

/// Returns the maximum number of bytes that readers decompress of a source.
pub(crate) fn most_decoded_bytes(source: &Source, options: &InputOptions) -> u64 {
    match source.compression {
        Compression::None => source.bytes,
        _ => source.bytes.saturating_mul(options.max_decoded_ratio),
    }
}

/// Returns the bytes of code, chunks in flight and the tools of each thread, and of the dictionaries, learned lines and lists of files, which are always
/// resident.
pub(crate) fn fixed_bytes(
    limits: &JobLimits,
    documents: DocumentUse<'_>,
    inputs: &Inputs,
    options: &InputOptions,
) -> u64 {
    let lines = options.boilerplate.as_ref().map_or(0, |lines| lines.len());
    // As many bytes for a line as `BoilerplateLearner` counts.
    let data = documents.dictionary_bytes() + 26 * lines as u64 + inputs.held_bytes();
    CODE_BYTES + limits.workers() as u64 * THREAD_BYTES + data
}

impl JobLimits {
    /// Returns the number of threads that leave a quarter of the memory to the tables of a job that reads documents: `threads`, or fewer if the
    /// memory is small, but never fewer than two for that reason. A job with more of them than fit would be refused, however small.
    pub fn fitting_threads(&self) -> usize {
        let fitting = self.memory.saturating_sub(CODE_BYTES) / 4 * 3 / THREAD_BYTES;
        let fitting = usize::try_from(fitting).unwrap_or(usize::MAX);
        self.workers().min(fitting.max(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_do_not_fit_are_left_out_but_never_the_second() {
        let fitting = |threads, mebibytes: u64| {
            let limits = JobLimits::default().threads(threads);
            limits.memory(mebibytes * MIB).fitting_threads()
        };
        assert_eq!(fitting(0, 512), 1);
        assert_eq!(fitting(8, 512), 8);
        // 37 times 10 MiB are not yet three quarters of 496 MiB.
        assert_eq!(fitting(64, 512), 37);
        assert_eq!(fitting(64, 1024), 64);
        assert_eq!(fitting(64, 8), 2);
        assert_eq!(fitting(1, 8), 1);
    }

    #[test]
    fn a_list_of_files_was_not_counted() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.txt");
        std::fs::write(&file, "a text").unwrap();
        let options = InputOptions::default();
        let mut inputs = Inputs::discover(&[file.into()], &options, folder.path()).unwrap();
        let checked = |inputs: &Inputs, memory| {
            let limits = JobLimits::default().threads(2).memory(memory);
            ensure_documents_fit(&limits, DocumentUse::Text, inputs, &options)
        };
        checked(&inputs, 1).unwrap();
        const FILES: usize = 200_000;
        inputs.sources = vec![inputs.sources[0].clone(); FILES];
        let refused = checked(&inputs, 64 * MIB);
        let Err(BatchError::Memory { needed, least, .. }) = refused else {
            panic!("{refused:?}");
        };
        // Measured: about 230 bytes for each of 100,000 files with paths of 70 bytes.
        assert!((150..600).contains(&(needed / FILES as u64)), "{needed}");
        checked(&inputs, least).unwrap();
        assert!(checked(&inputs, least - MIB).is_err());
    }

    #[test]
    fn the_memory_for_a_document_of_unlimited_length_overflowed() {
        let memory = DocumentMemory {
            inputs: None,
            limit: 1 << 30,
            fixed: 26 * MIB,
            factor: 32,
            refuses: true,
            has_trees: false,
        };
        let refused = memory.ensure_fits(LongestDocument {
            bytes: u64::MAX,
            place: None,
        });
        let Err(BatchError::LongDocuments { least, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(least, u64::MAX);
    }
}
