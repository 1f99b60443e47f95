//! From arguments to sources: files, directories, globs and standard input, in a stable order.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use crate::decode;
use crate::error::InputError;
use crate::glob;
use crate::html;
use crate::name;
use crate::options::InputOptions;
use crate::remote;
use crate::sniff::{self, Refusal, Verdict};
use crate::source::{Inputs, Origin, Skip, SkipKind, Source};

/// Name of the copy of standard input in the spool directory.
const SPOOL_NAME: &str = "standard-input";

impl Inputs {
    /// Finds everything that the arguments name.
    ///
    /// An argument is a file, a directory (walked, links followed), `-` for standard input, or,
    /// when no such file exists, a glob. Order: arguments as given; directories and globs by name,
    /// bytewise, component by component. A file met again is read once.
    ///
    /// Standard input is copied to `spool_dir`, for it is read twice; the caller removes the copy
    /// with the directory.
    ///
    /// Within directories and globs, what cannot be read becomes a [`Skip`]; entries that begin
    /// with a dot are skipped too.
    ///
    /// # Errors
    /// When an argument names nothing, or a file that cannot be read.
    pub fn discover(
        arguments: &[OsString],
        options: &InputOptions,
        spool_dir: &Path,
    ) -> Result<Inputs, InputError> {
        Self::discover_with(arguments, options, spool_dir, &mut io::stdin().lock())
    }

    /// As [`Inputs::discover`], with something else in place of standard input.
    ///
    /// # Errors
    /// As there.
    pub fn discover_with(
        arguments: &[OsString],
        options: &InputOptions,
        spool_dir: &Path,
        standard_input: &mut dyn Read,
    ) -> Result<Inputs, InputError> {
        html::check(options.html)?;
        let mut discovery = Discovery {
            options,
            sources: Vec::new(),
            skips: Vec::new(),
            seen: BTreeSet::new(),
        };
        for argument in arguments {
            if argument == "-" {
                discovery.standard_input(spool_dir, standard_input)?;
            } else if let Some(url) = remote::url(argument) {
                discovery.remote(url, spool_dir)?;
            } else {
                discovery.argument(argument)?;
            }
        }
        if u32::try_from(discovery.sources.len()).is_err() {
            return Err(InputError::TooMany);
        }
        Ok(Inputs {
            sources: discovery.sources,
            skips: discovery.skips,
        })
    }
}

struct Discovery<'o> {
    options: &'o InputOptions,
    sources: Vec<Source>,
    skips: Vec<Skip>,
    /// Canonical paths of what was taken.
    seen: BTreeSet<PathBuf>,
}

