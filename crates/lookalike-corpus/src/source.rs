//! The ordered list of everything that will be read, and the list of skipped files.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use xxhash_rust::xxh3::Xxh3;

use crate::error;
use crate::format::{Compression, Format, ReadFormat};
use crate::name;
use crate::remote;

/// Everything that a job reads, in order: arguments as given, directories sorted bytewise by name.
#[derive(Debug, Clone)]
pub struct Inputs {
    /// The sources in reading order. A `source` number elsewhere is an index into this.
    pub sources: Vec<Source>,
    /// Files that discovery skipped, with reasons. Reading reports further skips in [`crate::RecordChunk::skips`].
    pub skips: Vec<SkippedPart>,
}

/// One file, standard input, or documents that a caller passes in memory.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Source {
    pub(crate) origin: SourceOrigin,
    /// The format of its bytes.
    pub format: Format,
    /// The compression of its bytes.
    pub compression: Compression,
    /// Its size on disk, before decompression.
    pub bytes: u64,
    /// Its modification time, if the file system stores one; `None` for standard input.
    pub modified: Option<SystemTime>,
    is_json_text: bool,
    /// Facts learned while it is read.
    pub(crate) learned: Arc<LearnedFacts>,
}

/// Facts about a source, learned while reading it and shared by all its copies.
#[derive(Debug, Default)]
pub(crate) struct LearnedFacts {
    /// XXH3-64 of its bytes on disk, set by the first reader that reads all of them.
    pub(crate) sum: OnceLock<u64>,
    has_html: AtomicBool,
    /// The reason why it cannot be read, or not to its end. Later readings skip it.
    loss: OnceLock<String>,
}

impl LearnedFacts {
    /// Notes that a text of the source was extracted from HTML.
    pub(crate) fn note_html(&self) {
        // Readers share the flag: most find it already set and need not write.
        if !self.has_html.load(Relaxed) {
            self.has_html.store(true, Relaxed);
        }
    }
}

/// The origin of a source's bytes.
#[derive(Debug, Clone)]
pub(crate) enum SourceOrigin {
    /// A file, with the path that the user gave or the walk found.
    File(PathBuf),
    /// Standard input or an object of a store: its copy, a hash of its bytes, and the URL of the object.
    Spool {
        copy: PathBuf,
        hash: u64,
        url: Option<String>,
    },
    /// Documents that a caller passes in memory, with the name of the source; there are no bytes.
    Given(String),
}

impl Source {
    pub(crate) fn new(origin: SourceOrigin, format: ReadFormat, bytes: u64) -> Self {
        Self {
            origin,
            format: format.format,
            compression: format.compression,
            bytes,
            modified: None,
            is_json_text: format.is_json_text,
            learned: Arc::default(),
        }
    }

    /// Returns the name as the user would write it: the path, or `-`.
    ///
    /// On Unix a backslash is doubled and a byte that is not UTF-8 is written `\xHH`, so that different files never have the same name.
    pub fn name(&self) -> Cow<'_, str> {
        match &self.origin {
            SourceOrigin::File(path) => name::display(path),
            SourceOrigin::Spool { url, .. } => Cow::Borrowed(url.as_deref().unwrap_or("-")),
            SourceOrigin::Given(name) => Cow::Borrowed(name),
        }
    }

    /// Returns the URL of an object of a store.
    fn url(&self) -> Option<&str> {
        match &self.origin {
            SourceOrigin::Spool { url, .. } => url.as_deref(),
            SourceOrigin::File(_) | SourceOrigin::Given(_) => None,
        }
    }

    /// Returns the last part of its name, which may tell its format; empty for standard input.
    pub(crate) fn file_name(&self) -> &Path {
        let name = || Path::new(remote::file_name(self.url().unwrap_or_default()));
        self.path().unwrap_or_else(name)
    }

    /// Returns the path under which copies of it are written: its own, or that of its URL. Returns `None` for standard input.
    pub(crate) fn place(&self) -> Option<PathBuf> {
        match self.path() {
            Some(path) => Some(path.to_owned()),
            None => Some(PathBuf::from(self.url()?.replace("://", "/"))),
        }
    }

    /// Returns true if it could not be read, or not to its end, because it changed or is gone.
    pub fn is_lost(&self) -> bool {
        self.loss().is_some()
    }

    /// Returns the reason why it is lost.
    pub(crate) fn loss(&self) -> Option<&str> {
        self.learned.loss.get().map(String::as_str)
    }

    /// Marks the source as lost: all later readings skip it.
    pub(crate) fn mark_lost(&self, reason: String) {
        // The first reason is kept.
        let _ = self.learned.loss.set(reason);
    }

    /// Returns the path of the file, or `None` for standard input and objects of stores.
    pub fn path(&self) -> Option<&Path> {
        match &self.origin {
            SourceOrigin::File(path) => Some(path),
            SourceOrigin::Spool { .. } | SourceOrigin::Given(_) => None,
        }
    }

    /// Returns true if the file is JSON without a text field, so that the whole file, including braces, is one text. Its first 8 KiB decide.
    pub fn is_json_read_as_text(&self) -> bool {
        self.is_json_text
    }

    /// Returns true if the file is one document, not a sequence of records.
    pub fn is_document(&self) -> bool {
        matches!(
            self.format,
            Format::Text | Format::Html | Format::Pdf | Format::Converted
        )
    }

    /// Returns true for a table with typed columns: Parquet or Arrow.
    pub fn is_typed_table(&self) -> bool {
        matches!(self.format, Format::Parquet | Format::Arrow)
    }

    /// Returns a path or URL that identifies it, or `None` for standard input and files that are gone.
    fn identity(&self) -> Option<PathBuf> {
        match self.path() {
            Some(path) => path.canonicalize().ok(),
            None => self.url().map(PathBuf::from),
        }
    }

    /// Returns the path of the file to open: the source's own, or the copy of standard input.
    pub(crate) fn file(&self) -> &Path {
        match &self.origin {
            SourceOrigin::File(path) | SourceOrigin::Spool { copy: path, .. } => path,
            // No file has this name, so opening it fails.
            SourceOrigin::Given(_) => Path::new(""),
        }
    }
}

