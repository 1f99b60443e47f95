//! Output of a command as one stream: a file, which appears complete or not at all, or standard output.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write, stderr, stdout};
use std::os::fd::AsFd;
use std::path::Path;

use lookalike_batch::{BatchError, IfExists};
use lookalike_corpus::{
    AtomicFile, CompressedStream, Compression, Inputs, Source, TableRowError, remove_leftovers_of,
};

use crate::arguments::output_format;
use crate::failure::Failure;
use crate::interrupt::{self, TemporaryPath, listed};

/// Size of the buffer before standard output.
const BUFFER: usize = 1 << 18;

/// Returns the compression of a file with this name.
fn compression(path: &Path) -> Compression {
    let name = path.to_string_lossy().to_ascii_lowercase();
    // The last two are supported for reading only: a file with such a name is refused.
    use Compression::{Bzip2, Gzip, Xz, Zstd};
    [Gzip, Zstd, Bzip2, Xz]
        .into_iter()
        .find(|compression| name.ends_with(compression.suffix()))
        .unwrap_or(Compression::None)
}

/// Creates the failure for a file that cannot be written, for `map_err`.
fn unwritable(path: &Path) -> impl Fn(io::Error) -> Failure + '_ {
    move |error| {
        let shown = path.display();
        let remedy = match TableRowError::is_cause_of(&error) {
            true => "name a .jsonl file instead",
            false => "choose another file",
        };
        Failure::Failed(format!("{shown}: {error}: {remedy}"))
    }
}

/// The directory of results while a job works in it. If the job created it and leaves it empty, it goes with this value.
pub(crate) struct ResultFolder<'p> {
    path: &'p Path,
    is_new: bool,
}

impl<'p> ResultFolder<'p> {
    pub(crate) fn create(path: &'p Path) -> Result<Self, Failure> {
        let folder = Self::of(path);
        folder.make()?;
        Ok(folder)
    }

    /// Notes whether the directory exists, and does not create it yet.
    pub(crate) fn of(path: &'p Path) -> Self {
        Self {
            path,
            is_new: !path.exists(),
        }
    }

    /// Creates the directory.
    pub(crate) fn make(&self) -> Result<(), Failure> {
        std::fs::create_dir_all(self.path).map_err(|error| {
            Failure::Failed(format!(
                "{}: {error}: name a writable directory with -o",
                self.path.display()
            ))
        })
    }

    /// Makes an interruption remove what the job leaves unfinished; `can_resume` tells whether the command has `--resume`.
    pub(crate) fn remove_on_interrupt(&self, can_resume: bool) {
        interrupt::watch(TemporaryPath::Results {
            folder: self.path.to_owned(),
            is_new: self.is_new,
            can_resume,
        });
    }
}

impl Drop for ResultFolder<'_> {
    fn drop(&mut self) {
        if self.is_new {
            // `remove_dir` refuses a folder that is not empty, so results and what `--resume` needs stay.
            let _ = std::fs::remove_dir(self.path);
        }
    }
}

/// Returns what `--resume` and `--overwrite` say about a directory that holds results.
pub(crate) fn if_exists(resume: bool, overwrite: bool) -> IfExists {
    match (resume, overwrite) {
        (true, _) => IfExists::Resume,
        (_, true) => IfExists::Overwrite,
        _ => IfExists::New,
    }
}

/// Refuses an output that cannot or must not be written, before the work begins: a directory, or an input file that would be lost.
pub(crate) fn check_output<'a>(
    output: Option<&Path>,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Result<(), Failure> {
    if let Some(output) = output {
        if output.is_dir() {
            return Err(is_directory(output));
        }
        ensure_parent_exists(output)?;
    }
    // Canonical paths, because the same file may be named from another directory, or by a link.
    // An output that does not exist yet is none of the inputs.
    let Some((output, Ok(place))) = output.map(|path| (path, path.canonicalize())) else {
        return Ok(());
    };
    let is_output = |input: &Path| input.canonicalize().is_ok_and(|input| input == place);
    match inputs.into_iter().any(is_output) {
        true => Err(Failure::Usage(format!(
            "{}: is also an input, which the output would replace: choose another file",
            output.display()
        ))),
        false => Ok(()),
    }
}

