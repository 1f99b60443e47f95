//! The ordered list of what will be read, and of what will not.

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

/// Everything a job reads, in its order: arguments as given, directories by name bytewise.
#[derive(Debug, Clone)]
pub struct Inputs {
    /// Read in this order; an index into it is a `source` number elsewhere.
    pub sources: Vec<Source>,
    /// Files that discovery skipped, and why. Reading adds to this in [`crate::RecordChunk::skips`].
    pub skips: Vec<SkippedPart>,
}

/// One file, standard input, or documents that a caller hands over.
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
    /// Its modification time, where the file system keeps one; none for standard input.
    pub modified: Option<SystemTime>,
    is_json_text: bool,
    /// Facts that are learned while it is read.
    pub(crate) learned: Arc<LearnedFacts>,
}

/// Facts about a source that was read, shared by all its copies.
#[derive(Debug, Default)]
pub(crate) struct LearnedFacts {
    /// XXH3-64 of its bytes on disk; whoever reads all of them first sets it.
    pub(crate) sum: OnceLock<u64>,
    has_html: AtomicBool,
    /// The reason why it cannot be read, or not to its end. Readings that begin later leave it out.
    loss: OnceLock<String>,
}

impl LearnedFacts {
    /// Notes that a text of the source was made of HTML.
    pub(crate) fn note_html(&self) {
        // Readers share the flag: most find it set and need not write.
        if !self.has_html.load(Relaxed) {
            self.has_html.store(true, Relaxed);
        }
    }
}

/// The place of a source's bytes.
#[derive(Debug, Clone)]
pub(crate) enum SourceOrigin {
    /// A file, by the path the user gave or the walk found.
    File(PathBuf),
    /// Standard input or an object of a store: its copy, a hash of its bytes, and the URL of the object.
    Spool {
        copy: PathBuf,
        hash: u64,
        url: Option<String>,
    },
    /// Documents that a caller hands over, called so: there are no bytes.
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

    /// The name as the user would write it: the path, or `-`.
    ///
    /// On Unix a backslash is doubled and a byte that is not UTF-8 is written `\xHH`, so that
    /// different files never share a name.
    pub fn name(&self) -> Cow<'_, str> {
        match &self.origin {
            SourceOrigin::File(path) => name::display(path),
            SourceOrigin::Spool { url, .. } => Cow::Borrowed(url.as_deref().unwrap_or("-")),
            SourceOrigin::Given(name) => Cow::Borrowed(name),
        }
    }

    /// The last part of its name, which may say its format; empty for standard input.
    pub(crate) fn file_name(&self) -> &Path {
        match &self.origin {
            SourceOrigin::File(path) => path,
            SourceOrigin::Spool { url, .. } => {
                Path::new(remote::file_name(url.as_deref().unwrap_or_default()))
            }
            SourceOrigin::Given(_) => Path::new(""),
        }
    }

    /// The path below which copies of it are written: its own, or that of its URL; none for standard input.
    pub(crate) fn place(&self) -> Option<PathBuf> {
        match &self.origin {
            SourceOrigin::File(path) => Some(path.clone()),
            SourceOrigin::Spool { url, .. } => {
                Some(PathBuf::from(url.as_ref()?.replace("://", "/")))
            }
            SourceOrigin::Given(_) => None,
        }
    }

    /// Returns true if it could not be read, or not to its end, because it changed or is gone.
    pub fn is_lost(&self) -> bool {
        self.loss().is_some()
    }

    /// The reason why it is lost.
    pub(crate) fn loss(&self) -> Option<&str> {
        self.learned.loss.get().map(String::as_str)
    }

    /// Leaves the source out of all readings that begin from now on.
    pub(crate) fn lose(&self, reason: String) {
        // The first reason stays.
        let _ = self.learned.loss.set(reason);
    }

    /// The file itself; none for standard input and objects of stores.
    pub fn path(&self) -> Option<&Path> {
        match &self.origin {
            SourceOrigin::File(path) => Some(path),
            SourceOrigin::Spool { .. } | SourceOrigin::Given(_) => None,
        }
    }

    /// Returns true if the file is JSON without the field of a text, so that the whole file, braces included, is one text. Its
    /// first 8 KiB decide.
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

    /// Returns true for a table whose columns have types: Parquet or Arrow.
    pub fn is_typed_table(&self) -> bool {
        matches!(self.format, Format::Parquet | Format::Arrow)
    }

    /// Path or URL that tells it from all others; none for standard input and files that are gone.
    fn identity(&self) -> Option<PathBuf> {
        match &self.origin {
            SourceOrigin::File(path) => path.canonicalize().ok(),
            SourceOrigin::Spool { url, .. } => url.as_ref().map(PathBuf::from),
            SourceOrigin::Given(_) => None,
        }
    }

    /// The file that is opened: the source's own, or the copy of standard input.
    pub(crate) fn file(&self) -> &Path {
        match &self.origin {
            SourceOrigin::File(path) | SourceOrigin::Spool { copy: path, .. } => path,
            // No file has this name: opening it says so.
            SourceOrigin::Given(_) => Path::new(""),
        }
    }
}