impl Discovery<'_> {
    fn argument(&mut self, argument: &OsStr) -> Result<(), InputError> {
        let path = Path::new(argument);
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => self.many(argument, vec![path.to_owned()]),
            Ok(meta) => self.named(path, &meta),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.glob(argument),
            Err(error) => Err(io_error(path, error)),
        }
    }

    fn glob(&mut self, argument: &OsStr) -> Result<(), InputError> {
        let name = name::display(Path::new(argument)).into_owned();
        if !glob::is_glob(argument) {
            return Err(InputError::NotFound { name });
        }
        match glob::expand(argument) {
            Err(reason) => Err(InputError::Pattern { name, reason }),
            Ok(paths) if paths.is_empty() => Err(InputError::NoMatch { name }),
            Ok(paths) => self.many(argument, paths),
        }
    }

    /// A file that the user named: what is wrong with it is an error.
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
            Found::Source(source) => self.sources.push(source),
            Found::Again => self.skip(path, SkipKind::Duplicate, AGAIN.to_owned()),
            Found::Refused(refusal) => {
                return Err(InputError::Unsupported {
                    name: name::display(path).into_owned(),
                    reason: refusal.reason,
                    remedy: refusal.remedy.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Files that were found, not named: what is wrong with them is skipped.
    fn many(&mut self, argument: &OsStr, paths: Vec<PathBuf>) -> Result<(), InputError> {
        let (sources, skips) = (self.sources.len(), self.skips.len());
        for path in paths {
            self.walk(path);
        }
        let new = &self.skips[skips..];
        let duplicates = new.iter().any(|skip| skip.kind == SkipKind::Duplicate);
        if self.sources.len() > sources || duplicates {
            return Ok(());
        }
        Err(InputError::Empty {
            name: name::display(Path::new(argument)).into_owned(),
            skipped: new.len(),
            first: match new.first() {
                Some(skip) => format!("{}: {}", skip.name, skip.reason),
                None => "none".to_owned(),
            },
        })
    }

    /// Visits a path and all below it, depth first, by name.
    fn walk(&mut self, root: PathBuf) {
        let mut stack = vec![Visit::Entry(root)];
        let mut above: Vec<PathBuf> = Vec::new();
        while let Some(visit) = stack.pop() {
            match visit {
                Visit::Leave => {
                    above.pop();
                }
                Visit::Entry(path) => {
                    if let Some(below) = self.entry(&path, &above) {
                        above.push(below.directory);
                        stack.push(Visit::Leave);
                        stack.extend(below.entries.into_iter().rev().map(Visit::Entry));
                    }
                }
            }
        }
    }

    /// One path: a file is taken or skipped, a directory's entries are returned.
    fn entry(&mut self, path: &Path, above: &[PathBuf]) -> Option<Below> {
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
            Ok(Found::Source(source)) => self.sources.push(source),
            Ok(Found::Again) => self.skip(path, SkipKind::Duplicate, AGAIN.to_owned()),
            Ok(Found::Refused(refusal)) => self.skip(path, refusal.kind, refusal.reason),
            Err(error) => self.skip(path, SkipKind::Unreadable, error.to_string()),
        }
        None
    }

    fn directory(&mut self, path: &Path, above: &[PathBuf]) -> Option<Below> {
        let listed = fs::canonicalize(path).and_then(|directory| {
            if above.contains(&directory) {
                return Ok(None);
            }
            let entries: Vec<_> = fs::read_dir(path)?.collect::<Result<_, _>>()?;
            Ok(Some((directory, entries)))
        });
        let (directory, entries) = match listed {
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
        let mut names: Vec<OsString> = entries.iter().map(fs::DirEntry::file_name).collect();
        names.sort();
        let (hidden, names): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| glob::is_hidden(name));
        for name in hidden {
            let reason = "its name begins with a dot".to_owned();
            self.skip(&path.join(name), SkipKind::Hidden, reason);
        }
        Some(Below {
            directory,
            entries: names.into_iter().map(|name| path.join(name)).collect(),
        })
    }

    /// Looks at a regular file.
    fn examine(&mut self, path: &Path, meta: &Metadata) -> io::Result<Found> {
        let canonical = fs::canonicalize(path)?;
        if self.seen.contains(&canonical) {
            return Ok(Found::Again);
        }
        let head = head_of(path)?;
        let (format, compression) = match sniff::sniff(path, &head, self.options) {
            Verdict::Read(format, compression) => (format, compression),
            Verdict::Refuse(refusal) => return Ok(Found::Refused(refusal)),
        };
        self.seen.insert(canonical);
        Ok(Found::Source(Source {
            origin: Origin::File(path.to_owned()),
            format,
            compression,
            bytes: meta.len(),
            modified: meta.modified().ok(),
        }))
    }

    fn standard_input(&mut self, spool_dir: &Path, input: &mut dyn Read) -> Result<(), InputError> {
        if self.sources.iter().any(|source| source.name() == "-") {
            self.skip(Path::new("-"), SkipKind::Duplicate, AGAIN.to_owned());
            return Ok(());
        }
        let copy = spool_dir.join(SPOOL_NAME);
        let spooled =
            spool(input, &copy).and_then(|(bytes, hash)| Ok((bytes, hash, head_of(&copy)?)));
        let (bytes, hash, head) = spooled.map_err(|error| io_error(&copy, error))?;
        match sniff::sniff(Path::new(""), &head, self.options) {
            Verdict::Refuse(refusal) => Err(InputError::Unsupported {
                name: "-".to_owned(),
                reason: refusal.reason,
                remedy: refusal.remedy.to_owned(),
            }),
            Verdict::Read(format, compression) => {
                self.sources.push(Source {
                    origin: Origin::Spool {
                        copy,
                        hash,
                        url: None,
                    },
                    format,
                    compression,
                    bytes,
                    modified: None,
                });
                Ok(())
            }
        }
    }

    /// One object of a store, or several.
    #[cfg(feature = "cloud")]
    fn remote(&mut self, url: &str, spool_dir: &Path) -> Result<(), InputError> {
        let name = || url.to_owned();
        let number = self.sources.len() + self.skips.len();
        let objects = remote::fetch(url, &self.options.store, spool_dir, number);
        let objects = objects.map_err(|refused| InputError::Remote {
            name: refused.name,
            reason: refused.reason,
            remedy: refused.remedy,
        })?;
        if objects.is_empty() {
            return Err(InputError::NoMatch { name: name() });
        }
        let is_named = objects.iter().all(|object| object.url == url);
        for object in objects {
            if let Some(refusal) = self.object(object)?
                && is_named
            {
                return Err(InputError::Unsupported {
                    name: name(),
                    reason: refusal.reason,
                    remedy: refusal.remedy.to_owned(),
                });
            }
        }
        Ok(())
    }

    #[cfg(not(feature = "cloud"))]
    fn remote(&mut self, url: &str, _: &Path) -> Result<(), InputError> {
        Err(InputError::Unsupported {
            name: url.to_owned(),
            reason: "an object of a store, which this build does not read".to_owned(),
            remedy: "build lookalike with the feature cloud, or copy it here first".to_owned(),
        })
    }

    /// An object that was copied; the reason if it is not read, which is listed too.
    #[cfg(feature = "cloud")]
    fn object(&mut self, object: remote::Object) -> Result<Option<Refusal>, InputError> {
        let remote::Object {
            url,
            copy,
            bytes,
            hash,
        } = object;
        let again = self
            .sources
            .iter()
            .any(|source| source.name() == url.as_str());
        if again {
            self.skip(Path::new(&url), SkipKind::Duplicate, AGAIN.to_owned());
            return Ok(None);
        }
        let head = head_of(&copy).map_err(|error| io_error(&copy, error))?;
        match sniff::sniff(Path::new(remote::file_name(&url)), &head, self.options) {
            Verdict::Refuse(refusal) => {
                self.skip(Path::new(&url), refusal.kind, refusal.reason.clone());
                // Nobody reads it; what remains goes with the directory.
                let _ = fs::remove_file(&copy);
                Ok(Some(refusal))
            }
            Verdict::Read(format, compression) => {
                let origin = Origin::Spool {
                    copy,
                    hash,
                    url: Some(url),
                };
                self.sources.push(Source {
                    origin,
                    format,
                    compression,
                    bytes,
                    modified: None,
                });
                Ok(None)
            }
        }
    }

    fn skip(&mut self, path: &Path, kind: SkipKind, reason: String) {
        self.skips.push(Skip {
            name: name::display(path).into_owned(),
            reason,
            kind,
            offset: None,
            count: 1,
        });
    }
}

const AGAIN: &str = "named before; it is read once";

enum Visit {
    Entry(PathBuf),
    /// The directory entered last has been seen whole.
    Leave,
}

/// A directory to be entered.
struct Below {
    /// Its canonical path.
    directory: PathBuf,
    entries: Vec<PathBuf>,
}

enum Found {
    Source(Source),
    /// Taken before.
    Again,
    Refused(Refusal),
}

/// Whether a path failed because it is a link that leads to itself.
fn is_loop(path: &Path, error: &io::Error) -> bool {
    let plain = [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied];
    !plain.contains(&error.kind()) && path.is_symlink()
}

fn head_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = vec![0; sniff::HEAD_BYTES];
    let (filled, end) = decode::fill(&mut File::open(path)?, &mut head);
    end?;
    head.truncate(filled);
    Ok(head)
}

/// Copies standard input; returns its length and the XXH3-64 of its bytes.
fn spool(input: &mut dyn Read, copy: &Path) -> io::Result<(u64, u64)> {
    let mut file = File::create(copy)?;
    let mut hasher = Xxh3::new();
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    loop {
        let (filled, end) = decode::fill(&mut &mut *input, &mut buffer);
        hasher.update(&buffer[..filled]);
        file.write_all(&buffer[..filled])?;
        bytes += filled as u64;
        if end? {
            return Ok((bytes, hasher.digest()));
        }
    }
}

/// What a file is that is neither regular nor a directory.
#[cfg(unix)]
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

/// What a file is that is neither regular nor a directory.
#[cfg(not(unix))]
fn special(meta: &Metadata) -> Option<&'static str> {
    (!meta.is_file()).then_some("special file")
}

fn io_error(path: &Path, source: io::Error) -> InputError {
    InputError::Io {
        name: name::display(path).into_owned(),
        source,
    }
}
