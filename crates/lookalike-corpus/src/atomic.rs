//! Files that appear complete or not at all.

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
use crate::table::typed;
use crate::write_behind::WriteBehindFile;

const BUFFER_BYTES: usize = 1 << 20;

/// Infix between the final name and the random suffix of a temporary file.
const TEMPORARY: &str = ".tmp-";

/// Number of letters and digits in the random suffix.
const RANDOM_BYTES: usize = 6;

/// Compression level of data that is soon read again.
#[cfg(feature = "parquet")]
const SPOOL_LEVEL: i32 = 1;

/// Locked for reading while a temporary file is created, and while results change places.
static CREATION_LOCK: RwLock<()> = RwLock::new(());

/// A file that is being written. It is written next to its final place as `NAME.tmp-XXXXXX` and gets its name in [`AtomicFile::commit`]. If dropped
/// before that, it is removed.
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

/// A stream that compresses like [`AtomicFile::create`]: the same bytes give the same stream. It is complete after [`CompressedStream::finish`].
pub struct CompressedStream<W>(StreamEncoder<W>);

lookalike::opaque_debug! {
    [W] CompressedStream [W];
}

enum StreamEncoder<W> {
    Plain(W),
    Frames(FrameWriter<W>),
}

/// Lines that are collected until all of them are known and can become a table.
#[cfg(feature = "parquet")]
struct PendingTable {
    /// A nameless file, lightly compressed.
    lines: zstd::stream::write::Encoder<'static, BufWriter<File>>,
    example: String,
    file: File,
}

/// The format of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputFormat {
    /// One JSON object per line.
    #[default]
    JsonLines,
    /// Parquet, whose columns are the fields of the lines.
    Parquet,
}

impl std::fmt::Display for OutputFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.suffix()[1..])
    }
}

impl OutputFormat {
    /// Returns the default format for results of these sources: Parquet if all of them are tables with typed columns, otherwise lines.
    pub fn natural(sources: &[Source]) -> OutputFormat {
        match !sources.is_empty() && sources.iter().all(Source::is_typed_table) {
            true => OutputFormat::Parquet,
            false => OutputFormat::JsonLines,
        }
    }

    /// Returns the suffix of files in this format: `.jsonl` or `.parquet`.
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
    /// Returns the path of the temporary file, for code that ends the process and removes it first.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Creates the temporary file that will become `path`, whose directory must exist. Written data is compressed; the same bytes always give the
    /// same file.
    ///
    /// # Errors
    /// Fails if the directory cannot be written to.
    pub fn create(path: &Path, compression: Compression) -> io::Result<AtomicFile> {
        AtomicFile::create_on(path, compression, 1, 0)
    }

    /// Works like [`AtomicFile::create`], but compresses on up to `threads` additional threads, as many as `memory` bytes suffice for. The file is
    /// the same for any number of threads.
    ///
    /// # Errors
    /// See [`AtomicFile::create`].
    pub fn create_on(
        path: &Path,
        compression: Compression,
        threads: usize,
        memory: u64,
    ) -> io::Result<AtomicFile> {
        let (file, temporary) = temporary_sibling(path)?.into_parts();
        let file = BufWriter::with_capacity(BUFFER_BYTES, WriteBehindFile::new(file));
        // The temporary file already exists; dropping it after an error removes it.
        let stream = CompressedStream::with_threads(file, compression, threads, memory)?;
        Ok(AtomicFile {
            encoder: FileEncoder::Stream(stream),
            temporary,
            path: path.to_owned(),
        })
    }

    /// Creates a file of JSON lines, one object each, in the given format. The caller always writes lines; [`AtomicFile::commit`] converts them to a
    /// table if needed, in some 40 MiB of memory plus four times the longest line. `example` is a line with fields that the table gets even if no
    /// line has them; its values determine their types.
    ///
    /// Columns come in order of first appearance and have the types of their values: booleans, 64-bit integers, floats, text, lists, structs. A
    /// column whose values have no such common type holds their JSON text. The same lines give the same bytes.
    ///
    /// # Errors
    /// Fails if the directory cannot be written to, and with [`io::ErrorKind::Unsupported`] for Parquet without the feature `parquet`.
    pub fn lines(path: &Path, format: OutputFormat, example: &str) -> io::Result<AtomicFile> {
        match format {
            OutputFormat::JsonLines => AtomicFile::create(path, Compression::None),
            OutputFormat::Parquet => AtomicFile::table(path, example),
        }
    }

    #[cfg(feature = "parquet")]
    fn table(path: &Path, example: &str) -> io::Result<AtomicFile> {
        let (file, temporary) = temporary_sibling(path)?.into_parts();
        // On the disk of the result, which has room for it, rather than in a /tmp that may be in memory. The file has no name, so nothing remains of
        // it after a kill.
        let lines = tempfile::tempfile_in(parent_directory(path))?;
        let lines = BufWriter::with_capacity(BUFFER_BYTES, lines);
        Ok(AtomicFile {
            encoder: FileEncoder::Table(PendingTable {
                lines: zstd::stream::write::Encoder::new(lines, SPOOL_LEVEL)?,
                example: example.to_owned(),
                file,
            }),
            temporary,
            path: path.to_owned(),
        })
    }