/// Something that was not read, or not to its end, which the job must tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedPart {
    /// The file or directory, named as [`Source::name`] does.
    pub name: String,
    /// Reason, as the system or the decoder says it.
    pub reason: String,
    /// Reason, as a number to count by.
    pub kind: SkipKind,
    /// For damage: how many decompressed bytes were read before it. For records that are no
    /// documents: where the first of them begins.
    pub offset: Option<u64>,
    /// Number of them that this stands for.
    pub count: u64,
    /// The file, if it was passed over whole and can be copied: one in a format that is not read.
    pub file: Option<PathBuf>,
}

impl SkippedPart {
    /// Compressed data of a source that cannot be unpacked from `offset` on.
    pub(crate) fn damaged(source: &Source, offset: u64, reason: &str) -> SkippedPart {
        SkippedPart::lost(source, offset, error::damage("", reason))
    }

    /// Something of a source that cannot be read.
    pub(crate) fn lost(source: &Source, offset: u64, reason: String) -> SkippedPart {
        SkippedPart {
            name: source.name().into_owned(),
            reason,
            kind: SkipKind::Damaged,
            offset: Some(offset),
            count: 1,
            file: None,
        }
    }
}

/// The kinds of [`SkippedPart`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SkipKind {
    /// A format that is not read.
    Unsupported,
    /// Neither text nor a known format: a NUL in its beginning.
    Binary,
    /// The same file again; it is read once.
    Duplicate,
    /// A symbolic link that leads back to a directory above it.
    Loop,
    /// A FIFO, socket or device.
    NotAFile,
    /// An entry of a walked directory whose name begins with a dot.
    Hidden,
    /// A symbolic link in a walked directory that leads out of it.
    Outside,
    /// The system refused to open or list it, the link leads nowhere, or it changed between being found and being read.
    Unreadable,
    /// Compressed data that ends early or is corrupt. What came before it is used.
    Damaged,
    /// Records of a web archive that describe the archive itself.
    Warcinfo,
    /// Requests in a web archive.
    Request,
    /// Metadata records of a web archive.
    Metadata,
    /// Revisit records: the page did not change, and is not stored again.
    Revisit,
    /// Records of another type.
    OtherRecord,
    /// Responses of a server that are no page: redirections and errors.
    HttpStatus,
    /// Images, scripts, style sheets and all else in a web archive that is not a text.
    NotText,
    /// Bodies that are not encoded as their header says: taken as they are. No loss.
    RawBody,
    /// Bodies of a web archive whose chunks or compression end early or are corrupt. What came before that is used. No loss here: most
    /// were cut off when the archive was made.
    CutBody,
    /// Gzip members or zstd frames of a web archive that hold several records: read, but no tool can go to one of them. No loss.
    SharedMember,
    /// A folder with results of a job, which a walk met. No loss.
    ResultsFolder,
    /// The folder that the job at hand writes its results to, which a walk met. No loss.
    OutputFolder,
}

