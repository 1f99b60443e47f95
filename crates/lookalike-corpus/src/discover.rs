//! Discovery of the sources that arguments name: files, directories, globs and standard input, in a stable order.

use std::collections::{BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use crate::decode;
use crate::error::InputError;
use crate::format::Format;
use crate::glob;
use crate::html;
use crate::name;
use crate::options::InputOptions;
use crate::regular::open_regular;
use crate::remote;
use crate::results::{self, OutputFolder};
use crate::sniff::{self, FormatRefusal, SniffedFormat};
use crate::source::{Inputs, SkipKind, SkippedPart, Source, SourceOrigin};

/// Name of the copy of standard input in the spool directory.
const SPOOL_NAME: &str = "standard-input";

impl Inputs {
    /// Finds all sources that the arguments name.
    ///
    /// An argument is a file, a directory (walked recursively; links that lead out of it are followed only with [`InputOptions::follow_links`]), `-`
    /// for standard input, or, if no such file exists, a glob. Order: arguments as given; within directories and globs by name, bytewise, component
    /// by component. A file found several times is read once.
    ///
    /// Standard input is copied to `spool_dir`, because it is read twice; the caller removes the directory with the copy.
    ///
    /// Within directories and globs, files that cannot be read become a [`SkippedPart`]; entries whose names begin with a dot, bookkeeping of Spark,
    /// Hive and Delta Lake (`_SUCCESS`, `_metadata`, `_delta_log`, ...) and folders with results of a job are skipped too. Such an entry is read if it
    /// is itself an argument.
    ///
    /// # Errors
    /// Fails if an argument names nothing, or a file that cannot be read, and for options with which nothing can be read.
    pub fn discover(
        arguments: &[OsString],
        options: &InputOptions,
        spool_dir: &Path,
    ) -> Result<Inputs, InputError> {
        let input = &mut io::stdin().lock();
        InputDiscovery::new(options, spool_dir, None).run(arguments, input)
    }

    /// Works like [`Inputs::discover`], for a job that writes results: walks skip its output folder, and a walk that begins in that folder skips the
    /// results.
    ///
    /// # Errors
    /// See [`Inputs::discover`].
    pub fn discover_for_output(
        arguments: &[OsString],
        options: &InputOptions,
        spool_dir: &Path,
        output: OutputFolder<'_>,
    ) -> Result<Inputs, InputError> {
        let input = &mut io::stdin().lock();
        InputDiscovery::new(options, spool_dir, Some(output)).run(arguments, input)
    }

    /// Works like [`Inputs::discover`], but reads `-` from another stream than standard input.
    ///
    /// # Errors
    /// See [`Inputs::discover`].
    pub fn discover_with(
        arguments: &[OsString],
        options: &InputOptions,
        spool_dir: &Path,
        standard_input: &mut dyn Read,
    ) -> Result<Inputs, InputError> {
        InputDiscovery::new(options, spool_dir, None).run(arguments, standard_input)
    }
}

struct InputDiscovery<'o> {
    options: &'o InputOptions,
    spool_dir: &'o Path,
    output: Option<OutputFolder<'o>>,
    sources: Vec<Source>,
    skips: Vec<SkippedPart>,
    /// Hashes of the canonical paths of the files taken so far.
    seen: HashSet<u128>,
    /// URLs of the objects taken so far.
    #[cfg(feature = "cloud")]
    urls: HashSet<String>,
    /// Canonical paths of the spool directory, and of folders of results that were already reported.
    left_out: BTreeSet<PathBuf>,
}

impl<'o> InputDiscovery<'o> {
    fn new(
        options: &'o InputOptions,
        spool_dir: &'o Path,
        output: Option<OutputFolder<'o>>,
    ) -> Self {
        InputDiscovery {
            options,
            spool_dir,
            output,
            sources: Vec::new(),
            skips: Vec::new(),
            seen: HashSet::new(),
            #[cfg(feature = "cloud")]
            urls: HashSet::new(),
            left_out: fs::canonicalize(spool_dir).into_iter().collect(),
        }
    }