    #[cfg(not(feature = "parquet"))]
    fn table(_: &Path, _: &str) -> io::Result<AtomicFile> {
        typed::unsupported()
    }

    /// Commits several files like [`AtomicFile::commit`]. Each table gets the columns of all of them.
    ///
    /// # Errors
    /// See [`AtomicFile::commit`]. Files before the one that fails are already committed.
    pub fn commit_all(files: Vec<AtomicFile>) -> io::Result<()> {
        #[cfg(feature = "parquet")]
        let files = complete_tables(files)?;
        files.into_iter().try_for_each(AtomicFile::publish)
    }

    /// Completes the file, syncs it to disk and renames it to its final name, replacing any existing file.
    ///
    /// # Errors
    /// Returns errors of the system. The file with the final name is then unchanged, unless only the sync of its directory failed.
    pub fn commit(self) -> io::Result<()> {
        AtomicFile::commit_all(vec![self])
    }

    /// Commits a file that is no longer a pending table.
    fn publish(self) -> io::Result<()> {
        let file = match self.encoder {
            FileEncoder::Stream(stream) => stream.finish()?.into_inner(),
            #[cfg(feature = "parquet")]
            FileEncoder::Table(_) => unreachable!("all tables are complete"),
        };
        let file = file.map_err(io::IntoInnerError::into_error)?.into_file();
        // Sync the contents before the rename: after a power cut, the name never stands for a partial file.
        file.sync_all()?;
        // The file stays open and locked until it has its name, otherwise another process that removes leftovers would take it for one. `persist` is
        // rename(2), which replaces the old file atomically; readers see the old bytes or the new ones.
        self.temporary
            .persist(&self.path)
            .map_err(|error| error.error)?;
        drop(file);
        // The name itself is part of the directory's data.
        sync_directory(parent_directory(&self.path))
    }
}

impl<W: Write> CompressedStream<W> {
    /// Begins a stream on `out`.
    ///
    /// # Errors
    /// Returns [`io::ErrorKind::Unsupported`] for bzip2 and xz, which are supported for reading only.
    pub fn new(out: W, compression: Compression) -> io::Result<Self> {
        Self::with_threads(out, compression, 1, 0)
    }