/// A part of the inputs that was not read, or not to its end, which the job must report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedPart {
    /// The file or directory, named like [`Source::name`].
    pub name: String,
    /// The reason given by the system or the decoder.
    pub reason: String,
    /// The kind of reason, for counters.
    pub kind: SkipKind,
    /// For damage, the number of decompressed bytes read before it. For records that are not documents, the offset of the first one.
    pub offset: Option<u64>,
    /// Number of parts that this entry stands for.
    pub count: u64,
    /// The path of the file, if it was skipped as a whole and can be copied, because its format is not supported.
    pub file: Option<PathBuf>,
}

impl SkippedPart {
    /// Reports compressed data of a source that cannot be decompressed from `offset` on.
    pub(crate) fn damaged(source: &Source, offset: u64, reason: &str) -> SkippedPart {
        SkippedPart::unreadable(source, offset, error::damage("", reason))
    }

    /// Reports a part of a source that cannot be read.
    pub(crate) fn unreadable(source: &Source, offset: u64, reason: String) -> SkippedPart {
        SkippedPart {
            offset: Some(offset),
            ..SkippedPart::new(source.name(), SkipKind::Damaged, reason)
        }
    }

    /// Returns the number of bytes of memory that it takes.
    fn held_bytes(&self) -> usize {
        let file = self
            .file
            .as_ref()
            .map_or(0, |file| allocated(file.as_os_str().len()));
        size_of::<Self>() + allocated(self.name.len()) + allocated(self.reason.len()) + file
    }

    /// Reports a file or folder of this name.
    pub(crate) fn new(name: impl Into<String>, kind: SkipKind, reason: String) -> SkippedPart {
        SkippedPart {
            name: name.into(),
            reason,
            kind,
            offset: None,
            count: 1,
            file: None,
        }
    }
}

lookalike::words! {
    /// The kinds of [`SkippedPart`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum SkipKind {
        /// A format that is not supported.
        Unsupported = "unsupported",
        /// Neither text nor a known format: its first bytes contain a NUL.
        Binary = "binary",
        /// A file that was already found; it is read once.
        Duplicate = "duplicate",
        /// A symbolic link that leads back to a directory above it.
        Loop = "loop",
        /// A FIFO, socket or device.
        NotAFile = "not-a-file",
        /// An entry of a walked directory whose name begins with a dot.
        Hidden = "hidden",
        /// A file or folder that a pattern of the caller leaves out.
        Excluded = "excluded",
        /// A symbolic link in a walked directory that leads out of it.
        Outside = "outside",
        /// The system refused to open or list it, the link leads nowhere, or it changed between discovery and reading.
        Unreadable = "unreadable",
        /// Compressed data that ends early or is corrupt. The data before that is used.
        Damaged = "damaged",
        /// Records of a web archive that describe the archive itself.
        Warcinfo = "warcinfo",
        /// Requests in a web archive.
        Request = "request",
        /// Metadata records of a web archive.
        Metadata = "metadata",
        /// Revisit records: the page did not change, and is not stored again.
        Revisit = "revisit",
        /// Records of another type.
        OtherRecord = "other-record",
        /// Responses of a server that are not pages: redirections and errors.
        HttpStatus = "http-status",
        /// Images, scripts, style sheets and everything else in a web archive that is not text.
        NotText = "not-text",
        /// Bodies that are not encoded as their header says; they are taken as they are. Not a loss.
        RawBody = "raw-body",
        /// Bodies of a web archive that end early or are corrupt, according to their chunks, compression or length, or to the head of their record. The
        /// part before that is used. Not counted as a loss here, because most were cut off when the archive was made.
        CutBody = "cut-body",
        /// Gzip members or zstd frames of a web archive that hold several records: read, but no tool can seek to one of these records. Not a loss.
        SharedMember = "shared-member",
        /// Quoted values of CSV whose lines look like rows, probably because a quote at the start of a text was never meant to open a value. Read as one
        /// row each. Not counted as a loss, because the lines may as well be a text.
        SwallowedRows = "swallowed-rows",
        /// Columns of CSV with the name of an earlier one. Read with a number after their name. Not a loss.
        RepeatedColumn = "repeated-column",
        /// A folder with results of a job, found by a walk. Not a loss.
        ResultsFolder = "results-folder",
        /// The folder to which the current job writes its results, found by a walk. Not a loss.
        OutputFolder = "output-folder",
        /// A file or folder that Spark, Hive or Delta Lake keeps about a table, found by a walk or a glob. Not a loss.
        Bookkeeping = "bookkeeping",
    }
}

