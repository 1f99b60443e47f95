//! Files that are there whole or not at all.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, DirEntry, File};
#[cfg(feature = "parquet")]
use std::io::Seek;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use tempfile::{Builder, TempPath};

use crate::format::Compression;
use crate::frames::{FrameFormat, FrameWriter};
use crate::source::Source;
#[cfg(feature = "parquet")]
use crate::table::schema_inference::InferredColumns;
#[cfg(feature = "parquet")]
use crate::table::writer;
use crate::write_behind::WriteBehindFile;

const BUFFER_BYTES: usize = 1 << 20;

/// Infix between a final name and the random end of a temporary one.
const TEMPORARY: &str = ".tmp-";

/// Letters and digits at that end.
const RANDOM_BYTES: usize = 6;

/// Of what is read again at once.
#[cfg(feature = "parquet")]
const SPOOL_LEVEL: i32 = 1;

/// Held for reading while a temporary file is begun, and while results change places.
static BEGINNING: RwLock<()> = RwLock::new(());

/// A file in the making. It is written beside its final place as `NAME.tmp-XXXXXX` and gets its
/// name in [`AtomicFile::commit`]; dropped before, it vanishes.
pub struct AtomicFile {
    encoder: FileEncoder,
    temporary: TempPath,
    path: PathBuf,
}

enum FileEncoder {
    Stream(CompressedStream<BufWriter<WriteBehindFile>>),
    #[cfg(feature = "parquet")]
    Table(PendingTable),
}

/// A stream that compresses what is written to it as [`AtomicFile::create`] does: the same bytes give the same stream. It is complete
/// after [`CompressedStream::finish`].
pub struct CompressedStream<W>(StreamEncoder<W>);

enum StreamEncoder<W> {
    Plain(W),
    Frames(FrameWriter<W>),
}

/// Lines that wait for all of them to be known before they become a table.
#[cfg(feature = "parquet")]
struct PendingTable {
    /// Without a name, compressed fast.
    lines: zstd::stream::write::Encoder<'static, BufWriter<File>>,
    columns: InferredColumns,
    file: File,
}

/// The format of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputFormat {
    /// A JSON object a line.
    #[default]
    JsonLines,
    /// Parquet: the columns are the fields of the lines.
    Parquet,
}

impl std::fmt::Display for OutputFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.suffix()[1..])
    }
}

impl OutputFormat {
    /// The default for results of these sources: Parquet when all of them are tables whose
    /// columns have types, else lines.
    pub fn natural(sources: &[Source]) -> OutputFormat {
        match !sources.is_empty() && sources.iter().all(Source::is_typed_table) {
            true => OutputFormat::Parquet,
            false => OutputFormat::JsonLines,
        }
    }

    /// The suffix of such files: `.jsonl`, `.parquet`.
    pub fn suffix(self) -> &'static str {
        match self {
            OutputFormat::JsonLines => ".jsonl",
            OutputFormat::Parquet => ".parquet",
        }
    }
}

impl fmt::Debug for AtomicFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("AtomicFile");
        shown.field("path", &self.path).finish_non_exhaustive()
    }
}

impl AtomicFile {
    /// The path at which it is written: whoever ends the process removes it.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Begins the file that will be `path`, whose directory must exist. What is written passes
    /// through the compression; the same bytes always compress to the same file.
    ///
    /// # Errors
    /// When the directory cannot be written to.
    pub fn create(path: &Path, compression: Compression) -> io::Result<AtomicFile> {
        AtomicFile::create_on(path, compression, 1, 0)
    }

    /// As [`AtomicFile::create`]; so many threads compress, beside the caller's, or as many of them as `memory` bytes are enough for. The
    /// file is the same for any number.
    ///
    /// # Errors
    /// See [`AtomicFile::create`].
    pub fn create_on(
        path: &Path,
        compression: Compression,
        threads: usize,
        memory: u64,
    ) -> io::Result<AtomicFile> {
        let (file, temporary) = temporary_beside(path)?.into_parts();
        let file = BufWriter::with_capacity(BUFFER_BYTES, WriteBehindFile::new(file));
        // By now the temporary file exists; dropping it after an error removes it.
        let stream = CompressedStream::on_threads(file, compression, threads, memory)?;
        Ok(AtomicFile {
            encoder: FileEncoder::Stream(stream),
            temporary,
            path: path.to_owned(),
        })
    }