impl SkipKind {
    /// A short name for counters: `unsupported`, `binary`, `duplicate`, ...
    pub fn as_str(self) -> &'static str {
        match self {
            SkipKind::Unsupported => "unsupported",
            SkipKind::Binary => "binary",
            SkipKind::Duplicate => "duplicate",
            SkipKind::Loop => "loop",
            SkipKind::NotAFile => "not-a-file",
            SkipKind::Hidden => "hidden",
            SkipKind::Outside => "outside",
            SkipKind::Unreadable => "unreadable",
            SkipKind::Damaged => "damaged",
            SkipKind::Warcinfo => "warcinfo",
            SkipKind::Request => "request",
            SkipKind::Metadata => "metadata",
            SkipKind::Revisit => "revisit",
            SkipKind::OtherRecord => "other-record",
            SkipKind::HttpStatus => "http-status",
            SkipKind::NotText => "not-text",
            SkipKind::RawBody => "raw-body",
            SkipKind::CutBody => "cut-body",
            SkipKind::SharedMember => "shared-member",
            SkipKind::ResultsFolder => "results-folder",
            SkipKind::OutputFolder => "output-folder",
        }
    }

    /// Returns true if documents were lost: something that is read could not be, or not to its end.
    ///
    /// What a walk passes over for what it is (hidden, in another format, met before, results) and records of
    /// a web archive that are no pages are counted, and that is all.
    pub fn is_loss(self) -> bool {
        matches!(self, SkipKind::Unreadable | SkipKind::Damaged)
    }
}

impl Inputs {
    /// Leaves out what `others` hold too: such files are told as [`SkipKind::Duplicate`], with this reason. Returns how many.
    pub fn leave_out(&mut self, others: &Inputs, reason: &str) -> usize {
        // Canonical paths: the same file may be named from another directory, or by a link.
        let known: HashSet<PathBuf> = others.sources.iter().filter_map(Source::identity).collect();
        let passed_over = others.skips.iter().filter_map(|skip| skip.file.as_ref());
        let passed_over: HashSet<PathBuf> = passed_over
            .filter_map(|file| file.canonicalize().ok())
            .collect();
        let is_known =
            |source: &mut Source| source.identity().is_some_and(|it| known.contains(&it));
        // Numbers of the sources behind move up, so this comes before anything is read.
        let again: Vec<Source> = self.sources.extract_if(.., is_known).collect();
        self.skips.retain(|skip| {
            let file = skip.file.as_ref().and_then(|file| file.canonicalize().ok());
            file.is_none_or(|file| !passed_over.contains(&file))
        });
        self.skips.extend(again.iter().map(|source| SkippedPart {
            name: source.name().into_owned(),
            reason: reason.to_owned(),
            kind: SkipKind::Duplicate,
            offset: None,
            count: 1,
            file: None,
        }));
        again.len()
    }

    /// Sum of [`Source::bytes`]: what will be read from disk in one pass.
    pub fn total_bytes(&self) -> u64 {
        self.sources.iter().map(|source| source.bytes).sum()
    }

    /// 32 hex digits that change when a name, size, format or the order of the sources changes (standard input: its
    /// bytes). For a resumed job to refuse other input; whether the bytes are the same, [`Inputs::changed_since`] tells.
    pub fn fingerprint(&self) -> String {
        let mut hasher = Xxh3::new();
        for source in &self.sources {
            source.feed(&mut hasher);
        }
        format!("{:032x}", hasher.digest128())
    }

    /// True if any text was made of HTML, once all sources were read.
    pub fn have_html(&self) -> bool {
        let mut sources = self.sources.iter();
        sources.any(|source| source.learned.has_html.load(Relaxed))
    }
}

impl Source {
    fn feed(&self, hasher: &mut Xxh3) {
        let name = self.name();
        // With its length: names and sizes next to each other must not read as others.
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes());
        hasher.update(&self.bytes.to_le_bytes());
        // By the order of the variants: inserting one in front of others makes every unfinished job start anew.
        hasher.update(&[self.format as u8, self.compression as u8]);
        if let SourceOrigin::Spool { hash, .. } = &self.origin {
            hasher.update(&hash.to_le_bytes());
        }
    }
}