    fn run(
        mut self,
        arguments: &[OsString],
        standard_input: &mut dyn Read,
    ) -> Result<Inputs, InputError> {
        // Check this first: a mode that this build lacks would otherwise be noticed after hours of walking and copying.
        html::check(self.options.html)?;
        let delimiter = self.options.delimiter;
        if let Some(byte) = delimiter.filter(|&byte| !InputOptions::is_delimiter(byte)) {
            return Err(InputError::Delimiter(byte));
        }
        for argument in arguments {
            if argument == "-" {
                self.standard_input(standard_input)?;
            } else if let Some(url) = remote::url(argument) {
                self.remote(url)?;
            } else {
                self.argument(argument)?;
            }
        }
        // Records and state files store numbers of sources in 32 bits.
        if u32::try_from(self.sources.len()).is_err() {
            return Err(InputError::TooMany);
        }
        Ok(Inputs {
            sources: self.sources,
            skips: self.skips,
        })
    }

    fn argument(&mut self, argument: &OsStr) -> Result<(), InputError> {
        let path = Path::new(argument);
        if self.leaves_out(path) {
            return Ok(());
        }
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => {
                self.refuse_results(path)?;
                self.add_found(argument, vec![path.to_owned()])
            }
            // A file that is really named `a[1].txt` takes precedence over the glob.
            Err(error) if error.kind() == io::ErrorKind::NotFound && glob::is_glob(argument) => {
                self.glob(argument)
            }
            // Treat it as if it had been found in a folder.
            _ if self.options.skip_unreadable => {
                self.entry(path, &[]);
                Ok(())
            }
            Ok(meta) => self.named(path, &meta),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(not_found(path)),
            Err(error) => Err(io_error(path, error)),
        }
    }

    /// Refuses a directory of results that the user named, because only some of its files are documents. If it is also the output directory, it is
    /// read without its results.
    fn refuse_results(&self, path: &Path) -> Result<(), InputError> {
        let is_output = || fs::canonicalize(path).is_ok_and(|path| self.is_output(&path));
        let name = || name::display(path).into_owned();
        if results::holds_results(path) && !is_output() {
            let results = results::all_results_in(path);
            let kept: Vec<String> = results
                .iter()
                .filter(|result| result.starts_with(KEPT) && path.join(result).exists())
                .map(|result| name::display(&path.join(result)).into_owned())
                .collect();
            return Err(InputError::Results {
                name: name(),
                kept: match kept.is_empty() {
                    true => String::new(),
                    false => format!("; what was kept is in {}", kept.join(" and ")),
                },
            });
        }
        match path.join(results::COLLECTION_FILE).is_file() {
            true => Err(InputError::Collection { name: name() }),
            false => Ok(()),
        }
    }

    fn glob(&mut self, argument: &OsStr) -> Result<(), InputError> {
        let name = name::display(Path::new(argument)).into_owned();
        let before = self.skips.len();
        let mut unreadable = Vec::new();
        let expanded = glob::expand(
            argument,
            &mut |path| self.is_excluded(path),
            &mut |path, error| unreadable.push((path.to_owned(), error)),
        );
        for (path, error) in unreadable {
            self.skip(&path, SkipKind::Unreadable, error.to_string());
        }
        match expanded {
            Err(reason) => Err(InputError::Pattern { name, reason }),
            Ok(paths) if paths.is_empty() => self.no_match(name, before),
            Ok(paths) => self.add_found(argument, paths),
        }
    }

    /// Returns the error of a glob without a match. `before` is the number of skips before the glob was expanded.
    fn no_match(&self, name: String, before: usize) -> Result<(), InputError> {
        let mut new = self.skips[before..].iter();
        let is_told = |skip: &&SkippedPart| {
            matches!(
                skip.kind,
                SkipKind::ResultsFolder | SkipKind::Bookkeeping | SkipKind::Unreadable
            )
        };
        match new.find(is_told) {
            Some(skip) => Err(InputError::Empty {
                name,
                skipped: self.skips.len() - before,
                first: Some(format!("{}: {}", skip.name, skip.reason)),
            }),
            None => Err(InputError::NoMatch { name }),
        }
    }

    /// Takes a file that the user named, so any problem with it is an error.
    fn named(&mut self, path: &Path, meta: &Metadata) -> Result<(), InputError> {
        if let Some(kind) = special(meta) {
            return Err(InputError::NotAFile {
                name: name::display(path).into_owned(),
                kind,
            });
        }
        match self
            .examine(path, meta)
            .map_err(|error| io_error(path, error))?
        {
            Ok(Some(source)) => self.sources.push(source),
            Ok(None) => self.skip(path, SkipKind::Duplicate, NAMED_BEFORE.to_owned()),
            Err(refusal) => return Err(refusal.of(name::display(path))),
        }
        Ok(())
    }

    /// Takes files that were found, not named, so any problem with one only skips it.
    fn add_found(&mut self, argument: &OsStr, paths: Vec<PathBuf>) -> Result<(), InputError> {
        let (sources, skips) = (self.sources.len(), self.skips.len());
        for path in paths {
            self.walk(path);
        }
        let new = &self.skips[skips..];
        // A folder whose files were all named before is not empty: it names files that are read already.
        let duplicates = new.iter().any(|skip| skip.kind == SkipKind::Duplicate);
        if self.sources.len() > sources || duplicates {
            return Ok(());
        }
        Err(InputError::Empty {
            name: name::display(Path::new(argument)).into_owned(),
            skipped: new.len(),
            first: new
                .first()
                .map(|skip| format!("{}: {}", skip.name, skip.reason)),
        })
    }

    /// Visits a path and everything below it, depth first, by name.
    fn walk(&mut self, root: PathBuf) {
        let first = self.sources.len();
        let mut stack = vec![EntryKind::Entry(root)];
        let mut above: Vec<PathBuf> = Vec::new();
        let mut top = Vec::new();
        let mut links = Vec::new();
        while let Some(visit) = stack.pop() {
            match visit {
                EntryKind::Leave => {
                    above.pop();
                }
                EntryKind::Entry(path) if !above.is_empty() && is_link_to_file(&path) => {
                    links.push(FileLink {
                        position: self.sources.len(),
                        path,
                    });
                }
                EntryKind::Entry(path) => {
                    if let Some(below) = self.entry(&path, &above) {
                        if above.is_empty() {
                            top = vec![below.directory.clone()];
                        }
                        above.push(below.directory);
                        // Popped after the last entry of the directory. An explicit stack, because directories can nest deeper than the stack of a
                        // thread allows.
                        stack.push(EntryKind::Leave);
                        stack.extend(below.entries.into_iter().rev().map(EntryKind::Entry));
                    }
                }
            }
        }
        self.take_links(first, links, &top);
    }

    /// Takes the files to which links of a walk lead, in the places of the links, unless the walk found them under their own names. The walk began
    /// with source number `first`, in the directory `top`.
    fn take_links(&mut self, first: usize, links: Vec<FileLink>, top: &[PathBuf]) {
        if links.is_empty() {
            return;
        }
        let mut walked = self.sources.split_off(first).into_iter();
        let mut taken = first;
        for link in links {
            let before = walked.by_ref().take(link.position - taken);
            self.sources.extend(before);
            taken = link.position;
            self.entry(&link.path, top);
        }
        self.sources.extend(walked);
    }

    /// Takes or skips a file, or returns the entries of a directory.
    fn entry(&mut self, path: &Path, above: &[PathBuf]) -> Option<PendingDirectory> {
        if self.leaves_out(path) {
            return None;
        }
        let meta = match fs::metadata(path) {
            Ok(meta) => meta,
            Err(error) => {
                let kind = if is_loop(path, &error) {
                    SkipKind::Loop
                } else {
                    SkipKind::Unreadable
                };
                self.skip(path, kind, error.to_string());
                return None;
            }
        };
        // After `metadata`, so that a dangling link is reported as unreadable, not as one that leads out.
        if self.leaves_root(path, above) {
            let reason = "a link that leads out of the folder, which is not followed".to_owned();
            self.skip(path, SkipKind::Outside, reason);
            return None;
        }
        if meta.is_dir() {
            return self.directory(path, above);
        }
        if let Some(kind) = special(&meta) {
            self.skip(
                path,
                SkipKind::NotAFile,
                format!("a {kind}, not a regular file"),
            );
            return None;
        }
        match self.examine(path, &meta) {
            Ok(Ok(Some(source))) => self.sources.push(source),
            Ok(Ok(None)) => self.skip(path, SkipKind::Duplicate, NAMED_BEFORE.to_owned()),
            Ok(Err(refusal)) => {
                self.skip(path, refusal.kind, refusal.reason);
                if let Some(skip) = self.skips.last_mut() {
                    skip.file = Some(path.to_owned());
                }
            }
            Err(error) => self.skip(path, SkipKind::Unreadable, error.to_string()),
        }
        None
    }

    /// Returns true if an entry of a walked directory is a link to something outside of it that must not be followed.
    fn leaves_root(&self, path: &Path, above: &[PathBuf]) -> bool {
        let Some(root) = above.first() else {
            // The user named it.
            return false;
        };
        !self.options.follow_links
            && path.is_symlink()
            // Compared with the root of the walk after resolving all links of the target, so that a chain of links, or `..` in one, cannot get around
            // the check.
            && fs::canonicalize(path).is_ok_and(|target| !target.starts_with(root))
    }

    fn directory(&mut self, path: &Path, above: &[PathBuf]) -> Option<PendingDirectory> {
        let listed = fs::canonicalize(path).and_then(|directory| {
            // Only the directories above count: two links to one directory side by side are both walked, and its files are then duplicates. The list
            // is as long as the walk is deep.
            if above.contains(&directory) {
                return Ok(None);
            }
            // All or nothing: half a listing would look like a smaller folder.
            let entries: Vec<_> = fs::read_dir(path)?.collect::<Result<_, _>>()?;
            Ok(Some((directory, entries)))
        });
        let (directory, mut entries) = match listed {
            Ok(Some(listed)) => listed,
            Ok(None) => {
                let reason = "a link back to a directory above it".to_owned();
                self.skip(path, SkipKind::Loop, reason);
                return None;
            }
            Err(error) => {
                self.skip(path, SkipKind::Unreadable, error.to_string());
                return None;
            }
        };
        if above.is_empty() {
            self.exclude_results(path, &directory, &mut entries);
        } else if self.is_excluded(path) {
            return None;
        }
        let mut names: Vec<OsString> = entries.iter().map(fs::DirEntry::file_name).collect();
        // The order of the system differs between file systems and runs, but numbers of documents must not.
        names.sort();
        let (hidden, names): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| glob::is_hidden(name));
        let names: Vec<OsString> = names
            .into_iter()
            .filter(|name| !(glob::is_bookkeeping(name) && self.is_excluded(&path.join(name))))
            .collect();
        for name in hidden {
            let reason = "its name begins with a dot".to_owned();
            self.skip(&path.join(name), SkipKind::Hidden, reason);
        }
        Some(PendingDirectory {
            directory,
            entries: names.into_iter().map(|name| path.join(name)).collect(),
        })
    }

    /// Returns true if a directory that was found, not named, holds results or temporary files, or if the name of a directory or file is one of
    /// bookkeeping; reports all but temporary files as skipped.
    /// Returns true if the user left out this path, and notes it.
    fn leaves_out(&mut self, path: &Path) -> bool {
        let mut patterns = self.options.exclude.iter();
        let is_left_out = patterns.any(|pattern| pattern.matches(path));
        if is_left_out {
            self.skip(path, SkipKind::Excluded, "left out by a pattern".to_owned());
        }
        is_left_out
    }

    fn is_excluded(&mut self, path: &Path) -> bool {
        let Ok(directory) = fs::canonicalize(path) else {
            return false;
        };
        if self.left_out.contains(&directory) {
            return true;
        }
        let (kind, reason) = if self.is_output(&directory) {
            (SkipKind::OutputFolder, "results go there")
        } else if results::holds_results(&directory) {
            (SkipKind::ResultsFolder, HOLDS_RESULTS)
        } else if directory.join(results::COLLECTION_FILE).is_file() {
            (SkipKind::ResultsFolder, IS_COLLECTION)
        } else if path.file_name().is_some_and(glob::is_bookkeeping) {
            (SkipKind::Bookkeeping, IS_BOOKKEEPING)
        } else {
            return false;
        };
        // Globs meet a folder once for each pattern that matches, but it is reported once.
        self.left_out.insert(directory);
        self.skip(path, kind, reason.to_owned());
        true
    }

    fn is_output(&self, directory: &Path) -> bool {
        let output = self.output.map(|output| fs::canonicalize(output.path));
        output.is_some_and(|output| output.is_ok_and(|output| output == directory))
    }

    /// Skips the results in a directory that is both input and output.
    fn exclude_results(&mut self, path: &Path, directory: &Path, entries: &mut Vec<fs::DirEntry>) {
        let Some(output) = self.output.filter(|_| self.is_output(directory)) else {
            return;
        };
        let before = entries.len();
        let is_result = |entry: &fs::DirEntry| {
            let name = entry.file_name();
            output.results.iter().any(|result| *result == name)
        };
        entries.retain(|entry| !is_result(entry));
        if entries.len() < before {
            let reason = "the results in it are not read".to_owned();
            self.skip(path, SkipKind::OutputFolder, reason);
        }
    }

    /// Examines a regular file. Returns `None` if it was taken before.
    fn examine(
        &mut self,
        path: &Path,
        meta: &Metadata,
    ) -> io::Result<Result<Option<Source>, FormatRefusal>> {
        // Two paths that lead to one file through links count as one. Hard links count as two files, because no path tells, and are found as
        // duplicates by their text.
        let canonical = name::path_hash(&fs::canonicalize(path)?);
        if self.seen.contains(&canonical) {
            return Ok(Ok(None));
        }
        // Each file is opened and read once during discovery, so that a missing permission is reported now, by name, and not in the middle of the
        // job.
        // `open_regular` does not block on a FIFO that replaced the file since it was examined.
        let format = match sniff::sniff(path, &mut open_regular(path)?, self.options)? {
            Ok(format) => format,
            Err(refusal) => return Ok(Err(refusal)),
        };
        // After the refusals: a file that is not read is refused under each name.
        self.seen.insert(canonical);
        let origin = SourceOrigin::File(path.to_owned());
        let mut source = Source::new(origin, format, meta.len());
        source.modified = meta.modified().ok();
        Ok(Ok(Some(source)))
    }

    fn standard_input(&mut self, input: &mut dyn Read) -> Result<(), InputError> {
        let copy = self.spool_dir.join(SPOOL_NAME);
        // Copied for an argument before this one, or for another input of the same job, such as that of `--against`.
        if copy.exists() {
            return Err(InputError::StandardInputAgain);
        }
        let (bytes, hash) = spool(input, &copy)?;
        let format = self.sniff_copy("", &copy)?;
        let format = format.map_err(|refusal| refusal.of("-"))?;
        let origin = SourceOrigin::Spool {
            copy,
            hash,
            url: None,
        };
        let mut source = Source::new(origin, format, bytes);
        // Empty output of a command means no records, rather than an empty text.
        if bytes == 0 && self.options.format.is_none() {
            source.format = Format::Jsonl;
        }
        self.sources.push(source);
        Ok(())
    }

    /// Sniffs the copy of standard input or of an object of this name.
    fn sniff_copy(&self, name: &str, copy: &Path) -> Result<SniffedFormat, InputError> {
        open_regular(copy)
            .and_then(|mut file| sniff::sniff(Path::new(name), &mut file, self.options))
            .map_err(|error| io_error(copy, error))
    }

    /// Fetches and adds one object of a store, or several.
    #[cfg(feature = "cloud")]
    fn remote(&mut self, url: &str) -> Result<(), InputError> {
        let number = self.sources.len() + self.skips.len();
        // The number makes the names of copies unique among several arguments. Skips count too, since refused copies had names.
        let objects = remote::fetch(url, &self.options.store, self.spool_dir, number)?;
        if objects.is_empty() {
            return Err(InputError::NoMatch {
                name: url.to_owned(),
            });
        }
        // One object with exactly this name, not a prefix or a pattern: a problem with it is an error, as for a file.
        let is_named = !self.options.skip_unreadable
            && objects.iter().all(|object| match object {
                Ok(remote::FetchedObject::Copied(object)) => object.url == url,
                Ok(remote::FetchedObject::Bookkeeping(_)) => false,
                Err(refusal) => refusal.name == url,
            });
        for object in objects {
            match object {
                Ok(remote::FetchedObject::Bookkeeping(object)) => {
                    self.skip(
                        Path::new(&object),
                        SkipKind::Bookkeeping,
                        IS_BOOKKEEPING.to_owned(),
                    );
                }
                Ok(remote::FetchedObject::Copied(object)) => {
                    if let Some(refusal) = self.object(object)?
                        && is_named
                    {
                        return Err(refusal.of(url));
                    }
                }
                Err(refusal) if is_named => return Err(refusal.into()),
                Err(refusal) => {
                    let path = Path::new(&refusal.name);
                    self.skip(path, SkipKind::Unreadable, refusal.reason);
                }
            }
        }
        Ok(())
    }

    #[cfg(not(feature = "cloud"))]
    fn remote(&mut self, url: &str) -> Result<(), InputError> {
        Err(remote::store_support_missing(url))
    }

    /// Adds an object that was copied. Returns the reason if it is not read; the reason is also listed as a skip.
    #[cfg(feature = "cloud")]
    fn object(
        &mut self,
        object: remote::RemoteObject,
    ) -> Result<Option<FormatRefusal>, InputError> {
        let remote::RemoteObject {
            url,
            copy,
            bytes,
            hash,
        } = object;
        if self.leaves_out(Path::new(&url)) {
            let _ = fs::remove_file(&copy);
            return Ok(None);
        }
        if self.urls.contains(&url) {
            self.skip(
                Path::new(&url),
                SkipKind::Duplicate,
                NAMED_BEFORE.to_owned(),
            );
            return Ok(None);
        }
        match self.sniff_copy(remote::file_name(&url), &copy)? {
            Err(refusal) => {
                self.skip(Path::new(&url), refusal.kind, refusal.reason.clone());
                // The copy is not needed; if it remains, it is removed with the directory.
                let _ = fs::remove_file(&copy);
                Ok(Some(refusal))
            }
            Ok(format) => {
                self.urls.insert(url.clone());
                let origin = SourceOrigin::Spool {
                    copy,
                    hash,
                    url: Some(url),
                };
                self.sources.push(Source::new(origin, format, bytes));
                Ok(None)
            }
        }
    }

    fn skip(&mut self, path: &Path, kind: SkipKind, reason: String) {
        let part = SkippedPart::new(name::display(path), kind, reason);
        self.skips.push(part);
    }
}

