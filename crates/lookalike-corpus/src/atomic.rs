//! Files that are there whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use tempfile::{Builder, TempPath};

use crate::options::Compression;

const BUFFER_BYTES: usize = 1 << 20;

/// What stands between a final name and the random end of a temporary one.
const TEMPORARY: &str = ".tmp-";

const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// A file in the making. It is written beside its final place as `NAME.tmp-XXXXXX` and gets its
/// name in [`AtomicFile::commit`]; dropped before, it vanishes.
pub struct AtomicFile {
    encoder: Encoder,
    temporary: TempPath,
    path: PathBuf,
}

enum Encoder {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<File>>),
}

impl AtomicFile {
    /// Begins the file that will be `path`, whose directory must exist. What is written passes
    /// through the compression; the same bytes always compress to the same file.
    ///
    /// # Errors
    /// When the directory cannot be written to.
    pub fn create(path: &Path, compression: Compression) -> io::Result<AtomicFile> {
        let (file, temporary) = temporary_beside(path)?.into_parts();
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        let encoder = match compression {
            Compression::None => Encoder::Plain(file),
            Compression::Gzip => {
                Encoder::Gzip(GzEncoder::new(file, flate2::Compression::new(GZIP_LEVEL)))
            }
            Compression::Bzip2 | Compression::Xz => {
                let reason = "bzip2 and xz are read, not written";
                return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
            }
            Compression::Zstd => {
                Encoder::Zstd(zstd::stream::write::Encoder::new(file, ZSTD_LEVEL)?)
            }
        };
        Ok(AtomicFile {
            encoder,
            temporary,
            path: path.to_owned(),
        })
    }

    /// Completes the file, forces it to the disk and gives it its name, replacing any other.
    ///
    /// # Errors
    /// When the system fails; then nothing has changed under the final name.
    pub fn commit(self) -> io::Result<()> {
        let file = self.encoder.finish()?;
        file.sync_all()?;
        drop(file);
        self.temporary
            .persist(&self.path)
            .map_err(|error| error.error)?;
        sync_directory(parent(&self.path))
    }
}

impl Encoder {
    fn finish(self) -> io::Result<File> {
        let buffered = match self {
            Encoder::Plain(file) => file,
            Encoder::Gzip(encoder) => encoder.finish()?,
            Encoder::Zstd(encoder) => encoder.finish()?,
        };
        buffered
            .into_inner()
            .map_err(io::IntoInnerError::into_error)
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.encoder {
            Encoder::Plain(writer) => writer.write(bytes),
            Encoder::Gzip(writer) => writer.write(bytes),
            Encoder::Zstd(writer) => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.encoder {
            Encoder::Plain(writer) => writer.flush(),
            Encoder::Gzip(writer) => writer.flush(),
            Encoder::Zstd(writer) => writer.flush(),
        }
    }
}

/// Removes temporary files that a killed job left in a directory; returns how many.
///
/// # Errors
/// When the directory cannot be listed or a file not be removed.
pub fn remove_leftovers(directory: &Path) -> io::Result<usize> {
    let mut removed = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if is_temporary(&entry.file_name()) && entry.file_type()?.is_file() {
            fs::remove_file(entry.path())?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// `NAME.tmp-` and six letters or digits at the end.
fn is_temporary(name: &OsString) -> bool {
    let name = name.to_string_lossy();
    name.rsplit_once(TEMPORARY)
        .is_some_and(|(_, end)| end.len() == 6 && end.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// A new file in the directory of `path`, open to whom the umask allows.
pub(crate) fn temporary_beside(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut prefix = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a file name"))?
        .to_owned();
    prefix.push(TEMPORARY);
    let mut builder = Builder::new();
    builder.prefix(&prefix).rand_bytes(6);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(parent(path))
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes the new name itself survive a power cut.
#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Directories cannot be synced here.
#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}
