//! Writes collections of fingerprints or longer sketches in the format that the file's name implies.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lookalike::scheme::SchemeId;
use lookalike_corpus::{AtomicFile, CodeCell, CodeColumn, CodeTableWriter, Compression};
use lookalike_hamming::{FileError, FingerprintWriter, Word};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::ascending::ArchiveSorter;
use super::sized_fingerprint::words_of;
use super::source::unpacked_name;
use super::{
    ArchiveScratch, CodeFiles, CodesSummary, FingerprintFile, FingerprintName, FingerprintSource,
    ListedId, SketchKind, system_error,
};
use crate::dedup::result_lines::write_line;
use crate::error::{BatchError, OUTPUT};
use crate::fingerprints::settings_error::FingerprintSettingsError;
use crate::fingerprints::with_word::with_word;
use crate::losses::LossPolicy;
use crate::observer::{JobObserver, JobStage, NoProgress};

/// Format of a written collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodeFormat {
    /// JSON Lines: `{"id":..,"fingerprint":".."}`, or with the field of another kind of sketch.
    JsonLines,
    /// A fingerprint file, which stores the scheme.
    Fingerprints,
    /// Little-endian numbers of the given kind, without ids.
    Raw(SketchKind),
    /// A Parquet table.
    Parquet,
    /// An archive of fingerprints of 64 bits: ascending, without ids, with the scheme.
    Archive,
}

impl CodeFormat {
    /// Returns the format and compression that a name implies, or `None` for an unknown name.
    pub fn of(path: &Path) -> Option<(Self, Compression)> {
        let (name, packing) = unpacked_name(&path.file_name()?.to_string_lossy());
        let formats = [
            (".jsonl", Self::JsonLines),
            (".ndjson", Self::JsonLines),
            (".lkfp", Self::Fingerprints),
            (".parquet", Self::Parquet),
            (".lkar", Self::Archive),
        ];
        let raw = || SketchKind::of_raw_ending(name.rsplit_once('.')?.1).map(Self::Raw);
        let named = formats.into_iter().find(|(end, _)| name.ends_with(end));
        let format = named.map(|(_, format)| format).or_else(raw)?;
        // A table is compressed inside and read from its end, and an archive cannot be compressed any further.
        let packs = !matches!(format, Self::Parquet | Self::Archive);
        (packs || packing == Compression::None).then_some((format, packing))
    }
}

/// Function that creates a file which is renamed at the end: [`AtomicFile::create`], or a variant that also removes the temporary file if the process
/// is interrupted.
pub type AtomicFileCreator = fn(&Path, Compression) -> io::Result<AtomicFile>;

/// A collection being written. It appears only when it is complete: [`CodeWriter::commit`].
pub(crate) struct CodeWriter {
    path: PathBuf,
    scheme: SchemeId,
    kind: SketchKind,
    scratch: PathBuf,
    out: FingerprintOutput,
}

enum FingerprintOutput {
    /// Lines or raw numbers, or a file that the first sketch starts, because it shows whether there are ids.
    Plain(AtomicFile, CodeFormat),
    Fingerprints(FingerprintWriter<AtomicFile>, WrittenIdKind),
    Table(Box<CodeTableWriter<AtomicFile>>, WrittenIdKind),
    Archive(AtomicFile, Box<ArchiveSorter>),
    /// State between two of the others.
    Broken,
}

/// Kind of a file's ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WrittenIdKind {
    None,
    Numbers,
    Texts,
}

impl WrittenIdKind {
    fn of(name: FingerprintName<'_>) -> Self {
        match name {
            FingerprintName::Fingerprint(_) => Self::None,
            FingerprintName::Number(_) => Self::Numbers,
            FingerprintName::Text(_) => Self::Texts,
        }
    }
}

struct WrittenLine<'a> {
    id: Option<ListedId<'a>>,
    column: &'static str,
    digits: Option<String>,
}

impl Serialize for WrittenLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut line = serializer.serialize_map(None)?;
        if let Some(id) = &self.id {
            line.serialize_entry("id", id)?;
        }
        line.serialize_entry(self.column, &self.digits)?;
        line.end()
    }
}

/// Writes a sketch in the form that `lookalike fingerprint` prints; null for a text without features.
pub(crate) fn write_sketch(
    out: &mut dyn Write,
    name: FingerprintName<'_>,
    kind: SketchKind,
    sketch: Option<&[u64]>,
) -> io::Result<()> {
    let has_id = WrittenIdKind::of(name) != WrittenIdKind::None;
    let line = WrittenLine {
        id: has_id.then(|| name.into()),
        column: kind.column(),
        digits: sketch.map(|sketch| kind.digits(sketch)),
    };
    write_line(out, &line)
}