    /// Begins the file of lines of JSON, one object each, in the format given: what is written are lines in any case,
    /// and a table is made of them in [`AtomicFile::commit`], in some 40 MiB of memory and four times the longest line.
    /// `example` is a line whose fields the table has even where no line does, with values of their types.
    ///
    /// Columns have the types of the values, in the order of first appearance: booleans, integers of 64 bits, floats, text, lists, structs;
    /// what is none of these throughout is the JSON text of the values. The same lines give the same bytes.
    ///
    /// # Errors
    /// When the directory cannot be written to; [`io::ErrorKind::Unsupported`] for Parquet without the feature `parquet`.
    pub fn lines(path: &Path, format: OutputFormat, example: &str) -> io::Result<AtomicFile> {
        match format {
            OutputFormat::JsonLines => AtomicFile::create(path, Compression::None),
            OutputFormat::Parquet => AtomicFile::table(path, example),
        }
    }

    #[cfg(feature = "parquet")]
    fn table(path: &Path, example: &str) -> io::Result<AtomicFile> {
        let (file, temporary) = temporary_beside(path)?.into_parts();
        let mut columns = InferredColumns::default();
        if !example.is_empty() {
            // First, so that its fields have their columns, and their places, in any case.
            columns.learn(example)?;
        }
        // On the disk of the result, where there is room for it, rather than in a /tmp that may be memory. It
        // has no name: nothing is left of it after a kill.
        let lines = tempfile::tempfile_in(parent_directory(path))?;
        let lines = BufWriter::with_capacity(BUFFER_BYTES, lines);
        Ok(AtomicFile {
            encoder: FileEncoder::Table(PendingTable {
                lines: zstd::stream::write::Encoder::new(lines, SPOOL_LEVEL)?,
                columns,
                file,
            }),
            temporary,
            path: path.to_owned(),
        })
    }

    #[cfg(not(feature = "parquet"))]
    fn table(_: &Path, _: &str) -> io::Result<AtomicFile> {
        let reason =
            "this build has no Parquet, which needs the Cargo feature `parquet` (or `full`)";
        Err(io::Error::new(io::ErrorKind::Unsupported, reason))
    }

    /// As [`AtomicFile::commit`] for several; tables get the columns of all of them.
    ///
    /// # Errors
    /// See [`AtomicFile::commit`]; the files before the one that fails have their names.
    pub fn commit_together(files: Vec<AtomicFile>) -> io::Result<()> {
        #[cfg(feature = "parquet")]
        let files = alike(files)?;
        files.into_iter().try_for_each(AtomicFile::commit)
    }

    /// Completes the file, forces it to the disk and gives it its name, replacing any other.
    ///
    /// # Errors
    /// When the system fails; then nothing has changed under the final name.
    pub fn commit(self) -> io::Result<()> {
        let file = self.encoder.finish()?;
        // The bytes before the name: after a power cut the name never stands for a part of them.
        file.sync_all()?;
        // The file stays open and locked until it has its name: who clears leftovers would take it for one. `persist` is rename(2), which replaces the old file at once; readers see the old bytes or the new
        // ones.
        self.temporary
            .persist(&self.path)
            .map_err(|error| error.error)?;
        drop(file);
        // The name itself is data of the directory.
        sync_directory(parent_directory(&self.path))
    }
}

impl<W: Write> CompressedStream<W> {
    /// Begins a stream on `out`.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] for bzip2 and xz, which are only read.
    pub fn new(out: W, compression: Compression) -> io::Result<Self> {
        Self::on_threads(out, compression, 1, 0)
    }

    fn on_threads(
        out: W,
        compression: Compression,
        threads: usize,
        memory: u64,
    ) -> io::Result<Self> {
        let format = match compression {
            Compression::None => return Ok(Self(StreamEncoder::Plain(out))),
            Compression::Gzip => FrameFormat::Gzip,
            Compression::Zstd => FrameFormat::Zstd,
            Compression::Bzip2 | Compression::Xz => {
                let reason = "bzip2 and xz are read, not written";
                return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
            }
        };
        // Frames are cut by content length alone, so the number of threads does not show in the output.
        let threads = format.threads_within(memory).min(threads);
        Ok(Self(StreamEncoder::Frames(FrameWriter::new(
            out, format, threads,
        ))))
    }

    /// Writes what is left and returns `out`, which is not flushed.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn finish(self) -> io::Result<W> {
        match self.0 {
            StreamEncoder::Plain(out) => Ok(out),
            StreamEncoder::Frames(frames) => frames.finish(),
        }
    }
}

