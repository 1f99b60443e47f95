//! Memory for documents in hand: what a job makes of one takes many times its own bytes, so long ones wait for one another, and what is
//! too long for `--memory` is refused before it is worked on.

use lookalike::chunk::{Chunking, RunChunking};
use lookalike::{Scheme, Shingle};
use lookalike_corpus::{Compression, InputOptions, Inputs, RecordPlace};

use crate::error::BatchError;
use crate::overlap::OverlapSettings;
use crate::settings::JobLimits;

const MIB: u64 = 1 << 20;

/// Bytes of an ordinary chunk, as readers cut them.
pub(crate) const CHUNK_BYTES: u64 = 1 << 20;

/// The product that a job makes of each document.
#[derive(Clone, Copy, Debug)]
pub enum DocumentUse<'a> {
    /// Its text.
    Text,
    /// Its links, each with so many words around it.
    Links {
        /// Words on either side.
        window: usize,
    },
    /// Chunks of its text, under each chunking of these settings.
    Chunks(&'a OverlapSettings),
    /// Features of its text by this scheme.
    Features(&'a Scheme),
}

impl DocumentUse<'_> {
    /// Bytes that a long document takes for each of its own: its text, words and features. Measured: 6 to 7 for runs of words
    /// of one size, 13 for two sizes, 30 for characters.
    fn factor(self) -> u64 {
        match self {
            // A control character is six bytes in JSON.
            Self::Text => 9,
            // A link of 16 bytes has two addresses and the words around it, each a few times.
            Self::Links { window } => 24 + window as u64,
            Self::Chunks(settings) => chunk_factor(&settings.chunkings),
            // Powers of two above what was measured.
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

/// Bytes that chunks of a long document take for each of its own, where every line, field, word or sentence is one letter and what ends it,
/// and every character one byte: eight bytes for each of these, of all of a kind once and of their sets, but for the last one, which takes
/// the room of what it is made of; and the distinct ones again, of which there are half as many if each is a single part.
fn chunk_factor(chunkings: &[Chunking]) -> u64 {
    const HASH: u64 = 8 / 2;
    let distinct = |run: &RunChunking, hash: u64| match (run.length, run.sliding) {
        (1, _) => hash / 2,
        (_, true) => hash,
        (length, false) => hash.div_ceil(u64::from(length)),
    };
    let set = |run: &RunChunking, hash: u64| match run.sliding {
        true => hash,
        false => hash.div_ceil(u64::from(run.length)),
    };
    // The text as it is read, and without what nobody sees.
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
        // The last set is in the room of all its parts.
        factor += distinct(run, hash) + if *parts == 0 { 0 } else { set(run, hash) };
        *parts = hash;
    }
    // The piece that words are cut from: masked, normalised and lower-cased, with a class and a length for each character.
    let piece = if words + characters > 0 { 4 } else { 0 };
    factor + lines + fields + words + characters + piece
}

/// Part of a job's memory that is for documents in hand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentMemory<'a> {
    /// Sources of the documents, for messages.
    inputs: Option<&'a Inputs>,
    limit: u64,
    fixed: u64,
    /// Bytes that a document takes for each of its own.
    factor: u64,
    /// False where what is too long is worked on alone.
    refuses: bool,
}

impl<'a> DocumentMemory<'a> {
    /// Memory for documents that are used so.
    pub(crate) fn new(
        limits: &JobLimits,
        documents: DocumentUse<'_>,
        inputs: &'a Inputs,
        options: &InputOptions,
    ) -> Self {
        Self {
            inputs: Some(inputs),
            limit: limits.memory,
            fixed: fixed_bytes(limits, documents, options),
            factor: documents.factor(),
            refuses: true,
        }
    }

    /// Memory for chunks that take no more than their own bytes, of which so many are in hand together; none is refused.
    pub(crate) fn of_chunks(in_flight: u64) -> Self {
        Self {
            inputs: None,
            limit: in_flight.saturating_mul(4),
            fixed: 0,
            factor: 1,
            refuses: false,
        }
    }

    /// So many bytes for documents that take no more than their own.
    #[cfg(test)]
    pub(crate) fn of(limit: u64) -> Self {
        Self {
            inputs: None,
            limit,
            fixed: 0,
            factor: 1,
            refuses: true,
        }
    }

    /// Bytes of chunks that workers may have in hand together: with what is made of them they take a quarter of the memory.
    pub(crate) fn in_flight(&self) -> u64 {
        self.limit / 4 / self.factor
    }

    /// Bytes of the longest chunk that fits. An ordinary one always does: it is part of what each thread has anyway.
    fn longest(&self) -> u64 {
        (self.limit.saturating_sub(self.fixed) / self.factor).max(2 * CHUNK_BYTES)
    }

    /// True if there is room for a document, or a chunk, of so many bytes.
    pub(crate) fn fits(&self, bytes: u64) -> bool {
        !self.refuses || bytes <= self.longest()
    }

    /// Refuses a document that is too long.
    ///
    /// # Errors
    /// [`BatchError::LongDocuments`], which says what would do.
    pub(crate) fn ensure_fits(&self, document: LongestDocument) -> Result<(), BatchError> {
        let LongestDocument { bytes, place } = document;
        if self.fits(bytes) {
            return Ok(());
        }
        let needed = bytes.saturating_mul(self.factor);
        Err(BatchError::LongDocuments {
            met: place.and_then(|place| self.name(place)),
            document: bytes,
            needed,
            limit: self.limit,
            left: self.limit.saturating_sub(self.fixed),
            least: needed + self.fixed,
            fitting: self.longest(),
        })
    }

    fn name(&self, place: RecordPlace) -> Option<String> {
        let source = self.inputs?.sources.get(place.source as usize)?;
        Some(format!("{}, record {}", source.name(), place.record + 1))
    }
}

/// Length of a document, and its place if it was met.
#[derive(Clone, Copy)]
pub(crate) struct LongestDocument {
    pub(crate) bytes: u64,
    pub(crate) place: Option<RecordPlace>,
}

/// Refuses inputs that may hold a document too long for the memory, before the job. Those of up to 16 MiB are refused when they are met: a large
/// file of records seldom has one.
///
/// # Errors
/// [`BatchError::LongDocuments`], which says what would do.
pub fn ensure_documents_fit(
    limits: &JobLimits,
    documents: DocumentUse<'_>,
    inputs: &Inputs,
    options: &InputOptions,
) -> Result<(), BatchError> {
    /// Bytes of a document that is no surprise in records.
    const USUAL_BYTES: u64 = 16 * MIB;
    let longest = inputs
        .sources
        .iter()
        .map(|source| match source.compression {
            Compression::None => source.bytes,
            // All of a packed file may be one document, as long as readers unpack it.
            _ => source.bytes.saturating_mul(options.max_decoded_ratio),
        });
    let bytes = longest.max().unwrap_or(0).min(options.max_document_bytes);
    if bytes <= USUAL_BYTES {
        return Ok(());
    }
    DocumentMemory::new(limits, documents, inputs, options)
        .ensure_fits(LongestDocument { bytes, place: None })
}

/// Bytes of code, chunks in flight and each thread's tools; dictionaries and learned lines are resident all the while.
pub(crate) fn fixed_bytes(
    limits: &JobLimits,
    documents: DocumentUse<'_>,
    options: &InputOptions,
) -> u64 {
    let lines = options.boilerplate.as_ref().map_or(0, |lines| lines.len());
    let data = documents.dictionary_bytes() + 26 * lines as u64;
    16 * MIB + limits.workers() as u64 * 10 * MIB + data
}