/// Appends a sketch to a fingerprint file.
fn write_words(
    file: &mut FingerprintWriter<AtomicFile>,
    name: FingerprintName<'_>,
    kind: SketchKind,
    sketch: &[u64],
) -> Result<(), FileError> {
    match name {
        FingerprintName::Number(number) if kind == SketchKind::Fingerprints(64) => {
            file.push(sketch[0], number)
        }
        FingerprintName::Fingerprint(_) => file.push_sketch(sketch, ""),
        name => file.push_sketch(sketch, &name.text()),
    }
}

/// For `map_err`: wraps the error of a fingerprint file that cannot be written.
fn unwritable(path: &Path) -> impl Fn(io::Error) -> BatchError + '_ {
    move |cause| BatchError::File {
        path: path.to_owned(),
        remedy: match cause.kind() {
            // A pipe or a device, or a format that this build cannot write.
            io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput => "choose another file",
            _ => "choose another file, or free some space",
        },
        cause,
    }
}

impl CodeWriter {
    /// Starts a file in the format that its name implies, for sketches of one kind.
    ///
    /// # Errors
    /// [`BatchError`] if the name implies no format that holds such sketches, or if the file cannot be created.
    pub(crate) fn create(
        path: &Path,
        begin: AtomicFileCreator,
        scheme: Option<SchemeId>,
        kind: SketchKind,
        scratch: ArchiveScratch<'_>,
    ) -> Result<Self, BatchError> {
        let holds = |format: &CodeFormat| match *format {
            CodeFormat::Archive => kind == SketchKind::Fingerprints(64),
            CodeFormat::Raw(raw) => kind == raw,
            CodeFormat::JsonLines | CodeFormat::Fingerprints | CodeFormat::Parquet => true,
        };
        let Some((format, packing)) = CodeFormat::of(path).filter(|(format, _)| holds(format))
        else {
            let (path, ending) = (path.to_owned(), kind.raw_ending());
            return Err(FingerprintSettingsError::NoFormat { path, kind, ending }.into());
        };
        // Created before the sketches are made, so that an unwritable path is reported at once.
        let file = begin(path, packing).map_err(unwritable(path))?;
        let out = match format {
            CodeFormat::Archive => {
                let made = ArchiveSorter::new(scratch);
                FingerprintOutput::Archive(
                    file,
                    Box::new(made.map_err(BatchError::temporary(scratch.folder))?),
                )
            }
            format => FingerprintOutput::Plain(file, format),
        };
        let mut writer = Self {
            path: path.to_owned(),
            // Files store an unknown scheme as 0, which `known` turns back.
            scheme: scheme.unwrap_or(SchemeId(0)),
            kind,
            scratch: scratch.folder.to_owned(),
            out,
        };
        if matches!(kind, SketchKind::Places(_)) {
            // Such sketches always have ids, of which the header of an empty file tells, too.
            writer.begin(WrittenIdKind::Texts)?;
        }
        Ok(writer)
    }

    /// Adds a sketch, or `None` for a text without features, which only lines and tables store.
    ///
    /// # Errors
    /// [`BatchError`] if the file cannot be written, or if earlier ids are of another kind.
    pub(crate) fn push(
        &mut self,
        name: FingerprintName<'_>,
        sketch: Option<&[u64]>,
    ) -> Result<(), BatchError> {
        let (ids, kind) = (WrittenIdKind::of(name), self.kind);
        // A text without features starts the file too: its id tells as much as any other.
        self.begin(ids)?;
        let kept = match &self.out {
            FingerprintOutput::Fingerprints(_, kept) | FingerprintOutput::Table(_, kept) => *kept,
            _ => ids,
        };
        // Numbers can be written as texts, but it is a mistake if only some fingerprints have ids.
        if kept != ids && (kept == WrittenIdKind::None || ids == WrittenIdKind::None) {
            return Err(FingerprintSettingsError::MixedIds(self.path.clone()).into());
        }
        let written = match (&mut self.out, sketch) {
            (FingerprintOutput::Plain(file, CodeFormat::JsonLines), _) => {
                write_sketch(file, name, kind, sketch).map_err(FileError::from)
            }
            (FingerprintOutput::Table(table, _), _) => {
                let id = (ids != WrittenIdKind::None).then(|| name.text());
                let digits;
                let cell = match (sketch, kind) {
                    (None, _) => CodeCell::Null,
                    (Some(sketch), SketchKind::Fingerprints(32 | 64)) => {
                        CodeCell::Number(sketch[0])
                    }
                    (Some(sketch), _) => {
                        digits = kind.digits(sketch);
                        CodeCell::Text(&digits)
                    }
                };
                table.push(id.as_deref(), cell).map_err(FileError::from)
            }
            // The summary counts these texts, so leaving them out is not silent.
            (_, None) => Ok(()),
            (FingerprintOutput::Plain(file, CodeFormat::Raw(_)), Some(sketch)) => {
                let mut bytes = Vec::new();
                kind.extend_raw(sketch, &mut bytes);
                file.write_all(&bytes).map_err(FileError::from)
            }
            (FingerprintOutput::Fingerprints(file, _), Some(sketch)) => {
                write_words(file, name, kind, sketch)
            }
            (FingerprintOutput::Archive(_, ascending), Some(sketch)) => {
                // Archives are sorted in temporary files, so an error here is one of those, not of the output.
                let pushed = ascending.push(sketch[0]);
                return pushed.map_err(BatchError::temporary(&self.scratch));
            }
            (FingerprintOutput::Plain(..) | FingerprintOutput::Broken, Some(_)) => Ok(()),
        };
        written.map_err(|error| self.failed(error))
    }