impl<W: Write> Write for CompressedStream<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            StreamEncoder::Plain(out) => out.write(bytes),
            StreamEncoder::Frames(frames) => frames.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            StreamEncoder::Plain(out) => out.flush(),
            StreamEncoder::Frames(frames) => frames.flush(),
        }
    }
}

impl FileEncoder {
    fn finish(self) -> io::Result<File> {
        let buffered = match self {
            FileEncoder::Stream(stream) => stream.finish()?,
            #[cfg(feature = "parquet")]
            FileEncoder::Table(table) => return table.finish(),
        };
        into_file(buffered)
    }
}

fn into_file(buffered: BufWriter<WriteBehindFile>) -> io::Result<File> {
    let file = buffered.into_inner();
    file.map_err(io::IntoInnerError::into_error)?.into_file()
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.encoder {
            FileEncoder::Stream(writer) => writer.write(bytes),
            #[cfg(feature = "parquet")]
            FileEncoder::Table(table) => table.lines.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.encoder {
            FileEncoder::Stream(writer) => writer.flush(),
            #[cfg(feature = "parquet")]
            FileEncoder::Table(table) => table.lines.flush(),
        }
    }
}

#[cfg(feature = "parquet")]
impl PendingTable {
    /// The lines, from the first one on.
    fn into_lines(self) -> io::Result<(File, InferredColumns, File)> {
        let lines = self.lines.finish()?.into_inner();
        let mut lines = lines.map_err(io::IntoInnerError::into_error)?;
        lines.rewind()?;
        Ok((lines, self.columns, self.file))
    }

    fn finish(self) -> io::Result<File> {
        let (mut lines, mut columns, file) = self.into_lines()?;
        writer::learn(&mut columns, &mut lines)?;
        lines.rewind()?;
        write_table(&mut columns, &mut lines, file)
    }
}

/// Writes lines, from the first one on, whose columns were learned.
#[cfg(feature = "parquet")]
fn write_table(columns: &mut InferredColumns, lines: &mut File, file: File) -> io::Result<File> {
    // Types widen with every line; only after the last one is it known what each column is.
    columns.settle();
    let out = BufWriter::with_capacity(BUFFER_BYTES, WriteBehindFile::new(file));
    into_file(writer::write_parquet(columns, lines, out)?)
}

/// Completes the tables among the files, all with the columns of all.
#[cfg(feature = "parquet")]
fn alike(files: Vec<AtomicFile>) -> io::Result<Vec<AtomicFile>> {
    let mut columns = InferredColumns::default();
    let mut waiting = Vec::new();
    let mut done = Vec::new();
    for file in files {
        let AtomicFile {
            encoder,
            temporary,
            path,
        } = file;
        match encoder {
            FileEncoder::Table(table) => {
                let (mut lines, _, out) = table.into_lines()?;
                writer::learn(&mut columns, &mut lines)?;
                lines.rewind()?;
                waiting.push((lines, out, temporary, path));
            }
            encoder => done.push(AtomicFile {
                encoder,
                temporary,
                path,
            }),
        }
    }
    for (mut lines, out, temporary, path) in waiting {
        let file = write_table(&mut columns, &mut lines, out)?;
        done.push(AtomicFile {
            // Complete by now: `commit` has nothing to do but to sync and to rename it.
            encoder: FileEncoder::Stream(CompressedStream(StreamEncoder::Plain(BufWriter::new(
                WriteBehindFile::new(file),
            )))),
            temporary,
            path,
        });
    }
    Ok(done)
}

/// Removes temporary files that a killed job left in a directory that the caller has for itself, of the files whose names `is_ours`
/// knows; returns how many. One that gets its name or vanishes meanwhile is no leftover.
///
/// # Errors
/// When the directory cannot be listed or a file not be removed.
pub fn remove_leftovers(directory: &Path, is_ours: impl Fn(&OsStr) -> bool) -> io::Result<usize> {
    remove_temporary(directory, |_, name| is_ours(name).then_some(()))
}

/// Removes temporary files that killed jobs left of the file `path`; returns how many. What a running process writes stays, and so does
/// everything where the file system has no locks to tell it by.
///
/// # Errors
/// See [`remove_leftovers`].
pub fn remove_leftovers_of(path: &Path) -> io::Result<usize> {
    remove_temporary(parent_directory(path), |entry, name| {
        path.file_name().filter(|ours| shortened(ours) == name)?;
        let file = File::options().write(true).open(entry.path()).ok()?;
        // Held until the file is removed, so that nobody begins to write it meanwhile.
        file.try_lock().ok().map(|()| file)
    })
}