/// Refuses an output in a directory that does not exist, which may be a misspelt name.
pub(crate) fn ensure_parent_exists(output: &Path) -> Result<(), Failure> {
    let folder = output.parent().filter(|folder| *folder != Path::new(""));
    match folder.filter(|folder| !folder.exists()) {
        Some(folder) => Err(Failure::Failed(format!(
            "{}: the directory {} does not exist: create it, or name another file",
            output.display(),
            folder.display()
        ))),
        None => Ok(()),
    }
}

fn is_directory(output: &Path) -> Failure {
    Failure::Usage(format!(
        "{}: is a directory: choose another name",
        output.display()
    ))
}

/// Returns the files of inputs.
pub(crate) fn files_of(inputs: &Inputs) -> impl Iterator<Item = &Path> {
    inputs.sources.iter().filter_map(Source::path)
}

/// Writes lines to a file, compressed if its name says so, or to standard output.
pub(crate) fn write_output<T>(
    path: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> Result<T, BatchError>,
) -> Result<T, Failure> {
    match path {
        Some(path) if is_table(path) => Err(Failure::Usage(format!(
            "{}: this command writes JSON lines, not a table: name the file .jsonl, .jsonl.gz or .jsonl.zst",
            path.display()
        ))),
        Some(path) if has_foreign_ending(path) => Err(Failure::Usage(format!(
            "{}: not written in this format, but as JSON lines: name the file .jsonl, .jsonl.gz or .jsonl.zst (`pairs` and `extract`: also .parquet)",
            path.display()
        ))),
        Some(path) => write_created(
            path,
            |target| AtomicFile::create(target, compression(path)),
            write,
        ),
        None => Ok(write_standard_output(write)?),
    }
}

/// Returns true if a file with this name is a Parquet table.
pub(crate) fn is_table(path: &Path) -> bool {
    path.extension()
        // Decided by name, as for .gz and .zst: a table is not different content but another container.
        .is_some_and(|extension| extension.eq_ignore_ascii_case("parquet"))
}

/// Returns true if readers would expect another format than JSON lines in a file with this name.
fn has_foreign_ending(path: &Path) -> bool {
    const FOREIGN: [&str; 9] = [
        "arrow", "avro", "csv", "feather", "ipc", "orc", "parquet", "tsv", "xlsx",
    ];
    let is_packed = compression(path) != Compression::None;
    let name = path.file_stem().filter(|_| is_packed).map(Path::new);
    let ending = name.unwrap_or(path).extension();
    ending.is_some_and(|ending| {
        FOREIGN
            .iter()
            .any(|foreign| ending.eq_ignore_ascii_case(foreign))
    })
}

/// Writes lines of JSON to a file, compressed or as a table if its name says so, or to standard output. A table always has the fields of `example`.
pub(crate) fn write_rows<T>(
    path: Option<&Path>,
    example: &str,
    write: impl FnOnce(&mut dyn Write) -> Result<T, BatchError>,
) -> Result<T, Failure> {
    match path.filter(|path| is_table(path)) {
        Some(path) => {
            let table = output_format("parquet").map_err(Failure::Usage)?;
            write_created(
                path,
                |target| AtomicFile::lines(target, table, example),
                write,
            )
        }
        None => write_output(path, write),
    }
}

/// Begins a file, or the target of a link. It is removed if the command is interrupted.
fn begin(
    path: &Path,
    create: impl FnOnce(&Path) -> io::Result<AtomicFile>,
) -> io::Result<AtomicFile> {
    let target = resolve_links(path);
    // Remove the leftovers of a killed command. Ignore errors: a directory that cannot be listed may still be writable.
    let _ = remove_leftovers_of(&target);
    listed(
        || create(&target),
        |file| TemporaryPath::File(file.temporary().into()),
    )
}

/// Works like [`AtomicFile::create`], for jobs that write files in their own formats.
pub(crate) fn begin_file(path: &Path, compression: Compression) -> io::Result<AtomicFile> {
    begin(path, |target| AtomicFile::create(target, compression))
}