    /// Writes the header of a file that waits for its first sketch.
    fn begin(&mut self, ids: WrittenIdKind) -> Result<(), BatchError> {
        use CodeFormat::{Fingerprints, Parquet};
        if !matches!(
            self.out,
            FingerprintOutput::Plain(_, Fingerprints | Parquet)
        ) {
            return Ok(());
        }
        let (scheme, kind) = (self.scheme, self.kind);
        // Take the output out and put it back: if a header cannot be written, the broken state remains and the file never gets its name.
        self.out = match std::mem::replace(&mut self.out, FingerprintOutput::Broken) {
            FingerprintOutput::Plain(file, Parquet) => {
                let with_ids = ids != WrittenIdKind::None;
                let column = match kind {
                    SketchKind::Fingerprints(32) => CodeColumn::ShortNumbers,
                    SketchKind::Fingerprints(64) => CodeColumn::Numbers,
                    // Parquet has no wider numbers.
                    _ => CodeColumn::Texts(kind.column()),
                };
                let table = CodeTableWriter::new(file, with_ids, column);
                let table = table.map_err(|error| self.failed(error.into()))?;
                FingerprintOutput::Table(Box::new(table), ids)
            }
            FingerprintOutput::Plain(file, _) => {
                let begun = match (ids, kind) {
                    // Only fingerprints of 64 bits can have numbers as ids.
                    (WrittenIdKind::Numbers, SketchKind::Fingerprints(64)) => {
                        FingerprintWriter::with_ids(file, scheme.0)
                    }
                    _ => {
                        let with_texts = ids != WrittenIdKind::None;
                        FingerprintWriter::new(file, scheme.0, kind.in_header(), with_texts)
                    }
                };
                FingerprintOutput::Fingerprints(begun.map_err(|error| self.failed(error))?, ids)
            }
            other => other,
        };
        Ok(())
    }

    fn failed(&self, error: FileError) -> BatchError {
        unwritable(&self.path)(system_error(error))
    }

    /// Finishes the file and renames it to its final name.
    ///
    /// # Errors
    /// [`BatchError`] if the file cannot be written.
    pub(crate) fn commit(mut self) -> Result<(), BatchError> {
        // A collection without fingerprints has a header too.
        self.begin(WrittenIdKind::None)?;
        let path = self.path.clone();
        let failed = unwritable(&path);
        let file = match std::mem::replace(&mut self.out, FingerprintOutput::Broken) {
            FingerprintOutput::Plain(file, _) => file,
            FingerprintOutput::Fingerprints(file, _) => {
                file.finish().map_err(|error| self.failed(error))?
            }
            FingerprintOutput::Table(table, _) => table.finish().map_err(&failed)?,
            FingerprintOutput::Archive(file, ascending) => {
                ascending.write(file, self.scheme, &|error| self.failed(error))?
            }
            // The caller went on after an error of `push`, so fingerprints are missing.
            FingerprintOutput::Broken => {
                return Err(failed(io::Error::other("an earlier part was not written")));
            }
        };
        file.commit().map_err(failed)
    }
}

lookalike::job! {
    /// Job of `lookalike fingerprint --import`: merges collections of fingerprints into one collection in any format.
    #[derive(Debug)]
    pub struct CodeImport<'a> {
        /// Creates a job over sources, read in this order. Formats that need sorting use `scratch`.
        new(inputs: &'a [FingerprintSource], scratch: ArchiveScratch<'a>);
        /// Sets the file to write. By default there is none, and the fingerprints are written as JSON Lines to the writer given to
        /// [`CodeImport::run`].
        output: Option<&'a Path>,
        /// Sets the function that creates that file. Default: [`AtomicFile::create`].
        begin: AtomicFileCreator = AtomicFile::create,
        /// Sets the policy for lines that cannot be read.
        losses: LossPolicy,
        /// Sets the observer of progress.
        observer: &'a dyn JobObserver = &NoProgress,
    }
}