/// Removes the temporary files of a directory for which `claim` gives something; it gets the name of the file they would have become.
fn remove_temporary<T>(
    directory: &Path,
    claim: impl Fn(&DirEntry, &OsStr) -> Option<T>,
) -> io::Result<usize> {
    let mut removed = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // Not links: what they lead to was not made here.
        if let Some(name) = final_name(&entry.file_name())
            && entry.file_type()?.is_file()
            && let Some(_claimed) = claim(&entry, name)
        {
            match fs::remove_file(entry.path()) {
                Ok(()) => removed += 1,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(removed)
}

/// No [`AtomicFile`] is begun in this process from now on: whoever tries waits until the process has ended. For a process that
/// ends while its threads are at work, and would leave behind what they begin after it looked for leftovers.
pub fn stop_new_files() {
    // The lock is never given back. Taking it waits for those who are just making a file, so the list of
    // leftovers that is made next is complete.
    std::mem::forget(BEGINNING.write().unwrap_or_else(PoisonError::into_inner));
}

/// Runs `work` whole or not at all: [`stop_new_files`] waits for it, and keeps it from beginning. It must not begin
/// an [`AtomicFile`] itself.
pub fn uninterrupted<T>(work: impl FnOnce() -> T) -> T {
    let _beginning = BEGINNING.read().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// As much of a name as leaves room for what temporary files have behind it.
fn shortened(name: &OsStr) -> &OsStr {
    /// Bytes of a name that file systems take.
    const LONGEST_NAME: usize = 255;
    let bytes = name.as_bytes();
    let mut end = bytes
        .len()
        .min(LONGEST_NAME - TEMPORARY.len() - RANDOM_BYTES);
    // Some file systems take whole characters only.
    while end < bytes.len() && bytes[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    OsStr::from_bytes(&bytes[..end])
}

/// Returns `NAME`, [`shortened`], of `NAME.tmp-` with six letters or digits behind it.
fn final_name(temporary: &OsStr) -> Option<&OsStr> {
    let (rest, end) = temporary.as_bytes().split_last_chunk::<RANDOM_BYTES>()?;
    let is_random = end.iter().all(u8::is_ascii_alphanumeric);
    let name = rest.strip_suffix(TEMPORARY.as_bytes())?;
    is_random.then(|| OsStr::from_bytes(name))
}

/// A new file in the directory of `path`, open to whom the umask allows, and locked while it is open.
pub(crate) fn temporary_beside(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a file name"))?;
    // A file in its place would reach nobody, and `/dev/null` is missed by every program.
    let is_special = fs::symlink_metadata(path)
        .is_ok_and(|found| !(found.is_file() || found.is_dir() || found.is_symlink()));
    if is_special {
        let what = "a pipe or a device, which no file can replace";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let mut prefix = shortened(name).to_owned();
    prefix.push(TEMPORARY);
    let mut builder = Builder::new();
    builder.prefix(&prefix).rand_bytes(RANDOM_BYTES);
    // The default of `tempfile` is 0600, which the final file would keep: results could be read by nobody
    // else.
    builder.permissions(fs::Permissions::from_mode(0o666));
    // Not while a process ends: it could not remove this file any more.
    let _beginning = BEGINNING.read().unwrap_or_else(PoisonError::into_inner);
    loop {
        let temporary = builder.tempfile_in(parent_directory(path))?;
        // Where there are no locks, `remove_leftovers_of` can take none either, and removes nothing.
        let is_locked = temporary.as_file().lock().is_ok();
        // Between the two steps it may have taken the file for a leftover.
        if !is_locked || temporary.as_file().metadata()?.nlink() > 0 {
            return Ok(temporary);
        }
    }
}

/// The directory that holds a path: `.` for a bare name.
pub fn parent_directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes all that was written to the file system of a directory survive a power cut. For many files: a sync of each takes longer than
/// copying them.
///
/// # Errors
/// When the system fails.
pub fn sync_file_system(directory: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(File::open(directory)?)?;
    #[cfg(not(target_os = "linux"))]
    {
        let _ = directory;
        rustix::fs::sync();
    }
    Ok(())
}

/// Makes new names in a directory survive a power cut.
///
/// # Errors
/// When the system fails.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