impl SkipKind {
    /// Returns true if documents were lost: a part that should have been read could not be, or not to its end.
    ///
    /// Files that a walk skips by rule (hidden, in another format, already found, results) and records of a web archive that are not pages are only
    /// counted.
    pub fn is_loss(self) -> bool {
        matches!(self, SkipKind::Unreadable | SkipKind::Damaged)
    }
}

/// Returns the number of bytes that an allocation of `bytes` bytes takes, with the allocator's own.
fn allocated(bytes: usize) -> usize {
    bytes + 16
}

impl Inputs {
    /// Removes the sources and skipped files that `others` also contain. They are reported as [`SkipKind::Duplicate`], with this reason. Returns
    /// their number.
    pub fn exclude_inputs_of(&mut self, others: &Inputs, reason: &str) -> usize {
        // Canonical paths, because the same file may be named from another directory, or by a link.
        let known: HashSet<PathBuf> = others.sources.iter().filter_map(Source::identity).collect();
        let passed_over = others.skips.iter().filter_map(|skip| skip.file.as_ref());
        let passed_over: HashSet<PathBuf> = passed_over
            .filter_map(|file| file.canonicalize().ok())
            .collect();
        let is_known =
            |source: &mut Source| source.identity().is_some_and(|it| known.contains(&it));
        // The numbers of later sources change, so this must come before anything is read.
        let again: Vec<Source> = self.sources.extract_if(.., is_known).collect();
        self.skips.retain(|skip| {
            let file = skip.file.as_ref().and_then(|file| file.canonicalize().ok());
            file.is_none_or(|file| !passed_over.contains(&file))
        });
        self.skips.extend(
            again.iter().map(|source| {
                SkippedPart::new(source.name(), SkipKind::Duplicate, reason.to_owned())
            }),
        );
        again.len()
    }

    /// Returns the sum of [`Source::bytes`]: the number of bytes to read from disk in one pass.
    pub fn total_bytes(&self) -> u64 {
        self.sources.iter().map(|source| source.bytes).sum()
    }

    /// Returns the number of bytes of memory that the lists of sources and skipped files take.
    pub fn held_bytes(&self) -> u64 {
        let sources = self.sources.iter().map(Source::held_bytes);
        sources
            .chain(self.skips.iter().map(SkippedPart::held_bytes))
            .sum::<usize>() as u64
    }

    /// Returns 32 hex digits that change with any name, size or format, and with the order of the sources (for standard input, with its bytes). A
    /// resumed job uses it to refuse other input; [`Inputs::changed_since`] compares the bytes themselves.
    pub fn fingerprint(&self) -> String {
        let mut hasher = Xxh3::new();
        for source in &self.sources {
            source.feed(&mut hasher);
        }
        format!("{:032x}", hasher.digest128())
    }

    /// Returns true if any text was extracted from HTML. Valid once all sources were read.
    pub fn have_html(&self) -> bool {
        // Relaxed is enough, because the caller has waited for all readers.
        let mut sources = self.sources.iter();
        sources.any(|source| source.learned.has_html.load(Relaxed))
    }
}

impl Source {
    /// Returns the number of bytes of memory that it takes.
    fn held_bytes(&self) -> usize {
        let origin = match &self.origin {
            SourceOrigin::File(path) => allocated(path.as_os_str().len()),
            SourceOrigin::Spool { copy, url, .. } => {
                allocated(copy.as_os_str().len())
                    + url.as_ref().map_or(0, |url| allocated(url.len()))
            }
            SourceOrigin::Given(name) => allocated(name.len()),
        };
        size_of::<Self>() + allocated(size_of::<LearnedFacts>()) + origin
    }

    fn feed(&self, hasher: &mut Xxh3) {
        let name = self.name();
        // With the length, so that adjacent names and sizes cannot be confused with others.
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes());
        hasher.update(&self.bytes.to_le_bytes());
        // Uses the order of the variants: inserting one before others makes every unfinished job start anew.
        hasher.update(&[self.format as u8, self.compression as u8]);
        if let SourceOrigin::Spool { hash, .. } = &self.origin {
            hasher.update(&hash.to_le_bytes());
        }
    }
}
