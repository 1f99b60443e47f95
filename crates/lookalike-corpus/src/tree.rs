//! Copying of sources that are one document each, byte for byte, into a directory of results.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::atomic;
use crate::decode;
use crate::error::ReadError;
use crate::format::{Compression, Format};
use crate::name::path_hash;
use crate::regular::{concerns_file, open_regular};
use crate::source::{Inputs, Source};

/// Assignment of sources to files below a results directory.
///
/// The relative path is the source's own, without `.` and the leading `/`, and with `..` written `_up`; standard input is `standard-input`. If two
/// paths collide (also if they differ only in case, or one is a directory of the other), the later one gets `~2`, `~3`, ... after its first component,
/// before the extension if that is the file. So the paths depend only on the list of sources.
#[derive(Debug, Clone)]
pub struct FileTree {
    paths: Vec<PathBuf>,
    /// Numbers of the sources that did not get the path they would have alone.
    renamed: Vec<u32>,
    /// Files that were not read, and the paths to which they are copied.
    skipped: Vec<(PathBuf, PathBuf)>,
}

/// The way in which a file gets into results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transfer {
    /// As a copy.
    #[default]
    Copy,
    /// As a hard link, or as a symbolic link across file systems and where hard links are not supported.
    Link,
}

/// Reason why a file could not be copied into results.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The file is gone, may not be read, or is not the one that was discovered.
    #[error(transparent)]
    Source(io::Error),
    /// It cannot be read to its end, or the copy cannot be written.
    #[error(transparent)]
    Output(io::Error),
}

impl From<TransferError> for io::Error {
    fn from(error: TransferError) -> io::Error {
        match error {
            TransferError::Source(error) | TransferError::Output(error) => error,
        }
    }
}

impl FileTree {
    /// Assigns paths to all sources, including JSONL ones, so that a path can be looked up by source number. Arrow files get the extension of Parquet,
    /// because their rows are written as such.
    pub fn new(inputs: &Inputs) -> FileTree {
        Self::of_sources(inputs, &mut UsedPaths::default(), |source| {
            let path = own_path(source);
            match source.format {
                Format::Arrow if source.place().is_some() => path.with_extension("parquet"),
                _ => path,
            }
        })
    }

    /// Assigns paths to all sources for copies of the files as they are, then to the skipped files.
    pub fn copies(inputs: &Inputs) -> FileTree {
        let mut taken = UsedPaths::default();
        let tree = Self::of_sources(inputs, &mut taken, own_path);
        let files = inputs.skips.iter().filter_map(|skip| skip.file.as_ref());
        let skipped = files
            .map(|file| (file.clone(), taken.place_at(relative(file))))
            .collect();
        FileTree { skipped, ..tree }
    }

    /// Assigns paths to all sources for files with their decompressed bytes, without the suffix of the compression. Paths that differ only in case do
    /// not collide.
    pub fn decompressed(inputs: &Inputs) -> FileTree {
        let mut taken = UsedPaths {
            is_exact: true,
            ..UsedPaths::default()
        };
        Self::of_sources(inputs, &mut taken, |source| {
            without_suffix(own_path(source), source.compression)
        })
    }

    fn of_sources(
        inputs: &Inputs,
        taken: &mut UsedPaths,
        wanted: impl Fn(&Source) -> PathBuf,
    ) -> FileTree {
        let mut tree = FileTree {
            paths: Vec::new(),
            renamed: Vec::new(),
            skipped: Vec::new(),
        };
        for (number, source) in (0..).zip(&inputs.sources) {
            let own = wanted(source);
            let path = taken.place_at(own.clone());
            if path != own {
                tree.renamed.push(number);
            }
            tree.paths.push(path);
        }
        tree
    }

    /// Returns the skipped files with their paths relative to the results directory, in the order of [`Inputs::skips`].
    pub fn skipped(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.skipped.iter().map(|(file, to)| (&**file, &**to))
    }

    /// Returns the numbers of the sources with a numbered path, because it collided with that of another.
    pub fn renamed(&self) -> &[u32] {
        &self.renamed
    }

    /// Returns the path of a source relative to the results directory.
    ///
    /// # Panics
    /// Panics if the inputs have no such source.
    pub fn path(&self, source: u32) -> &Path {
        &self.paths[source as usize]
    }

    /// Copies a source as stored on disk (possibly compressed) below `directory`, creating directories as needed. The copy appears complete or not at
    /// all; it is not synced to disk. Returns the number of bytes copied.
    ///
    /// # Errors
    /// Fails if reading or writing fails, or if the source is not the one that was discovered; then there is no copy.
    ///
    /// # Panics
    /// Panics if the inputs have no such source.
    pub fn copy(
        &self,
        inputs: &Inputs,
        source: u32,
        directory: &Path,
        transfer: Transfer,
    ) -> Result<u64, TransferError> {
        let to = directory.join(self.path(source));
        let source = &inputs.sources[source as usize];
        // Files in the spool directory are removed with it, so they must be copied.
        let transfer = source.path().map_or(Transfer::Copy, |_| transfer);
        let bytes = transfer_file(source.file(), &to, transfer)?;
        // After the copy, not before, so that a change during the copy is noticed.
        let same = match bytes == source.bytes {
            true => decode::check_metadata(source, fs::metadata(source.file())),
            false => Err(ReadError::Changed {
                name: source.name().into_owned(),
            }),
        };
        let Err(error) = same else {
            return Ok(bytes);
        };
        // Results must not contain a text other than the one that was decided on.
        fs::remove_file(to).map_err(TransferError::Output)?;
        Err(TransferError::Source(io::Error::other(error)))
    }
}