    fn with_threads(
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

    /// Writes the remaining data and returns `out`, which is not flushed.
    ///
    /// # Errors
    /// Fails if `out` cannot be written to.
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

impl AtomicFile {
    fn writer(&mut self) -> &mut dyn Write {
        match &mut self.encoder {
            FileEncoder::Stream(stream) => stream,
            #[cfg(feature = "parquet")]
            FileEncoder::Table(table) => &mut table.lines,
        }
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}

/// Completes those files that are tables, each with the columns of all.
#[cfg(feature = "parquet")]
fn complete_tables(files: Vec<AtomicFile>) -> io::Result<Vec<AtomicFile>> {
    let mut columns = typed::InferredFields::default();
    let mut waiting = Vec::new();
    let mut done = Vec::new();
    // Read all lines before the first table is written, because each table gets the columns of all.
    for file in files {
        let AtomicFile {
            encoder,
            temporary,
            path,
        } = file;
        match encoder {
            FileEncoder::Table(table) => {
                if !table.example.is_empty() {
                    // Learned first, so that its fields always have their columns, in their places.
                    columns.learn(&table.example)?;
                }
                let lines = table.lines.finish()?.into_inner();
                let mut lines = lines.map_err(io::IntoInnerError::into_error)?;
                lines.rewind()?;
                typed::learn(&mut columns, &mut lines)?;
                lines.rewind()?;
                waiting.push((lines, table.file, temporary, path));
            }
            encoder => done.push(AtomicFile {
                encoder,
                temporary,
                path,
            }),
        }
    }
    // Types widen with every line, so the type of a column is known only after the last one.
    columns.settle();
    for (mut lines, out, temporary, path) in waiting {
        let out = BufWriter::with_capacity(BUFFER_BYTES, WriteBehindFile::new(out));
        let mut out = typed::write_parquet(&columns, &mut lines, out)?;
        // Complete before any table gets its name.
        out.flush()?;
        done.push(AtomicFile {
            encoder: FileEncoder::Stream(CompressedStream(StreamEncoder::Plain(out))),
            temporary,
            path,
        });
    }
    Ok(done)
}

/// Removes the temporary files that a killed job left in `directory` and for whose final names `is_ours` returns true. No other job may use the
/// directory. Returns the number of removed files. Files that are renamed or removed meanwhile are not leftovers.
///
/// # Errors
/// Fails if the directory cannot be listed or a file cannot be removed.
pub fn remove_leftovers(directory: &Path, is_ours: impl Fn(&OsStr) -> bool) -> io::Result<usize> {
    remove_temporary(directory, |_, name| is_ours(name).then_some(()))
}

/// Removes temporary files that killed jobs left for the file `path`, and returns their number. Files that a running process writes stay. On a file
/// system without locks, where they cannot be told apart, all files stay.
///
/// # Errors
/// See [`remove_leftovers`].
pub fn remove_leftovers_of(path: &Path) -> io::Result<usize> {
    remove_temporary(parent_directory(path), |entry, name| {
        path.file_name().filter(|ours| shortened(ours) == name)?;
        let file = File::options().write(true).open(entry.path()).ok()?;
        // Held until the file is removed, so that no other process begins to write it meanwhile.
        file.try_lock().ok().map(|()| file)
    })
}

/// Removes each temporary file of a directory for which `claim` returns `Some`. `claim` gets the final name of the file.
fn remove_temporary<T>(
    directory: &Path,
    claim: impl Fn(&DirEntry, &OsStr) -> Option<T>,
) -> io::Result<usize> {
    let mut removed = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // Skip links, because their targets were not created here.
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

/// Blocks the creation of further [`AtomicFile`]s: threads that try wait until the process has ended. Call it before ending a process whose threads
/// are still working, so that they leave no temporary files behind.
pub fn stop_new_files() {
    // The lock is never released. Taking it waits for threads that are creating a file, so the list of leftovers that is made next is complete.
    std::mem::forget(
        CREATION_LOCK
            .write()
            .unwrap_or_else(PoisonError::into_inner),
    );
}

/// Runs `work` without interruption: [`stop_new_files`] waits until it has ended, and once called, prevents it from starting. `work` must not create
/// an [`AtomicFile`].
pub fn uninterrupted<T>(work: impl FnOnce() -> T) -> T {
    let _beginning = CREATION_LOCK.read().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// Returns as much of a name as leaves room for the suffix of temporary files.
fn shortened(name: &OsStr) -> &OsStr {
    /// Maximum length of a name, in bytes.
    const MAX_NAME_BYTES: usize = 255;
    let bytes = name.as_bytes();
    let mut end = bytes
        .len()
        .min(MAX_NAME_BYTES - TEMPORARY.len() - RANDOM_BYTES);
    // Some file systems accept whole characters only.
    while end < bytes.len() && bytes[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    OsStr::from_bytes(&bytes[..end])
}

/// Returns the [`shortened`] `NAME` of a temporary name `NAME.tmp-` followed by six letters or digits.
fn final_name(temporary: &OsStr) -> Option<&OsStr> {
    let (rest, end) = temporary.as_bytes().split_last_chunk::<RANDOM_BYTES>()?;
    let is_random = end.iter().all(u8::is_ascii_alphanumeric);
    let name = rest.strip_suffix(TEMPORARY.as_bytes())?;
    is_random.then(|| OsStr::from_bytes(name))
}

/// Creates a file in the directory of `path`, with the permissions of the umask, locked while it is open.
pub(crate) fn temporary_sibling(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a file name"))?;
    // Replacing a special file would reach no reader, and a missing `/dev/null` breaks every program.
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
    // The default of `tempfile` is 0600, which the final file would keep, so other users could not read results.
    builder.permissions(fs::Permissions::from_mode(0o666));
    // Waits forever while the process ends, since it could no longer remove this file.
    let _beginning = CREATION_LOCK.read().unwrap_or_else(PoisonError::into_inner);
    loop {
        let temporary = builder.tempfile_in(parent_directory(path));
        let temporary = temporary.map_err(without_temporary_path)?;
        // Without locks, `remove_leftovers_of` cannot take one either, and removes nothing.
        let is_locked = temporary.as_file().lock().is_ok();
        // Between the two steps `remove_leftovers_of` may have removed the file.
        if !is_locked || temporary.as_file().metadata()?.nlink() > 0 {
            return Ok(temporary);
        }
    }
}

/// Returns an error of `tempfile` without the path that it appends, which means nothing to a user.
pub fn without_temporary_path(error: io::Error) -> io::Error {
    // Its type, which holds the path and the error of the system, is private.
    match error.to_string().split_once(" at path ") {
        Some((reason, _)) => io::Error::new(error.kind(), reason),
        None => error,
    }
}

/// Returns the directory of a path: `.` for a bare name.
pub fn parent_directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Syncs the file system of a directory, so that everything written to it survives a power cut. Meant for many files: syncing each would take longer
/// than copying them.
///
/// # Errors
/// Returns errors of the system.
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

/// Syncs a directory, so that new names in it survive a power cut.
///
/// # Errors
/// Returns errors of the system.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