/// Summary of an import.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ImportSummary {
    /// Counts of each input.
    pub inputs: Vec<CodesSummary>,
    /// Number of fingerprints written.
    pub fingerprints: u64,
    /// Id of the scheme, if an input names one.
    pub scheme_id: Option<String>,
}

impl<'a> CodeImport<'a> {
    /// Bytes of fingerprints and ids in memory at once.
    const CHUNK_BYTES: u64 = 4 << 20;

    /// Reads everything and writes it to the output file or, without one, as JSON Lines to `standard`.
    ///
    /// # Errors
    /// [`BatchError`] if an input cannot be read, if schemes differ, if only some inputs have ids, or if the output cannot be written.
    pub fn run(&self, standard: &mut dyn Write) -> Result<ImportSummary, BatchError> {
        let files = CodeFiles::open(self.inputs, self.losses.is_strict())?;
        with_word!(files.word_bits(), W => self.copy::<W>(files, standard))
    }

    fn copy<W: Word>(
        &self,
        mut files: CodeFiles,
        standard: &mut dyn Write,
    ) -> Result<ImportSummary, BatchError> {
        let scheme = files.scheme().map(|(_, scheme)| scheme);
        let kind = SketchKind::Fingerprints(W::BITS);
        let total = files.total_bytes().unwrap_or(0);
        self.observer.stage(JobStage::Scan, total);
        let mut out = self
            .output
            .map(|path| CodeWriter::create(path, self.begin, scheme, kind, self.scratch))
            .transpose()?;
        let mut summary = ImportSummary {
            inputs: Vec::new(),
            fingerprints: 0,
            scheme_id: scheme.map(|scheme| scheme.to_string()),
        };
        let copy = |_: &CodeFiles, codes: &mut FingerprintFile<W>| {
            for (at, &code) in codes.codes.iter().enumerate() {
                let name = codes.ids.name(at, code);
                let words = &words_of(code)[..kind.words()];
                match &mut out {
                    Some(out) => out.push(name, Some(words))?,
                    None => write_sketch(standard, name, kind, Some(words))
                        .map_err(BatchError::result(Path::new(OUTPUT)))?,
                }
            }
            summary.fingerprints += codes.codes.len() as u64;
            Ok(())
        };
        files.for_each_chunk(Self::CHUNK_BYTES, self.observer, copy)?;
        summary.inputs = files.summaries();
        // Check before the file gets its name: with too many losses there must be no result.
        super::check_losses(self.losses, &summary.inputs)?;
        out.map_or(Ok(()), CodeWriter::commit)?;
        Ok(summary)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Counts the open files in a folder whenever a job reports progress.
    struct OpenFiles<'a> {
        folder: &'a Path,
        most: AtomicUsize,
    }

    impl OpenFiles<'_> {
        fn count(&self) {
            let links = fs::read_dir("/proc/self/fd")
                .expect("Linux has it")
                .flatten();
            let paths = links.filter_map(|link| fs::read_link(link.path()).ok());
            let open = paths.filter(|path| path.starts_with(self.folder));
            self.most.fetch_max(open.count(), Ordering::Relaxed);
        }
    }

    impl JobObserver for OpenFiles<'_> {
        fn stage(&self, _: JobStage, _: u64) {
            self.count();
        }

        fn progress(&self, _: u64) {
            self.count();
        }
    }

    #[test]
    fn a_file_that_could_not_be_begun_was_committed_without_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lkfp");
        let scratch = ArchiveScratch {
            folder: folder.path(),
            memory: 1 << 20,
        };
        let kind = SketchKind::Fingerprints(64);
        let mut writer =
            CodeWriter::create(&path, AtomicFile::create, None, kind, scratch).unwrap();
        // As `begin` leaves it if the header cannot be written.
        writer.out = FingerprintOutput::Broken;
        let failed = writer.commit().unwrap_err().to_string();
        assert!(failed.contains("a.lkfp"), "{failed}");
        assert!(!path.exists());
    }

    #[test]
    fn an_import_had_all_its_files_open_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = |number: u64| {
            let path = folder.path().join(format!("{number}.u64"));
            fs::write(&path, number.to_le_bytes()).unwrap();
            FingerprintSource::from(path)
        };
        let inputs: Vec<FingerprintSource> = (0..40).map(file).collect();
        let observer = OpenFiles {
            folder: folder.path(),
            most: AtomicUsize::new(0),
        };
        let scratch = ArchiveScratch {
            folder: folder.path(),
            memory: 1 << 30,
        };
        let import = CodeImport::new(&inputs, scratch).observer(&observer);
        let mut out = Vec::new();
        let summary = import.run(&mut out).unwrap();
        assert_eq!(summary.fingerprints, 40);
        assert_eq!(summary.inputs.len(), 40);
        assert!(observer.most.into_inner() <= 2);
    }
}