/// Copies or links a file to a path, creating directories as needed. It appears complete or not at all. Returns its size in bytes. A copy survives a
/// power cut once [`sync_file_system`](crate::sync_file_system) has returned.
///
/// # Errors
/// Fails if the file is gone or is not a regular file, or if reading or writing fails.
pub fn transfer_file(from: &Path, to: &Path, transfer: Transfer) -> Result<u64, TransferError> {
    let mut file = open_regular(from).map_err(|error| match concerns_file(&error) {
        true => TransferError::Source(error),
        false => TransferError::Output(error),
    })?;
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).map_err(TransferError::Output)?;
    }
    if transfer == Transfer::Link {
        // A symbolic link is resolved from its own directory, so a relative path would lead elsewhere.
        let from = fs::canonicalize(from).map_err(TransferError::Source)?;
        // An interrupted job may have created it; unlike a copy, a link does not replace an existing file.
        fs::remove_file(to)
            .or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })
            .map_err(TransferError::Output)?;
        fs::hard_link(&from, to)
            // Whatever the error: across file systems, no permission, too many links. If the target path is the problem, this fails, too.
            .or_else(|_| std::os::unix::fs::symlink(&from, to))
            .map_err(TransferError::Output)?;
        let meta = file.metadata().map_err(TransferError::Source)?;
        return Ok(meta.len());
    }
    let mut copy = || {
        let mut temporary = atomic::temporary_sibling(to)?;
        let bytes = io::copy(&mut file, temporary.as_file_mut())?;
        // Not synced one by one: `sync_file_system` syncs all of them, before the summary states that the job is complete.
        temporary.persist(to).map_err(|error| error.error)?;
        Ok(bytes)
    };
    copy().map_err(TransferError::Output)
}

/// Removes the suffix of the compression from a path.
fn without_suffix(path: PathBuf, compression: Compression) -> PathBuf {
    let ending = path.extension().and_then(|ending| ending.to_str());
    let is_suffix = ending.is_some_and(|ending| {
        let ending = ending.to_ascii_lowercase();
        match compression {
            // Both suffixes are in use.
            Compression::Zstd => ending == "zst" || ending == "zstd",
            _ => compression.suffix().strip_prefix('.') == Some(&*ending),
        }
    });
    match is_suffix {
        true => path.with_extension(""),
        false => path,
    }
}

/// Returns the path of a source in results with its own name, unless that is in use.
fn own_path(source: &Source) -> PathBuf {
    match source.place() {
        Some(path) => relative(&path),
        None => PathBuf::from("standard-input"),
    }
}

/// Hashes of the paths in use, and of the directories above them.
#[derive(Default)]
struct UsedPaths {
    /// Paths that differ only in case are different. Otherwise, all are kept in lower case.
    is_exact: bool,
    files: HashSet<u128>,
    directories: HashSet<u128>,
}

impl UsedPaths {
    fn place_at(&mut self, wanted: PathBuf) -> PathBuf {
        let mut path = wanted.clone();
        let mut copy = 2;
        while !self.is_free(&path) {
            path = numbered(&wanted, copy);
            copy += 1;
        }
        self.take(&path);
        path
    }

    fn is_free(&self, path: &Path) -> bool {
        let folded = self.folded(path);
        // `ancestors` begins with the path itself.
        let mut hashes = folded.ancestors().map(path_hash);
        let is_taken = hashes
            .next()
            .is_some_and(|own| self.files.contains(&own) || self.directories.contains(&own));
        !is_taken && !hashes.any(|above| self.files.contains(&above))
    }

    fn take(&mut self, path: &Path) {
        let folded = self.folded(path);
        let mut hashes = folded.ancestors().map(path_hash);
        self.files.extend(hashes.next());
        self.directories.extend(hashes);
    }

    fn folded(&self, path: &Path) -> PathBuf {
        match path.to_str() {
            // File systems of macOS and Windows ignore case, and results may be copied there.
            Some(text) if !self.is_exact => PathBuf::from(text.to_lowercase()),
            _ => path.to_owned(),
        }
    }
}

fn relative(path: &Path) -> PathBuf {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name),
            // Results are never written outside of their folder, whatever the arguments.
            Component::ParentDir => Some("_up".as_ref()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
        })
        .collect()
}

/// Renames `a/b.txt` to `a~2/b.txt`, and `b.txt` to `b~2.txt`. The first component is numbered, because if a file occupies the name of a directory, no
/// name below it is possible.
fn numbered(path: &Path, copy: u32) -> PathBuf {
    let mut components = path.components();
    let first = components.next().map(|c| c.as_os_str()).unwrap_or_default();
    let rest = components.as_path();
    if rest.as_os_str().is_empty() {
        return numbered_name(Path::new(first), copy);
    }
    let mut root = first.to_owned();
    root.push(format!("~{copy}"));
    Path::new(&root).join(rest)
}

fn numbered_name(name: &Path, copy: u32) -> PathBuf {
    let mut numbered = name.file_stem().unwrap_or_default().to_owned();
    numbered.push(format!("~{copy}"));
    if let Some(extension) = name.extension() {
        numbered.push(".");
        numbered.push(extension);
    }
    PathBuf::from(numbered)
}