const NAMED_BEFORE: &str = "named before; it is read once";

/// Prefix of the names of result files that hold kept documents.
const KEPT: &str = "kept";
const IS_COLLECTION: &str = "is a lookalike collection, which does not store documents";
const IS_BOOKKEEPING: &str = "what Spark, Hive or Delta Lake keeps about a table, not its rows";
const HOLDS_RESULTS: &str =
    "holds results of lookalike; to read what was kept, name kept.jsonl (or the folder kept) in it";

/// A link to a file found in a walk.
struct FileLink {
    /// Number of sources found before it, not counting links.
    position: usize,
    path: PathBuf,
}

enum EntryKind {
    Entry(PathBuf),
    /// The directory entered last is finished.
    Leave,
}

/// A directory to be entered.
struct PendingDirectory {
    /// Its canonical path.
    directory: PathBuf,
    entries: Vec<PathBuf>,
}

fn is_link_to_file(path: &Path) -> bool {
    path.is_symlink() && path.is_file()
}

/// Returns true if opening a path failed because it is a link that leads to itself.
fn is_loop(path: &Path, error: &io::Error) -> bool {
    let plain = [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied];
    // ELOOP has no stable kind in the standard library.
    !plain.contains(&error.kind()) && path.is_symlink()
}

/// Returns the error for a path that does not exist, or for a URL of a store that is not supported.
fn not_found(path: &Path) -> InputError {
    let name = name::display(path).into_owned();
    let is_scheme =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match name.split_once("://") {
        Some((scheme, _)) if is_scheme(scheme) => InputError::Unsupported {
            reason: format!("addresses of the form {scheme}:// are not supported"),
            remedy: "name files by their path, or objects by s3://, gs://, az:// or https://"
                .to_owned(),
            is_convertible: false,
            name,
        },
        _ if name.is_empty() => InputError::NotFound {
            name: "\"\"".to_owned(),
        },
        _ => InputError::NotFound { name },
    }
}