/// Returns true if a path leads to a pipe, a device or an open stream: replacing it by a file would reach no reader.
pub(crate) fn is_stream(path: &Path) -> bool {
    is_open_stream(path)
        || path
            .metadata()
            .is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Returns true if checkpoints cannot stand beside an output, because the system made its directory.
pub(crate) fn is_in_system_folder(path: &Path) -> bool {
    is_stream(path) && (path.starts_with("/dev") || path.starts_with("/proc"))
}

/// Returns true for names of streams that the caller of the process has opened, such as `2>log` as `/dev/stderr`.
fn is_open_stream(path: &Path) -> bool {
    let is_below = |folder: &str| path.starts_with(folder) && path != Path::new(folder);
    is_standard_error(path) || is_below("/dev/fd") || is_below("/proc/self/fd")
}

fn is_standard_error(path: &Path) -> bool {
    let names = ["/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"];
    names.iter().any(|name| path == Path::new(name))
}

/// Opens a stream to the pipe, device or stream with this name, if it is one. Written data is compressed.
fn opened_stream(
    path: &Path,
    compression: Compression,
) -> Result<Option<CompressedStream<BufWriter<File>>>, Failure> {
    if !is_stream(path) {
        return Ok(None);
    }
    if is_table(path) {
        return Err(Failure::Usage(format!(
            "{}: is a pipe or a device, which takes no Parquet: choose a file",
            path.display()
        )));
    }
    if is_open_stream(path) && !is_standard_error(path) && path.is_file() {
        return Err(Failure::Usage(format!(
            "{}: is an open file, into whose lines others may write: name the file itself",
            path.display()
        )));
    }
    // A file behind standard error, opened again by its name, would have a position of its own, and warnings would be written over the lines.
    let file = match is_standard_error(path) {
        true => stderr().as_fd().try_clone_to_owned().map(File::from),
        false => File::options().append(true).open(path),
    };
    let file = BufWriter::with_capacity(BUFFER, file.map_err(unwritable(path))?);
    let stream = CompressedStream::new(file, compression);
    Ok(Some(stream.map_err(unwritable(path))?))
}

fn finish_stream(stream: CompressedStream<BufWriter<File>>) -> io::Result<()> {
    stream.finish()?.flush()
}

/// Returns the target of a path: a link stays, and the file behind it is replaced.
pub(crate) fn resolve_links(path: &Path) -> Cow<'_, Path> {
    // A dangling link has no target, so the file takes the place of the link.
    match path.is_symlink().then(|| path.canonicalize()) {
        Some(Ok(target)) => Cow::Owned(target),
        _ => Cow::Borrowed(path),
    }
}

/// Writes to a file that `create` begins. It is removed if the command is interrupted.
fn write_created<T>(
    path: &Path,
    create: impl FnOnce(&Path) -> io::Result<AtomicFile>,
    write: impl FnOnce(&mut dyn Write) -> Result<T, BatchError>,
) -> Result<T, Failure> {
    if let Some(mut stream) = opened_stream(path, compression(path))? {
        let written = write(&mut stream).map_err(|error| error.of_output(path))?;
        finish_stream(stream).map_err(unwritable(path))?;
        return Ok(written);
    }
    let mut file = begin(path, create).map_err(unwritable(path))?;
    // An error drops and thereby removes the new file; an existing file stays.
    let written = write(&mut file).map_err(|error| error.of_output(path))?;
    // Until here, nothing has the name of the output.
    file.commit().map_err(unwritable(path))?;
    Ok(written)
}

/// Writes to standard output.
fn write_standard_output<T>(
    write: impl FnOnce(&mut dyn Write) -> Result<T, BatchError>,
) -> Result<T, BatchError> {
    // Standard output flushes at each line by itself, which would cost a system call for each pair.
    let mut out = BufWriter::with_capacity(BUFFER, stdout().lock());
    let name = Path::new("standard output");
    let written = write(&mut out).map_err(|error| error.of_output(name))?;
    // Flushed explicitly, because dropping would lose the error: a full disk behind a redirection must be a failure.
    out.flush().map_err(|cause| BatchError::File {
        path: name.to_owned(),
        cause,
        remedy: "check where standard output goes",
    })?;
    Ok(written)
}

/// Writes bytes to a file, uncompressed.
pub(crate) fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if let Some(mut stream) = opened_stream(path, Compression::None)? {
        let written = stream.write_all(bytes);
        return written
            .and_then(|()| finish_stream(stream))
            .map_err(unwritable(path));
    }
    let mut file = begin_file(path, Compression::None).map_err(unwritable(path))?;
    file.write_all(bytes).map_err(unwritable(path))?;
    file.commit().map_err(unwritable(path))
}