/// Copies standard input. Returns its length and the XXH3-64 of its bytes.
fn spool(input: &mut dyn Read, copy: &Path) -> Result<(u64, u64), InputError> {
    let name = || "standard input".to_owned();
    let unreadable = |cause| InputError::Io {
        name: name(),
        cause,
    };
    let unwritable = |cause: io::Error| InputError::Copy {
        name: name(),
        reason: cause.to_string(),
    };
    let mut file = File::create(copy).map_err(unwritable)?;
    let mut hasher = Xxh3::new();
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    loop {
        let (filled, end) = decode::fill(&mut &mut *input, &mut buffer);
        hasher.update(&buffer[..filled]);
        // Bytes before an error are written too; the caller then gives up the whole copy.
        file.write_all(&buffer[..filled]).map_err(unwritable)?;
        bytes += filled as u64;
        if end.map_err(unreadable)? {
            return Ok((bytes, hasher.digest()));
        }
    }
}

/// Returns the type of a file that is neither regular nor a directory.
fn special(meta: &Metadata) -> Option<&'static str> {
    use std::os::unix::fs::FileTypeExt;
    let kind = meta.file_type();
    if kind.is_file() {
        None
    } else if kind.is_fifo() {
        Some("named pipe")
    } else if kind.is_socket() {
        Some("socket")
    } else {
        Some("device")
    }
}

fn io_error(path: &Path, cause: io::Error) -> InputError {
    InputError::Io {
        name: name::display(path).into_owned(),
        cause,
    }
}
